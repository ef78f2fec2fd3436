"""What to do about a launch that is refused or has stopped."""

import re
import shlex
from pathlib import Path

from qgpu.backends.machine.program import Program
from qgpu.toolchain.cuda.names import readable

_REFUSALS = (
    (r"takes \d+ arguments", "give one --arg for each parameter, in their order"),
    (r"is a pointer|parameter \w+\* ", "a pointer is given a buffer: i32[16] (zeros), or i32[]:1,2,3"),
    (r"parameter \w+ \S+ is wanted", "a number is given as i32:5, of the parameter's width"),
    (
        r"words of memory",
        "use less shared memory or smaller buffers, or a machine with more: --machine large",
    ),
    (r"blocks of \d+ threads", "launch smaller blocks, and more of them"),
    (r"no checkpoint in '", "a checkpoint is a directory that qgpuc --emit-weights -o DIR wrote"),
    (r"has not ended after", "raise --max-tokens, unless a loop waits for what no thread does"),
)
_FAULTS = {
    "out-of-bounds": "compare the index with the number of elements before the access",
    "misaligned": "the address has to be a multiple of the access's width",
    "barrier": "let every thread that has not returned reach the same __syncthreads()",
    "uninitialised": "write it first, with a __syncthreads() between the write and another thread's read",
}


_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_BASE = "Qwen/Qwen3.5-0.8B"


def model_hints(path: str) -> list[str]:
    """What a MODEL to talk with is, and how to make one, for a path that is none."""
    place = Path(path)
    of_the_hub = bool(_HUB_ID.fullmatch(path)) and not place.exists()
    is_base = of_the_hub or ((place / "config.json").is_file() and not (place / "qgpu.json").exists())
    base, made = (path, "DIR") if is_base else (_BASE, "DIR" if place.exists() else path)
    return [
        "MODEL is a directory with a text model that has a machine merged into it",
        f"make one: qgpuc --emit-weights --base {shlex.quote(base)} -o {shlex.quote(made)}",
    ]


def recompile_hints(program: Program, file: str, machine: str) -> list[str]:
    """What to do about a file's program that is compiled for another machine than the one named."""
    names = [readable(kernel.name) for kernel in program.kernels]
    # Of several kernels, all of the source's are the likely ones.
    chosen = ("--kernel", *names) if len(names) == 1 else ()
    words = ("qgpuc", program.source or "SOURCE", *chosen, "--machine", machine, "-o", file)
    return [f"compile it for that one: {shlex.join(words)}", "or leave out --machine to run it on its own"]


def refusal_hints(message: str) -> list[str]:
    """What to do about a launch that does not fit, by the message of its refusal."""
    return [hint for pattern, hint in _REFUSALS if re.search(pattern, message)][:1]


def fault_hints(kind: str) -> list[str]:
    """What to do about a fault of a kind."""
    return [_FAULTS[kind]] if kind in _FAULTS else []
