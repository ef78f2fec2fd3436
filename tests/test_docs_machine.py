"""docs/machine.md says what the code says."""

from pathlib import Path

from qgpu.backends.machine.block import OPS, block_fields, row_bits
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.transformer.budget import budget_table, unit_budgets
from qgpu.backends.transformer.emit import lay_out
from qgpu.backends.transformer.processor import build_processor

TEXT = (Path(__file__).parent.parent / "docs" / "machine.md").read_text(encoding="utf-8")


def test_the_block_tables_are_those_of_the_code() -> None:
    for field in block_fields(DEFAULT):
        assert f"| `{field.name}` | {field.width} | {field.meaning} |" in TEXT
    for name, meaning in OPS.items():
        assert f"| `{name}` | {meaning} |" in TEXT
    assert f"A row of program memory on the machine `default` ({row_bits(DEFAULT)} bits):" in TEXT


def test_the_budget_is_that_of_the_default_machine() -> None:
    layout = lay_out(build_processor(DEFAULT), DEFAULT.model)
    assert budget_table(layout) in TEXT
    budgets = unit_budgets(layout)
    assert sum(b.heads for b in budgets) == len(layout.circuit.heads)
    assert sum(b.neurons for b in budgets) == len(layout.circuit.neurons)
