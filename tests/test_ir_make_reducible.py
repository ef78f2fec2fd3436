"""Control flow of any shape: cycles with several entries get one, and then everything linearises."""

import random
import struct
import time

import pytest

from ir_random_kernels import SITES, random_graph
from qgpu.ir import Function, parse_function, print_function, verify
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import Linearize, MakeReducible, Pass, PassManager, default_pipeline

THREADS = 4


def transformed(function: Function, *steps: Pass) -> Function:
    copy = parse_function(print_function(function))
    PassManager(steps).run(copy)
    return copy


def launch(function: Function, n: int) -> bytes | str:
    """What a kernel of `random_graph` leaves in `out`, or the kind of its fault."""
    chance = random.Random(n)
    data = bytearray(struct.pack(f"<{THREADS}i", *(chance.randrange(-5, 9) for _ in range(THREADS))))
    out = bytearray(THREADS * SITES * 4)
    try:
        interpret(function, [data, out, n], block=(THREADS, 1, 1))
    except Fault as fault:
        return fault.kind
    return bytes(out)


@pytest.mark.parametrize("seed", range(24))
def test_threads_and_lanes_do_what_they_did(seed: int) -> None:
    function = random_graph(seed, 6 + seed % 12)
    reducible = transformed(function, MakeReducible())
    assert LoopInfo(reducible).irreducible == []
    lockstep = transformed(function, MakeReducible(), Linearize(skip_limit=seed % 2 * 40))
    for n in (0, 3):
        expected = launch(function, n)
        assert isinstance(expected, bytes)
        assert launch(reducible, n) == expected
        assert launch(lockstep, n) == expected


@pytest.mark.parametrize("seed", range(100, 105))
def test_the_whole_pipeline_on_any_graph(seed: int) -> None:
    function = random_graph(seed, 12)
    lockstep = transformed(function, *default_pipeline())
    assert launch(lockstep, 1) == launch(function, 1)


def test_random_graphs_are_irreducible_as_a_rule() -> None:
    graphs = [random_graph(seed, 6 + seed % 12) for seed in range(40)]
    assert sum(bool(LoopInfo(function).irreducible) for function in graphs) > 20
    assert not any(verify(function) for function in graphs)


def test_a_function_with_natural_loops_stays() -> None:
    text = print_function(random_graph(0, 0))
    function = parse_function(text)
    assert not MakeReducible().run(function)
    assert print_function(function) == text


def test_large_graphs_take_seconds() -> None:
    function = random_graph(5, 60)
    start = time.process_time()
    transformed(function, MakeReducible(), Linearize())
    assert time.process_time() - start < 10
