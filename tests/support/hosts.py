"""Computers of a network that are none: namespaces of this one, with a folder of temporary files of their own."""

import os
import secrets
import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress

from tests.support.descendants import descendants
from tests.support.limits import HANGS

ADDRESS = "10.213.77.{}"  # seen within the namespaces alone
# Nothing of the machine's temporary files is there, nor of its shared memory.
OWN_FILES = 'mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /dev/shm && exec "$@"'


def missing():
    """Why there can be no such hosts here; "" where there can."""
    if lacking := [name for name in ("ip", "unshare") if shutil.which(name) is None]:
        return f"needs {' and '.join(lacking)}"
    tried = [
        "unshare",
        "--net",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs tmpfs /mnt && ip link add name bridge0 type bridge",
    ]
    done = subprocess.run(tried, capture_output=True, text=True)
    return f"network namespaces cannot be made here: {done.stderr.strip()}" if done.returncode else ""


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, timeout=HANGS)


class Hosts:
    """Namespaces around a bridge, which has one of its own: the machine's network is left alone."""

    def __init__(self):
        self._mark, self._names, self._started = secrets.token_hex(3), [], []
        self._hub = self._namespace("hub")
        ip("-n", self._hub, "link", "add", "name", "bridge0", "type", "bridge")
        ip("-n", self._hub, "link", "set", "bridge0", "up")

    def _namespace(self, name):
        self._names.append(f"eps-{self._mark}-{name}")
        ip("netns", "add", self._names[-1])
        ip("-n", self._names[-1], "link", "set", "lo", "up")
        return self._names[-1]

    def add(self, name):
        """Returns the address of a new host."""
        space, address = self._namespace(name), ADDRESS.format(len(self._names))
        ip("-n", self._hub, "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("-n", self._hub, "link", "set", "dev", name, "master", "bridge0", "up")
        ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        return address

    def cut(self, name):
        """Takes a host's plug out."""
        ip("-n", self._hub, "link", "set", "dev", name, "down")

    def inside(self, name, own_files=False):
        """What stands before a command that is to run on the host."""
        files = ["unshare", "--mount", "--propagation", "private", "sh", "-c", OWN_FILES, "sh"] if own_files else []
        return ["ip", "netns", "exec", f"eps-{self._mark}-{name}", *files]

    def start(self, name, command, environment, log, own_files=False):
        """A process on the host, which writes to the file `log`; ended with the hosts at the latest."""
        with open(log, "ab") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, "env": environment}
            self._started.append(subprocess.Popen([*self.inside(name, own_files), *command], **streams))
        return self._started[-1]

    def kill(self, process):
        """Ends a process and all that it has started, which have no time for a last word."""
        theirs = [(pid, os.pidfd_open(pid)) for pid, _ in descendants(process.pid)]
        for _, one in theirs:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(one, signal.SIGKILL)
            os.close(one)
        process.wait(timeout=HANGS)

    def end(self):
        for process in reversed(self._started):
            if process.poll() is None:
                self.kill(process)
        # Whatever has lost its parent meanwhile is found by its namespace.
        for name in self._names:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout
            for pid in map(int, pids.split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            ip("netns", "del", name)


@contextmanager
def hosts():
    made = Hosts()
    try:
        yield made
    finally:
        made.end()
