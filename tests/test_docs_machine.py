"""docs/machine.md says what the code says."""

from pathlib import Path

import pytest

from qgpu.backends.machine.block import OPS, RUN_BLOCKS, block_fields, row_bits
from qgpu.backends.machine.description import BUILTIN, DEFAULT, MachineDescription
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.budget import budget_table, unit_budgets
from qgpu.backends.transformer.emit import Layout, lay_out
from qgpu.backends.transformer.processor import build_processor

TEXT = (Path(__file__).parent.parent / "docs" / "machine.md").read_text(encoding="utf-8")


def layout_row(name: str, layout: Layout) -> str:
    """A machine's row of the table of layouts."""
    plan, allocation = layout.schedule, layout.allocation
    heads, plain = sum(map(len, plan.heads)), (layout.layers - 1) * layout.shape.heads
    longest = -(-plan.critical_path // 2)
    cells = (
        f"`{name}`",
        layout.layers,
        longest,
        f"{heads} of {plain}",
        f"{sum(map(len, plan.neurons)):,}",
        f"{layout.intermediate:,}",
        f"{allocation.peak} of {allocation.places:,}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def description_rows() -> list[str]:
    """Rows of the table of descriptions, a column a built-in machine."""
    machines = [BUILTIN[name] for name in ("default", "seed", "small", "large")]

    def row(title: str, *fields: str) -> str:
        cells = [", ".join(f"{getattr(machine, field):,}" for field in fields) for machine in machines]
        return f"| {title} | " + " | ".join(cells) + " |"

    sizes = [f"{row_bits(machine)}, {vocabulary(machine).size:,}" for machine in machines]
    return [
        row("lanes of a warp, warps", "lanes", "warps"),
        row("register words", "register_words"),
        "| registers of a thread in the largest block | "
        + " | ".join(str(machine.register_words // machine.threads) for machine in machines)
        + " |",
        row("register rows, of which the accumulator port reads", "register_rows", "accumulator_rows"),
        row("uniform registers, predicates", "uniform_registers", "predicates"),
        row("ROM blocks, memory words", "rom_blocks", "memory_words"),
        row("bits of a value in one token", "payload_bits"),
        "| bits of a program row, vocabulary | " + " | ".join(sizes) + " |",
        "| heads, their keys by their values | "
        + " | ".join(f"{m.model.heads}, {m.model.key_dim:,} by {m.model.head_dim}" for m in machines)
        + " |",
        "| hidden size | " + " | ".join(f"{m.model.hidden:,}" for m in machines) + " |",
    ]


def test_the_block_tables_are_those_of_the_code() -> None:
    rows = [f"| `{field.name}` | {field.width} | {field.meaning} |" for field in block_fields(DEFAULT)]
    assert "\n".join(rows) in TEXT
    assert "\n".join(f"| `{name}` | {meaning} |" for name, meaning in OPS.items()) in TEXT
    assert f"A row of program memory on the machine `default` ({row_bits(DEFAULT)} bits):" in TEXT
    assert f"run of {RUN_BLOCKS}" in TEXT


def test_the_descriptions_are_those_of_the_code() -> None:
    assert "\n".join(description_rows()) in TEXT


def test_the_budget_is_that_of_the_default_machine() -> None:
    layout = lay_out(build_processor(DEFAULT), DEFAULT.model)
    assert budget_table(layout) in TEXT
    assert layout_row("default", layout) in TEXT
    budgets = unit_budgets(layout)
    assert sum(b.heads for b in budgets) == len(layout.circuit.heads)
    assert sum(b.neurons for b in budgets) == len(layout.circuit.neurons)


@pytest.mark.parametrize("machine", [BUILTIN["seed"], BUILTIN["small"]], ids=lambda machine: machine.name)
def test_the_layouts_are_those_of_the_machines(machine: MachineDescription) -> None:
    assert layout_row(machine.name, lay_out(build_processor(machine), machine.model)) in TEXT
