"""The processes that a process has started, from /proc."""

import os
import re
import select
from pathlib import Path

from tests.support.limits import HANGS


def descendants(root):
    """(pid, name) of every process below `root`."""
    parents, names = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                names[int(folder.name)], rest = re.match(r"\d+ \((.*)\) (.*)", (folder / "stat").read_text()).groups()
            except OSError:
                continue  # it has just ended
            parents[int(folder.name)] = int(rest.split()[1])
    found = [root]
    for pid in found:  # grows while it is walked
        found += [child for child, parent in parents.items() if parent == pid]
    return [(pid, names[pid]) for pid in found]


def gone(process):
    """Waits until a process has ended, of which this is the descriptor; also where nobody asks how it ended."""
    ended, _, _ = select.select([process], [], [], HANGS)
    os.close(process)
    return bool(ended)
