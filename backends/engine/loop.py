"""The compiled loop: token after token through the stages, by what has changed since the token before.

Sums are float64 and exact where the checkpoint's are; each result is rounded to float32 where torch holds it so.
Every other operation is torch's, on float32, in its order (transformers, models/qwen3_5/modeling_qwen3_5.py).
`form` and `state` are records of layout.py's arrays by address (arrays.py).
"""

import math

import numpy as np
from numba import njit

from qgpu.backends.engine.arrays import float32s, float64s, int32s, int64s
from qgpu.backends.engine.layout import FEED_FORWARD, HEAD
from qgpu.backends.engine.memory import mix
from qgpu.backends.engine.numerics import silu
from qgpu.backends.engine.walk import most_likely, start_range

RESUM_EVERY = 4096
"""Tokens after which the sums of squares, which are kept by differences, are made anew."""

_ONE = np.float32(1)


@njit(cache=True, nogil=True)
def feed(form, state, tokens):
    """Append tokens to a sequence."""
    for token in tokens:
        _step(form, state, token)


@njit(cache=True, nogil=True)
def generate(form, state, token, stops, found):
    """Append a token and then each answer, until one is a stop or `found` is full; return how many were found."""
    for count in range(len(found)):
        _step(form, state, token)
        token = most_likely(form, state)
        found[count] = token
        if stops[token]:
            return count + 1
    return len(found)


@njit(cache=True, nogil=True)
def _step(form, state, token):
    kinds = int64s(form.kind, 0)
    clock = int64s(state.clock, 0)
    changed = int32s(state.changed, 0)
    marked_at = int64s(state.marked_at, 0)
    count = _embed(form, state, token)
    side = 0
    for stage in range(form.stages):
        total = _update_stream(form, state, stage, int32s(state.candidates, side * form.hidden), count)
        clock[1] += 1
        tick = clock[1]
        # What has changed here may have changed in the next stage.
        side = 1 - side
        following = int32s(state.candidates, side * form.hidden)
        for i in range(total):
            following[i] = changed[i]
            marked_at[changed[i]] = tick
        touched = _normalise(form, state, stage, total, tick)
        if kinds[stage] == FEED_FORWARD:
            count = _fire(form, state, stage, touched, tick, following, total)
        elif kinds[stage] != HEAD:
            count = mix(form, state, stage, tick, following, total)
    clock[0] += 1


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _update_stream(form, state, stage, candidates, count):
    """Bring a stage's residual stream up to date; list the channels that changed and return how many."""
    stream = float32s(state.stream, stage * form.hidden)
    before = float32s(state.stream, (stage - 1) * form.hidden)
    output = float64s(state.output, (stage - 1) * form.hidden)
    embedded, squares = float32s(state.embedded, 0), float64s(state.squares, stage)
    list_of_changed = int32s(state.changed, 0)
    total = squares[0]
    changed = 0
    for i in range(count):
        channel = candidates[i]
        new = embedded[channel] if stage == 0 else before[channel] + np.float32(output[channel])
        old = stream[channel]
        if new != old:
            stream[channel] = new
            total += np.float64(new) * np.float64(new) - np.float64(old) * np.float64(old)
            list_of_changed[changed] = channel
            changed += 1
    if int64s(state.clock, 0)[0] % RESUM_EVERY == 0:
        total = 0.0
        for channel in range(form.hidden):
            total += np.float64(stream[channel]) * np.float64(stream[channel])
    squares[0] = total
    return changed


@njit(cache=True, nogil=True)
def _normalise(form, state, stage, changed, tick):
    """RMSNorm, and the forms that read it; return how many neurons were touched."""
    mean = np.float32(float64s(state.squares, stage)[0]) / np.float32(form.hidden)
    inverse = _ONE / np.sqrt(mean + form.epsilon)
    last = float32s(state.inverse, stage)
    list_of_changed = int32s(state.changed, 0)
    touched = 0
    if inverse == last[0]:
        for i in range(changed):
            touched = _push(form, state, stage, np.int64(list_of_changed[i]), inverse, tick, touched)
        return touched
    first = math.isnan(last[0])
    last[0] = inverse
    for channel in range(form.hidden):
        touched = _push(form, state, stage, channel, inverse, tick, touched)
    if first:
        start_range(form, state, stage)
    return touched


@njit(cache=True, nogil=True)
def _push(form, state, stage, channel, inverse, tick, touched):
    """Renew a channel of the norm's output, and add the difference to every form that it goes into."""
    place = stage * form.hidden + channel
    new = float32s(state.stream, place)[0] * inverse * float32s(form.gain, place)[0]
    normal = float32s(state.normal, place)
    old = normal[0]
    if new == old:
        return touched
    normal[0] = new
    _widen(form, state, stage, place, new)
    difference = np.float64(new) - np.float64(old)
    start = int64s(form.column_start, place + stage)
    forms, weights = int32s(form.column_form, 0), float64s(form.column_weight, 0)
    values = float64s(state.value, 0)
    count = int64s(form.neurons, stage)[0]
    if count == 0:
        for k in range(start[0], start[1]):
            values[forms[k]] += weights[k] * difference
        return touched
    first, neuron_before = int64s(form.first_form, stage)[0], int64s(form.first_neuron, stage)[0]
    touched_at, list_of_touched = int64s(state.touched_at, 0), int32s(state.touched, 0)
    for k in range(start[0], start[1]):
        number = forms[k]
        values[number] += weights[k] * difference
        neuron = number - first
        if neuron >= count:
            neuron -= count
        neuron += neuron_before
        if touched_at[neuron] != tick:
            touched_at[neuron] = tick
            list_of_touched[touched] = neuron
            touched += 1
    return touched


@njit(cache=True, nogil=True)
def _widen(form, state, stage, place, value):
    """Let a channel's range take in a value."""
    low, high = float32s(state.low, place), float32s(state.high, place)
    if value < low[0]:
        low[0] = value
        int64s(state.stale, stage)[0] = 1
    elif value > high[0]:
        high[0] = value
        int64s(state.stale, stage)[0] = 1


@njit(cache=True, nogil=True)
def _fire(form, state, stage, touched, tick, following, count):
    """Renew the touched neurons, and what they put out."""
    first_neuron = int64s(form.first_neuron, stage)[0]
    gates = float64s(state.value, int64s(form.first_form, stage)[0] - first_neuron)
    width = int64s(form.neurons, stage)[0]
    output = float64s(state.output, stage * form.hidden)
    list_of_touched, hidden = int32s(state.touched, 0), float32s(state.hidden, 0)
    start, channels = int64s(form.down_start, 0), int32s(form.down_channel, 0)
    weights, marked_at = float64s(form.down_weight, 0), int64s(state.marked_at, 0)
    for i in range(touched):
        neuron = list_of_touched[i]
        new = silu(np.float32(gates[neuron])) * np.float32(gates[width + neuron])
        old = hidden[neuron]
        if new == old:
            continue
        hidden[neuron] = new
        difference = np.float64(new) - np.float64(old)
        for k in range(start[neuron], start[neuron + 1]):
            channel = channels[k]
            output[channel] += weights[k] * difference
            if marked_at[channel] != tick:
                marked_at[channel] = tick
                following[count] = channel
                count += 1
    return count
