"""The prover: its bounds hold, what it proves it proves, and planted faults are named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.prover import checkpoint as read
from qgpu.backends.prover.checkpoint import ProofError
from qgpu.backends.prover.cone import Cone
from qgpu.backends.prover.facts import Facts, Literals, Term, bit_set, either, members
from qgpu.backends.prover.literals import highest, necessary
from qgpu.backends.prover.memory import together
from qgpu.backends.prover.program import program_conditions
from qgpu.backends.prover.prove import Proof, prove
from qgpu.backends.prover.relations import lift
from qgpu.backends.prover.roundoff import Error, sum_errors
from qgpu.backends.prover.search import Search, at_most
from qgpu.backends.prover.stream import embedded, low_bit
from qgpu.backends.prover.substitution import highest_form
from qgpu.backends.transformer.emit import lay_out
from qgpu.backends.transformer.processor import build_processor

Checkpoint = Callable[[MachineDescription, str], Path]
PROVED_LAYERS = 2
PREFIX = "model.layers"


@st.composite
def cones(draw: st.DrawFn) -> tuple[list[Term], Facts]:
    """Terms over a few variables, some of which exclude each other, one of which is the sum of others."""
    facts, channels = Facts(), draw(st.integers(1, 4))
    for i in range(channels):
        apart = draw(st.lists(st.integers(0, i - 1), max_size=2)) if i else []
        facts.new(draw(st.integers(1, 2)), Literals(0, bit_set(apart)))
    for a, b, c in draw(st.lists(st.tuples(*[st.integers(0, channels - 1)] * 3), max_size=1)):
        if len({a, b, c}) == 3:
            facts.forbid((a, b, c))
    definition = [draw(terms(facts, 0)) for _ in range(draw(st.integers(1, 2)))]
    facts.new(sum(int(t.table.max()) for t in definition), Literals(), definition)
    return [draw(terms(facts, -3)) for _ in range(draw(st.integers(1, 4)))], facts


@st.composite
def terms(draw: st.DrawFn, facts: Facts, least: int) -> Term:
    """A function of a linear form over all variables so far."""
    weights = draw(st.lists(st.integers(-3, 3), min_size=len(facts.count), max_size=len(facts.count)))
    used = [(v, w) for v, w in enumerate(weights) if w]
    low = sum(w * facts.count[v] for v, w in used if w < 0)
    high = sum(w * facts.count[v] for v, w in used if w > 0)
    table = draw(st.lists(st.integers(least, 3), min_size=high - low + 1, max_size=high - low + 1))
    variables, weighed = tuple(v for v, _ in used), tuple(w for _, w in used)
    return Term(variables, weighed, low, np.array(table, dtype=np.float64))


def value(term: Term, case: tuple[int, ...]) -> int:
    """A term in a case."""
    v = sum(w * case[i] for i, w in zip(term.variables, term.weights, strict=True))
    return int(term.table[v - term.first])


def allowed(facts: Facts) -> list[tuple[int, ...]]:
    """Every case that the facts allow."""
    found = []
    for case in product(*(range(n + 1) for n in facts.count)):
        on = bit_set(v for v, n in enumerate(case) if n)
        if any(on >> v & 1 and facts.excludes[v] & on for v in range(len(case))):
            continue
        if any(
            on >> v & 1 and on >> a & 1 and on >> b & 1
            for v, sets in facts.nogoods.items()
            for a, bs in sets.items()
            for b in members(bs)
        ):
            continue
        defined = ((v, d) for v, d in enumerate(facts.definition) if d is not None)
        if all(case[v] == sum(value(t, case) for t in d) for v, d in defined):
            found.append(case)
    return found


@settings(max_examples=300)
@given(cones(), st.integers(-3, 6))
def test_a_bound_is_never_exceeded(cone: tuple[list[Term], Facts], limit: int) -> None:
    made, facts = cone
    sums = [sum(value(t, case) for t in made) for case in allowed(facts)]
    bounded = Cone(made, facts)
    assert bounded.maximum() >= max(sums, default=-np.inf)
    assert -bounded.maximum(-1) <= min(sums, default=np.inf)
    if at_most(facts, made, limit):
        assert max(sums, default=-np.inf) <= limit


@settings(max_examples=300)
@given(cones(), st.integers(-6, 6), st.integers(0, 6))
def test_what_is_necessary_holds(cone: tuple[list[Term], Facts], first: int, width: int) -> None:
    made, facts = cone
    term = made[0]
    found = necessary(facts, term.variables, term.weights, first, first + width)
    for case in allowed(facts):
        v = sum(w * case[i] for i, w in zip(term.variables, term.weights, strict=True))
        on = bit_set(i for i, n in enumerate(case) if n)
        if first <= v <= first + width:
            assert found.needs & ~on == 0
            assert found.lacks & on == 0
            assert all(clause & on for clause in found.clauses)


@settings(max_examples=300)
@given(cones())
def test_a_form_stays_below_its_bounds(cone: tuple[list[Term], Facts]) -> None:
    made, facts = cone
    term = made[0]
    bound = highest_form(facts, term.variables, term.weights)
    needed = necessary(facts, term.variables, term.weights, 1, np.inf)
    above = highest(facts, term.variables, term.weights, needed)
    for case in allowed(facts):
        v = sum(w * case[i] for i, w in zip(term.variables, term.weights, strict=True))
        assert v <= bound
        assert v <= max(0, above)


def test_a_count_is_bounded_beside_what_it_counts() -> None:
    """Of six bits those are counted that two more hold with: the count less the six is never above 0."""
    facts = Facts()
    bits = [facts.new(1, Literals()) for _ in range(6)]
    others = [facts.new(1, Literals()) for _ in range(6)]
    both = np.array([0.0, 0.0, 1.0])
    count = facts.new(6, Literals(), [Term(pair, (1, 1), 0, both) for pair in zip(bits, others, strict=True)])
    assert highest_form(facts, [count, *bits], [1] + [-1] * 6) == 0
    assert highest_form(facts, [count, *bits[1:]], [1] + [-1] * 5) == 1


def test_sums_of_bits_inherit_what_excludes_them() -> None:
    """f is f0 or f1, g is g0 or g1, never f0 with g1 nor f1 with g0; and neither pair is with w."""
    facts = Facts()
    f0, f1, g0, g1, w = (facts.new(1, Literals()) for _ in range(5))
    facts.exclude(g1, 1 << f0)
    facts.exclude(g0, 1 << f1)
    facts.forbid((f0, g0, w))
    facts.forbid((f1, g1, w))
    sums = []
    for one, other in ((f0, f1), (g0, g1)):
        raising = [facts.closed(1 << one, 0), facts.closed(1 << other, 0)]
        sums.append(facts.new(1, Literals(), (), raising))
        lift(facts, sums[-1], raising)
    f, g = sums
    assert facts.apart_with(f, 1 << w) >> g & 1
    assert not facts.apart_with(f, 1 << f0) >> g & 1


def test_rows_of_two_heads_are_apart_by_what_each_of_them_needs() -> None:
    """Queries of one head need a or b, those of the other lack both."""
    facts = Facts()
    a, b, c = (facts.new(1, Literals()) for _ in range(3))
    facts.exclude(c, 1 << a | 1 << b)
    one = either([facts.closed(1 << a, 0), facts.closed(1 << b, 0)])
    assert one.apart(facts.closed(1 << c, 0))
    assert not one.apart(facts.closed(0, 1 << a))


def test_rows_are_apart_by_cases() -> None:
    """Bits of a number come from a field or from a lane, never from both: the rows 6 and 7 of a memory."""
    facts = Facts()
    flag = facts.new(1, Literals())
    field = [facts.new(1, Literals(0, 1 << flag)) for _ in range(3)]
    lane = [facts.new(1, facts.closed(1 << flag, 0)) for _ in range(3)]
    for bit in lane:
        facts.exclude(bit, bit_set(field))
    places = [field[1], lane[0], field[0], field[2], lane[1], lane[2]]

    def row(number: int) -> Term:
        bits = [number >> i & 1 for i in range(3)]
        weight = {v: 1 if bit else -1 for some in (field, lane) for v, bit in zip(some, bits, strict=True)}
        ones = sum(bits)
        table = (np.arange(-2 * (3 - ones), 2 * ones + 1) >= ones).astype(np.float64)
        return Term(tuple(places), tuple(weight[v] for v in places), -2 * (3 - ones), table)

    def literals(which: str, number: int) -> Literals:
        term = row(number)
        return necessary(facts, term.variables, term.weights, number.bit_count(), np.inf)

    layer: Any = SimpleNamespace(stream=SimpleNamespace(facts=facts), literals=literals)
    layer.is_on = lambda which, number: row(number)
    assert together(layer, [6, 7]) is None
    assert not literals("qkv", 6).apart(literals("qkv", 7))
    assert together(layer, [6, 6]) == (6, 6)


def test_exclusive_conjunctions_count_once() -> None:
    """A bit and the product with its complement: intervals say 2."""
    facts = Facts()
    facts.new(1, Literals())
    facts.new(1, Literals())
    bit = Term((0,), (1,), 0, np.array([0.0, 1.0]))
    other = Term((0, 1), (-1, 1), -1, np.array([0.0, 0.0, 1.0]))
    assert Cone([bit, other], facts).maximum() == 1


def test_a_definition_tells_what_pairs_do_not() -> None:
    """x is a or b; a forbids c, b forbids d: x, c and d are not all 1, though each two may be."""
    facts = Facts()
    a, b = facts.new(1, Literals()), facts.new(1, Literals())
    facts.exclude(b, 1 << a)
    c, d = facts.new(1, Literals(0, 1 << a)), facts.new(1, Literals(0, 1 << b))
    one = np.array([0.0, 1.0])
    x = facts.new(1, Literals(), [Term((a,), (1,), 0, one), Term((b,), (1,), 0, one)])
    sum_of_three = [Term((x, c, d), (1, 1, 1), 0, np.arange(4.0))]
    assert not Search(facts, [(sum_of_three, 3, 3)], 0).refuted(
        Search(facts, [(sum_of_three, 3, 3)], 0).start()
    )
    assert at_most(facts, sum_of_three, 2)


def test_sums_of_rounded_bits() -> None:
    """Thirteen numbers of 1 - 2^-24, in two orders, are off by no more than is said."""
    small = np.float32(1 - 2.0**-24)
    errors = sum_errors(Error(2.0**-24, 0.0), 13, 0, 13)
    one_by_one = np.float32(0)
    for number in range(1, 14):
        one_by_one = np.float32(one_by_one + small)
        assert number - one_by_one <= errors[number, 0].below
    pairs = [np.float32(small + small)] * 4
    fours = [np.float32(pairs[0] + pairs[1]), np.float32(pairs[2] + pairs[3])]
    assert 8 - np.float32(fours[0] + fours[1]) <= errors[8, 0].below


def test_the_lowest_bit_of_numbers() -> None:
    assert low_bit(np.array([0.0, 3.0, -12.0, 0.375])).tolist() == [np.inf, 1.0, 4.0, 0.125]


def test_tokens_relate_their_channels() -> None:
    stream = embedded(np.array([[0.0, 0, 0], [1, 0, 2], [0, 1, 2]]))
    facts = stream.facts
    assert facts.excludes[0] == 0b010
    assert facts.implies[0] == 0b100
    assert not facts.implies[2]
    assert stream.unit.tolist() == [1, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_checkpoint_is_proved(checkpoint: Checkpoint, dtype: str) -> None:
    layout = lay_out(build_processor(SMALL), SMALL.model)
    certificate = prove(checkpoint(SMALL, dtype), program_conditions(SMALL, layout))
    assert [str(failure) for failure in certificate.failures] == []
    assert certificate.proved
    assert certificate.layers[-1]["code_margin"] >= 1
    assert certificate.layers[-1]["kind_margin"] >= 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_layers_are_proved(checkpoint: Checkpoint, dtype: str) -> None:
    certificate = prove(checkpoint(SMALL, dtype), layers=PROVED_LAYERS)
    assert [str(failure) for failure in certificate.failures] == []
    assert not certificate.proved
    assert json.loads(json.dumps(certificate.to_json()))["sha256"] == certificate.sha256
    assert all(report["gate_partial"] < 2**24 for report in certificate.layers)


EMPTY = 437
"""A channel that the first layers do not write."""

FAULTS: dict[str, tuple[str, Callable[[np.ndarray], None]]] = {
    "an up that reads data": ("0.mlp.up_proj.weight", lambda t: _put(t, (0, 40), 1.0)),
    "a norm of another size": ("0.input_layernorm.weight", lambda t: _put(t, (40,), 40000.0)),
    "a decay": ("0.linear_attn.A_log", lambda t: _put(t, (0,), 0.0)),
    "two taps": ("0.linear_attn.conv1d.weight", lambda t: _put(t, (0, 0, 0), 1.0)),
    "a write strength between": ("0.linear_attn.in_proj_b.weight", lambda t: _put(t, (3, 0), 5.0)),
    "a read of another size": ("0.linear_attn.out_proj.weight", lambda t: _scale(t, -1, 1.01)),
    "a gate between": ("1.mlp.gate_proj.weight", lambda t: _scale(t, 0, 0.75)),
    "a strength that is never on": ("0.linear_attn.in_proj_b.weight", lambda t: _scale(t, 2, -1.0)),
    "a gate that is always on": ("3.linear_attn.in_proj_z.weight", lambda t: _put(t, (0, 0), 32.0)),
    "a channel that nothing writes": ("1.mlp.gate_proj.weight", lambda t: _move(t, 0, EMPTY)),
    "a counter that counts too far": ("6.linear_attn.in_proj_b.weight", lambda t: _put(t, (1, 0), 0.0)),
    "two keys alike": ("2.linear_attn.in_proj_qkv.weight", lambda t: _copy(t, ROM_KEY, ROM_KEY + 1)),
}

REASONS = {
    "a counter that counts too far": "a count up to ",
    "a strength that is never on": "is never on",
    "a gate that is always on": "is always on",
    "a channel that nothing writes": f"reads channel {EMPTY}, which holds nothing",
}
"""What is said of some faults."""

ROM_KEY = SMALL.model.heads * SMALL.model.key_dim + 3 * SMALL.model.key_dim
"""The first key of program memory, which is the last head of its layer."""


def _scale(tensor: np.ndarray, which: int, factor: float) -> None:
    row, column = np.argwhere(tensor[:, 2:])[which]
    tensor[row, column + 2] *= factor


def _move(tensor: np.ndarray, which: int, target: int) -> None:
    row, column = np.argwhere(tensor[:, 2:])[which]
    tensor[row, [column + 2, target]] = tensor[row, [target, column + 2]]


def _copy(tensor: np.ndarray, source: int, target: int) -> None:
    tensor[target] = tensor[source]


def _put(tensor: np.ndarray, place: tuple[int, ...], value: float) -> None:
    tensor[place] = value


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(checkpoint: Checkpoint, tmp_path: Path, fault: str) -> None:
    part, plant = FAULTS[fault]
    source, name = checkpoint(SMALL, "float32"), f"{PREFIX}.{part}"
    shutil.copy(source / "config.json", tmp_path)
    tensors = load_file(source / "model.safetensors")
    plant(tensors[name])
    save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, tmp_path / "model.safetensors")
    failures = prove(tmp_path, layers=int(part[0]) + 1).failures
    assert failures
    layer = f"{PREFIX}.{part[0]}."
    named = [str(failure) for failure in failures if failure.tensor.startswith(layer)]
    assert any(REASONS.get(fault, "") in failure for failure in named), named


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProofError):
        prove(tmp_path)


def _edited(source: Path, folder: Path, changes: dict[str, Any]) -> Path:
    """The same checkpoint with another configuration; None takes an entry away."""
    config = json.loads((source / "config.json").read_text())
    config = {name: value for name, value in (config | changes).items() if value is not None}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").symlink_to(source / "model.safetensors")
    return folder


OTHER_MODELS: list[dict[str, Any]] = [
    *({"rms_norm_eps": eps} for eps in (-1.0, 0, 1e9, float("nan"), "x")),
    *({"num_hidden_layers": layers} for layers in (8, "9")),
    {"num_hidden_layers": 1, "layer_types": ["full_attention"]},
    {"layer_types": 3},
    {"vocab_size": 5},
    {"hidden_size": 256},
    {"intermediate_size": 800},
    {"head_dim": 128},
    {"linear_conv_kernel_dim": 3},
    {"linear_key_head_dim": "128"},
    {"linear_num_key_heads": None, "linear_num_value_heads": None},
    {"tie_word_embeddings": True},
    {"quantization_config": {"load_in_8bit": True}},
    {"text_config": {"hidden_size": 64}},
    {"hidden_act": "gelu"},
]


@pytest.mark.parametrize("changes", OTHER_MODELS, ids=str)
def test_a_configuration_of_another_model_proves_nothing(
    checkpoint: Checkpoint, tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(ProofError):
        prove(_edited(checkpoint(SMALL, "float32"), tmp_path / "edited", changes), layers=0)


def test_entries_that_have_a_default_may_lack(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = _edited(checkpoint(SMALL, "float32"), tmp_path / "edited", {"rms_norm_eps": None})
    assert prove(folder, layers=1).failures == []


@pytest.mark.parametrize("part", ["v_proj", "q_norm"])
def test_full_attention_has_to_be_finite(checkpoint: Checkpoint, tmp_path: Path, part: str) -> None:
    source = checkpoint(SMALL, "float32")
    kinds = json.loads((source / "config.json").read_text())["layer_types"]
    layer = kinds.index("full_attention")
    shutil.copy(source / "config.json", tmp_path)
    tensors = load_file(source / "model.safetensors")
    name = f"{PREFIX}.{layer}.self_attn.{part}.weight"
    tensors[name].reshape(-1)[0] = 1e38
    save_file(tensors, tmp_path / "model.safetensors")
    proof = Proof(read.Checkpoint(tmp_path), ())
    proof.layer(embedded(proof.checkpoint["model.embed_tokens.weight"]), layer, "full_attention")
    named = [str(failure) for failure in proof.certificate.failures if failure.tensor == name]
    assert any("attention may not be finite" in failure for failure in named)
