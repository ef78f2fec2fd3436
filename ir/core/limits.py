"""Bounds of launches, which ranges of values are derived from and which the host holds launches to."""

THREADS = 1024
"""The most threads of a thread block (CUDA C++ Programming Guide, compute capabilities)."""

LAUNCH = 1 << 29
"""A launch has fewer threads along each axis: a machine that made a token of each would not end."""
