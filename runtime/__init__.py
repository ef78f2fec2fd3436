"""Run kernels: launches, tokens, checkpoints, and the engines that take them."""
