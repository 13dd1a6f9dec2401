"""The loop of a study of protocols: questions -> trials -> choices -> the members that are judged."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from epsearch.loop.base import Loop
from epsearch.loop.estimates import MemberCounts
from epsearch.loop.jobs import Job, JobResult, Run
from epsearch.loop.walks import Walk
from epsearch.study.kinds import ProtocolStudy, Search
from results.labels import count_text
from results.ledger.record import RunRecord
from results.metrics import average_accuracy
from search_spaces.space import Value
from trainers.forks import Fork, line_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from results.ledger.store import Store


class ProtocolLoop(Loop):
    """Trains the trials of every protocol in every order of tasks, then what they have chosen, and every candidate.

    Protocols that see test sets of the evaluation come last, so that no other choice is made after these are known.
    For the arguments see `Loop`.

    walks      (name of a protocol, number of an order) -> its choices there
    """

    study: ProtocolStudy

    def __init__(self, study: ProtocolStudy, images: Mapping[str, Any], store: "Store") -> None:
        super().__init__(study, images, store)
        self.walks = {
            (name, order): Walk(study, name, order, self._record_of, self.stream)
            for name in study.protocols
            for order in range(study.orders)
        }
        self._in_full = {"eval", *(walk.phase for walk in self.walks.values() if walk.is_whole)}

    @property
    def done(self) -> bool:
        """True if every protocol has chosen, and everything that is judged is trained."""
        return all(walk.done for walk in self.walks.values()) and not self.missing()

    @property
    def stage(self) -> str:
        """The open choices, or the evaluation, in words."""
        waiting = [walk for walk in self._open() if walk.question]
        if not waiting:
            return "evaluation"
        tasks = {walk.question.task + 1 for walk in waiting if walk.question and walk.protocol.per_task}
        newest = f", task {min(tasks)}{f' to {max(tasks)}' * (len(tasks) > 1)}" if tasks else ""
        return f"choices{newest}"

    def headline(self) -> str:
        """Returns the number of protocols that have chosen in every order, in words."""
        chosen = sum(
            all(self.walks[name, order].chosen for order in range(self.study.orders)) for name in self.study.protocols
        )
        return f"{chosen}/{len(self.study.protocols)} protocols have chosen"

    def heading(self) -> str:
        """Returns the numbers of protocols, values, orders, seeds and tasks, in words."""
        study = self.study
        protocols, tasks = count_text(len(study.protocols), "protocol"), study.tasks - study.cv_tasks
        return (
            f"{protocols} × {study.tried} values of {study.space.names[0]} × {study.units_text(len(study.seeds))} on "
            f"{count_text(tasks, 'task')}{study.held_out}"
        )

    def counts(self) -> MemberCounts:
        """Returns an estimate: choices of later tasks count as if all candidates were tried."""
        now = len(self.missing())
        later = sum(walk.later() for walk in self.walks.values())
        judged = len({*map(self._key, self._constants())} - self.records.keys()) if self._open() else 0
        finals = sum(len(self.study.seeds) for walk in self.walks.values() if not walk.done)
        return MemberCounts(len(self.records), now, later, later, later, judged + finals, 0)

    def remaining(self) -> list[tuple[int, list[Run]]]:
        """Returns (number, examples) of the present stage, of later choices, and of the evaluation."""
        counts, missing = self.counts(), self.missing()
        constants = self._constants()[:1]
        later = next((walk.example() for walk in self.walks.values() if walk.later()), constants[0])
        return [(counts.now, missing or constants), (counts.most, [later]), (counts.final, constants)]

    def work_of(self, counts: MemberCounts) -> tuple[float, float, float]:
        """Returns the remaining work in FLOP, three times, as there is one estimate."""
        work = sum(map(self._work, self.missing()))
        work += sum(count * self._work(runs[0]) for count, runs in self.remaining()[1:])
        return work, work, work

    def scores(self) -> "NDArray[np.float64]":
        """Returns A_T of the candidates [K, R], unchanged throughout the evaluation; NaN if unknown.

        R: the orders of tasks, each the mean over seeds, or the seeds where there is one order.
        """
        import numpy as np

        rows = [[self._score_of(run) for run in self.constants(value)] for value in self.study.candidates]
        scores = np.array(rows, dtype=np.float64)
        orders = self.study.orders
        # As `units_of` has them: the orders of a seed stand together.
        return scores if orders == 1 else np.asarray(scores.reshape(len(rows), -1, orders).mean(axis=1))

    def constants(self, value: Value) -> list[Run]:
        """Returns the runs that judge a candidate which stays the same throughout, one a unit."""
        study = self.study
        return [Run("eval", study.learner((value,), unit.seed), unit.order) for unit in study.units]

    def finals(self, name: str) -> list[Run]:
        """Returns the runs that judge the choices of a protocol, one a unit; none in an order without a choice."""
        walks = [self.walks[name, order] for order in range(self.study.orders)]
        by_order = [{run.learner.seed: run for run in walk.finals()} for walk in walks]
        return [by_order[unit.order][unit.seed] for unit in self.study.units if by_order[unit.order]]

    def tell(self, results: Sequence[JobResult]) -> None:
        """Stores results, see `Loop`; at the end removes what was kept for later choices."""
        super().tell(results)
        if self.done:
            self._delete_kept(self._origins())

    def _continues(self, job: Job) -> bool:
        """Returns whether forks may go on with a job's members: those of a first part."""
        return job.prefix is not None

    def _open(self) -> list[Walk]:
        """Returns the protocols that are to choose now: those that see no test sets of the evaluation first."""
        sealed = [walk for walk in self.walks.values() if not walk.sees_tests and not walk.done]
        return sealed or [walk for walk in self.walks.values() if not walk.done]

    def _constants(self) -> list[Run]:
        return [run for value in self.study.candidates for run in self.constants(value)]

    def _stage_runs(self) -> list[Run]:
        trials = [self._trained_as(run) for walk in self._open() for run in walk.next_runs()]
        if any(not walk.sees_tests and not walk.done for walk in self.walks.values()):
            return trials
        return [*trials, *self._constants(), *(run for name in self.study.protocols for run in self.finals(name))]

    def _trained_as(self, run: Run) -> Run:
        """Returns the run that is trained for a trial: the whole run of a candidate, where that is wanted, too."""
        ends = run.prefix is not None and run.prefix[1] is None  # with a task, after which the whole run is tested, too
        value = run.learner.hyperparameters.get(self.study.space.names[0])
        constant = not isinstance(run.learner, Fork) and value in self.study.candidates
        return run._replace(prefix=None) if ends and constant and run.phase in self._in_full else run

    def _record_of(self, run: Run) -> RunRecord | None:
        """Returns the record that holds what a trial measures; None where there is none yet."""
        return self.records.get(self._key(self._trained_as(run)))

    def _origins(self) -> list[Run]:
        """Returns the runs from which others may have gone on: trials, what is judged, and what these are forks of."""
        runs = [run for walk in self.walks.values() for run in (*walk.tried, *walk.finals())]
        return list(
            dict.fromkeys(
                Run(run.phase, learner, run.order, prefix=(1, None)) for run in runs for learner in line_of(run.learner)
            )
        )

    def _advance(self) -> None:
        if self._jobs:  # the stage is open
            return
        moved = True
        while moved:
            self._read(self._stage_runs())
            moved = any([walk.advance() for walk in self._open()])
            self._members.cache_clear()  # another question may come with the same words and as many records

    def _score_of(self, run: Run) -> float:
        record = self.records.get(self._key(run))
        return float("nan") if record is None or record.status != "ok" else float(average_accuracy(record.accuracies))


def open_protocols(
    study: ProtocolStudy, images: Mapping[str, Any], store: "Store", earlier: Sequence[Search] = ()
) -> ProtocolLoop:
    """Returns the loop of a study of protocols, caught up with the ledger.

    earlier: as in `open_search`; empty, as these studies are not extended.
    """
    return ProtocolLoop(study, images, store).catch_up()
