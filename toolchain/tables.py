"""Where the tables of parsers are kept between runs: to build them takes longer than to compile a kernel."""

import os
import sys
from pathlib import Path


def tables_file(grammar: str) -> str | None:
    """The file for a grammar's tables.

    Lark rebuilds tables that do not fit the grammar or its own version. They are a pickle, so only a folder
    that nobody else can write to will do; None where there is none.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qgpu" / "tables"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):
        return None
    private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    if not private or not os.access(folder, os.W_OK):
        return None
    return str(folder / f"{grammar}-{sys.version_info.major}.{sys.version_info.minor}.lark")
