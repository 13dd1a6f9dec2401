"""A study on a Ray cluster of two nodes on this machine, joined by address."""

import os
import socket
import subprocess
import sys
import time

import pytest

from results.record import same_result
from results.store import Store
from tests.epsearch.conftest import SMALL

pytestmark = pytest.mark.slow

PATIENCE = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """Address and environment of a head without cores and two nodes of one core each, with a token of their own."""
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
    deadline = time.monotonic() + PATIENCE
    while subprocess.run([*ray, "health-check", "--address", address], **quiet).returncode:
        assert time.monotonic() < deadline and nodes[0].poll() is None, "the head does not start"
        time.sleep(0.5)
    nodes += [subprocess.Popen([*start, f"--address={address}", "--num-cpus=1"], **quiet) for _ in range(2)]
    time.sleep(15)  # until both have joined; the study needs one of them
    assert all(node.poll() is None for node in nodes), "a node does not start"
    yield address, environment
    for node in reversed(nodes):
        node.terminate()
    for node in nodes:
        node.wait(timeout=PATIENCE)


def test_a_cluster_stores_what_one_machine_stores(cluster, tmp_path):
    address, environment = cluster
    ledgers = []
    for out, extra in (("cluster", {"runner": "tune", "address": address}), ("alone", {"runner": "local"})):
        options = SMALL | extra | {"out": tmp_path / out}
        flags = [part for name, value in options.items() for part in ("--" + name.replace("_", "-"), str(value))]
        command = [sys.executable, "-c", "from epsearch.cli import main; main()", "run", "--json", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
        assert done.returncode == 0, done.stderr
        with Store.open(f"sqlite:///{tmp_path / out / 'epsearch.sqlite'}") as store:
            ledgers.append({record.key: record for record in store.all_runs()})
    by_cluster, alone = ledgers
    assert by_cluster.keys() == alone.keys() and len(alone) > 10
    assert all(same_result(by_cluster[key], alone[key]) for key in alone)
    assert not list((tmp_path / "cluster").glob(".tune-*"))
