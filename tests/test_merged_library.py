"""The library in merged models, and conversations with them: every token of a launch is what the whole model
says, alone and after text.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from library_cases import ORACLES, operands
from merge_bases import CORPUS, MACHINE, make_tokenizer, merged_checkpoint
from qgpu.backends.machine.host import Launch
from qgpu.runtime.chat import Session
from qgpu.runtime.chat.calls import parse_reply
from qgpu.runtime.chat.expression_tool import ExpressionTool
from qgpu.runtime.chat.machine import bounded_runs
from qgpu.runtime.expressions.launcher import Launcher, RefusedError
from qgpu.runtime.launch import Outcome, run
from qgpu.runtime.library import ROUTINES
from qgpu.runtime.merged import Merged, open_merged
from qgpu.runtime.stock import StockEngine
from qgpu.runtime.verify import Verifier, verify
from scripted_model import ScriptedModel, last_answer, xml_call
from test_merge import TEXT_CLASS, VISION_CLASS

TEXT_TOKENS = 500
WAYS = ("weights", "plain after text")
"""By the compiled layers alone, and through all layers, after text."""

KINDS = {"float32": TEXT_CLASS, "bfloat16": VISION_CLASS}
one_dtype = pytest.mark.parametrize("folder", ["float32"], indirect=True)


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, shared_folder: Path) -> Path:
    kind, dtype = KINDS[request.param]
    return merged_checkpoint(shared_folder, kind, dtype, shard_bytes=1 << 25)[1]


@pytest.fixture(scope="module")
def merged(folder: Path) -> Merged:
    return open_merged(folder)


class AfterText(StockEngine):
    """A model whose sequences begin with text; it is taken in once."""

    after_text: Any = None

    def take(self, text: Sequence[int]) -> None:
        super().begin()
        ids = self._torch.tensor([text], device=self._device)
        with self._torch.inference_mode():
            self.model(input_ids=ids, use_cache=True, logits_to_keep=1, **{self._cache_name: self.cache})
        self.after_text = self.cache

    def begin(self) -> None:
        super().begin()
        if self.after_text is not None:
            self.cache = copy.deepcopy(self.after_text)


@pytest.fixture(scope="module")
def engines(merged: Merged) -> dict[str, StockEngine]:
    compiled, plain = (cast(StockEngine, merged.launch_engine(backend)) for backend in ("weights", "plain"))
    after = AfterText.of(plain.model)
    after.first_token = plain.first_token
    text = make_tokenizer()("".join(CORPUS) * 20)["input_ids"][:TEXT_TOKENS]
    assert len(text) == TEXT_TOKENS
    after.take(text)
    return {"weights": compiled, "plain after text": after}


def confirmed(engine: StockEngine) -> Callable[[Launch], Outcome]:
    """Runs a launch on the interpreter, and has the model confirm every token and every answer to READ."""
    return lambda launch: verify(launch, Verifier(engine)).outcome


def is_exact(name: str, launcher: Launcher) -> bool:
    given = operands(name, np.random.default_rng(11), (5, 2, 3), False)
    return np.array_equal(launcher(name, given), np.asarray(ORACLES[name](*given)).astype(np.int64))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ROUTINES)
def test_routines(name: str, way: str, merged: Merged, engines: dict[str, StockEngine]) -> None:
    assert is_exact(name, Launcher(MACHINE, confirmed(engines[way])))


@one_dtype
def test_generated_token_by_token(merged: Merged, engines: dict[str, StockEngine]) -> None:
    """Without an interpreter that proposes: greedy decoding through all of the layers."""
    engine = engines["plain after text"]
    assert is_exact("dot", Launcher(MACHINE, lambda launch: run(launch, engine)))


@one_dtype
@pytest.mark.parametrize("name", ROUTINES)
def test_engine(name: str, merged: Merged) -> None:
    """The compiled layers' files, without torch."""
    engine = merged.launch_engine("engine")
    assert is_exact(name, Launcher(MACHINE, lambda launch: run(launch, engine)))


@one_dtype
def test_a_refusal_is_the_same(merged: Merged, engines: dict[str, StockEngine]) -> None:
    launcher = Launcher(MACHINE, confirmed(engines["weights"]))
    with pytest.raises(RefusedError, match=r"the sum does not fit 32 bits \(element 1\)"):
        launcher("add", [np.array([1, 2**31 - 1], np.int32), np.array([1, 1], np.int32)])


@one_dtype
def test_a_conversation(merged: Merged) -> None:
    """Given replies, launches on the merged model, and the base's own chat template around them."""
    model = ScriptedModel(xml_call(expression="[1, 2, 3] @ [4, 5, 6]"), last_answer)
    tool = ExpressionTool(merged.machine, bounded_runs(lambda: merged.launch_engine("weights"), check=True))
    chat = Session(model, tool)
    assert chat.ask("The dot product?").text == "The result is 32."
    text = merged.tokenizer.apply_chat_template(chat.messages, tools=[tool.declaration], tokenize=False)
    assert '"name": "cuda"' in text and tool.instructions in text
    assert "<function=cuda>\n<parameter=expression>\n[1, 2, 3] @ [4, 5, 6]\n</parameter>" in text
    assert "<tool_response>\n32\n</tool_response>" in text


def test_text_after_a_launch_is_as_after_the_same_answer_by_hand(folder: Path, merged: Merged) -> None:
    """The model calls the tool and goes on; a copy of it that ran no launch is given the conversation."""
    tool = ExpressionTool(merged.machine, bounded_runs(lambda: merged.launch_engine("weights")))
    chat = Session(CallsFirst(merged), tool)
    answer = chat.ask("The dot product?")
    assert len(answer.launches) == 1
    expression = "[1, 2, 3] @ [4, 5, 6]"
    function = {"name": "cuda", "arguments": {"expression": expression}}
    by_hand = [
        {"role": "system", "content": tool.instructions},
        {"role": "user", "content": "The dot product?"},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]},
        {"role": "tool", "name": "cuda", "content": "32"},
    ]
    other = Brief(open_merged(folder))
    reply = "".join(other.generate_text(by_hand, [tool.declaration], template={"enable_thinking": False}))
    assert answer.text == parse_reply(reply).text != ""


@one_dtype
def test_a_text_model_without_sense(merged: Merged) -> None:
    """Random weights say something, or go on and on: either way the conversation is whole afterwards."""
    tool = ExpressionTool(merged.machine, bounded_runs(lambda: merged.launch_engine("engine")))
    chat = Session(Brief(merged), tool)
    answer = chat.ask("What is 1 + 1?")
    assert answer.text or answer.stopped
    assert [message["role"] for message in chat.messages][:2] == ["system", "user"]
    assert chat.messages[-1]["role"] == "assistant"


class Brief:
    """A text model whose replies have no more than eight tokens."""

    def __init__(self, model: Merged) -> None:
        self._model = model

    def generate_text(self, messages: Any, tools: Any = None, *, limit: int = 0, template: Any = None) -> Any:
        return self._model.generate_text(messages, tools, limit=8, template=template)


class CallsFirst(Brief):
    """The same, but its first reply is a call."""

    called = False

    def generate_text(self, messages: Any, tools: Any = None, *, limit: int = 0, template: Any = None) -> Any:
        if self.called:
            return super().generate_text(messages, tools, template=template)
        self.called = True
        return iter([xml_call(expression="[1, 2, 3] @ [4, 5, 6]")])
