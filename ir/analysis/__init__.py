"""Analyses of the IR's control flow and data flow, one per file."""
