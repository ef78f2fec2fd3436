"""Exchanges within a warp and special registers, against the definitions of the PTX ISA (9.7.9, 9.7.13, 10).

All threads of two warps, the second one incomplete, run the instruction together.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ptx_cases import HOPPER, OLD, ON_HOPPER, Case, check, number, signed

_THREADS = 50
_WARP = 32
_FULL = 0xFFFFFFFF

Inputs = Sequence[tuple[int, ...]]


def _warps(inputs: Inputs) -> Iterator[list[tuple[int, ...]]]:
    for start in range(0, len(inputs), _WARP):
        yield list(inputs[start : start + _WARP])


def _by_warp(function: Callable[[list[tuple[int, ...]]], list[int]]) -> Callable[[Inputs], list[int]]:
    """A definition for all threads from one for the lanes of a warp."""
    return lambda inputs: [result for warp in _warps(inputs) for result in function(warp)]


def _same_for_all(function: Callable[[list[int]], int]) -> Callable[[Inputs], list[int]]:
    """A result that all lanes of a warp get from their first operands."""
    return _by_warp(lambda warp: [function([values[0] for values in warp])] * len(warp))


def _mask(bits: Sequence[object]) -> int:
    return sum(1 << lane for lane, bit in enumerate(bits) if bit)


def _shuffled(mode: str, warp: list[tuple[int, ...]], want_predicate: bool) -> list[int]:
    """shfl, by the manual's pseudo code."""
    results = []
    for lane, (_, b, c) in enumerate(warp):
        bval, cval, segment = b & 31, c & 31, c >> 8 & 31
        highest = lane & segment | cval & ~segment & 31
        lowest = lane & segment
        if mode == "up":
            source, valid = lane - bval, lane - bval >= highest
        elif mode == "down":
            source, valid = lane + bval, lane + bval <= highest
        elif mode == "bfly":
            source, valid = lane ^ bval, lane ^ bval <= highest
        else:
            source = lowest | bval & ~segment & 31
            valid = source <= highest
        source = source if valid else lane
        present = source if 0 <= source < len(warp) else lane
        results.append(int(valid) if want_predicate else warp[present][0])
    return results


def shuffle_cases() -> Iterator[Case]:
    distances = (0, 1, 2, 5, 16, 31, 33)
    bounds = (0, 31, 0x1F1F, 0x1800, 0x181F, 0x1C03, 0x100F)
    choices = {1: distances, 2: bounds}
    for mode in ("up", "down", "bfly", "idx"):
        value = _by_warp(lambda warp, m=mode: _shuffled(m, warp, False))
        valid = _by_warp(lambda warp, m=mode: _shuffled(m, warp, True))
        more: dict[str, Any] = {"together": True, "threads": _THREADS, "choices": choices}
        three = (32, 32, 32)
        yield Case(f"shfl.sync.{mode}.b32 {{d}}|%q, {{a}}, {{b}}, {{c}}, -1", 32, three, value, **more)
        yield Case(f"shfl.sync.{mode}.b32 %r1|{{d}}, {{a}}, {{b}}, {{c}}, -1", 1, three, valid, **more)
        yield Case(f"shfl.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}", 32, three, value, target=OLD, **more)
    yield Case(
        "shfl.sync.down.b32 {d}, {a}, 4, 0x1807, 0xffffffff", 32, (32,),
        _by_warp(lambda warp: [
            warp[min(lane + 4, len(warp) - 1)][0] if lane % 8 < 4 and lane + 4 < len(warp) else own
            for lane, (own,) in enumerate(warp)
        ]),
        together=True, threads=_THREADS,
    )  # fmt: skip


def vote_cases() -> Iterator[Case]:
    votes: dict[str, Callable[[list[int]], int]] = {
        "all.pred": lambda bits: all(bits),
        "any.pred": lambda bits: any(bits),
        "uni.pred": lambda bits: len(set(bits)) == 1,
        "ballot.b32": _mask,
    }
    for name, function in votes.items():
        width = 32 if name.startswith("ballot") else 1
        for values in ((0,), (1,), (0, 1)):
            more: dict[str, Any] = {"choices": {0: values}, "together": True, "threads": _THREADS}
            expected = _same_for_all(function)
            negated = _same_for_all(lambda bits, f=function: f([not bit for bit in bits]))
            more["note"] = str(values)
            yield Case(f"vote.sync.{name} {{d}}, {{a}}, -1", width, (1,), expected, **more)
            yield Case(f"vote.sync.{name} {{d}}, !{{a}}, -1", width, (1,), negated, **more)
            yield Case(f"vote.{name} {{d}}, {{a}}", width, (1,), expected, target=OLD, **more)
    yield Case(
        "activemask.b32 {d}", 32, (1,), _same_for_all(lambda bits: _mask([1] * len(bits))),
        together=True, threads=_THREADS,
    )  # fmt: skip


def match_cases() -> Iterator[Case]:
    for w in (32, 64):
        more: dict[str, Any] = {"together": True, "threads": _THREADS}
        several: dict[str, Any] = {"choices": {0: (0, 5, 1 << w - 1, 5 << w // 2)}, **more}
        yield Case(
            f"match.any.sync.b{w} {{d}}, {{a}}, -1", 32, (w,),
            _by_warp(lambda warp: [_mask([other == own for other in warp]) for own in warp]), **several,
        )  # fmt: skip
        for values in ((7,), (7, 7 << w // 2)):
            more |= {"choices": {0: values}, "note": str(values)}
            yield Case(
                f"match.all.sync.b{w} {{d}}|%q, {{a}}, -1", 32, (w,),
                _same_for_all(lambda own: _mask([1] * len(own)) if len(set(own)) == 1 else 0), **more,
            )  # fmt: skip
            yield Case(
                f"match.all.sync.b{w} %r1|{{d}}, {{a}}, -1", 1, (w,),
                _same_for_all(lambda own: len(set(own)) == 1), **more,
            )  # fmt: skip
    yield Case(
        "match.all.sync.b32 {d}, {a}, -1", 32, (32,), _same_for_all(lambda own: 0),
        together=True, threads=_THREADS,
    )  # fmt: skip


def reduction_cases() -> Iterator[Case]:
    def combined(step: Callable[[int, int], int], n: Callable[[int], int]) -> Callable[[list[int]], int]:
        def reduce(values: list[int]) -> int:
            total = n(values[0])
            for value in values[1:]:
                total = step(total, n(value))
            return total

        return reduce

    steps: dict[str, tuple[tuple[str, ...], Callable[[int, int], int]]] = {
        "add": (("s32", "u32"), lambda a, b: a + b),
        "min": (("s32", "u32"), min),
        "max": (("s32", "u32"), max),
        "and": (("b32",), lambda a, b: a & b),
        "or": (("b32",), lambda a, b: a | b),
        "xor": (("b32",), lambda a, b: a ^ b),
    }
    for name, (types, step) in steps.items():
        for t in types:
            yield Case(
                f"redux.sync.{name}.{t} {{d}}, {{a}}, -1", 32, (32,),
                _same_for_all(combined(step, number(t))), target=HOPPER, together=True, threads=_THREADS,
            )  # fmt: skip
    more: dict[str, Any] = {"target": HOPPER, "together": True, "threads": _THREADS}
    yield Case("elect.sync {d}|%q, -1", 32, (1,), _same_for_all(lambda bits: 0), **more)
    yield Case(
        "elect.sync _|{d}, -1",
        1,
        (1,),
        _by_warp(lambda warp: [lane == 0 for lane in range(len(warp))]),
        **more,
    )


def subset_cases() -> Iterator[Case]:
    """Lanes of one side of a branch exchange among themselves, by a mask of their own."""
    branch = "mov.u32 {d}, 0; and.b32 %r1, %t, 1; setp.eq.u32 %q, %r1, 0; @!%q bra DONE;"
    even = 0x55555555

    def split(function: Callable[[list[int]], int]) -> Callable[[Inputs], list[int]]:
        def by_lane(warp: list[tuple[int, ...]]) -> list[int]:
            result = function([values[0] for values in warp[::2]])
            return [0 if lane % 2 else result for lane in range(len(warp))]

        return _by_warp(by_lane)

    more: dict[str, Any] = {"together": True, "threads": _THREADS}
    yield Case(
        f"{branch} redux.sync.max.u32 {{d}}, {{a}}, {even}; DONE: mov.b32 %r1, 0", 32, (32,), split(max),
        **more | ON_HOPPER,
    )  # fmt: skip
    yield Case(
        f"{branch} activemask.b32 {{d}}; DONE: mov.b32 %r1, 0", 32, (32,),
        split(lambda values: _mask([1, 0] * len(values))), **more,
    )  # fmt: skip
    yield Case(
        f"{branch} setp.lt.s32 %q, {{a}}, 0; vote.sync.ballot.b32 {{d}}, %q, {even};"
        "DONE: mov.b32 %r1, 0",
        32, (32,), split(lambda values: _mask([b for v in values for b in (signed(v, 32) < 0, 0)])), **more,
    )  # fmt: skip


def special_cases() -> Iterator[Case]:
    def each(function: Callable[[int], int]) -> Callable[[Inputs], list[int]]:
        return lambda inputs: [function(thread) for thread in range(len(inputs))]

    more: dict[str, Any] = {"together": True, "threads": _THREADS}
    words: dict[str, Callable[[int], int]] = {
        "%tid.x": lambda t: t,
        "%tid.y": lambda t: 0,
        "%tid.w": lambda t: 0,
        "%ntid.x": lambda t: _THREADS,
        "%ntid.z": lambda t: 1,
        "%ctaid.x": lambda t: 0,
        "%nctaid.y": lambda t: 1,
        "%laneid": lambda t: t % _WARP,
        "%warpid": lambda t: t // _WARP,
        "%nwarpid": lambda t: 32,
        "%smid": lambda t: 0,
        "%nsmid": lambda t: 1,
        "%gridid": lambda t: 0,
        "%lanemask_eq": lambda t: 1 << t % _WARP,
        "%lanemask_lt": lambda t: (1 << t % _WARP) - 1,
        "%lanemask_le": lambda t: (2 << t % _WARP) - 1,
        "%lanemask_ge": lambda t: _FULL & ~((1 << t % _WARP) - 1),
        "%lanemask_gt": lambda t: _FULL & ~((2 << t % _WARP) - 1),
        "WARP_SZ": lambda t: 32,
    }
    for name, function in words.items():
        yield Case(f"mov.u32 {{d}}, {name}", 32, (1,), each(function), **more)
    for name in ("%cluster_ctarank", "%cluster_ctaid.x", "%clusterid.y"):
        yield Case(f"mov.u32 {{d}}, {name}", 32, (1,), each(lambda t: 0), **more | ON_HOPPER)
    for name in ("%cluster_nctarank", "%cluster_nctaid.z", "%nclusterid.x"):
        yield Case(f"mov.u32 {{d}}, {name}", 32, (1,), each(lambda t: 1), **more | ON_HOPPER)
    yield Case("mov.pred {d}, %is_explicit_cluster", 1, (1,), each(lambda t: 0), **more | ON_HOPPER)
    yield Case("mov.u16 {d}, %tid.x", 16, (1,), each(lambda t: t), **more)
    yield Case("cvt.u32.u16 {d}, %ntid.x", 32, (1,), each(lambda t: _THREADS), **more)
    yield Case("cvt.u64.u32 {d}, %tid.x", 64, (1,), each(lambda t: t), **more)
    yield Case("mov.u64 {d}, %gridid", 64, (1,), each(lambda t: 0), **more)
    yield Case("mov.v4.u32 {{ {d}, %r1, %r2, %r3 }}, %tid", 32, (1,), each(lambda t: t), **more)
    yield Case("mov.v4.u32 {{ %r1, %r2, %r3, {d} }}, %ntid", 32, (1,), each(lambda t: 0), **more)


def clock_cases() -> Iterator[Case]:
    """Each read advances the thread's clock by one, whichever of its names is read, on every path."""

    def each(function: Callable[[int], int]) -> Callable[[Inputs], list[int]]:
        return lambda inputs: [function(thread) for thread in range(len(inputs))]

    more: dict[str, Any] = {"together": True, "threads": _THREADS}
    yield Case("mov.u32 {d}, %clock", 32, (1,), each(lambda t: 1), **more)
    yield Case("mov.u64 %l1, %clock64; mov.u64 {d}, %globaltimer", 64, (1,), each(lambda t: 2), **more)
    yield Case("mov.u32 {d}, %clock_hi", 32, (1,), each(lambda t: 0), **more)
    yield Case(
        "mov.u32 %r1, %globaltimer_hi; mov.u32 {d}, %globaltimer_lo", 32, (1,), each(lambda t: 2), **more
    )
    loop = "mov.u32 %r1, 0; L: mov.u32 %r2, %clock; add.u32 %r1, %r1, 1; setp.le.u32 %q, %r1, %t; @%q bra L;"
    yield Case(f"{loop} mov.u32 {{d}}, %clock", 32, (1,), each(lambda t: t + 2), **more)


CASES = [
    *shuffle_cases(),
    *vote_cases(),
    *match_cases(),
    *reduction_cases(),
    *subset_cases(),
    *special_cases(),
    *clock_cases(),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_warp(case: Case) -> None:
    check(case)


def test_no_case_is_there_twice() -> None:
    assert [text for text, count in Counter(map(str, CASES)).items() if count > 1] == []
