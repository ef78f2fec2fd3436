"""Device printf and assert: their constant strings, and the arguments that the caller left in a local array.

vprintf's second argument points to the variable arguments, each at a multiple of its size (CUDA C++
Programming Guide, formatted output; the conversions are those of C).
"""

from qgpu.ir import I32, I64, Constant, PtrType, Value
from qgpu.toolchain.printf_format import Conversion, conversions
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.pointer_targets import Target
from qgpu.toolchain.ptx.rule import Rule
from qgpu.toolchain.ptx.system_calls import ASSERT, PRINT


def _print(x: Emitter) -> None:
    """vprintf: the format's conversions take what lies in the buffer; the result is their number."""
    text = _constant_string(x, x.operand("format"), "printf's format")
    parts = conversions(text, x.refusal)
    operands: list[Value] = []
    format_ = ""
    for part in parts:
        if isinstance(part, str):
            format_ += part
        elif part.kind == "s":
            format_ += _folded(x, part)
        else:
            format_ += part.text
            operands.append(_argument(x, part))
    x.builder.emit("printf", *operands, attrs={"format": format_})
    count = sum(isinstance(part, Conversion) for part in parts)
    if x.has("d"):
        x.define(Constant(I32, count))


def _argument(x: Emitter, part: Conversion) -> Value:
    buffer = x.read("buffer", x.operand("buffer"), I64)
    if not isinstance(buffer.type, PtrType):
        raise x.refusal("printf's arguments do not lie in a local array", "buffer")
    assert part.offset is not None and part.type is not None
    return x.builder.load(x.displaced(buffer, part.offset), part.type)


def _folded(x: Emitter, part: Conversion) -> str:
    """A %s whose string is known, as a part of the format."""
    stored = _stored_string(x, part)
    if stored is None:
        raise x.refusal(
            "printf's '%s' takes a string that is not known at compile time: print its characters by %c"
        )
    return part.filled(stored)


def _stored_string(x: Emitter, part: Conversion) -> str | None:
    """The string whose address the last store before the call left for a conversion."""
    pointers, buffer = x.pointers, x.operand("buffer")
    node = x.node(buffer)
    base = pointers.node_offset(node) if node is not None else None
    targets = list(pointers.targets.get(node, ())) if node is not None else []
    if base is None or part.offset is None or len(targets) != 1:
        return None
    store = _last_store(x, targets[0], base + part.offset)
    if store is None:
        return None
    return _string_of(x, store[1], store[0])


def _last_store(x: Emitter, target: Target, offset: int) -> tuple[Site, ast.Operand] | None:
    """The store to some bytes that runs last before the current instruction; None if that is not certain."""
    stores = {id(access.site): access for access in x.pointers.contents(target, offset)}
    for site in x.before():
        if id(site) in stores:
            exact = [a for a in x.pointers.flow.stores if a.site is site]
            found = [a for a in exact if (target, offset) in list(x.pointers.places(a))]
            return (site, found[0].operand) if found else None
    return None


def _string_of(x: Emitter, operand: ast.Operand, site: Site) -> str | None:
    """The constant string that an operand of an instruction points to."""
    pointers = x.pointers
    nodes = pointers.flow.read(site, operand)
    offset = pointers.offset(site, operand)
    targets = list(pointers.targets.get(nodes[0], ())) if nodes else []
    if offset is None or len(targets) != 1 or targets[0].variable is None:
        return None
    data = x.initial_bytes(targets[0].variable)
    if data is None or not 0 <= offset <= len(data):
        return None
    return data[offset:].split(b"\0")[0].decode("utf-8", "replace")


def _constant_string(x: Emitter, operand: ast.Operand, what: str) -> str:
    text = _string_of(x, operand, x.site)
    if text is None:
        raise x.refusal(f"{what} is not a string that is known at compile time")
    return text


def _assert(x: Emitter) -> None:
    """__assertfail: the message that CUDA prints, without the thread."""
    message, file, function = (
        _constant_string(x, x.operand(role), f"assert's {role}") for role in ("message", "file", "function")
    )
    line = x.read("line", x.operand("line"), I32)
    number = str(line.value) if isinstance(line, Constant) else "?"
    x.assertion = f"{file}:{number}: {function}: Assertion `{message}' failed"


RULES = [
    Rule(PRINT, "", "d format buffer", _print),
    Rule(PRINT, "", "format buffer", _print),
    Rule(ASSERT, "", "message file line function size", _assert),
]
