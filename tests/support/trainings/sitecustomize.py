"""Notes every training of a program in a log, without a change to the program.

Python imports a module of this name by itself at the start of each process that has this folder on PYTHONPATH: the
driver, and whatever it starts, such as Ray's workers. Here that wraps `epsearch.loop.jobs.execute`, which every worker
calls for every cohort. A line is appended to the file that EPSEARCH_TRAININGS names before each call, and another after
it, each in one write, so that any number of processes may be killed at any moment and no line of another is torn.
"""

import functools
import importlib.abc
import importlib.util
import json
import os
import sys
import time

MODULE = "epsearch.loop.jobs"
LOG, LIFE = "EPSEARCH_TRAININGS", "EPSEARCH_TRAININGS_LIFE"
"""Variables: the file, and what the lines of this start of the program are marked with."""


def noted(execute):
    """`execute`, which notes the begin and the end of what it trains; of what raises, the begin alone."""

    @functools.wraps(execute)
    def noting(job, *arguments, **options):
        _note("begin", job)
        result = execute(job, *arguments, **options)
        _note("end", job)
        return result

    return noting


def _note(event, job):
    learners = [
        {"method": one.method, "seed": one.seed, "values": vars(one.hyperparameters)} for one in job.cohort.learners
    ]
    told = {"event": event, "pid": os.getpid(), "time": time.time(), "life": os.environ.get(LIFE, "")}
    line = told | {"phase": job.phase, "alone": job.certify is not None, "learners": learners}
    handle = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)


class Finder(importlib.abc.MetaPathFinder):
    """Finds MODULE as everybody does, and wraps what it defines before anyone can take it from there."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.execute = noted(module.execute)

        spec.loader.exec_module = exec_module
        return spec


if LOG in os.environ:
    sys.meta_path.insert(0, Finder())
