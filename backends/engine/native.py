"""The loop's machine code: made by numba once, kept as an object file, and loaded by llvmlite alone.

To import numba and to set up its typing costs a second at each start; the code itself needs neither: entries
take integers and give integers, nothing is counted, nothing raises (numba's calling convention: numba,
core/callconv.py, CPUCallConv; a status, the result and the exception by reference, then the arguments).
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import json
import os
import platform
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

_HERE = Path(__file__).parent
_PREFIX = "native-"

Code = dict[str, Callable[..., int]]
Objects = dict[str, tuple[str, bytes]]
"""By an entry's name: its symbol, and the object file that defines it."""

_ENTRIES = {"feed": 4, "most_likely": 2, "generate": 6}
"""How many integers each entry takes (entries.py)."""

_DESTRUCTOR = "NRT_MemInfo_call_dtor"
"""What numba's code calls when the last reference to an array goes. It never does: what is made from an
address has no count. Where numba is not there to define it, it ends the process."""


@cache
def native_code(form_type: Any, state_type: Any) -> Code:
    """The entries of entries.py as functions, compiled for records of these types.

    Code is kept by the sources that it is made of, the compiler and the processor: beside the sources, or,
    where that cannot be written, not at all. No call holds Python's lock.
    """
    path = _HERE / "__pycache__" / f"{_PREFIX}{_key(form_type, state_type)}.json"
    kept = read_objects(path)
    if kept is None:
        kept = _compile(form_type, state_type)
        write_objects(path, kept)
    return {name: _load(*kept[name], count) for name, count in _ENTRIES.items()}


def _key(form_type: Any, state_type: Any) -> str:
    sources = [path.read_text(encoding="utf-8") for path in sorted(_HERE.glob("*.py"))]
    versions = [importlib.metadata.version(package) for package in ("numba", "llvmlite", "numpy")]
    processor = [platform.machine(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    content = [*sources, *versions, *processor, platform.python_version(), str(form_type), str(state_type)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def read_objects(path: Path) -> Objects | None:
    """The objects that are kept in a file; None where there are none, or where they are damaged."""
    try:
        kept = json.loads(path.read_bytes())
        objects = {name: (symbol, bytes.fromhex(code)) for name, (symbol, code) in kept["objects"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    whole = objects.keys() == _ENTRIES.keys() and kept.get("sum") == _sum(objects)
    return objects if whole else None


def write_objects(path: Path, objects: Objects) -> None:
    """Keep objects, in place of those that other sources or compilers have made."""
    content = {
        "objects": {name: (symbol, code.hex()) for name, (symbol, code) in objects.items()},
        "sum": _sum(objects),
    }
    try:
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".writing-", delete=False) as file:
            json.dump(content, file)
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError:
        return
    for other in path.parent.glob(_PREFIX + "*"):
        if other != path and other.is_file():
            other.unlink(missing_ok=True)


def _sum(objects: Objects) -> str:
    total = hashlib.sha256()
    for name, (symbol, code) in sorted(objects.items()):
        total.update(f"{name} {symbol} {len(code)} ".encode() + code)
    return total.hexdigest()


def _compile(form_type: Any, state_type: Any) -> Objects:
    from qgpu.backends.engine.entries import entries

    integer = importlib.import_module("numba").int64
    objects = {}
    for name, function in entries(form_type, state_type).items():
        signature = (integer,) * _ENTRIES[name]
        function.compile(signature)
        made = function.overloads[signature]
        symbol = made.fndesc.llvm_func_name
        objects[name] = (symbol, _object_file(str(made.library._final_module), symbol))
    return objects


def _object_file(module_text: str, symbol: str) -> bytes:
    """The object file of one function of a module, without numba's wrappers, which need numba's runtime."""
    module = llvm.parse_assembly(module_text)
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    machine = _target_machine()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return machine.emit_object(module)


def _load(symbol: str, code: bytes, count: int) -> Callable[..., int]:
    """Load an object file; the function of `count` integers that a symbol of it names."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    call = ctypes.CFUNCTYPE(
        ctypes.c_int32,
        ctypes.POINTER(ctypes.c_int64),
        ctypes.POINTER(ctypes.c_void_p),
        *[ctypes.c_int64] * count,
    )(engine.get_function_address(symbol))

    def function(*arguments: int) -> int:
        result, raised = ctypes.c_int64(), ctypes.c_void_p()
        status = call(ctypes.byref(result), ctypes.byref(raised), *arguments)
        if status:
            raise SystemError(f"compiled code of the engine ended with status {status}")
        return result.value

    return function


@cache
def _engine() -> Any:
    if llvm.address_of_symbol(_DESTRUCTOR) is None:
        llvm.add_symbol(_DESTRUCTOR, ctypes.cast(ctypes.pythonapi.Py_FatalError, ctypes.c_void_p).value)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())


def _target_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        codemodel="jitdefault",
    )
