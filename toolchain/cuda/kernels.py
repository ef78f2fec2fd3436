"""The kernels of a translation unit: their places, their parameters' names, the instances it launches."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from qgpu.toolchain.cuda.declarations import Declaration, words_for
from qgpu.toolchain.cuda.names import KernelName, kernel_name, parse_name
from qgpu.toolchain.cuda.template_hints import instance_hints
from qgpu.toolchain.cuda.tokens import Token
from qgpu.toolchain.cuda.unit import TranslationUnit
from qgpu.toolchain.diagnostics import DiagnosticError

_SIMPLE = re.compile(
    r"-?\d\w*|true|false|unsigned|signed|char|short|int|long|bool|u?int(?:8|16|32|64)_t|size_t|,|\*"
)
"""Words of template arguments that mean the same wherever they stand."""

_LITERAL = re.compile(r"-?\d\w*|true|false")
"""A number or a truth value."""


@dataclass(frozen=True)
class SourceKernel:
    """A kernel as its source defines it.

    Attributes:
        name: without template arguments.
        template: its template parameters, or None.
        parameters: what they are called; an empty text for one without a name.
    """

    name: KernelName
    template: str | None
    parameters: tuple[str, ...]
    declaration: Declaration

    def __str__(self) -> str:
        return self.name.qualified + ("" if self.template is None else f"<{self.template}>")


class Kernels:
    """The kernels that a translation unit defines."""

    def __init__(self, unit: TranslationUnit) -> None:
        self._unit = unit

    @cached_property
    def all(self) -> list[SourceKernel]:
        """In the order of the source; those that a macro defines are not among them."""
        word = self._global_words
        return [
            _kernel(found)
            for found in self._unit.all_declarations()
            if found.kind == "function" and found.body is not None and found.has(*word)
        ]

    @cached_property
    def _global_words(self) -> set[str]:
        return words_for(self._unit.macros, {"__global__"})

    @cached_property
    def launched(self) -> list[str]:
        """Instances of templates that the source launches with arguments that are plain."""
        found = [
            name
            for file in self._unit.files.values()
            for name in _launches(file.tokens, self._template_names, self._constants, self._types)
        ]
        return list(dict.fromkeys(found))

    @cached_property
    def _constants(self) -> dict[str, str]:
        """Macros and constants that stand for the same literal wherever the source defines them."""
        found: dict[str, set[str]] = {}
        for name, definitions in self._unit.macros.items():
            found[name] = {"".join(part.text for part in macro.body) for macro in definitions}
        for file in self._unit.files.values():
            for name, value in _constant_variables(file.tokens):
                found.setdefault(name, set()).add(value)
        alone = {name: min(values) for name, values in found.items() if len(values) == 1}
        return {name: value for name, value in alone.items() if _LITERAL.fullmatch(value)}

    @cached_property
    def _types(self) -> set[str]:
        """Types of the global scope whose names nothing else is declared by, in no body either."""
        count = Counter(name for file in self._unit.files.values() for name in _type_names(file.tokens))
        types = {
            name
            for found in self._unit.all_declarations()
            if found.kind in ("type", "class") and not found.scope and found.template is None
            for name in found.names
        }
        return {name for name in types if count[name] == 1}

    @cached_property
    def _template_names(self) -> set[str]:
        return {kernel.name.own for kernel in self.all if kernel.template is not None}

    def instances(self, wanted: Sequence[str] | None) -> list[str]:
        """The instances of templates to compile for the kernels that are wanted, or for all.

        Raises:
            DiagnosticError: a template is wanted, and nothing says with which arguments.
        """
        if wanted is None:
            return self.launched
        return [name for one in wanted for name in self._instances_of(one)]

    def _instances_of(self, wanted: str) -> list[str]:
        parsed = kernel_name(wanted) if wanted.startswith("_Z") else parse_name(wanted)
        meant = [kernel for kernel in self.all if KernelName(parsed.scope, parsed.own).means(kernel.name)]
        templates = [kernel for kernel in meant if kernel.template is not None]
        if parsed.arguments is not None:
            scopes = {kernel.name.qualified for kernel in templates}
            (own,) = scopes if len(scopes) == 1 else [parsed.qualified]
            return [f"{own}<{parsed.arguments}>"] if templates else []
        launched = [name for name in self.launched if parsed.means(parse_name(name))]
        if templates and not launched and len(templates) == len(meant):
            raise self.needs_arguments(templates[0])
        return launched

    def needs_arguments(self, kernel: SourceKernel) -> DiagnosticError:
        """The refusal of a template that is named without arguments."""
        declaration = kernel.declaration
        file = self._unit.files[declaration.file]
        place = file.place(declaration.start)
        parameters = _split(declaration.template or ())
        return DiagnosticError(
            file.source.diagnostic(
                f"kernel '{kernel.name}' is a template with parameters <{kernel.template}>",
                *place,
                notes=instance_hints(str(kernel.name), parameters, self._unit),
            )
        )

    def parameter_names(self, mangled: str, count: int) -> tuple[str, ...] | None:
        """What the parameters of a compiled kernel are called; None where the source does not tell."""
        name = kernel_name(mangled)
        found = {
            kernel.parameters
            for kernel in self.all
            if len(kernel.parameters) == count and KernelName(name.scope, name.own).means(kernel.name)
        }
        return found.pop() if len(found) == 1 else None


def _kernel(found: Declaration) -> SourceKernel:
    scope = tuple(part for part in found.scope if part)
    template = None if found.template is None else _spelled(found.template)
    return SourceKernel(
        KernelName(scope, found.name),
        template,
        tuple(map(_parameter_name, _split(found.parameters or ()))),
        found,
    )


def _spelled(tokens: Sequence[Token]) -> str:
    text = " ".join(token.text for token in tokens)
    return re.sub(r"\s+([,>)\]:])", r"\1", re.sub(r"([<(\[:])\s+", r"\1", text)).replace(" ::", "::")


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens between the commas that are in no brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in "([{<") - (token.text in ")]}>")
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part and [token.text for token in part] != ["void"]]


def _parameter_name(tokens: Sequence[Token]) -> str:
    """The last name before an array's bounds or a default; a lone word is a type."""
    texts = [token.text for token in tokens]
    end = next((index for index, text in enumerate(texts) if text in ("=", "[")), len(texts))
    words = [token for token in tokens[:end] if token.kind == "name"]
    if "(" in texts[:end] and "*" in texts[:end]:
        star = texts.index("*", texts.index("(")) if "*" in texts[texts.index("(") :] else 0
        return texts[star + 1] if texts[star + 1].isidentifier() else ""
    last = tokens[end - 1] if end else None
    if len(words) < 2 and not {"*", "&", ">"} & set(texts[:end]):
        return ""
    return last.text if last is not None and last.kind == "name" and last.text not in _TYPES else ""


_TYPES = frozenset(
    (
        "int",
        "char",
        "short",
        "long",
        "unsigned",
        "signed",
        "bool",
        "float",
        "double",
        "const",
        "__restrict__",
        "restrict",
    )
)


def _constant_variables(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Names and values of `constexpr int name = value;` and its like."""
    for kind, name, sign, value, end in zip(*(tokens[i:] for i in range(5)), strict=False):
        if kind.text in _TYPES and name.kind == "name" and (sign.text, end.text) == ("=", ";"):
            yield name.text, value.text


_TYPE_KEYS = frozenset(("using", "class", "typename", "struct", "union", "enum"))


def _type_names(tokens: Sequence[Token]) -> Iterator[str]:
    """The names that are declared as types, wherever that is."""
    in_typedef = False
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        in_typedef = before.text == "typedef" or (in_typedef and before.text != ";")
        ends_typedef = (in_typedef or before.text == "}") and after.text in (";", ",", "[")
        if token.kind == "name" and (ends_typedef or before.text in _TYPE_KEYS):
            yield token.text


def _launches(
    tokens: Sequence[Token], templates: set[str], constants: Mapping[str, str], types: set[str]
) -> list[str]:
    """`name<arguments>` before `<<<`, with arguments that are plain, constants or types."""
    plain = [token for token in tokens if token.kind != "directive"]
    found: list[str] = []
    for index, token in enumerate(plain[:-2]):
        if token.text not in templates or plain[index + 1].text != "<":
            continue
        words = [constants.get(part.text, part.text) for part in plain[index + 2 :]]
        arguments = list(itertools.takewhile(lambda word: word in types or _SIMPLE.fullmatch(word), words))
        if arguments and words[len(arguments) :][:2] == [">", "<<<"]:
            found.append(str(parse_name(f"{_scoped(plain, index)}<{' '.join(arguments)}>")))
    return found


def _scoped(tokens: Sequence[Token], index: int) -> str:
    name = tokens[index].text
    while index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].kind == "name":
        name = f"{tokens[index - 2].text}::{name}"
        index -= 2
    return name
