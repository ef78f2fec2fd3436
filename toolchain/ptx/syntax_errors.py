"""Syntax errors of PTX as diagnostics: what stands there, what may stand there, and what to do about it."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from qgpu.toolchain.diagnostics import Diagnostic, Source, note

_READABLE = {
    "NAME": "a name",
    "LABEL": "a label",
    "SYMBOL": "a name",
    "WORD": "a name",
    "INT": "an integer",
    "FLOAT": "a number",
    "FLOAT_BITS": "a number",
    "WARP_SIZE": "a number",
    "STRING": "a string",
    "TYPE": "a type",
    "OPAQUE": "a type",
    "SPACE": "a state space",
    "PARAMETER_SPACE": "'.param'",
    "VECTOR": "a vector length",
    "ATTRIBUTE_KIND": "an attribute",
    "FUNCTION_NAME": "'function_name'",
    "INLINED_AT": "'inlined_at'",
    "LINKAGE": "a linkage directive",
    "OPCODE": "an instruction",
    "CALL": "an instruction",
    "PERFORMANCE": "a performance directive",
    "FLAG": "a performance directive",
    "DWARF": "debug data",
    "GENERIC": "'generic'",
    "CAST": "a cast",
    "INFIX": "an operator",
    "_SINK": "'_'",
    "$END": "the end of the file",
}
_PUNCTUATION = {
    "COMMA": ",",
    "SEMICOLON": ";",
    "COLON": ":",
    "EQUAL": "=",
    "PLUS": "+",
    "MINUS": "-",
    "NOT": "!",
    "TILDE": "~",
    "VBAR": "|",
    "AT": "@",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "RBRACE": "}",
    "LESSTHAN": "<",
    "MORETHAN": ">",
}
# What may always follow an operand; worth naming only where nothing else may.
_CONTINUATIONS = {"PLUS", "MINUS", "INFIX", "VBAR", "LSQB"}
_MOST_ALTERNATIVES = 4
# Where the first set may stand, the second with it has one name.
_GROUPS = (
    (
        {"LABEL", "OPCODE"},
        {
            "LABEL",
            "OPCODE",
            "CALL",
            "AT",
            "LBRACE",
            "RBRACE",
            "REG",
            "PARAM",
            "SPACE",
            "LINKAGE",
            "PRAGMA",
            "LOC",
        }
        | {"DWARF"},
        "a statement or '}'",
    ),
    (
        {"ENTRY", "FUNC"},
        {
            "ENTRY",
            "FUNC",
            "ALIAS",
            "SPACE",
            "LINKAGE",
            "REG",
            "PRAGMA",
            "FILE",
            "LOC",
            "SECTION",
            "DWARF",
            "$END",
        }
        | {"SEMICOLON"},
        "a declaration",
    ),
    (
        {"INT", "FLOAT"},
        {
            "NAME",
            "INT",
            "FLOAT",
            "FLOAT_BITS",
            "WARP_SIZE",
            "GENERIC",
            "CAST",
            "PLUS",
            "MINUS",
            "NOT",
            "TILDE",
        }
        | {"LPAR", "LSQB", "LBRACE"},
        "an operand",
    ),
)
_DIRECTIVES = """
    .version .target .address_size .entry .func .alias .global .shared .local .const .reg .param .file .loc
    .section .pragma .visible .extern .weak .common .align .ptr .attribute .managed .unified
    .branchtargets .calltargets .callprototype .maxntid .minnctapersm .maxnctapersm .maxnreg .reqntid
    .noreturn .reqnctapercluster .explicitcluster .maxclusterrank .blocksareclusters .abi_preserve
    .abi_preserve_control .v2 .v4 .v8 .b8 .b16 .b32 .b64 .b128 .u8 .u16 .u32 .u64 .s8 .s16 .s32 .s64 .f16
    .f16x2 .f32 .f64 .pred .texref .samplerref .surfref
"""
_SKIPPED = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"[^"\n]*"|[{}]', re.DOTALL)


@dataclass(frozen=True)
class _Place:
    """Where parsing stopped: the text found, the terminals that may stand there, and the text before it.

    `is_token` says whether the text found is a token of PTX, although one that may not stand there.
    """

    found: str
    is_token: bool
    expected: Collection[str]
    before: str
    line: int
    column: int


def syntax_error(source: Source, error: UnexpectedInput) -> Diagnostic:
    """The diagnostic of the first place that is not PTX, with a note on what to write where that is known."""
    place = _place(source, error)
    if _lacks_semicolon(place):
        lines = place.before.rstrip().split("\n")
        notes = [note("every declaration and instruction ends with ';'")]
        return source.diagnostic("expected ';'", len(lines), len(lines[-1]) + 1, notes=notes)
    message = f"unexpected {_found(place)}"
    alternatives = _alternatives(place.expected)
    if 0 < len(alternatives) <= _MOST_ALTERNATIVES:
        message = f"{message}; expected {' or '.join(alternatives)}"
    notes = [note(advice(place)) for applies, advice in _ADVICE if applies(place)][:1]
    if not place.found:
        notes += _open_brace(source)
    return source.diagnostic(
        message, place.line, place.column, length=max(1, len(place.found.split("\n")[0])), notes=notes
    )


def _place(source: Source, error: UnexpectedInput) -> _Place:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        found, is_token, expected = str(error.token), True, error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        found, is_token, expected = error.char, False, error.allowed or ()
    else:
        lines = source.text.split("\n")
        expected = getattr(error, "accepts", None) or getattr(error, "expected", ())
        return _Place("", False, expected, source.text, len(lines), len(lines[-1]) + 1)
    return _Place(found, is_token, expected, source.text[: error.pos_in_stream], error.line, error.column)


def _lacks_semicolon(place: _Place) -> bool:
    """Whether a statement goes on to the end of its line, or of the file, where only `;` ends it."""
    at_end = not place.before.split("\n")[-1].strip() or not place.found
    return "SEMICOLON" in place.expected and "ENTRY" not in place.expected and at_end


def _found(place: _Place) -> str:
    if not place.found:
        return "end of the file"
    return f"'{place.found}'" if place.is_token else f"character {place.found!r}"


def _alternatives(expected: Collection[str]) -> list[str]:
    """The things that may stand at a place, in words, each once."""
    chosen, names = set(expected), []
    for signs, group, name in _GROUPS:
        if signs <= chosen:
            chosen -= group
            names.append(name)
    if len(chosen) + len(names) > 1:
        chosen -= _CONTINUATIONS
    return sorted({*names, *map(_readable, chosen)})


def _readable(terminal: str) -> str:
    if terminal in _PUNCTUATION:
        return f"'{_PUNCTUATION[terminal]}'"
    return _READABLE.get(terminal) or f"'.{terminal.lower()}'"


def _open_brace(source: Source) -> Iterable[Diagnostic]:
    """A note at the innermost brace that nothing closes."""
    open_: list[int] = []
    for match in _SKIPPED.finditer(source.text):
        if match.group() == "{":
            open_.append(match.start())
        elif match.group() == "}" and open_:
            open_.pop()
    if not open_:
        return []
    lines = source.text[: open_[-1]].split("\n")
    message = "to match this '{'"
    return [source.diagnostic(message, len(lines), len(lines[-1]) + 1, severity="note")]


def _similar(place: _Place) -> str | None:
    """The directive or type that an unknown one looks like, or that lacks its dot."""
    close = get_close_matches(place.found, _DIRECTIVES.split(), n=1, cutoff=0.7)
    return close[0] if close and close[0] != place.found else None


def _names_directive(place: _Place) -> bool:
    return place.found.startswith(".") or "TYPE" in place.expected


def _expects_statement(place: _Place) -> bool:
    return "OPCODE" in place.expected and "LABEL" in place.expected


# The first row that applies gives the note.
_ADVICE: tuple[tuple[Callable[[_Place], bool], Callable[[_Place], str]], ...] = (
    (
        lambda place: bool({"VERSION", "TARGET"} & set(place.expected)),
        lambda _: "a PTX file starts with '.version 9.0', '.target sm_75' and '.address_size 64'",
    ),
    (
        lambda place: place.found == "/" and not place.before.endswith("/"),
        lambda _: "a comment that starts with '/*' ends with '*/'",
    ),
    (lambda place: place.found == '"', lambda _: "a string ends on the line it starts on"),
    (
        lambda place: place.found == "-" and "PLUS" in place.expected,
        lambda _: "write a negative offset as 'name+-4'",
    ),
    (
        lambda place: place.found == ";" and _expects_statement(place),
        lambda _: "there is no empty statement; leave out the ';'",
    ),
    (
        lambda place: place.found == "{" and "OPCODE" in place.expected,
        lambda _: "a guard holds for one instruction; to guard several, branch around them",
    ),
    (
        lambda place: place.found == "(" and re.search(r"\bcall\b[^;]*$", place.before) is not None,
        lambda _: "a call is written 'call (results), function, (arguments);'",
    ),
    (
        lambda place: place.found in (".branchtargets", ".calltargets", ".callprototype"),
        lambda place: f"give the list a label: 'name: {place.found} ...;'",
    ),
    (
        lambda place: place.found.isdigit() and "INT" in place.expected,
        lambda _: "a number may end in 'U' and in no other suffix",
    ),
    (
        lambda place: (
            (place.found.startswith(".") or "TYPE" in place.expected) and _similar(place) is not None
        ),
        lambda place: f"did you mean '{_similar(place)}'?",
    ),
    (
        lambda place: "OPCODE" in place.expected and place.found.isalpha() and place.found.isupper(),
        lambda _: "instructions are written in lower case",
    ),
)
