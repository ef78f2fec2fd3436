"""The cases: the kernels of the folder `examples`, and the tables of instructions of the folder `tests`."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.runtime.conformance.case import Case, CaseLaunch
from qgpu.toolchain.diagnostics import failure

ROOT = Path(__file__).resolve().parents[2]
"""The checkout that these packages are in."""

GROUPS = ("examples", "kernels", "instructions")

_SAMPLE = 8
"""Inputs of an instruction's first launch, which fits small machines."""


def load_cases(groups: Iterable[str] = GROUPS, root: Path = ROOT) -> list[Case]:
    """All cases of some groups, in their order.

    Raises:
        DiagnosticError: the packages are not in a checkout, or what the tests import is not installed.
    """
    chosen = list(groups)
    for folder in ("examples", "tests"):
        if not (root / folder).is_dir():
            raise failure(
                f"there is no folder '{folder}' beside the packages",
                "the cases are the project's examples and tests: install it from a checkout, with -e",
            )
    with _path(root / "examples", root / "tests"):
        try:
            return [case for group in chosen for case in _LOADERS[group](root)]
        except ModuleNotFoundError as error:
            raise failure(
                f"the tests import '{error.name}', which is not installed", "install the extra 'test'"
            ) from None


@contextmanager
def _path(*folders: Path) -> Iterator[None]:
    """Search folders for modules first, for the time of the body."""
    before = list(sys.path)
    sys.path[:0] = map(str, folders)
    try:
        yield
    finally:
        sys.path[:] = before


def _examples(root: Path) -> Iterator[Case]:
    """The kernels of examples/, each with its launches; the first is tiny."""
    launches = importlib.import_module("launches").LAUNCHES
    for name in dict.fromkeys(launch.kernel for launch in launches):
        own = [launch for launch in launches if launch.kernel == name]
        made = tuple(_launch(one.grid, one.block, 0, one.args, one.expect()) for one in own)
        yield _from_file("examples", name, name, own[0].file, root, made)


def _kernels(root: Path) -> Iterator[Case]:
    """The kernels of examples/kernels/."""
    for kernel in importlib.import_module("kernels").KERNELS:
        made = tuple(
            _launch(one.grid, one.block, one.shared, one.args, kernel.expect(one)) for one in kernel.launches
        )
        name = f"{kernel.topic}/{kernel.name}"
        yield _from_file("kernels", name, kernel.name, kernel.file, root, made, kernel.architecture)


def _from_file(
    group: str,
    name: str,
    kernel: str,
    file: Path,
    root: Path,
    launches: tuple[CaseLaunch, ...],
    architecture: str = "compute_75",
) -> Case:
    text = file.read_text(encoding="utf-8")
    shown = file.resolve().relative_to(root).as_posix()
    return Case(group, name, name, text, shown, "cu", kernel, launches, architecture)


def _launch(grid, block, shared: int, arguments: Iterable[Any], expected: Iterable[Any]) -> CaseLaunch:
    given = tuple(a.tobytes() if isinstance(a, np.ndarray) else int(a) for a in arguments)
    return CaseLaunch(grid, block, shared, given, tuple(array.tobytes() for array in expected))


def _instructions(root: Path) -> Iterator[Case]:
    """Kernels of one instruction each: a launch with a few inputs, then one with all."""
    cases = importlib.import_module("ptx_cases")
    seen: Counter[str] = Counter()
    for file in sorted((root / "tests").glob("test_ptx_rules_*.py")):
        for one in importlib.import_module(file.stem).CASES:
            name = str(one).strip()
            seen[name] += 1
            if seen[name] > 1:
                name += f" ({seen[name]})"
            text = cases.head(one.target) + cases.kernel_text(one)
            launches = tuple(_instruction_launches(one, cases))
            target = "compute_" + one.target.partition(" ")[0].removeprefix("sm_")
            yield Case("instructions", _opcode(one.text), name, text, file.name, "ptx", "k", launches, target)


def _opcode(text: str) -> str:
    """The opcode of a case: of the instruction that has its result."""
    statements = [part.strip() for part in text.replace("{{", "").split(";")]
    giving = [part for part in statements if "{d}" in part]
    words = [word for word in (giving or statements)[0].split() if not word.startswith("@")]
    return words[0].partition(".")[0]


def _instruction_launches(case: Any, cases: Any) -> Iterator[CaseLaunch]:
    inputs = case.inputs()
    if not case.together and not case.memory and len(inputs) > _SAMPLE:
        yield _instruction_launch(case, cases, inputs[:: -(-len(inputs) // _SAMPLE)])
    yield _instruction_launch(case, cases, inputs)


def _instruction_launch(case: Any, cases: Any, inputs: list[tuple[int, ...]]) -> CaseLaunch:
    """Arrays of the results and of each source, and the memory where the case has some."""
    sizes = [4 if width == 1 else width // 8 for width in (case.result, *case.sources)]
    columns = zip(*inputs, strict=True)
    arrays = [bytes(cases.packed(column, size)) for column, size in zip(columns, sizes[1:], strict=False)]
    results = case.expected(inputs)
    after: list[bytes] = []
    before: list[bytes] = []
    if case.memory:
        before, after = [bytes(case.bytes())], [results.pop().to_bytes(case.memory, "little")]
    given = (bytes(sizes[0] * len(inputs)), *arrays, *before)
    expected = (bytes(cases.packed(results, sizes[0])), *arrays, *after)
    return CaseLaunch((1, 1, 1), (len(inputs), 1, 1), 0, given, expected)


_LOADERS = {"examples": _examples, "kernels": _kernels, "instructions": _instructions}
