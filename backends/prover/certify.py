"""What a proof found, and what a comparison with a machine's circuit did: a certificate's content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qgpu.backends.prover.equivalence.difference import Difference
from qgpu.backends.prover.merged.circuit import differences, merged_conditions
from qgpu.backends.prover.merged.prove import prove_merged
from qgpu.backends.prover.merged.weights import open_weights
from qgpu.backends.prover.prove import Certificate
from qgpu.backends.transformer.merge.plan import MergePlan


@dataclass(frozen=True)
class Found:
    """A proof, and where the tensors differ from a machine's circuit: None where they were not compared.

    Attributes:
        machine: its name.
    """

    proof: Certificate
    machine: str | None = None
    differences: Sequence[Difference] | None = None

    @property
    def holds(self) -> bool:
        """Whether all is proved, and nothing differs."""
        return self.proof.proved and not self.differences

    @property
    def problems(self) -> list[str]:
        """What is not proved, and what differs."""
        lines = [f"not proved: {failure}" for failure in self.proof.failures]
        return [*lines, *(f"not the circuit: {difference}" for difference in self.differences or ())]

    def content(self) -> dict[str, Any]:
        """The content of a certificate file."""
        content = self.proof.to_json()
        if self.differences is not None:
            content |= {"machine": self.machine, "differences": [asdict(d) for d in self.differences]}
        return content


def certify_merged(
    directory: str | Path, plan: MergePlan | None, watch: Callable[[int], None] | None = None
) -> Found:
    """Prove a merged checkpoint, and compare it with what a plan means it to be where there is one.

    Raises:
        ProofError: there is no merged checkpoint.
    """
    if plan is None:
        return Found(prove_merged(directory, watch=watch))
    different = differences(open_weights(directory), plan)
    return Found(prove_merged(directory, merged_conditions(plan), watch), plan.machine.name, different)
