"""Trains one learner with a plug-in trainer, in its own process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainers.cohort import LEARNING_CURVE_BATCHES, PROTOCOL_VERSION, CohortResult
from trainers.foreign.declaration import job, reference_of
from trainers.foreign.fork_servers import server_for
from trainers.foreign.inputs import StreamView
from trainers.foreign.measuring import Measuring, Refused
from trainers.foreign.messages import Malformed, Message, plain
from trainers.foreign.process import Limits, Observations, Process, Progress, environment
from trainers.foreign.saved_state import SavedState
from trainers.hyperparameters import Value

if TYPE_CHECKING:
    from trainers.streams.base import Examples, TaskStream


@dataclass(frozen=True)
class Request:
    """Which trainer, and with what; picklable."""

    reference: str
    """module:attribute."""
    beside: Path = Path()
    """The folder in which the module may lie."""
    source: Mapping[str, str] | None = None
    """Hashes of the files that it must be made of; None for whatever is there."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of distributions that it requires: those that must be installed."""
    device: str = "cpu"
    """"cpu" or "cuda"; on "cpu" it sees no GPU."""
    threads: int = 1
    """Of torch and of the libraries below NumPy."""
    limits: Limits = field(default_factory=Limits)
    """What its process may take."""
    networks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of networks that are values, module:attribute: hashes of the files that each must be made of."""
    copied: bool = True
    """True if its process may be a copy of one that has imported the trainer, see `fork_servers`."""


@dataclass(frozen=True)
class Run:
    """A learner on a stream."""

    values: Mapping[str, Value]
    """A number or a word for each hyperparameter."""
    seed: int
    """As of our own learners."""
    stream: "TaskStream"
    """All tasks that are trained."""
    transfer: bool = True
    """Whether what only FWT and LCA need is measured, as far as the trainer reports it."""
    data_seed: int | None = None
    """Of the data, where that is to be another one than the trainer's own; None for the same."""


def train(
    request: Request,
    run: Run,
    progress: Progress | None = None,
    folder: Path | None = None,
    watched: Observations | None = None,
    log: Path | None = None,
) -> CohortResult:
    """Trains the learner in a process of its own, of which nothing is left then.

    folder: a cache. A trainer with `save` and `load` goes on from there after the last task that it has reported, where
    its process, or this one, was killed; of a request that does not say its source nothing is kept.
    watched: is filled with what is seen on the way.
    log: a file to which its output is appended, of which the last MiB is kept; errors name it. Its folder exists.

    Accuracies of the untrained learner and of a task's first mini-batches are NaN where the trainer did not report
    them. The note says SELF_REPORTED where accuracies are the trainer's own word.

    Raises ForeignError, in one line, for whatever the trainer does that it may not: then nothing of it is a result.
    What `progress` raises ends the process, too.
    """
    reference_of(request.reference)
    view = StreamView(run.stream, run.seed if run.data_seed is None else run.data_seed)
    measuring = Measuring(view, bool(getattr(run.stream, "balanced", False)), run.transfer)
    # What another source has learned is nothing to go on from.
    saved_state = SavedState(None if request.source is None else folder, _common(request, run), request.device)
    what = f"trainer {request.reference!r}"
    variables = environment(request.device, request.threads)
    task = job("train", request.reference, request.beside, request.source)
    # A source that is not known may change between two learners, and threads of libraries cannot be copied.
    copied = request.copied and request.source is not None and request.threads == 1
    server, anew = server_for(task, request.device, variables) if copied else (None, "")
    with Process(what, variables, request.limits, progress, log, server) as process:
        state = process.folder / "state"
        resumed = saved_state.newest(state)
        if resumed is not None:
            measuring.resume(*resumed)
        facts, arrays = view.facts()
        message = task | {
            "versions": dict(request.versions),
            "networks": {name: dict(files) for name, files in request.networks.items()},
            "values": dict(run.values),
            "seed": run.seed,
            "threads": request.threads,
            "stream": facts,
            "curve": LEARNING_CURVE_BATCHES,
            "done": measuring.done,
            "state": str(state) if resumed else None,
            "resumable": saved_state.keeps,
        }
        process.send(message, *arrays)
        try:
            _Talk(process, measuring, view, saved_state, state, watched).go_on()
        finally:
            if watched is not None:
                watched.peak = process.peak
                watched.imported, watched.import_seconds = process.imported, process.import_seconds
                watched.anew, watched.copied = anew or process.anew, process.copied
    saved_state.delete()
    return measuring.result()


def _common(request: Request, run: Run) -> dict[str, Any]:
    """Returns the facts on which a run depends."""
    return {
        "version": PROTOCOL_VERSION,
        "trainer": request.reference,
        "source": dict(request.source or {}),
        "requires": dict(request.versions),
        **({"networks": {name: dict(files) for name, files in request.networks.items()}} if request.networks else {}),
        "threads": request.threads,
        "values": dict(run.values),
        "seed": run.seed,
        "data seed": run.data_seed,
        "stream": run.stream.describe(),
        "transfer": run.transfer,
    }


class _Talk:
    """Answers what a trainer's process asks, until it has ended."""

    def __init__(
        self,
        process: Process,
        measuring: Measuring,
        view: StreamView,
        saved_state: SavedState,
        state: Path,
        watched: Observations | None,
    ) -> None:
        self._process, self._measuring, self._view = process, measuring, view
        self._saved_state, self._state, self._watched = saved_state, state, watched
        self._over = False
        self._answers: dict[str, Callable[[Message], None]] = {
            "begun": self._begin,
            "train": self._train,
            "report": self._report,
            "test": self._test,
            "labels": self._labels,
            "reported": self._end_report,
            "saved": self._save,
            "refused": self._refuse,
            "raised": self._fail,
            "done": self._finish,
        }

    def go_on(self) -> None:
        """Returns at the end of a run that may be stored. Raises ForeignError for any other end."""
        while not self._over:
            message = self._process.receive()
            answer = self._answers.get(message.kind)
            try:
                if answer is None:
                    raise Malformed("it is of no kind that there is")
                answer(message)
            except Refused as error:
                if self._watched is not None and (ahead := self._measuring.read_ahead):
                    self._watched.ahead, self._watched.refusal = len(ahead), ahead[0]
                self._process.send({"kind": "refused", "line": str(error)})
            except Malformed as error:
                raise self._process.malformed_error(error) from error

    def _begin(self, message: Message) -> None:
        if self._watched is not None:
            self._watched.begun = self._process.seconds
            self._watched.capability = message.text("capability")
        self._process.where = self._measuring.where

    def _train(self, message: Message) -> None:
        task = message.whole("task")
        self._measuring.read(task)
        self._part(message, self._view.train, task)

    def _test(self, message: Message) -> None:
        task = message.whole("task")
        self._measuring.check_test(task)
        self._part(message, self._view.test, task, labelled=False)

    def _part(
        self, message: Message, get: Callable[[int, int], tuple[int, "Examples"]], task: int, labelled: bool = True
    ) -> None:
        first = message.whole("first")
        rows, part = get(task, max(first, 0))
        if first < 0 or not len(part.labels):
            raise Malformed(f"task {task} has no examples from {first} on")
        self._process.send({"kind": "part", "rows": rows}, *part[: 2 if labelled else 1])

    def _report(self, message: Message) -> None:
        task = message.whole("task")
        batches = None if message.header.get("batches") is None else message.whole("batches")
        tests, how = self._measuring.begin(task, batches), message.header.get("how")
        if how == "diverged" or (how == "accuracies" and not self._measuring.take_accuracies(message.array("float64"))):
            self._diverge()
            return
        self._process.send({"kind": "tests", "tests": tests})

    def _labels(self, message: Message) -> None:
        task, first = message.whole("task"), message.whole("first")
        self._measuring.score(task, first, np.asarray(message.array("int64")))
        self._process.send({"kind": "taken"})

    def _end_report(self, message: Message) -> None:
        of_task = self._measuring.end()
        self._process.where = self._measuring.where
        if of_task and self._watched is not None:
            self._watched.tasks.append(self._process.seconds)
            if self._watched.closely:
                self._process.weigh()  # while the process waits: it may be over before another look
        self._process.send({"kind": "taken", "save": str(self._state) if of_task else None})
        if of_task:
            self._process.advance(1)

    def _save(self, message: Message) -> None:
        self._saved_state.save(self._measuring.done, self._state, self._measuring.arrays())
        self._process.send({"kind": "taken"})

    def _refuse(self, message: Message) -> None:
        raise self._process.error(plain(message.text("line")))

    def _fail(self, message: Message) -> None:
        if message.header.get("floating") is True and self._measuring.lacks:
            self._diverge()
            return
        raise self._process.failure(f"failed {self._process.where} {plain(message.text('line'))}", output=False)

    def _finish(self, message: Message) -> None:
        if lacks := self._measuring.lacks:
            raise self._process.failure(f"returned after it had reported {lacks} tasks")
        self._over = True

    def _diverge(self) -> None:
        self._measuring.diverge()
        self._over = True
