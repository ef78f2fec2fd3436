"""The prover: from a checkpoint's tensors alone, that every number which the stock layers compute is exact."""
