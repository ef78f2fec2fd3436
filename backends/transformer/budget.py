"""The budget of a machine: which layers, heads and neurons each port and unit takes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from qgpu.backends.transformer.circuit import Neuron
from qgpu.backends.transformer.emit import Layout


@dataclass(frozen=True)
class UnitBudget:
    """What a unit takes.

    Attributes:
        unit: its name.
        layers: first and last layer with a part of it.
        heads: heads of recurrent memory.
        rows: rows of those heads.
        neurons: neurons.
        widest: most of its neurons in one layer.
    """

    unit: str
    layers: tuple[int, int]
    heads: int
    rows: int
    neurons: int
    widest: int


def unit_budgets(layout: Layout) -> list[UnitBudget]:
    """Return what each unit takes, in the order of its first layer."""
    members = defaultdict(list)
    for node, slot in layout.schedule.slot_of.items():
        members[node.unit].append((node, slot // 2))
    budgets = []
    for unit, nodes in members.items():
        layers = [layer for _, layer in nodes]
        neurons = [layer for node, layer in nodes if isinstance(node, Neuron)]
        heads = [node for node, _ in nodes if not isinstance(node, Neuron)]
        rows = sum(len(getattr(head, "keys", (None,))) for head in heads)
        widest = max((neurons.count(layer) for layer in set(neurons)), default=0)
        span = (min(layers), max(layers))
        budgets.append(UnitBudget(unit, span, len(heads), rows, len(neurons), widest))
    return sorted(budgets, key=lambda budget: (budget.layers, budget.unit))


def budget_table(layout: Layout) -> str:
    """Return the budget as a Markdown table, with totals and the model's sizes below it."""
    rows = ["| unit | layers | heads | rows | neurons | most in a layer |", "|---|---|---|---|---|---|"]
    for b in unit_budgets(layout):
        first, last = b.layers
        span = str(first) if first == last else f"{first}-{last}"
        rows.append(f"| {b.unit} | {span} | {b.heads} | {b.rows} | {b.neurons} | {b.widest} |")
    rows += [f"| erasures | | | | {len(layout.allocation.erasures)} | |", "", _totals(layout)]
    return "\n".join(rows)


def _totals(layout: Layout) -> str:
    plan, allocation = layout.schedule, layout.allocation
    heads, neurons = sum(map(len, plan.heads)), sum(map(len, plan.neurons))
    plain = (layout.layers - 1) * layout.shape.heads
    erasures, widest = len(allocation.erasures), max(map(len, plan.neurons))
    sentences = (
        f"{layout.layers} layers (the longest chain of dependences takes {-(-plan.critical_path // 2)})",
        "one of them full attention without output",
        f"{heads} of {plain} heads",
        f"{neurons} neurons and {erasures} erasures, at most {widest} of the former in a layer",
        f"intermediate size {layout.intermediate}",
        f"{allocation.places} places in a residual stream of {layout.shape.hidden}",
        f"at most {allocation.peak} channels alive at once",
        f"vocabulary {layout.vocabulary}",
    )
    return "; ".join(sentences) + "."
