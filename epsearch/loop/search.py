"""suggestions -> members -> cohorts -> records -> observations: the loop of a search, without saying who trains."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Self

from epsearch.loop import certificates
from epsearch.loop.ahead import Outlook
from epsearch.loop.base import Loop
from epsearch.loop.cohorts import Order
from epsearch.loop.content import content
from epsearch.loop.jobs import Certify, Job, JobResult, Run
from epsearch.loop.strategy_driver.driver import StrategyDriver
from epsearch.study.kinds import Search
from results.inert import all_equal
from results.labels import count_text
from results.ledger.record import RunRecord
from results.points import group, point_text
from search_spaces.space import Point, Value
from search_spaces.strategies import strategy
from search_spaces.strategy import Best, Round

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from results.ledger.store import Store


MOVED = Certify((), "", moved=True)


class SearchLoop(Loop):
    """Asks a strategy, finds in the ledger what is known, hands out the rest, stores and tells what came back.

    A stage is a round of the strategy, trained with the seeds of the search on the stream that scores (`score_on`);
    the last one is the evaluation of the chosen point and the baseline, with the seeds of the evaluation, and the
    certificates.

    study, images, store   as of `Loop`
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
        self._scores = lru_cache(1)(lambda known, stage: self.driver.scores())  # the same while these two are
        self._run = cache(self._make_run)  # used often, and a learner checks its values

    def catch_up(self) -> Self:
        """The baseline first: it is evaluated in any case."""
        self._read(self._final(self.study.compared))
        return super().catch_up()

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
        return "evaluation" if self.evaluating else self.driver.stage

    @property
    def best(self) -> Best | None:
        """The best of this search, unless an earlier one of the study found a better one with the same seeds.

        A curve decides for all of them. A strategy that rules points out, however high their means are, decides alone
        where it searches now.
        """
        own, choice = self.strategy.best, self.driver.choice
        named = choice is not None and own is not None and own.point == choice.point
        if named or (strategy(self.study.strategy).decides_alone and own is not None):
            return own
        earlier = [one.best for one in self.earlier if one.study.seeds == self.study.seeds]
        return max((best for best in (own, *earlier) if best is not None), key=lambda best: best.value, default=None)

    @property
    def inert(self) -> bool:
        """Whether all values that were tried score the same bit for bit, so that none is the best."""
        return all_equal(self.scores())

    def chosen(self) -> dict[str, Value] | None:
        """The best point so far, by the names of what is searched; None before there is one."""
        best = self.best
        return None if best is None else dict(zip(self.study.space.names, best.point, strict=True))

    def state(self) -> str:
        """Finished, or what is being trained, how far that is, and what is still to be certified."""
        alone = len(self._uncertified()) if self.evaluating else 0
        return super().state() + (f", {alone} to be trained once more, alone" if alone else "")

    def headline(self) -> str:
        """The best point so far and its score in percent, or that all are equal."""
        best, what, names = self.best, self.study.maximised, self.study.space.names
        if best is not None and self.inert:
            return f"no best: all values have {what} {100 * best.value:.2f} %, bit for bit"
        text = "–" if best is None else f"{point_text(names, best.point)} ({what} {100 * best.value:.2f} %)"
        return f"best {text}"

    def heading(self) -> str:
        """The strategy, its rounds, values and seeds, and the tasks of search and evaluation, in words."""
        study = self.study
        what = "ε" if study.space.names == ("epsilon",) else f"values of {', '.join(study.space.names)}"
        rounds, seeds = count_text(study.repeats, self.driver.unit), count_text(len(study.search_seeds), "seed")
        return (
            f"{study.strategy}: {rounds} × {study.points} {what} × {'up to ' * study.race}{seeds} on "
            f"{count_text(study.cv_tasks, 'task')}, then {count_text(study.tasks - study.cv_tasks, 'task')}"
        )

    def _orders(self, workers: int) -> list[Order]:
        """What the stage wants, but for what is trained ahead of it; certificates come with the evaluation."""
        taken = {run for job in self._early_jobs.values() for run in job.runs} if self.evaluating else set()
        missing = [one for one in self.missing() if one not in taken]
        return [*self._cohorts(missing, workers), *(self._certifying() if self.evaluating else [])]

    def outlook(self) -> Outlook:
        """Members to come: an estimate, as later rounds may meet points they know, or not come at all.

        Of the evaluation the baseline is known before the search ends, and may have been trained ahead of it; that the
        chosen point is another one is assumed. Where the search scores on the evaluation stream, nothing is left there.
        """
        study = self.study
        now, most = len(self.missing()), study.points * study.repeats * len(study.seeds)
        certified = min(study.certify, most) + min(study.moved_starts, most)
        if self.evaluating:
            return Outlook(len(self.records), now, 0, 0, 0, len(self._uncertified()))
        baseline = self._unstored(self._final(study.compared))
        final = 0 if study.score_on == "eval" else len(study.final_seeds) + len(baseline)
        return Outlook(len(self.records), now, *self.driver.later_members(), final, certified)

    def ahead(self) -> list[tuple[int, list[Run]]]:
        """Of the search, certificates too, and of the evaluation."""
        ahead, missing = self.outlook(), self.missing()
        some = [self._run(self.study.score_on, self.study.example, self.study.seeds[0])]
        if self.evaluating:
            return [(ahead.certified, some), (ahead.now, missing)]
        final = self._final(self._evaluated() or [self.study.example])
        return [(ahead.now + ahead.most + ahead.certified, missing or some), (ahead.final, final)]

    def scores(self) -> "NDArray[np.float64]":
        """Of the points that were tried, on the stream that scores."""
        return self._scores(len(self.records), self.stage)

    def work_of(self, ahead: Outlook) -> tuple[float, float]:
        """The fewest and the most of what is ahead, in FLOP.

        Members that are missing count as they are; later ones as an example, as their points are not known yet.
        """
        one, final = (self._work(self._run(phase, self.study.example, 0)) for phase in (self.study.score_on, "eval"))
        fixed = sum(self._work(run) for run in self.missing()) + ahead.final * final + ahead.certified * one
        return fixed + ahead.least * one, fixed + ahead.most * one

    def search_records(self) -> tuple[RunRecord, ...]:
        """Every member of the search that has been trained, each once; those of earlier searches behind."""
        records = [*self._searched(), *(record for loop in self.earlier for record in loop.search_records())]
        return tuple({record.key: record for record in records}.values())

    def evaluation_records(self) -> tuple[RunRecord, ...]:
        """The members of the evaluation that have been trained: the chosen point and the baseline."""
        records = self.records_of(self._final(self._evaluated())) if self.evaluating else ()
        return tuple({record.key: record for record in records}.values())  # two points may be one member

    def evaluated_content(self, point: Point) -> dict[str, Any]:
        """What determines the evaluation of a point, as `content` has it, with the first of its seeds."""
        return content(self.study, self.images, self._run("eval", point, self.study.final_seeds[0]))

    def dropped(self) -> tuple[Point, ...]:
        """Points that a race has dropped, unless they have more seeds from elsewhere, as of a search without a race."""
        behind = {point: seeds for loop in (*self.earlier, self) for point, seeds in loop.driver.dropped().items()}
        known = group(self.search_records(), self.study.space.names, behind)
        return tuple(point for point, seeds in behind.items() if len(known[point]) <= seeds)

    def rounds(self) -> tuple[Round, ...]:
        """Those of this search, after those of earlier ones that it does not go through again.

        A search that has grown in repeats goes through the same first rounds: they are the same where their points are.
        Numbers count from 1 over all of them.
        """
        rounds: list[Round] = []
        for loop in reversed((*self.earlier, self)):
            known = {one.points for one in rounds}
            rounds = [*(one for one in loop.strategy.rounds if one.points not in known), *rounds]
        rounds.sort(key=lambda one: one.named)  # what curves have named comes last
        return tuple(replace(one, number=number) for number, one in enumerate(rounds, start=1))

    def _store_result(self, job: Job, result: JobResult) -> None:
        """A certificate's member is compared with what the ledger has of it, and the differences are stored."""
        if job.certify is None:
            super()._store_result(job, result)
            return
        (run,) = job.runs
        record = self.records[self._key(run)]
        if job.certify.moved:
            certificate = certificates.compare_moved(record, result, self.study.objective)
        else:
            certificate = certificates.compare(record, result)
        self.certificates[certificate.key] = certificate
        self._store.certify([certificate], self.summary())

    def _searched(self) -> tuple[RunRecord, ...]:
        return self.records_of(self._scored(self.driver.assigned_seeds()))

    def _uncertified(self) -> dict[str, str]:
        """Key of each certificate that is still to come -> that of its member."""
        required = certificates.required(self.study, self._searched())
        return {key: member for key, member in required.items() if key not in self.certificates}

    def _evaluated(self) -> list[Point]:
        """The chosen point and the baseline, once where they are the same; none before there is a chosen one."""
        best = self.best
        return [] if best is None else list(dict.fromkeys([best.point, *self.study.compared]))

    def _wanted(self) -> list[Run]:
        return self._final(self._evaluated()) if self.evaluating else self._scored(self.driver.wanted())

    def _scored(self, shares: Mapping[Point, Sequence[int]]) -> list[Run]:
        """The runs that score points, with the seeds that each of them is to have."""
        return [self._run(self.study.score_on, point, seed) for point, seeds in shares.items() for seed in seeds]

    def _final(self, wanted: Iterable[Point]) -> list[Run]:
        """The runs of the evaluation of points, with all of its seeds."""
        return [self._run("eval", point, seed) for point in wanted for seed in self.study.final_seeds]

    def _make_run(self, phase: str, point: Point, seed: int) -> Run:
        return Run(phase, self.study.learner(point, seed))

    def _record(self, point: Point, seed: int) -> RunRecord | None:
        """What is known of a point's member of a seed in the search; this is all that the driver looks at."""
        return self.records.get(self._key(self._run(self.study.score_on, point, seed)))

    def _early(self) -> list[Order]:
        """Members of the evaluation to train before the search ends; a GPU would rather have all of them together."""
        if self.study.score_on == "eval" or self.study.device != "cpu":
            return []
        return [([run], None) for run in self._unstored(self._final(self.study.compared))]

    def _advance(self) -> None:
        # Jobs done ahead of the evaluation may be out meanwhile: they keep no round of the search open.
        while not self._jobs:
            self._gather()
            if self.evaluating:
                damage = dict[str, str]()
                self.certificates |= self._store.certificates(self._uncertified(), damage=damage)
                self.damaged |= certificates.damaged(damage)
            if self.evaluating or self.missing():
                return
            self.strategy.tell(self.driver.observations())

    def _gather(self) -> None:
        """Asks the ledger for what is wanted, and for what is then wanted: a race goes on as far as it knows."""
        wanted: list[Run] = []
        while wanted != (now := self._wanted()) and not self._unstored(wanted):
            wanted = now
            self._read(wanted)

    def _certifying(self) -> list[Order]:
        """One job for each member of the sample: it is trained alone, without a shared first task."""
        runs = {self._key(one): one for one in self._scored(self.driver.assigned_seeds())}
        return [
            ([runs[member]], MOVED if key != member else certificates.order(self.records[member], self.records, runs))
            for key, member in self._uncertified().items()
        ]


def open_search(study: Search, images: Mapping[str, Any], store: "Store", earlier: Sequence[Search] = ()) -> SearchLoop:
    """Returns the loop of a search, caught up with the ledger.

    earlier: earlier versions of the study, oldest first, whose results count, too.
    """
    before = [open_search(search, images, store) for search in earlier]
    return SearchLoop(study, images, store, before).catch_up()
