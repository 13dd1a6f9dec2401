"""What a run takes besides its training: workers that start and end, and the report. Remembered from earlier runs."""

import json
from contextlib import suppress
from statistics import median

from epsearch.cache import cache_folder
from trainers.kept import sealed

REPORT = "report"
# Until something has been run here: seconds as measured on two cores of a server.
USUAL = {"tune": 13.0, "local": 0.5, REPORT: 2.5}
KEPT = 5  # runs that are remembered

MARK, AGAIN = "seconds of earlier runs", "plans begin with usual ones"


def expected(part: str) -> float:
    """Seconds that a part takes when the machine does nothing else: the median of the last runs here.

    part: a runner, whose workers start and end, or REPORT.
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


def _known() -> dict[str, list[float]]:
    """Seconds of the last runs, by part, the newest last."""
    with suppress(OSError):
        return dict(json.loads(sealed.read(cache_folder() / "seconds", MARK, AGAIN) or "{}"))
    return {}
