"""The program `epsearch`, as `python -m epsearch`, too: signals first, as importing the rest takes a second."""

import os
import sys

from epsearch.failures.standard import open_all, stand_somewhere
from epsearch.failures.stopping import end, listen

NARROWEST = 20  # columns in which a table still has letters


def main() -> None:
    """Runs the command line; `epsearch.failures.lines` says what its exit statuses mean."""
    open_all()
    stand_somewhere()
    stop = listen()
    try:
        from epsearch.failures.lines import answered

        status = answered(_command_line, stop.telling)
    except KeyboardInterrupt:  # while even that was being imported, or between two lines of it
        end()
    stop.told()  # a signal from here on would be a traceback of the interpreter's own end
    sys.exit(status)


def _command_line() -> object:
    """Imports the rest and runs it: what goes wrong while it is imported is one line, too."""
    for name, least in (("COLUMNS", NARROWEST), ("LINES", 1)):
        if (given := os.environ.get(name, "")[:9]).isdecimal() and int(given) < least:
            del os.environ[name]  # 0 where no terminal is; rich would print nothing
    from epsearch.failures.room import make_sure

    make_sure()
    from epsearch.cli import run

    return run()


if __name__ == "__main__":
    main()
