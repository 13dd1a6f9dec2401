"""Studies as jobs of a Slurm: signal, requeue, cancel, a lost node, two nodes; the tables stay the same."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.limits import HANGS
from tests.support.slurm import missing, slurm

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(bool(why := missing()), reason=why or "never")]

SIZES = "--points 3 --repeats 1 --seeds 3 --tasks 8 --examples-per-task 400 --numeric-path cpu-float32-mkl --device cpu"
FILES = ("evaluation.csv", "search.csv")
EPSEARCH = [sys.executable, "-m", "epsearch"]


@pytest.fixture(scope="module")
def cluster():
    with slurm(slurmd_timeout=10) as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The tables of a run in this process's own machine."""
    folder = tmp_path_factory.mktemp("undisturbed")
    command = [*EPSEARCH, "run", *SIZES.split(), "--name", "mine", "--runner", "local", "--quiet"]
    subprocess.run(command, cwd=folder, check=True, timeout=HANGS)
    return tables(folder)


def tables(folder):
    return {name: (folder / "runs" / "mine" / name).read_bytes() for name in FILES}


def members(folder):
    """Number of members in the ledger."""
    try:
        with closing(sqlite3.connect(f"file:{folder / 'runs' / 'epsearch.sqlite'}?mode=ro", uri=True)) as ledger:
            return ledger.execute("SELECT count(*) FROM epsearch_runs").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def submit(cluster, folder, *options):
    """The number of a new job."""
    own = ["slurm", "--time", "20m", "--cpus", "1", *options, "--submit", "run", *SIZES.split(), "--name", "mine"]
    done = subprocess.run(
        [*EPSEARCH, *own], cwd=folder, env=cluster.environment, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr
    (number,) = re.findall(r"^Submitted batch job (\d+): mine; ", done.stdout)
    return number


def work(folder, job):
    """(members that the last run of a job has trained, those that it has taken from the ledger)."""
    log = (folder / f"mine-{job}.log").read_text()
    trained, reused = re.findall(r"^work +(\d+) members? trained, (\d+) from the ledger", log, re.M)[-1]
    return int(trained), int(reused)


def test_a_job_that_gets_the_signal_is_requeued_and_goes_on(cluster, undisturbed, tmp_path):
    job = submit(cluster, tmp_path)
    cluster.wait(lambda: members(tmp_path))
    cluster.command("scancel", "--signal=USR1", "--batch", job)
    cluster.requeued(job)
    stored = members(tmp_path)
    ended = cluster.ended(job)
    log = (tmp_path / f"mine-{job}.log").read_text()
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), log
    assert "epsearch: stopped, as the time of this machine is nearly over; " in log and "Traceback" not in log
    assert tables(tmp_path) == undisturbed
    trained, reused = work(tmp_path, job)
    assert reused == stored and trained + reused == members(tmp_path), "nothing that was stored is trained twice"


def test_a_job_that_is_cancelled_stays_so_and_the_next_one_goes_on(cluster, undisturbed, tmp_path):
    job = submit(cluster, tmp_path)
    cluster.wait(lambda: members(tmp_path))
    cluster.command("scancel", job)
    ended = cluster.ended(job)
    assert (ended["JobState"], ended["Restarts"]) == ("CANCELLED", "0")
    cluster.wait(lambda: not cluster.processes())
    log, stored = (tmp_path / f"mine-{job}.log").read_text(), members(tmp_path)
    assert "Traceback" not in log
    second = submit(cluster, tmp_path)
    assert cluster.ended(second)["JobState"] == "COMPLETED"
    assert tables(tmp_path) == undisturbed and work(tmp_path, second)[1] == stored


def test_a_job_whose_node_is_lost_goes_on_when_there_is_one(cluster, undisturbed, tmp_path):
    job = submit(cluster, tmp_path)
    cluster.wait(lambda: members(tmp_path))
    cluster.kill_node("n0")
    stored = members(tmp_path)
    cluster.requeued(job, before=lambda: cluster.start("n0"))
    ended = cluster.ended(job)
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), (tmp_path / f"mine-{job}.log").read_text()
    assert tables(tmp_path) == undisturbed and work(tmp_path, job)[1] == stored


def test_several_nodes_are_one_ray(undisturbed, tmp_path):
    folders = {*Path("/tmp").glob("epsearch-*-*")}
    with slurm(nodes=2, cpus=1) as two:
        job = submit(two, tmp_path, "--nodes", "2")
        two.wait(lambda: members(tmp_path))
        two.command("scancel", "--signal=USR1", "--batch", job)
        two.requeued(job)
        stored, ended = members(tmp_path), two.ended(job)
    assert {*Path("/tmp").glob("epsearch-*-*")} <= folders, "Ray's are removed"
    log = (tmp_path / f"mine-{job}.log").read_text()
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), log
    assert tables(tmp_path) == undisturbed and work(tmp_path, job)[1] == stored
