"""The reference interpreter: what the machine does, token by token, in plain Python. It is the oracle."""
