"""Puzzles, boards as bits, searches with stacks, rules of games."""

from __future__ import annotations

import collections
import functools
import itertools

import numpy as np

from kernels.table import (
    Array,
    Kernel,
    draw,
    i32,
    ints,
    junk,
    kernel,
    launch,
    put,
    rows_of,
    u8,
    u16,
    u64,
    zeros,
)

Square = tuple[int, int]
_KNIGHT = tuple((dx, dy) for dx in (-2, -1, 1, 2) for dy in (-2, -1, 1, 2) if abs(dx) != abs(dy))
_KING = tuple((dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy)


def _queens(n: int, solutions: Array) -> None:
    boards = itertools.permutations(range(n))
    solutions[0] += sum(
        len({c + r for r, c in enumerate(board)}) == len({c - r for r, c in enumerate(board)}) == n
        for board in boards
    )


def _attacks(boards: Array, n: int, attacks: Array, solved: Array) -> None:
    for t, board in enumerate(rows_of(boards, n)):
        lines = [collections.Counter(f(r, c) for r, c in enumerate(board)) for f in _LINES]
        attacks[t] = sum(k * (k - 1) // 2 for line in lines for k in line.values())
        solved[t] = attacks[t] == 0


_LINES = (lambda r, c: c, lambda r, c: r + c, lambda r, c: r - c)


def _walks(walks: Array, side: int, length: int) -> None:
    """Powers of the adjacency matrix of the knight's graph."""
    squares = list(itertools.product(range(side), repeat=2))
    steps = np.array([[(u - x, v - y) in _KNIGHT for y, x in squares] for v, u in squares], dtype=object)
    ways = np.array([1] + [0] * (side * side - 1), dtype=object)
    for _ in range(length):
        ways = steps.astype(int).astype(object).dot(ways)
    put(walks, [int(count) for count in ways])


def _tours(tours: Array) -> None:
    def paths(square: Square, seen: frozenset[Square]) -> int:
        if len(seen) == 12:
            return 1
        targets = [(square[0] + dx, square[1] + dy) for dx, dy in _KNIGHT]
        fresh = [t for t in targets if t not in seen and t[0] in range(4) and t[1] in range(3)]
        return sum(paths(target, seen | {target}) for target in fresh)

    tours[:] = [paths((i % 4, i // 4), frozenset([(i % 4, i // 4)])) for i in range(len(tours))]


def _sudoku(boards: Array, broken: Array) -> None:
    for b, board in enumerate(boards.reshape(-1, 9, 9)):
        boxes = board.reshape(3, 3, 3, 3).swapaxes(1, 2).reshape(9, 9)
        units = [*board, *board.T, *boxes]
        broken[b] |= np.uint32(sum(1 << k for k, unit in enumerate(units) if set(unit) != set(range(1, 10))))


def _solved_board() -> Array:
    return u8((3 * (r % 3) + r // 3 + c) % 9 + 1 for r in range(9) for c in range(9))


def _spoiled_board() -> Array:
    board = _solved_board()
    board[[10, 11]] = board[[11, 10]]
    board[80] = 0
    return board


def _squares(board: int) -> set[Square]:
    return {(k % 8, k // 8) for k in range(64) if board >> k & 1}


def _board(squares: set[Square]) -> int:
    return sum(1 << x + 8 * y for x, y in squares if x in range(8) and y in range(8))


def _leaps(pieces: int, steps: tuple[Square, ...]) -> int:
    return _board({(x + dx, y + dy) for x, y in _squares(pieces) for dx, dy in steps})


def _leapers(pieces: Array, by_knights: Array, by_kings: Array, common: Array) -> None:
    put(by_knights, [_leaps(board, _KNIGHT) for board in ints(pieces)])
    put(by_kings, [_leaps(board, _KING) for board in ints(pieces)])
    common[:] = [(a & b).bit_count() for a, b in zip(ints(by_knights), ints(by_kings), strict=True)]


def _slide(square: Square, blockers: set[Square], steps: tuple[Square, ...]) -> int:
    reached = set()
    for dx, dy in steps:
        x, y = square[0] + dx, square[1] + dy
        while x in range(8) and y in range(8):
            reached.add((x, y))
            if (x, y) in blockers:
                break
            x, y = x + dx, y + dy
    return _board(reached)


def _sliders(squares: Array, occupied: Array, rook: Array, bishop: Array) -> None:
    for i, (square, board) in enumerate(zip(ints(squares), ints(occupied), strict=True)):
        place = (square % 8, square // 8)
        blockers = _squares(board) - {place}
        put(rook, [_slide(place, blockers, tuple(s for s in _KING if 0 in s))], at=i)
        put(bishop, [_slide(place, blockers, tuple(s for s in _KING if 0 not in s))], at=i)


def _reversi(boards: Array, legal: Array, mobility: Array) -> None:
    for i, (own, other) in enumerate(rows_of(boards, 2)):
        mine, theirs = _squares(own), _squares(other)
        moves = set()
        for (x, y), (dx, dy) in itertools.product(mine, _KING):
            k = 1
            while (x + k * dx, y + k * dy) in theirs:
                k += 1
            if k > 1:
                moves.add((x + k * dx, y + k * dy))
        put(legal, [_board(moves - mine - theirs)], at=i)
        mobility[i] = int(legal[i]).bit_count()


def _four(stones: set[Square]) -> bool:
    steps = ((1, 0), (0, 1), (1, 1), (1, -1))
    return any(
        all((x + k * dx, y + k * dy) in stones for k in range(4)) for x, y in stones for dx, dy in steps
    )


def _connect(boards: Array, winner: Array, columns: Array) -> None:
    for i, (first, second) in enumerate(rows_of(boards, 2)):
        mine, theirs = ({(k // 7, k % 7) for k in range(49) if b >> k & 1} for b in (first, second))
        winner[i] = 1 if _four(mine) else -1 if _four(theirs) else 0
        heights = [sum(x == c for x, _ in mine | theirs) for c in range(7)]
        columns[i] = sum(1 << c for c, h in enumerate(heights) if h < 6 and _four(mine | {(c, h)}))


def _connect_board(moves: str) -> list[int]:
    """Both players' stones after moves into columns, which they take in turn."""
    stones, heights = [0, 0], [0] * 7
    for turn, column in enumerate(map(int, moves)):
        stones[turn % 2] |= 1 << 7 * column + heights[column]
        heights[column] += 1
    return stones


_TRIPLES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@functools.cache
def _minimax(board: tuple[int, ...]) -> int:
    """The value for the player to move; crosses (1) begin."""
    player = 1 if board.count(1) == board.count(2) else 2
    for a, b, c in _TRIPLES:
        if board[a] and board[a] == board[b] == board[c]:
            return 1 if board[a] == player else -1
    moves = [(*board[:k], player, *board[k + 1 :]) for k in range(9) if board[k] == 0]
    return max((-_minimax(move) for move in moves), default=0)


def _tic_tac_toe(positions: Array, value: Array) -> None:
    value[:] = [_minimax(tuple(row)) for row in rows_of(positions, 9)]


def _grundy(moves: Array, n_moves: int, heap: int, grundy: Array, games: Array, wins: Array) -> None:
    @functools.cache
    def number(size: int) -> int:
        after = {number(size - move) for move in ints(moves[:n_moves]) if move <= size}
        return next(k for k in itertools.count() if k not in after)

    @functools.cache
    def wins_from(heaps: tuple[int, ...]) -> bool:
        """Whether some move leaves a game that the other loses."""
        after = (
            tuple(sorted((*heaps[:k], size - move, *heaps[k + 1 :])))
            for k, size in enumerate(heaps)
            for move in ints(moves[:n_moves])
            if move <= size
        )
        return any(not wins_from(game) for game in after)

    grundy[:heap] = [number(size) for size in range(heap)]
    wins[:] = [wins_from(tuple(sorted(game))) for game in rows_of(games, 4)]


def _poker(cards: Array, classes: Array, hands: int) -> None:
    straights = [set(range(low, low + 5)) for low in range(9)] + [{12, 0, 1, 2, 3}]
    for i, hand in enumerate(rows_of(cards, 5)[:hands]):
        counts = sorted(collections.Counter(card % 13 for card in hand).values(), reverse=True)
        straight = {card % 13 for card in hand} in straights
        flush = len({card // 13 for card in hand}) == 1
        groups = {(4, 1): 7, (3, 2): 6, (3, 1, 1): 3, (2, 2, 1): 2, (2, 1, 1, 1): 1}
        classes[i] = (
            8 if straight and flush else 5 if flush else 4 if straight else groups.get(tuple(counts), 0)
        )


def _hand(text: str) -> list[int]:
    """Cards such as `As Td`: a rank, a suit."""
    return ["23456789TJQKA".index(card[0]) + 13 * "cdhs".index(card[1]) for card in text.split()]


_HANDS = (
    *("As Ks Qs Js Ts", "2c 3c 4c 5c Ac", "9c 9d 9h 9s 2c", "Kc Kd Kh 2s 2c"),
    *("2h 9h Jh Qh 4h", "6c 7d 8c 9c Tc", "Ac 2d 3h 4s 5c", "7c 7d 7h Ks 2c"),
    *("7c 7d Kh Ks 2c", "7c 7d Jh Ks 2c", "7c 8d Jh Ks 2c", "Qc Kd Ah 2s 3c"),
)


def _mastermind(codes: Array, scores: Array, n: int) -> None:
    pegs = [[code >> 4 * k & 7 for k in range(4)] for code in ints(codes[:n])]
    for row, code in enumerate(pegs):
        for column, guess in enumerate(pegs):
            exact = sum(x == y for x, y in zip(code, guess, strict=True))
            common = (collections.Counter(code) & collections.Counter(guess)).total()
            at = 2 * (row * n + column)
            scores[at : at + 2] = exact, common - exact


def _ant(boards: Array, places: Array, steps: int) -> None:
    """Headings 0 to 3 are up, right, down, left; right on a white cell, left on a black one."""
    for b, (x, y, heading) in enumerate(rows_of(places, 3)):
        black = {(k % 32, k // 32) for k in range(512) if boards[16 * b + k // 32] >> k % 32 & 1}
        for _ in range(steps):
            heading = (heading + (-1 if (x, y) in black else 1)) % 4
            black ^= {(x, y)}
            dx, dy = ((0, -1), (1, 0), (0, 1), (-1, 0))[heading]
            x, y = (x + dx) % 32, (y + dy) % 16
        places[3 * b : 3 * b + 3] = x, y, heading
        boards[16 * b : 16 * b + 16] = [sum(1 << i for i, j in black if j == row) for row in range(16)]


_POSITIONS = u8(
    [
        *(1, 2, 1, 2, 1, 0, 0, 0, 0),
        *(1, 1, 0, 2, 2, 1, 0, 0, 0),
        *(1, 2, 0, 0, 1, 1, 0, 0, 2),
        *(1, 1, 1, 2, 2, 0, 0, 0, 0),
        *(1, 2, 1, 1, 2, 2, 2, 1, 1),
        *(2, 1, 0, 0, 1, 0, 2, 1, 0),
    ]
)
_OPENING = (2**28 + 2**35, 2**27 + 2**36)
_CONNECT = [
    stones for moves in ("3324", "01010", "0101010", "00000012233") for stones in _connect_board(moves)
]


def _disjoint(seed: int, count: int) -> list[int]:
    """Boards of two players in turn, half of the squares taken."""
    words = ints(draw(seed, 2 * count, dtype=np.uint64))
    return [word for a, b in zip(words[::2], words[1::2], strict=True) for word in (a & b, a & ~b)]


_row = functools.partial(kernel, "games")

KERNELS: tuple[Kernel, ...] = (
    _row("n_queens_bits", _queens,
        launch(4, 4, 4, zeros(1, np.uint32)), launch(6, 6, 6, np.array([10], np.uint32)),
        launch(7, 7, 7, zeros(1, np.uint32))),
    _row("n_queens_boards", _attacks,
        launch(1, 2, np.array([1, 3, 0, 2, 0, 1, 2, 3], np.int8), 4, junk(2), junk(2, np.uint8)),
        launch(2, 8, draw(2, 128, 0, 8, np.int8), 8, junk(16), junk(16, np.uint8))),
    _row("knight_paths", _walks,
        launch(1, 9, junk(9, np.uint32), 3, 2), launch(1, 64, junk(64, np.uint32), 8, 7)),
    _row("knights_tour", _tours, launch(1, 12, junk(12))),
    _row("sudoku_check", _sudoku,
        launch(1, 27, _spoiled_board(), zeros(1, np.uint32)),
        launch(2, 27, np.concatenate([_solved_board(), _spoiled_board()]), zeros(2, np.uint32))),
    _row("knight_attacks", _leapers,
        launch(1, 2, u64(1, 2**27), junk(2, np.uint64), junk(2, np.uint64), junk(2)),
        launch(1, 12, draw(3, 12, dtype=np.uint64) & draw(4, 12, dtype=np.uint64) & draw(5, 12,
            dtype=np.uint64),
            junk(12, np.uint64), junk(12, np.uint64), junk(12))),
    _row("rook_attacks", _sliders,
        launch(1, 2, u8([0, 27]), u64(0, 2**28 + 2**35), junk(2, np.uint64), junk(2, np.uint64)),
        launch(1, 16, draw(6, 16, 0, 64, np.uint8), draw(7, 16, dtype=np.uint64) & draw(8, 16,
            dtype=np.uint64),
            junk(16, np.uint64), junk(16, np.uint64))),
    _row("reversi_moves", _reversi,
        launch(1, 1, u64(*_OPENING), junk(1, np.uint64), junk(1)),
        launch(1, 6, u64(*_disjoint(1, 6)), junk(6, np.uint64), junk(6))),
    _row("connect_four", _connect, launch(1, 4, u64(*_CONNECT), junk(4, np.int8), junk(4, np.uint32))),
    _row("tic_tac_toe", _tic_tac_toe,
        launch(1, 1, _POSITIONS[27:36].copy(), junk(1, np.int8)), launch(1, 6, _POSITIONS, junk(6, np.int8))),
    _row("nim_grundy", _grundy,
        launch(1, 1, u8([1, 2]), 2, 6, junk(6, np.uint8), u8([1, 2, 3, 0]), junk(1, np.uint8)),
        launch(1, 12, u8([1, 3, 4]), 3, 30, junk(30, np.uint8), draw(9, 48, 0, 9, np.uint8), junk(12,
            np.uint8))),
    _row("poker_hands", _poker,
        launch(1, 1, u8(_hand("2c 2d 3c 3d 4c")), junk(1), 1),
        launch(2, 8, u8(itertools.chain(*map(_hand, _HANDS))), junk(12), 12)),
    _row("mastermind", _mastermind,
        launch(1, (2, 2, 1), u16(0x1123, 0x3112), junk(8, np.uint8), 2),
        launch((2, 2, 1), (6, 6, 1), draw(10, 11, dtype=np.uint16) & np.uint16(0x3333), junk(242, np.uint8),
            11)),
    _row("langtons_ant", _ant,
        launch(1, 16, zeros(16, np.uint32), i32(5, 5, 0), 3),
        launch(2, 32, draw(11, 32, dtype=np.uint32), i32(0, 0, 1, 16, 8, 2), 60)),
)  # fmt: skip
