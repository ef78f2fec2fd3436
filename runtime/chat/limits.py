"""What a text model is given at most: it is trusted with nothing that has no bound."""

REPLY_CHARACTERS = 8_000
"""Characters of one reply, counted as they come; it has no more tokens either."""

THINKING_CHARACTERS = 32_000
"""The same where the model may think before it replies."""

REPLIES = 12
"""Replies to one question: calls of the tool, and the answer."""

FAILURES = 3
"""Calls of one question that may fail; what they failed of is the tool's answer."""

ANSWER_CHARACTERS = 4_000
"""Characters of one answer of the tool."""

SOURCE_CHARACTERS = 20_000
"""Characters of a kernel's source."""

COMPILE_SECONDS = 30
"""Time for compiling a kernel, with the start of the process that does it."""

COMPILE_CPU_SECONDS = 20
"""Processor time for compiling a kernel, after the start."""

COMPILE_BYTES = 4 << 30
"""Address space of the process that compiles."""

LAUNCH_TOKENS = 200_000
"""Generated tokens of one launch."""

LAUNCH_SECONDS = 600
"""Time for one launch."""
