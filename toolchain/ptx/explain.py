"""Why a value is a number where a pointer is needed: where it comes from, step by step."""

from collections.abc import Iterator

from qgpu.toolchain.diagnostics import Diagnostic
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.passing import ARGUMENT
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.pointer_flow import carriers
from qgpu.toolchain.ptx.pointer_targets import Pointers, Target
from qgpu.toolchain.ptx.printer import instruction_text
from qgpu.toolchain.ptx.ssa import Definition, Node, Phi, Undefined

_STEPS = 4


def explain(node: Node | None, pointers: Pointers, places: Places) -> tuple[str, list[Diagnostic]]:
    """The reason as a clause, and notes at the instructions that the value comes through."""
    chain = list(_chain(node, pointers))
    notes = [
        places.note(f"through '{instruction_text(step.site.instruction)}'", step.site.instruction.position)
        for step in chain[:-1][:_STEPS]
        if isinstance(step, Definition)
    ]
    last = chain[-1] if chain else None
    if isinstance(last, Definition):
        text = f"'{instruction_text(last.site.instruction)}'"
        notes.append(places.note(f"the value comes from {text}", last.site.instruction.position))
    return _reason(last, pointers), notes


def _chain(node: Node | None, pointers: Pointers) -> Iterator[Node]:
    """A node and those before it through which a pointer could have come."""
    seen: set[Node] = set()
    while node is not None and node not in seen:
        yield node
        seen.add(node)
        numbers = [
            n for n in pointers.flow.sources.get(node, ()) if n not in pointers.targets and n not in seen
        ]
        node = numbers[0] if numbers else None


def _reason(node: Node | None, pointers: Pointers) -> str:
    if node is None:
        return "it is a number"
    if isinstance(node, Undefined):
        return f"{node.register.name} is read before anything is written to it"
    if isinstance(node, Phi):
        return f"{node.register.name} is a number"
    instruction = node.site.instruction
    if node in pointers.flow.loads:
        return _loaded([target for target, _ in pointers.places(pointers.flow.loads[node])])
    if instruction.opcode == ARGUMENT:
        return "the parameter is a number"
    if any(isinstance(o, ast.Integer) for o in carriers(node, pointers.flow.rules[node.site])):
        return "it is a constant"
    return f"it is computed by '{instruction.name}'"


def _loaded(targets: list[Target]) -> str:
    buffers = [target.name for target in targets if not target.holds_pointers]
    if buffers:
        return (
            f"it is loaded from the buffer '{buffers[0]}', and a buffer holds no pointers that the machine "
            "could follow; pass what it points to as a parameter, or keep an index instead of the pointer"
        )
    names = ", ".join(f"'{target.name}'" for target in targets) or "memory"
    return f"it is loaded from {names}, where no pointer is stored"
