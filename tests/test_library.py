"""The library: each routine gives what Python's integers and numpy say, or stops where that does not fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from library_cases import ORACLES, Refusal, operands
from qgpu.backends.machine.description import DEFAULT, SMALL, MachineDescription
from qgpu.backends.machine.host import Launch
from qgpu.runtime.compiled import CompiledEngine
from qgpu.runtime.engine import Engine, ReferenceEngine
from qgpu.runtime.expressions.launcher import Launcher, RefusedError, compiled
from qgpu.runtime.launch import Outcome, run
from qgpu.runtime.library import ROUTINES
from qgpu.runtime.library.plans import Array
from qgpu.runtime.library.table import HERE
from qgpu.runtime.vector import run_vector

NAMES = list(ROUTINES)
CASES = [((1, 1, 1), False), ((40, 6, 7), False), ((40, 6, 7), True)]
"""Elements of a vector, rows and columns of a matrix; and whether numbers are of every size."""

ON_THE_ENGINE = ("add", "floor_divide", "sum", "dot", "sort", "matvec", "gather", "where", "popcount")


def difference(launcher: Launcher, name: str, given: list[Array]) -> str:
    """How a routine's result differs from what it must be, in words; empty where it does not."""
    before = [one.copy() for one in given]
    try:
        wanted = np.asarray(ORACLES[name](*given))
    except Refusal:
        wanted = None
    try:
        got = launcher(name, given)
    except RefusedError as error:
        expected = wanted is None and any(text in str(error) for text in ROUTINES[name].refuses)
        return "" if expected else f"{name}{given}: {error}, not {wanted}"
    if any((one != other).any() for one, other in zip(given, before, strict=True)):
        return f"{name} has changed an operand"
    if wanted is None:
        return f"{name}{given}: {got}, where it must stop"
    same = got.dtype == np.int32 and got.shape == wanted.shape and (got == wanted.astype(np.int64)).all()
    return "" if same else f"{name}{given}: {got}, not {wanted}"


def on(engine: Engine) -> Callable[[Launch], Outcome]:
    return lambda launch: run(launch, engine)


def test_every_file_has_one_row() -> None:
    assert sorted(ROUTINES) == sorted(path.stem for path in HERE.glob("*.cu"))
    assert set(ORACLES) == set(ROUTINES)
    assert len(ROUTINES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_results(name: str) -> None:
    """On the executor of machine code, for numbers that fit and for numbers of every size."""
    generator = np.random.default_rng(sum(name.encode()))
    for sizes, wild in CASES:
        launcher = Launcher(DEFAULT, run_vector)
        assert not difference(launcher, name, operands(name, generator, sizes, wild))


@pytest.mark.parametrize("name", NAMES)
def test_assertions_alone_decide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bounds say that no assertion can fail, the kernel with its assertions gives the same."""
    generator = np.random.default_rng(7)
    given = operands(name, generator, (6, 2, 3), False)
    assert ROUTINES[name].certain(given)
    monkeypatch.setattr("qgpu.runtime.expressions.launcher.UNCHECKED", "CHECKED")
    compiled.cache_clear()
    assert not difference(Launcher(DEFAULT, run_vector), name, given)
    compiled.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_reference_interpreter(name: str) -> None:
    """Token by token, on small operands."""
    launcher = Launcher(DEFAULT, on(ReferenceEngine(DEFAULT)))
    generator = np.random.default_rng(3)
    assert not difference(launcher, name, operands(name, generator, (4, 2, 2), False))


@pytest.mark.parametrize("name", ON_THE_ENGINE)
def test_engine(name: str, checkpoint: Callable[[MachineDescription, str], Path]) -> None:
    """On the weights of a small machine."""
    launcher = Launcher(SMALL, on(CompiledEngine(checkpoint(SMALL, "float32"))))
    generator = np.random.default_rng(5)
    for wild in (False, True):
        assert not difference(launcher, name, operands(name, generator, (5, 2, 3), wild))
    assert all(record.layer_passes for record in launcher.records)


def test_refusals_say_which_element() -> None:
    launcher = Launcher(DEFAULT, run_vector)
    a, b = np.array([[1, 2], [3, 4]], np.int32), np.array([[1, 1], [0, 1]], np.int32)
    with pytest.raises(RefusedError, match=r"^division by zero \(row 1, column 0\)$"):
        launcher("floor_divide", [a, b])
    with pytest.raises(RefusedError, match=r"^the index is outside \(element 1\)$"):
        launcher("gather", [a[0], np.array([0, 2, 0], np.int32)])
    with pytest.raises(RefusedError, match=r"needs \d+ words of memory; machine 'default' has 4096"):
        launcher("add", [np.zeros(4000, np.int32), np.zeros(4000, np.int32)])


def test_every_assertion_has_a_text() -> None:
    for path in [*HERE.glob("*.cu"), *HERE.glob("*.h")]:
        for condition in re.findall(r"^\s*assert\((.*)\);$", path.read_text(), re.MULTILINE):
            assert re.search(r' && "[a-z][^"]+"$', condition), f"{path.name}: {condition}"
