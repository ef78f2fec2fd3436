"""`qgpu check-text`: how far a merged model is from its base on text."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu.runtime.checkpoints import DTYPES
from qgpu.runtime.engine import EngineError
from qgpu.toolchain.diagnostics import failure, reporting

if TYPE_CHECKING:
    from qgpu.runtime.check_text import Comparison

TOKENS = 2000
DECODED = 200


@click.command("check-text")
@click.argument("base", metavar="BASE")
@click.argument("merged", metavar="MERGED")
@click.option("--text", "text_file", required=True, metavar="FILE", help="A text, in UTF-8.")
@click.option(
    "--dtype", type=click.Choice(DTYPES), help="Number format of both (default: the merged checkpoint's)."
)
@click.option(
    "--tokens",
    default=TOKENS,
    show_default=True,
    type=click.IntRange(2),
    help="Read at most so many tokens of the text.",
)
@click.option("--device", default="cpu", show_default=True, help="A torch device.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def check_text_command(
    base: str, merged: str, text_file: str, dtype: str | None, tokens: int, device: str, as_json: bool
) -> None:
    """Compare a merged checkpoint with its base on a text: KL divergence over the whole vocabulary.

    Beside it stands how far the base is from itself: in prefill and decode, in float32 and bfloat16, and with
    its channels in another order.
    """
    from qgpu.backends.transformer.merge.base import MergeError

    with reporting("qgpu"):
        try:
            found = _compare(base, merged, Path(text_file), dtype, tokens, device)
        except (MergeError, EngineError) as error:
            raise failure(str(error)) from None
    click.echo(json.dumps(_object(found)) if as_json else _table(found))


def _compare(
    base: str, merged: str, text: Path, dtype: str | None, limit: int, device: str
) -> list[Comparison]:
    from qgpu.backends.transformer.merge.parts import open_merged_checkpoint
    from qgpu.runtime.check_text import compare_text
    from qgpu.toolchain.hub import base_directory

    checkpoint = open_merged_checkpoint(merged)
    if dtype is not None and dtype != checkpoint.dtype:
        raise failure(f"'{merged}' is a {checkpoint.dtype} checkpoint: it is exact with that dtype alone")
    folder = base_directory(base)
    ids = _tokens(folder, text)[:limit]
    if len(ids) < 2:
        raise failure(f"'{text}' has fewer than two tokens")
    return list(compare_text(folder, checkpoint, ids, checkpoint.dtype, DECODED, device))


def _tokens(folder: Path, text: Path) -> list[int]:
    import transformers

    try:
        content = text.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise failure(f"cannot read '{text}': {reason}") from None
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return tokenizer(content, add_special_tokens=False)["input_ids"]


def _object(found: list[Comparison]) -> dict[str, object]:
    return {comparison.name: dataclasses.asdict(comparison.distance) for comparison in found}


def _table(found: list[Comparison]) -> str:
    lines = [f"{'':30}{'mean KL':>10} {'largest':>10}  same argmax"]
    for comparison in found:
        it = comparison.distance
        lines.append(f"{comparison.name:30}{it.mean:10.2e} {it.largest:10.2e}  {it.same_argmax:11.4f}")
    added = max(c.distance.added for c in found if c.distance.added is not None)
    lines.append(
        f"{found[0].distance.positions} tokens; added tokens are {-added:.4g} below the largest logit"
    )
    return "\n".join(lines)
