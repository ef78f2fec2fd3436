"""Run what `qgpu run --emit-tokens` wrote: python plain_transformers.py CHECKPOINT_DIR TOKENS_JSON"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM

with open(sys.argv[2]) as tokens_file, open(f"{sys.argv[1]}/qgpu.json") as metadata_file:
    launch, metadata = json.load(tokens_file), json.load(metadata_file)
baked = metadata.get("baked", {}).get("sha256")
if launch["baked"] != baked or any(metadata["machine"][n] != size for n, size in launch["machine"].items()):
    sys.exit("the tokens are for another machine than the checkpoint's, or for another kernel in its weights")
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
ends = {launch["exit"]: "exit", **{int(token): f"fault: {kind}" for token, kind in launch["faults"].items()}}
sequence, bits, more, last = list[int](), launch["part_bits"], range(*launch["more"]), range(*launch["last"])


def ask(tokens: list[int], limit: int) -> list[int]:
    """Append tokens to the sequence, then what the model generates; return that, without its EXIT."""
    before = torch.tensor([sequence + tokens])
    after = model.generate(before, do_sample=False, max_new_tokens=limit, eos_token_id=list(ends))  # pyright: ignore
    sequence[:] = after[0].tolist()
    if sequence[-1] != launch["exit"]:
        sys.exit(ends.get(sequence[-1], f"no end after {limit} tokens"))
    return sequence[before.shape[1] : -1]


ask(launch["prompt"], launch["max_new_tokens"])
for buffer in launch["buffers"]:
    content, word, shift = [], 0, 0
    for token in (token for read in buffer["reads"] for token in ask(read["tokens"], read["max_new_tokens"])):
        part = last.index(token) if token in last else more.index(token)
        word, shift = word + (part << shift), shift + bits  # A word's parts come low part first ...
        if token in last:  # ... and the last one is signed, which says what the bits above it are.
            word -= part >> (bits - 1) << shift
            content, word, shift = [*content, *(word % 2**32).to_bytes(4, "little")], 0, 0
    assert len(content) == sum(4 * read["words"] for read in buffer["reads"]), "an answer is incomplete"
    memory = torch.tensor(content[: buffer["bytes"]], dtype=torch.uint8)
    print(buffer["name"], "=", memory.view(getattr(torch, buffer["type"])).tolist())
