"""Mutations of valid inputs: whatever becomes of a file, a command gives a result or a diagnostic, in time.

A mutation is of a text's lines or tokens, or of bytes. What a command makes of it is judged from outside:
exit status 0, or 1 or 2 with a message and no traceback, within SECONDS and MEMORY_BYTES.
"""

from __future__ import annotations

import random
import re
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from click.testing import CliRunner

SECONDS = 10
MEMORY_BYTES = 1 << 30
TESTS = Path(__file__).parent.parent
EXAMPLES = TESTS.parent / "examples"
MOST_BYTES = 6000
"""Longer files are left out: mutations of short ones are as various, and quicker to run."""

_TOKEN = re.compile(rb"[\w.$%]+|\s+|.", re.DOTALL)
_NUMBERS = (b"0", b"1", b"-1", b"31", b"32", b"255", b"65536", b"4294967295", b"4294967296")
_NUMBERS += (b"18446744073709551616", b"-9223372036854775809", b"1" + b"0" * 400, b"0x", b"1e9", b"3.5")


@dataclass(frozen=True)
class Input:
    """A valid file: `suffix` is its kind."""

    name: str
    suffix: str
    data: bytes


@dataclass(frozen=True)
class Verdict:
    """What a command made of a mutation; `problem` is None where that is as it should be."""

    name: str
    data: bytes
    problem: str | None


class TimedOut(BaseException):
    """A command took longer than SECONDS."""


def inputs() -> list[Input]:
    """Valid files of every kind, from the tests and examples."""
    files = [*sorted((TESTS / "ptx").glob("*.ptx")), *sorted((TESTS / "ir").glob("*/*.ir"))]
    found = [Input(path.name, path.suffix, path.read_bytes()) for path in files]
    for name in ("dot", "histogram", "collatz"):
        found += _compiled(EXAMPLES / f"{name}.cu")
    found.append(Input("machine.toml", ".toml", _DESCRIPTION))
    return [item for item in found if len(item.data) <= MOST_BYTES or item.suffix == ".qbin"]


_DESCRIPTION = b"""\
lanes = 8
warps = 2
register_words = 256
uniform_registers = 32
predicates = 8
rom_blocks = 128
memory_words = 512
payload_bits = 12

[model]
hidden = 512
heads = 16
"""


def _compiled(path: Path) -> Iterator[Input]:
    from qgpu.backends.machine.description import DEFAULT
    from qgpu.backends.machine.qbin import program_bytes
    from qgpu.toolchain.compile import CompileOptions, compile_source

    kept: dict[str, str] = {}
    options = CompileOptions(keep=kept.__setitem__)
    program = compile_source(path.read_text(), path.name, "cu", DEFAULT, options)
    yield Input(f"{path.stem}.qbin", ".qbin", program_bytes(program))
    yield Input(f"{path.stem}.ptx", ".ptx", kept["ptx"].encode())
    yield Input(f"{path.stem}.ir", ".ir", kept["ir"].encode())


def mutated(data: bytes, source: random.Random) -> bytes:
    """The data after one to three mutations."""
    for _ in range(source.randint(1, 3)):
        data = source.choice(_MUTATIONS)(data, source)
    return data


def _lines_changed(data: bytes, source: random.Random) -> bytes:
    """A line dropped, doubled, or moved."""
    lines = data.split(b"\n")
    taken = lines.pop(source.randrange(len(lines)))
    for _ in range(source.choice((0, 1, 2))):
        lines.insert(source.randrange(len(lines) + 1), taken)
    return b"\n".join(lines)


def _tokens_changed(data: bytes, source: random.Random) -> bytes:
    """A token dropped, or another one from the file, or a number of note, in its place."""
    tokens = _TOKEN.findall(data) or [b""]
    position = source.randrange(len(tokens))
    tokens[position] = source.choice((b"", source.choice(tokens), source.choice(_NUMBERS)))
    return b"".join(tokens)


def _bytes_changed(data: bytes, source: random.Random) -> bytes:
    """Some bytes with a bit turned, or any bytes in their place."""
    found = bytearray(data)
    for _ in range(min(len(found), source.choice((1, 1, 2, 8)))):
        position = source.randrange(len(found))
        found[position] = source.choice((found[position] ^ 1 << source.randrange(8), source.randrange(256)))
    return bytes(found)


def _cut(data: bytes, source: random.Random) -> bytes:
    """The start of the data, or all but a piece of it."""
    first, last = sorted(source.randrange(len(data) + 1) for _ in range(2))
    return data[:last] if source.random() < 0.3 else data[:first] + data[last:]


def _doubled(data: bytes, source: random.Random) -> bytes:
    """A piece of the data twice."""
    first = source.randrange(len(data) + 1)
    piece = data[first : first + source.randrange(200)]
    return data[:first] + piece * 2 + data[first + len(piece) :]


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _lines_changed,
    _tokens_changed,
    _tokens_changed,
    _bytes_changed,
    _cut,
    _doubled,
)

_ARGUMENTS = ["--arg=i32[4]", "--arg=i32[4]", "--arg=i32[4]", "--arg=i32:3"]
_LAUNCH = [*_ARGUMENTS, "--grid=1", "--block=2", "--backend=reference", "--max-tokens=2000"]
_COMMANDS: dict[str, tuple[str, Sequence[str]]] = {
    ".ptx": ("qgpuc", ["{file}", "-o", "{out}", "--machine=large"]),
    ".ir": ("qgpuc", ["{file}", "-o", "{out}", "--machine=large"]),
    ".qbin": (
        "qgpu",
        ["run", "{file}", *_LAUNCH],
    ),
    ".toml": ("qgpuc", [str(EXAMPLES / "dot.cu"), "-o", "{out}", "--machine={file}"]),
}


@cache
def _command(name: str):
    from qgpu.runtime.cli import main as run
    from qgpu.toolchain.driver import main as compile_

    return {"qgpuc": compile_, "qgpu": run}[name]


def limit_memory() -> None:
    """Lets this process have MEMORY_BYTES more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    limit = MEMORY_BYTES + pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _time_is_up(signum: int, frame: object) -> None:
    raise TimedOut


def judged(item: Input, data: bytes) -> Verdict:
    """Runs the command for a kind of file on a mutation of one."""
    name, words = _COMMANDS[item.suffix]
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, f"mutated{item.suffix}"), Path(folder, "out.qbin")
        file.write_bytes(data)
        arguments = [word.format(file=file, out=out) for word in words]
        signal.signal(signal.SIGALRM, _time_is_up)
        signal.alarm(SECONDS)
        try:
            result = CliRunner().invoke(_command(name), arguments, prog_name=name)
        except TimedOut:
            return Verdict(item.name, data, f"took more than {SECONDS} seconds")
        finally:
            signal.alarm(0)
    return Verdict(item.name, data, _problem(result))


def _problem(result) -> str | None:
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return f"{type(error).__name__}: {error}"
    if result.exit_code not in (0, 1, 2):
        return f"exit status {result.exit_code}"
    if result.exit_code and not re.search(r"\berror: |^Error: ", result.stderr, re.MULTILINE):
        return "no diagnostic"
    return None


def judge(seed: int, count: int) -> list[Verdict]:
    """The verdicts with a problem among `count` mutations that a seed leads to."""
    source = random.Random(seed)
    found = inputs()
    by_suffix = {suffix: [item for item in found if item.suffix == suffix] for suffix in _COMMANDS}
    verdicts = []
    for _ in range(count):
        item = source.choice(by_suffix[source.choices(list(_COMMANDS), (4, 4, 3, 1))[0]])
        verdicts.append(judged(item, mutated(item.data, source)))
    return [verdict for verdict in verdicts if verdict.problem]
