"""A study of minutes in jobs of two: requeued by Slurm until it is finished, with the tables of an undisturbed run."""

import json
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.epsearch.slurm.test_slurm import EPSEARCH, members, tables, work
from tests.fuzz.chaos import WRONG
from tests.fuzz.slurm_jobs import JobCampaign
from tests.support.slurm import missing, slurm

pytestmark = [pytest.mark.fuzz, pytest.mark.skipif(bool(why := missing()), reason=why or "never")]

STUDY = "--name mine --numeric-path cpu-float32-mkl --device cpu --epochs 10 --seeds 4 --repeats 3 --tasks 14"
LIMIT, SIGNAL = "2m", "30s"
HOURS = 2 * 3600
SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
SEED = int(os.environ.get("EPSEARCH_FUZZ_SEED", "1"))
KILLS = {"local": 30, "tune": 10}


def test_a_study_of_minutes_in_jobs_of_two(figures, tmp_path):
    """Slurm's clock ends each run: nobody else sends a signal."""
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    alone.mkdir(), shared.mkdir()
    run = [*EPSEARCH, "run", *STUDY.split()]
    with (alone / "log").open("wb") as log, slurm(cpus=1) as cluster, ExitStack() as stack:
        streams = {"stdout": log, "stderr": log, "env": cluster.environment}
        command = [*run, "--runner", "local", "--workers", "1"]
        undisturbed = stack.enter_context(subprocess.Popen(command, cwd=alone, **streams))
        stack.callback(undisturbed.kill)
        job = ["slurm", "--time", LIMIT, "--signal", SIGNAL, "--cpus", "1", "--submit", "run", *STUDY.split()]
        subprocess.run([*EPSEARCH, *job], cwd=shared, env=cluster.environment, check=True, stdout=subprocess.DEVNULL)
        begun, starts = time.monotonic(), [0]
        while cluster.wait(lambda: state(cluster, len(starts)), HOURS) == "PENDING":
            cluster.requeued("1", len(starts))
            starts.append(members(shared))
        ended, seconds = cluster.job("1"), time.monotonic() - begun
        assert undisturbed.wait(HOURS) == 0, (alone / "log").read_text()
    log = (shared / "mine-1.log").read_text()
    assert ended["JobState"] == "COMPLETED" and int(ended["Restarts"]) == len(starts) - 1 >= 2, log
    assert tables(shared) == tables(alone)
    assert starts == sorted(starts) and starts[1] > 0
    trained, reused = work(shared, "1")
    assert reused == starts[-1] and trained + reused == members(shared) == members(alone)
    figures("slurm", seconds=round(seconds), requeues=len(starts) - 1, members=members(shared), stored=starts[1:])


def state(cluster, times):
    """COMPLETED or FAILED at the end of the job, PENDING once it was requeued so often, None before."""
    found = cluster.job("1")
    if found["JobState"] in ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"):
        return found["JobState"]
    return "PENDING" if int(found["Restarts"]) >= times else None


@pytest.mark.parametrize("runner", KILLS)
def test_kills(figures, tmp_path, runner):
    """EPSEARCH_FUZZ_LOG names the log of a campaign that is to go on where it was interrupted."""
    kept = Path(os.environ.get("EPSEARCH_FUZZ_LOG", tmp_path / "log"))
    found = JobCampaign(kept, runner, max(2, round(KILLS[runner] * SHARE)), SEED).run()
    figures(f"kills on Slurm, {runner}", **found)
    assert not any(found[name] for name in WRONG), [line for line in map(json.loads, kept.open())]
