"""Instructions that only the front end makes: arguments, and accesses to parameter memory in registers."""

from qgpu.ir import Constant, IntType, PtrType, Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.passing import ARGUMENT, PARTS
from qgpu.toolchain.ptx.rule import RESULT, Rule

_PARTS = rf"{PARTS}\.(?P<type>\w+)"


def _argument(x: Emitter) -> None:
    """A kernel's argument, in the register that stands for it."""
    x.define(x.argument())


def _load(x: Emitter) -> None:
    """ld.param: the pieces that lie one after another, or some bytes of a wider piece."""
    type_, parts = x.type(), x.parts("a")
    (result,) = x.results()
    if isinstance(parts[0].type, PtrType):
        if type_.width != 64 or x.immediate("offset"):
            raise x.refusal("a part of a pointer is loaded")
        x.define(parts[0])
        return
    value = _joined(x, parts, type_) if len(parts) > 1 else _part(x, parts[0], type_, x.immediate("offset"))
    if result is not None and result[1].width < type_.width:
        raise x.refusal(f"the register has {result[1].width} bits where {type_.width} are loaded", RESULT)
    x.define(x.resized(value, result[1], x.signed()) if result else value)


def _joined(x: Emitter, parts: list[Value], type_: IntType) -> Value:
    """The number whose bytes are those of several, the lowest first."""
    whole: Value = Constant(type_, 0)
    position = 0
    for part in parts:
        if not isinstance(part.type, IntType):
            raise x.refusal("a pointer is loaded as a part of something wider")
        wide = x.resized(part, type_, False)
        whole = x.operation("or", whole, x.operation("shl", wide, Constant(type_, position)))
        position += part.type.width
    return whole


def _part(x: Emitter, whole: Value, type_: IntType, offset: int) -> Value:
    assert isinstance(whole.type, IntType)
    if 8 * offset + type_.width > whole.type.width:
        raise x.refusal(f"the parameter has {whole.type.width} bits where {type_.width} are loaded")
    shifted = x.operation("lshr", whole, Constant(whole.type, 8 * offset)) if offset else whole
    return x.resized(shifted, type_, False)


def _store(x: Emitter) -> None:
    """st.param: the value, or each piece that it covers."""
    pieces = [piece for piece in x.results() if piece is not None]
    (value,) = x.elements("a", x.type())
    if isinstance(value.type, PtrType):
        if len(pieces) > 1 or x.type().width != 64:
            raise x.refusal("a part of a pointer is passed", "a")
        x.define(value)
        return
    values: list[Value] = []
    position = 0
    for _, type_ in pieces:
        assert isinstance(value.type, IntType)
        amount = Constant(value.type, position)
        shifted = x.operation("lshr", value, amount) if position else value
        values.append(x.resized(shifted, type_, False))
        position += type_.width
    x.define(*values)


RULES = [
    Rule(ARGUMENT, "", "d", _argument),
    Rule("ld", _PARTS, "d a offset", _load, "a"),
    Rule("st", _PARTS, "d a", _store, "a"),
]
