"""The tokenizer of a merged model: the base's, with the machine's tokens after its vocabulary.

The machine's tokens are entries of the vocabulary that no merge rule makes, not added tokens: text never
becomes one, whatever it says, and the tokenizer loads as fast as the base's. Ids between the base
tokenizer's last and the base model's vocabulary size are filled with unused names, so that every id has
one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from qgpu.backends.machine.tokens import Vocabulary
from qgpu.backends.transformer.merge.base import MergeError

TOKENIZER = "tokenizer.json"
COPIED = ("tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json")


def machine_token(name: str) -> str:
    """The text of a machine's token in a merged tokenizer: `<last:42>` is `<|qgpu:last:42|>`."""
    return f"<|qgpu:{name[1:-1]}|>"


def write_tokenizer(source: Path, folder: Path, words: Vocabulary, first: int) -> None:
    """Write the base's tokenizer files, with the machine's tokens from id `first` on.

    Raises:
        MergeError: the base has no tokenizer.json, or one whose ids reach beyond its model's vocabulary.
    """
    try:
        content = json.loads((source / TOKENIZER).read_text(encoding="utf-8"))
        table: dict[str, int] = content["model"]["vocab"]
        added: list[dict[str, Any]] = content.get("added_tokens") or []
        table.update((token["content"], token["id"]) for token in added)
    except OSError as error:
        raise MergeError(f"'{source}': {TOKENIZER}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MergeError(f"'{source / TOKENIZER}' is no tokenizer with a table of tokens") from None
    last = max(table.values(), default=-1)
    if last >= first:
        raise MergeError(f"'{source / TOKENIZER}' has token id {last}, the model's vocabulary {first} tokens")
    used = set(table.values())
    for token in range(first):
        if token not in used:
            _enter(table, f"<|unused:{token}|>", token)
    for token in range(words.size):
        _enter(table, machine_token(words.name(token)), first + token)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    (folder / TOKENIZER).write_text(text, encoding="utf-8")
    for name in COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)


def _enter(table: dict[str, int], name: str, token: int) -> None:
    if name in table:
        raise MergeError(f"the base's tokenizer has a token '{name}' of its own")
    table[name] = token
