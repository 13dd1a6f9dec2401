"""`epsearch`, stopped while it works; run as a program.

Once so many members are in the ledger it says so on one pipe and waits until another one is closed: a signal that is
sent meanwhile comes half way through the run, however slow or fast the machine is.
"""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(members, *arguments, inside=(), **options):
    """(process, what lets it go on when it is called), of a run with so many members in its ledger, or a few more.

    inside: what stands before the command, as `ip netns exec NAME`; options: of Popen.
    """
    told, tells = os.pipe()
    waits, goes = os.pipe()
    # A test run in the background ignores Ctrl-C, and its children would inherit that.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-m", "tests.support.halting", *map(str, (members, tells, waits)), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "pass_fds": (tells, waits)}
    process = subprocess.Popen([*inside, *command], preexec_fn=listen, **({"cwd": ROOT} | options), **pipes)
    os.close(tells), os.close(waits)
    with os.fdopen(told, "rb") as pipe:
        if not pipe.read(1):
            os.close(goes)
            _, err = process.communicate()
            raise AssertionError(f"the run ended before it was half way:\n{err.decode()}")
    return process, partial(os.close, goes)


def main():
    members, tells, waits = map(int, sys.argv[1:4])
    sys.argv[1:4] = []
    from epsearch.__main__ import main
    from results.ledger.store import Store

    original, halted = Store.add, []

    def add(self, records, summary=None):
        added = original(self, records, summary)
        if not halted and len(self.all_runs()) >= members:
            halted.append(True)
            os.write(tells, b".")
            os.read(waits, 1)
        return added

    Store.add = add
    main()


if __name__ == "__main__":
    main()
