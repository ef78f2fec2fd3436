"""The file that a command writes: whole or not at all, and never in the place of what the command reads."""

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from qgpu.toolchain.diagnostics import failure

STANDARD = "-"
"""What stands for standard input or output in the place of a file's name."""


def check_output(inputs: Iterable[str], output: str) -> None:
    """Check that an output file is none of the files that are read.

    Raises:
        UsageError: it is.
    """
    places = {os.path.realpath(file) for file in inputs if file != STANDARD}
    if output != STANDARD and os.path.realpath(output) in places:
        raise click.UsageError(f"The output file '{output}' is the input file.")


def end_in_order() -> None:
    """Let SIGTERM unwind the stack, as Ctrl-C does, so that what is half written is taken away."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def write_output(output: str, data: bytes) -> None:
    """Write a file, or standard output; a regular file changes in one step, a link stays one.

    Raises:
        DiagnosticError: it cannot be written; what was there is as it was.
    """
    from qgpu.backends.machine.qbin import write_atomically

    try:
        if output == STANDARD:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif os.path.exists(output) and not os.path.isfile(output):
            Path(output).write_bytes(data)
        else:
            write_atomically(os.path.realpath(output), data)
    except OSError as error:
        raise failure(f"cannot write '{output}': {error.strerror}") from None
