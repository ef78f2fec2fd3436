"""docs/cli.md: forms of arguments, fields of the object, exit statuses and commands are as it says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from launches import HERE
from qgpu.runtime.arguments import DTYPES
from qgpu.runtime.cli import main
from qgpu.runtime.structures import parse_given

ROOT = Path(__file__).parent.parent
DOCUMENT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
FAULT = (
    *("--grid", "1", "--block", "3", "--arg", "i32[]:1,2", "--arg", "i32[]:4,5,6", "--arg", "i32[1]"),
    *("--arg", "i32:3"),
)
DOT = ("--grid", "1", "--block", "3", "--arg", "i32[]:1,2,3", "--arg", "i32[]:4,5,6", "--arg", "i32[1]")


def first_cells(heading: str) -> list[str]:
    """The first cells of a section's table, without quotes."""
    section = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [cell.strip("`") for cell in re.findall(r"^\| (\S[^|]*?) \|", section, re.MULTILINE)[1:]]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner(catch_exceptions=False).invoke(main, ["run", str(HERE / "dot.cu"), *arguments])
    return result.exit_code, result.stdout


def test_forms_of_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("values.npy", np.arange(3, dtype=np.int64))
    forms = first_cells("Arguments of a launch")
    assert len(forms) == 5
    for form in forms:
        parse_given(form)
    assert all(f"`{name}`" in DOCUMENT for name in DTYPES)


def test_fields_of_the_object() -> None:
    status, text = run(*DOT, "--arg", "i32:3", "--backend", "reference", "--json")
    assert status == 0
    assert set(json.loads(text)) == set(first_cells("Results"))
    _, text = run(*FAULT, "--backend", "reference", "--json")
    (told,) = re.findall(r"\| `fault` \|(.*)", DOCUMENT)
    assert set(json.loads(text)["fault"]) == set(re.findall(r"`(\w+)`", told))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((*DOT, "--arg", "i32:3", "--backend", "vector"), 0),
        ((*FAULT, "--backend", "vector"), 1),
        ((*DOT, "--backend", "vector"), 1),
        ((*DOT, "--arg", "i32:x", "--backend", "vector"), 2),
        ((*DOT, "--arg", "i32:3", "--backend", "gpu"), 2),
    ],
)
def test_statuses(arguments: tuple[str, ...], status: int) -> None:
    assert run(*arguments)[0] == status
    assert str(status) in first_cells("Exit status")


def test_the_commands_are_there() -> None:
    told = set(re.findall(r"^\| `qgpu ([\w-]+)", DOCUMENT, re.MULTILINE))
    assert told <= set(main.commands)
    assert {"run", "objdump", "coverage", "bench", "eval", "ask", "chat"} <= told


def shell_lines() -> Iterator[tuple[str, str]]:
    """The commands that documents show, each with its file; a synopsis (`[--option]`, `DIR|ID`) is none."""
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = file.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^(?: {4,})?(?:\$ )?((?:qgpuc?|python|clang\+\+) .*)$", text, re.MULTILINE):
            if not re.search(r" \[--|[A-Z]\|[A-Z]", line):
                yield file.name, line


def test_what_a_shell_would_expand_is_quoted() -> None:
    """zsh refuses `i32[]:1`, which matches no file, and bash takes `i32[1]` for a file `i321`."""
    lines = list(shell_lines())
    assert {"README.md", "bake.md", "cuda.md", "library.md"} <= {file for file, _ in lines}
    for file, line in lines:
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", line).partition(" #")[0]
        assert not set(bare) & set("[]*?{}<>|;&$`()!~\"'"), f"{file}: {line}"
