"""Run a unit: its launches on the engine until they have generated enough tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from qgpu.backends.machine.description import load_description
from qgpu.backends.machine.host import Launch
from qgpu.backends.machine.verify import ProgramError
from qgpu.backends.reference.run import RunawayError
from qgpu.runtime.engine import Engine, EngineError
from qgpu.runtime.engines import FAST_ENGINE, make_engine
from qgpu.runtime.launch import DifferenceError, run
from qgpu.toolchain.diagnostics import DiagnosticError
from soak.units import Unit, launches

LAUNCH_TOKENS = 100_000
"""Tokens of the longest launch that is run."""

UNIT_TOKENS = {True: 100_000, False: 20_000}
"""Tokens after which a unit ends, for examples and for random kernels."""

UNIT_LAUNCHES = 100


@dataclass(frozen=True)
class Done:
    """What came of a unit.

    Attributes:
        unit: what ran.
        launches, tokens: how many ran, and what they generated; 0 where the kernel does not fit.
        wrong: what is not as it must be, None if nothing.
    """

    unit: Unit
    launches: int
    tokens: int
    wrong: str | None = None


def run_unit(chosen: Unit, engine_of: Callable[[str], Engine] | None = None) -> Done:
    """Run a unit, up to the first mismatch.

    Args:
        engine_of: gives the engine of a machine; by default that of its checkpoint, made once a process.
    """
    engine_of = engine_of or _engine
    number = tokens = 0
    try:
        for launch in launches(chosen):
            if number >= UNIT_LAUNCHES or tokens >= UNIT_TOKENS[chosen.example is not None]:
                break
            compared = _compared(launch, engine_of(chosen.machine))
            if not compared:
                break
            number, tokens = number + 1, tokens + compared
    except (DiagnosticError, ProgramError):
        return Done(chosen, 0, 0)
    except (DifferenceError, EngineError) as error:
        return Done(chosen, number, tokens, f"launch {number + 1}: {error}")
    return Done(chosen, number, tokens)


@cache
def _engine(machine: str) -> Engine:
    return make_engine(FAST_ENGINE, load_description(machine))


def _compared(launch: Launch, engine: Engine) -> int:
    """Run a launch; how many tokens of the engine were the reference's. 0 of a launch that is too long, as
    the kernel's others are too, more often than not.

    Raises:
        DifferenceError, EngineError: the engine gives something else than the reference.
    """
    try:
        return run(launch, engine, check=True, limit=LAUNCH_TOKENS).tokens
    except EngineError as error:
        if isinstance(error.__cause__, RunawayError):
            return 0
        raise
