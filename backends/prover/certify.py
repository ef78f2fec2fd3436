"""What a proof found, and what a comparison with a machine's circuit did: a certificate's content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qgpu.backends.machine.baked import BakedKernel
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.prover.equivalence.check import check
from qgpu.backends.prover.equivalence.difference import Difference
from qgpu.backends.prover.merged.circuit import differences, merged_conditions
from qgpu.backends.prover.merged.prove import prove_merged
from qgpu.backends.prover.merged.weights import open_weights
from qgpu.backends.prover.program import Condition, program_conditions
from qgpu.backends.prover.prove import RIGHT_NUMBERS, Certificate, prove
from qgpu.backends.transformer.bake import build_baked
from qgpu.backends.transformer.emit import Layout, lay_out
from qgpu.backends.transformer.merge.plan import MergePlan
from qgpu.backends.transformer.processor import build_processor


@dataclass(frozen=True)
class Found:
    """A proof, and where the tensors differ from a machine's circuit: None where they were not compared.

    Attributes:
        machine: its name.
        kernel: the name of the kernel whose circuit it is; None for that of any program.
    """

    proof: Certificate
    machine: str | None = None
    differences: Sequence[Difference] | None = None
    kernel: str | None = None

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
        if self.differences is None:
            return content
        not_shown = [what for what in content["not_shown"] if what != RIGHT_NUMBERS]
        compared: dict[str, Any] = {"machine": self.machine, "kernel": self.kernel}
        compared["differences"] = [asdict(d) for d in self.differences]
        return content | compared | {"not_shown": not_shown}


@dataclass(frozen=True)
class Meaning:
    """The circuit that a checkpoint by itself is meant to be.

    Attributes:
        machine: the name of the machine.
        conditions: what is taken for granted of its programs.
        kernel: the name of the kernel that is in the weights.
    """

    machine: str
    layout: Layout
    conditions: Sequence[Condition] = ()
    kernel: str | None = None


def meant_machine(machine: MachineDescription) -> Meaning:
    """What the checkpoint of a machine is meant to be."""
    layout = lay_out(build_processor(machine), machine.model)
    return Meaning(machine.name, layout, program_conditions(machine, layout))


def meant_kernel(baked: BakedKernel) -> Meaning:
    """What a baked checkpoint is meant to be; it has its rows itself: nothing is taken for granted."""
    layout = lay_out(build_baked(baked), baked.machine.model)
    return Meaning(baked.machine.name, layout, kernel=baked.kernel.name)


def certify(
    directory: str | Path, meaning: Meaning | None, watch: Callable[[int], object] | None = None
) -> Found:
    """Prove a checkpoint of a machine or a kernel, and compare it with what it is meant to be, if one says.

    Args:
        watch: called with each layer before it is proved.

    Raises:
        ProofError: there is no checkpoint of the kind.
    """
    if meaning is None:
        return Found(prove(directory, watch=watch))
    differences = check(directory, meaning.layout)
    proof = prove(directory, meaning.conditions, watch)
    return Found(proof, meaning.machine, differences, meaning.kernel)


def certify_merged(
    directory: str | Path, plan: MergePlan | None, watch: Callable[[int], object] | None = None
) -> Found:
    """Prove a merged checkpoint, and compare it with what a plan means it to be where there is one.

    Raises:
        ProofError: there is no merged checkpoint.
    """
    if plan is None:
        return Found(prove_merged(directory, watch=watch))
    different = differences(open_weights(directory), plan)
    return Found(prove_merged(directory, merged_conditions(plan), watch), plan.machine.name, different)
