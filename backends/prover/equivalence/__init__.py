"""Whether the circuit that a checkpoint's tensors are is the one that the back end meant.

`recover` and its kin read neurons, heads, the embedding and the logits from the tensors; `meant` has the
circuit of a machine, by place of the residual stream; `compare` finds what has no equal and `describe` says
where it differs; `check` goes through a checkpoint.
"""
