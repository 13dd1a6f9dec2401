"""A listener that keeps events, and can ask to stop."""

from epsearch.events import Began, Decoded, Entered, Note, Planned, Progress, Stored, Tick, Warned


class Recorded:
    """stop_after: members that are stored before it asks the training to stop; None is never.

    Tests that act at an event override the method of that event.
    """

    def __init__(self, stop_after=None):
        self.notes, self.warnings, self.images, self.plans, self.headings = [], [], [], [], []
        self.seen, self.stored = [], []
        self._stop_after = stop_after

    def __call__(self, event):
        match event:
            case Tick():
                return self.stop_wanted()
            case Note() | Entered():
                return self.note(str(event))
            case Warned():
                return self.warning(event.line)
            case Decoded():
                self.images.append((event.done, event.total))
            case Planned():
                self.plan(event)
            case Began():
                self.begin(event)
                if event.study is None:  # read from a ledger
                    self.note(str(event))
            case Progress():
                return self.progress(event)
            case Stored():
                return self.records(event.records)

    def note(self, line):
        self.notes.append(line)

    def warning(self, line):
        self.warnings.append(line)

    def plan(self, event):
        self.plans.append(event.plan)

    def begin(self, event):
        self.headings.append((event.name, event.heading))

    def progress(self, now):
        self.seen.append(now)

    def records(self, stored):
        self.stored += stored

    def stop_wanted(self):
        return self._stop_after is not None and len(self.stored) >= self._stop_after
