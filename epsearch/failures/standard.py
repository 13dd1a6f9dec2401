"""Standard streams that were closed before the program began (`>&-`): they lead nowhere, and no file becomes one."""

import os
import sys

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
