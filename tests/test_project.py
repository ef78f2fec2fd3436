"""The project's own rules, where a rule can be checked: layout, imports, dependencies, texts."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
LINKS = ROOT / ".links" / "qgpu"
LAYERS = ("ir", "backends", "toolchain", "runtime")
"""The packages from the lowest up: each may import itself and those before it."""

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def sources(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


def tracked_files() -> list[Path]:
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if git.returncode:
        pytest.skip("not a git checkout")
    return [path for name in git.stdout.split("\0") if name and (path := ROOT / name).is_file()]


# Layout.


@pytest.mark.parametrize("layer", LAYERS)
def test_package_is_a_relative_link_to_its_folder(layer: str) -> None:
    link = LINKS / layer
    assert link.is_symlink()
    assert str(link.readlink()) == f"../../{layer}"
    assert (link / "__init__.py").is_file()


def test_every_link_is_a_layer_and_is_type_checked() -> None:
    assert sorted(path.name for path in LINKS.iterdir()) == sorted(LAYERS), "`qgpu` itself has no __init__.py"
    checked = json.loads((LINKS.parent / "pyrightconfig.json").read_text())["include"]
    assert set(checked) == {*(f"qgpu/{layer}" for layer in LAYERS), "../examples", "../tests"}


@pytest.mark.parametrize("layer", LAYERS)
def test_every_folder_with_modules_is_a_package(layer: str) -> None:
    bare = {path.parent for path in sources(layer) if not (path.parent / "__init__.py").is_file()}
    assert not bare


def test_every_data_file_of_a_package_is_installed_with_it() -> None:
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    files = [path.relative_to(ROOT) for path in tracked_files() if path.relative_to(ROOT).parts[0] in LAYERS]
    assert files
    left = [path for path in files if not any(fnmatch(path.name, it) for it in [*data["*"], "*.py"])]
    assert [path for path in left if not any(_lies_in(path, *item) for item in data.items())] == []


def _lies_in(path: Path, package: str, patterns: list[str]) -> bool:
    """Whether a file is among the data of a package that is named in full."""
    folder = Path(*package.split(".")[1:])
    return path.is_relative_to(folder) and str(path.relative_to(folder).parent / "*") in patterns


# Imports.


def imported_names(path: Path) -> Iterator[str]:
    """Every module that a file imports anywhere, `from a import b` as both a and a.b."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_go_one_way(layer: str) -> None:
    above = LAYERS[LAYERS.index(layer) + 1 :]
    forbidden = {f"qgpu.{name}" for name in above}
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources(layer)
        for name in imported_names(path)
        if ".".join(name.split(".")[:2]) in forbidden
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["ir", "toolchain", "backends.machine"])
def test_compiling_does_not_load_torch(package: str) -> None:
    """Every module of the package is imported in a fresh process, in which torch must stay unloaded."""
    script = f"""
import importlib, pkgutil, sys
package = importlib.import_module("qgpu.{package}")
for module in pkgutil.walk_packages(package.__path__, "qgpu.{package}."):
    importlib.import_module(module.name)
    assert not {{"torch", "transformers"}} & set(sys.modules), module.name
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={"PYTHONPATH": str(LINKS.parent)}
    )
    assert run.returncode == 0, run.stderr


# Dependencies.


def constraints() -> dict[str, str]:
    """The pinned version of each project in constraints.txt."""
    pins: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][0-9A-Za-z.+]*)", line)
        assert match, f"not a plain pin: {line}"
        name = re.sub(r"[-_.]+", "-", match[1]).lower()
        assert name not in pins, f"pinned twice: {name}"
        pins[name] = match[2]
    return pins


def requirements() -> list[Requirement]:
    project = PYPROJECT["project"]
    lists = (project["dependencies"], *project["optional-dependencies"].values())
    return [Requirement(text) for texts in lists for text in texts]


@pytest.mark.parametrize("requirement", requirements(), ids=lambda requirement: requirement.name)
def test_dependency_is_pinned_to_a_release_that_it_allows(requirement: Requirement) -> None:
    name = re.sub(r"[-_.]+", "-", requirement.name).lower()
    assert requirement.specifier.contains(constraints()[name])


@pytest.mark.parametrize("layer", LAYERS)
def test_every_import_is_of_a_declared_dependency(layer: str) -> None:
    declared = {requirement.name for requirement in requirements()} | {"qgpu", *sys.stdlib_module_names}
    wanted = {name.split(".")[0] for path in sources(layer) for name in imported_names(path)}
    assert wanted <= declared


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml", "Makefile", ".ci/run"])
def test_no_registry_is_named(name: str) -> None:
    assert "://" not in (ROOT / name).read_text()


# Texts.


def test_no_file_names_a_path_of_one_machine() -> None:
    home = re.compile(r"(?<![\w.$}/])/(?:work|root|home|Users|tmp)/\w")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked_files()
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1)
        if home.search(line)
    ]
    assert wrong == []


def test_every_make_command_of_the_readme_is_a_target() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^ *|`)make ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_link_of_the_readme_leads_somewhere() -> None:
    prose = re.sub(r"^    .*$", "", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    links = re.findall(r"\]\(([^)#]+)", prose)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_prose_of_the_readme_is_wrapped() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith(("|", "    "))] == []
