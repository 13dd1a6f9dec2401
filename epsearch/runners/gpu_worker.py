"""A process that trains cohorts on the one GPU that it sees, for `gpus`: jobs come in, reports go out, pickled."""

import os
import pickle
import sys
import time
from contextlib import suppress
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.failures.lines import cohort_failure
from epsearch.loop.jobs import Job, encode, execute
from trainers.operating_system import keep_niceness

REPORT_SECONDS = 1.0  # least pause between two reports
LOST = ("cuda error", "cublas_status", "cudnn_status")  # in messages: nothing works in this process any more


def main() -> None:
    """Says what the GPU is and has free, and trains jobs until no more come."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what plug-ins print is no answer
    keep_niceness()

    def answer(what: object) -> None:
        pickle.dump(what, answers)
        answers.flush()

    # Without its driver nobody reads: the next report ends this process.
    with suppress(BrokenPipeError, EOFError, KeyboardInterrupt):
        answer(facts())
        while True:
            job, share = pickle.load(sys.stdin.buffer)  # from the driver, which started this process
            answer(_train(job, share, answer))


def facts() -> tuple[str, int, int]:
    """Returns the name of this process's GPU, and the bytes of it that may be taken now and in all."""
    import torch

    from trainers.free_memory import free_bytes
    from trainers.numeric_path import NumericPath

    name = torch.cuda.get_device_name()
    return name, free_bytes(NumericPath("cuda")) or 0, int(torch.cuda.mem_get_info()[1])


def _train(job: Job, share: float, answer: Any) -> dict[str, Any]:
    """Returns the last answer of a job: steps and work since the one before, and what it came to.

    Raises errors after which the GPU cannot be used by this process.
    """
    waiting, last = {"steps": 0, "work": 0.0}, time.monotonic()

    def progress(steps: int, work: float) -> None:
        nonlocal waiting, last
        waiting = {"steps": waiting["steps"] + steps, "work": waiting["work"] + work}
        if time.monotonic() - last >= REPORT_SECONDS:
            answer(waiting)
            waiting, last = {"steps": 0, "work": 0.0}, time.monotonic()

    try:
        if job.limits is not None:
            from trainers.foreign.fork_servers import keep_until_exit

            keep_until_exit()
        result = execute(job, progress, share=share)
    except UsageError as error:  # on this machine, and so of every other job: it ends the study, as in a thread
        return waiting | {"error": str(error), "foreign": True}
    except Exception as error:
        if any(words in str(error).lower() for words in LOST) and "out of memory" not in str(error).lower():
            raise
        failed = cohort_failure(error)
        return waiting | failed | {"of_this_gpu": failed["stops"] and not isinstance(error, ImportError)}
    assert result.value is not None
    names = ("seconds", "parameter_difference", "machine", "self_check", "imported")
    return waiting | {"value": encode(result.value)} | {name: getattr(result, name) for name in names}


if __name__ == "__main__":
    main()
