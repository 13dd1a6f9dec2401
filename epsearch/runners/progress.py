"""How far a study is while it runs: stage, members, the best so far, speed and time to go, told to a listener."""

import threading
import time
from dataclasses import replace

from epsearch.events import Began, Listener, Note, Progress, Stored, stops
from epsearch.failures.errors import Interrupted, TimeSpent
from epsearch.loop.ahead import Eta
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job
from epsearch.runners.eta import Speed
from results.labels import count_text, duration_text

PAUSE_SECONDS = 1.0  # between two looks at whether others have trained what is wanted


class Monitor:
    """Counts steps from any thread, and passes on to the listener what it and the loop have to say.

    Making one tells the listener of the study and its heading, and of a first progress where anything is to be trained.
    The loop itself is looked at only by the thread that trains.

    ahead: the time that the whole run takes, as planned, which is believed until there is a speed.
    starting: the stage until workers tell of steps, in words; "" where that takes no time.
    budget: seconds after which no other cohort is to begin; None for as many as it takes.
    after: seconds from the last result to the end of the run, which are those of the report.
    """

    def __init__(
        self,
        loop: Loop,
        listener: Listener,
        ahead: Eta | None = None,
        starting: str = "",
        budget: float | None = None,
        after: float = 0.0,
    ) -> None:
        self._budget, self._after = budget, after
        self._listener, self._lock, self._started = listener, threading.Lock(), time.monotonic()
        self._speed, self._stopping, self._ahead, self._starting = Speed(), False, ahead, starting
        self._first: float | None = None  # when workers first told of steps
        self._last = 0.0  # when they last told of anything
        self._noted: set[str] = set()
        self._stored = 0  # records that were passed on
        study = loop.study
        loop.notify = self.note
        listener(Began(study.name, loop.heading(), study.device, study.runner, study))
        self._look(loop)
        if not loop.done:
            listener(self._now())

    @property
    def member_steps(self) -> int:
        """Member-steps trained in this run."""
        return self._speed.steps

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._started

    @property
    def beginning(self) -> float:
        """Seconds to the first steps that workers told of."""
        return 0.0 if self._first is None else self._first - self._started

    @property
    def at_work(self) -> float:
        """Seconds from the first steps that workers told of to the last results."""
        return 0.0 if self._first is None else self._last - self._first

    @property
    def seconds_left(self) -> float | None:
        """Of the training, at the speed that was seen, with all rounds that may come; None before there is one."""
        with self._lock:
            return self._left()[1]

    @property
    def stopping(self) -> bool:
        """Whether the listener wants the training to stop; from then on it is to."""
        self._stopping = self._stopping or stops(self._listener)
        return self._stopping

    def jobs(self, loop: Loop) -> list[Job]:
        """What the loop has to train now; nothing that has not begun once the time budget is spent."""
        loop.claims.closing = self._budget is not None and self.seconds >= self._budget
        return loop.ask()

    def pause(self, loop: Loop) -> None:
        """Waits a moment, as there is nothing to train now although the loop is not done: other studies train it.

        Raises Interrupted where the listener wants to stop, and TimeSpent where nothing more is to begin.
        """
        if loop.claims.closing:
            assert self._budget is not None
            raise TimeSpent(f"stopped: its time budget of {duration_text(self._budget)} is spent")
        if self.stopping:
            raise Interrupted
        if others := loop.claims.elsewhere():
            text = ", ".join(f"{count_text(count, 'member')} of {study}" for study, count in others.items())
            self._listener(replace(self._now(), stage=f"waiting for {text}", eta=None))
        time.sleep(PAUSE_SECONDS)

    def steps(self, count: int, work: float) -> None:
        """Adds what a cohort has done since its last report, as `jobs.Progress` is told; called from any thread."""
        with self._lock:
            self._speed.add(self._heard(), count, work)
            now = self._now()
        self._listener(now)  # outside the lock, as a listener may take its time

    def update(self, loop: Loop) -> None:
        """Takes a fresh look at the study, after results came in, and tells what is new: records and progress."""
        with self._lock:
            self._heard()
            self._look(loop)
            now = self._now()
        if records := loop.stored[self._stored :]:
            self._stored += len(records)
            self._listener(Stored(records))
        self._listener(now)

    def note(self, line: str) -> None:
        """Passes a line to the listener, once: workers may all have the same."""
        if line not in self._noted:
            self._noted.add(line)
            self._listener(Note(line))

    def _look(self, loop: Loop) -> None:
        """Keeps what the loop knows, with the work that had been reported by then: the ETA counts on from there."""
        self._stage, (self._known, self._wanted), self._headline = loop.stage, loop.stage_members(), loop.headline()
        ahead, self._work_then = loop.outlook(), self._speed.work
        self._remaining = loop.work_of(ahead)
        if ahead.certified and ahead.certified == ahead.largest:  # all members are known, and some are trained again
            self._stage = f"{count_text(ahead.certified, 'member')} once more, alone"

    def _heard(self) -> float:
        """Keeps when workers told of something: now."""
        self._last = time.monotonic()
        self._first = self._last if self._first is None else self._first
        return self._last

    def _to_go(self) -> tuple[float, float, float] | None:
        """Seconds, likely, shortest and longest: as planned until there is a speed; then at that, with the report.

        Later rounds may have fewer members than a study may want: they are counted in all but the shortest.
        """
        ahead, (fewest, most) = self._ahead, self._left()
        if fewest is None or most is None:
            ends = None if ahead is None else (ahead.seconds, ahead.low, ahead.high)
            return None if ends is None else _each(ends, -self.seconds)
        return _each((most, fewest, most), self._after)

    def _left(self) -> tuple[float | None, float | None]:
        """Seconds of the fewest and the most members that are to come, at the present speed; None before there is one.

        What remained at the last look, less what was done since: the loop hears of a cohort at its end only.
        """
        done = self._speed.work - self._work_then
        fewest, most = (self._speed.seconds_for(work - done) for work in self._remaining)
        return fewest, most

    def _now(self) -> Progress:
        speed, to_go = self._speed, self._to_go()
        return Progress(
            stage=self._stage if self._first is not None else self._starting or self._stage,
            known=self._known,
            wanted=self._wanted,
            headline=self._headline,
            member_steps=speed.steps,
            speed=speed.steps_per_second(),
            eta=None if to_go is None else to_go[0],
            seconds=self.seconds,
            eta_low=None if to_go is None else to_go[1],
            eta_high=None if to_go is None else to_go[2],
        )


def _each(seconds: tuple[float, float, float], more: float) -> tuple[float, float, float]:
    likely, low, high = (max(0.0, one + more) for one in seconds)
    return likely, low, high
