"""Whether a case can be, the definitions of its variables taken into account.

`Cone` knows of two variables at most whether they exclude or imply each other. Where that is not enough, the
terms that make up a variable join the case, and of their variables in turn, some half layers deep. A case is
refuted by propagating bounds through these sums and splitting variables: a constraint solver for finite
domains, with a limit after which nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qgpu.backends.prover.facts import Facts, Term, bit_set, members

CASES = 400
"""Cases after which nothing is refuted."""

DEPTHS = (0, 1, 2)
"""How deep definitions are looked at, one after the other."""

Domain = tuple[list[int], list[int]]
"""The lowest and the highest n of each variable of a search."""


@dataclass(frozen=True, eq=False)
class _Part:
    """A term of a sum over a search's own numbering of variables."""

    variables: tuple[int, ...]
    weights: tuple[int, ...]
    first: int
    table: list[int]


@dataclass(frozen=True, eq=False)
class _Sum:
    """low <= sum of parts <= high."""

    parts: list[_Part]
    low: float
    high: float


class Search:
    """A case: sums that must lie in a range, and the definitions of the variables that they read.

    Args:
        facts: what is known.
        sums: terms, and the range of their sum.
        depth: how deep definitions are looked at.
        roots: more variables whose definitions are looked at.
    """

    def __init__(
        self,
        facts: Facts,
        sums: Sequence[tuple[Sequence[Term], float, float]] = (),
        depth: int = 1,
        roots: Iterable[int] = (),
    ) -> None:
        self.facts = facts
        scope = dict.fromkeys(v for terms, _, _ in sums for t in terms for v in t.variables)
        scope |= dict.fromkeys(roots)
        defined: list[int] = []
        layer = list(scope)
        for _ in range(depth):
            new: dict[int, None] = {}
            for variable in layer:
                terms = facts.definition[variable]
                if terms is None:
                    continue
                defined.append(variable)
                new |= dict.fromkeys(v for t in terms for v in t.variables if v not in scope)
            scope |= new
            layer = list(new)
        self.variables = sorted(scope)
        self.index = {variable: i for i, variable in enumerate(self.variables)}
        self.sums = [_Sum([self._part(t) for t in terms], low, high) for terms, low, high in sums]
        self.sums += [self._definition(variable) for variable in defined]
        self.using: list[list[int]] = [[] for _ in self.variables]
        for number, one in enumerate(self.sums):
            for i in {i for part in one.parts for i in part.variables}:
                self.using[i].append(number)
        self._relations()
        self.cases, self.limit = 0, CASES

    def _part(self, term: Term) -> _Part:
        table = [int(x) for x in term.table]
        return _Part(tuple(self.index[v] for v in term.variables), term.weights, term.first, table)

    def _definition(self, variable: int) -> _Sum:
        parts = [self._part(t) for t in self.facts.definition[variable] or ()]
        own = [-n for n in range(self.facts.count[variable] + 1)]
        return _Sum([*parts, _Part((self.index[variable],), (1,), 0, own)], 0, 0)

    def _relations(self) -> None:
        facts, index = self.facts, self.index
        within = bit_set(self.variables)
        excludes: list[set[int]] = [set() for _ in self.variables]
        self.implies: list[list[int]] = []
        self.implied: list[list[int]] = [[] for _ in self.variables]
        for i, variable in enumerate(self.variables):
            for other in members(facts.excludes[variable] & within):
                excludes[i].add(index[other])
                excludes[index[other]].add(i)
            implied = [index[v] for v in members(facts.implies[variable] & within)]
            self.implies.append(implied)
            for other in implied:
                self.implied[other].append(i)
        self.excludes = [sorted(others) for others in excludes]
        self.nogoods = [
            [(index[a], index[b]) for a, b in facts.nogoods.get(v, ()) if a in index and b in index]
            for v in self.variables
        ]

    def start(self, low: dict[int, int] | None = None, high: dict[int, int] | None = None) -> Domain | None:
        """The case in which some variables are bounded, all consequences drawn; None where it cannot be."""
        lows, highs = [0] * len(self.variables), [self.facts.count[v] for v in self.variables]
        for variable, bound in (low or {}).items():
            if variable in self.index:
                lows[self.index[variable]] = bound
        for variable, bound in (high or {}).items():
            if variable in self.index:
                highs[self.index[variable]] = bound
        domain = lows, highs
        return domain if self._propagate(domain, range(len(self.sums)), range(len(lows))) else None

    def refuted(self, domain: Domain | None, cases: int = CASES) -> bool:
        """Whether no case of a domain can be; False also where that is not known."""
        self.cases, self.limit = 0, cases
        return domain is None or self._none(domain) is True

    def fixed(self, domain: Domain, variables: Iterable[int]) -> Domain:
        """A domain in which bits are set of which the other value cannot be."""
        lows, highs = domain[0].copy(), domain[1].copy()
        for variable in variables:
            i = self.index.get(variable)
            if i is None or lows[i] == highs[i] or highs[i] != 1:
                continue
            for value in (0, 1):
                made = lows.copy(), highs.copy()
                made[0][i] = made[1][i] = value
                if not self._propagate(made, self.using[i], [i]):
                    lows[i] = highs[i] = 1 - value
                    self._propagate((lows, highs), self.using[i], [i])
                    break
        return lows, highs

    def _none(self, domain: Domain) -> bool:
        self.cases += 1
        if self.cases > self.limit:
            return False
        choice = self._choice(domain)
        if choice is None:
            return False
        lows, highs = domain
        middle = (lows[choice] + highs[choice]) // 2
        for low, high in ((middle + 1, highs[choice]), (lows[choice], middle)):
            made = lows.copy(), highs.copy()
            made[0][choice], made[1][choice] = low, high
            if self._propagate(made, self.using[choice], [choice]) and not self._none(made):
                return False
        return True

    def _choice(self, domain: Domain) -> int | None:
        """A variable of the first sum that is not certain to be in its range; None where all are."""
        for one in self.sums:
            bounds = [self._part_bounds(part, domain) for part in one.parts]
            if sum(b[0] for b in bounds) >= one.low and sum(b[1] for b in bounds) <= one.high:
                continue
            own = one.parts[-1]
            if one.high == one.low and len(own.variables) == 1 and bounds[-1][0] != bounds[-1][1]:
                continue
            found = self._most_used(one, bounds, domain)
            if found is not None:
                return found
        return None

    def _most_used(self, one: _Sum, bounds: list[tuple[int, int]], domain: Domain) -> int | None:
        lows, highs = domain
        uses: dict[int, int] = {}
        for part, (least, most) in zip(one.parts, bounds, strict=True):
            if least == most:
                continue
            for i in part.variables:
                if lows[i] != highs[i]:
                    uses[i] = uses.get(i, 0) + 1
        return max(uses, key=lambda i: uses[i]) if uses else None

    @staticmethod
    def _ends(part: _Part, domain: Domain) -> tuple[int, int]:
        lows, highs = domain
        low = high = 0
        for i, w in zip(part.variables, part.weights, strict=True):
            if w > 0:
                low += w * lows[i]
                high += w * highs[i]
            else:
                low += w * highs[i]
                high += w * lows[i]
        return low, high

    def _part_bounds(self, part: _Part, domain: Domain) -> tuple[int, int]:
        low, high = self._ends(part, domain)
        values = part.table[low - part.first : high - part.first + 1]
        return min(values), max(values)

    def bounds(self, term: Term, domain: Domain) -> tuple[int, int]:
        """What a term, whose variables are all among the search's, can be in a case."""
        return self._part_bounds(self._part(term), domain)

    def holds(self, variable: int, domain: Domain) -> tuple[int, int]:
        """Bounds of a variable in a case."""
        if variable not in self.index:
            return 0, self.facts.count[variable]
        i = self.index[variable]
        return domain[0][i], domain[1][i]

    def _propagate(self, domain: Domain, sums: Iterable[int], changed: Iterable[int]) -> bool:
        pending = dict.fromkeys(sums)
        queue = list(changed)
        while True:
            if not self._related(domain, queue, pending):
                return False
            if not pending:
                return True
            number = next(iter(pending))
            del pending[number]
            queue = []
            if not self._tighten(self.sums[number], domain, queue):
                return False
            for i in queue:
                pending |= dict.fromkeys(self.using[i])

    def _related(self, domain: Domain, queue: list[int], pending: dict[int, None]) -> bool:
        """Draw what exclusions and implications say of changed variables."""
        lows, highs = domain
        seen = 0
        while seen < len(queue):
            i = queue[seen]
            seen += 1
            if lows[i] > highs[i]:
                return False
            zero, one = self._consequences(i, domain)
            for j in zero:
                highs[j] = 0
            for j in one:
                lows[j] = 1
            for j in (*zero, *one):
                queue.append(j)
                pending |= dict.fromkeys(self.using[j])
        return True

    def _consequences(self, i: int, domain: Domain) -> tuple[list[int], list[int]]:
        """Variables that are 0, and those that are above it, because of one variable."""
        lows, highs = domain
        if highs[i] == 0:
            return [j for j in self.implied[i] if highs[j]], []
        if not lows[i]:
            return [], []
        zero = [j for j in self.excludes[i] if highs[j]]
        for a, b in self.nogoods[i]:
            zero += [y for x, y in ((a, b), (b, a)) if lows[x] > 0 and highs[y]]
        return zero, [j for j in self.implies[i] if not lows[j]]

    def _tighten(self, one: _Sum, domain: Domain, queue: list[int]) -> bool:
        """Bound the variables of a sum that must lie in its range."""
        spans = [self._ends(part, domain) for part in one.parts]
        bounds = []
        for part, (low, high) in zip(one.parts, spans, strict=True):
            values = part.table[low - part.first : high - part.first + 1]
            bounds.append((min(values), max(values)))
        least, most = sum(b[0] for b in bounds), sum(b[1] for b in bounds)
        if least > one.high or most < one.low:
            return False
        if least >= one.low and most <= one.high:
            return True
        for part, (low, high), (small, large) in zip(one.parts, spans, bounds, strict=True):
            floor, ceiling = one.low - (most - large), one.high - (least - small)
            if small == large or (floor <= small and ceiling >= large):
                continue
            allowed = [v for v in range(low, high + 1) if floor <= part.table[v - part.first] <= ceiling]
            if not allowed:
                return False
            if not self._bound_form(part, allowed[0], allowed[-1], domain, queue):
                return False
        return True

    @staticmethod
    def _bound_form(part: _Part, first: int, last: int, domain: Domain, queue: list[int]) -> bool:
        """Bound the variables of a linear form that is between two numbers."""
        lows, highs = domain
        while True:
            low, high = Search._ends(part, domain)
            if low > last or high < first:
                return False
            moved = False
            for i, w in zip(part.variables, part.weights, strict=True):
                free, size = highs[i] - lows[i], abs(w)
                raised, lowered = max(0, free - (high - first) // size), max(0, free - (last - low) // size)
                if w < 0:
                    raised, lowered = lowered, raised
                if not raised and not lowered:
                    continue
                lows[i] += raised
                highs[i] -= lowered
                queue.append(i)
                if lows[i] > highs[i]:
                    return False
                moved = True
                break
            if not moved:
                return True


def at_most(facts: Facts, terms: Sequence[Term], limit: int, cases: int = CASES) -> bool:
    """Whether a sum of integer terms is shown to be at most `limit`."""
    for depth in DEPTHS:
        search = Search(facts, [(terms, limit + 1, float("inf"))], depth)
        if search.refuted(search.start(), cases):
            return True
        if search.cases > cases:
            return False
    return False
