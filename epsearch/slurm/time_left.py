"""The time that a machine is ours: a time of the user's, or what Slurm leaves the job."""

import os
import re
import subprocess
import time

from epsearch.failures.errors import UsageError, brief
from epsearch.study.parsers import SLURM, duration

ANSWER_SECONDS = 60.0  # of squeue
CLOCK = re.compile(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)")
UNLIMITED = ("UNLIMITED", "NOT_SET")


def seconds_left(written: str | None) -> float | None:
    """Returns the seconds of --time-left from now on; None for no limit.

    written: a time, `slurm`, or `slurm-2m`, see `parsers.time_left`. Raises UsageError outside of a job of Slurm.
    """
    if written is None:
        return None
    if not written.startswith(SLURM):
        return duration(written, "time-left")
    less = written.removeprefix(SLURM).removeprefix("-")
    left = _of_job()
    return None if left is None else max(0.0, left - (duration(less, "time-left") if less else 0.0))


def _of_job() -> float | None:
    """Returns the seconds that Slurm leaves this job; None for no limit. Raises UsageError."""
    job, end = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_JOB_END_TIME", "")
    if job is None:
        raise UsageError("time-left slurm needs a job of Slurm, and SLURM_JOB_ID is not set; give a time like 2h")
    if end.isdecimal():  # since Slurm 23.02
        return int(end) - time.time()
    command = ["squeue", "--noheader", f"--jobs={job}", "--format=%L"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True).stdout
        return clock(text)
    except (OSError, subprocess.SubprocessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().partition("\n")[0]
        raise UsageError(f"time-left slurm cannot be read from squeue: {reason}; give a time like 2h") from error


def clock(text: str) -> float | None:
    """Returns the seconds of a time as Slurm prints it, days-hours:minutes:seconds; None for no limit.

    >>> clock("1-02:03:04"), clock("1:30"), clock("UNLIMITED")
    (93784.0, 90.0, None)
    """
    if text.strip() in UNLIMITED:
        return None
    if (parts := CLOCK.fullmatch(text.strip())) is None:
        raise UsageError(f"time-left slurm got {brief(text.strip())} from squeue; give a time like 2h")
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
