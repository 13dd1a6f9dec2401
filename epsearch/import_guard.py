"""Guards the imports of our packages against user files of the same names.

Python looks for `results` in the folder of the program, or in the present one, before it looks among what is installed;
Ray's workers do so, too. Once imported they are known by name, whatever lies where.
"""

import importlib
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

NAMES = ("trainers", "search_spaces", "results")
ROOT = Path(__file__).resolve().parents[1]


def find_replacement(name: str) -> str | None:
    """Returns the path of a module that would replace one of our packages; None if there is none."""
    spec = find_spec(name)
    place = None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
    return None if place is None or Path(place).resolve().is_relative_to(ROOT / name) else place


def ensure_own_packages() -> None:
    """Imports our packages where a user's file would hide them, with a warning.

    Raises ImportError if the program has imported that file already.
    """
    for name in NAMES:
        if (place := find_replacement(name)) is None:
            continue
        if name in sys.modules:
            raise ImportError(f"{place} has the name of a package of epsearch, {name!r}; give it another name")
        sys.path.insert(0, str(ROOT))
        try:
            importlib.import_module(name)
        finally:
            sys.path.remove(str(ROOT))
        if sys.argv[:1] != ["-m"]:  # the program has no use for it
            warnings.warn(f"{place} cannot be imported beside epsearch, which has a package {name!r}", stacklevel=3)
