"""Print what ten kernels cost: generated tokens, and layer passes on the machine `default`.

    python examples/count_tokens.py

Each kernel's first launch of `launches.py`, compiled from its source and run on the reference interpreter,
whose tokens are the model's. Layer passes are tokens times the layers of the machine's checkpoint.
"""

from rich.console import Console
from rich.table import Table

from launches import LAUNCHES
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.host import build_launch
from qgpu.backends.reference.run import run_launch
from qgpu.backends.transformer.emit import lay_out
from qgpu.backends.transformer.processor import build_processor
from qgpu.toolchain.compile import compile_source

NAMED = ("vecadd", "saxpy", "dot", "matvec", "matmul", "transpose", "relu", "histogram", "collatz", "gcd")
"""The ten kernels."""


def count(kernel: str) -> tuple[int, int, int]:
    """Return blocks of the program, tokens of the prompt, and generated tokens of a kernel's first launch."""
    example = next(launch for launch in LAUNCHES if launch.kernel == kernel)
    text = example.file.read_text(encoding="utf-8")
    (compiled,) = compile_source(text, str(example.file), "cu", DEFAULT).kernels
    arguments = [arg if isinstance(arg, int) else arg.tobytes() for arg in example.args]
    launch = build_launch(DEFAULT, compiled, example.grid, example.block, arguments)
    return len(compiled.blocks), len(launch.prompt), len(run_launch(launch).generated)


def main() -> None:
    layers = lay_out(build_processor(DEFAULT), DEFAULT.model).layers
    table = Table("kernel", "blocks", "prompt tokens", "generated tokens", "layer passes")
    total = 0
    for kernel in NAMED:
        blocks, prompt, generated = count(kernel)
        total += generated
        table.add_row(kernel, str(blocks), str(prompt), str(generated), str(generated * layers))
    table.add_section()
    table.add_row("sum", "", "", str(total), str(total * layers))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
