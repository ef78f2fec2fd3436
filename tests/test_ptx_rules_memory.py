"""Loads, stores and atomic operations, against the definitions of the PTX ISA (sections 9.7.9 and 9.7.13)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ptx_cases import HOPPER, ON_BLACKWELL, ON_HOPPER, Case, check, number
from qgpu.ir.interpreter import Fault

_BYTES = 64
_AT = 8
_END = "\nmov.u32 %r1, 0"
_POLICY = "createpolicy.fractional.L2::evict_last.b64 %l1, 0.5;"


def _read(memory: bytearray, at: int, type_: str) -> int:
    size = int(type_[1:]) // 8
    return number(type_ if type_[0] == "s" else f"u{8 * size}")(
        int.from_bytes(memory[at : at + size], "little")
    )


def _write(memory: bytearray, at: int, width: int, value: int) -> None:
    memory[at : at + width // 8] = (value % (1 << width)).to_bytes(width // 8, "little")


def _loaded(type_: str, at: int = _AT) -> Callable[..., int]:
    return lambda memory, thread: _read(memory, at, type_)


def load_cases() -> Iterator[Case]:
    types = [*(f"{sign}{w}" for sign in "bsu" for w in (8, 16, 32, 64)), "f32", "f64"]
    more: dict[str, Any] = {"memory": _BYTES, "threads": 3}
    for t in types:
        w = int(t[1:])
        yield Case(f"ld.global.{t} {{d}}, [{{m}}+{_AT}]", max(w, 16), (), _loaded(t), **more)
        if t[0] != "f":
            yield Case(
                f"ld.global.{t} {{d}}, [{{m}}+{_AT}]", 64, (), _loaded(t), note="in a wide register", **more
            )
        yield Case(
            f"ld.global.v2.{t} {{{{ {{d}}, _ }}}}, [{{m}}+{_AT}]" if w > 8 and t != "f64" else
            f"ld.global.v2.{t} {{{{ %{'l' if w == 64 else 'h'}2, {{d}} }}}}, [{{m}}+16]",
            max(w, 16), (), _loaded(t, _AT if w > 8 and t != "f64" else 16 + w // 8),
            **more | ON_BLACKWELL,
        )  # fmt: skip
    yield Case("ld.global.b8 {d}, [{m}+5]", 8, (), _loaded("b8", 5), **more)
    yield Case("ld.global.v4.u8 {{ %h1, %h2, %h3, {d} }}, [{m}+4]", 16, (), _loaded("u8", 7), **more)
    yield Case("ld.global.v4.s16 {{ %r1, %r2, {d}, %r3 }}, [{m}+8]", 32, (), _loaded("s16", 12), **more)
    yield Case("ld.global.v4.b32 {{ %r1, {d}, %r2, %r3 }}, [{m}+16]", 32, (), _loaded("b32", 20), **more)
    new: dict[str, Any] = more | ON_BLACKWELL
    yield Case("ld.global.v4.b64 {{ %l1, %l2, %l3, {d} }}, [{m}+32]", 64, (), _loaded("b64", 56), **new)
    yield Case(
        "ld.global.L2::evict_last.v8.b32 {{ %r1, _, %r2, %r3, %r4, %r5, {d}, %r6 }}, [{m}]", 32, (),
        _loaded("b32", 24), **new,
    )  # fmt: skip


def load_form_cases() -> Iterator[Case]:
    """Orderings, cache operators, eviction priorities and hints change nothing of what is loaded."""
    forms = (
        "ld", "ld.weak", "ld.weak.global", "ld.volatile", "ld.volatile.global", "ld.relaxed.gpu.global",
        "ld.relaxed.cta", "ld.acquire.sys.global", "ld.acquire.gpu", "ld.global.relaxed.gpu",
        "ld.mmio.relaxed.sys.global", "ld.global.ca", "ld.global.cg", "ld.global.cs", "ld.lu",
        "ld.global.cv", "ld.global.nc", "ld.global.cs.nc", "ld.global.ca.nc", "ld.global.L1::evict_last",
        "ld.global.nc.L1::no_allocate", "ld.global.nc.L1::no_allocate.L2::256B", "ld.global.L2::64B",
        "ld.L2::128B", "ld.acquire.gpu.global.L1::evict_first", "ldu.global", "ldu",
    )  # fmt: skip
    more: dict[str, Any] = {"memory": _BYTES, "threads": 3, "target": HOPPER}
    for form in forms:
        yield Case(f"{form}.u32 {{d}}, [{{m}}+{_AT}]", 32, (), _loaded("u32"), **more)
    yield Case("ldu.global.v2.u64 {{ %l1, {d} }}, [{m}]", 64, (), _loaded("u64"), **more)
    for form in ("ld.global.L2::cache_hint", "ld.relaxed.gpu.global.L1::evict_last.L2::cache_hint.L2::128B"):
        yield Case(f"{_POLICY} {form}.u32 {{d}}, [{{m}}+{_AT}], %l1", 32, (), _loaded("u32"), **more)


def _stored(width: int, step: int = 8, offset: int = 0) -> Callable[..., int]:
    """What a store of each thread's value at its own address does; the result is the value."""

    def store(memory: bytearray, thread: int, value: int) -> int:
        _write(memory, step * thread + offset, width, value)
        return value

    return store


def store_cases() -> Iterator[Case]:
    address = "mad.wide.u32 %l2, %t, 8, {m}; "
    more: dict[str, Any] = {"memory": _BYTES, "threads": 6}
    for t in ("b8", "s8", "u16", "b32", "s32", "u64", "f32", "f64"):
        w = max(int(t[1:]), 16)
        yield Case(
            f"{address} st.global.{t} [%l2+8], {{a}}; mov.b{w} {{d}}, {{a}}",
            w,
            (w,),
            _stored(int(t[1:]), 8, 8),
            **more,
        )
    yield Case(
        f"{address} st.global.u8 [%l2+3], {{a}}; mov.b64 {{d}}, {{a}}", 64, (64,), _stored(8, 8, 3), **more
    )
    forms = (
        "st", "st.weak.global", "st.volatile", "st.volatile.global", "st.relaxed.gpu.global",
        "st.release.sys", "st.mmio.relaxed.sys.global", "st.global.wb", "st.global.cg", "st.cs", "st.wt",
        "st.global.L1::evict_last", "st.global.L1::no_allocate",
    )  # fmt: skip
    for form in forms:
        yield Case(
            f"{address} {form}.u32 [%l2+4], {{a}}; mov.b32 {{d}}, {{a}}", 32, (32,), _stored(32, 8, 4),
            **more | ON_HOPPER,
        )  # fmt: skip
    yield Case(
        f"{_POLICY} {address} st.global.L2::cache_hint.u32 [%l2], {{a}}, %l1; mov.b32 {{d}}, {{a}}",
        32, (32,), _stored(32), **more | ON_HOPPER,
    )  # fmt: skip
    yield Case(
        f"{address} st.global.v2.b32 [%l2], {{{{ {{a}}, 7 }}}}; mov.b32 {{d}}, {{a}}", 32, (32,),
        lambda memory, thread, a: _stored(64)(memory, thread, 7 << 32 | a), **more,
    )  # fmt: skip
    yield Case(
        f"{address} st.global.v4.u16 [%l2], {{{{ {{a}}, 1, 2, {{b}} }}}}; mov.b16 {{d}}, {{a}}", 16, (16, 16),
        lambda memory, thread, a, b: _stored(64)(memory, thread, b << 48 | 2 << 32 | 1 << 16 | a), **more,
    )  # fmt: skip
    yield Case(
        "st.global.v8.b32 [{m}], {{ 1, 2, 3, 4, 5, 6, 7, {a} }}; mov.b32 {d}, {a}", 32, (32,),
        lambda memory, thread, a: [
            _write(memory, 4 * i, 32, value) for i, value in enumerate((1, 2, 3, 4, 5, 6, 7, a))
        ] and a,
        **more | ON_BLACKWELL,
    )  # fmt: skip


def space_cases() -> Iterator[Case]:
    """Variables of every space, by name, through generic addresses and back."""
    for space in ("shared", "local", "shared::cta"):
        kind = space.partition("::")[0]
        array = f".{kind} .align 16 .b8 v[4096];"
        slot = "mul.wide.u32 %l1, %t, 8; mov.u64 %l2, v; add.u64 %l2, %l2, %l1;"
        yield Case(
            f"{{{{ {array} {slot} st.{space}.u64 [%l2], {{a}}; ld.{space}.u64 {{d}}, [%l2]; }}}}{_END}",
            64, (64,), lambda a: a, note=space,
        )  # fmt: skip
        generic = f"cvta.{space}.u64 %l3, %l2; st.u32 [%l3+4], {{a}}; cvta.to.{space}.u64 %l4, %l3;"
        yield Case(
            f"{{{{ {array} {slot} {generic} ld.{space}.u32 {{d}}, [%l4+4]; }}}}{_END}",
            32, (32,), lambda a: a, note=f"{space}, generic",
        )  # fmt: skip
        for other in ("shared", "local", "global", "const"):
            yield Case(
                f"{{{{ {array} cvta.{space}.u64 %l3, v; isspacep.{other} {{d}}, %l3; }}}}{_END}",
                1, (32,), lambda a, same=kind == other: same, note=f"{space}, {other}",
            )  # fmt: skip
    table = ".const .align 4 .u32 table[4] = { 11, 22, 33, 0xFFFFFFFE };"
    more: dict[str, Any] = {"prelude": table, "memory": _BYTES, "threads": 3}
    yield Case("ld.const.u32 {d}, [table+8]", 32, (), lambda memory, thread: 33, **more)
    yield Case("ld.const.v2.s32 {{ %l1, {d} }}, [table+8]", 64, (), lambda memory, thread: -2, **more)
    yield Case("cvta.const.u64 %l1, table; ld.u32 {d}, [%l1+4]", 32, (), lambda memory, thread: 22, **more)
    yield Case(
        "cvta.const.u64 %l1, table; cvta.to.const.u64 %l2, %l1; ld.const.u32 {d}, [%l2]", 32, (),
        lambda memory, thread: 11, **more,
    )  # fmt: skip
    yield Case("isspacep.global {d}, {m}", 1, (), lambda memory, thread: 1, memory=_BYTES, threads=3)


def _copied(size: int, start: int = 0) -> Callable[..., int]:
    """The first 64 bits of an asynchronous copy after as many bytes; `count` of `size` bytes are read."""

    def copy(memory: bytearray, thread: int, count: int = size) -> int:
        taken = bytes(memory[_AT : _AT + min(count, size)]).ljust(size, b"\0") + b"\xff" * 16
        return int.from_bytes(taken[start : start + 8], "little")

    return copy


def _copied_unless(size: int, start: int) -> Callable[..., int]:
    copied = _copied(size, start)
    return lambda memory, thread, ignored: copied(memory, thread, 0 if ignored else size)


def copy_cases() -> Iterator[Case]:
    """Asynchronous copies: from memory to shared memory, and what is there behind them."""
    array = ".shared .align 16 .b8 v[1024]; shl.b32 %r1, %t, 5; mov.u32 %r2, v; add.u32 %r2, %r2, %r1;"
    fill = "st.shared.v2.b64 [%r2], {{ -1, -1 }}; st.shared.v2.b64 [%r2+16], {{ -1, -1 }};"
    wait = "cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;"
    more: dict[str, Any] = {"memory": _BYTES, "threads": 24, "target": HOPPER}
    copies = [
        (form, size, start)
        for form, sizes in (("ca", (4, 8, 16)), ("cg.L2::128B", (16,)))
        for size in sizes
        for start in (0, 8)
    ]
    for form, size, start in copies:
        name = f"cp.async.{form.replace('.', '.shared.global.') if '.' in form else f'{form}.shared.global'}"
        head, tail = f"{array} {fill} {name} [%r2], [{{m}}+{_AT}], {size}", f"; {wait}"
        tail += f" ld.shared.b64 {{d}}, [%r2+{start}]; }}}}{_END}"
        yield Case(f"{{{{ {head}{tail}", 64, (), _copied(size, start), **more)
        for count in (0, 1, size - 1, size):
            known = _copied(size, start)
            yield Case(
                f"{{{{ {head}, {count}{tail}", 64, (),
                lambda memory, thread, count=count, known=known: known(memory, thread, count), **more,
            )  # fmt: skip
        yield Case(
            f"{{{{ {head}, {{a}}{tail}", 64, (32,), _copied(size, start),
            choices={0: tuple(range(size + 1))}, **more,
        )  # fmt: skip
        yield Case(
            f"{{{{ {head}, {{a}}{tail}", 64, (1,), _copied_unless(size, start), note="ignored", **more,
        )  # fmt: skip
    yield Case(
        f"{{{{ {array} {fill} cp.async.ca.shared.global [%r2], [{{m}}+{_AT}], 8, !{{a}}; {wait} "
        f"ld.shared.b64 {{d}}, [%r2]; }}}}{_END}",
        64, (1,), lambda memory, thread, taken: _copied(8)(memory, thread) if taken else 0, **more,
    )  # fmt: skip
    name = "cp.async.ca.shared::cta.global.L2::cache_hint"
    yield Case(
        f"{{{{ {_POLICY} {array} {fill} @{{a}} {name} [%r2+8], [{{m}}+{_AT}], 4, 4, %l1; {wait} "
        f"ld.shared.b64 {{d}}, [%r2+8]; }}}}{_END}",
        64, (1,),
        lambda memory, thread, taken: _copied(4)(memory, thread) if taken else -1,
        **more,
    )  # fmt: skip


def hint_cases() -> Iterator[Case]:
    """What only caches heed leaves memory as it is."""
    lines = (
        "prefetch.global.L1 [{m}]", "prefetch.L2 [{m}]", "prefetch.global.L2::evict_last [{m}]",
        "prefetchu.L1 [{m}]", "applypriority.global.L2::evict_normal [{m}], 128",
        "createpolicy.fractional.L2::evict_first.b64 %l1", "createpolicy.cvt.L2.b64 %l1, %l2",
        "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %l1, 1.0",
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %l1, [{m}], 16, 32",
        "discard.global.L2 [{m}], 128",
    )  # fmt: skip
    for line in lines:
        yield Case(
            f"mov.u64 %l2, 0; {line}; ld.global.u32 {{d}}, [{{m}}]", 32, (), _loaded("u32", 0),
            memory=_BYTES, threads=3, target=HOPPER,
        )  # fmt: skip


ATOMICS: dict[str, tuple[tuple[str, ...], Callable[[int, int], int]]] = {
    "add": (("s32", "u32", "u64"), lambda old, b: old + b),
    "inc": (("u32",), lambda old, b: 0 if old >= b else old + 1),
    "dec": (("u32",), lambda old, b: b if old == 0 or old > b else old - 1),
    "min": (("s32", "u32", "s64", "u64"), min),
    "max": (("s32", "u32", "s64", "u64"), max),
    "and": (("b32", "b64"), lambda old, b: old & b),
    "or": (("b32", "b64"), lambda old, b: old | b),
    "xor": (("b32", "b64"), lambda old, b: old ^ b),
    "exch": (("b32", "b64"), lambda old, b: b),
}
_SHARED_ADDRESSES = "and.b32 %r1, %t, 3; mad.wide.u32 %l2, %r1, 8, {m}; "


def _updated(type_: str, step: Callable[[int, int], int], returns_old: bool) -> Callable[..., int]:
    """All threads in order, four to an address."""
    n, w = number(type_), int(type_[1:])

    def update(memory: bytearray, thread: int, b: int) -> int:
        at = 8 * (thread % 4)
        old = _read(memory, at, f"u{w}")
        _write(memory, at, w, step(n(old), n(b)))
        return old if returns_old else b

    return update


def atomic_cases() -> Iterator[Case]:
    more: dict[str, Any] = {"memory": 32, "threads": 37}
    for name, (types, step) in ATOMICS.items():
        for t in types:
            w = int(t[1:])
            small: dict[str, Any] = more | ({"choices": {0: (0, 1, 3, 4)}} if name in ("inc", "dec") else {})
            yield Case(
                f"{_SHARED_ADDRESSES} atom.global.{name}.{t} {{d}}, [%l2], {{a}}",
                w,
                (w,),
                _updated(t, step, True),
                **small,
            )
            hinted = f"{name}.L2::cache_hint.{t}"
            yield Case(
                f"{_POLICY} {_SHARED_ADDRESSES} atom.global.{hinted} {{d}}, [%l2], {{a}}, %l1", w, (w,),
                _updated(t, step, True), **small | ON_HOPPER,
            )  # fmt: skip
            if name == "exch":
                continue
            yield Case(
                f"{_SHARED_ADDRESSES} red.global.{name}.{t} [%l2], {{a}}; mov.b{w} {{d}}, {{a}}", w, (w,),
                _updated(t, step, False), **small,
            )  # fmt: skip
            yield Case(
                f"{_POLICY} {_SHARED_ADDRESSES} red.relaxed.gpu.global.{hinted} [%l2], {{a}}, %l1;"
                f"mov.b{w} {{d}}, {{a}}",
                w, (w,), _updated(t, step, False), **small | ON_HOPPER,
            )  # fmt: skip
    prefixes = (
        "", ".global", ".relaxed.cta", ".acquire.gpu.global", ".release.sys", ".acq_rel.cluster",
        ".gpu.global", ".global.acquire.sys",
    )  # fmt: skip
    for prefix in prefixes:
        yield Case(
            f"{_SHARED_ADDRESSES} atom{prefix}.add.u32 {{d}}, [%l2], {{a}}", 32, (32,),
            _updated("u32", lambda old, b: old + b, True), **more | ON_HOPPER,
        )  # fmt: skip
    yield Case(
        f"{_SHARED_ADDRESSES} atom.global.add.u32 _, [%l2], {{a}}; mov.b32 {{d}}, {{a}}", 32, (32,),
        _updated("u32", lambda old, b: old + b, False), **more,
    )  # fmt: skip


def _swapped(width: int) -> Callable[..., int]:
    def swap(memory: bytearray, thread: int, b: int, c: int) -> int:
        old = _read(memory, 0, f"u{width}")
        if old == b:
            _write(memory, 0, width, c)
        return old

    return swap


def swap_cases() -> Iterator[Case]:
    few = (0, 1, 2, 3)
    for w in (32, 64):
        more: dict[str, Any] = {"memory": 32, "threads": 40, "choices": {0: few, 1: few}}
        start = f"setp.eq.u32 %q, %t, 0; @%q st.global.u{w} [{{m}}], 2; bar.sync 0;"

        def oracle(memory: bytearray, thread: int, b: int, c: int, w: int = w) -> int:
            if thread == 0:
                _write(memory, 0, w, 2)
            return _swapped(w)(memory, thread, b, c)

        yield Case(f"{start} atom.global.cas.b{w} {{d}}, [{{m}}], {{a}}, {{b}}", w, (w, w), oracle, **more)
    yield Case(
        "{{ .shared .align 8 .u32 v[2]; mov.u32 %r1, 5; st.shared.u32 [v], %r1; bar.sync 0;"
        f"atom.shared.add.u32 {{d}}, [v], {{a}}; }}}}{_END}",
        32, (32,), lambda inputs: [5 + sum(a for (a,) in inputs[:thread]) for thread in range(len(inputs))],
        together=True, threads=40,
    )  # fmt: skip


CASES = [
    *load_cases(),
    *load_form_cases(),
    *store_cases(),
    *space_cases(),
    *copy_cases(),
    *hint_cases(),
    *atomic_cases(),
    *swap_cases(),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_memory(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("count", range(6))
def test_a_copy_reads_no_more_than_it_is_told_to(count: int) -> None:
    """The bytes that are filled up with zeros lie beyond the end of the buffer of eight bytes."""
    line = "cp.async.ca.shared.global [v], [{m}+4], 16, {a}; ld.shared.b64 {d}, [v]; }}" + _END
    case = Case(
        f"{{{{ .shared .align 16 .b8 v[16]; {line}", 64, (32,),
        lambda memory, thread, count: int.from_bytes(memory[4 : 4 + count], "little"),
        choices={0: (count,)}, memory=8, threads=5, target=HOPPER,
    )  # fmt: skip
    if count <= 4:
        check(case)
        return
    with pytest.raises(Fault, match="offset 8"):
        check(case)
