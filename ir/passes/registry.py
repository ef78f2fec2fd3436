"""Passes by name, and pipelines as text: `simplify,if-convert{limit=4},dead-code`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable
from typing import Any, get_type_hints

from qgpu.ir.passes.manager import Pass

_ENTRY = re.compile(r"\s*(?P<name>[\w-]+)\s*(?:\{(?P<options>[^{}]*)\})?\s*(?P<end>,|$)")
_OPTION = re.compile(r"\s*(?P<name>[\w.$-]+)\s*=\s*(?P<value>[^,]*?)\s*(?:,|$)")
_SWITCH = {"true": True, "false": False}


class PipelineError(ValueError):
    """A pipeline's text is wrong; `column` (from 1) is where."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


def parse_pipeline(text: str, passes: dict[str, type[Pass]]) -> list[Pass]:
    """The passes that a text names, with their options.

    A pass is a name of `passes`, with options in braces where it is to have other than their defaults:
    `name{option=value,option=value}`. Numbers are in decimal or 0x hexadecimal, switches true or false.
    A mapping of names to numbers takes any option that is no field of the pass.

    Raises:
        PipelineError: the text has another form, or names a pass or an option that does not exist.
    """
    steps: list[Pass] = []
    position = 0
    while position < len(text) or not steps:
        match = _ENTRY.match(text, position)
        if match is None:
            raise PipelineError("expected 'pass' or 'pass{option=value}', parted by ','", position + 1)
        name = match["name"]
        if name not in passes:
            raise PipelineError(f"no pass '{name}'; there are: {', '.join(passes)}", match.start("name") + 1)
        steps.append(_configured(passes[name], match["options"] or "", match.start("options") + 1))
        position = match.end()
        if match["end"] == "," and position == len(text):
            raise PipelineError("a pass has to follow ','", position + 1)
    return steps


def _configured(step: type[Pass], text: str, column: int) -> Pass:
    known = get_type_hints(step)
    fields = {field.name: known[field.name] for field in dataclasses.fields(step)}
    values: dict[str, Any] = {}
    position = 0
    while position < len(text):
        match = _OPTION.match(text, position)
        if match is None:
            raise PipelineError("expected 'option=value'", column + position)
        _set_option(step, fields, values, match, column + position)
        position = match.end()
    return step(**values)


def _set_option(
    step: type[Pass], fields: dict[str, Any], values: dict[str, Any], match: re.Match[str], column: int
) -> None:
    name = match["name"].replace("-", "_")
    mapping = next((field for field, kind in fields.items() if kind == dict[str, int]), None)
    if name in fields and name != mapping:
        values[name] = _value(fields[name], match["value"], column)
    elif mapping is not None:
        values.setdefault(mapping, {})[match["name"]] = _value(int, match["value"], column)
    else:
        there = f"it has: {', '.join(fields)}" if fields else "it has none"
        raise PipelineError(f"'{step.name}' has no option '{match['name']}'; {there}", column)


def _value(kind: Any, text: str, column: int) -> Any:
    if kind is bool:
        if text not in _SWITCH:
            raise PipelineError(f"'{text}' is neither true nor false", column)
        return _SWITCH[text]
    if kind is str:
        return text
    try:
        return int(text, 0)
    except ValueError:
        raise PipelineError(f"'{text}' is not a number", column) from None


def describe_passes(passes: Iterable[type[Pass]]) -> str:
    """What `--help-passes` prints: each pass with its options' defaults and its documentation."""
    return "\n\n".join(_describe(step) for step in passes)


def _describe(step: type[Pass]) -> str:
    options = ",".join(_default(field) for field in dataclasses.fields(step))
    head = f"{step.name}{{{options}}}" if options else step.name
    return "\n".join([head, *(f"    {line}".rstrip() for line in inspect.getdoc(step).splitlines())])  # type: ignore[union-attr]


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default if field.default is not dataclasses.MISSING else "..."
    return f"{field.name}={str(value).lower() if isinstance(value, bool) else value}"
