"""suggestions -> members -> cohorts -> records -> observations: the loop of a search, without saying who trains."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from epsearch.loop import certificates, learners
from epsearch.loop.base import Loop
from epsearch.loop.content import content
from epsearch.loop.jobs import Job, JobResult, Trainee
from epsearch.loop.scoring import Outlook
from epsearch.loop.strategy import Search
from epsearch.study.kinds import Study
from results.inert import all_equal
from results.ledger.certificate import Certificate
from results.ledger.record import RunRecord
from results.ledger.store import Store
from results.points import setting_text
from search_spaces.space import Point, Value
from search_spaces.strategy import Best, Round


class StudyLoop(Loop):
    """Asks a strategy, finds in the ledger what is known, hands out the rest, stores and tells what came back.

    earlier: what the study was before it grew; what these searches have found counts as found.
    """

    study: Study

    def __init__(
        self,
        study: Study,
        images: Mapping[str, Any],
        store: Store,
        workers: int = 1,
        earlier: Sequence[Study] = (),
    ) -> None:
        super().__init__(study, images, store, workers)
        self.search = Search(study, self._record)
        self.strategy = self.search.strategy
        self.earlier = tuple(StudyLoop(one, images, store) for one in earlier)
        for loop in self.earlier:
            self.records.update((record.key, record) for record in loop.search_records())
            self.damaged |= certificates.of_members(loop.damaged)
        self.reused = len(self.records)
        self.certificates: dict[str, Certificate] = {}
        self._names, self._config = study.space.names, study.train_config()
        self._trainees: dict[tuple[str, Point, int], Trainee] = {}  # they are asked for again and again
        self._ahead: dict[int, Job] = {}
        self._ahead_begun = False
        self._look_up(self._final([study.baseline]))
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
        return "evaluation" if self.evaluating else self.search.stage

    @property
    def best(self) -> Best | None:
        """The best of this search, unless an earlier one of the study found a better one with the same seeds.

        interval-ci rules points out however high their means are: where it searches now, it alone decides.
        """
        own = self.strategy.best
        if self.study.strategy == "interval-ci" and own is not None:
            return own
        found = [one.best for one in self.earlier if one.study.seeds == self.study.seeds]
        return max((best for best in (own, *found) if best is not None), key=lambda best: best.value, default=None)

    @property
    def inert(self) -> bool:
        """Whether all values that were tried score the same bit for bit, so that none is the best."""
        return all_equal(self.search.scores())

    def choice(self) -> tuple[dict[str, Value] | None, float | None, bool]:
        best = self.best
        if best is None:
            return None, None, self.inert
        return learners.named(self._names, best.point), best.value, self.inert

    def state(self) -> str:
        alone = len(self._uncertified()) if self.evaluating else 0
        return super().state() + (f", {alone} to be trained once more, alone" if alone else "")

    def headline(self) -> str:
        best = self.best
        if best is not None and self.inert:
            return f"no best: all values have A_T {100 * best.value:.2f} %, bit for bit"
        text = "–" if best is None else f"{self.text(best.point)} (A_T {100 * best.value:.2f} %)"
        return f"best {text}"

    def text(self, point: Point) -> str:
        """A point in words."""
        return setting_text(self.study.space.names, point)

    def heading(self) -> str:
        study = self.study
        plural = {"repeat": "repeats", "batch": "batches"}[self.search.unit]
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
            self._open(self._ahead, [[trainee] for trainee in self._early()])
        if not self._jobs:
            taken = {trainee for job in self._ahead.values() for trainee in job.trainees}
            missing = [one for one in self.missing() if not (self.evaluating and one in taken)]
            self._open(self._jobs, self._cohorts(missing))
            if self.evaluating:
                self._open_certificates()
        return [*self._jobs.values(), *self._ahead.values()]

    def outlook(self) -> Outlook:
        """Members to come: an estimate, as later rounds may meet points they know, or not come at all."""
        study = self.study
        now, certified = len(self.missing()), min(study.certify, study.points * study.repeats * len(study.seeds))
        if self.evaluating:
            return Outlook(len(self.records), now, 0, 0, 0, len(self._uncertified()))
        unknown = len(self._unknown(self._final([study.baseline])))
        final = 0 if study.score_on == "eval" else len(study.final_seeds) + unknown
        return Outlook(len(self.records), now, *self.search.later_members(), final, certified)

    def remaining_work(self) -> float:
        return self.work_of(self.outlook())[1]

    def work_of(self, ahead: Outlook) -> tuple[float, float]:
        """The fewest and the most of what is ahead, in steps times their weight."""
        one, final = (
            self._work(self._trainee(phase, self.study.baseline, 0)) for phase in (self.study.score_on, "eval")
        )
        fixed = sum(self._work(trainee) for trainee in self.missing()) + ahead.final * final + ahead.certified * one
        return fixed + ahead.least * one, fixed + ahead.most * one

    def search_records(self) -> tuple[RunRecord, ...]:
        """Every member of the search that has been trained, each once; those of earlier searches behind."""
        own = self.found(self._scored(self.search.given()))
        return tuple({record.key: record for record in (*own, *self._earlier_records())}.values())

    def evaluation_records(self) -> tuple[RunRecord, ...]:
        """The members of the evaluation that have been trained: the chosen point and the baseline."""
        found = self.found(self._final(self._evaluated())) if self.evaluating else ()
        return tuple({record.key: record for record in found}.values())  # two points may be one member

    def contents(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """What determines the evaluation of the chosen point, None before there is one, and of the baseline."""
        seed, best = self.study.final_seeds[0], self.best
        chosen, baseline = (
            None if point is None else content(self.study, self._images, self._trainee("eval", point, seed))
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
        (trainee,) = job.trainees
        certificate = certificates.compare(self.records[self._key(trainee)], result)
        self.certificates[certificate.key] = certificate
        self._store.certify([certificate], self.summary())

    def _sample(self) -> list[str]:
        """Keys of the members of the search that are to be certified."""
        return certificates.sample(self.study.name, self.found(self._scored(self.search.given())), self.study.certify)

    def _uncertified(self) -> list[str]:
        return [key for key in self._sample() if key not in self.certificates]

    def _evaluated(self) -> list[Point]:
        best = self.best
        return [] if best is None else list(dict.fromkeys([best.point, self.study.baseline]))

    def _wanted(self) -> list[Trainee]:
        if self.evaluating:
            return self._final(self._evaluated())
        return self._scored(self.search.wanted())

    def _scored(self, shares: Mapping[Point, Sequence[int]]) -> list[Trainee]:
        return [self._trainee(self.study.score_on, point, seed) for point, seeds in shares.items() for seed in seeds]

    def _final(self, wanted: Iterable[Point]) -> list[Trainee]:
        return [self._trainee("eval", point, seed) for point in wanted for seed in self.study.final_seeds]

    def _trainee(self, phase: str, point: Point, seed: int) -> Trainee:
        known = self._trainees.get((phase, point, seed))
        if known is None:
            study = self.study
            values = learners.named(self._names, point)
            known = learners.trainee(phase, study.method, self._config, study.member(seed), values)
            self._trainees[phase, point, seed] = known
        return known

    def _record(self, point: Point, seed: int) -> RunRecord | None:
        return self.records.get(self._key(self._trainee(self.study.score_on, point, seed)))

    def some(self) -> list[Trainee]:
        """Members such as a search has."""
        return [self._trainee(self.study.score_on, self.study.baseline, self.study.seeds[0])]

    def final(self) -> list[Trainee]:
        """The members of the evaluation, as far as it is known what is evaluated."""
        return self._final(self._evaluated() or [self.study.baseline])

    def missing(self) -> list[Trainee]:
        """Members of the present stage that are not known yet."""
        return self._unknown(self._wanted())

    def _early(self) -> list[Trainee]:
        """Members of the evaluation to train before the search ends; a GPU would rather have all of them together."""
        search_is_evaluation = self.study.score_on == "eval"
        baseline = self._final([self.study.baseline])
        return [] if search_is_evaluation or self.study.device != "cpu" else self._unknown(baseline)

    def _advance(self) -> None:
        while not self._jobs:
            self._gather()
            if self.evaluating:
                known = self._store.certificates(self._uncertified())
                self.certificates.update(known)
                self.damaged |= certificates.damaged(known)
            if self.evaluating or self.missing():
                return
            self.strategy.tell(self.search.observations())

    def _gather(self) -> None:
        """Asks the ledger for what is wanted, and for what is then wanted: a race goes on as far as it knows."""
        wanted: list[Trainee] = []
        while wanted != (now := self._wanted()) and not self._unknown(wanted):
            wanted = now
            self._look_up(wanted)

    def _open_certificates(self) -> None:
        """One job for each member of the sample: it is trained alone, without a shared first task."""
        trainees = {self._key(one): one for one in self._scored(self.search.given())}
        for key in self._uncertified():
            self._open(self._jobs, [[trainees[key]]], certificates.order(self.records[key], self.records, trainees))
