"""Datasets that torchvision downloads."""

import re
from pathlib import Path

from trainers.notes import first_line
from trainers.streams.base import DataError

OF_URLLIB = re.compile(r"<urlopen error (?:\[Errno -?\d+\] )?(.*)>")


def download(dataset: str, subject: str, data_dir: Path, advice: str) -> None:
    """Fetches torchvision's `dataset`, the name of a class there, and unpacks it under data_dir.

    Raises DataError where torchvision cannot be imported or the download fails: no `subject`, why, and the advice.
    """
    missing = f"no {subject} under {data_dir}, and"
    try:
        from torchvision import datasets
    except (ImportError, RuntimeError) as error:
        raise DataError(
            f"{missing} torchvision, which would download it, cannot be imported ({first_line(error)}); "
            f"{advice}, or install a torchvision that fits torch"
        ) from error
    try:
        getattr(datasets, dataset)(str(data_dir), download=True)
    except Exception as error:  # of torchvision, urllib, tarfile, …
        raise DataError(f"{missing} the download failed ({_reason(error)}); {advice}") from error


def _reason(error: Exception) -> str:
    r"""Returns the first line of an error, or the last one where the first announces it, as torchvision's does.

    >>> _reason(OSError("Error downloading a.gz:\n<urlopen error [Errno -2] Name or service not known>"))
    'Name or service not known'
    """
    first, last = first_line(error), str(error).strip().rpartition("\n")[2]
    return OF_URLLIB.sub(r"\1", last if first.endswith(":") and last else first)
