"""Exchanges on linearised functions, through the scratch array, against what each means lane by lane."""

import random
import struct
from collections.abc import Callable

import pytest

from ir_random_kernels import SITES, random_kernel
from qgpu.ir import Function, parse_function, print_function, verify
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import Linearize, LowerExchanges, PassError, SerialiseAtomics

KERNEL = """
kernel @f(%in: ptr<global>, %lanes: ptr<global>, %out: ptr<global>, %u: i32) {
entry:
  %t = sreg tid.x : i32
  %lane = sreg laneid : i32
  %at = ptradd %in, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %to = ptradd %out, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %x = load i32 %at : i32
  %from = ptradd %lanes, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %s = load i32 %from : i32
  %odd = trunc %x : i1
  BRANCH
work:
  CODE
  store i32 %to, %r
  br done
done:
  ret
}
"""
BRANCHES = {"all": "br work", "odd": "condbr %odd, work, done"}
WARPS = ((4, 3), (4, 8), (4, 11), (8, 21), (32, 40))
MASK = 0xFFFFFFFF


def lowered(text: str, warp_size: int, threads: int) -> Function:
    function = parse_function(text)
    verify(function)
    Linearize().run(function)
    assert LowerExchanges(warp_size=warp_size, threads=threads).run(function)
    verify(function)
    return function


def words(data: bytes | bytearray) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def packed(numbers: list[int]) -> bytearray:
    return bytearray(struct.pack(f"<{len(numbers)}I", *(number & MASK for number in numbers)))


Rule = Callable[[list[int], list[int], list[int], int], int]
"""What a lane gets: from the values and second operands of the warp's lanes, those active, its own number."""


def check(code: str, rule: Rule, warp_size: int, threads: int, branch: str, seed: int = 0) -> Function:
    """Compares a kernel's output with a rule applied to each warp's active lanes."""
    text = KERNEL.replace("BRANCH", BRANCHES[branch]).replace("CODE", code)
    function = lowered(text, warp_size, threads)
    chance = random.Random(seed)
    values = [chance.choice([0, 1, 2, 3, MASK, chance.getrandbits(32)]) for _ in range(threads)]
    sources = [chance.randrange(warp_size) for _ in range(threads)]
    expected = [7] * threads
    for first in range(0, threads, warp_size):
        warp = range(first, min(first + warp_size, threads))
        active = [t - first for t in warp if branch == "all" or values[t] & 1]
        for lane in active:
            own = (values[first : first + warp_size], sources[first : first + warp_size])
            expected[first + lane] = rule(*own, active, lane) & MASK
    out = packed([7] * threads)
    interpret(function, [packed(values), packed(sources), out, 2], (2, 1, 1), (threads, 1, 1), warp_size)
    assert words(out) == expected
    return function


def reads(source: Callable[[int], int], warp_size: int) -> Rule:
    """A shuffle's rule where the source lane follows from the lane."""
    return lambda x, s, active, lane: x[source(lane) if source(lane) in active else lane]


SHUFFLES = {
    "any": ("%k = add %s, i32 0 : i32", lambda lane: None),
    "butterfly": ("%k = xor %lane, i32 1 : i32", lambda lane: lane ^ 1),
    "argument": ("%k = xor %lane, %u : i32", lambda lane: lane ^ 2),
    "up": (
        "%j = sub %lane, i32 1 : i32\n%ok = icmp sge %j, i32 0 : i1\n%k = select %ok, %j, %lane : i32",
        lambda lane: max(lane - 1, 0),
    ),
    "down": (
        "%j = add %lane, i32 2 : i32\n%ok = icmp sle %j, i32 3 : i1\n%k = select %ok, %j, %lane : i32",
        lambda lane: lane + 2 if lane + 2 <= 3 else lane,
    ),
    "far": ("%k = add %lane, i32 1 : i32", lambda lane: lane + 1),
    "pairs": ("%k = and %lane, i32 30 : i32", lambda lane: lane & 30),
    "last of pairs": ("%k = or %lane, i32 1 : i32", lambda lane: lane | 1),
}


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize(("warp_size", "threads"), WARPS)
@pytest.mark.parametrize("name", SHUFFLES)
def test_a_shuffle_reads_the_other_lane_or_its_own(
    name: str, warp_size: int, threads: int, branch: str
) -> None:
    code, source = SHUFFLES[name]
    rule: Rule = reads(source, warp_size)
    if name == "any":
        rule = lambda x, s, active, lane: x[s[lane] if s[lane] in active else lane]  # noqa: E731
    check(f"{code}\n%r = shuffle %x, %k, i32 -1 : i32", rule, warp_size, threads, branch)


@pytest.mark.parametrize("number", [0, 2, 3, 40])
def test_a_shuffle_from_one_lane_for_all(number: int) -> None:
    for branch in BRANCHES:
        rule = reads(lambda lane: number, 4)
        check(f"%r = shuffle %x, i32 {number}, i32 -1 : i32", rule, 4, 7, branch)


def test_a_shuffle_reads_only_lanes_that_its_mask_names() -> None:
    code = "%m = shl i32 1, %s : i32\n%k = xor %lane, i32 1 : i32\n%r = shuffle %x, %k, %m : i32"
    for branch in BRANCHES:
        check(
            code,
            lambda x, s, active, lane: x[lane ^ 1 if lane ^ 1 in active and s[lane] == lane ^ 1 else lane],
            4,
            11,
            branch,
        )


def test_conditions_and_bytes_are_shuffled_as_words() -> None:
    code = "%y = trunc %x : i8\n%b = shuffle %y, %s, i32 -1 : i8\n%r = zext %b : i32"
    check(code, lambda x, s, active, lane: x[s[lane] if s[lane] in active else lane] & 255, 4, 8, "odd")
    code = "%c = icmp ugt %x, i32 9 : i1\n%b = shuffle %c, %s, i32 -1 : i1\n%r = zext %b : i32"
    check(code, lambda x, s, active, lane: int(x[s[lane] if s[lane] in active else lane] > 9), 4, 8, "odd")


def test_two_shuffles_by_one_lane_look_once_who_is_there() -> None:
    code = "%q = shuffle %s, %s, i32 -1 : i32\n%p = shuffle %x, %s, i32 -1 : i32\n%r = sub %p, %q : i32"

    def rule(x: list[int], s: list[int], active: list[int], lane: int) -> int:
        source = s[lane] if s[lane] in active else lane
        return x[source] - s[source]

    function = check(code, rule, 8, 13, "odd")
    assert sum(i.attrs.get("pred") == "ne" for i in function.instructions) == 1


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize(("warp_size", "threads"), WARPS)
def test_ballot(warp_size: int, threads: int, branch: str) -> None:
    code = "%c = icmp ugt %x, i32 2 : i1\n%r = ballot %c, i32 -1 : i32"
    check(
        code,
        lambda x, s, active, lane: sum(1 << i for i in active if x[i] > 2),
        warp_size,
        threads,
        branch,
    )
    check(
        "%r = ballot true, i32 5 : i32",
        lambda x, s, active, lane: sum(1 << i for i in active) & 5,
        warp_size,
        threads,
        branch,
    )


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_mask_of_0_names_all_lanes(branch: str) -> None:
    for mask in ("i32 0", "%z"):
        zero = "%z = and %u, i32 4 : i32\n"
        check(
            f"{zero}%r = ballot true, {mask} : i32",
            lambda x, s, active, lane: sum(1 << i for i in active),
            8,
            11,
            branch,
        )
        check(
            f"{zero}%r = redux add %x, {mask} : i32", lambda x, s, a, i: sum(x[j] for j in a), 8, 11, branch
        )
        code = f"{zero}%k = xor %lane, i32 1 : i32\n%r = shuffle %x, %k, {mask} : i32"
        check(code, reads(lambda lane: lane ^ 1, 8), 8, 11, branch)


def test_a_reduction_leaves_out_lanes_that_its_mask_does_not_name() -> None:
    code = "%r = redux xor %x, i32 -3 : i32"
    check(
        code,
        lambda x, s, active, lane: fold(lambda a, b: a ^ b, [0, *(x[i] for i in active if i != 1)]),
        4,
        11,
        "odd",
    )


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize(("warp_size", "threads"), WARPS)
def test_match(warp_size: int, threads: int, branch: str) -> None:
    check(
        "%r = match %x, i32 -1 : i32",
        lambda x, s, active, lane: sum(1 << i for i in active if x[i] == x[lane]),
        warp_size,
        threads,
        branch,
        seed=3,
    )


def signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def fold(function: Callable[[int, int], int], numbers: list[int]) -> int:
    result = numbers[0]
    for number in numbers[1:]:
        result = function(result, number)
    return result


REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "add": sum,
    "min_s": lambda numbers: min(map(signed, numbers)),
    "max_s": lambda numbers: max(map(signed, numbers)),
    "min_u": min,
    "max_u": max,
    "and": lambda numbers: fold(lambda a, b: a & b, numbers),
    "or": lambda numbers: fold(lambda a, b: a | b, numbers),
    "xor": lambda numbers: fold(lambda a, b: a ^ b, numbers),
}


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_redux(kind: str, branch: str) -> None:
    combine = REDUCTIONS[kind]
    check(
        f"%r = redux {kind} %x, i32 -1 : i32",
        lambda x, s, active, lane: combine([x[i] for i in active]),
        4,
        10,
        branch,
    )


@pytest.mark.parametrize(("warp_size", "threads"), WARPS)
def test_groups_of_lanes_that_name_their_own_masks_reduce_apart(warp_size: int, threads: int) -> None:
    code = "%k = and %x, i32 3 : i32\n%m = match %k, i32 -1 : i32\n%r = redux add %x, %m : i32"
    check(
        code,
        lambda x, s, active, lane: sum(x[i] for i in active if x[i] & 3 == x[lane] & 3),
        warp_size,
        threads,
        "all",
    )


@pytest.mark.parametrize(
    ("kind", "combine"), [("popc", sum), ("and", lambda bits: int(all(bits))), ("or", lambda b: int(any(b)))]
)
@pytest.mark.parametrize("bound", [0, 3, MASK])
def test_barrier_reduce(kind: str, combine: Callable[[list[bool]], int], bound: int) -> None:
    text = KERNEL.replace("BRANCH", "br work")
    code = f"%c = icmp ule %x, i32 {signed(bound)} : i1\n%r = barrier_reduce {kind} %c : i32"
    function = lowered(text.replace("CODE", code), 4, 11)
    values = list(range(11))
    out = packed([7] * 11)
    interpret(function, [packed(values), packed(values), out, 0], block=(11, 1, 1), warp_size=4)
    assert words(out) == [combine([value <= bound for value in values])] * 11


def test_a_barrier_reduce_is_missed_as_a_barrier_is() -> None:
    text = KERNEL.replace("BRANCH", "condbr %odd, work, more").replace(
        "store i32 %to, %r\n  br done", "br more"
    )
    text = text.replace("CODE", "%r = barrier_reduce popc %odd : i32")
    text = text.replace("done:", "more:\n  barrier\n  br done\ndone:")
    function = lowered(text, 4, 4)
    interpret(function, [packed([1] * 4), packed([0] * 4), packed([0] * 4), 0], block=(4, 1, 1))
    with pytest.raises(Fault) as caught:
        interpret(function, [packed([1, 0, 1, 1]), packed([0] * 4), packed([0] * 4), 0], block=(4, 1, 1))
    assert caught.value.kind == "barrier"


def scratch_bytes(code: str, attributes: str = "", threads: int = 128) -> int:
    text = KERNEL.replace("BRANCH", "br work").replace("CODE", code).replace(") {", f") {attributes} {{", 1)
    [array] = lowered(text, 32, threads).shared
    return array.size


def test_the_scratch_array_has_a_word_for_each_warp_or_thread() -> None:
    ballot, shuffle = "%r = ballot %odd, i32 -1 : i32", "%r = shuffle %x, %s, i32 -1 : i32"
    assert (scratch_bytes(ballot), scratch_bytes(shuffle)) == (16, 512)
    assert scratch_bytes(shuffle, threads=70) == 4 * 96
    assert scratch_bytes(shuffle, "attributes {max_threads: 33}") == 256


def test_what_a_word_cannot_hold_is_refused() -> None:
    text = KERNEL.replace("BRANCH", "br work")
    wide = "%y = zext %x : i64\n%z = shuffle %y, %s, i32 -1 : i64\n%r = trunc %z : i32"
    with pytest.raises(PassError, match="'shuffle' of i64"):
        lowered(text.replace("CODE", wide), 32, 32)


@pytest.mark.parametrize("seed", range(24))
def test_random_kernels_in_lockstep_mean_the_same_without_exchanges_and_turns(seed: int) -> None:
    warp_size, threads = 4, 7
    function = random_kernel(seed, 3, extras=("exchange", "atomic"))
    Linearize(warp_size=warp_size).run(function)
    lowered = parse_function(print_function(function))
    LowerExchanges(warp_size, threads).run(lowered)
    SerialiseAtomics(warp_size, threads).run(lowered)
    verify(lowered)
    assert not [i for i in lowered.instructions if i.op in ("shuffle", "ballot", "match", "redux", "cmpxchg")]
    results = []
    for kernel in (function, lowered):
        chance = random.Random(seed)
        data = packed([chance.randrange(-5, 9) for _ in range(threads)])
        out = bytearray(4 * SITES * threads)
        interpret(kernel, [data, out, seed % 4], (2, 1, 1), (threads, 1, 1), warp_size)
        results.append(bytes(out))
    assert results[0] == results[1]
