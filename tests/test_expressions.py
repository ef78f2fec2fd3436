"""Expressions: values as Python's integers have them, and an error at the place of every mistake."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click.testing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgpu.backends.machine.description import DEFAULT, SMALL
from qgpu.backends.machine.host import Launch
from qgpu.runtime.cli import main
from qgpu.runtime.engine import EngineError
from qgpu.runtime.expressions import Launcher, evaluate, launcher
from qgpu.runtime.expressions.functions import ALIASES, FUNCTIONS, OPERATORS
from qgpu.runtime.launch import Outcome
from qgpu.runtime.library import ROUTINES
from qgpu.runtime.vector import run_vector
from qgpu.toolchain.diagnostics import DiagnosticError

HIGH = 2**31 - 1


def value(text: str) -> object:
    return evaluate(text, Launcher(DEFAULT, run_vector)).value.tolist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[1, 2, 3] @ [4, 5, 6]", 32),
        ("[[1, 2], [3, 4]] @ [5, 6]", [17, 39]),
        ("[5, 6] @ [[1, 2], [3, 4]]", [23, 34]),
        ("[[1, 2], [3, 4]] @ [[0, 1], [1, 0]]", [[2, 1], [4, 3]]),
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("2 ** 10 % 1000", 24),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("7 // -2, 7 % -2", [-4, -1]),
        ("1 | 2 ^ 3 & 4 << 1", 3),
        ("~5", -6),
        ("[3, 1, 2] > 1", [1, 0, 1]),
        ("([3, 1, 2] > 1) & ([3, 1, 2] < 3)", [0, 0, 1]),
        ("1 + 2 == 3", 1),
        ("-2147483648", -(2**31)),
        ("0x10 + 0b11 + 1_000 + 0o7", 1026),
        ("True + True", 2),
        ("sum([[1, 2], [3, 4]])", 10),
        ("sum([[1, 2], [3, 4]], 0)", [4, 6]),
        ("sum([[1, 2], [3, 4]], axis=1)", [3, 7]),
        ("max([3, 9, 2]) - min([3, 9, 2])", 7),
        ("max(3, [1, 5])", [3, 5]),
        ("np.sum([1, 2])", 3),
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("[3, 1, 2].max()", 3),
        ("[[1, 2], [3, 4]].T", [[1, 3], [2, 4]]),
        ("[[1, 2], [3, 4]].sum(axis=0)", [4, 6]),
        ("sorted([3, 1, 2])", [1, 2, 3]),
        ("unique([3, 1, 3])", [1, 3]),
        ("compress([4, 5, 6] > 4, [4, 5, 6])", [5, 6]),
        ("argsort([3, 1, 2])", [1, 2, 0]),
        ("x = [5, 6, 7]; x[0], x[-1]", [5, 7]),
        ("[5, 6, 7][[2, 0]]", [7, 5]),
        ("[[1, 2], [3, 4]][1]", [3, 4]),
        ("[[1, 2], [3, 4]][1, 0]", 3),
        ("[5, 6, 7, 8][1:3]", [6, 7]),
        ("[5, 6, 7, 8][-2:]", [7, 8]),
        ("[5, 6, 7, 8][:-1]", [5, 6, 7]),
        ("range(4)", [0, 1, 2, 3]),
        ("range(-1, 2)", [-1, 0, 1]),
        ("len([4, 5, 6])", 3),
        ("prod(range(1, 11))", 3628800),
        ("x = 3  # a comment\n\ny = x * [1,\n 2]\ny + x", [6, 9]),
        ("[1 + 1, 2 * 2]", [2, 4]),
        ("where([1, 0], [5, 6], 7)", [5, 7]),
        ("clip([-5, 0, 5], -1, 1)", [-1, 0, 1]),
        ("concatenate([1, 2], [3])", [1, 2, 3]),
        ("histogram([0, 2, 2], 3)", [1, 0, 2]),
        ("outer([1, 2], [3, 4])", [[3, 4], [6, 8]]),
        ("diagonal([[1, 2], [3, 4]])", [1, 4]),
        ("x = [5, 9, 1, 7]; x[x > 4]", [5, 9, 7]),
        ("x = [5, 9, 1, 7]; big = x > 4; x[big & (x < 8)]", [5, 7]),
        ("x = [5, 9, 1]; x[(x > 4) * 1]", [9, 9, 5]),
        ("np.array([1, 2]) + list([3, 4])", [4, 6]),
        ("gcd(12, 18), lcm(4, 6)", [6, 12]),
        ("diff(cumsum([4, 5, 6]))", [5, 6]),
    ],
)
def test_values(text: str, wanted: object) -> None:
    assert value(text) == wanted


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("1 +", (1, 4), "the expression ends too early", ""),
        ("[1, 2", (1, 6), "the expression ends too early", "'[' is never closed"),
        ("1 2", (1, 3), "unexpected '2'", ""),
        ("x = 1; x $ 2", (1, 10), "unexpected character '$'", ""),
        ("x = [1]\nx and x", (2, 3), "unexpected 'and'", "write &"),
        ("not 1", (1, 5), "unexpected '1'", "write x == 0"),
        ("1 / 2", (1, 3), "there is no '/'", "write //"),
        ("1.5 * 2", (1, 1), "'1.5' is no whole number", ""),
        ("1 < 2 < 3", (1, 1), "a chain of comparisons", "compare two"),
        ("3000000000", (1, 1), "3000000000 does not fit 32 bits", ""),
        ("2147483648", (1, 1), "2147483648 does not fit 32 bits", ""),
        ("[]", (1, 1), "an empty vector", ""),
        ("y + 1", (1, 1), "'y' has no value", "give it a value"),
        ("total = 1; totl", (1, 12), "'totl' has no value", "did you mean 'total'?"),
        ("sum + 1", (1, 1), "'sum' is a function", "call it"),
        ("srot([1])", (1, 1), "there is no function 'srot'", "did you mean 'sort'?"),
        ("mean([1])", (1, 1), "there is no function 'mean'", "sum(x) // len(x)"),
        (
            "[1, 2] + [1, 2, 3]",
            (1, 1),
            "'+' of a vector of 2 and a vector of 3 do not fit",
            "shapes are equal",
        ),
        ("[[1, 2]] @ [1, 2, 3]", (1, 1), "do not fit", "2 columns meet 3 rows"),
        ("1 @ [1]", (1, 1), "'@' takes no number and a vector of 1", "it takes a vector, a vector"),
        ("sort([[1]])", (1, 1), "'sort' takes no matrix of 1 rows and 1 columns", "it takes a vector"),
        ("where(1, 2)", (1, 1), "'where' takes 3 arguments, not 2", ""),
        ("sum([1], axis=0)", (1, 1), "'sum' takes no vector of 1", "it takes a matrix"),
        ("sum([[1]], axis=2)", (1, 17), "axis is 0", ""),
        ("sum([1], keepdims=1)", (1, 19), "no argument 'keepdims'", ""),
        ("[[1, 2], [3]]", (1, 10), "a vector of 1 beside a vector of 2", ""),
        ("[[[1]]]", (1, 1), "a vector of matrices", ""),
        ("1 + [7, 8] // [1, 0]", (1, 5), "division by zero (element 1)", ""),
        (f"[1, {HIGH}] + 1", (1, 1), "the sum does not fit 32 bits (element 1)", ""),
        ("[1, 2][2]", (1, 1), "the index is outside", ""),
        ("[1, 2][2:1]", (1, 1), "-1 elements", ""),
        ("range(0)", (1, 1), "0 elements", ""),
        ("compress([0], [1])", (1, 1), "no element is left", ""),
        ("len(3)", (1, 1), "a number has no length", ""),
        ("3[0]", (1, 1), "a number has no elements", ""),
        ("[1, 2][[1, 2, 3] > 1]", (1, 1), "a mask of a vector of 3 for a vector of 2", ""),
        ("~([1, 2] > 1)", (1, 1), "'~' changes every bit of a mask", "(mask) == 0"),
        ("sorted([1], reverse=True)", (1, 21), "no argument 'reverse'", "reverse(sort(x))"),
        ("print(1)", (1, 1), "there is no function 'print'", "the last line"),
        ("(1)(2)", (1, 1), "what is called is no function", ""),
        ("", (1, 0), "the expression is empty", ""),
        ("(" * 3000 + "1" + ")" * 3000, (1, 0), "nests too deep", ""),
        ("+".join(["1"] * 150), (1, 1), "nests deeper than 100", "give parts of it names"),
        ("range(65537)", (1, 1), "65537 elements", "1 to 65536"),
        ("range(60000)", (1, 1), "words of memory; machine 'default' has 4096", ""),
        ("1" * 30000, (1, 0), "longer than 20000 characters", ""),
        ("'text'", (1, 1), 'unexpected character "\'"', ""),
    ],
)
def test_mistakes(text: str, place: tuple[int, int], message: str, hint: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        value(text)
    (found,) = caught.value.diagnostics
    assert (found.line, found.column) == place
    assert message in found.message
    assert hint in " ".join(note.message for note in found.notes)


@dataclass(frozen=True)
class Term:
    """An expression's text, and what it is worth: None where something on the way does not fit 32 bits."""

    text: str
    worth: tuple[int, ...] | None


_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": lambda a, b: int(a < b),
    "==": lambda a, b: int(a == b),
}


def _fitting(values: Iterator[int]) -> tuple[int, ...] | None:
    try:
        found = tuple(values)
    except ZeroDivisionError:
        return None
    return found if all(-HIGH - 1 <= one <= HIGH for one in found) else None


def _joined(name: str, a: Term, b: Term) -> Term:
    text = f"({a.text} {name} {b.text})"
    if a.worth is None or b.worth is None:
        return Term(text, None)
    return Term(text, _fitting(_BINARY[name](x, y) for x, y in zip(a.worth, b.worth, strict=True)))


_SIZES = st.one_of(st.integers(-9, 9), st.integers(-HIGH, HIGH))
_VECTORS = st.lists(_SIZES, min_size=3, max_size=3).map(lambda items: Term(str(items), tuple(items)))
_NUMBERS = _SIZES.map(lambda number: Term(f"({number})", (number,) * 3))


@settings(max_examples=30)
@given(
    st.recursive(
        st.one_of(_VECTORS, _NUMBERS),
        lambda terms: st.builds(_joined, st.sampled_from(sorted(_BINARY)), terms, terms),
        max_leaves=6,
    )
)
def test_random_expressions(term: Term) -> None:
    if term.worth is None:
        with pytest.raises(DiagnosticError, match=r"does not fit|division by zero"):
            value(term.text)
        return
    found = value(term.text)
    assert found == list(term.worth) if isinstance(found, list) else (found,) * 3 == term.worth


def test_every_routine_has_a_name() -> None:
    """Every routine is what a function or an operator means, or a place in brackets; and all are there."""
    meant = {one.routine for meanings in (*OPERATORS.values(), *FUNCTIONS.values()) for one in meanings}
    assert meant | {"gather"} == set(ROUTINES)
    assert set(ALIASES.values()) <= {*FUNCTIONS, *OPERATORS}


def test_every_step_is_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A back end that computes something else changes the value: nothing is computed beside it."""

    def wrong(launch: Launch) -> Outcome:
        outcome = run_vector(launch)
        buffers = [None if one is None else bytes(len(one)) for one in outcome.buffers]
        return Outcome(**{**vars(outcome), "buffers": tuple(buffers)})

    for text in ("1 + 2", "[1, 2] @ [3, 4]", "max([1, 2])", "-[1]", "[5, 6][1]", "3 > 2", "gcd(4, 6)"):
        found = evaluate(text, Launcher(DEFAULT, wrong)).value
        assert not found.any(), text


def test_launches_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = evaluate("x = [1, 2] + 3; sum(x * x)", Launcher(DEFAULT, run_vector))
    assert [launch.routine for launch in found.launches] == ["add", "multiply", "sum"]
    assert found.tokens == sum(launch.tokens for launch in found.launches) > 6
    assert found.layer_passes is None
    monkeypatch.setattr(launcher, "MAX_LAUNCHES", 2)
    with pytest.raises(DiagnosticError, match="more than 2 launches"):
        value("1 + 2 + 3 + 4")


def test_a_machine_without_room_says_so() -> None:
    with pytest.raises(DiagnosticError, match="machine 'small' has 128"):
        evaluate("range(200)", Launcher(SMALL, run_vector))


# The command.


def qgpu(*arguments: str) -> click.testing.Result:
    return click.testing.CliRunner(catch_exceptions=False).invoke(main, ["eval", *arguments])


def test_command() -> None:
    result = qgpu("[1, 2, 3] @ [4, 5, 6]", "--backend", "reference", "-v")
    assert (result.exit_code, result.stdout) == (0, "32\n")
    assert result.stderr.splitlines() == [
        "dot 3 3: 8 generated",
        result.stderr.splitlines()[1],
    ]
    assert result.stderr.splitlines()[1].startswith("1 launch on machine 'default' by reference: 8 generated")


def test_command_as_json() -> None:
    result = qgpu("-7 // 2", "--backend", "vector", "--json")
    found = json.loads(result.stdout)
    assert (found["value"], found["machine"], found["backend"]) == (-4, "default", "vector")
    assert found["generated_tokens"] == found["launches"][0]["generated_tokens"] > 1
    assert found["launches"][0]["kernel"] == "floor_divide"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("[1, 2", "--backend", "vector"), 1, "<expression>:1:6: error: the expression ends too early"),
        (("1 // 0", "--backend", "vector"), 1, "<expression>:1:1: error: division by zero"),
        (("1 + 1", "--backend", "vector", "--check"), 2, "neither tokens nor a model"),
        (("1 + 1", "--dtype", "bfloat16"), 2, "computes in float32"),
        (("1 + 1", "--machine", "nowhere", "--backend", "vector"), 1, "nowhere"),
        (("1 + 1", "--backend", "gpu"), 2, "'gpu' is not one of"),
        (("2 ** 20", "--backend", "vector", "--max-tokens", "5"), 1, "has not ended after 5 tokens"),
    ],
)
def test_command_refuses(arguments: tuple[str, ...], status: int, message: str) -> None:
    result = qgpu(*arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr


def test_an_engine_that_fails_is_no_value() -> None:
    def broken(launch: Launch) -> Outcome:
        raise EngineError("no engine")

    with pytest.raises(EngineError, match="no engine"):
        evaluate("1 + 1", Launcher(DEFAULT, broken))
