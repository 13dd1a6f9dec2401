"""Where this user's computer keeps what can be made again: datasets, first tasks, measured numeric paths."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """$EPSEARCH_CACHE, or the folder that the operating system has for such things."""
    return Path(os.environ.get("EPSEARCH_CACHE") or user_cache_path("epsearch")).absolute()


def image_cache() -> Path:
    """Where decoded images lie."""
    return cache_folder() / "images"
