"""How far a study is while it runs: stage, members, the best so far, speed and time to go, told to a listener."""

import threading
import time

from epsearch.events import Events, Progress
from epsearch.loop.base import Loop
from epsearch.runners.eta import Speed


class Monitor:
    """Counts steps from any thread, and passes on to the listener what it and the loop have to say.

    Making one tells the listener of the study and its heading, and of a first progress where anything is to be trained.
    The loop itself is looked at only by the thread that trains.
    """

    def __init__(self, loop: Loop, events: Events) -> None:
        self._events, self._lock, self._started = events, threading.Lock(), time.monotonic()
        self._speed, self._stopping = Speed(), False
        self._told: set[str] = set()
        self._stored = 0  # records that were passed on
        events.begin(loop.study, loop.heading())
        self._look(loop)
        if not loop.done:
            events.progress(self._now())

    @property
    def member_steps(self) -> int:
        """Member-steps trained in this run."""
        return self._speed.steps

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._started

    @property
    def stopping(self) -> bool:
        """Whether the listener wants the training to stop; from then on it is to."""
        self._stopping = self._stopping or self._events.stop_wanted()
        return self._stopping

    def steps(self, count: int, weight: float = 1.0) -> None:
        """Adds member-steps, and what one of them takes beside other jobs' steps; called from any thread.

        count: SGD steps of all members of a cohort since its last report. weight: FLOP of one of them (`Job.weight`).
        """
        with self._lock:
            self._speed.add(time.monotonic(), count, count * weight)
            now = self._now()
        self._events.progress(now)  # outside the lock, as a listener may take its time

    def update(self, loop: Loop) -> None:
        """Takes a fresh look at the study, after results came in, and tells what is new: notes, records, progress."""
        with self._lock:
            self._look(loop)
            now = self._now()
        for note in dict.fromkeys(loop.notes):  # workers may all say the same
            if note not in self._told:
                self._told.add(note)
                self._events.note(note)
        if records := loop.stored[self._stored :]:
            self._stored += len(records)
            self._events.records(records)
        self._events.progress(now)

    def _look(self, loop: Loop) -> None:
        """Keeps what the loop knows, with the work that had been reported by then: the ETA counts on from there."""
        self._stage, (self._known, self._wanted), self._headline = loop.stage, loop.stage_members(), loop.headline()
        self._remaining, self._work_then = loop.remaining_work(), self._speed.work

    def _now(self) -> Progress:
        speed = self._speed
        return Progress(
            stage=self._stage,
            known=self._known,
            wanted=self._wanted,
            headline=self._headline,
            member_steps=speed.steps,
            speed=speed.steps_per_second(),
            # What remained at the last look, less what was done since: the loop hears of a cohort at its end only.
            eta=speed.seconds_for(self._remaining - (speed.work - self._work_then)),
            seconds=self.seconds,
        )
