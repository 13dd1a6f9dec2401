"""A listener that keeps what it is told, and asks to stop when it is told to."""

from epsearch.events import Silent


class Recorded(Silent):
    """stop_after: members that are stored before it wants the training to stop; None is never."""

    def __init__(self, stop_after=None):
        self.notes, self.warnings, self.images, self.plans, self.headings = [], [], [], [], []
        self.seen, self.stored = [], []
        self._stop_after = stop_after

    def note(self, line):
        self.notes.append(line)

    def warning(self, line):
        self.warnings.append(line)

    def decoded(self, done, total):
        self.images.append((done, total))

    def plan(self, make):
        self.plans.append(make())

    def begin(self, study, heading):
        self.headings.append((study.name, heading))

    def progress(self, now):
        self.seen.append(now)

    def records(self, stored):
        self.stored += stored

    def stop_wanted(self):
        return self._stop_after is not None and len(self.stored) >= self._stop_after
