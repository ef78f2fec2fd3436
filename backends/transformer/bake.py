"""Bake a kernel into the circuit of its machine: its rows are neurons, and what it never uses is gone.

Where a machine reads a row of program memory by the number of the current block, the baked circuit computes
it: of the block's place in its run, a count that one head keeps, every bit of a row is a piecewise linear
function, and one neuron a place serves all bits. They are known half a layer before a memory could be read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from qgpu.backends.machine.baked import BakedKernel
from qgpu.backends.machine.block import RUN_BLOCKS
from qgpu.backends.transformer.circuit import Channel, Circuit, Form, Head, conjunction, equals
from qgpu.backends.transformer.fold import fold
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.schedule import outputs_of
from qgpu.backends.transformer.stages import Tell, untold

COUNT, RUN = "run_count", "run"
"""Channels that say which block is the current one; see `State`."""


def build_baked(baked: BakedKernel, tell: Tell = untold) -> Circuit:
    """Return the circuit of a machine with a kernel's rows in it, and with nothing that they never use."""
    machine, rows = baked.machine, baked.rows()
    tell("circuit")
    circuit = build_processor(machine, list(rows.values()))
    unheard = np.setdiff1d(np.arange(circuit.vocabulary_size), baked.tokens())
    for table in circuit.token_tables.values():
        table[unheard] = 0
    number = [channel.name for channel in circuit.channels if channel.name.startswith(f"{RUN}.")]
    logits = circuit.readout.logits
    circuit.readout.logits = {token: logits[token] for token in baked.spoken() if token in logits}
    tell("what the kernel uses of it")
    folded = fold(circuit, baked.tokens(), [COUNT, *number])
    _compute_rows(folded, list(rows))
    folded.heads = _packed(folded.heads, machine.model.key_dim)
    return folded


def _compute_rows(circuit: Circuit, blocks: Sequence[int]) -> None:
    """Make neurons of the tables of rows: a function of the count in each run."""
    circuit.unit("program rows")
    named = {channel.name: channel for channel in circuit.channels}
    written = {channel for head in circuit.heads for channel in outputs_of(head)}
    runs: dict[int, dict[int, int]] = defaultdict(dict)
    for row, block in enumerate(blocks):
        runs[block // RUN_BLOCKS][block % RUN_BLOCKS] = row
    bits = [(k, named[f"{RUN}.{k}"]) for k in range(len(named)) if named.get(f"{RUN}.{k}") in written]
    for run, places in runs.items():
        row_at = _filled(places)
        functions = [(c, _lookup(table[row_at])) for c, table in circuit.row_tables.items()]
        chosen = equals([bit for _, bit in bits], sum((run >> k & 1) << i for i, (k, _) in enumerate(bits)))
        enable = conjunction(*chosen) if chosen else None
        circuit.add_function(named[COUNT], RUN_BLOCKS, functions, enable)
    circuit.row_tables = {}


def _filled(places: dict[int, int]) -> np.ndarray:
    """The row at each count of a run: between blocks, and after the last, that of the block before."""
    rows, last = [], places[min(places)]
    for place in range(RUN_BLOCKS + 1):
        last = places.get(place, last)
        rows.append(last)
    return np.array(rows)


def _lookup(table: np.ndarray) -> Callable[[int], int]:
    return lambda count: int(table[count])


def _packed(heads: Sequence, rows: int) -> list:
    """Heads of one file share as few as hold their rows."""
    files: dict[tuple, list[Head]] = defaultdict(list)
    packed = []
    for head in heads:
        if isinstance(head, Head) and head.file:
            files[head.file, id(head.columns), _key(head.write)].append(head)
        else:
            packed.append(head)
    for (file, *_), members in files.items():
        pairs = [pair for head in members for pair in zip(head.keys, head.queries, strict=True)]
        for first in range(0, len(pairs), rows):
            keys, queries = map(list, zip(*pairs[first : first + rows], strict=True))
            model = members[0]
            packed.append(
                Head(
                    f"{file}.{first}",
                    model.unit,
                    keys,
                    queries,
                    model.write,
                    model.columns,
                    model.key_tap,
                    file=file,
                )
            )
    return packed


def _key(form: Form) -> tuple[frozenset[tuple[Channel, int]], int]:
    return frozenset(form.terms.items()), form.constant
