"""Conformance: what every kernel of the project leaves in memory, on every executor and on real hardware."""
