"""The tokenizer of a merged model: the base's, with the machine's tokens after its vocabulary.

The machine's tokens are entries of the vocabulary that no merge rule makes, not added tokens: text never
becomes one, whatever it says, and the tokenizer loads as fast as the base's. Ids between the base
tokenizer's last and the base model's vocabulary size are filled with unused names, so that every id has
one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qgpu.backends.machine.tokens import Vocabulary
from qgpu.backends.transformer.merge.base import MergeError

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
DROPPED = ("auto_map", "chat_template", "added_tokens_decoder", "processor_class", "backend", "is_local")
"""Settings that say what other files say, or what is not of the result."""


def machine_token(name: str) -> str:
    """The text of a machine's token in a merged tokenizer: `<last:42>` is `<|qgpu:last:42|>`."""
    return f"<|qgpu:{name[1:-1]}|>"


def write_tokenizer(source: Path, folder: Path, words: Vocabulary, first: int) -> None:
    """Write the base's tokenizer files, with the machine's tokens from id `first` on.

    What is written is the tokenizer as transformers loads it: of some models it takes another class than
    their files name, and the class decides how text is split.

    Raises:
        MergeError: the base has no tokenizer with a table of tokens, or one whose ids reach beyond its
            model's
            vocabulary.
    """
    tokenizer = _loaded(source)
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    table = content["model"].get("vocab")
    if not isinstance(table, dict):
        raise MergeError(f"the tokenizer of '{source}' has no table of tokens")
    added: list[dict[str, Any]] = content.get("added_tokens") or []
    table.update((token["content"], token["id"]) for token in added)
    last = max(table.values(), default=-1)
    if last >= first:
        raise MergeError(f"the tokenizer of '{source}' has token id {last}, its model {first} tokens")
    used = set(table.values())
    for token in range(first):
        if token not in used:
            _enter(table, f"<|unused:{token}|>", token)
    for token in range(words.size):
        _enter(table, machine_token(words.name(token)), first + token)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    (folder / TOKENIZER).write_text(text, encoding="utf-8")
    _write_settings(tokenizer, source, folder)


def _loaded(source: Path) -> Any:
    import transformers

    if not (source / TOKENIZER).is_file():
        raise MergeError(f"'{source}' has no {TOKENIZER}")
    try:
        return transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MergeError(f"the tokenizer of '{source}' cannot be loaded: {error}") from error


def _write_settings(tokenizer: Any, source: Path, folder: Path) -> None:
    """Write what lies beside the table: special tokens by their roles, and the chat template."""
    path = source / SETTINGS
    settings = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    roles = {
        role: str(token) for role, token in tokenizer.special_tokens_map.items() if isinstance(token, str)
    }
    kept = {name: value for name, value in settings.items() if name not in DROPPED}
    content = {**kept, **roles, "tokenizer_class": "PreTrainedTokenizerFast"}
    text = json.dumps(content, ensure_ascii=False, indent=1)
    (folder / SETTINGS).write_text(text + "\n", encoding="utf-8")
    if isinstance(tokenizer.chat_template, str):
        (folder / "chat_template.jinja").write_text(tokenizer.chat_template, encoding="utf-8")


def _enter(table: dict[str, int], name: str, token: int) -> None:
    if name in table:
        raise MergeError(f"the base's tokenizer has a token '{name}' of its own")
    table[name] = token
