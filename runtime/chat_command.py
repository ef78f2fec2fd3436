"""`qgpu chat` and `qgpu ask`: a text model that has the machine as its tool."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from qgpu.runtime.hints import model_hints
from qgpu.runtime.refusing import refusing

if TYPE_CHECKING:
    from qgpu.runtime.chat import Answer, Session
    from qgpu.runtime.chat.model import ChatModel

_MODES = ("normal", "advanced")
_INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

_OPTIONS = [
    click.option(
        "--backend",
        type=click.Choice(["engine", "weights"]),
        help="What runs launches: the checkpoint's files (engine; default in float32), or the stock model.",
    ),
    click.option(
        "--device",
        type=click.Choice(["cpu", "cuda", "mps"]),
        default="cpu",
        show_default=True,
        help="Of the text model.",
    ),
    click.option("--check", is_flag=True, help="Compare every token of a launch with the reference's."),
    click.option("--think", is_flag=True, help="Let the model think before it replies."),
]


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), command)


@click.command("chat")
@click.argument("model", metavar="MODEL")
@click.option("--mode", type=click.Choice(_MODES), help="Of the tool: expressions (normal), or CUDA kernels.")
@_options
@click.option(
    "--score", "questions", metavar="FILE", help="Ask the questions of a file, and count right answers."
)
@click.option("--json", "as_json", is_flag=True, help="With --score: print everything as one JSON object.")
def chat_command(
    model: str,
    mode: str | None,
    backend: str | None,
    device: str,
    check: bool,
    think: bool,
    questions: str | None,
    as_json: bool,
) -> None:
    """Talk with MODEL, a directory that qgpuc --emit-weights --base made: it computes on the machine in it.

    Questions come from stdin, one a line. Ctrl-C stops an answer, an empty line or Ctrl-D the conversation.
    """
    if as_json and questions is None:
        raise click.UsageError("--json goes with --score; qgpu ask has its own.")
    with refusing():
        chat = _Chat(model, backend, device, check, think)
        if questions is not None:
            chat.score(questions, mode, as_json)
        else:
            chat.talk(mode or "normal")


@click.command("ask")
@click.argument("model", metavar="MODEL")
@click.argument("question")
@click.option("--mode", type=click.Choice(_MODES), default="normal", show_default=True, help="Of the tool.")
@_options
@click.option("--json", "as_json", is_flag=True, help="Print the answer and its launches as one JSON object.")
def ask_command(
    model: str,
    question: str,
    mode: str,
    backend: str | None,
    device: str,
    check: bool,
    think: bool,
    as_json: bool,
) -> None:
    """Ask MODEL, a directory that qgpuc --emit-weights --base made, one QUESTION.

    stdout has the answer alone; what ran where goes to stderr.
    """
    if not question.strip():
        raise click.UsageError("The question is empty.")
    with refusing():
        chat = _Chat(model, backend, device, check, think)
        try:
            answer = chat.answer(question, mode, quiet=as_json)
        except KeyboardInterrupt:
            click.echo("qgpu: stopped", err=True)
            sys.exit(_INTERRUPTED)
        if as_json:
            click.echo(json.dumps(chat.answer_object(answer)))
        elif answer.stopped is None:
            click.echo(answer.text)
    click.echo(chat.launches(answer), err=True)
    if answer.stopped is not None:
        click.echo(f"qgpu: error: no answer: {answer.stopped}", err=True)
        sys.exit(1)


class _Chat:
    """A model that is open, and how its launches run."""

    def __init__(self, path: str, backend: str | None, device: str, check: bool, think: bool) -> None:
        from qgpu.runtime.chat.machine import bounded_runs
        from qgpu.runtime.chat.model import open_model
        from qgpu.runtime.checkpoints import CheckpointError
        from qgpu.toolchain.diagnostics import failure
        from qgpu.toolchain.progress import stages

        try:
            with stages(f"'{path}'") as tell:
                tell("opening")
                self._model: ChatModel = open_model(path, device)
        except CheckpointError as error:
            raise failure(str(error), *model_hints(path)) from None
        self._backend = backend or ("engine" if self._model.dtype == "float32" else "weights")
        self._think = think
        self._run = bounded_runs(functools.partial(self._model.launch_engine, self._backend), check)

    def session(self, mode: str) -> Session:
        """A new conversation."""
        from qgpu.runtime.chat import Session
        from qgpu.runtime.chat.expression_tool import ExpressionTool
        from qgpu.runtime.chat.kernel_tool import KernelTool

        make = ExpressionTool if mode == "normal" else KernelTool
        return Session(self._model, make(self._model.machine, self._run), self._think)

    def answer(self, question: str, mode: str, quiet: bool) -> Answer:
        """Answer one question; how far it is shows on a terminal, and what is called unless it is quiet."""
        from qgpu.toolchain.progress import stages

        session = self.session(mode)
        with stages("answer") as tell:
            return session.ask(question, _Counted(tell, _Shown(err=True, text=False, calls=not quiet)))

    def talk(self, mode: str) -> None:
        """Answer the questions of stdin."""
        session = self.session(mode)
        for question in _questions():
            try:
                answer = session.ask(question, _Shown())
            except KeyboardInterrupt:
                click.echo("\n(stopped)")
                continue
            click.echo(f"\n(no answer: {answer.stopped})" if answer.stopped else "")
            if answer.launches:
                click.secho(f"({self.launches(answer)})", dim=True)

    def score(self, file: str, mode: str | None, as_json: bool) -> None:
        """Ask the questions of a file, those of one mode if one is given."""
        from qgpu.runtime.chat.questions import read_questions
        from qgpu.runtime.chat.scoring import score, scored_line, scored_object, total_line
        from qgpu.toolchain.diagnostics import failure

        questions = [one for one in read_questions(file) if mode in (None, one.mode)]
        if not questions:
            raise failure(f"there is no question for mode '{mode}'", file=file)
        all_scored = []
        for scored in score(questions, self.session):
            all_scored.append(scored)
            click.echo(scored_line(len(all_scored), scored), err=as_json)
        if as_json:
            click.echo(json.dumps(scored_object(all_scored)))
        click.echo(total_line(all_scored), err=as_json)

    def launches(self, answer: Answer) -> str:
        """What ran where, in a line."""
        from qgpu.runtime.expressions.records import launches_line

        return launches_line(answer.launches, self._model.machine, self._backend)

    def answer_object(self, answer: Answer) -> dict[str, Any]:
        """An answer as plain data."""
        from qgpu.runtime.expressions.records import launch_object, total_layer_passes, total_tokens

        return {
            "answer": None if answer.stopped else answer.text,
            "stopped": answer.stopped,
            "machine": self._model.machine.name,
            "backend": self._backend,
            "generated_tokens": total_tokens(answer.launches),
            "layer_passes": total_layer_passes(answer.launches),
            "failures": answer.failures,
            "calls": [
                {
                    "name": call.name,
                    "arguments": dict(call.arguments),
                    "answer": given.text,
                    "failed": given.failed,
                    "launches": list(map(launch_object, given.launches)),
                }
                for call, given in answer.calls
            ],
        }


class _Shown:
    """Shows on the terminal what comes; calls and the tool's answers are indented."""

    def __init__(self, err: bool = False, text: bool = True, calls: bool = True) -> None:
        self._err = err
        self._text = text
        self._calls = calls

    def text(self, piece: str) -> None:
        if self._text:
            click.echo(piece, nl=False, err=self._err)
            sys.stdout.flush()

    def call(self, call: Any) -> None:
        lines = "\n".join(str(value) for value in call.arguments.values()).splitlines()
        self._indented(f"{call.name}> ", lines)

    def answered(self, answer: Any) -> None:
        self._indented("", answer.text.splitlines())

    def _indented(self, title: str, lines: list[str]) -> None:
        for number, line in enumerate(lines if self._calls else ()):
            click.secho(f"  {title if number == 0 else ' ' * len(title)}{line}", dim=True, err=self._err)


class _Counted:
    """Tells how much of a reply there is, and hands what comes on to who shows it."""

    def __init__(self, tell: Callable[[str], object], shown: _Shown) -> None:
        self._tell = tell
        self._shown = shown
        self._pieces = 0
        tell("reading the question")

    def text(self, piece: str) -> None:
        self._pieces += 1
        self._tell(f"writing, {self._pieces:,} tokens")
        self._shown.text(piece)

    def call(self, call: Any) -> None:
        self._shown.call(call)
        self._tell("computing")

    def answered(self, answer: Any) -> None:
        self._pieces = 0
        self._shown.answered(answer)


def _load_line_editing() -> None:
    """Let `input` have a history and editing keys, where there is a library for it."""
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")


def _questions() -> Iterator[str]:
    """The lines that someone types, or those of a file; an empty one ends a conversation on a terminal."""
    if sys.stdin is None:
        return
    if not sys.stdin.isatty():
        yield from filter(None, map(str.strip, sys.stdin))
        return
    _load_line_editing()
    while True:
        # NVRTC leaves Ctrl-C such that it would not interrupt what waits for a line.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            question = input("> ").strip()
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            continue
        if not question:
            return
        yield question
