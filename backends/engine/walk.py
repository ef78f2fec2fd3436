"""Walks of the bound trees (tree.py): the rows that are not provably off, and the largest logit."""

import numpy as np

from qgpu.backends.compiling import compiled
from qgpu.backends.engine.arrays import float32s, float64s, int32s, int64s, uint32s, uint64s
from qgpu.backends.engine.layout import CELL, HIGH, LOW, NORMAL
from qgpu.backends.engine.numerics import silu

_U0, _U1, _CELL = np.uint64(0), np.uint64(1), np.uint64(CELL)

OFF = -128.0
"""silu is exactly 0 from here down."""


@compiled
def start_range(form, state, stage):
    """Let the ranges of the channels that a stage's trees read begin with what they are now."""
    cells = float32s(state.cell, stage * form.hidden * CELL)
    stages, nodes = int64s(form.tree_stage, 0), int64s(form.tree_node, 0)
    terms, channels = int64s(form.term_start, 0), int32s(form.term_channel, 0)
    for tree in range(form.trees):
        if stages[tree] != stage:
            continue
        for k in range(terms[nodes[tree]], terms[nodes[tree + 1]]):
            cell = np.int64(channels[k]) * CELL
            cells[cell + LOW] = cells[cell + NORMAL]
            cells[cell + HIGH] = cells[cell + NORMAL]
    int64s(state.stale, stage)[0] = 1


@compiled
def refresh(form, state, tree):
    """Make the bounds of a tree from its channels' ranges."""
    stage = int64s(form.tree_stage, tree)[0]
    cells = float32s(state.cell, stage * form.hidden * CELL)
    terms, channels = int64s(form.term_start, 0), int32s(form.term_channel, 0)
    weights = float64s(form.term_weight, 0)
    child_start, children = int64s(form.child_start, 0), int32s(form.child, 0)
    rest = float64s(state.rest, 0)
    root, end = int64s(form.tree_node, tree)[0], int64s(form.tree_node, tree + 1)[0]
    for node in range(end - 1, root - 1, -1):
        below = -np.inf if child_start[node] < child_start[node + 1] else 0.0
        for i in range(child_start[node], child_start[node + 1]):
            child = children[i]
            bound = rest[child]
            for k in range(terms[child], terms[child + 1]):
                weight, cell = weights[k], np.int64(channels[k]) * CELL
                bound += weight * np.float64(cells[cell + (HIGH if weight > 0 else LOW)])
            below = max(below, bound)
        rest[node] = below


@compiled
def active_rows(form, state, tree, rows, values):
    """List the rows of a tree whose silu is not 0, and it; return how many there are."""
    stage_cells = float32s(state.cell, int64s(form.tree_stage, tree)[0] * form.hidden * CELL)
    cells = float32s(state.cell, int64s(form.tree_stage, tree)[0] * form.hidden * CELL + NORMAL)
    terms, channels = uint64s(form.term_start, 0), uint32s(form.term_channel, 0)
    weights, rest = float64s(form.term_weight, 0), float64s(state.rest, 0)
    child_start, children = uint64s(form.child_start, 0), uint32s(form.child, 0)
    leaf_start, leaves = uint64s(form.leaf_start, 0), int32s(form.leaf_row, 0)
    nodes, sums = uint32s(state.stack_node, 0), float64s(state.stack_sum, 0)
    root = int64s(form.tree_node, tree)[0]
    nodes[0], sums[0] = root, _own(form, stage_cells, root)
    top, count = np.uint64(sums[0] + rest[root] > OFF), _U0
    while top:
        top -= _U1
        node, total = np.uint64(nodes[top]), sums[top]
        begin, end = child_start[node], child_start[node + _U1]
        # The first child comes last, and is looked at first. Without branches, which could not be foretold.
        for i in range(end - begin):
            child = np.uint64(children[end - _U1 - i])
            mine = total
            for k in range(terms[child], terms[child + _U1]):
                mine += weights[k] * np.float64(cells[np.uint64(channels[k]) * _CELL])
            nodes[top], sums[top] = child, mine
            top += np.uint64(mine + rest[child] > OFF)
        if begin < end:
            continue
        value = silu(np.float32(total))
        for i in range(leaf_start[node], leaf_start[node + _U1]):
            rows[count], values[count] = leaves[i], value
            count += np.uint64(value != 0)
    return np.int64(count)


@compiled
def most_likely(form, state):
    """The token of the largest logit, the first of several."""
    tree = form.trees - 1
    stage = int64s(form.tree_stage, tree)[0]
    stale = int64s(state.stale, stage)
    if stale[0]:
        refresh(form, state, tree)
        stale[0] = 0
    clock = int64s(state.clock, 0)
    clock[1] += 1
    tick = clock[1]
    cells, lowest = float32s(state.cell, stage * form.hidden * CELL), int32s(form.lowest_row, 0)
    child_start, children = int64s(form.child_start, 0), int32s(form.child, 0)
    nodes, sums = int32s(state.stack_node, 0), float64s(state.stack_sum, 0)
    bounds = float64s(state.stack_bound, 0)
    root = int64s(form.tree_node, tree)[0]
    nodes[0], sums[0], bounds[0] = root, _own(form, cells, root), np.inf
    top = 1
    token, most = form.vocabulary, np.float32(-np.inf)
    while top:
        top -= 1
        node, total, bound = nodes[top], sums[top], np.float32(bounds[top])
        if bound < most or (bound == most and lowest[node] > token):
            continue
        first = top
        if child_start[node] == child_start[node + 1]:
            token, most = np.int64(lowest[node]), bound
        # The child with the highest bound comes last, and is looked at first.
        for i in range(child_start[node], child_start[node + 1]):
            child = children[i]
            mine = total + _own(form, cells, child)
            limit = mine + _rest(form, state, cells, child, tick)
            if np.float32(limit) < most:
                continue
            nodes[top], sums[top], bounds[top] = child, mine, limit
            if top > first and bounds[top - 1] > limit:
                nodes[top], nodes[top - 1] = nodes[top - 1], nodes[top]
                sums[top], sums[top - 1] = sums[top - 1], sums[top]
                bounds[top], bounds[top - 1] = bounds[top - 1], bounds[top]
            top += 1
    return token


@compiled
def _own(form, cells, node):
    """The sum of a node's own terms."""
    terms, channels = int64s(form.term_start, node), int32s(form.term_channel, 0)
    weights = float64s(form.term_weight, 0)
    total = 0.0
    for k in range(terms[0], terms[1]):
        total += weights[k] * np.float64(cells[np.int64(channels[k]) * CELL + NORMAL])
    return total


@compiled
def _rest(form, state, cells, node, tick):
    """An upper bound of what the terms below a node add: exact where its subtree has a shape."""
    shape = int32s(form.shape, node)[0]
    if shape < 0:
        return float64s(state.rest, node)[0]
    nodes, rests = int32s(form.shape_node, 0), int32s(form.shape_rest, 0)
    values, at = float64s(state.shape_value, 0), int64s(state.shape_at, 0)
    children, child_start = int32s(form.child, 0), int64s(form.child_start, 0)
    pending = int32s(state.shape_stack, 0)
    count = 0
    while shape and at[shape] != tick:
        pending[count] = shape
        count += 1
        shape = rests[shape]
    total = values[shape]
    while count:
        count -= 1
        shape = pending[count]
        best = -np.inf
        for i in range(child_start[nodes[shape]], child_start[nodes[shape] + 1]):
            best = max(best, _own(form, cells, children[i]))
        total += best
        values[shape] = total
        at[shape] = tick
    return total
