"""suggestions -> members -> cohorts -> records -> observations: the loop of a search, without saying who trains."""

from collections.abc import Iterable, Mapping
from typing import Any

from epsearch import certificates
from epsearch.jobs import Job, JobResult, Trainee
from epsearch.loop import Loop
from epsearch.study import Study
from results.certificate import Certificate
from results.metrics import average_accuracy
from results.record import RunRecord
from results.store import Store
from search_spaces.interval import Interval
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.strategy import Observation, Suggestion
from trainers.cohort import Member


class StudyLoop(Loop):
    """Asks a strategy, finds in the ledger what is known, hands out the rest, stores and tells what came back."""

    study: Study

    def __init__(self, study: Study, images: Mapping[str, Any], store: Store, workers: int = 1) -> None:
        super().__init__(study, images, store, workers)
        self.strategy = IntervalNarrowing(Interval(*study.interval), study.points, study.repeats)
        self.certificates: dict[str, Certificate] = {}
        self._ahead: dict[int, Job] = {}
        self._ahead_begun = False
        self._look_up(self._trainees("eval", [0.0]))
        self._advance()

    @property
    def done(self) -> bool:
        """Whether search, evaluation and certificates are complete."""
        return self.strategy.done and not self._missing() and not self._uncertified()

    @property
    def evaluating(self) -> bool:
        """Whether the search is over."""
        return self.strategy.done

    @property
    def phase(self) -> str:
        """The stream of the current stage: "cv" or "eval"."""
        return "eval" if self.evaluating else self.study.score_on

    @property
    def stage(self) -> str:
        return "evaluation" if self.evaluating else f"repeat {len(self.strategy.rounds)} of {self.study.repeats}"

    def headline(self) -> str:
        best = self.strategy.best
        return "best ε –" if best is None else f"best ε {best.epsilon:.6g} (A_T {100 * best.value:.2f} %)"

    def heading(self) -> str:
        study = self.study
        return (
            f"{study.repeats} repeats × {study.points} ε × {len(study.seeds)} seeds on {study.cv_tasks} tasks, then "
            f"{study.tasks - study.cv_tasks} tasks"
        )

    def ask(self) -> list[Job]:
        """The open jobs of the current stage, then work done ahead.

        ε = 0 is evaluated whatever the search finds: a worker that waits for the end of a repeat trains that.
        """
        if self.done:
            return []
        if not self._ahead_begun:
            self._ahead_begun = True
            self._open(self._ahead, [[trainee] for trainee in self._early()])
        if not self._jobs:
            taken = {trainee for job in self._ahead.values() for trainee in job.trainees}
            missing = [one for one in self._missing() if not (self.evaluating and one in taken)]
            self._open(self._jobs, self._cohorts(missing))
            if self.evaluating:
                self._open_certificates()
        return [*self._jobs.values(), *self._ahead.values()]

    def remaining_work(self) -> float:
        """As later repeats may meet points they know, this is an estimate."""
        study, (one,) = self.study, self._trainees(self.study.score_on, [0.5])[:1]
        (evaluated,) = self._trainees("eval", [0.5])[:1]
        search, final = self._work(one), self._work(evaluated)
        certified = (len(self._uncertified()) if self.evaluating else study.certify) * search
        if self.evaluating:
            return len(self._missing()) * final + certified
        later_rounds = study.repeats - len(self.strategy.rounds)
        later = later_rounds * (study.points - 2) * len(study.seeds)  # a new grid shares its ends with the old one
        unknown = len(self._unknown(self._trainees("eval", [0.0])))
        members = 0 if study.score_on == "eval" else len(study.seeds) + unknown
        return (len(self._missing()) + later) * search + members * final + certified

    def search_records(self) -> tuple[RunRecord, ...]:
        """Every member of the search that has been trained, each once."""
        epsilons = dict.fromkeys(epsilon for found in self.strategy.rounds for epsilon in found.epsilons)
        return self.found(self._trainees(self.study.score_on, epsilons))

    def evaluation_records(self) -> tuple[RunRecord, ...]:
        """The members of the evaluation that have been trained: the chosen ε and ε = 0."""
        return self.found(self._trainees("eval", self._evaluated())) if self.evaluating else ()

    def _close(self, number: int) -> Job:
        return (self._jobs if number in self._jobs else self._ahead).pop(number)

    def _keep(self, job: Job, result: JobResult) -> None:
        """A certificate's member is compared with what the ledger has of it, and the differences are stored."""
        if job.certify is None:
            super()._keep(job, result)
            return
        (trainee,) = job.trainees
        certificate = certificates.compare(self.records[self._key(trainee)], result)
        self._store.certify([certificate])
        self.certificates[certificate.key] = certificate

    def _sample(self) -> list[str]:
        """Keys of the members of the search that are to be certified."""
        return certificates.sample(self.study.name, self.search_records(), self.study.certify)

    def _uncertified(self) -> list[str]:
        return [key for key in self._sample() if key not in self.certificates]

    def _evaluated(self) -> list[float]:
        best = self.strategy.best
        return [] if best is None else list(dict.fromkeys([best.epsilon, 0.0]))

    def _wanted(self) -> list[Trainee]:
        epsilons = self._evaluated() if self.evaluating else [asked.epsilon for asked in self.strategy.ask()]
        return self._trainees(self.phase, dict.fromkeys(epsilons))

    def _trainees(self, phase: str, epsilons: Iterable[float]) -> list[Trainee]:
        """Every seed's member of each ε."""
        config, method = self.study.train_config(), self.study.method
        return [
            Trainee(phase, method, config, Member(epsilon, seed)) for epsilon in epsilons for seed in self.study.seeds
        ]

    def _missing(self) -> list[Trainee]:
        return self._unknown(self._wanted())

    def _early(self) -> list[Trainee]:
        """Members of the evaluation to train before the search ends; a GPU would rather have all of them together."""
        search_is_evaluation = self.study.score_on == "eval"
        zero = self._trainees("eval", [0.0])
        return [] if search_is_evaluation or self.study.device != "cpu" else self._unknown(zero)

    def _advance(self) -> None:
        while not self._jobs:
            self._look_up(self._wanted())
            if self.evaluating:
                self.certificates.update(self._store.certificates(self._uncertified()))
            if self.evaluating or self._missing():
                return
            self.strategy.tell([self._observe(suggestion) for suggestion in self.strategy.ask()])

    def _observe(self, suggestion: Suggestion) -> Observation:
        """The mean A_T over the seeds; a value of ε that loses any seed has none."""
        found = self.found(self._trainees(self.phase, [suggestion.epsilon]))
        if any(record.status != "ok" for record in found):
            return Observation(suggestion.number, None)
        scores = [float(average_accuracy(record.accuracies)) for record in found]
        return Observation(suggestion.number, sum(scores) / len(scores))

    def _open_certificates(self) -> None:
        """One job for each member of the sample: it is trained alone, without a shared first task."""
        records = {record.key: record for record in self.search_records()}
        for key in self._uncertified():
            found = records[key]
            alone = Trainee(
                self.study.score_on, self.study.method, self.study.train_config(), Member(found.epsilon, found.seed)
            )
            self._open(self._jobs, [[alone]], certificates.order(found, records))
