"""Passes, and the pass manager, which verifies before and after each pass and tells observers of it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.core.function import Function, Module
from qgpu.ir.verifier import verify


@dataclass(frozen=True)
class Pass(ABC):
    """A transformation of one function; the fields of a pass are its options.

    `run` changes the function in place and tells whether it did.
    """

    name: ClassVar[str]

    @abstractmethod
    def run(self, function: Function) -> bool:
        """Transforms the function; True where anything changed."""


@dataclass(frozen=True)
class PassRun:
    """What observers are told: one pass has run over one function.

    Attributes:
        number: position of the pass in the pipeline, from 1; 0 for the function as it came in.
        name: the pass's name; `input` for number 0.
        function: the function after the pass.
        seconds: what the pass took, without verification.
    """

    number: int
    name: str
    function: Function
    seconds: float = 0.0


Observer = Callable[[PassRun], None]


@dataclass(frozen=True)
class PassManager:
    """Runs passes in order over every function, and tells each observer of each run.

    The function is verified before the first pass and after the last one; with `verify_each` after each, so
    that a VerifyError is a defect of the pass before it.
    """

    passes: Sequence[Pass]
    verify_each: bool = True
    observers: Sequence[Observer] = ()

    def run(self, unit: Module | Function) -> bool:
        """Runs all passes; True where any of them changed anything."""
        functions = unit.functions if isinstance(unit, Module) else [unit]
        changed = [self._run_function(function) for function in functions]
        return any(changed)

    def _run_function(self, function: Function) -> bool:
        changed = False
        verify(function)
        self._tell(PassRun(0, "input", function))
        for number, step in enumerate(self.passes, 1):
            start = time.perf_counter()
            changed |= step.run(function)
            seconds = time.perf_counter() - start
            if self.verify_each or number == len(self.passes):
                verify(function)
            self._tell(PassRun(number, step.name, function, seconds))
        return changed

    def _tell(self, run: PassRun) -> None:
        for observe in self.observers:
            observe(run)
