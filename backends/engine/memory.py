"""A Gated DeltaNet in the loop: the rows of its state that keys and queries select, and no others."""

import math

import numpy as np
from numba import njit

from qgpu.backends.engine.arrays import bools, float32s, float64s, int32s, int64s
from qgpu.backends.engine.layout import KEY, QUERY, RING
from qgpu.backends.engine.numerics import sigmoid, silu
from qgpu.backends.engine.walk import active_rows, refresh

_ONE = np.float32(1)
_L2_EPSILON = np.float32(1e-6)
"""As in `l2norm` of modeling_qwen3_5.py."""


@njit(cache=True, nogil=True)
def mix(form, state, stage, tick, following, count):
    """Write and read the state; list the channels whose output has changed after the `count` in `following`."""
    mixer = int64s(form.mixer, stage)[0]
    _record(form, state, mixer, stage)
    keys = _gather(form, state, mixer, tick, KEY)
    queries = _gather(form, state, mixer, tick, QUERY)
    if form.fades:
        _fade(form, state, mixer)
    heads = int32s(state.entry_heads, KEY * form.heads)
    for i in range(keys):
        _write(form, state, mixer, heads[i], tick)
    heads = int32s(state.entry_heads, QUERY * form.heads)
    total = 0
    for i in range(queries):
        total = _read(form, state, mixer, heads[i], tick, total)
    return _put_out(form, state, stage, tick, total, following, count)


@njit(cache=True, nogil=True)
def _record(form, state, mixer, stage):
    """Find the active rows of this token's keys and queries, and keep what later tokens will look back to."""
    now = int64s(state.clock, 0)[0] % RING
    first, last = int64s(form.tree_start, mixer)[0], int64s(form.tree_start, mixer)[1]
    stale = int64s(state.stale, stage)
    if stale[0]:
        for tree in range(first, last):
            refresh(form, state, tree)
        stale[0] = 0
    counts = int64s(state.list_count, now * form.trees)
    for tree in range(first, last):
        place = now * form.places + int64s(form.tree_list, tree)[0]
        counts[tree] = active_rows(
            form, state, tree, int32s(state.list_row, place), float32s(state.list_value, place)
        )
    history = float32s(state.history, now * form.rows)
    values, row_form, kept = float64s(state.value, 0), int64s(form.row_form, 0), int32s(form.kept_row, 0)
    for i in range(int64s(form.kept_start, mixer)[0], int64s(form.kept_start, mixer)[1]):
        history[kept[i]] = np.float32(values[row_form[kept[i]]])


@njit(cache=True, nogil=True)
def _gather(form, state, mixer, tick, side):
    """Collect the entries of keys or queries that are not 0 by head; return how many heads have some."""
    counts = int64s(state.entry_count, side * form.heads)
    for head in range(form.heads):
        counts[head] = 0
    clock = int64s(state.clock, 0)[0]
    sides, taps = int64s(form.tree_side, 0), int64s(form.tree_tap, 0)
    heads = 0
    for tree in range(int64s(form.tree_start, mixer)[0], int64s(form.tree_start, mixer)[1]):
        if sides[tree] != side:
            continue
        then = (clock - taps[tree]) % RING
        place = then * form.places + int64s(form.tree_list, tree)[0]
        rows, values = int32s(state.list_row, place), float32s(state.list_value, place)
        for i in range(int64s(state.list_count, then * form.trees + tree)[0]):
            heads = _enter(form, state, side, rows[i], values[i], heads)
    loose_side = int64s(form.loose_side, 0)
    for i in range(int64s(form.loose_start, mixer)[0], int64s(form.loose_start, mixer)[1]):
        if loose_side[i] == side:
            value = _convolved(form, state, int64s(form.loose_row, i)[0], tick)
            if value != 0:
                heads = _enter(form, state, side, int64s(form.loose_entry, i)[0], value, heads)
    return heads


@njit(cache=True, nogil=True)
def _enter(form, state, side, entry, value, heads):
    head = entry // form.key
    counts = int64s(state.entry_count, side * form.heads + head)
    place = (side * form.heads + head) * form.key
    rows, values = int32s(state.entry_row, place), float32s(state.entry_value, place)
    count = counts[0]
    if count == 0:
        int32s(state.entry_heads, side * form.heads)[heads] = head
        heads += 1
    row = entry - head * form.key
    # In order: they mostly come so.
    at = count
    while at > 0 and rows[at - 1] > row:
        rows[at], values[at] = rows[at - 1], values[at - 1]
        at -= 1
    rows[at], values[at] = row, value
    counts[0] = count + 1
    return heads


@njit(cache=True, nogil=True)
def _convolved(form, state, row, tick):
    """silu of the convolution at a row, at most once a token."""
    row_at, row_value = int64s(state.row_at, row), float32s(state.row_value, row)
    if row_at[0] == tick:
        return row_value[0]
    if bools(form.row_recent, row)[0]:
        total = np.float32(float64s(state.value, int64s(form.row_form, row)[0])[0])
    else:
        total = np.float32(0)
        clock, taps = int64s(state.clock, 0)[0], float32s(form.row_taps, row * RING)
        for tap in range(RING - 1, -1, -1):
            then = (clock - tap) % RING
            total += taps[tap] * float32s(state.history, then * form.rows + row)[0]
    value = silu(total)
    row_at[0] = tick
    row_value[0] = value
    return value


@njit(cache=True, nogil=True)
def _inverse_norm(values, count):
    squares = np.float32(0)
    for i in range(count):
        squares += values[i] * values[i]
    return _ONE / np.sqrt(squares + _L2_EPSILON)


@njit(cache=True, nogil=True)
def _fade(form, state, mixer):
    decay_form, used = int64s(form.decay_form, 0), bools(state.used, 0)
    for head in range(mixer * form.heads, (mixer + 1) * form.heads):
        if decay_form[head] < 0 or not used[head]:
            continue
        time = np.float32(float64s(state.value, decay_form[head])[0]) + float32s(form.decay_bias, head)[0]
        softplus = time if time > 20 else np.float32(math.log1p(math.exp(np.float64(time))))
        decay = np.float32(math.exp(np.float64(-float32s(form.decay_rate, head)[0] * softplus)))
        size = form.key * form.dimension
        memory = float32s(state.memory, head * size)
        for i in range(size):
            memory[i] *= decay


@njit(cache=True, nogil=True)
def _write(form, state, mixer, local, tick):
    """S += k (beta (v - k^T S)), over the rows whose key is not 0."""
    head = mixer * form.heads + local
    strength_form = int64s(form.strength_form, head)[0]
    if strength_form < 0:
        return
    strength = sigmoid(np.float32(float64s(state.value, strength_form)[0]))
    if strength == 0:
        return
    dimension = form.dimension
    count = int64s(state.entry_count, KEY * form.heads + local)[0]
    place = (KEY * form.heads + local) * form.key
    rows, keys = int32s(state.entry_row, place), float32s(state.entry_value, place)
    inverse = _inverse_norm(keys, count)
    value, held = float32s(state.vectors, 0), float32s(state.vectors, dimension)
    for j in range(dimension):
        value[j] = 0
        held[j] = 0
    columns, sources = int32s(form.value_column, 0), int32s(form.value_source, 0)
    for i in range(int64s(form.value_start, head)[0], int64s(form.value_start, head)[1]):
        value[columns[i]] = _convolved(form, state, sources[i], tick)
    for i in range(count):
        row = float32s(state.memory, (head * form.key + rows[i]) * dimension)
        _add_times(held, row, keys[i] * inverse, dimension)
    for j in range(dimension):
        value[j] = (value[j] - held[j]) * strength
    for i in range(count):
        row = float32s(state.memory, (head * form.key + rows[i]) * dimension)
        _add_times(row, value, keys[i] * inverse, dimension)
    bools(state.used, head)[0] = 1


@njit(cache=True, nogil=True)
def _add_times(total, row, factor, count):
    for j in range(count):
        total[j] += row[j] * factor


@njit(cache=True, nogil=True)
def _read(form, state, mixer, local, tick, total):
    """Add a head's output, norm(q^T S) * silu(z), to `state.total`; list the channels that it reaches."""
    head = mixer * form.heads + local
    if not bools(state.used, head)[0] or not _is_open(form, state, head):
        return total
    dimension = form.dimension
    count = int64s(state.entry_count, QUERY * form.heads + local)[0]
    place = (QUERY * form.heads + local) * form.key
    rows, queries = int32s(state.entry_row, place), float32s(state.entry_value, place)
    size = np.float32(math.sqrt(np.float64(form.key)))
    inverse = _inverse_norm(queries, count)
    result = float32s(state.vectors, 2 * dimension)
    for j in range(dimension):
        result[j] = 0
    for i in range(count):
        row = float32s(state.memory, (head * form.key + rows[i]) * dimension)
        _add_times(result, row, queries[i] * inverse / size, dimension)
    squares = 0.0
    for j in range(dimension):
        squares += np.float64(result[j] * result[j])
    scale = _ONE / np.sqrt(np.float32(squares) / np.float32(dimension) + form.epsilon)
    norm = float32s(form.head_norm, mixer * dimension)
    gates, values = int32s(form.gate_form, 0), float64s(state.value, 0)
    for gate in range(int64s(form.gate_start, head)[0], int64s(form.gate_start, head)[1]):
        opening = silu(np.float32(values[gates[gate]]))
        if opening != 0:
            total = _emit(form, state, gate, opening, result, scale, norm, tick, total)
    return total


@njit(cache=True, nogil=True)
def _emit(form, state, gate, opening, result, scale, norm, tick, total):
    """Add the columns that a gate rules, through out_proj."""
    columns, start = int32s(form.member_column, 0), int64s(form.output_start, 0)
    channels, weights = int32s(form.output_channel, 0), float64s(form.output_weight, 0)
    totals, total_at, reached = float64s(state.total, 0), int64s(state.total_at, 0), int32s(state.changed, 0)
    for member in range(int64s(form.member_start, gate)[0], int64s(form.member_start, gate)[1]):
        column = columns[member]
        if result[column] == 0:
            continue
        value = np.float64(norm[column] * (result[column] * scale) * opening)
        for k in range(start[member], start[member + 1]):
            channel = channels[k]
            if total_at[channel] != tick:
                total_at[channel] = tick
                totals[channel] = 0
                reached[total] = channel
                total += 1
            totals[channel] += weights[k] * value
    return total


@njit(cache=True, nogil=True)
def _is_open(form, state, head):
    gates, values = int32s(form.gate_form, 0), float64s(state.value, 0)
    for gate in range(int64s(form.gate_start, head)[0], int64s(form.gate_start, head)[1]):
        if silu(np.float32(values[gates[gate]])) != 0:
            return True
    return False


@njit(cache=True, nogil=True)
def _put_out(form, state, stage, tick, total, following, count):
    """Renew the stage's output from `state.total`, and mark where it is another than the token before's."""
    output = float64s(state.output, stage * form.hidden)
    written, written_count = int32s(state.written, stage * form.hidden), int64s(state.written_count, stage)
    totals, total_at, reached = float64s(state.total, 0), int64s(state.total_at, 0), int32s(state.changed, 0)
    for i in range(written_count[0]):
        if total_at[written[i]] != tick:
            count = _renew(state, output, written[i], 0.0, tick, following, count)
    for i in range(total):
        channel = reached[i]
        written[i] = channel
        count = _renew(state, output, channel, totals[channel], tick, following, count)
    written_count[0] = total
    return count


@njit(cache=True, nogil=True)
def _renew(state, output, channel, new, tick, following, count):
    if output[channel] == new:
        return count
    output[channel] = new
    marked_at = int64s(state.marked_at, 0)
    if marked_at[channel] != tick:
        marked_at[channel] = tick
        following[count] = channel
        count += 1
    return count
