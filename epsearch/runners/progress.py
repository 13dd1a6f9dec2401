"""Progress of a training for its listener: stage, members, the best so far, speed and time to go."""

import threading
import time
from collections.abc import Iterable
from dataclasses import replace

from epsearch.events import Began, Listener, Note, Progress, Stored, stops
from epsearch.failures.errors import Interrupted
from epsearch.loop.base import Loop
from epsearch.loop.estimates import Eta
from epsearch.loop.jobs import Job
from epsearch.runners.eta import Speed
from epsearch.runners.time_left import TimeLeft
from results.labels import count_text

PAUSE_SECONDS = 1.0  # between two checks of whether other studies have trained the members


class Monitor:
    """Counts steps from any thread, and sends events to the listener.

    The constructor sends `Began` and, unless the study is done, a first `Progress`. Only the thread that trains reads
    the loop.

    eta: planned duration of the run, used until there is a speed.
    starting: the stage before the first steps, in words; empty if that takes no time.
    times: the limits of its time; None for no limit.
    after: seconds from the last result to the end of the run, for the report.
    """

    def __init__(
        self,
        loop: Loop,
        listener: Listener,
        eta: Eta | None = None,
        starting: str = "",
        times: TimeLeft | None = None,
        after: float = 0.0,
    ) -> None:
        self._times, self._after = times or TimeLeft(), after
        self._listener, self._lock, self._started = listener, threading.Lock(), time.monotonic()
        self._speed, self._stopping, self._planned, self._starting = Speed(), False, eta, starting
        self._first: float | None = None  # time of the first steps
        self._last = 0.0  # time of the last steps or results
        self._notes: set[str] = set()
        self._stored = 0  # number of records that were sent
        self._under_way: dict[int, tuple[Job, int]] = {}  # by number: jobs of plug-in trainers, tasks reported so far
        study = loop.study
        loop.notify = self.note
        listener(Began(study.name, loop.heading(), study.device, study.runner, study))
        self._read(loop)
        if not loop.done:
            listener(self._now())

    @property
    def member_steps(self) -> int:
        """Member-steps trained in this run."""
        return self._speed.steps

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._started

    @property
    def beginning(self) -> float:
        """Seconds to the first steps."""
        return 0.0 if self._first is None else self._first - self._started

    @property
    def at_work(self) -> float:
        """Seconds from the first steps to the last results."""
        return 0.0 if self._first is None else self._last - self._first

    @property
    def seconds_left(self) -> float | None:
        """Seconds of training left at the present speed, with all possible rounds; None before there is one."""
        with self._lock:
            return self._seconds_to_come()[1]

    @property
    def stopping(self) -> bool:
        """True once the listener has asked to end the training, or its time is over."""
        self._stopping = self._stopping or self._times.over or stops(self._listener)
        return self._stopping

    def interruption(self) -> Interrupted:
        """Returns the error of a training that was stopped."""
        return self._times.end() if self._times.over else Interrupted()

    def jobs(self, loop: Loop) -> list[Job]:
        """Returns the jobs of the loop that have begun, and those for which there is time."""
        self._times.refused = ""
        loop.claims.begins = lambda job: self._times.begins(loop.job_work(job))
        return loop.ask()

    def pause(self, loop: Loop) -> None:
        """Waits a moment for members that other studies train.

        Raises Interrupted if the listener ends the training, TimeSpent where there is no time for any job.
        """
        if self._times.refused:
            raise self._times.end()
        if self.stopping:
            raise self.interruption()
        if others := loop.claims.held_by_others():
            text = ", ".join(f"{count_text(count, 'member')} of {study}" for study, count in others.items())
            self._listener(replace(self._now(), stage=f"waiting for {text}", eta=None))
        time.sleep(PAUSE_SECONDS)

    def steps(self, count: int, work: float, job: Job | None = None) -> None:
        """Adds steps and work of a cohort since its last report; called from any thread. job: its job, if known."""
        with self._lock:
            self._speed.add(self._mark(), count, work)
            if job is not None:
                self._times.add(job.number, work)
            if job is not None and job.limits is not None:
                before = self._under_way.get(job.number, (job, 0))[1]
                self._under_way[job.number] = job, before + count
            now = self._now()
        self._listener(now)  # outside the lock, as a listener may be slow

    def update(self, loop: Loop, ended: Iterable[int] = ()) -> None:
        """Reads the loop after new results; sends stored records and progress. ended: numbers of jobs."""
        with self._lock:
            self._mark()
            for number in ended:
                self._under_way.pop(number, None)
            self._read(loop)
            now = self._now()
        if records := loop.stored[self._stored :]:
            self._stored += len(records)
            self._listener(Stored(records))
        self._listener(now)

    def note(self, line: str) -> None:
        """Sends a message, once: all workers may have the same."""
        if line not in self._notes:
            self._notes.add(line)
            self._listener(Note(line))

    def _read(self, loop: Loop) -> None:
        """Stores the state of the loop, with the work reported by then, from which the ETA counts on."""
        self._stage, (self._known, self._wanted), self._headline = loop.stage, loop.stage_members(), loop.headline()
        self._tasks_each = loop.stage_tasks() if loop.study.foreign else None
        counts, self._work_then = loop.counts(), self._speed.work
        self._remaining = loop.work_of(counts)
        if counts.certified and counts.certified == counts.largest:  # all members are stored, some are trained again
            self._stage = f"{count_text(counts.certified, 'member')} once more, alone"

    def _mark(self) -> float:
        """Stores and returns the time of steps or results: now."""
        self._last = time.monotonic()
        self._first = self._last if self._first is None else self._first
        return self._last

    def _to_go(self) -> tuple[float, float, float] | None:
        """Returns likely, shortest and longest seconds to go, with the report; as planned until there is a speed.

        The likely time counts the usual number of later members, the others the fewest and the most.
        """
        planned, (fewest, usual, most) = self._planned, self._seconds_to_come()
        if fewest is None or usual is None or most is None:
            ends = None if planned is None else (planned.seconds, planned.low, planned.high)
            return None if ends is None else _each(ends, -self.seconds)
        return _each((usual, fewest, most), self._after)

    def _seconds_to_come(self) -> tuple[float | None, float | None, float | None]:
        """Returns the seconds of the fewest, usual and most members to come; None before there is any speed.

        That is the work left when the loop was last read, less the work since: a cohort counts there at its end only.
        """
        done = self._speed.work - self._work_then
        fewest, usual, most = (self._speed.seconds_for(work - done) for work in self._remaining)
        return fewest, usual, most

    def _tasks(self) -> tuple[int, int] | tuple[None, None]:
        """Returns the tasks of the stage, reported and of all members; None without a plug-in trainer."""
        if self._tasks_each is None:
            return None, None
        phase, each = self._tasks_each
        # Certificates, and members that are trained early, belong to other stages.
        here = [tasks for job, tasks in self._under_way.values() if job.phase == phase and job.certify is None]
        wanted = self._wanted * each
        return min(wanted, self._known * each + sum(here)), wanted

    def _now(self) -> Progress:
        speed, to_go, (tasks, tasks_wanted) = self._speed, self._to_go(), self._tasks()
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
            tasks=tasks,
            tasks_wanted=tasks_wanted,
        )


def _each(seconds: tuple[float, float, float], more: float) -> tuple[float, float, float]:
    likely, low, high = seconds
    return max(0.0, likely + more), max(0.0, low + more), max(0.0, high + more)
