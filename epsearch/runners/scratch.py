"""A folder for as long as a run takes. Where the run is killed, the next one on this machine removes it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from results.ledger.writers.holder import Holder, here

PREFIX, HOLDER = "epsearch-", "holder"
"""What the names of such folders begin with; the file in each that says whose it is."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A new folder among the system's temporary ones, removed behind; also those of runs that are gone."""
    clear()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        (folder / HOLDER).write_text(here().to_json(), encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        clear()  # again: what a killed run had started may have ended only since


def clear() -> None:
    """Removes the folders whose process was killed, as far as that is certain."""
    for named in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{HOLDER}"):
        with suppress(OSError, UnicodeError):
            if Holder.from_json(named.read_text(encoding="utf-8")).gone():
                _remove(named)


def _remove(named: Path) -> None:
    """Removes the folder, its holder last: where somebody still writes to it, the next run goes on with it."""
    for one in named.parent.iterdir():
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        elif one != named:
            one.unlink()
    shutil.rmtree(named.parent)
