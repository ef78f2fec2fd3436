"""What to say of a kernel template that is named without arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from qgpu.toolchain.cuda.tokens import Token
from qgpu.toolchain.cuda.unit import SourceFile, TranslationUnit
from qgpu.toolchain.diagnostics import Diagnostic, note

_EXAMPLES = {
    **dict.fromkeys(("typename", "class"), "int"),
    **dict.fromkeys(("int", "unsigned", "signed", "short", "long", "char", "auto", "size_t"), "16"),
    **{f"{sign}int{bits}_t": "16" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "true",
}
"""An argument that fits, by the word that a template parameter begins with."""


def instance_hints(
    name: str, parameters: Sequence[Sequence[Token]], unit: TranslationUnit
) -> list[Diagnostic]:
    """How to name an instance of a template, and where the source launches one.

    Args:
        name: of the template, with its scopes.
        parameters: the tokens of each template parameter.
    """
    own = name.rpartition("::")[2]
    arguments = [_EXAMPLES.get(parameter[0].text) for parameter in parameters]
    given = [argument for argument in arguments if argument is not None]
    example = f"; an example: --kernel '{name}<{', '.join(given)}>'" if len(given) == len(arguments) else ""
    launch = next((found for file in unit.files.values() for found in _launches(file, own)), None)
    hint = note(f"--kernel '{name}<...>' picks an instance by its template arguments{example}")
    return [hint] if launch is None else [launch, hint]


def _launches(file: SourceFile, own: str) -> Iterator[Diagnostic]:
    """Notes of the places where a file launches instances."""
    tokens = [token for token in file.tokens if token.kind != "directive"]
    for index, (token, angle) in enumerate(itertools.pairwise(tokens)):
        if token.text != own or angle.text != "<":
            continue
        rest = itertools.takewhile(lambda part: part.text not in ("<<<", ";", "{", "}"), tokens[index + 2 :])
        arguments = list(rest)
        following = index + 2 + len(arguments)
        if arguments and arguments[-1].text == ">" and tokens[following].text == "<<<":
            text = " ".join(file.text[token.start : arguments[-1].end].split())
            yield file.source.diagnostic(
                f"the source launches '{text}'; its arguments are not only literals and known types",
                *file.place(token.start),
                severity="note",
                length=len(text),
            )
