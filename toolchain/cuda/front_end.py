"""From a CUDA file as people write it to a compiler that knows the device alone.

Host code is set aside (see `host_code`); where the compiler refuses more of what is not for the device, that
goes as well, and what is left is compiled again. An error that remains is one of the device code, in the
user's file.
"""

import dataclasses
from collections.abc import Callable, Iterable

from qgpu.toolchain.cuda.declarations import Declaration
from qgpu.toolchain.cuda.device_errors import Refusals, explained
from qgpu.toolchain.cuda.host_code import HostCode
from qgpu.toolchain.cuda.kernels import Kernels
from qgpu.toolchain.cuda.log import END_OF_SOURCE
from qgpu.toolchain.cuda.options import CudaOptions, DeviceCode, Ptx
from qgpu.toolchain.cuda.parameters import with_parameter_names
from qgpu.toolchain.cuda.unit import TranslationUnit
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, failure, note

DeviceCompiler = Callable[[DeviceCode, CudaOptions], Ptx]

_ROUNDS = 16
_NAMES = "__nv_name_map"
"""NVRTC's file of the names that were added."""
_INSTANCE = "template arguments are types and constants that the source knows"


def compile_device_code(source: Source, options: CudaOptions, compiler: DeviceCompiler) -> Ptx:
    """Compile the kernels of a CUDA source, whatever host code is around them.

    Raises:
        DiagnosticError: with the compiler's errors, placed in the user's files.
    """
    if "\0" in source.text:
        raise failure("the source contains a NUL character", file=source.name)
    unit = TranslationUnit(source, options.include_dirs)
    kernels = Kernels(unit)
    instances = tuple(kernels.instances(options.kernels))
    host = HostCode(unit)
    refused: Refusals = {}
    for _ in range(_ROUNDS):
        try:
            ptx = compiler(device_code(host, instances), options)
            warnings = [found for found in ptx.warnings if not _is_about_the_host(found, host)]
            return dataclasses.replace(
                ptx,
                text=with_parameter_names(ptx.text, kernels),
                warnings=tuple(_in_user_text(warnings, unit)),
                templates=tuple(str(kernel) for kernel in kernels.all if kernel.template is not None),
            )
        except DiagnosticError as error:
            placed = [_placed(found, source, instances) for found in error.diagnostics]
            diagnostics = _in_user_text(placed, unit)
            more = _refused(diagnostics, host)
            if not more:
                raise DiagnosticError(*explained(diagnostics, host, refused)) from None
            refused.update(more)
            for declaration in more:
                host.set_aside(declaration)
    raise DiagnosticError(*(found for errors in refused.values() for found in errors))


def device_code(host: HostCode, instances: tuple[str, ...] = ()) -> DeviceCode:
    """What the compiler gets of a translation unit."""
    main, *headers = host.unit.files.values()
    return DeviceCode(main.name, host.text(main), {file.name: host.text(file) for file in headers}, instances)


def _refused(diagnostics: list[Diagnostic], host: HostCode) -> dict[Declaration, list[Diagnostic]]:
    """The declarations that errors lie in and that the device may do without."""
    found: dict[Declaration, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        if diagnostic.severity != "error" or diagnostic.file is None:
            continue
        declaration = host.removable(diagnostic.file, diagnostic.line, diagnostic.column)
        if declaration is not None:
            found.setdefault(declaration, []).append(diagnostic)
    return found


def _placed(found: Diagnostic, source: Source, instances: tuple[str, ...]) -> Diagnostic:
    """An error at the end of the source, or about a name that was added there, at the place that it has."""
    lines = source.text.rstrip("\n").count("\n") + 1
    if found.file == END_OF_SOURCE:
        return dataclasses.replace(found, file=source.name, line=lines)
    if instances and (found.file == _NAMES or (found.file == source.name and found.line > lines)):
        message = f"cannot make {' or '.join(instances)}: {found.message}"
        return Diagnostic(message=message, file=source.name, notes=(note(_INSTANCE),))
    return found


def _is_about_the_host(warning: Diagnostic, host: HostCode) -> bool:
    """Whether a warning says that nothing uses what host code may use."""
    unused = warning.message.endswith("was declared but never referenced")
    return unused and not host.in_a_body(warning.file or "", warning.line, warning.column)


def _in_user_text(diagnostics: Iterable[Diagnostic], unit: TranslationUnit) -> list[Diagnostic]:
    """Diagnostics with the lines as the user wrote them."""
    return [_with_user_line(found, unit) for found in diagnostics]


def _with_user_line(found: Diagnostic, unit: TranslationUnit) -> Diagnostic:
    notes = tuple(_with_user_line(attached, unit) for attached in found.notes)
    file = unit.files.get(found.file) if found.file is not None else None
    line = found.source_line if file is None else file.source.line(found.line)
    return dataclasses.replace(found, source_line=line, notes=notes)
