"""Normal mode: the model writes an expression, which library kernels compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.chat.tool import ToolAnswer, ToolError, check_names, declaration, short, text_argument
from qgpu.runtime.expressions import Launcher, evaluate
from qgpu.runtime.expressions.functions import FUNCTIONS
from qgpu.runtime.expressions.launcher import RunLaunch
from qgpu.toolchain.diagnostics import DiagnosticError

_DESCRIPTION = (
    "Computes an expression on whole numbers of 32 bits, vectors and matrices exactly, on a GPU. "
    "Written as in Python: [1, 2, 3] @ [4, 5, 6]; x = [3, 1, 2]; sort(x * x). Operators: + - * // % ** @ "
    "== != < <= > >= & | ^ ~ << >>, x[i], x[1:3], M.T. Functions: " + ", ".join(sorted(FUNCTIONS)) + ". "
    "No fractions, loops or text. The last line's value is the result."
)
_INSTRUCTIONS = (
    "You have a tool, cuda, that computes exactly. Use it for every calculation, however small: never "
    "compute in your head. Then answer the question in one short sentence that has the result in it."
)


class ExpressionTool:
    """Evaluates expressions on a machine."""

    instructions = _INSTRUCTIONS
    declaration = declaration(
        _DESCRIPTION,
        {"expression": {"type": "string", "description": "What to compute, such as sum([1, 2, 3] * 2)."}},
        ["expression"],
    )

    def __init__(self, machine: MachineDescription, run: RunLaunch) -> None:
        self._machine = machine
        self._run = run

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """The value of `expression`, as a list of lists, a list or a number."""
        check_names(arguments, "expression")
        text = text_argument(arguments, "expression")
        launcher = Launcher(self._machine, self._run)
        try:
            value = evaluate(text, launcher).value
            shown = short(str(value.tolist()), "reduce it, or take a part of it, as x[:10]")
        except DiagnosticError as error:
            raise ToolError(str(error), tuple(launcher.records)) from None
        except ToolError as error:
            raise ToolError(str(error), tuple(launcher.records)) from None
        return ToolAnswer(shown, launches=tuple(launcher.records))
