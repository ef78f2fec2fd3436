"""A Gated DeltaNet in the loop: the rows of its state that keys and queries select, and no others."""

import math

import numpy as np

from qgpu.backends.compiling import compiled
from qgpu.backends.engine.arrays import bools, float32s, float64s, int32s, int64s
from qgpu.backends.engine.layout import CELL64, KEY, LAST_WATCH, OUTPUT, QUERY, RING
from qgpu.backends.engine.numerics import sigmoid, silu
from qgpu.backends.engine.walk import active_rows, refresh

_ONE = np.float32(1)
_L2_EPSILON = np.float32(1e-6)
"""As in `l2norm` of modeling_qwen3_5.py."""


@compiled
def mix(form, state, stage, trees, tick, following, count):
    """Write and read the state; list the channels whose output has changed after the `count` in `following`.

    Args:
        trees: bit t is set where a channel has changed that the mixer's tree t reads.
    """
    mixer = int64s(form.mixer, stage)[0]
    _look_up(form, state, mixer, stage, trees)
    _record(form, state, mixer)
    if form.fades:
        _fade(form, state, mixer, tick)
    groups = int64s(form.group_start, mixer * 2)
    places, counts = int64s(form.group_place, 0), int64s(state.group_count, 0)
    for group in range(groups[KEY], groups[KEY + 1]):
        _gather(form, state, mixer, group, KEY, tick)
        heads = int32s(state.group_head, places[group])
        for i in range(counts[group]):
            _write(form, state, mixer, np.int64(heads[i]), tick)
    renewed = False
    for group in range(groups[QUERY], groups[QUERY + 1]):
        renewed |= _gather(form, state, mixer, group, QUERY, tick)
        heads = int32s(state.group_head, places[group])
        for i in range(counts[group]):
            renewed |= _read(form, state, mixer, np.int64(heads[i]), tick)
    if not renewed:
        return count
    total = 0
    for group in range(groups[QUERY], groups[QUERY + 1]):
        heads = int32s(state.group_head, places[group])
        for i in range(counts[group]):
            total = _add_output(form, state, mixer * form.heads + heads[i], tick, total)
    return _put_out(form, state, stage, tick, total, following, count)


@compiled
def _look_up(form, state, mixer, stage, trees):
    """Find the active rows of this token's keys and queries, in the trees in which they may be others."""
    time = int64s(state.clock, 0)[0]
    now = time % RING
    first, last = int64s(form.tree_start, mixer)[0], int64s(form.tree_start, mixer)[1]
    stale = int64s(state.stale, stage)
    if stale[0]:
        for tree in range(first, last):
            refresh(form, state, tree)
        stale[0] = 0
    if time == 0:
        trees = np.int64(-1)
    slots, renewed = int64s(state.list_slot, 0), int64s(state.list_renewed, now * form.trees)
    counts = int64s(state.list_count, 0)
    before, earlier, first_of_all = (now + 3) % RING, (now + 2) % RING, (now + 1) % RING
    for tree in range(first, last):
        renewed[tree] = (trees >> min(tree - first, LAST_WATCH)) & 1
        slot = slots[before * form.trees + tree]
        if renewed[tree]:
            slot = 0
            while (
                slot == slots[before * form.trees + tree]
                or slot == slots[earlier * form.trees + tree]
                or slot == slots[first_of_all * form.trees + tree]
            ):
                slot += 1
            place = slot * form.places + int64s(form.tree_list, tree)[0]
            counts[slot * form.trees + tree] = active_rows(
                form, state, tree, int32s(state.list_row, place), float32s(state.list_value, place)
            )
        slots[now * form.trees + tree] = slot


@compiled
def _record(form, state, mixer):
    """Keep the rows that later tokens will look back to."""
    history = float32s(state.history, int64s(state.clock, 0)[0] % RING * form.rows)
    values, row_form, kept = float64s(state.value, 0), int64s(form.row_form, 0), int32s(form.kept_row, 0)
    for i in range(int64s(form.kept_start, mixer)[0], int64s(form.kept_start, mixer)[1]):
        history[kept[i]] = np.float32(values[row_form[kept[i]]])


@compiled
def _gather(form, state, mixer, group, side, tick):
    """Collect the keys or queries of a group that are not 0, by head; return whether any may differ."""
    time = int64s(state.clock, 0)[0]
    taps = int64s(form.tree_tap, 0)
    trees, loose = int64s(form.group_tree, group), int64s(form.group_loose, group)
    renewed = loose[0] < loose[1]
    for tree in range(trees[0], trees[1]):
        renewed |= int64s(state.list_renewed, (time - taps[tree]) % RING * form.trees)[tree] != 0
    if not renewed:
        return False
    heads = int32s(state.group_head, int64s(form.group_place, group)[0])
    total = int64s(state.group_count, group)
    first = (mixer * 2 + side) * form.heads
    counts = int64s(state.entry_count, first)
    for i in range(total[0]):
        counts[heads[i]] = 0
    found = 0
    for tree in range(trees[0], trees[1]):
        slot = int64s(state.list_slot, (time - taps[tree]) % RING * form.trees)[tree]
        place = slot * form.places + int64s(form.tree_list, tree)[0]
        rows, values = int32s(state.list_row, place), float32s(state.list_value, place)
        for i in range(int64s(state.list_count, slot * form.trees)[tree]):
            found = _enter(form, state, first, heads, np.int64(rows[i]), values[i], found)
    for i in range(loose[0], loose[1]):
        value = _convolved(form, state, int64s(form.loose_row, i)[0], tick)
        if value != 0:
            found = _enter(form, state, first, heads, int64s(form.loose_entry, i)[0], value, found)
    total[0] = found
    for i in range(found):
        int64s(state.entry_at, first)[heads[i]] = tick
    return True


@compiled
def _enter(form, state, first, heads, entry, value, found):
    head = entry // form.key
    counts = int64s(state.entry_count, first + head)
    place = (first + head) * form.key
    rows, values = int32s(state.entry_row, place), float32s(state.entry_value, place)
    count = counts[0]
    if count == 0:
        heads[found] = head
        found += 1
    row = entry - head * form.key
    # In order: they mostly come so.
    at = count
    while at > 0 and rows[at - 1] > row:
        rows[at], values[at] = rows[at - 1], values[at - 1]
        at -= 1
    rows[at], values[at] = row, value
    counts[0] = count + 1
    return found


@compiled
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


@compiled
def _inverse_norm(values, count):
    squares = np.float32(0)
    for i in range(count):
        squares += values[i] * values[i]
    return _ONE / np.sqrt(squares + _L2_EPSILON)


@compiled
def _fade(form, state, mixer, tick):
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
        int64s(state.written_at, head)[0] = tick


@compiled
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
    place = (mixer * 2 + KEY) * form.heads + local
    count = int64s(state.entry_count, place)[0]
    place *= form.key
    rows, keys = int32s(state.entry_row, place), float32s(state.entry_value, place)
    inverse = _inverse_norm(keys, count)
    value, held = float32s(state.vectors, 0), float32s(state.vectors, dimension)
    for j in range(dimension):
        value[j] = 0
        held[j] = 0
    columns, sources = int32s(form.value_column, 0), int32s(form.value_source, 0)
    for i in range(int64s(form.value_start, head)[0], int64s(form.value_start, head)[1]):
        value[columns[i]] = _convolved(form, state, np.int64(sources[i]), tick)
    for i in range(count):
        row = float32s(state.memory, (head * form.key + rows[i]) * dimension)
        _add_times(held, row, keys[i] * inverse, dimension)
    for j in range(dimension):
        value[j] = (value[j] - held[j]) * strength
    for i in range(count):
        row = float32s(state.memory, (head * form.key + rows[i]) * dimension)
        _add_times(row, value, keys[i] * inverse, dimension)
    bools(state.used, head)[0] = 1
    int64s(state.written_at, head)[0] = tick


@compiled
def _add_times(total, row, factor, count):
    for j in range(count):
        total[j] += row[j] * factor


@compiled
def _read(form, state, mixer, local, tick):
    """Renew a head's output, out_proj(norm(q^T S) * silu(z)); return whether it may have changed."""
    head = mixer * form.heads + local
    entries = (mixer * 2 + QUERY) * form.heads + local
    read_at = int64s(state.read_at, head)
    gates = int64s(form.gate_start, head)
    is_open, moved = _open(form, state, gates[0], gates[1])
    last = read_at[0]
    if not moved and last > int64s(state.entry_at, entries)[0] and last > int64s(state.written_at, head)[0]:
        return False
    # A tick further: what is written or entered in this very pass came before.
    read_at[0] = tick + 1
    total = int64s(state.emitted, head)
    if not is_open or not bools(state.used, head)[0]:
        changed = total[0] != 0
        total[0] = 0
        return changed
    dimension = form.dimension
    rows, queries = (
        int32s(state.entry_row, entries * form.key),
        float32s(state.entry_value, entries * form.key),
    )
    count = int64s(state.entry_count, entries)[0]
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
    norm, openings = float32s(form.head_norm, mixer * dimension), float32s(state.opening, 0)
    place = int64s(form.output_start, int64s(form.member_start, gates[0])[0])[0]
    channels, values = int32s(state.emitted_channel, place), float64s(state.emitted_value, place)
    found = 0
    for gate in range(gates[0], gates[1]):
        if openings[gate] != 0:
            found = _emit(form, gate, openings[gate], result, scale, norm, channels, values, found)
    total[0] = found
    return True


@compiled
def _open(form, state, first, last):
    """Renew the gates of a head; return whether one is open, and whether one has moved."""
    forms, values = int32s(form.gate_form, 0), float64s(state.value, 0)
    inputs, openings = float32s(state.gate_input, 0), float32s(state.opening, 0)
    is_open, moved = False, False
    for gate in range(first, last):
        now = np.float32(values[forms[gate]])
        if now != inputs[gate]:
            inputs[gate] = now
            openings[gate] = silu(now)
            moved = True
        is_open |= openings[gate] != 0
    return is_open, moved


@compiled
def _emit(form, gate, opening, result, scale, norm, channels, values, found):
    """List what the columns that a gate rules add to channels."""
    columns, start = int32s(form.member_column, 0), int64s(form.output_start, 0)
    outputs, weights = int32s(form.output_channel, 0), float32s(form.output_weight, 0)
    for member in range(int64s(form.member_start, gate)[0], int64s(form.member_start, gate)[1]):
        column = columns[member]
        if result[column] == 0:
            continue
        value = np.float64(norm[column] * (result[column] * scale) * opening)
        for k in range(start[member], start[member + 1]):
            channels[found] = outputs[k]
            values[found] = np.float64(weights[k]) * value
            found += 1
    return found


@compiled
def _add_output(form, state, head, tick, total):
    """Add a head's output to `state.total`; list the channels that it reaches."""
    gates = int64s(form.gate_start, head)
    place = int64s(form.output_start, int64s(form.member_start, gates[0])[0])[0]
    channels, values = int32s(state.emitted_channel, place), float64s(state.emitted_value, place)
    totals, total_at, reached = float64s(state.total, 0), int64s(state.total_at, 0), int32s(state.changed, 0)
    for i in range(int64s(state.emitted, head)[0]):
        channel = channels[i]
        if total_at[channel] != tick:
            total_at[channel] = tick
            totals[channel] = values[i]
            reached[total] = channel
            total += 1
        else:
            totals[channel] += values[i]
    return total


@compiled
def _put_out(form, state, stage, tick, total, following, count):
    """Renew the stage's output from `state.total`, and mark where it is another than the token before's."""
    output = float64s(state.cell, stage * form.hidden * CELL64 + OUTPUT)
    written, written_count = int32s(state.written, stage * form.hidden), int64s(state.written_count, stage)
    totals, total_at, reached = float64s(state.total, 0), int64s(state.total_at, 0), int32s(state.changed, 0)
    for i in range(written_count[0]):
        if total_at[written[i]] != tick:
            count = _renew(state, output, np.int64(written[i]), 0.0, tick, following, count)
    for i in range(total):
        channel = np.int64(reached[i])
        written[i] = channel
        count = _renew(state, output, channel, totals[channel], tick, following, count)
    written_count[0] = total
    return count


@compiled
def _renew(state, output, channel, new, tick, following, count):
    if output[channel * CELL64] == new:
        return count
    output[channel * CELL64] = new
    marked_at = int64s(state.marked_at, 0)
    if marked_at[channel] != tick:
        marked_at[channel] = tick
        following[count] = channel
        count += 1
    return count
