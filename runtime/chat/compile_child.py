"""The process that compiles a kernel nobody trusts: `python -m`, with a request as JSON on stdin.

What compiling takes is loaded first, and a kernel compiled that is trusted; then the process gives up the
right to open files, and bounds its time and memory. NVRTC has the headers from memory. The answer is JSON on
stdout: `qbin` in base64, or `error`.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
import pkgutil
import sys
from typing import Any

_PACKAGES = ("qgpu.ir", "qgpu.toolchain", "qgpu.backends.machine")
_MAX_ERROR = 4_000
_WARM_UP = (
    '#include <stdio.h>\nextern "C" __global__ void k(int *a, int n) {\n'
    "  __shared__ int s[4]; s[threadIdx.x & 3] = n; __syncthreads();\n"
    '  for (int i = 0; i < n; i++) if (a[i] % 3 > s[i & 3]) atomicAdd(a, i); printf("%d", n); }'
)


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    compiler = _prepared(request)
    _give_up_rights(request["limits"])
    json.dump(compiler(request["source"], request["file"]), sys.stdout)


def _prepared(request: dict[str, Any]) -> Any:
    """What compiles a source, with everything loaded that it takes."""
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    from qgpu.backends.machine.description import description_from_table
    from qgpu.backends.machine.qbin import program_bytes
    from qgpu.runtime.chat.untrusted import headers
    from qgpu.toolchain.compile import CompileOptions, compile_source
    from qgpu.toolchain.cuda import nvrtc
    from qgpu.toolchain.cuda.compilers import COMPILERS, Compiler
    from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, render

    known = headers()
    machine = description_from_table(request["machine"], "machine")

    def device(code: Any, options: Any) -> Any:
        return nvrtc.compile_to_ptx(dataclasses.replace(code, headers={**known, **code.headers}), options)

    COMPILERS["memory"] = Compiler("memory", device, lambda code, options: [])

    def compiled(text: str, name: str) -> dict[str, str]:
        try:
            program = compile_source(text, name, "cu", machine, CompileOptions(cuda_compiler="memory"))
        except DiagnosticError as error:
            return {"error": render(error.diagnostics)[:_MAX_ERROR]}
        except (MemoryError, RecursionError, OSError) as error:
            failed = Diagnostic(message=f"the kernel is too large to compile: {type(error).__name__}")
            return {"error": render([failed])}
        return {"qbin": base64.b64encode(program_bytes(program)).decode()}

    compiled(_WARM_UP, "warm_up.cu")
    compiled('__global__ void k(int *a) { asm("none;"); a[0] = b; }', "warm_up.cu")
    return compiled


def _give_up_rights(limits: dict[str, int]) -> None:
    """No file may be opened or grow from here on; time and memory have a bound (not on Windows)."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + 1 + limits["cpu_seconds"]
    for kind, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, limits["bytes"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
