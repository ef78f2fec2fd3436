"""The SIMT machine: description, block format, firmware, token vocabulary, program."""
