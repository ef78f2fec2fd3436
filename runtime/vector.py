"""Run a launch's machine code for all lanes at once, without tokens: the fast way to its results."""

from __future__ import annotations

import time

from qgpu.backends.machine.host import Launch
from qgpu.backends.reference.run import RunawayError
from qgpu.backends.reference.vector import run_blocks
from qgpu.runtime.engine import EngineError
from qgpu.runtime.launch import MAX_TOKENS, Outcome, printed_text


def run_vector(launch: Launch, limit: int = MAX_TOKENS) -> Outcome:
    """Run a launch; its outcome is the reference interpreter's, but for the tokens, which are only counted.

    Raises:
        EngineError: it would not have ended after `limit` generated tokens.
    """
    start = time.perf_counter()
    try:
        result = run_blocks(launch, limit)
    except RunawayError as error:
        raise EngineError(str(error)) from None
    seconds = time.perf_counter() - start
    regions = [None if result.fault else region for region in launch.buffers]
    return Outcome(
        launch=launch,
        generated=(),
        tokens=result.tokens,
        buffers=tuple(None if region is None else result.buffer(region) for region in regions),
        output=printed_text(launch, result.buffer),
        fault=result.fault,
        layers=None,
        prompt_seconds=0.0,
        seconds=seconds,
        checked=False,
    )
