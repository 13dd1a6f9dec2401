"""Time and memory of a run besides its training: start and end of workers, and the report."""

import json
from contextlib import suppress
from statistics import median

from epsearch.cache import cache_folder
from epsearch.operating_system import resident_bytes
from trainers.persistence import checked_files

REPORT = "report"
RAY_START = "tune beside threads"
# Before the first run on this machine: seconds as measured on two cores of a server. Runners have their own.
DEFAULTS = {RAY_START: 21.0, REPORT: 2.5}
# A study must last so many times as long as Ray's start, for its workers to make up for the time that the start takes
# from the threads. On two cores, the digits: the start costs some 18 s, and workers are a fifth faster than threads.
LEAST_STARTS = 4
RUNS = 5  # that are stored

MIB = 2**20
# As measured on Linux, after a search with its report: private memory of a process, files of libraries, which all
# processes share, and Ray besides its workers.
OWN, LIBRARIES, RAY = 600 * MIB, 550 * MIB, 400 * MIB

MARK, CONSEQUENCE = "seconds of earlier runs", "plans begin with usual ones"


def expected_seconds(part: str, usual: float | None = None) -> float:
    """Returns the seconds of a part on an idle machine: the median of the last runs on this one.

    part: a runner, for start and end of its workers; RAY_START, the start of Ray while threads train on all cores; or
    REPORT; or an import, see `import_of`.
    usual: the value before the first run; None for the one in DEFAULTS.
    """
    stored = _read().get(part)
    if stored:
        return median(stored)
    return DEFAULTS[part] if usual is None else usual


def import_of(trainer: str) -> str:
    """Returns the part in which a worker imports a plug-in trainer, see `expected_seconds`."""
    return f"import of {trainer}"


def remember(part: str, seconds: float, share: float = 1.0) -> None:
    """Stores the seconds of a part.

    share: processor time that it had, as a fraction of what it could use, so that a busy hour is not a slow machine.
    """
    with suppress(OSError):  # only costs a better estimate
        stored = _read()
        stored[part] = [*stored.get(part, []), round(seconds * share, 3)][-RUNS:]
        path = cache_folder() / "seconds"
        path.parent.mkdir(parents=True, exist_ok=True)
        checked_files.write(path, MARK, json.dumps(stored, indent=1).encode())


def process_bytes(ray: bool, workers: int) -> int:
    """Returns the memory of the training processes, without their data.

    ray: True for Ray with this number of workers. This process may already use more than usual.
    """
    driver = max(OWN + LIBRARIES, resident_bytes())
    return driver + (RAY + workers * OWN if ray else 0)


def _read() -> dict[str, list[float]]:
    """Returns part -> seconds of the last runs, the newest last."""
    with suppress(OSError):
        return dict(json.loads(checked_files.read(cache_folder() / "seconds", MARK, CONSEQUENCE) or "{}"))
    return {}
