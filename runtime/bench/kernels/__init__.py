"""CUDA sources that benchmarks launch: links to those of examples/."""
