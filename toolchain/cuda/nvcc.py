"""nvcc, of a CUDA toolkit that is installed: its own headers and host compiler, for the same device code."""

from qgpu.toolchain.cuda.command import Program, include_folders
from qgpu.toolchain.cuda.log import parse_log
from qgpu.toolchain.cuda.options import CudaOptions, DeviceCode


def command(source: str, output: str, code: DeviceCode, options: CudaOptions) -> list[str]:
    """nvcc's command line for a file."""
    return [
        "nvcc",
        *("-ptx", f"-arch={options.architecture}", "-lineinfo", "--expt-relaxed-constexpr"),
        *([f"-std={options.standard}"] if options.standard else []),
        *(f"-D{define}" for define in options.defines),
        *(f"-I{folder}" for folder in include_folders(code, options)),
        *("-o", output, source),
    ]


NVCC = Program("nvcc", command, parse_log, "--cuda-compiler=nvrtc needs no installation")
