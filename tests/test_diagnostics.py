"""Diagnostics: clang's form, to the character."""

import io
import pickle

import pytest

from qgpu.toolchain.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Source,
    emit,
    failure,
    note,
    render,
    reporting,
    summary,
    without_warnings,
)

SOURCE = Source("k.cu", "int x;\n\ty = foo(1);\r\nlast")


def test_error_with_caret_and_notes() -> None:
    hint = SOURCE.diagnostic("declared here", 1, 5, severity="note")
    error = SOURCE.diagnostic("unknown 'foo'", 2, 6, length=3, notes=[hint, note("plain")])
    assert render([error]).split("\n") == [
        "k.cu:2:6: error: unknown 'foo'",
        "\ty = foo(1);",
        "\t    ^~~",
        "k.cu:1:5: note: declared here",
        "int x;",
        "    ^",
        "note: plain",
    ]


@pytest.mark.parametrize(
    ("line", "column", "first", "shown"),
    [(3, 0, "k.cu:3: error: m", 2), (9, 1, "k.cu:9:1: error: m", 1), (0, 0, "k.cu: error: m", 1)],
)
def test_places_known_less_closely(line: int, column: int, first: str, shown: int) -> None:
    text = render([SOURCE.diagnostic("m", line, column)]).split("\n")
    assert (text[0], len(text)) == (first, shown)


def test_no_file_shows_the_program() -> None:
    assert render([Diagnostic(message="no input")], program="qgpu") == "qgpu: error: no input"


def test_underline_stops_at_the_end_of_the_line() -> None:
    assert render([SOURCE.diagnostic("m", 3, 3, length=80)]).endswith("\n  ^~")


def test_caret_just_past_the_end() -> None:
    assert render([SOURCE.diagnostic("m", 3, 5)]).endswith("last\n    ^")


@pytest.mark.parametrize(
    ("severities", "text"),
    [
        (["error"], "1 error generated."),
        (["error", "error", "warning"], "1 warning and 2 errors generated."),
        (["warning", "warning"], "2 warnings generated."),
        ([], ""),
    ],
)
def test_summary(severities: list, text: str) -> None:
    assert summary(Diagnostic(severity=severity, message="") for severity in severities) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "coloured"), [(Terminal(), True), (io.StringIO(), False)])
def test_colour_only_on_a_terminal(stream: io.StringIO, coloured: bool) -> None:
    emit([SOURCE.diagnostic("m", 1, 1)], stream=stream)
    assert ("\x1b[" in stream.getvalue()) == coloured


def test_who_compiles_many_kernels_sees_errors_alone() -> None:
    stream, warning = io.StringIO(), SOURCE.diagnostic("w", 1, 1, severity="warning")
    with without_warnings():
        emit([warning], stream=stream)
        assert stream.getvalue() == ""
        emit([warning, SOURCE.diagnostic("m", 1, 1)], stream=stream)
    assert "error: m" in stream.getvalue()
    assert "warning" not in stream.getvalue()
    emit([warning], stream=stream)
    assert "warning: w" in stream.getvalue()


def test_reporting_ends_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop, reporting("qgpu"):
        raise failure("no such kernel", "the module has: dot", file="k.cu")
    captured = capsys.readouterr()
    assert stop.value.code == 1
    assert captured.out == ""
    assert captured.err == "k.cu: error: no such kernel\nnote: the module has: dot\n1 error generated.\n"


def test_reporting_lets_other_errors_through() -> None:
    with pytest.raises(KeyError), reporting("qgpu"):
        raise KeyError("bug")


def test_a_diagnostic_error_holds_an_error() -> None:
    with pytest.raises(ValueError, match="at least one error"):
        DiagnosticError(Diagnostic(severity="warning", message="m"))


def test_a_diagnostic_error_crosses_processes() -> None:
    error = DiagnosticError(Diagnostic(message="wrong"), Diagnostic(message="unused", severity="warning"))
    copy = pickle.loads(pickle.dumps(error))
    assert copy.diagnostics == error.diagnostics and str(copy) == str(error)
