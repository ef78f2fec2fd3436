"""Many launches on the engine, every token compared with the reference interpreter's."""
