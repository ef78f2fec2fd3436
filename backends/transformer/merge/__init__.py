"""The machine merged into a Qwen3.5 checkpoint: its compiled layers stand before Qwen's own, in one stock
model.

`base` reads the configuration of the checkpoint, `plan` chooses the sizes, `stream` has the numbers with
which text and machine share the residual stream, `compiled` and `qwen` make the tensors of either, `build`
writes the directory. docs/merge.md is the prose.
"""
