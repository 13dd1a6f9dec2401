"""Standard streams (`>&-`) and working folder of the program, where it was started without them."""

import os
import sys

NOWHERE = ("/proc", "/")
"""Folders to work in; in the first of them nobody can make a file."""
STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_all() -> None:
    """Opens those that are closed. A ledger would else have the number to which a library prints."""
    for number, (name, mode) in enumerate(STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # Takes the lowest number that is free, which is this one; what this process starts has it, too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))


def stand_somewhere() -> None:
    """Leaves a working folder that is gone, in which MKL and Python find nothing; relative paths then lead nowhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir(next(one for one in NOWHERE if os.path.isdir(one)))
