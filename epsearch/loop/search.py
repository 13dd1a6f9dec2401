"""The loop of a search: suggestions -> members -> cohorts -> records -> observations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from statistics import stdev
from typing import TYPE_CHECKING, Any, Self

from epsearch.loop import certificates
from epsearch.loop.base import Loop
from epsearch.loop.cohorts import CohortRuns
from epsearch.loop.content import content
from epsearch.loop.estimates import MemberCounts
from epsearch.loop.jobs import Certify, Job, JobResult, Run
from epsearch.loop.strategy_driver.driver import StrategyDriver
from epsearch.loop.strategy_driver.prediction import search_stages
from epsearch.loop.strategy_driver.usual import usual_points
from epsearch.study.description import CURVE
from epsearch.study.kinds import Search
from results.inert import all_equal
from results.labels import count_text
from results.ledger.record import RunRecord, Unit
from results.objectives import of_record
from results.points import group, point_text
from results.search import SearchStage
from search_spaces.space import Point, Value
from search_spaces.strategies import strategy
from search_spaces.strategy import Best, Round

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from results.ledger.store import Store


PERTURBED = Certify((), "", perturbed=True)


class SearchLoop(Loop):
    """Trains the suggestions of a strategy, and tells it the scores.

    A stage is a round of the strategy, trained with the seeds of the search on the stream that scores (`scored_on`); of
    a search along tasks, then, a further task for values that may be best at as many tasks as the evaluation has;
    the last one is the evaluation of the chosen point and the baseline, with the seeds of the evaluation, the reference
    rows, with those of the search on the stream that scores, and the certificates.

    study, images, store   see `Loop`
    earlier                the loops of earlier versions of the study, oldest first, whose records count, too
    """

    study: Search

    def __init__(
        self,
        study: Search,
        images: Mapping[str, Any],
        store: "Store",
        earlier: Sequence["SearchLoop"] = (),
    ) -> None:
        super().__init__(study, images, store)
        self.earlier = tuple(earlier)
        for loop in self.earlier:
            self.records |= {record.key: record for record in loop.search_records()}
            # Without damaged certificates: members of earlier searches are not certified again.
            self.damaged |= {k: why for k, why in loop.damaged.items() if not k.endswith(certificates.CERTIFICATE)}
        self.reused = len(self.records)
        before = {point: seeds for loop in self.earlier for point, seeds in loop.driver.assigned_seeds().items()}
        self.driver: StrategyDriver = StrategyDriver(study, self._record, before)
        self.strategy = self.driver.strategy
        self._scores = lru_cache(1)(lambda stored, stage: self.driver.scores())  # the same while these two are
        self._stages = lru_cache(1)(self._find_stages)  # the same while its arguments are
        self._keeps = study.further_tasks > 0  # whether members are kept, to go on with further tasks
        self._phase = study.scored_on
        self._made = cache(self._make_run)  # used often, and a learner checks its values

    def catch_up(self) -> Self:
        """Reads the baseline and the reference rows first, which are always trained, then advances."""
        self._read([*self._evaluation_runs(self.study.compared), *self._references])
        return super().catch_up()

    @property
    def done(self) -> bool:
        """True if search, evaluation and certificates are complete."""
        return self.evaluating and not self.missing() and not self._missing_certificates()

    @property
    def evaluating(self) -> bool:
        """True if the search is over."""
        return self.strategy.done and not self._growing

    @property
    def stages(self) -> tuple[SearchStage, ...]:
        """The finished stages of a search along tasks; () for others."""
        return self._along_tasks()[0]

    @property
    def stage(self) -> str:
        """The open round, the further task, or the evaluation, in words."""
        if self.evaluating:
            return "evaluation"
        if not self.strategy.done:
            return self.driver.stage
        first = self.study.cv_tasks
        return f"task {first + len(self.stages)} of at most {first + self.study.further_tasks}"

    @property
    def best(self) -> Best | None:
        """The best point of this search, or of an earlier one with the same seeds.

        If a curve made the choice, it covers all versions of the study. If the strategy may exclude points with high
        means, only the present search counts. Its value is a mean that was measured, also where predictions choose.
        """
        own, choice = self.strategy.best, self.driver.choice
        if self.study.extrapolates and own is not None:
            point = self.stages[-1].choice if self.stages else own.point
            mean = self.mean_of(point)
            return None if mean is None else replace(own, point=point, value=mean)
        named = choice is not None and own is not None and own.point == choice.point
        if named or (strategy(self.study.strategy).decides_alone and own is not None):
            return own
        earlier = [loop.best for loop in self.earlier if loop.study.units == self.study.units]
        return max((best for best in (own, *earlier) if best is not None), key=lambda best: best.value, default=None)

    @property
    def inert(self) -> bool:
        """True if all values have equal scores, bit for bit."""
        return all_equal(self.scores())

    @property
    def seen_tasks(self) -> int | None:
        """How many first tasks of the evaluation score points; None for all, or for tasks of the search."""
        prefix = self._run(self.study.example, self.study.units[0]).prefix
        return None if prefix is None or self._phase == "cv" else prefix[0]

    def tests(self) -> list[tuple[list[Run], list[Run]]]:
        """Returns the runs whose scores chose, and those that judge, of every order of tasks."""
        both = self._scoring_runs(self.driver.assigned_seeds()), self._evaluation_runs(self._evaluation_points())
        return [
            ([run for run in both[0] if run.order == order], [run for run in both[1] if run.order == order])
            for order in range(self.study.orders)
        ]

    def choice(self) -> dict[str, Value] | None:
        """Returns the best point so far, by names of hyperparameters; None if there is none."""
        best = self.best
        return None if best is None else dict(zip(self.study.space.names, best.point, strict=True))

    def state(self) -> str:
        """Returns the state, with the number of missing certificates."""
        alone = len(self._missing_certificates()) if self.evaluating else 0
        return super().state() + (f", {alone} to be trained once more, alone" if alone else "")

    def headline(self) -> str:
        """Returns the highest mean so far with its standard deviation over seeds, in percent.

        Or the value that the curve names; or that all are equal; "" before the first score.

        Each by its rule: the mean of a named value is seldom the highest of all, and so is not set beside those.
        """
        best, objective, names = self.best, self.study.maximised, self.study.space.names
        if best is not None and self.inert:
            return f"no best: all values have {objective} {100 * best.value:.2f} %, bit for bit"
        if self.stages:
            evaluated, last = count_text(self.study.tasks - self.study.cv_tasks, "task"), self.stages[-1]
            open_still = "" if last.resolved else f", {count_text(len(last.rivals), 'other')} still open"
            return f"{point_text(names, last.choice)} predicted best for {evaluated} from {last.tasks}{open_still}"
        choice = self.driver.choice
        if choice is not None and choice.point is not None:
            return f"the curve names {point_text(names, choice.point)}"
        if best is None:
            return ""
        if self.study.extrapolates and (highest := self.strategy.best) is not None:
            return (
                f"highest so far {point_text(names, highest.point)} (predicted {objective} {100 * highest.value:.2f} %)"
            )
        return f"highest mean {point_text(names, best.point)} ({objective} {self._with_spread(best)} %)"

    def _with_spread(self, best: Best) -> str:
        """Returns the mean of a point ± the standard deviation over its seeds, in percent."""
        seeds = self.driver.assigned_seeds().get(best.point, ())
        stored = (self._record(best.point, seed) for seed in seeds)
        scores = [of_record(self.study.objective, record) for record in stored if record is not None]
        spread = f" ± {100 * stdev(scores):.2f}" if len(scores) > 1 else ""
        return f"{100 * best.value:.2f}{spread}"

    def heading(self) -> str:
        """Returns strategy, rounds, values, seeds and tasks, in words."""
        study = self.study
        values = "ε" if study.space.names == ("epsilon",) else f"values of {', '.join(study.space.names)}"
        rounds, seeds = count_text(study.repeats, self.driver.unit), study.units_text(len(study.search_seeds))
        return (
            f"{study.strategy}: {rounds} × {study.points} {values} × {'up to ' * study.race}{seeds} on "
            f"{self._scored_tasks()}, then {count_text(study.tasks - study.cv_tasks, 'task')}"
            f"{study.held_out}{'; beside ' * bool(study.reference_rows)}{' and '.join(study.reference_rows)}"
        )

    def _scored_tasks(self) -> str:
        """Returns the tasks that score points, in words."""
        study = self.study
        if study.view.share < 1:
            return f"{100 * study.view.share:g} % of the steps"
        tasks = count_text(study.first_tasks or len(study.stream_tasks(self._phase)), "task")
        return tasks + (f" or up to {study.cv_tasks + study.further_tasks}" if study.further_tasks else "")

    def _stage_cohorts(self, workers: int) -> list[CohortRuns]:
        """Returns the cohorts of the stage without early jobs; certificates come with the evaluation."""
        early = {run for job in self._early_jobs.values() for run in job.runs} if self.evaluating else set()
        missing = [run for run in self.missing() if run not in early]
        return [*self._cohorts(missing, workers), *(self._certifying() if self.evaluating else [])]

    def counts(self) -> MemberCounts:
        """Returns an estimate, as later rounds may repeat points, or not happen.

        It assumes that the chosen point is not the baseline, which may have been trained early. Where the search scores
        on the evaluation stream, there is no evaluation left.
        """
        study = self.study
        now, most = len(self.missing()), study.points * study.repeats * len(study.units)
        certified = min(study.certify, most) + min(study.moved_starts, most)
        if self.evaluating:
            return MemberCounts(len(self.records), now, 0, 0, 0, 0, len(self._missing_certificates()))
        baseline = self._unstored_runs(self._evaluation_runs(study.compared))
        final = 0 if study.scores_judge else len(study.final_units) + len(baseline)
        final += len(self._unstored_runs(self._references))
        least, later = (0, 0) if self.strategy.done else self.driver.later_members()
        usual = self._usual(now, least, later)
        return MemberCounts(len(self.records), now, least, usual, later + self._further(), final, certified)

    def _further(self) -> int:
        """Returns the most members that later stages may train on further tasks."""
        units, most = len(self.study.units), self.study.further_tasks
        if self.strategy.done:
            return len(self._growing) * units * (most - len(self.stages))
        named = int(self.study.choose == CURVE)
        return (len(self.driver.assigned_seeds()) + self.driver.later() + named) * units * most

    def usual_points(self, *strategies: str) -> tuple[int | None, ...]:
        """Returns the usual number of points of a search by each strategy ("": its own).

        The whole budget of one that never ends early; None with one seed and for choices, which have no curve.
        """
        study = self.study
        if len(study.units) < 2 or any(parameter.choices for parameter in study.space.parameters):
            return (None,) * len(strategies)
        size = study.space, study.points, study.repeats, len(study.units)
        usual = (usual_points(name or study.strategy, *size) for name in strategies)
        return tuple(study.points * study.repeats if points is None else points for points in usual)

    def _usual(self, now: int, least: int, most: int) -> int:
        """Returns the usual number of members of later rounds; in a race, as if all points had all seeds."""
        study = self.study
        (points,) = self.usual_points("")
        if points is None:
            return most
        tried = len(self.driver.assigned_seeds())
        named = len(study.search_units) * (study.choose == CURVE and len(study.units) > 1)
        return min(max((points - tried) * len(study.units) + named, least), most)

    def remaining(self) -> list[tuple[int, list[Run]]]:
        """Returns (number, examples) for the search, including certificates, for the evaluation, and reference rows."""
        counts, references = self.counts(), self._references_left()
        missing = [run for run in self.missing() if run not in references]
        example = [self._run(self.study.example, self.study.units[0])]
        by_row = ([run for run in runs if run in references] for runs in self._by_row.values())
        rows = [(len(runs), runs) for runs in by_row]  # apart, as each costs otherwise
        if self.evaluating:
            return [(counts.certified, example), (len(missing), missing), *rows]
        final = self._evaluation_runs(self._evaluation_points() or [self.study.example])
        further = self._further()
        searched = counts.now + counts.most - further + counts.certified
        along = [(further, [self._longest])] if further else []
        return [(searched, missing or example), *along, (counts.final - len(references), final), *rows]

    @property
    def _longest(self) -> Run:
        """An example of a member on as many further tasks as there may be."""
        study = self.study
        return self._run(study.example, study.units[0], study.further_tasks)

    def mean_of(self, point: Point) -> float | None:
        """Returns the mean score of a point on the tasks of the search; None where a member is missing or diverged."""
        stored = [self._record(point, unit) for unit in self.study.units]
        scores = [
            of_record(self.study.objective, record) for record in stored if record is not None and record.status == "ok"
        ]
        return sum(scores) / len(scores) if len(scores) == len(stored) else None

    def scores(self) -> "NDArray[np.float64]":
        """Returns the scores of all points, on the stream that scores."""
        return self._scores(len(self.records), self.stage)

    def work_of(self, counts: MemberCounts) -> tuple[float, float, float]:
        """Returns the smallest, the usual and the largest remaining work, in FLOP.

        Points of later rounds are unknown, and count as the example of the study.
        """
        study = self.study
        example = self._work(self._run(study.example, study.units[0]))
        final = self._work(self._evaluation_run(study.example, study.units[0]))
        runs = {*self.missing(), *(references := self._references_left())}
        points = 0 if self.evaluating else counts.final - len(references)
        fixed = sum(self._work(run) for run in runs) + points * final + counts.certified * example
        further = 0 if self.evaluating else self._further()
        least, usual, most = (fixed + later * example for later in (counts.least, counts.usual, counts.most - further))
        return least, usual, most + (further * self._work(self._longest) if further else 0.0)

    def search_records(self) -> tuple[RunRecord, ...]:
        """Returns the stored members of the search, each once; earlier searches come last."""
        records = [*self._own_records(), *(record for loop in self.earlier for record in loop.search_records())]
        return tuple({record.key: record for record in records}.values())

    def grown_records(self) -> tuple[RunRecord, ...]:
        """Returns the stored members of a search along tasks that went on to further tasks, one for each number."""
        return tuple(record for record in self.records.values() if record.further)

    def evaluation_records(self) -> tuple[RunRecord, ...]:
        """Returns the stored members of the evaluation: chosen point and baseline."""
        records = self.records_of(self._evaluation_runs(self._evaluation_points())) if self.evaluating else ()
        return tuple({record.key: record for record in records}.values())  # two points may be one member

    def claimable(self) -> dict[str, list[Run]]:
        """Returns the runs of the chosen point, once it is evaluated, and of the baseline."""
        best = self.best if self.evaluating else None
        sides = [[] if best is None else [best.point], self.study.compared]
        return {
            name: self._evaluation_runs(side) for name, side in zip(self.study.claimable, sides, strict=False) if side
        }

    def references(self) -> dict[str, tuple[RunRecord, ...]]:
        """Returns the stored members of each reference row, by its method; rows without any are left out."""
        return {row: records for row, runs in self._by_row.items() if (records := self.records_of(runs))}

    def evaluated_content(self, point: Point) -> dict[str, Any]:
        """Returns the content of the evaluation of a point, with its first seed."""
        return content(self.study, self.images, self._evaluation_run(point, self.study.final_units[0]))

    def dropped_points(self) -> tuple[Point, ...]:
        """Returns the points that a race dropped and for which no other search has trained further seeds."""
        behind = {
            point: seeds for loop in (*self.earlier, self) for point, seeds in loop.driver.dropped_points().items()
        }
        members = group(self.search_records(), self.study.space.names, behind)
        return tuple(point for point, seeds in behind.items() if len(members[point]) <= seeds)

    def rounds(self) -> tuple[Round, ...]:
        """Returns the rounds of earlier searches and of this one, each once, numbered from 1.

        A search that was extended by repeats goes through the same first rounds: equal points make rounds equal.
        """
        rounds: list[Round] = []
        for loop in reversed((*self.earlier, self)):
            later = {round.points for round in rounds}
            rounds = [*(round for round in loop.strategy.rounds if round.points not in later), *rounds]
        rounds.sort(key=lambda round: round.named)  # choices of curves come last
        return tuple(replace(round, number=number) for number, round in enumerate(rounds, start=1))

    def _store_result(self, job: Job, result: JobResult) -> None:
        """Stores the records of a job, or compares a certificate's member with its record."""
        if job.certify is None:
            super()._store_result(job, result)
            return
        (run,) = job.runs
        record = self.records[self._key(run)]
        if job.certify.perturbed:
            certificate = certificates.compare_perturbed(record, result, self.study.objective)
        else:
            certificate = certificates.compare(record, result)
        self.certificates[certificate.key] = certificate
        self.new_certificates += 1
        self._store.certify([certificate], self.summary())

    def _own_records(self) -> tuple[RunRecord, ...]:
        return self.records_of(self._scoring_runs(self.driver.assigned_seeds()))

    def _missing_certificates(self) -> dict[str, str]:
        """Returns a map from the key of each missing certificate to the key of its member."""
        required = certificates.members_of_certificates(self.study, self._own_records())
        return {key: member for key, member in required.items() if key not in self.certificates}

    def _evaluation_points(self) -> list[Point]:
        """Returns the chosen point and the baseline, each once; nothing before a choice."""
        best = self.best
        return [] if best is None else list(dict.fromkeys([best.point, *self.study.compared]))

    @property
    def _growing(self) -> tuple[Point, ...]:
        """The points that are to go on to a further task."""
        return self._along_tasks()[1]

    def _along_tasks(self) -> tuple[tuple[SearchStage, ...], tuple[Point, ...]]:
        """Returns the finished stages of a search along tasks, and the points of the open one."""
        if not (self.study.extrapolates and self.strategy.done):
            return (), ()
        return self._stages(len(self.records), len(self.strategy.rounds))

    def _find_stages(self, stored: int, rounds: int) -> tuple[tuple[SearchStage, ...], tuple[Point, ...]]:
        return search_stages(self.study, [*self.driver.assigned_seeds()], self._record)

    def _along(self, points: Iterable[Point], more: int) -> list[Run]:
        """Returns the members of points with so many further tasks."""
        return [self._run(point, unit, more) for point in points for unit in self.study.units]

    def tell(self, results: Sequence[JobResult]) -> None:
        """Stores results, see `Loop`; once the search is over, removes what was kept for further tasks."""
        super().tell(results)
        if self._keeps and self.evaluating:
            self._keeps = False
            self._delete_kept(self._scoring_runs(self.driver.assigned_seeds()))

    def _stage_runs(self) -> list[Run]:
        if self._growing:
            return self._along(self._growing, len(self.stages))
        if not self.evaluating:
            return self._scoring_runs(self.driver.open_seeds())
        evaluated = self._evaluation_points()
        # Without a choice there is no curve that they would stand beside.
        return [*self._evaluation_runs(evaluated), *(self._references if evaluated else ())]

    @cached_property
    def _by_row(self) -> dict[str, list[Run]]:
        """The runs of each reference row: on the stream that scores, with the seeds of the search."""
        study = self.study
        return {
            row: [Run(self._phase, study.reference(row, unit.seed), unit.order) for unit in study.units]
            for row in study.reference_rows
        }

    @property
    def _references(self) -> list[Run]:
        return [run for runs in self._by_row.values() for run in runs]

    def _references_left(self) -> list[Run]:
        """Returns the members of reference rows that are to train, now or in the evaluation."""
        if not self.evaluating:
            return self._unstored_runs(self._references)
        return [run for run in self.missing() if run in self._references]

    def _scoring_runs(self, shares: Mapping[Point, Sequence[int]]) -> list[Run]:
        """Returns the runs that score points; shares: seeds of each point."""
        return [self._run(point, seed) for point, seeds in shares.items() for seed in seeds]

    def _evaluation_runs(self, points: Iterable[Point]) -> list[Run]:
        """Returns the evaluation of points with all seeds."""
        return [self._evaluation_run(point, seed) for point in points for seed in self.study.final_units]

    def _run(self, point: Point, unit: int, more: int = 0) -> Run:
        """Returns the run that scores a point and a unit, the same object every time."""
        return self._made(True, point, unit, more)

    def _evaluation_run(self, point: Point, unit: int) -> Run:
        """Returns the run of a point and a unit in the evaluation, the same object every time."""
        return self._made(self.study.scores_judge, point, unit, 0)

    def _make_run(self, scores: bool, point: Point, unit: Unit, more: int) -> Run:
        learner = self.study.learner(point, unit.seed)
        if not scores:
            return Run("eval", learner, unit.order)
        run = Run(self._phase, learner, unit.order, more)
        if (share := self.study.view.share) < 1:
            return run._replace(prefix=self._cut(run, share))
        first = self.study.first_tasks
        return run if first is None else run._replace(prefix=(first, None))

    def _record(self, point: Point, unit: int, more: int = 0) -> RunRecord | None:
        """Returns the record of a point and a unit in the search; None if there is none.

        more: further tasks.
        """
        return self.records.get(self._key(self._run(point, unit, more)))

    def _early(self) -> list[CohortRuns]:
        """Returns the baseline, to train before the search ends; on a GPU nothing, as one large cohort is faster."""
        if self.study.scores_judge or self.study.device != "cpu":
            return []
        return [([run], None) for run in self._unstored_runs(self._evaluation_runs(self.study.compared))]

    def _advance(self) -> None:
        # Early jobs of the evaluation may be open meanwhile: they do not delay the next round.
        while not self._jobs:
            self._gather()
            if self.evaluating:
                damage = dict[str, str]()
                self.certificates |= self._store.certificates(self._missing_certificates(), damage=damage)
                self.damaged |= certificates.describe_damage(damage)
            if self.evaluating or self.missing():
                return
            self.strategy.tell(self.driver.observations())

    def _gather(self) -> None:
        """Reads the records of the stage. In a race, reads further seeds too, until a record is missing."""
        runs: list[Run] = []
        while runs != (now := self._stage_runs()) and not self._unstored_runs(runs):
            runs = now
            self._read(runs)

    def _certifying(self) -> list[CohortRuns]:
        """Returns a job for each missing certificate: a member alone, without a shared first task."""
        runs = {self._key(run): run for run in self._scoring_runs(self.driver.assigned_seeds())}
        return [
            (
                [runs[member]],
                PERTURBED if key != member else certificates.comparison(self.records[member], self.records, runs),
            )
            for key, member in self._missing_certificates().items()
        ]


def open_search(study: Search, images: Mapping[str, Any], store: "Store", earlier: Sequence[Search] = ()) -> SearchLoop:
    """Returns the loop of a search, caught up with the ledger.

    earlier: earlier versions of the study, oldest first, whose results count, too.
    """
    before = [open_search(search, images, store) for search in earlier]
    return SearchLoop(study, images, store, before).catch_up()
