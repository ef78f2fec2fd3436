"""The engine: a compiled checkpoint run by what changes from token to token.

It reads a checkpoint directory and knows the layers of Qwen3.5 (transformers, models/qwen3_5), not what they
were compiled from. docs/engine.md says what is skipped, and why the result is that of the stock model.
"""
