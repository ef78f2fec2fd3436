"""Back ends: the machine, its reference interpreter, and the compiler from the machine to weights."""
