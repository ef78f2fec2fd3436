"""The compiled loop: token after token through the stages, by what has changed since the token before.

Sums are float64 and exact where the checkpoint's are; each result is rounded to float32 where torch holds it
so. Every other operation is torch's, on float32, in its order (transformers,
models/qwen3_5/modeling_qwen3_5.py). `form` and `state` are records of layout.py's arrays by address
(arrays.py).
"""

import math

import numpy as np

from qgpu.backends.compiling import compiled
from qgpu.backends.engine.arrays import float32s, float64s, int32s, int64s, uint32s, uint64s
from qgpu.backends.engine.layout import (
    CELL,
    CELL64,
    FEED_FORWARD,
    GAIN,
    GATE,
    HEAD,
    HIDDEN,
    HIGH,
    INPUT,
    LOW,
    NEURON,
    NEURON_BITS,
    NORMAL,
    OUTPUT,
    STREAM,
    TOUCHED,
)
from qgpu.backends.engine.memory import mix
from qgpu.backends.engine.numerics import silu
from qgpu.backends.engine.walk import most_likely, start_range

RESUM_EVERY = 4096
"""Tokens after which the sums of squares, which are kept by differences, are made anew."""

_ZERO, _ONE = np.float32(0), np.float32(1)

# Indices without a sign, since one that might be negative is looked at each time.
_U0, _U1 = np.uint64(0), np.uint64(1)
_CELL, _CELL64 = np.uint64(CELL), np.uint64(CELL64)
_GAIN, _NORMAL, _LOW, _HIGH, _STREAM = (np.uint64(place) for place in (GAIN, NORMAL, LOW, HIGH, STREAM))
_GATE, _INPUT, _HIDDEN, _TOUCHED = (np.uint64(place) for place in (GATE, INPUT, HIDDEN, TOUCHED))
_NEURON_BITS, _FIRST_OF_NEURON = np.uint64(NEURON_BITS), np.uint64(2**64 - NEURON)


@compiled
def feed(form, state, tokens, count):
    """Append so many tokens to a sequence."""
    for i in range(count):
        _step(form, state, tokens[i])


@compiled
def generate(form, state, token, stops, found, limit):
    """Append a token, then each answer, until one is a stop or there are `limit`; return their number."""
    for count in range(limit):
        _step(form, state, token)
        token = most_likely(form, state)
        found[count] = token
        if stops[token]:
            return count + 1
    return limit


@compiled
def _step(form, state, token):
    kinds = int64s(form.kind, 0)
    clock = int64s(state.clock, 0)
    changed = int32s(state.changed, 0)
    marked_at = int64s(state.marked_at, 0)
    count = _embed(form, state, token)
    side = 0
    for stage in range(form.stages):
        total = _update_stream(form, state, stage, uint32s(state.candidates, side * (form.hidden + 1)), count)
        clock[1] += 1
        tick = clock[1]
        # What has changed here may have changed in the next stage.
        side = 1 - side
        following = int32s(state.candidates, side * (form.hidden + 1))
        for i in range(total):
            following[i] = changed[i]
            marked_at[changed[i]] = tick
        if kinds[stage] == FEED_FORWARD:
            touched = _touch(form, state, stage, _normalise(form, state, stage, total), tick)
            count = _fire(form, state, stage, touched, tick, following, total)
            continue
        trees = _add_up(form, state, stage, _normalise(form, state, stage, total))
        if kinds[stage] != HEAD:
            count = mix(form, state, stage, trees, tick, following, total)
    clock[0] += 1


@compiled
def _embed(form, state, token):
    """Put the token's row into `embedded`; return how many channels may have changed."""
    clock = int64s(state.clock, 0)
    embedded, base = float32s(state.embedded, 0), float32s(form.base, 0)
    candidates, marked_at = int32s(state.candidates, 0), int64s(state.marked_at, 0)
    start, channels = int64s(form.token_start, 0), int32s(form.token_channel, 0)
    values = float32s(form.token_value, 0)
    before = clock[2]
    clock[2] = token
    clock[1] += 1
    tick = clock[1]
    count = 0
    if before < 0:
        for channel in range(form.hidden):
            embedded[channel] = base[channel]
            candidates[channel] = channel
            marked_at[channel] = tick
        count = form.hidden
    else:
        for i in range(start[before], start[before + 1]):
            channel = channels[i]
            embedded[channel] = base[channel]
            candidates[count] = channel
            marked_at[channel] = tick
            count += 1
    for i in range(start[token], start[token + 1]):
        channel = channels[i]
        embedded[channel] = values[i]
        if marked_at[channel] != tick:
            candidates[count] = channel
            count += 1
    return count


@compiled
def _update_stream(form, state, stage, candidates, count):
    """Bring a stage's residual stream up to date; list the channels that changed and return how many."""
    stream = float32s(state.cell, stage * form.hidden * CELL + STREAM)
    before = float32s(state.cell, (stage - 1) * form.hidden * CELL + STREAM)
    output = float64s(state.cell, (stage - 1) * form.hidden * CELL64 + OUTPUT)
    embedded, squares = float32s(state.embedded, 0), float64s(state.squares, stage)
    list_of_changed = uint32s(state.changed, 0)
    total = squares[0]
    changed = _U0
    for i in range(np.uint64(count)):
        channel = np.uint64(candidates[i])
        cell = channel * _CELL
        written = np.float32(output[channel * _CELL64]) if stage else _ZERO
        new = before[cell] + written if stage else embedded[channel]
        old = stream[cell]
        if new != old:
            stream[cell] = new
            total += np.float64(new) * np.float64(new) - np.float64(old) * np.float64(old)
            list_of_changed[changed] = channel
            changed += _U1
    if int64s(state.clock, 0)[0] % RESUM_EVERY == 0:
        total = 0.0
        for channel in range(form.hidden):
            total += np.float64(stream[channel * CELL]) * np.float64(stream[channel * CELL])
    squares[0] = total
    return np.int64(changed)


@compiled
def _normalise(form, state, stage, changed):
    """RMSNorm: renew the channels that changed, all of them where the norm's factor did.

    Returns how many changed in the norm's output; `changed` and `difference` have them.
    """
    mean = np.float32(float64s(state.squares, stage)[0]) / np.float32(form.hidden)
    inverse = _ONE / np.sqrt(mean + form.epsilon)
    last = float32s(state.inverse, stage)
    everything = inverse != last[0]
    first = math.isnan(last[0])
    last[0] = inverse
    cells = float32s(state.cell, stage * form.hidden * CELL)
    stale = int64s(state.stale, stage)
    channels, differences = uint32s(state.changed, 0), float64s(state.difference, 0)
    found = _U0
    for i in range(np.uint64(form.hidden if everything else changed)):
        channel = i if everything else np.uint64(channels[i])
        cell = channel * _CELL
        new, old = cells[cell + _STREAM] * inverse * cells[cell + _GAIN], cells[cell + _NORMAL]
        if new == old:
            continue
        cells[cell + _NORMAL] = new
        if new < cells[cell + _LOW]:
            cells[cell + _LOW] = new
            stale[0] = 1
        if new > cells[cell + _HIGH]:
            cells[cell + _HIGH] = new
            stale[0] = 1
        channels[found] = channel
        differences[found] = np.float64(new) - np.float64(old)
        found += _U1
    if first:
        start_range(form, state, stage)
    return np.int64(found)


@compiled
def _add_up(form, state, stage, count):
    """Add what has changed to all forms that it goes into; return the trees that read some of it, as bits."""
    start = uint64s(form.column_start, stage * (form.hidden + 1))
    forms, weights = uint32s(form.column_form, 0), float32s(form.column_weight, 0)
    channels, differences = uint32s(state.changed, 0), float64s(state.difference, 0)
    watch, values = int64s(form.watch, stage * form.hidden), float64s(state.value, 0)
    trees = np.int64(0)
    for i in range(np.uint64(count)):
        channel, difference = np.uint64(channels[i]), differences[i]
        trees |= watch[channel]
        for k in range(start[channel], start[channel + _U1]):
            values[forms[k]] += np.float64(weights[k]) * difference
    return trees


@compiled
def _touch(form, state, stage, count, tick):
    """Add what has changed to gates and inputs of neurons; list those neurons, and return how many."""
    start = uint64s(form.column_start, stage * (form.hidden + 1))
    forms, weights = uint32s(form.column_form, 0), float32s(form.column_weight, 0)
    channels, differences = uint32s(state.changed, 0), float64s(state.difference, 0)
    values, list_of_touched = float64s(state.value, 0), uint32s(state.touched, 0)
    now = np.float64(tick)
    touched = _U0
    for i in range(np.uint64(count)):
        channel, difference = np.uint64(channels[i]), differences[i]
        for k in range(start[channel], start[channel + _U1]):
            number = np.uint64(forms[k])
            values[number] += np.float64(weights[k]) * difference
            neuron = number & _FIRST_OF_NEURON
            # Without a branch, which would be one that cannot be foretold.
            list_of_touched[touched] = neuron
            touched += np.uint64(values[neuron + _TOUCHED] != now)
            values[neuron + _TOUCHED] = now
    return np.int64(touched)


@compiled
def _fire(form, state, stage, touched, tick, following, count):
    """Renew the touched neurons, and what they put out."""
    first = uint64s(form.first_form, stage)[0]
    values, list_of_touched = float64s(state.value, 0), uint32s(state.touched, 0)
    output = float64s(state.cell, stage * form.hidden * CELL64 + OUTPUT)
    start = uint64s(form.down_start, int64s(form.first_neuron, stage)[0])
    channels, weights = uint32s(form.down_channel, 0), float32s(form.down_weight, 0)
    marked_at, differences = int64s(state.marked_at, 0), float64s(state.neuron_difference, 0)
    fired = _U0
    for i in range(np.uint64(touched)):
        neuron = np.uint64(list_of_touched[i])
        new = np.float64(silu(np.float32(values[neuron + _GATE])) * np.float32(values[neuron + _INPUT]))
        list_of_touched[fired] = neuron
        differences[fired] = new - values[neuron + _HIDDEN]
        fired += np.uint64(differences[fired] != 0)
        values[neuron + _HIDDEN] = new
    place = np.uint64(count)
    for i in range(fired):
        difference = differences[i]
        number = (np.uint64(list_of_touched[i]) - first) >> _NEURON_BITS
        for k in range(start[number], start[number + _U1]):
            channel = np.uint64(channels[k])
            output[channel * _CELL64] += np.float64(weights[k]) * difference
            following[place] = channel
            place += np.uint64(marked_at[channel] != tick)
            marked_at[channel] = tick
    return np.int64(place)
