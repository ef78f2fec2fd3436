"""The PTX front end: text to syntax tree, and syntax tree to SIMT IR."""
