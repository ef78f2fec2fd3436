"""What the compiled loop works on: the read-only form of a checkpoint, and the state of one sequence.

Both are named tuples of arrays. A *stage* is a norm with what reads it: the Gated DeltaNet of a layer (kind
MIXER), its SwiGLU (FEED_FORWARD), or the head (HEAD). A *form* is a row of a projection, a linear form over
the normalised channels of its stage; its present value is kept in `State.value`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

FEED_FORWARD, MIXER, HEAD = 0, 1, 2
KEY, QUERY = 0, 1

CELL = 8
GAIN, NORMAL, LOW, HIGH, STREAM = range(5)
OUTPUT, CELL64 = 3, 4
"""What is kept side by side for a stage's channel, eight float32 numbers: 1 + the norm's weight, the norm's
output, the range that the latter had so far (where trees read it), the residual stream that the norm reads;
and in place of the last two a float64 number (the last of four), what the stage adds to the stream."""

NEURON_BITS = 2
NEURON = 1 << NEURON_BITS
GATE, INPUT, HIDDEN, TOUCHED = range(NEURON)
"""What is kept side by side for a neuron, float64, in `State.value`: its two forms, silu(gate) * input as it
was put out, and the tick at which it was touched."""

LAST_WATCH = 62
"""Trees of a mixer from this one on share the last bit of `Form.watch`."""

RING = 4
"""Tokens that a convolution sees; kernels of up to as many taps are computed."""

Array = Any
"""A numpy array. What the compiler needs of its type stands beside each field."""


class Form(NamedTuple):
    """A checkpoint, sparse. Ranges are `x_start[i]` to `x_start[i + 1]`."""

    # The embedding: for each token, where its row differs from `base`.
    base: Array  # float32 [hidden]
    token_start: Array  # int64 [vocabulary + 1]
    token_channel: Array  # int32
    token_value: Array  # float32

    # Stages. Forms by column: what a channel of a stage goes into.
    kind: Array  # int64 [stage]
    gain: Array  # float32 [stage, hidden]: 1 + the norm's weight
    column_start: Array  # int64 [stage, hidden + 1]
    column_form: Array  # int32
    column_weight: Array  # float32

    # Feed-forward stages. A neuron takes NEURON consecutive numbers of forms: gate, input, and two unused.
    first_form: Array  # int64 [stage]
    first_neuron: Array  # int64 [stage]
    down_start: Array  # int64 [neuron + 1]
    down_channel: Array  # int32
    down_weight: Array  # float32

    # Mixers. `layer_heads` heads each; head numbers count through.
    mixer: Array  # int64 [stage]: the number of its mixer, or -1
    strength_form: Array  # int64 [head]: form of the write strength, -1 where nothing is ever written
    decay_form: Array  # int64 [head]: of in_proj_a; -1 where nothing fades
    decay_rate: Array  # float32 [head]: exp(A_log)
    decay_bias: Array  # float32 [head]
    head_norm: Array  # float32 [mixer, value dimension]
    value_start: Array  # int64 [head + 1]
    value_column: Array  # int32
    value_source: Array  # int32: index of a convolved row
    gate_start: Array  # int64 [head + 1]: the distinct gates of a head
    gate_form: Array  # int32
    member_start: Array  # int64 [gate + 1]: the columns that a gate rules
    member_column: Array  # int32
    output_start: Array  # int64 [member + 1]: out_proj's column
    output_channel: Array  # int32
    output_weight: Array  # float32

    # Convolved rows that are no row of a tree: distinct values, and keys and queries of several taps.
    row_form: Array  # int64 [row]
    row_taps: Array  # float32 [row, RING]: weights of the token itself, the one before, ...
    row_recent: Array  # int8 [row]: the token itself alone, with weight 1
    kept_start: Array  # int64 [mixer + 1]: rows, of those that need the tokens before
    kept_row: Array  # int32
    loose_entry: (
        Array  # int64: of keys and queries of several taps, head * key dimension + entry in their layer
    )
    loose_row: Array  # int64

    # Groups: heads whose keys (or queries) read the same channels; a mixer's of keys, then those of queries.
    group_start: Array  # int64 [2 * mixer + 1]
    group_tree: Array  # int64 [group + 1]
    group_loose: Array  # int64 [group + 1]
    group_place: Array  # int64 [group + 1]: where its list of heads begins

    # Bound trees (tree.py), one a tap of a group; the last tree is the head's.
    tree_start: Array  # int64 [mixer + 1]
    tree_stage: Array  # int64 [tree]
    tree_tap: Array  # int64 [tree]
    tree_node: Array  # int64 [tree + 1]: its nodes, the root first, parents before children
    tree_list: Array  # int64 [tree]: where its list of active rows begins
    watch: Array  # int64 [stage, hidden]: bits of the stage's trees that read a channel
    term_start: Array  # int64 [node + 1]
    term_channel: Array  # int32
    term_weight: Array  # float64
    child_start: Array  # int64 [node + 1]
    child: Array  # int32
    leaf_start: Array  # int64 [node + 1]: rows that end at a node
    leaf_row: Array  # int32
    lowest_row: Array  # int32 [node]: of the rows below
    shape: Array  # int32 [node]: the shape of the subtree below, or -1; of the head's tree alone
    shape_node: Array  # int32 [shape]: a node of it
    shape_rest: Array  # int32 [shape]: the shape of that node's children

    # Sizes: vocabulary, layers, mixers that are computed, heads of a layer, key and value dimension, places
    # of lists, forms.
    sizes: Array  # int64 [8]
    epsilon: Array  # float32 [1]
    layer_mixer: Array  # int64 [linear-attention layers]: number of the mixer, -1 where the state stays 0


class State(NamedTuple):
    """A sequence, and what of its last token the next one is computed from."""

    clock: Array  # int64 [3]: tokens of this sequence, ticks, the token before (-1 at the start)
    embedded: Array  # float32 [hidden]
    squares: Array  # float64 [stage]: sum of squares of the former
    inverse: Array  # float32 [stage]: the norm's factor
    cell: Array  # float32 [stage, hidden, CELL]
    difference: Array  # float64 [hidden]: of what is in `changed`
    value: Array  # float64 [form]
    touched: Array  # int32 [neuron + 1]: forms of gates
    neuron_difference: Array  # float64 [neuron + 1]
    marked_at: Array  # int64 [hidden]
    candidates: Array  # int32 [2, hidden + 1]
    changed: Array  # int32 [hidden]
    written: Array  # int32 [stage, hidden]: channels that a mixer's output is not 0 at
    written_count: Array  # int64 [stage]
    total: Array  # float64 [hidden]
    total_at: Array  # int64 [hidden]
    history: Array  # float32 [RING, row]
    row_value: Array  # float32 [row]
    row_at: Array  # int64 [row]
    memory: Array  # float32 [head, key dimension, value dimension]
    used: Array  # int8 [head]: has been written
    stale: Array  # int64 [stage]: the range has grown since the trees' bounds were made
    rest: Array  # float64 [node]: upper bound of what the terms below add
    shape_value: Array  # float64 [shape]: what they add at best, for the present token
    shape_at: Array  # int64 [shape]
    shape_stack: Array  # int32 [shape]
    list_row: Array  # int32 [RING, places]: active rows, in the slots that `list_slot` gives
    list_value: Array  # float32 [RING, places]
    list_count: Array  # int64 [RING, tree]
    list_slot: Array  # int64 [RING, tree]: for each of the last tokens
    list_renewed: Array  # int64 [RING, tree]
    stack_node: Array  # int32 [nodes of the largest tree]
    stack_sum: Array  # float64
    stack_bound: Array  # float64
    entry_count: Array  # int64 [mixer, 2, heads of a layer]
    entry_row: Array  # int32 [mixer, 2, heads of a layer, key dimension]
    entry_value: Array  # float32 [mixer, 2, heads of a layer, key dimension]
    entry_at: Array  # int64 [mixer, 2, heads of a layer]
    group_head: Array  # int32 [head lists of groups]
    group_count: Array  # int64 [group]
    written_at: Array  # int64 [head]
    read_at: Array  # int64 [head]
    gate_input: Array  # float32 [gate]
    opening: Array  # float32 [gate]: silu of it
    emitted: Array  # int64 [head]: how much its output is
    emitted_channel: Array  # int32 [outputs]
    emitted_value: Array  # float64 [outputs]
    vectors: Array  # float32 [3, value dimension]
