"""The vocabulary, and the document that describes it."""

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import machine_kernels
from qgpu.backends.machine.block import FAULTS
from qgpu.backends.machine.description import DEFAULT, SEED, SMALL, MachineDescription
from qgpu.backends.machine.host import build_launch, read_tokens
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.run import run_launch

DOCUMENT = (Path(__file__).parents[1] / "docs" / "tokens.md").read_text(encoding="utf-8")
IDS = vocabulary(DEFAULT)


@pytest.mark.parametrize("machine", [SMALL, SEED])
def test_every_id_has_a_name_of_its_own(machine: MachineDescription) -> None:
    ids = vocabulary(machine)
    names = [ids.name(token) for token in range(ids.size)]
    assert len(set(names)) == ids.size
    for token in range(ids.size):
        found = ids.token(token)
        assert ids.id(found.kind, found.index) == token


@given(st.integers(0, 2**32 - 1) | st.sampled_from([0, 2047, 2048, 2**32 - 2048, 2**32 - 2049, 2**23, 2**31]))
def test_values_are_encoded_shortest(value: int) -> None:
    tokens = IDS.value(value)
    assert IDS.parse_value(tokens) == value
    signed = value - (value >> 31 << 32)
    shortest = next(n for n in (1, 2, 3) if -(1 << 12 * n - 1) <= signed < 1 << 12 * n - 1)
    assert len(tokens) == shortest


@given(st.integers(0, 2**32 - 1))
def test_values_that_end_a_block_differ_in_their_last_token(value: int) -> None:
    *parts, last = IDS.value(value)
    *same, final = IDS.value(value, "final")
    assert same == parts
    assert (IDS.token(last).kind, IDS.token(final).kind) == ("last", "final")
    assert IDS.token(last).index == IDS.token(final).index
    assert IDS.parse_value([*same, final]) == value


def test_sequences_that_are_no_value() -> None:
    more, last = IDS.id("more", 1), IDS.id("last", 1)
    final = IDS.id("final", 1)
    wrong = (
        [],
        [more],
        [last, last],
        [final, last],
        [more] * 3 + [last],
        [more] * 3 + [final],
        [IDS.id("exit")],
    )
    for tokens in wrong:
        with pytest.raises(ValueError, match="not one value"):
            IDS.parse_value(tokens)


def test_tokens_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="this machine has 1024 of its kind"):
        IDS.id("exec", 1024)
    with pytest.raises(ValueError, match="outside"):
        IDS.token(IDS.size)


def test_the_document_has_the_vocabulary() -> None:
    rows = re.findall(r"^\| (`.*`) \| ([\d,]+) \| (?:nobody|host|model|both) \|", DOCUMENT, re.MULTILINE)
    counts = {names: int(count.replace(",", "")) for names, count in rows}
    kinds = [re.findall(r"<(\w+)", names) for names in counts]
    firmware = [name.split(".")[0] for name in IDS.firmware_names]
    assert kinds[5] == list(dict.fromkeys(firmware))
    assert [names[0] for names in kinds[:5] + kinds[6:]] == [
        kind for kind in IDS.counts if kind != "firmware"
    ]
    assert list(counts.values()) == list(IDS.counts.values())
    assert f"({IDS.size:,} tokens in all)" in DOCUMENT
    assert all(f"`{fault}`" in DOCUMENT for fault in FAULTS)


def test_the_document_has_the_tokens_of_its_example() -> None:
    examples = re.findall(r"(?:^    .*\n)+", DOCUMENT, re.MULTILINE)
    prompt, generated, request = (re.findall(r"<[^>]+>", text) for text in examples)
    data = [struct.pack("<3i", *values) for values in ((1, 2, 3), (4, 5, 5000), (0, 0, 0))]
    launch = build_launch(DEFAULT, machine_kernels.vecadd_flat(DEFAULT), (1, 1, 1), (3, 1, 1), [*data, 3])
    sent = [IDS.name(token) for token in launch.prompt]
    assert sent[sent.index("<addr>") :] == prompt
    trace = run_launch(launch)
    assert [IDS.name(token) for token in trace.generated] == generated
    region = launch.buffers[2]
    assert region is not None
    asked = [IDS.name(token) for token in read_tokens(DEFAULT, region.address, 3)]
    answers = [IDS.name(token) for value in (5, 7, 5003) for token in IDS.value(value)]
    assert request == [*asked, *answers, "<exit>"]
