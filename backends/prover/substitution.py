"""Bounds of a linear form of which some variables are made of others that it reads.

A count of what holds, less how many should: the count's definition reads the same bits. With the definition
in its place the form falls into parts that share no variable, and each of them is bounded by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from qgpu.backends.prover.cone import Cone
from qgpu.backends.prover.facts import Facts, Term
from qgpu.backends.prover.search import at_most

ROUNDS = 4
"""How often definitions are put in the places of their variables."""


def highest_form(facts: Facts, variables: Sequence[int], weights: Sequence[int]) -> float:
    """An upper bound of the sum of weights * n."""
    form = dict(zip(variables, weights, strict=True))
    constant, terms = _substituted(facts, form)
    if not terms:
        return constant + sum(max(0, w) * facts.count[v] for v, w in form.items())
    parts = [*terms, *(_multiple(facts, v, w) for v, w in form.items())]
    return constant + sum(_highest(facts, part) for part in _components(parts))


def _substituted(facts: Facts, form: dict[int, int]) -> tuple[float, list[Term]]:
    """Take variables out of a form whose definitions read others of it; a constant and their terms."""
    constant, terms = 0.0, []
    read = set(form)
    for _ in range(ROUNDS):
        made_of = [v for v in form if _reads(facts.definition[v], read - {v})]
        for variable in made_of:
            weight = form.pop(variable)
            for term in facts.definition[variable] or ():
                if not term.variables:
                    constant += weight * float(term.table[0])
                elif _is_linear(term):
                    constant += weight * float(term.table[0])
                    form[term.variables[0]] = form.get(term.variables[0], 0) + weight
                else:
                    terms.append(Term(term.variables, term.weights, term.first, weight * term.table))
    return constant, terms


def _reads(definition: Sequence[Term] | None, variables: set[int]) -> bool:
    return definition is not None and any(not variables.isdisjoint(term.variables) for term in definition)


def _is_linear(term: Term) -> bool:
    """Whether a term is a variable's n and a constant."""
    return term.weights == (1,) and term.first == 0 and bool((np.diff(term.table) == 1).all())


def _multiple(facts: Facts, variable: int, weight: int) -> Term:
    return Term((variable,), (1,), 0, weight * np.arange(facts.count[variable] + 1, dtype=np.float64))


def _components(terms: Sequence[Term]) -> list[list[Term]]:
    """Terms in groups that share no variable."""
    graph = nx.Graph()
    for number, term in enumerate(terms):
        graph.add_edges_from((("term", number), variable) for variable in term.variables)
    groups = nx.connected_components(graph)
    return [[terms[n[1]] for n in sorted(g for g in group if isinstance(g, tuple))] for group in groups]


def _highest(facts: Facts, terms: list[Term]) -> float:
    top = Cone(terms, facts).maximum()
    for limit in range(max(0, int(top) - 1), int(top)):
        if at_most(facts, terms, limit):
            return float(limit)
    return top
