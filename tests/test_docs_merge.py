"""docs/merge.md: its table of sizes is what a plan gives."""

import re
from pathlib import Path

from qgpu.backends.transformer.merge.base import Base, read_base
from qgpu.backends.transformer.merge.plan import ITEM_BYTES
from qgpu.backends.transformer.merge.shapes import model_tensors

ROOT = Path(__file__).parent.parent
DOCUMENT = (ROOT / "docs" / "merge.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| Qwen3.5-(\S+) \| \d+ = (\d+) \+ \d+ \| ([\d,]+) = \S+ \+ \d+ \| ([\d,]+) \| (\S+) GB \| (\S+) GB",
    re.MULTILINE,
)
MACHINE_TOKENS = 14_452


def parameters(base: Base, layers: int, hidden: int, tokens: int, tied: bool) -> int:
    kinds = ("linear_attention",) * layers + base.layer_types
    shapes = model_tensors(base, kinds, hidden, base.vocabulary + tokens, tied)
    return sum(shape.numbers for shape in shapes)


def test_the_table_of_sizes() -> None:
    """Layers and widths are those of the dry runs; the rest follows from the shapes."""
    rows = ROW.findall(DOCUMENT)
    assert [row[0] for row in rows] == ["0.8B", "2B", "4B", "9B"]
    for size, layers, hidden, told, written, own in rows:
        base = read_base(ROOT / "tests" / "data" / "qwen3_5" / size)
        count = parameters(base, int(layers), int(hidden.replace(",", "")), MACHINE_TOKENS, False)
        assert f"{count:,}" == told
        assert f"{count * ITEM_BYTES['bfloat16'] / 1e9:.2f}" == written
        assert f"{2 * parameters(base, 0, base.hidden, 0, base.tied) / 1e9:.2f}" == own
