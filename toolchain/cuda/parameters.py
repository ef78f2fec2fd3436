"""Parameters in PTX under the names that the source gives them.

CUDA's compilers call a parameter `KERNEL_param_2`; it becomes `KERNEL_out`, which is as good a name in PTX
and says more.
"""

import re

from qgpu.toolchain.cuda.kernels import Kernels

_ENTRY = re.compile(r"\.entry\s+(?P<kernel>[\w$]+)\s*\((?P<parameters>[^)]*)\)")
_PARAMETER = re.compile(r"\b(?P<kernel>[\w$]+)_param_(?P<number>\d+)\b")


def with_parameter_names(ptx: str, kernels: Kernels) -> str:
    """The same PTX with names for the parameters of those kernels whose source tells them."""
    names: dict[str, tuple[str, ...]] = {}
    for entry in _ENTRY.finditer(ptx):
        kernel, count = entry["kernel"], entry["parameters"].count("_param_")
        names[kernel] = kernels.parameter_names(kernel, count) or ()

    def renamed(match: re.Match[str]) -> str:
        given, number = names.get(match["kernel"], ()), int(match["number"])
        name = given[number] if number < len(given) else ""
        return f"{match['kernel']}_{name}" if name.isascii() and name else match.group()

    return _PARAMETER.sub(renamed, ptx)
