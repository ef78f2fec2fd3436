"""Core data structures of the SIMT IR."""
