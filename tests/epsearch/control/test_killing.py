"""A process that does not stop is killed with all that it has started; nobody else is."""

import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from epsearch.control import cancelling
from epsearch.control.cancelling import kill
from results.ledger.writers.holder import Holder, here
from tests.support.holders import needs_proc
from tests.support.limits import HANGS

STARTS = """
import subprocess, sys
from results.ledger.writers.holder import here
print(here().to_json())
sleeps = [sys.executable, "-c", "import time; time.sleep(1000)"]
child = subprocess.Popen(sleeps, start_new_session=True)
code = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL).pid, flush=True)"
orphan = subprocess.run([sys.executable, "-c", code, *sleeps], stdout=subprocess.PIPE, text=True)
print(child.pid, orphan.stdout.strip(), flush=True)
print(input(), flush=True)
input()
"""


@needs_proc
def test_its_children_and_its_group_are_killed_with_it():
    """A child in a session of its own is no part of the group; one whose parent has ended is no child."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", STARTS], start_new_session=True, **pipes) as process:
        holder = Holder.from_json(process.stdout.readline())
        family = [psutil.Process(int(number)) for number in process.stdout.readline().split()]
        assert len(family) == 2
        kill(replace(holder, started=holder.started - 1))  # another one had its number before
        process.stdin.write("still there\n")
        process.stdin.flush()
        assert process.stdout.readline() == "still there\n" and all(one.is_running() for one in family)
        kill(holder)
        assert process.wait(HANGS) != 0
        for one in family:
            with pytest.raises(psutil.NoSuchProcess):
                while one.status() != psutil.STATUS_ZOMBIE:
                    pass
                raise psutil.NoSuchProcess(one.pid)
    kill(holder)  # which is there no more


@needs_proc
def test_only_other_processes_of_this_machine_are_near():
    own = here()
    assert cancelling._is_local(replace(own, pid=own.pid + 1)) and not cancelling._is_local(own)
    assert not cancelling._is_local(replace(own, pid=own.pid + 1, boot="another"))
    assert not cancelling._is_local(replace(own, pid=own.pid + 1, namespace="another"))
