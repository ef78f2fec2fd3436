"""What to do about a launch that is refused or has stopped."""

import re

_REFUSALS = (
    (r"takes \d+ arguments", "give one --arg for each parameter, in their order"),
    (r"is a pointer|parameter \w+\* ", "a pointer is given a buffer: i32[16] (zeros), or i32[]:1,2,3"),
    (r"parameter \w+ \S+ is wanted", "a number is given as i32:5, of the parameter's width"),
    (
        r"words of memory",
        "use less shared memory or smaller buffers, or a machine with more: --machine large",
    ),
    (r"blocks of \d+ threads", "launch smaller blocks, and more of them"),
    (r"has not ended after", "raise --max-tokens, unless a loop waits for what no thread does"),
)
_FAULTS = {
    "out-of-bounds": "compare the index with the number of elements before the access",
    "misaligned": "the address has to be a multiple of the access's width",
    "barrier": "let every thread that has not returned reach the same __syncthreads()",
    "uninitialised": "write it first, with a __syncthreads() between the write and another thread's read",
}


def refusal_hints(message: str) -> list[str]:
    """What to do about a launch that does not fit, by the message of its refusal."""
    return [hint for pattern, hint in _REFUSALS if re.search(pattern, message)][:1]


def fault_hints(kind: str) -> list[str]:
    """What to do about a fault of a kind."""
    return [_FAULTS[kind]] if kind in _FAULTS else []
