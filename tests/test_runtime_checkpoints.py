"""The cache of checkpoints: built once, whole or not at all, and never taken for another machine's."""

import dataclasses
import json
import multiprocessing
import time
from dataclasses import replace
from pathlib import Path

import pytest

import qgpu.backends.transformer as transformer
from qgpu.backends.machine.description import DEFAULT, SMALL, MachineDescription, ModelShape
from qgpu.runtime.checkpoints import (
    CheckpointError,
    built_checkpoint,
    cache_directory,
    check_checkpoint,
    checkpoint_machine,
)

BUILDS: list[tuple[str, str]] = []


def fake_emit(machine: MachineDescription, directory: str | Path, dtype: str = "float32") -> None:
    """Write a checkpoint's files without weights, slowly; note that it was done."""
    BUILDS.append((machine.name, dtype))
    folder = Path(directory)
    (folder / "config.json").write_text(json.dumps({"dtype": dtype}))
    time.sleep(0.05)
    (folder / "model.safetensors").write_text(dtype)
    (folder / "qgpu.json").write_text(json.dumps({"version": 1, "machine": dataclasses.asdict(machine)}))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    BUILDS.clear()
    monkeypatch.setenv("QGPU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(transformer, "emit_checkpoint", fake_emit)
    return tmp_path / "cache"


def test_a_checkpoint_is_built_once_a_machine_and_dtype(cache: Path) -> None:
    first = built_checkpoint(SMALL)
    assert first.parent == cache
    assert built_checkpoint(SMALL) == first
    assert built_checkpoint(SMALL, "bfloat16") != first
    assert built_checkpoint(replace(SMALL, predicates=4)) != first
    assert BUILDS == [("small", "float32"), ("small", "bfloat16"), ("small", "float32")]
    assert sorted(path.name[0] for path in cache.iterdir()) == ["s"] * 3


def test_other_sources_make_another_checkpoint(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = built_checkpoint(SMALL)
    monkeypatch.setattr(transformer, "fingerprint", lambda: "changed")
    assert built_checkpoint(SMALL) != first


def test_a_damaged_checkpoint_is_built_again(cache: Path) -> None:
    first = built_checkpoint(SMALL)
    (first / "model.safetensors").unlink()
    assert built_checkpoint(SMALL) == first
    assert (first / "model.safetensors").is_file()


def test_a_build_that_fails_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(machine: MachineDescription, directory: Path, dtype: str) -> None:
        (directory / "config.json").write_text(json.dumps({"dtype": dtype}))
        raise ValueError("it needs 3 heads more")

    monkeypatch.setattr(transformer, "emit_checkpoint", fail)
    with pytest.raises(CheckpointError, match="machine 'small': it needs 3 heads more"):
        built_checkpoint(SMALL)
    assert list(cache.iterdir()) == []


def test_a_machine_may_have_any_name(cache: Path) -> None:
    path = built_checkpoint(replace(SMALL, name="../a b/ü"))
    assert path.parent == cache
    assert path.name.startswith(".._a_b_ü-float32-")


def build_in_child(cache: str, results: "multiprocessing.Queue[str]") -> None:
    import os

    os.environ["QGPU_CACHE"] = cache
    transformer.emit_checkpoint = fake_emit  # pyright: ignore[reportAttributeAccessIssue]
    results.put(str(built_checkpoint(SMALL)))


def test_processes_that_build_at_once(cache: Path) -> None:
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[str] = context.Queue()  # pyright: ignore[reportAssignmentType]
    children = [context.Process(target=build_in_child, args=(str(cache), results)) for _ in range(4)]
    for child in children:
        child.start()
    paths = {results.get(timeout=60) for _ in children}
    for child in children:
        child.join()
    assert {child.exitcode for child in children} == {0}
    assert [str(path) for path in cache.iterdir()] == list(paths)


def test_a_checkpoint_knows_its_machine(cache: Path) -> None:
    path = built_checkpoint(SMALL)
    assert checkpoint_machine(path) == SMALL
    check_checkpoint(path, replace(SMALL, name="other", model=ModelShape(hidden=2048)))
    with pytest.raises(CheckpointError, match="another machine: 'small' has lanes = 4, 'default' has 32"):
        check_checkpoint(path, DEFAULT)


def test_a_checkpoint_is_one_of_its_dtype(cache: Path) -> None:
    path = built_checkpoint(SMALL, "bfloat16")
    check_checkpoint(path, SMALL, "bfloat16")
    with pytest.raises(
        CheckpointError, match="is a bfloat16 checkpoint: it is exact with --dtype bfloat16 alone"
    ):
        check_checkpoint(path, SMALL, "float32")


@pytest.mark.parametrize(
    "content", [None, "", "[]", "{}", '{"machine": 3}', '{"machine": {"name": 3}}', "\udcff"]
)
def test_directories_that_are_no_checkpoint(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "qgpu.json").write_text(content, errors="surrogateescape")
    with pytest.raises(CheckpointError, match=r"qgpu\.json"):
        checkpoint_machine(tmp_path)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QGPU_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_directory() == Path("/somewhere/qgpu")
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_directory().parts[-3:] == ("Library", "Caches", "qgpu")
