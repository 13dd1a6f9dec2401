"""A study on a Ray cluster of two nodes on this machine, joined by address."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from epsearch.failures import stopping
from results.ledger.record import same_result
from results.ledger.store import Store
from tests.epsearch.conftest import SMALL
from tests.support import halting
from tests.support.descendants import descendants
from tests.support.limits import HANGS

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive]  # test_hosts.py has the same on hosts that share nothing

CORES = """
import ray, sys, time
ray.init(sys.argv[1])
while ray.cluster_resources().get("CPU", 0) < int(sys.argv[2]):
    time.sleep(0.5)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """Address, environment and process of a head without cores and two nodes of one core each, with their own token."""
    address = f"127.0.0.1:{free_port()}"
    environment = os.environ | {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
        "RAY_TMPDIR": "/tmp",  # sockets need short paths
    }
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    start = [*ray, "start", "--block", "--disable-usage-stats"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    port = address.rsplit(":")[1]
    head = ["--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false"]
    nodes = [subprocess.Popen([*start, *head], **quiet)]
    deadline = time.monotonic() + HANGS
    while subprocess.run([*ray, "health-check", "--address", address], **quiet).returncode:
        assert time.monotonic() < deadline and nodes[0].poll() is None, "the head does not start"
        time.sleep(0.5)
    for count in (1, 2):  # one after the other: two that start at once on one machine take the same port
        nodes.append(subprocess.Popen([*start, f"--address={address}", "--num-cpus=1"], **quiet))
        joining = subprocess.Popen([sys.executable, "-c", CORES, address, str(count)], **quiet)
        while joining.poll() is None:
            assert nodes[-1].poll() is None, "a node does not start"
            time.sleep(0.5)
        assert joining.returncode == 0
    # A node that has lost its head leaves its agents behind. By descriptor: a number may be another process's by then.
    theirs = [os.pidfd_open(pid) for node in nodes for pid, _ in descendants(node.pid)]
    yield address, environment, nodes[0].pid
    for node in reversed(nodes):
        node.terminate()
    for node in nodes:
        node.wait(timeout=HANGS)
    for process in theirs:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)


def flags(options):
    return [part for name, value in options.items() for part in ("--" + name.replace("_", "-"), str(value))]


def test_a_cluster_stores_what_one_machine_stores(cluster, tmp_path):
    address, environment, _ = cluster
    ledgers = []
    for out, extra in (("cluster", {"runner": "tune", "address": address}), ("alone", {"runner": "local"})):
        options = SMALL | extra | {"out": tmp_path / out}
        command = [sys.executable, "-c", "from epsearch.cli import main; main()", "run", "--json", *flags(options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, env=environment)
        assert done.returncode == 0, done.stderr
        with Store.open(f"sqlite:///{tmp_path / out / 'epsearch.sqlite'}") as store:
            ledgers.append({record.key: record for record in store.all_runs()})
    by_cluster, alone = ledgers
    assert by_cluster.keys() == alone.keys() and len(alone) > 10
    assert all(same_result(by_cluster[key], alone[key]) for key in alone)
    assert not list((tmp_path / "cluster").glob(".tune-*"))


def test_a_cluster_that_loses_its_head_ends_the_run_in_one_line(cluster, tmp_path, monkeypatch):
    address, environment, node = cluster
    port = address.rpartition(":")[2]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = SMALL | {"runner": "tune", "address": address, "out": tmp_path}
    process, go_on = halting.start(4, "run", "--quiet", *flags(options))
    (head,) = (pid for pid, name in descendants(node) if name == "gcs_server")
    os.kill(head, signal.SIGKILL)
    out, err = process.communicate(timeout=HANGS)
    go_on()
    line = rf"epsearch: Ray was lost \(nobody answers at \S+:{port}\); try --runner local; {stopping.RESUMES}\n"
    assert process.returncode == 1 and out == b"" and re.fullmatch(line, err.decode()), err
