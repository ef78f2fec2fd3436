"""The compiled loop's ways in: functions of integers alone, of which an address is one."""

from __future__ import annotations

from typing import Any

from qgpu.backends.compiling import compiled
from qgpu.backends.engine import loop, walk
from qgpu.backends.engine.arrays import bools, int64s, records


def entries(form_type: Any, state_type: Any) -> dict[str, Any]:
    """The functions to compile, by name; each takes the addresses of a form's and of a state's record first.

    Args:
        form_type, state_type: numpy dtypes of the records.
    """
    form_at, state_at = records(form_type), records(state_type)

    @compiled
    def feed(form, state, tokens, count):
        """Append `count` tokens, int64 from an address on; 0."""
        loop.feed(form_at(form), state_at(state), int64s(tokens, 0), count)
        return 0

    @compiled
    def most_likely(form, state):
        """The argmax of the logits after the last token."""
        return walk.most_likely(form_at(form), state_at(state))

    @compiled
    def generate(form, state, token, stops, found, limit):
        """Append a token, then each answer; into `found`, int64, until it is in `stops`; their number."""
        return loop.generate(form_at(form), state_at(state), token, bools(stops, 0), int64s(found, 0), limit)

    return {"feed": feed, "most_likely": most_likely, "generate": generate}
