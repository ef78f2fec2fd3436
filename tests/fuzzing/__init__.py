"""Differential testing of the compiler: random kernels, executors that agree, planted mistakes."""
