"""The machine's side of a conversation: what runs its launches, within limits."""

from __future__ import annotations

import time
from collections.abc import Callable

from qgpu.backends.machine.host import Launch
from qgpu.runtime.chat.limits import LAUNCH_SECONDS, LAUNCH_TOKENS
from qgpu.runtime.engine import Engine, EngineError
from qgpu.runtime.expressions.launcher import RunLaunch
from qgpu.runtime.launch import Outcome, Watch, run


def bounded_runs(engine: Callable[[], Engine], check: bool = False) -> RunLaunch:
    """What runs launches on an engine, which is made at the first; each has a limit of tokens and of time.

    An interrupt (KeyboardInterrupt) comes through; the next launch begins a new sequence.
    """
    made: list[Engine] = []

    def run_bounded(launch: Launch) -> Outcome:
        if not made:
            made.append(engine())
        end = time.monotonic() + LAUNCH_SECONDS

        def look(tokens: int) -> None:
            if time.monotonic() > end:
                raise EngineError(f"the launch has not ended after {LAUNCH_SECONDS} seconds")

        return run(launch, made[0], check, LAUNCH_TOKENS, Watch(prompt=look, generated=look))

    return run_bounded
