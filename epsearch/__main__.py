"""The program `epsearch`, also as `python -m epsearch`; handles signals before it imports the rest."""

import os
import sys

from epsearch.failures.environment import leave_missing_folder, open_streams
from epsearch.failures.stopping import end, listen

NARROWEST = 20  # columns in which a table still has letters


def main() -> None:
    """Runs the command line; `epsearch.failures.lines` says what its exit statuses mean."""
    open_streams()
    leave_missing_folder()
    stop = listen()
    try:
        from epsearch.failures.lines import run_command

        status = run_command(_command_line, stop.begin_printing)
    except KeyboardInterrupt:  # during that import
        end()
    stop.end_printing()  # a signal from here on would be a traceback of the interpreter
    sys.exit(status)


def _command_line() -> object:
    """Imports and runs the command line, so that errors of imports are one line, too."""
    for name, least in (("COLUMNS", NARROWEST), ("LINES", 1)):
        if (text := os.environ.get(name, "")[:9]).isdecimal() and int(text) < least:
            del os.environ[name]  # 0 without a terminal; rich would print nothing
    from epsearch.failures.address_space import check_imports

    check_imports()
    from epsearch.cli import run

    return run()


if __name__ == "__main__":
    main()
