"""Bound trees: which of many linear forms can be above a threshold, without a look at each.

The forms (rows of a projection) are sorted into a trie by their coefficients. A node holds the terms that all
rows below it have in common, so that on the way down the known terms add up while the rest is bounded by the
channels' ranges: a subtree whose bound is too low is not entered. At a leaf the bound is the form itself. An
address decoder of 2^n rows is n steps; rows without anything in common are one level of leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qgpu.backends.compiling import compiled

Array = np.ndarray


_SORTED = 64
"""Most children of a node that are put in order."""

_REGULAR = 8
"""Most children of a node whose best one is looked for ahead."""


class Tree(NamedTuple):
    """The nodes of a trie in the order of a walk, parents before children; see `layout.Form`."""

    term_start: Array
    term_channel: Array
    term_weight: Array
    child_start: Array
    child: Array
    leaf_start: Array
    leaf_row: Array
    lowest_row: Array
    shape: Array
    shape_node: Array
    shape_rest: Array


def build_tree(rows: Array, start: Array, channel: Array, weight: Array, constant: Array) -> Tree:
    """Sort forms into a trie.

    Args:
        rows: int32 [row], the number of each form, ascending.
        start, channel, weight: the forms, row after row (CSR): int64, int32, float64.
        constant: bool [hidden], the channels that never change; they tell rows apart last.
    """
    parent, order, bounds, terms, channels, weights = _split(
        start, channel.astype(np.int32), weight.astype(np.float64), constant
    )
    nodes = len(parent)
    children = np.argsort(parent[1:], kind="stable") + 1
    counts = np.bincount(parent[1:], minlength=nodes)
    child_start = _starts(counts)
    is_leaf = counts == 0
    leaf_counts = np.where(is_leaf, bounds[:, 1] - bounds[:, 0], 0)
    leaf_start = _starts(leaf_counts)
    leaf_row = np.empty(leaf_start[-1], np.int32)
    for node in np.flatnonzero(is_leaf):
        leaf_row[leaf_start[node] : leaf_start[node + 1]] = np.sort(rows[order[slice(*bounds[node])]])
    lowest = np.full(nodes, np.iinfo(np.int32).max, np.int32)
    lowest[is_leaf] = leaf_row[leaf_start[:-1][is_leaf]]
    for node in range(nodes - 1, 0, -1):
        lowest[parent[node]] = min(lowest[parent[node]], lowest[node])
    terms, channels, weights = _raise_constants(
        parent, child_start, children, terms, channels, weights, constant
    )
    shapes = _shapes(child_start, children, terms, channels, weights)
    return Tree(
        terms,
        channels,
        weights,
        child_start,
        children.astype(np.int32),
        leaf_start,
        leaf_row,
        lowest,
        *shapes,
    )


def _raise_constants(
    parent: Array,
    child_start: Array,
    children: Array,
    terms: Array,
    channels: Array,
    weights: Array,
    constant: Array,
) -> tuple[Array, Array, Array]:
    """Move the terms of constant channels up: a node keeps by how much it differs from its first sibling."""
    fixed = np.unique(channels[constant[channels]])
    node_of = np.repeat(np.arange(len(parent)), np.diff(terms))
    is_fixed = constant[channels]
    own = np.zeros((len(parent), len(fixed)))
    own[node_of[is_fixed], np.searchsorted(fixed, channels[is_fixed])] = weights[is_fixed]
    for node in range(len(parent) - 1, -1, -1):
        mine = children[child_start[node] : child_start[node + 1]]
        if len(mine):
            own[node] += own[mine[0]]
            own[mine] -= own[mine[0]].copy()
    at, which = np.nonzero(own)
    node_of = np.concatenate((node_of[~is_fixed], at))
    order = np.argsort(node_of, kind="stable")
    return (
        _starts(np.bincount(node_of, minlength=len(parent))),
        np.concatenate((channels[~is_fixed], fixed[which])).astype(np.int32)[order],
        np.concatenate((weights[~is_fixed], own[at, which]))[order],
    )


def _shapes(
    child_start: Array, children: Array, terms: Array, channels: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Find the subtrees that are alike but for their rows, and in which every choice is independent.

    Such a subtree has a shape: its root's children (with their terms), all of which have one same shape. Its
    best row is then the sum of the best choices.

    Returns:
        The shape of each node, -1 where it has none (0 is a leaf's); for each shape a node of it, and the
        shape of that node's children.
    """
    numbers: dict[tuple[int, tuple[bytes, ...]], int] = {}
    shape = np.zeros(len(child_start) - 1, np.int32)
    nodes, rests = [-1], [0]
    for node in range(len(shape) - 1, -1, -1):
        mine = children[child_start[node] : child_start[node + 1]]
        if not len(mine):
            continue
        rest = shape[mine[0]]
        if rest < 0 or len(mine) > _REGULAR or (shape[mine] != rest).any():
            shape[node] = -1
            continue
        parts = (slice(terms[child], terms[child + 1]) for child in mine)
        key = (int(rest), tuple(channels[part].tobytes() + weights[part].tobytes() for part in parts))
        if key not in numbers:
            numbers[key] = len(nodes)
            nodes.append(node)
            rests.append(int(rest))
        shape[node] = numbers[key]
    return shape, np.array(nodes, np.int32), np.array(rests, np.int32)


def _starts(counts: Array) -> Array:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


@compiled
def _sort_classes(weights, sizes, classes, group, first, last):
    """Number the classes of rows first to last by weight, so that equal parts of a tree look alike."""
    order = np.argsort(weights[:classes])
    numbers = np.argsort(order)
    weights[:classes] = weights[:classes][order]
    sizes[:classes] = sizes[:classes][order]
    for place in range(first, last):
        group[place] = numbers[group[place]]


@compiled
def _split(start, channel, weight, constant):  # noqa: C901 (numba compiles no closures over so many arrays)
    """Return parents, the order of rows, each node's part of it, and each node's own terms (CSR)."""
    count = len(start) - 1
    total = len(channel)
    limit = 2 * count + 2
    parent = np.full(limit, -1, np.int64)
    bounds = np.zeros((limit, 2), np.int64)
    term_start = np.zeros(limit + 1, np.int64)
    terms_channel = np.empty(total, np.int32)
    terms_weight = np.empty(total, np.float64)
    order = np.arange(count)
    length = start[1:] - start[:-1]
    scratch = np.empty(count, np.int64)
    group = np.empty(count, np.int64)
    present = np.zeros(len(constant), np.int64)
    alike = np.zeros(len(constant), np.int64)
    sample = np.zeros(len(constant), np.float64)
    score = np.zeros(len(constant), np.float64)
    seen = np.empty(len(constant), np.int64)
    class_weight = np.empty(count, np.float64)
    class_size = np.empty(count + 1, np.int64)
    stack = np.empty((limit, 3), np.int64)
    stack[0] = (-1, 0, count)
    top, nodes, used = 1, 0, 0
    while top:
        top -= 1
        above, first, last = stack[top]
        node = nodes
        nodes += 1
        parent[node] = above
        bounds[node] = (first, last)
        rows = last - first
        found = 0
        for place in range(first, last):
            row = order[place]
            for k in range(start[row], start[row] + length[row]):
                c = channel[k]
                if present[c] == 0:
                    seen[found] = c
                    found += 1
                    sample[c] = weight[k]
                    alike[c] = 0
                    score[c] = 0.0
                present[c] += 1
                score[c] += abs(weight[k])
                if weight[k] == sample[c]:
                    alike[c] += 1
        chosen, chosen_score = -1, -1.0
        for i in range(found):
            c = seen[i]
            if alike[c] == rows:
                terms_channel[used] = c
                terms_weight[used] = sample[c]
                used += 1
                present[c] = -1
            else:
                s = score[c] * (1e-30 if constant[c] else 1.0)
                if s > chosen_score or (s == chosen_score and c < chosen):
                    chosen, chosen_score = c, s
        term_start[nodes] = used
        # Take the common terms out of the rows.
        for place in range(first, last):
            row = order[place]
            k = start[row]
            while k < start[row] + length[row]:
                if present[channel[k]] == -1:
                    end = start[row] + length[row] - 1
                    channel[k], channel[end] = channel[end], channel[k]
                    weight[k], weight[end] = weight[end], weight[k]
                    length[row] -= 1
                else:
                    k += 1
        for i in range(found):
            present[seen[i]] = 0
        if chosen < 0:
            continue
        # Part the rows by their coefficient of the chosen channel; those without it have 0.
        classes = 0
        for place in range(first, last):
            row = order[place]
            w = 0.0
            for k in range(start[row], start[row] + length[row]):
                if channel[k] == chosen:
                    w = weight[k]
                    break
            which = 0
            while which < classes and class_weight[which] != w:
                which += 1
            if which == classes:
                class_weight[which] = w
                class_size[which] = 0
                classes += 1
            class_size[which] += 1
            group[place] = which
        if classes <= _SORTED:
            _sort_classes(class_weight, class_size, classes, group, first, last)
        at = first
        for which in range(classes):
            size = class_size[which]
            class_size[which] = at
            at += size
        for place in range(first, last):
            scratch[class_size[group[place]]] = order[place]
            class_size[group[place]] += 1
        for place in range(first, last):
            order[place] = scratch[place]
        end = last
        for which in range(classes - 1, -1, -1):
            begin = class_size[which - 1] if which > 0 else first
            stack[top] = (node, begin, end)
            top += 1
            end = begin
    return (
        parent[:nodes],
        order,
        bounds[:nodes],
        term_start[: nodes + 1],
        terms_channel[:used],
        terms_weight[:used],
    )
