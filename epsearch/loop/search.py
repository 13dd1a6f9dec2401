"""suggestions -> members -> cohorts -> records -> observations: the loop of a search, without saying who trains."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from epsearch.loop import certificates
from epsearch.loop.ahead import Outlook
from epsearch.loop.base import NOTHING, Known, Loop, Order
from epsearch.loop.content import content
from epsearch.loop.jobs import Job, JobResult, Run
from epsearch.loop.strategy import Strategist
from epsearch.study.kinds import Search
from results.inert import all_equal
from results.ledger.certificate import Certificate
from results.ledger.record import RunRecord
from results.ledger.store import Store
from results.points import point_text
from search_spaces.space import Point, Value
from search_spaces.strategies import STRATEGIES
from search_spaces.strategy import Best, Round


class SearchLoop(Loop):
    """Asks a strategy, finds in the ledger what is known, hands out the rest, stores and tells what came back.

    earlier: the loops of what the study was before it grew, oldest first.
    """

    study: Search

    def __init__(
        self,
        study: Search,
        images: Mapping[str, Any],
        store: Store,
        workers: int = 1,
        known: Known = NOTHING,
        earlier: Sequence["SearchLoop"] = (),
    ) -> None:
        super().__init__(study, images, store, workers, known)
        self.strategist = Strategist(study, self._record)
        self.strategy = self.strategist.strategy
        self.earlier = tuple(earlier)
        self.certificates: dict[str, Certificate] = dict(known.certificates)
        self._runs: dict[tuple[str, Point, int], Run] = {}  # they are asked for again and again
        self._ahead: dict[int, Job] = {}  # of the evaluation, open beside the search's
        self._ahead_begun = False  # they are opened once: what is out is not known yet, and would be opened again

    def catch_up(self) -> None:
        """The baseline first: it is evaluated whatever the search finds."""
        self._look_up(self._final([self.study.baseline]))
        self._advance()

    @property
    def done(self) -> bool:
        """Whether search, evaluation and certificates are complete."""
        return self.strategy.done and not self.missing() and not self._uncertified()

    @property
    def evaluating(self) -> bool:
        """Whether the search is over."""
        return self.strategy.done

    @property
    def stage(self) -> str:
        """The round that is open, or the evaluation, in words."""
        return "evaluation" if self.evaluating else self.strategist.stage

    @property
    def best(self) -> Best | None:
        """The best of this search, unless an earlier one of the study found a better one with the same seeds.

        A strategy that rules points out, however high their means are, decides alone where it searches now.
        """
        own = self.strategy.best
        if STRATEGIES[self.study.strategy].decides_alone and own is not None:
            return own
        found = [one.best for one in self.earlier if one.study.seeds == self.study.seeds]
        return max((best for best in (own, *found) if best is not None), key=lambda best: best.value, default=None)

    @property
    def inert(self) -> bool:
        """Whether all values that were tried score the same bit for bit, so that none is the best."""
        return all_equal(self.strategist.scores())

    def chosen(self) -> dict[str, Value] | None:
        """The best point so far, by the names of what is searched; None before there is one."""
        best = self.best
        return None if best is None else dict(zip(self.study.space.names, best.point, strict=True))

    def state(self) -> str:
        """Finished, or what is being trained, how far that is, and what is still to be certified."""
        alone = len(self._uncertified()) if self.evaluating else 0
        return super().state() + (f", {alone} to be trained once more, alone" if alone else "")

    def headline(self) -> str:
        """The best point so far and its A_T in percent, or that all are equal."""
        best = self.best
        if best is not None and self.inert:
            return f"no best: all values have A_T {100 * best.value:.2f} %, bit for bit"
        text = "–" if best is None else f"{self.text(best.point)} (A_T {100 * best.value:.2f} %)"
        return f"best {text}"

    def text(self, point: Point) -> str:
        """A point in words."""
        return point_text(self.study.space.names, point)

    def heading(self) -> str:
        """The strategy, its rounds, values and seeds, and the tasks of search and evaluation, in words."""
        study = self.study
        plural = {"repeat": "repeats", "batch": "batches"}[self.strategist.unit]
        what = "ε" if study.space.names == ("epsilon",) else f"values of {', '.join(study.space.names)}"
        seeds = f"{'up to ' if study.race else ''}{len(study.seeds)} seeds"
        return (
            f"{study.strategy}: {study.repeats} {plural} × {study.points} {what} × {seeds} on {study.cv_tasks} tasks, "
            f"then {study.tasks - study.cv_tasks} tasks"
        )

    def ask(self) -> list[Job]:
        """The open jobs of the current stage, then work done ahead.

        The baseline is evaluated whatever the search finds: a worker that waits for the end of a round trains that.
        """
        if self.done:
            return []
        if not self._ahead_begun:
            self._ahead_begun = True
            self._open(self._ahead, self._early())
        if not self._jobs:
            taken = [run for job in self._ahead.values() for run in job.runs]
            self._open(self._jobs, self._orders(taken, self.workers))
        return [*self._jobs.values(), *self._ahead.values()]

    def upcoming(self, workers: int) -> list[Job]:
        """The jobs that so many workers would be handed at the beginning; none is opened by looking at it."""
        early = self._early()
        orders = [*self._orders([one for runs, _ in early for one in runs], workers), *early]
        return [self._job(number, order, workers) for number, order in enumerate([] if self.done else orders)]

    def _orders(self, taken: Collection[Run], workers: int) -> list[Order]:
        """What the stage wants, but for what is trained ahead of it; certificates come with the evaluation."""
        missing = [one for one in self.missing() if not (self.evaluating and one in taken)]
        return [*self._cohorts(missing, workers), *(self._certifying() if self.evaluating else [])]

    def outlook(self) -> Outlook:
        """Members to come: an estimate, as later rounds may meet points they know, or not come at all."""
        study = self.study
        now, certified = len(self.missing()), min(study.certify, study.points * study.repeats * len(study.seeds))
        if self.evaluating:
            return Outlook(len(self.records), now, 0, 0, 0, len(self._uncertified()))
        unknown = len(self._unknown(self._final([study.baseline])))
        final = 0 if study.score_on == "eval" else len(study.final_seeds) + unknown
        return Outlook(len(self.records), now, *self.strategist.later_members(), final, certified)

    def remaining_work(self) -> float:
        """The most that is still to be done, in FLOP."""
        return self.work_of(self.outlook())[1]

    def work_of(self, ahead: Outlook) -> tuple[float, float]:
        """The fewest and the most of what is ahead, in FLOP."""
        one, final = (self._work(self._run(phase, self.study.baseline, 0)) for phase in (self.study.score_on, "eval"))
        fixed = sum(self._work(run) for run in self.missing()) + ahead.final * final + ahead.certified * one
        return fixed + ahead.least * one, fixed + ahead.most * one

    def search_records(self) -> tuple[RunRecord, ...]:
        """Every member of the search that has been trained, each once; those of earlier searches behind."""
        own = self.found(self._scored(self.strategist.given()))
        return tuple({record.key: record for record in (*own, *self._earlier_records())}.values())

    def evaluation_records(self) -> tuple[RunRecord, ...]:
        """The members of the evaluation that have been trained: the chosen point and the baseline."""
        found = self.found(self._final(self._evaluated())) if self.evaluating else ()
        return tuple({record.key: record for record in found}.values())  # two points may be one member

    def contents(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """What determines the evaluation of the chosen point, None before there is one, and of the baseline."""
        seed, best = self.study.final_seeds[0], self.best
        chosen, baseline = (
            None if point is None else content(self.study, self._images, self._run("eval", point, seed))
            for point in (None if best is None else best.point, self.study.baseline)
        )
        assert baseline is not None
        return chosen, baseline

    def rounds(self) -> tuple[Round, ...]:
        """Those of this search, after those of earlier ones that it does not go through again."""
        found: list[Round] = []
        for loop in reversed((*self.earlier, self)):
            known = {one.points for one in found}
            found = [*(one for one in loop.strategy.rounds if one.points not in known), *found]
        return tuple(replace(one, number=number) for number, one in enumerate(found, start=1))

    def _earlier_records(self) -> list[RunRecord]:
        return [record for loop in self.earlier for record in loop.search_records()]

    def _close(self, number: int) -> Job:
        return (self._jobs if number in self._jobs else self._ahead).pop(number)

    def _keep(self, job: Job, result: JobResult) -> None:
        """A certificate's member is compared with what the ledger has of it, and the differences are stored."""
        if job.certify is None:
            super()._keep(job, result)
            return
        (run,) = job.runs
        certificate = certificates.compare(self.records[self._key(run)], result)
        self.certificates[certificate.key] = certificate
        self._store.certify([certificate], self.summary())

    def _sample(self) -> list[str]:
        """Keys of the members of the search that are to be certified."""
        searched = self.found(self._scored(self.strategist.given()))
        return certificates.sample(self.study.name, searched, self.study.certify)

    def _uncertified(self) -> list[str]:
        return [key for key in self._sample() if key not in self.certificates]

    def _evaluated(self) -> list[Point]:
        best = self.best
        return [] if best is None else list(dict.fromkeys([best.point, self.study.baseline]))

    def _wanted(self) -> list[Run]:
        if self.evaluating:
            return self._final(self._evaluated())
        return self._scored(self.strategist.wanted())

    def _scored(self, shares: Mapping[Point, Sequence[int]]) -> list[Run]:
        return [self._run(self.study.score_on, point, seed) for point, seeds in shares.items() for seed in seeds]

    def _final(self, wanted: Iterable[Point]) -> list[Run]:
        return [self._run("eval", point, seed) for point in wanted for seed in self.study.final_seeds]

    def _run(self, phase: str, point: Point, seed: int) -> Run:
        known = self._runs.get((phase, point, seed))
        if known is None:
            known = self._runs[phase, point, seed] = Run(phase, self.study.learner(point, seed))
        return known

    def _record(self, point: Point, seed: int) -> RunRecord | None:
        return self.records.get(self._key(self._run(self.study.score_on, point, seed)))

    def some(self) -> list[Run]:
        """Members such as a search has."""
        return [self._run(self.study.score_on, self.study.baseline, self.study.seeds[0])]

    def final(self) -> list[Run]:
        """The members of the evaluation, as far as it is known what is evaluated."""
        return self._final(self._evaluated() or [self.study.baseline])

    def missing(self) -> list[Run]:
        """Members of the present stage that are not known yet."""
        return self._unknown(self._wanted())

    def _early(self) -> list[Order]:
        """Members of the evaluation to train before the search ends; a GPU would rather have all of them together."""
        search_is_evaluation = self.study.score_on == "eval"
        baseline = self._final([self.study.baseline])
        early = [] if search_is_evaluation or self.study.device != "cpu" else self._unknown(baseline)
        return [([trainee], None) for trainee in early]

    def _advance(self) -> None:
        while not self._jobs:
            self._gather()
            if self.evaluating:
                known = self._store.certificates(self._uncertified())
                self.certificates.update(known)
                self.damaged |= certificates.damaged(known)
            if self.evaluating or self.missing():
                return
            self.strategy.tell(self.strategist.observations())

    def _gather(self) -> None:
        """Asks the ledger for what is wanted, and for what is then wanted: a race goes on as far as it knows."""
        wanted: list[Run] = []
        while wanted != (now := self._wanted()) and not self._unknown(wanted):
            wanted = now
            self._look_up(wanted)

    def _certifying(self) -> list[Order]:
        """One job for each member of the sample: it is trained alone, without a shared first task."""
        runs = {self._key(one): one for one in self._scored(self.strategist.given())}
        return [([runs[key]], certificates.order(self.records[key], self.records, runs)) for key in self._uncertified()]


def open_search(
    study: Search, images: Mapping[str, Any], store: Store, earlier: Sequence[Search] = (), workers: int = 1
) -> SearchLoop:
    """The loop of a search, as far as the ledger knows it.

    earlier: what the study was before it grew; what these searches have found counts as found.
    """
    before = [open_search(one, images, store) for one in earlier]
    records = {record.key: record for loop in before for record in loop.search_records()}
    damaged = {key: why for loop in before for key, why in certificates.of_members(loop.damaged).items()}
    loop = SearchLoop(study, images, store, workers, Known(records, damaged=damaged), before)
    loop.catch_up()
    return loop
