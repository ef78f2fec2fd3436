"""A text model in transformers: replies to conversations, token by token, chosen greedily."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from qgpu.runtime.engine import PREFILL_CHUNK, EngineError
from qgpu.runtime.stock import cache_argument


def load_stock(config: Mapping[str, Any], tensors: Mapping[str, Any], dtype: str, device: str = "cpu") -> Any:
    """Make a stock `Qwen3_5ForCausalLM` of a configuration and tensors.

    Raises:
        EngineError: they do not make a whole model.
    """
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    settings = {name: value for name, value in config.items() if name not in ("architectures", "model_type")}
    kind = transformers.Qwen3_5ForCausalLM
    loaded: Any = kind.from_pretrained(
        None,
        config=transformers.Qwen3_5TextConfig(**settings),
        state_dict=dict(tensors),
        dtype=getattr(torch, dtype),
        attn_implementation="sdpa",
        output_loading_info=True,
    )
    model, report = loaded
    wrong = sorted(
        {str(n) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for n in report[kind]}
    )
    if wrong:
        raise EngineError(f"{len(wrong)} tensors do not fit the configuration, {wrong[0]} the first")
    return model.to(device).eval()


class TextModel:
    """A text model, its tokenizer, and the tokens that end a reply.

    Attributes:
        model: the `transformers` model.
    """

    def __init__(self, model: Any, tokenizer: Any, ends: Collection[int]) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._ends = frozenset(ends)
        self._cache_name = cache_argument(model)

    def prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        template: Mapping[str, Any],
    ) -> list[int]:
        """The tokens of a conversation, up to where the reply begins.

        Raises:
            EngineError: the tokenizer has no chat template, or it refuses the conversation.
        """
        from jinja2 import TemplateError

        try:
            text = self._tokenizer.apply_chat_template(
                list(messages),
                tools=list(tools) if tools else None,
                add_generation_prompt=True,
                tokenize=False,
                **template,
            )
        except (ValueError, TemplateError) as error:
            raise EngineError(f"the chat template refuses the conversation: {error}") from error
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def reply(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        limit: int,
        template: Mapping[str, Any],
    ) -> Iterator[str]:
        """Yield the text of a reply of at most `limit` tokens, as it comes."""
        from tokenizers.decoders import DecodeStream

        prompt = self.prompt(messages, tools, template)
        stream = DecodeStream(skip_special_tokens=True)
        for token in self.tokens(prompt, limit):
            piece = stream.step(self._tokenizer.backend_tokenizer, token)
            if piece:
                yield piece

    def tokens(self, prompt: Sequence[int], limit: int) -> Iterator[int]:
        """Yield at most `limit` tokens after a prompt, each the most likely one; none that ends a reply."""
        import transformers

        cache = transformers.DynamicCache(config=self.model.config)
        following = self._feed(cache, prompt)
        for _ in range(limit):
            if following in self._ends:
                return
            yield following
            following = self._feed(cache, [following])

    def _feed(self, cache: Any, tokens: Sequence[int]) -> int:
        import torch

        following = 0
        for first in range(0, len(tokens), PREFILL_CHUNK):
            ids = torch.tensor([tokens[first : first + PREFILL_CHUNK]], device=self.model.device)
            with torch.inference_mode():
                given = {self._cache_name: cache}
                output = self.model(input_ids=ids, use_cache=True, logits_to_keep=1, **given)
            following = int(output.logits[0, -1].argmax())
        return following
