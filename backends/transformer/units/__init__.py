"""Functional units: circuits over named channels."""
