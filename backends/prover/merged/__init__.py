"""The proof of a merged checkpoint: its compiled layers and its base's layers on the machine's tokens, and
text in the compiled layers.

`weights` reads the tensors a block of rows at a time, `view` shows the compiled layers to the prover as a
checkpoint of their own, `closed` and `text` bound what the others add, `ends` the logits, `prove` puts all
together. docs/prove.md is the prose.
"""
