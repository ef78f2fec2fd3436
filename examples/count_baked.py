"""Print what ten kernels take as checkpoints of their own, beside the machine that is told of them.

    python examples/count_baked.py [MACHINE]

Each kernel is baked for the shape of its first launch in `launches.py`. Non-zeros are those of all tensors
but the embedding and the head, which are a vocabulary's.
"""

import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from count_tokens import NAMED
from launches import LAUNCHES
from qgpu.backends.machine.baked import bake_kernel
from qgpu.backends.machine.description import MachineDescription, load_description
from qgpu.backends.machine.host import build_launch
from qgpu.backends.reference.run import run_launch
from qgpu.backends.transformer.bake import build_baked
from qgpu.backends.transformer.circuit import Circuit
from qgpu.backends.transformer.emit import lay_out, tensors
from qgpu.backends.transformer.processor import build_processor
from qgpu.toolchain.compile import compile_source


def sizes(circuit: Circuit, machine: MachineDescription) -> list[int]:
    """Return layers, heads, neurons and non-zeros of a circuit's model."""
    layout = lay_out(circuit, machine.model)
    named = tensors(layout, "float32")
    nonzeros = sum(int(np.count_nonzero(t)) for name, t in named if name.startswith("model.layers"))
    return [layout.layers, len(circuit.heads), len(circuit.neurons), nonzeros]


def measure(kernel: str, machine: MachineDescription) -> list[int]:
    """Return prompt tokens, those of the baked kernel, generated tokens, and the sizes of its model."""
    example = next(launch for launch in LAUNCHES if launch.kernel == kernel)
    text = example.file.read_text(encoding="utf-8")
    (compiled,) = compile_source(text, str(example.file), "cu", machine).kernels
    shape = example.grid, example.block
    arguments = [arg if isinstance(arg, int) else arg.tobytes() for arg in example.args]
    told = build_launch(machine, compiled, *shape, arguments)
    baked = bake_kernel(compiled, machine, *shape)
    launch = baked.launch(*shape, arguments)
    generated = run_launch(launch).generated
    assert generated == run_launch(told).generated
    counts = [len(told.prompt), len(launch.prompt), len(generated)]
    return counts + sizes(build_baked(baked), machine)


def main() -> None:
    machine = load_description(sys.argv[1] if len(sys.argv) > 1 else "default")
    counted = ("prompt", "baked", "generated", "layers", "heads", "neurons", "non-zeros")
    table = Table("kernel", *counted)
    table.add_row("(machine)", "", "", "", *map(str, sizes(build_processor(machine), machine)))
    for kernel in NAMED:
        table.add_row(kernel, *map(str, measure(kernel, machine)))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
