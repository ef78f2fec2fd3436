"""Calls: intrinsics by their tables, functions of the module inlined, and CUDA's printf and assert."""

from collections.abc import Mapping

from qgpu.ir import I32, Constant, Value
from qgpu.ir.core.instruction import Instruction
from qgpu.toolchain.llvm import ast, bulk_rules, intrinsic_rules, nvvm_rules
from qgpu.toolchain.llvm.body import Bodies, zero_of
from qgpu.toolchain.llvm.bulk_rules import copy_object
from qgpu.toolchain.llvm.constants import AddressInside, initial_bytes
from qgpu.toolchain.llvm.emitter import Emitter, Item
from qgpu.toolchain.llvm.intrinsic_rules import Rule
from qgpu.toolchain.printf_format import Conversion, conversions
from qgpu.toolchain.ptx.system_calls import ABSENT
from qgpu.toolchain.special_registers import why_absent

_NVVM = "llvm.nvvm."
_REGISTER = "llvm.nvvm.read.ptx.sreg."
_LLVM = "llvm."
_GENERAL: Mapping[str, Rule] = {**intrinsic_rules.RULES, **bulk_rules.RULES}
_FLOAT_TYPES = ("f16", "f32", "f64", "bf16", "float", "double")
_FLOAT_HINT = "the machine computes with integers: use fixed point"
_LIBRARY = "link it into the module (llvm-link), or write it with integers in the kernel's file"


def intrinsic_rule(name: str) -> Rule | None:
    """The rule of an intrinsic, whose name ends with the types that it is used for."""
    if name.startswith(_NVVM):
        own = name.removeprefix(_NVVM)
        return nvvm_rules.RULES.get(own) or nvvm_rules.RULES.get(_without_types(own))
    parts = name.removeprefix(_LLVM).split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((_GENERAL[prefix] for prefix in prefixes if prefix in _GENERAL), None)


def _without_types(name: str) -> str:
    """A name without the types of a number and a pointer at its end, as `.i32.p0`."""
    base, _, pointer = name.rpartition(".")
    base, _, number = base.rpartition(".")
    types = pointer[:1] == "p" and pointer[1:].isdecimal() and number[:1] == "i" and number[1:].isdecimal()
    return base if types else name


class Calls:
    """Lowers calls within a kernel."""

    def __init__(self, x: Emitter, bodies: Bodies) -> None:
        self._x = x
        self._bodies = bodies

    def lower(self, x: Emitter, i: ast.Instruction) -> Item:
        """The value of a call."""
        if isinstance(i.callee, ast.Assembly):
            return self._assembly(i.callee)
        if not isinstance(i.callee, ast.Global):
            raise x.unsupported(
                "the function that is called is not known", "call it by name, or choose by a switch"
            )
        name = i.callee.name
        if name.startswith(_LLVM):
            return self._intrinsic(name, i)
        if name in x.module.heads:
            return self._inlined(name, i)
        system = {"vprintf": self._print, "__assertfail": self._assert}.get(name)
        if system is not None:
            return system(i)
        why = ABSENT.get(name)
        if why is not None:
            raise x.refusal(f"'@{name}' cannot be called: {why}")
        raise x.refusal(f"'@{name}' is called, which is declared here and defined elsewhere", _LIBRARY)

    def _intrinsic(self, name: str, i: ast.Instruction) -> Item:
        rule = intrinsic_rule(name)
        if rule is not None and not _is_float(name):
            return rule(self._x, i)
        if _is_float(name) or any(isinstance(operand.type, ast.Float) for operand in i.operands):
            raise self._x.refusal(
                f"unsupported intrinsic '{name}': it needs floating-point arithmetic", _FLOAT_HINT
            )
        why = why_absent(name.removeprefix(_REGISTER)) if name.startswith(_REGISTER) else None
        reason = "" if why is None else f": {why}"
        raise self._x.refusal(
            f"unsupported intrinsic '{name}'{reason}", "see docs/llvm.md for those that run"
        )

    def _assembly(self, code: ast.Assembly) -> Item:
        x = self._x
        if not code.text.strip():
            return () if not x.instruction.operands else x.operand(0)
        rule = nvvm_rules.ASSEMBLY.get(" ".join(code.text.split()))
        if rule is None:
            raise x.refusal(f"inline PTX '{code.text}'", "compile to PTX instead: qgpuc takes .ptx files")
        return rule(x)

    def _inlined(self, name: str, i: ast.Instruction) -> Item:
        x, head = self._x, self._x.module.heads[name]
        if len(head.parameters) != len(i.operands):
            raise x.refusal(f"'@{name}' is called with {len(i.operands)} arguments")
        arguments = [
            self._argument(parameter, operand)
            for parameter, operand in zip(head.parameters, i.operands, strict=True)
        ]
        return self._bodies.call(name, arguments)

    def _argument(self, parameter: ast.Parameter, operand: ast.Typed) -> Item:
        """An argument; what is passed by value in memory is a copy of the callee's own."""
        x, byval = self._x, parameter.attribute("byval")
        if byval is None:
            return x.item(operand)
        assert isinstance(byval.value, ast.Type)
        array = x.arrays.local(parameter.name, x.size(byval.value), x.layout.align(byval.value))
        x.local_types[array.name] = byval.value
        copy = x.builder.addrof(array.name, "local")
        copy_object(x, copy, x.pointer(operand), byval.value)
        return copy

    # ---------------------------------------------------------- printf, assert

    def _print(self, i: ast.Instruction) -> Item:
        """vprintf: the format's conversions take what lies in the buffer; the result is their number."""
        x, buffer = self._x, self._x.scalar(i.operands[1])
        parts = conversions(self._string(i.operands[0], "printf's format"), x.refusal)
        operands: list[Value] = []
        format_ = ""
        for part in parts:
            if isinstance(part, str):
                format_ += part
            elif part.kind == "s":
                format_ += part.filled(self._stored_string(buffer, part))
            else:
                assert part.offset is not None and part.type is not None
                operands.append(x.builder.load(x.displaced(buffer, part.offset), part.type))
                format_ += part.text
        x.builder.emit("printf", *operands, attrs={"format": format_})
        return Constant(I32, sum(isinstance(part, Conversion) for part in parts))

    def _stored_string(self, buffer: Value, part: Conversion) -> str:
        """The string whose address the last store of this block left for a conversion."""
        base, at = _place(buffer)
        for instruction in reversed(self._x.builder.block.instructions):
            if instruction.op != "store" or _place(instruction.operands[0]) != (
                base,
                at + (part.offset or 0),
            ):
                continue
            text = self._text_at(instruction.operands[1])
            if text is not None:
                return text
            break
        raise self._x.refusal(
            "printf's '%s' takes a string that is not known at compile time: print its characters by %c"
        )

    def _assert(self, i: ast.Instruction) -> Item:
        """__assertfail: the message that CUDA prints, without the thread."""
        x = self._x
        message, file, function = (self._string(i.operands[n], "assert's text") for n in (0, 1, 3))
        line = x.operand(2)
        number = line.value if isinstance(line, Constant) else "?"
        text = f"{file}:{number}: {function}: Assertion `{message}' failed"
        x.builder.emit("trap", attrs={"kind": "assert", "message": text})
        return zero_of(x, ast.Void())

    def _string(self, operand: ast.Typed, what: str) -> str:
        text = self._text_at(self._x.scalar(operand))
        if text is None:
            raise self._x.refusal(f"{what} is not a string that is known at compile time")
        return text

    def _text_at(self, pointer: Value) -> str | None:
        """The constant string that a pointer points to."""
        base, offset = _place(pointer)
        variable = self._x.arrays.variable(base) if isinstance(base, str) else None
        if variable is None or variable.value is None:
            return None
        try:
            data = initial_bytes(variable.type, variable.value, self._x.layout)
        except AddressInside:
            return None
        return data[offset:].split(b"\0")[0].decode("utf-8", "replace")


def _place(pointer: Value) -> tuple[object, int]:
    """What a pointer is computed from, an array by its name, and the constant bytes that are added."""
    offset = 0
    while isinstance(pointer, Instruction) and pointer.op in ("ptradd", "ptrcast"):
        if pointer.op == "ptradd":
            index = pointer.operands[1]
            if not isinstance(index, Constant):
                break
            offset += index.signed * pointer.attrs["scale"] + pointer.attrs["disp"]
        pointer = pointer.operands[0]
    if isinstance(pointer, Instruction) and pointer.op == "addrof":
        return pointer.attrs["name"], offset
    return pointer, offset


def _is_float(name: str) -> bool:
    """Whether an intrinsic computes with floating-point numbers, by the types in its name."""
    return any(part.lstrip("v0123456789") in _FLOAT_TYPES for part in name.split("."))
