"""A Ray cluster of hosts that share nothing: a head, on which the driver runs, and two workers behind a bridge."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from epsearch.runners.on_ray import ray_start
from results.ledger.record import same_result
from results.ledger.store import Store
from tests.epsearch.conftest import SMALL
from tests.support import halting, others, own_trainers
from tests.support.hosts import hosts, missing
from tests.support.limits import HANGS
from tests.trainers.streams.test_permuted import write_idx

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(bool(why := missing()), reason=why or "never")]

START = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
# Each host has all ports for itself. Ray waits only a few seconds for those that its processes choose themselves.
START += ["--metrics-export-port=7001", "--dashboard-agent-listen-port=7002", "--dashboard-agent-grpc-port=7003"]
START += ["--runtime-env-agent-port=7004"]
TOKEN, WRONG = "0123456789abcdef" * 4, "f123456789abcdef" * 4
OWN = """
from helper import load
from trainers.streams.permuted import PermutedStream

def factory(tasks, examples_per_task):
    return PermutedStream(load(), tasks, examples_per_task)
"""
MINE = {"dataset": "mine:factory", "points": 3, "repeats": 1, "seeds": 1}
ENOUGH = """
import ray, sys, time
ray.init(sys.argv[1], log_to_driver=False)
while ray.cluster_resources().get("CPU", 0) < int(sys.argv[2]):
    time.sleep(0.5)
"""


class Cluster:
    """A head without cores and two workers of one core each."""

    def __init__(self, network, folder):
        self.network, self.folder, self.workers, self.log = network, folder, {}, folder / "log"
        others = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.environment = (
            others
            | ray_start.SETTINGS
            | {
                "RAY_USAGE_STATS_ENABLED": "0",
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN": TOKEN,
                "RAY_health_check_failure_threshold": "3",
                "RAY_health_check_timeout_ms": "10000",  # as Ray has it: a node that is cut off has to be found out
                "HOME": str(folder / "home"),
                "OMP_NUM_THREADS": "1",
                "EPSEARCH_CACHE": str(folder / "cache"),
            }
        )
        address = network.add("head")
        self.address = f"{address}:6379"
        head = ["--head", f"--node-ip-address={address}", "--port=6379", "--num-cpus=0", "--include-dashboard=false"]
        place = f"--temp-dir={folder / 'ray'}"
        self.head = network.start("head", [*START, *head, place], self.environment, self.log)
        self._wait(["-m", "ray.scripts.scripts", "health-check", "--address", self.address])
        for count, name in enumerate(("cut", "killed"), 1):
            self.add(name, network.add(name))
            self._wait(["-c", ENOUGH, self.address, str(count)])

    def add(self, name, address, **more):
        node = [f"--address={self.address}", f"--node-ip-address={address}", "--num-cpus=1"]
        environment = self.environment | {"HOME": "/tmp", "EPSEARCH_CACHE": "/tmp/cache"} | more
        started = self.network.start(name, [*START, *node], environment, self.log, own_files=True)
        self.workers[name] = address, started

    def _wait(self, command):
        until = time.monotonic() + HANGS
        while subprocess.run(self.on_head(command), **self.quiet).returncode:
            assert time.monotonic() < until and self.head.poll() is None, self.log.read_text()
            time.sleep(0.5)

    @property
    def quiet(self):
        return {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": self.environment}

    def on_head(self, command):
        return [*self.network.inside("head"), sys.executable, *command]

    def run(self, *options, **environment):
        """What a run on the head has printed; of a variable that is None there is none."""
        known = {name: value for name, value in (self.environment | environment).items() if value is not None}
        command = self.on_head(["-m", "epsearch", *options])
        return subprocess.run(
            command, cwd=self.folder, env=known, capture_output=True, text=True, timeout=HANGS, check=False
        )


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="hosts", dir="/tmp"))  # sockets need short paths
    (folder / "home").mkdir()
    write_idx(folder / "data", images=(100, 20))
    (folder / "mine.py").write_text(OWN)
    (folder / "helper.py").write_text("from trainers.streams.pixels.digits import load\n")
    shutil.copy(others.__file__, folder / "plugged.py")
    shutil.copy(own_trainers.__file__, folder / "trained.py")
    try:
        with hosts() as network:
            yield Cluster(network, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def flags(**options):
    known = SMALL | options
    given = ((f"--{name.replace('_', '-')}", str(value)) for name, value in known.items() if value is not None)
    return ["run", *(part for pair in given for part in pair)]


def on(cluster, out, **options):
    return flags(runner="tune", address=cluster.address, out=cluster.folder / out, **options)


def ledger(folder):
    with Store.open(f"sqlite:///{folder / 'epsearch.sqlite'}") as store:
        return {record.key: record for record in store.all_runs()}


def assert_equal(one, other):
    assert one.keys() == other.keys() and len(one) > 3
    assert all(same_result(one[key], other[key]) for key in other)


@pytest.mark.parametrize("token", [WRONG, None], ids=["wrong", "none"])
@pytest.mark.parametrize("mode", ["token", None], ids=["asked for", "not asked for"])
def test_without_the_token_there_is_one_line(cluster, token, mode):
    done = cluster.run(*on(cluster, "refused"), "--quiet", RAY_AUTH_TOKEN=token, RAY_AUTH_MODE=mode)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert f"cannot join the Ray cluster at '{cluster.address}': " in done.stderr
    assert "`ray get-auth-token --generate`" in done.stderr


def test_a_module_of_the_users_own_travels_with_what_it_imports(cluster):
    """With the right token, which is passed on although Ray is not told to."""
    done = cluster.run(*on(cluster, "own", **MINE), "--quiet", RAY_AUTH_MODE=None)
    assert done.returncode == 0, done.stderr
    done = cluster.run(*flags(out=cluster.folder / "own alone", **MINE), "--quiet")
    assert done.returncode == 0, done.stderr
    assert_equal(ledger(cluster.folder / "own"), ledger(cluster.folder / "own alone"))


PLUGGED = {
    "a method": {"method": "plugged:PULLED", "search": "pull=0..1", "points": 3, "repeats": 1},
    "a trainer": {
        **{"trainer": "trained:softmax", "search": "lr=log:0.01..1", "set": "memory=5", "points": 3, "repeats": 1},
        **dict.fromkeys(("memory", "memory_batch", "numeric_path")),
    },
}


@pytest.mark.parametrize("what", ["a trainer", pytest.param("a method", marks=pytest.mark.exhaustive)])
def test_a_plug_in_travels_to_workers_that_have_none_of_its_files(cluster, what):
    done = cluster.run(*on(cluster, what, **PLUGGED[what]), "--quiet")
    assert done.returncode == 0, done.stderr
    done = cluster.run(*flags(out=cluster.folder / f"{what} alone", **PLUGGED[what]), "--quiet")
    assert done.returncode == 0, done.stderr
    assert_equal(ledger(cluster.folder / what), ledger(cluster.folder / f"{what} alone"))


def test_a_worker_that_is_cut_off_and_one_that_is_killed_change_nothing(cluster):
    network, folder = cluster.network, cluster.folder
    data = {"dataset": "permuted_mnist", "data_dir": folder / "data"}
    for name, (_, process) in cluster.workers.items():
        seen = ["nsenter", "-t", str(process.pid), "-m", "ls", str(folder)]
        files = subprocess.run(seen, capture_output=True, text=True, check=True).stdout.split()
        assert files == ["ray"], name  # their own, where the head has them: neither data nor ledger
    process, go_on = halting.start(
        4, *on(cluster, "out", **data), inside=network.inside("head"), env=cluster.environment
    )
    address, killed = cluster.workers["killed"]
    network.kill(killed)
    network.cut("cut")
    cluster.add("killed", address, PYTHONPATH="/tmp/changed")  # for the test below
    go_on()
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 0, err.decode()
    assert re.search(r"a worker died \(repeat \d of 2\): its cohort is trained again, attempt 2 of 5", err.decode())
    done = cluster.run(*flags(out=folder / "alone", **data), "--quiet")
    assert done.returncode == 0, done.stderr
    assert_equal(ledger(folder / "out"), ledger(folder / "alone"))


def test_a_worker_with_another_version_of_the_module_is_told_of(cluster):
    """It finds its own before the one that has come with the run."""
    _, process = cluster.workers["killed"]
    write = "mkdir -p /tmp/changed && echo '# other' > /tmp/changed/mine.py"
    subprocess.run(["nsenter", "-t", str(process.pid), "-m", "sh", "-c", write], check=True)
    done = cluster.run(*on(cluster, "other", **MINE), "--quiet")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    hashes = r"SHA-256 of (mine|helper)\.py: \w+ then, [\w ]+ now on \S+"
    assert re.search(rf"of dataset 'mine:factory' .* \({hashes}\)", done.stderr)
