"""The prover: that every number which a checkpoint's layers compute is exact, from its tensors."""
