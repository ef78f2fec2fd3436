"""Conversations with a scripted text model: right calls, wrong ones, replies that do not end, Ctrl-C."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click.testing
import pytest

from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.host import Launch
from qgpu.runtime import chat_command
from qgpu.runtime.chat import Session, limits, session
from qgpu.runtime.chat.calls import Call, CallError, parse_reply, visible
from qgpu.runtime.chat.expression_tool import ExpressionTool
from qgpu.runtime.chat.machine import bounded_runs
from qgpu.runtime.chat.session import Observer
from qgpu.runtime.cli import main
from qgpu.runtime.engine import EngineError
from qgpu.runtime.expressions.functions import FUNCTIONS
from qgpu.runtime.vector import run_vector
from scripted_model import Reply, ScriptedModel, json_call, last_answer, xml_call

DOT = "[1, 2, 3] @ [4, 5, 6]"


def started(*replies: Reply) -> tuple[Session, ScriptedModel]:
    """A conversation in normal mode, whose launches run without tokens."""
    model = ScriptedModel(*replies)
    return Session(model, ExpressionTool(DEFAULT, run_vector)), model


# Calls in replies.


@pytest.mark.parametrize("write", [json_call, xml_call])
@pytest.mark.parametrize("expression", ["1 + 1", "x = [1, 2]\nsum(x) # <b>", 'a < b & "c"\n\n  d'])
def test_both_forms_of_calls(write: Callable[..., str], expression: str) -> None:
    reply = parse_reply(f"<think>\n<tool_call>no</think>\n\nLet me see.\n{write(expression=expression)}\n")
    assert reply.text == "Let me see."
    assert reply.calls == (Call("cuda", {"expression": expression}),)


def test_several_calls_and_what_follows_them() -> None:
    reply = parse_reply(
        f"{xml_call(expression='1')}\n{json_call(expression='2')}\n<tool_response>\n7</tool_response>"
    )
    assert [call.arguments["expression"] for call in reply.calls] == ["1", "2"]
    assert "tool_response" not in reply.said


def test_a_call_without_its_first_mark() -> None:
    (call,) = parse_reply("<function=cuda>\n<parameter=expression>\n1\n</parameter>\n</function>").calls
    assert call.arguments == {"expression": "1"}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("<tool_call>\n{}", "never closed"),
        ("<tool_call>{</tool_call>", "no JSON"),
        ('<tool_call>{"name": "cuda", "arguments": [1]}</tool_call>', "a call is"),
        ('<tool_call>{"arguments": {}}</tool_call>', "a call is"),
        ('<tool_call>{"name": "cuda", "arguments": "1 +"}</tool_call>', "no JSON object"),
        ("<tool_call>1 + 1</tool_call>", "neither a JSON object nor <function=NAME>"),
        (
            "<tool_call><function=cuda><parameter=a>1</function></tool_call>",
            "never closed: write </parameter>",
        ),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "neither a JSON object"),
        ('<tool_call>{"a":' + "[" * 100_000 + "</tool_call>", "no JSON"),
    ],
)
def test_calls_that_are_none(reply: str, message: str) -> None:
    with pytest.raises(CallError, match=message):
        parse_reply(reply)


def test_text_is_shown_as_it_comes_and_marks_never() -> None:
    reply = f"<think>a < b</think>So 1 < 2 and\n{json_call(expression='1')}"
    shown = [visible(reply[:end]) for end in range(len(reply) + 1)]
    after = [text for end, text in enumerate(shown) if end >= reply.index("So")]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(after))
    assert after[-1] == "So 1 < 2 and\n"
    assert not any("tool" in text or "<t" in text for text in shown)
    assert visible("1 <", ended=True) == "1 <"


# Conversations.


def test_a_question_with_a_call() -> None:
    chat, model = started(f"I compute.\n{xml_call(expression=DOT)}", last_answer)
    answer = chat.ask("What is the dot product?")
    assert answer.text == "The result is 32."
    assert [call.arguments for call, _ in answer.calls] == [{"expression": DOT}]
    assert [record.routine for record in answer.launches] == ["dot"]
    assert (answer.failures, answer.stopped) == (0, None)
    roles = [message["role"] for message in chat.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    called = model.asked[1][2]
    assert called["tool_calls"][0]["function"] == {"name": "cuda", "arguments": {"expression": DOT}}


def test_the_declaration_names_every_function() -> None:
    chat, model = started("Hello.")
    assert chat.ask("Hello?").text == "Hello."
    assert model.tools is not None
    (tool,) = model.tools
    assert tool["type"] == "function" and tool["function"]["name"] == "cuda"
    assert all(name in tool["function"]["description"] for name in FUNCTIONS)
    assert set(tool["function"]["parameters"]["properties"]) == {"expression"}


def test_an_error_goes_back_with_its_place() -> None:
    wrong = (json_call(expression="[1, 2"), json_call(expression="1 / 2"))
    chat, _ = started(*wrong, json_call(expression="7 // 2"), last_answer)
    answer = chat.ask("?")
    told = [message["content"] for message in chat.messages if message["role"] == "tool"]
    assert "<expression>:1:6: error: the expression ends too early\n[1, 2\n     ^" in told[0]
    assert "note: write // for a quotient" in told[1]
    assert (told[2], answer.text, answer.failures) == ("3", "The result is 3.", 2)


def test_failures_have_an_end() -> None:
    chat, model = started(*[json_call(expression="1 // 0")] * 20)
    answer = chat.ask("?")
    assert answer.stopped == f"{limits.FAILURES} calls of the tool have failed"
    assert len(model.asked) == answer.failures == limits.FAILURES
    assert len(answer.launches) == limits.FAILURES
    assert "division by zero" in answer.calls[0][1].text


def test_calls_that_cannot_be_read_count_as_failures() -> None:
    chat, _ = started("<tool_call>{</tool_call>", "<tool_call>7", "<tool_call></tool_call>")
    answer = chat.ask("?")
    assert (answer.failures, answer.calls) == (3, ())
    assert answer.stopped is not None


def test_calls_have_an_end() -> None:
    chat, model = started(*[json_call(expression="1 + 1")] * 50)
    assert chat.ask("?").stopped == f"no answer in {limits.REPLIES} replies"
    assert len(model.asked) == limits.REPLIES


@pytest.mark.parametrize("text", ["on and on ", "<tool_call>[1, ", "", "<think>hmm "])
def test_a_reply_that_does_not_end(text: str) -> None:
    """Endless text, a call that is never closed, pieces without a character, thoughts without an end."""
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield text

    chat, _ = started(endless(), "Again.")
    assert chat.ask("?").stopped == f"a reply has not ended after {limits.REPLY_CHARACTERS} characters"
    assert taken <= limits.REPLY_CHARACTERS + 1
    assert chat.ask("And now?").text == "Again."


def test_a_reply_that_ends_within_a_call() -> None:
    chat, _ = started('<tool_call>{"name": "cuda", "argum', json_call(expression="2 * 3"), last_answer)
    answer = chat.ask("?")
    assert (answer.text, answer.failures) == ("The result is 6.", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no argument 'expression'"),
        ({"expression": 7}, "no argument 'expression'"),
        ({"expression": "1", "precision": 2}, "there is no argument 'precision'"),
        ({"expression": "range(3000)"}, "reduce it, or take a part of it"),
        ({"expression": "__import__('os')"}, "unexpected character"),
        ({"expression": "open(1)"}, "there is no function 'open'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    chat, _ = started(json_call(**arguments), "Sorry.")
    (_, answer) = chat.ask("?").calls[0]
    assert answer.failed and message in answer.text


def test_another_tool() -> None:
    chat, _ = started('<tool_call>{"name": "shell", "arguments": {"command": "ls"}}</tool_call>', "Sorry.")
    (_, answer) = chat.ask("?").calls[0]
    assert answer.failed and "there is no tool 'shell'" in answer.text


def test_an_interrupted_question_leaves_nothing() -> None:
    """Ctrl-C in a launch and in a reply; the conversation and the machine go on."""
    interrupts = 1

    def run(launch: Launch) -> Any:
        nonlocal interrupts
        interrupts -= 1
        if interrupts >= 0:
            raise KeyboardInterrupt
        return run_vector(launch)

    def broken() -> Iterator[str]:
        yield "So "
        raise KeyboardInterrupt

    model = ScriptedModel(json_call(expression="1 + 1"), broken(), json_call(expression="1 + 1"), last_answer)
    chat = Session(model, ExpressionTool(DEFAULT, run))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            chat.ask("?")
        assert [message["role"] for message in chat.messages] == ["system"]
    assert chat.ask("?").text == "The result is 2."


def test_an_interrupted_launch_leaves_the_engine_ready() -> None:
    """The engine stops within a launch; the next launch on it begins anew."""
    model = ScriptedModel()
    engine = model.launch_engine()
    feed, count = engine.feed, 0

    def interrupted(tokens: Any, progress: Any = None) -> int:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return feed(tokens, progress)

    engine.feed = interrupted  # type: ignore[method-assign]
    tool = ExpressionTool(DEFAULT, bounded_runs(lambda: engine))
    with pytest.raises(KeyboardInterrupt):
        tool.call({"expression": DOT})
    assert tool.call({"expression": DOT}).text == "32"


def test_launches_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qgpu.runtime.chat.machine.LAUNCH_SECONDS", -1)
    tool = ExpressionTool(DEFAULT, bounded_runs(ScriptedModel().launch_engine))
    with pytest.raises(EngineError, match="has not ended after -1 seconds"):
        tool.call({"expression": "1 + 1"})
    monkeypatch.undo()
    monkeypatch.setattr("qgpu.runtime.chat.machine.LAUNCH_TOKENS", 2)
    with pytest.raises(EngineError, match="has not ended after 2 tokens"):
        tool.call({"expression": DOT})


def test_who_looks_on_sees_text_and_calls() -> None:
    class Seen(Observer):
        def __init__(self) -> None:
            self.all: list[str] = []

        def text(self, piece: str) -> None:
            self.all.append(piece)

        def call(self, call: Call) -> None:
            self.all.append(f"[{call.arguments['expression']}]")

        def answered(self, answer: Any) -> None:
            self.all.append(f"[{answer.text}]")

    chat, _ = started(f"I see.\n{json_call(expression='1 + 1')}", "It is 2.")
    seen = Seen()
    chat.ask("?", seen)
    assert "".join(seen.all) == "I see.\n[1 + 1][2]It is 2."


# Commands.


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., click.testing.Result]:
    """Run a command with a scripted model; launches run on the reference interpreter, token by token."""

    def run(replies: list[Reply], *arguments: str, stdin: str = "") -> click.testing.Result:
        monkeypatch.setattr(
            "qgpu.runtime.chat.model.open_model", lambda path, device: ScriptedModel(*replies)
        )
        runner = click.testing.CliRunner(catch_exceptions=False)
        return runner.invoke(main, arguments, input=stdin, prog_name="qgpu")

    return run


def test_ask(command: Callable[..., click.testing.Result]) -> None:
    result = command([xml_call(expression=DOT), last_answer], "ask", "MODEL", "The dot product?")
    assert (result.exit_code, result.stdout) == (0, "The result is 32.\n")
    assert f"  cuda> {DOT}\n  32\n" in result.stderr
    assert "1 launch on machine 'default' by engine: 8 generated tokens" in result.stderr


def test_ask_as_json(command: Callable[..., click.testing.Result]) -> None:
    result = command([json_call(expression=DOT), last_answer], "ask", "MODEL", "?", "--json")
    found = json.loads(result.stdout)
    assert (found["answer"], found["machine"], found["backend"]) == ("The result is 32.", "default", "engine")
    assert found["generated_tokens"] == 8
    (call,) = found["calls"]
    assert (call["answer"], call["failed"], call["launches"][0]["kernel"]) == ("32", False, "dot")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ask_shows_on_a_terminal_how_far_it_is(
    command: Callable[..., click.testing.Result], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    told: list[str] = []
    monkeypatch.setattr("qgpu.toolchain.progress.stages", lambda what: nullcontext(told.append))
    command([xml_call(expression=DOT), last_answer], "ask", "MODEL", "?", *options)
    assert told[:2] == ["opening", "reading the question"]
    assert told[-1].startswith("writing, ")
    assert told.count("computing") == 1


def test_an_empty_question(command: Callable[..., click.testing.Result]) -> None:
    result = command([last_answer], "ask", "MODEL", "  ")
    assert (result.exit_code, "The question is empty" in result.stderr) == (2, True)


def test_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert list(chat_command._questions()) == []


def test_ask_without_an_answer(command: Callable[..., click.testing.Result]) -> None:
    result = command([itertools.repeat("no end ")], "ask", "MODEL", "?")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: no answer: a reply has not ended" in result.stderr


def test_ask_interrupted(command: Callable[..., click.testing.Result]) -> None:
    def interrupt(messages: Any) -> str:
        raise KeyboardInterrupt

    result = command([interrupt], "ask", "MODEL", "?")
    assert (result.exit_code, result.stdout) == (130, "")
    assert "qgpu: stopped" in result.stderr


def test_chat(command: Callable[..., click.testing.Result]) -> None:
    def interrupt(messages: Any) -> str:
        raise KeyboardInterrupt

    replies = [json_call(expression=DOT), "It is 32.", interrupt, "You asked before."]
    result = command(replies, "chat", "MODEL", stdin="The dot product?\n\nStop!\nAgain?\n")
    assert result.exit_code == 0
    assert "cuda> [1, 2, 3] @ [4, 5, 6]\n  32\nIt is 32.\n(1 launch" in result.stdout
    assert "(stopped)\nYou asked before.\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("chat", "MODEL", "--json"), 2, "--json goes with --score"),
        (("chat", "MODEL", "--mode", "expert"), 2, "'expert' is not one of"),
        (("chat", "MODEL", "--score", "nowhere.jsonl"), 1, "cannot read 'nowhere.jsonl'"),
        (("ask", "MODEL"), 2, "Missing argument 'QUESTION'"),
    ],
)
def test_commands_refuse(
    command: Callable[..., click.testing.Result], arguments: tuple[str, ...], status: int, message: str
) -> None:
    result = command([], *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr


@pytest.mark.parametrize("name", ["nowhere", "Qwen/Qwen3.5-2B", "a base", "empty", "machine", "k.cu"])
@pytest.mark.parametrize("command", [("ask", "?"), ("chat",)])
def test_what_is_no_model_is_told_what_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, file in (("a base", "config.json"), ("empty", "notes.txt"), ("machine", "qgpu.json")):
        Path(folder).mkdir()
        Path(folder, file).write_text(json.dumps({"machine": {"name": "small"}}))
    Path("k.cu").write_text("")
    result = click.testing.CliRunner().invoke(main, [command[0], name, *command[1:]], prog_name="qgpu")
    assert (result.exit_code, result.stdout) == (1, "")
    base = {"Qwen/Qwen3.5-2B": name, "a base": "'a base'"}.get(name, "Qwen/Qwen3.5-0.8B")
    made = name if name == "nowhere" else "DIR"
    first, *notes = result.stderr.splitlines()
    assert first.startswith("qgpu: error: ") and f"'{name}'" in first
    assert notes[0] == "note: MODEL is a directory with a text model that has a machine merged into it"
    assert notes[1] == f"note: make one: qgpuc --emit-weights --base {base} -o {made}"


def test_limits_are_told(tmp_path: Path) -> None:
    """docs/chat.md has every limit as it is."""
    text = (Path(__file__).parent.parent / "docs" / "chat.md").read_text(encoding="utf-8")
    for name in (
        "REPLIES",
        "FAILURES",
        "REPLY_CHARACTERS",
        "THINKING_CHARACTERS",
        "SOURCE_CHARACTERS",
        "LAUNCH_TOKENS",
    ):
        assert f"{getattr(limits, name):,}" in text, name
    assert session.FAILURES == limits.FAILURES and chat_command.chat_command.name == "chat"
