"""What a run takes besides its training: workers that start and end, and the report, as in earlier runs; memory."""

import json
import os
from contextlib import suppress
from pathlib import Path
from statistics import median

from epsearch.cache import cache_folder
from trainers.persistence import sealed

REPORT = "report"
BESIDE = "tune beside threads"
# Until something has been run here: seconds as measured on two cores of a server.
USUAL = {"tune": 13.0, BESIDE: 21.0, "local": 0.5, "auto": 0.5, REPORT: 2.5}
# So many times as long as Ray takes to be ready must a study last, for its workers to win back what their start takes
# from the threads. On two cores, the digits: the start costs some 18 s, and workers are a fifth faster than threads.
PAYS = 4
KEPT = 5  # runs that are remembered

MIB = 2**20
# As measured on Linux, after a search with its report: memory that a process has for itself, the files of libraries,
# which all processes share, and Ray besides its workers.
OWN, LIBRARIES, RAY = 600 * MIB, 550 * MIB, 400 * MIB

MARK, AGAIN = "seconds of earlier runs", "plans begin with usual ones"


def expected(part: str) -> float:
    """Seconds that a part takes when the machine does nothing else: the median of the last runs here.

    part: a runner, whose workers start and end; BESIDE, the start of Ray while threads train on all cores; or REPORT.
    """
    known = _known().get(part)
    return median(known) if known else USUAL[part]


def remember(part: str, seconds: float, share: float = 1.0) -> None:
    """Keeps what a part took.

    share: of the processor time that it wanted, what it had; else a busy hour would be taken for a slow machine.
    """
    with suppress(OSError):  # nothing is lost but a better estimate
        known = _known()
        known[part] = [*known.get(part, []), round(seconds * share, 3)][-KEPT:]
        path = cache_folder() / "seconds"
        path.parent.mkdir(parents=True, exist_ok=True)
        sealed.write(path, MARK, json.dumps(known, indent=1).encode())


def process_bytes(ray: bool, workers: int) -> int:
    """Memory of the processes that train, whatever they train.

    ray: whether there is one, with so many workers; this process may already take more than is usual.
    """
    here = max(OWN + LIBRARIES, _resident())
    return here + (RAY + workers * OWN if ray else 0)


def _resident() -> int:
    """Bytes that this process has in memory; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError, AttributeError):  # there is no such file but on Linux
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _known() -> dict[str, list[float]]:
    """Seconds of the last runs, by part, the newest last."""
    with suppress(OSError):
        return dict(json.loads(sealed.read(cache_folder() / "seconds", MARK, AGAIN) or "{}"))
    return {}
