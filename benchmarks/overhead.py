"""A process of benchmarks/cluster.py: a search of the digits by Ray Tune that says when it reached what."""

import itertools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from epsearch.events import Began, Event, Progress, Stored


class Heard:
    """A listener that keeps records, and says when Ray is waited for and when training begins."""

    def __init__(self, reached: Callable[[str], None]) -> None:
        self.stored: list[Any] = []
        self.last = 0.0  # when the last were stored
        self._reached = reached

    def __call__(self, event: Event) -> None:
        match event:
            case Began():
                self._reached("Ray started, Tune imported")
            case Progress() if event.member_steps:
                self._reached("training")
            case Stored():
                self.stored += event.records
                self.last = time.time()


def timed(call: Callable[..., Any], seconds: dict[str, float]) -> Callable[..., Any]:
    """The same, which keeps its seconds under its name."""

    def measured(*arguments: Any, **named: Any) -> Any:
        before = time.time()
        try:
            return call(*arguments, **named)
        finally:
            seconds[call.__name__] = time.time() - before

    return measured


def child(folder: str, begun: float) -> None:
    """Runs that search and prints, as JSON, when what was reached; begun: when the process was started."""
    marks = [("Python, epsearch imported", begun)]

    def reached(part: str) -> None:
        if part not in dict(marks):
            marks.append((part, time.time()))

    from epsearch import build, run
    from epsearch.runners.on_ray import private, watchdog
    from epsearch.study.kinds import Search

    alone: dict[str, float] = {}
    private.PrivateRay.start = timed(private.PrivateRay.start, alone)
    private.PrivateRay.end = timed(private.PrivateRay.end, alone)
    watching = watchdog.watch_ray

    def watched(*arguments: Any, **named: Any) -> Any:
        reached("workers started, to their first report of steps")
        return watching(*arguments, **named)

    watchdog.watch_ray = watched
    listener = Heard(reached)
    reached("data, ledger, arithmetic")
    options = {"name": "one", "out": folder, "repeats": 2, "certify": 0, "workers": 2, "runner": "tune"}
    run(build(Search, options), listener)
    ended = time.time()
    marks += [("Ray ended", listener.last), ("report", listener.last + alone["end"])]
    marks.append(("end of the process", ended))
    parts = {name: after - at for (name, at), (_, after) in itertools.pairwise(marks)}
    parts["of it Ray itself, beside the import of Tune"] = alone["start"]
    together: dict[str, list[Any]] = {}
    for record in listener.stored:
        together.setdefault(record.cohort, []).append(record)
    figures = {
        "begun": begun,
        "ended": ended,
        "parts": parts,
        "compute": sum(record.seconds for record in listener.stored),
        "members": len(listener.stored),
        "cohorts": [
            {"phase": one[0].phase, "members": len(one), "member_seconds": one[0].seconds} for one in together.values()
        ],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    child(sys.argv[1], float(sys.argv[2]))
