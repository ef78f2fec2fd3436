"""CUDA compilers that are programs: clang and nvcc, run on device code in a temporary folder.

Every file begins with a `#line` that gives it the user's name, so that messages and line tables have it.
"""

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qgpu.toolchain.cuda.options import CudaOptions, DeviceCode, Ptx
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, failure

_SECONDS = 300


@dataclass(frozen=True)
class Program:
    """A compiler's program.

    Attributes:
        name: of the executable.
        command: its arguments for a source file and the PTX file to write.
        parse: its messages as diagnostics.
        hint: what to do where it is not installed.
    """

    name: str
    command: Callable[[str, str, DeviceCode, CudaOptions], list[str]]
    parse: Callable[[str], Sequence[Diagnostic]]
    hint: str

    def compile(self, code: DeviceCode, options: CudaOptions) -> Ptx:
        """Compile device code to PTX.

        Raises:
            DiagnosticError: with the program's errors, or where it cannot be run.
        """
        with tempfile.TemporaryDirectory(prefix="qgpuc-") as folder:
            output = Path(folder, "out.ptx")
            command = self.command(str(write_files(code, Path(folder))), str(output), code, options)
            done = self._run(command)
            diagnostics = tuple(self.parse(done.stdout + done.stderr))
            faulty = any(found.severity == "error" for found in diagnostics)
            if done.returncode == 0 and output.is_file() and not faulty:
                return Ptx(output.read_text(), diagnostics)
        if faulty:
            raise DiagnosticError(*diagnostics)
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        reason, *notes = lines or [f"exit status {done.returncode}"]
        raise failure(f"{self.name} failed: {reason}", *notes, file=code.name)

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
            )
        except FileNotFoundError:
            raise failure(f"the CUDA compiler '{self.name}' is not installed", self.hint) from None
        except OSError as error:
            raise failure(f"the CUDA compiler '{self.name}' cannot be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise failure(f"{self.name} has not ended after {_SECONDS} s") from None

    def arguments(self, code: DeviceCode, options: CudaOptions) -> list[str]:
        """The command line, as --dryrun shows it."""
        return self.command(code.name, f"{Path(code.name).stem}.ptx", code, options)


def write_files(code: DeviceCode, folder: Path) -> Path:
    """Write device code and its headers into a folder; the path of the main file."""
    paths = {name: folder / f"{number}.h" for number, name in enumerate(code.headers)}
    main = folder / "main.cu"
    ending = "".join(
        f"static auto *const qgpu_instance_{number} = &{name};\n"
        for number, name in enumerate(code.instances)
    )
    for name, path, text in [
        (code.name, main, f"{code.text}\n{ending}"),
        *((name, paths[name], text) for name, text in code.headers.items()),
    ]:
        for header, place in paths.items():
            text = text.replace(f'#include "{header}"', f'#include "{place}"')
        once = "" if path == main else "#pragma once\n" * ("#pragma once" in text)
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        path.write_text(f'{once}#line 1 "{quoted}"\n{text}', encoding="utf-8")
    return main


def include_folders(code: DeviceCode, options: CudaOptions) -> list[str]:
    """The folders in which the user's headers are looked for."""
    return [str(Path(code.name).parent), *map(str, options.include_dirs)]
