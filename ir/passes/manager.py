"""Passes and the pass manager, which verifies before and after each pass and prints dumps."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.core.function import Function, Module
from qgpu.ir.core.printer import print_function
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


def print_to_stderr(text: str) -> None:
    sys.stderr.write(text)


@dataclass(frozen=True)
class PassManager:
    """Runs passes in order over every function.

    With `verify` the function is verified before the first pass and after each; a VerifyError is a defect of
    the pass before it. `print_after` names the passes after which the function is dumped, `print_after_all`
    means all of them. Dumps go to `on_print`, by default to the standard error stream.
    """

    passes: Sequence[Pass]
    verify: bool = True
    print_after: Collection[str] = ()
    print_after_all: bool = False
    on_print: Callable[[str], None] = print_to_stderr

    def run(self, unit: Module | Function) -> bool:
        """Runs all passes; True where any of them changed anything."""
        functions = unit.functions if isinstance(unit, Module) else [unit]
        changed = [self._run_function(function) for function in functions]
        return any(changed)

    def _run_function(self, function: Function) -> bool:
        changed = False
        self._verify(function)
        for step in self.passes:
            changed |= step.run(function)
            self._verify(function)
            if self.print_after_all or step.name in self.print_after:
                self.on_print(f"*** IR Dump After {step.name} ***\n{print_function(function)}")
        return changed

    def _verify(self, function: Function) -> None:
        if self.verify:
            verify(function)
