"""The arithmetic unit as a model of its own: every operation on corner cases, in the stock layers.

A token is a case, its embedding the operands and the fields of the block; the logits of the first 32 tokens
are the bits of the result.
"""

from __future__ import annotations

import random
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np

from qgpu.backends.machine.block import OPS, Block
from qgpu.backends.machine.description import SMALL, ModelShape
from qgpu.backends.reference.datapath import OPERATIONS
from qgpu.backends.transformer.checkpoint import model_config
from qgpu.backends.transformer.circuit import Channel, Circuit
from qgpu.backends.transformer.emit import Layout, lay_out, tensors
from qgpu.backends.transformer.evaluate import Evaluator
from qgpu.backends.transformer.units.address import Address
from qgpu.backends.transformer.units.alu import compute_result
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.registers import Operands

SHAPE = ModelShape(hidden=1024, heads=1)
CORNERS = (0, 1, 2, 3, 7, 8, 31, 32, 33, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xAAAAAAAA)
FLAGS = ("signed", "cond_lt", "cond_eq", "cond_gt", "width8", "width16")
CASES_EACH = 24


def operand(rng: random.Random) -> int:
    kinds = (rng.choice(CORNERS), rng.getrandbits(rng.randrange(1, 33)), rng.getrandbits(32))
    return rng.choice(kinds)


def cases() -> list[tuple[Block, int, int, int, int]]:
    """Blocks of every operation, with X, Y, Z and the byte address."""
    rng, made = random.Random(1), []
    for op in OPS:
        for _ in range(CASES_EACH):
            flags: dict[str, Any] = {name: rng.randrange(2) for name in FLAGS[:4]}
            flags[rng.choice(FLAGS[4:])] = 1
            block = Block(op=op, lut=rng.getrandbits(8), **flags)
            x, y, z = (operand(rng) for _ in range(3))
            made.append((block, x, rng.choice((y, y, y, x)), z, rng.randrange(4)))
    return made


def arithmetic_unit(made: list[tuple[Block, int, int, int, int]]) -> Circuit:
    """The unit alone, its inputs given by the token."""
    circuit = Circuit(len(made))

    def bus(name: str, values: list[int], width: int) -> list[Channel]:
        table = np.array(values, dtype=np.int64)
        return [circuit.token_channel(f"{name}.{i}", table >> i & 1) for i in range(width)]

    blocks = [case[0] for case in made]
    bits = {name: bus(name, [getattr(block, name) for block in blocks], 1) for name in FLAGS}
    bits["op"] = bus("op", [1 << list(OPS).index(block.op) for block in blocks], len(OPS))
    bits["lut"] = bus("lut", [block.lut for block in blocks], 8)
    words = {name: bus(name, [given[i] for _, *given in made], 32) for i, name in enumerate("xyz")}
    unused: dict[str, Any] = {field.name: [] for field in dataclass_fields(Operands)}
    unread: dict[str, Any] = {field.name: [] for field in dataclass_fields(Address)}
    unused |= words
    unread["byte"] = bus("byte", [case[4] for case in made], 2)
    result = compute_result(circuit, Fields(bits), Operands(**unused), Address(**unread))
    circuit.readout.logits = {k: bit.form() for k, bit in enumerate(result)}
    return circuit


def stock_model(layout: Layout, dtype: str) -> Any:
    import torch
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    content: dict[str, Any] = model_config(layout, SMALL, dtype) | {
        "linear_num_key_heads": SHAPE.heads,
        "linear_num_value_heads": SHAPE.heads,
        "hidden_size": SHAPE.hidden,
    }
    config = Qwen3_5TextConfig(**{k: v for k, v in content.items() if not k.endswith("token_id")})
    model = Qwen3_5ForCausalLM(config).to(getattr(torch, dtype)).eval()
    weights = {name: torch.from_numpy(np.ascontiguousarray(t)) for name, t in tensors(layout, dtype)}
    model.load_state_dict(weights)
    return model


def numbers(bits: np.ndarray) -> list[int]:
    return (bits.astype(np.int64) << np.arange(32)).sum(axis=1).tolist()


def test_every_operation_in_the_circuit_and_in_the_stock_model() -> None:
    import torch

    made = cases()
    expected = [OPERATIONS[block.op](block, x, y, z, address) for block, x, y, z, address in made]
    layout = lay_out(arithmetic_unit(made), SHAPE)
    evaluator = Evaluator(layout.circuit, layout.schedule)
    got: list[int] = []
    for token in range(len(made)):
        evaluator.step(token)
        got.append(evaluator.number_of("result", 32))
    assert got == expected
    for dtype in ("float32", "bfloat16"):
        model = stock_model(layout, dtype)
        with torch.no_grad():
            logits = model(torch.arange(len(made))[None]).logits[0, :, :32].float().numpy()
        assert set(np.unique(logits)) <= {0.0, 1.0}, dtype
        assert numbers(logits) == expected, dtype


def test_the_unit_takes_as_many_layers_as_its_longest_operation() -> None:
    """Four for the product; without heads the full attention shares a layer."""
    assert lay_out(arithmetic_unit(cases()[:2]), SHAPE).layers == 4
