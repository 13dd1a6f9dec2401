"""A worker of `epsearch.runners.gpus` on a GPU that there is not: the CPU trains in its place.

The variable FAKE has, as JSON, the folder of its log and by the value of CUDA_VISIBLE_DEVICES the bytes that are free,
and what is wrong: "check" fails the self-check, "dies" ends the process of the first job, "start" that at its start.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

from epsearch import gpu_check
from epsearch.machine import VISIBLE
from epsearch.runners import gpu_worker, gpus
from tests.support.emulated_graphs import emulated
from tests.support.numeric_paths import TWIN
from trainers import free_memory, paths, population
from trainers.engines import self_check

FAKE = "EPSEARCH_TEST_GPUS"
CHECK, TRAIN, EXECUTE = self_check.check, population.train_cohort, gpu_worker.execute


def wrong(*given):
    """An engine whose steps are a tenth too long."""
    engine = emulated()(*given)
    update = engine._update
    engine._update = lambda learners, segment, g, *rest: update(learners, segment, g * 1.1, *rest)
    return engine


def main():
    given, token = json.loads(os.environ[FAKE]), os.environ[VISIBLE]
    folder, (free, fault) = Path(given["folder"]), given["gpus"][token]
    if fault == "start":
        raise SystemExit("no CUDA-capable device is detected")

    def execute(job, progress, share):
        once = folder / "died"
        if fault == "dies" and not once.exists():
            once.touch()
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        result = EXECUTE(job, progress, share=share)
        with (folder / "log").open("a") as log:
            print(json.dumps([token, len(job.cohort.learners), gpus._bytes(job), share]), file=log)
        return result

    gpu_worker.execute = execute
    gpu_worker.facts = lambda: (f"Fake {token[:3]}", free, 2 * free)
    gpu_check.gpu_kind = lambda device: {"GPU": "fake", "UUID": token}
    free_memory.free_bytes = lambda path: free
    engine_of = wrong if fault == "check" else emulated()
    self_check.check = lambda learner, stream, network, path: CHECK(learner, stream, network, TWIN, engine_of)
    paths.train_path = lambda cohort, training, *rest: TRAIN(cohort, replace(training, path=TWIN, folder=None), *rest)
    gpu_worker.main()


if __name__ == "__main__":
    main()
