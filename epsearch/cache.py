"""The cache folder: datasets, first tasks, measured numeric paths."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """Returns $EPSEARCH_CACHE, or the user's cache folder of the operating system."""
    return Path(os.environ.get("EPSEARCH_CACHE") or user_cache_path("epsearch")).absolute()


def learner_cache() -> Path:
    """Returns the folder of first tasks that members share, and of the last tasks of members that were killed."""
    return cache_folder() / "learners"


def image_cache() -> Path:
    """Returns the folder of decoded images."""
    return cache_folder() / "images"
