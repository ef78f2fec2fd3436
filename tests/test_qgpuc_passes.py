"""qgpuc as a tool on the IR: chosen passes, dumps, timings, graphs, inputs of several parts."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qgpu.ir import parse_module, print_module
from qgpu.ir.passes import PASSES, DeadCode, IfConvert, PipelineError, Simplify, manager, parse_pipeline
from qgpu.toolchain import driver

FIRST = """\
kernel @first(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %c = icmp slt %t, %n : i1
  condbr %c, then, done
then:
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %z = add %t, i32 0 : i32
  store i32 %q, %z
  br done
done:
  ret
}
"""
SECOND = """\
kernel @second(%n: i32) {
entry:
  %u = icmp eq %n, i32 0 : i1
  condbr %u, a, b
a:
  ret
b:
  ret
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.ir").write_text(FIRST)
    Path("two.ir").write_text(f"{FIRST}// -----\n{SECOND}")
    return tmp_path


def qgpuc(*arguments: str) -> Result:
    return CliRunner().invoke(driver.main, list(arguments), prog_name="qgpuc")


def test_pipelines_are_read_with_options() -> None:
    assert parse_pipeline("simplify, if-convert{limit=3,selects=0x4},dead-code", PASSES) == [
        Simplify(),
        IfConvert(limit=3, selects=4),
        DeadCode(),
    ]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected"),
        ("simplify,", 10, "has to follow"),
        ("simplify,,dead-code", 10, "expected"),
        ("simplify dead-code", 1, "expected"),
        ("dead-code,nothing", 11, "no pass 'nothing'"),
        ("dead-code{a=1}", 11, "it has none"),
        ("if-convert{limit=3,sides=1}", 20, "it has: limit, selects"),
        ("if-convert{limit=x}", 12, "'x' is not a number"),
        ("if-convert{limit}", 12, "option=value"),
    ],
)
def test_a_wrong_pipeline_is_refused_at_its_column(text: str, column: int, message: str) -> None:
    with pytest.raises(PipelineError, match=re.escape(message)) as caught:
        parse_pipeline(text, PASSES)
    assert caught.value.column == column


def test_chosen_passes_make_ir(folder: Path) -> None:
    result = qgpuc("k.ir", "--passes=simplify")
    module = parse_module(FIRST)
    Simplify().run(module.functions[0])
    assert (result.exit_code, result.stdout, result.stderr) == (0, print_module(module), "")
    assert "= add" in FIRST and "= add" not in result.stdout


def test_the_pipeline_stops_after_a_run_of_a_pass(folder: Path) -> None:
    assert "linearised" not in qgpuc("k.ir", "--stop-after=dead-code").stdout
    whole = qgpuc("k.ir", "--stop-after=linearize").stdout
    assert "linearised: true" in whole
    for wrong in ("simplify,99", "simplify,0", "simplify,x", "nothing"):
        assert qgpuc("k.ir", f"--stop-after={wrong}").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--passes=simplify", "--emit=qbin"],
        ["--stop-after=simplify", "--emit=machine"],
        ["--passes=nothing"],
        ["--split-input-file"],
        ["--passes=simplify", "--print-after=dead-code"],
    ],
)
def test_wrong_usage(folder: Path, arguments: list[str]) -> None:
    result = qgpuc("k.ir", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")


def test_dumps_show_only_what_changed(folder: Path) -> None:
    error = qgpuc("k.ir", "--passes=simplify,dead-code", "--print-changed").stderr
    assert error.startswith(f"*** IR Dump At Start ***\n{FIRST}*** IR Dump After simplify ***\nkernel @first")
    assert error.endswith("*** IR Dump After dead-code on first omitted because no change ***\n")


def test_dumps_go_to_a_folder(folder: Path) -> None:
    result = qgpuc("k.ir", "--passes=simplify,dead-code", "--dump-ir=dumps")
    files = {path.name: path.read_text() for path in Path("dumps/first").iterdir()}
    assert sorted(files) == ["00-input.ir", "01-simplify.ir", "02-dead-code.ir"]
    assert (files["00-input.ir"], files["02-dead-code.ir"]) == (FIRST, result.stdout)


def test_a_dump_that_cannot_be_written_is_an_error(folder: Path) -> None:
    Path("dumps").write_text("")
    result = qgpuc("k.ir", "--passes=simplify", "--dump-ir=dumps")
    assert result.exit_code == 1
    assert "error: cannot write" in result.stderr


def test_times_add_up_by_pass(folder: Path) -> None:
    error = qgpuc(
        "two.ir", "--split-input-file", "--passes=simplify,dead-code,simplify", "--time-passes"
    ).stderr
    assert re.search(r"simplify\s+│\s+4 │", error)
    assert re.search(r"dead-code\s+│\s+2 │", error)


def test_parts_of_a_file_are_compiled_each_for_itself(folder: Path) -> None:
    result = qgpuc("two.ir", "--split-input-file", "--emit=ir")
    assert result.stdout == f"{FIRST}// -----\n{SECOND}"
    text = Path("two.ir").read_text()
    Path("two.ir").write_text(text.replace("%n, i32 0", "%m, i32 0").replace("%t, %n", "%t, %k"))
    result = qgpuc("two.ir", "--split-input-file", "--emit=ir")
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.findall(r"^two.ir:\d+:\d+: error: .*$", result.stderr, re.MULTILINE) == [
        "two.ir:4:21: error: '%k' is not defined",
        "two.ir:17:16: error: '%m' is not defined",
    ]


def test_graphs_show_divergence_and_post_dominators(folder: Path) -> None:
    graph = qgpuc("k.ir", "--emit=cfg").stdout
    assert graph.startswith('digraph "first" {')
    assert re.search(r'"entry" \[label=".*condbr.*", color=red\];', graph)
    assert '"entry" -> "then" [label=T];' in graph
    assert '"entry" -> "done" [style=dashed' in graph
    uniform = qgpuc("two.ir", "--split-input-file", "--emit=cfg", "--passes=simplify").stdout
    assert "color=red" not in uniform.partition('digraph "second"')[2]


def test_every_pass_is_described() -> None:
    text = qgpuc("--help-passes").stdout
    heads = re.findall(r"^([\w-]+)(?:\{.*\})?$", text, re.MULTILINE)
    assert heads == list(PASSES)
    assert "if-convert{limit=0,selects=2}" in text


def test_what_is_made_on_the_way_is_kept(folder: Path) -> None:
    Path("kept").mkdir()
    assert qgpuc("k.ir", "--keep", "--keep-dir=kept").exit_code == 0
    texts = {path.name: path.read_text() for path in Path("kept").iterdir()}
    assert sorted(texts) == ["k.ir", "k.opt.ir", "k.qasm"]
    assert texts["k.ir"] == FIRST
    assert texts["k.opt.ir"] == qgpuc("k.ir", "--stop-after=linearize").stdout
    assert texts["k.qasm"] == qgpuc("k.ir", "--emit=machine").stdout
    assert Path("k.qbin").exists() and Path("k.ir").read_text() == FIRST


def test_a_folder_to_keep_in_has_to_exist(folder: Path) -> None:
    result = qgpuc("k.ir", "--keep", "--keep-dir=nowhere")
    assert (result.exit_code, Path("k.qbin").exists()) == (1, False)
    assert "cannot write 'nowhere/k.ir'" in result.stderr


@pytest.mark.parametrize(("arguments", "times"), [([], 2), (["--verify-each"], 4)])
def test_the_ir_is_verified_at_the_ends_or_after_each_pass(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], times: int
) -> None:
    verified: list[str] = []
    monkeypatch.setattr(manager, "verify", lambda function: verified.append(function.name))
    assert qgpuc("k.ir", "--passes=simplify,dead-code,simplify", *arguments).exit_code == 0
    assert verified == ["first"] * times


def test_what_is_kept_does_not_take_the_place_of_the_input(folder: Path) -> None:
    text = f"; a comment that printing would lose\n{FIRST}"
    Path("k.ir").write_text(text)
    assert qgpuc("k.ir", "--keep").exit_code == 0
    assert Path("k.ir").read_text() == text
    assert Path("k.opt.ir").exists() and Path("k.qasm").exists()
