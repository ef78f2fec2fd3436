"""Generators of pseudo-random numbers, and shuffles and samples that they drive."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from kernels.table import Array, Kernel, draw, i32, ints, junk, kernel, launch, mixed, put, u16, u32, u64

_MASK = 2**32 - 1
_MASK64 = 2**64 - 1


def _xorshift32(states: Array, out: Array, draws: int) -> None:
    for t, x in enumerate(ints(states)):
        for i in range(draws):
            x ^= x << 13 & _MASK
            x ^= x >> 17
            x ^= x << 5 & _MASK
            out[t * draws + i] = x
        states[t] = x


def _xorshift128plus(states: Array, out: Array, draws: int) -> None:
    threads = len(states) // 2
    for t in range(threads):
        a, b = ints(states[2 * t : 2 * t + 2])
        for i in range(draws):
            a ^= a << 23 & _MASK64
            a, b = b, a ^ b ^ a >> 18 ^ b >> 5
            out[i * threads + t] = (a + b) & _MASK64
        states[2 * t : 2 * t + 2] = a, b


def _splitmix64(seed: int) -> Iterator[int]:
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & _MASK64
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & _MASK64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK64
        yield z ^ z >> 31


def _rotl64(x: int, k: int) -> int:
    return (x << k | x >> 64 - k) & _MASK64


def _xoshiro256(seeds: Array, out: Array, draws: int) -> None:
    for t, seed in enumerate(ints(seeds)):
        fresh = _splitmix64(seed)
        a, b, c, d = (next(fresh) for _ in range(4))
        for i in range(draws):
            out[t * draws + i] = _rotl64(b * 5 & _MASK64, 7) * 9 & _MASK64
            a, b, c, d = a ^ b ^ d, a ^ b ^ c, a ^ c ^ b << 17 & _MASK64, _rotl64(b ^ d, 45)


def _pcg32(seed: int, sequence: int) -> Iterator[int]:
    increment = 2 * sequence + 1
    state = ((seed + increment) * 6364136223846793005 + increment) & _MASK64
    while True:
        word, turn = (state >> 18 ^ state) >> 27 & _MASK, state >> 59
        yield (word >> turn | word << 32 - turn) & _MASK
        state = (state * 6364136223846793005 + increment) & _MASK64


def _raw_and_dice(seed: int, raw: Array, dice: Array, draws: int, bound: int) -> None:
    for first in range(0, len(raw), draws):
        numbers = _pcg32(seed, first // draws)
        raw[first : first + draws] = [next(numbers) for _ in range(draws)]
        fair = (number for number in numbers if number >= 2**32 % bound)
        dice[first : first + draws] = [next(fair) % bound for _ in range(draws)]


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox 4x32 with ten rounds (Salmon et al., 2011)."""
    for n in range(10):
        k0, k1 = ((k + n * w) & _MASK for k, w in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True))
        high0, low0 = divmod(0xD2511F53 * counter[0], 2**32)
        high1, low1 = divmod(0xCD9E8D57 * counter[2], 2**32)
        counter = (high1 ^ counter[1] ^ k0, low1, high0 ^ counter[3] ^ k1, low0)
    return counter


def _philox(out: Array, offset: int, stream: int, key0: int, key1: int) -> None:
    for i in range(len(out) // 4):
        high, low = divmod(offset + i, 2**32)
        put(out, philox4x32((low, high, stream, 0), (key0, key1)), at=4 * i)


def _mt19937(state: Array, out: Array, n: int) -> None:
    generator = np.random.MT19937()
    generator.state = {"bit_generator": "MT19937", "state": {"key": state, "pos": 624}}
    out[:n] = generator.random_raw(n)


def _mt_state(seed: int) -> Array:
    """The 624 words of a generator that numpy has seeded."""
    return np.array(np.random.MT19937(seed).state["state"]["key"], dtype=np.uint32)


def _lcg(seed: int, distance: int, out: Array, draws: int) -> None:
    threads = len(out) // draws
    x, sequence = seed, []
    for _ in range(distance * threads + draws):
        sequence.append(x >> 16)
        x = (1664525 * x + 1013904223) & _MASK
    put(out, [sequence[t * distance + i] for t in range(threads) for i in range(draws)])


def _lfsr(starts: Array, taps: Array, period: Array, half: Array, limit: int) -> None:
    for t, (start, mask) in enumerate(zip(ints(starts), ints(taps), strict=True)):
        states = [start]
        while len(states) < 2 or (states[-1] != start and len(states) <= limit):
            states.append(states[-1] >> 1 ^ (mask if states[-1] % 2 else 0))
        period[t] = len(states) - 1
        state = states[-1]
        for _ in range(int(period[t]) // 2):
            state = state >> 1 ^ (mask if state % 2 else 0)
        half[t] = state


def _shuffle(seeds: Array, decks: Array, fixed: Array, cycles: Array) -> None:
    for t, state in enumerate(ints(seeds)):
        deck = list(range(13))
        for i in range(12, 0, -1):
            state = (state * 214013 + 2531011) & _MASK
            j = (state >> 16) % 2**15 % (i + 1)
            deck[i], deck[j] = deck[j], deck[i]
        decks[13 * t : 13 * t + 13] = deck
        fixed[t] = sum(card == i for i, card in enumerate(deck))
        left = set(range(13))
        cycles[t] = 0
        while left:
            cycles[t] += 1
            card = min(left)
            while card in left:
                left.remove(card)
                card = deck[card]


def _quarter_circle(step_x: int, step_y: int, points: int, inside: Array) -> None:
    i = np.arange(points * len(inside), dtype=np.uint32)
    x, y = ((np.uint32(step) * i >> 8).astype(np.uint64) for step in (step_x, step_y))
    inside[:] = (x * x + y * y < 2**48).reshape(len(inside), points).sum(axis=1)


def _reservoir(stream: Array, length: int, salt: int, sample: Array) -> None:
    for t, items in enumerate(stream.reshape(-1, length).tolist()):
        kept, x, weyl = items[:3], 0, 0
        for i in range(3, length):
            weyl = (weyl + ((salt + 2 * t) | 1)) & _MASK64
            x = _rotl64((x * x + weyl) & _MASK64, 32)
            j = x % 2**32 % (i + 1)
            if j < 3:
                kept[j] = items[i]
        sample[3 * t : 3 * t + 3] = kept


_row = functools.partial(kernel, "random")

KERNELS: tuple[Kernel, ...] = (
    _row("xorshift32", _xorshift32,
        launch(1, 1, u32(1), junk(2, np.uint32), 2),
        launch(2, 8, mixed(1, 16, np.uint32) | 1, junk(64, np.uint32), 4)),
    _row("xorshift128plus", _xorshift128plus,
        launch(1, 1, u64(1, 2), junk(2, np.uint64), 2),
        launch(1, 8, draw(2, 16, dtype=np.uint64), junk(24, np.uint64), 3)),
    _row("xoshiro256", _xoshiro256,
        launch(1, 1, u64(42), junk(2, np.uint64), 2),
        launch(1, 6, draw(3, 6, dtype=np.uint64), junk(30, np.uint64), 5)),
    _row("pcg32", _raw_and_dice,
        launch(1, 1, 42, junk(2, np.uint32), junk(2, np.uint32), 2, 6),
        launch(1, 4, 2**40 + 9, junk(16, np.uint32), junk(16, np.uint32), 4, 3 * 2**30)),
    _row("philox4x32", _philox,
        launch(1, 1, junk(4, np.uint32), 0, 0, 0, 0),
        launch(2, 8, junk(64, np.uint32), 2**32 - 5, 77, 0xA4093822, 0x299F31D0)),
    _row("mersenne_twister", _mt19937,
        launch(1, 1, _mt_state(1), junk(1, np.uint32), 1),
        launch(2, 32, _mt_state(5489), junk(50, np.uint32), 50)),
    _row("lcg_jump", _lcg,
        launch(1, 2, 1, 3, junk(2, np.uint32), 1),
        launch(1, 12, 20240229, 777, junk(36, np.uint32), 3)),
    _row("lfsr_galois", _lfsr,
        launch(1, 1, u16(1), u16(12), junk(1), junk(1, np.uint16), 50),
        launch(1, 4, u16(1, 0xACE1, 5, 300), u16(0xB8, 0xB400, 0x14, 0x110),
            junk(4), junk(4, np.uint16), 300)),
    _row("shuffle_cards", _shuffle,
        launch(1, 1, u32(7), junk(13, np.uint8), junk(1), junk(1)),
        launch(1, 8, draw(4, 8, dtype=np.uint32), junk(104, np.uint8), junk(8), junk(8))),
    _row("monte_carlo_pi", _quarter_circle,
        launch(1, 2, 2654435769, 1640531527, 8, junk(1, np.uint32)),
        launch(3, 16, 2654435769, 3449720151, 80, junk(3, np.uint32))),
    _row("reservoir_sample", _reservoir,
        launch(1, 1, i32(1, 2, 3, 4, 5), 5, 9, junk(3)),
        launch(2, 4, draw(5, 160), 20, 0xB5AD4ECEDA1CE2A9, junk(24))),
)  # fmt: skip
