"""Where a base is: a directory, or a model of the Hugging Face hub, which is fetched."""

from __future__ import annotations

import re
from pathlib import Path

from qgpu.toolchain.diagnostics import failure

CONFIG_ALONE = ("config.json",)
ALL = ("*.json", "*.safetensors", "*.jinja", "merges.txt")
"""Files of a model that a merge reads: neither pictures nor weights in other formats."""


def base_directory(name: str, files: tuple[str, ...] = ALL) -> Path:
    """Return the directory of a base; a hub's model is downloaded, or taken from the hub's own cache.

    Args:
        name: a directory, or OWNER/NAME.
        files: patterns of the files that are needed.

    Raises:
        DiagnosticError: there is no such directory, and the hub does not give such a model.
    """
    if Path(name).is_dir():
        return Path(name)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or name.startswith("."):
        raise failure(f"no directory '{name}', and that is no OWNER/NAME of the Hugging Face hub")
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(files)))
    except LocalEntryNotFoundError:
        why = "the hub cannot be reached, and its cache has no such model"
    except HfHubHTTPError as error:
        why = str(error).strip().splitlines()[0]
    except (HFValidationError, OSError, ValueError) as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    raise failure(f"cannot get '{name}': {why}", "download it elsewhere, and give its directory to --base")
