"""Replaces closed standard streams (`>&-`) and a missing working folder."""

import os
import sys

NOWHERE = ("/proc", "/")
"""Replacements of the working folder; in the first, no file can be made."""
STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_streams() -> None:
    """Opens closed standard streams. Else a ledger could get the number to which a library prints."""
    for number, (name, mode) in enumerate(STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # Takes the lowest free number, which is this one; child processes inherit it.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))


def leave_missing_folder() -> None:
    """Leaves a deleted working folder, in which MKL and Python fail; relative paths then lead nowhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir(next(folder for folder in NOWHERE if os.path.isdir(folder)))
