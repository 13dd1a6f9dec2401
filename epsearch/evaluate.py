"""suggestions -> members -> cohorts -> records -> observations: the loop of a study, without saying who trains."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epsearch import certificates
from epsearch.errors import TrainingFailed
from epsearch.jobs import Certify, Job, JobResult
from epsearch.records import content, content_key, measures_transfer, records
from epsearch.study import Study
from results.certificate import Certificate
from results.metrics import average_accuracy
from results.record import RunRecord
from results.store import Store
from search_spaces.interval import Interval
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.strategy import Observation, Suggestion
from trainers.cohort import Cohort, Member

COHORTS_PER_WORKER = 4  # small enough that no worker idles long at the end of a round, and little is lost in a crash


class StudyLoop:
    """Asks a strategy, finds in the ledger what is known, hands out the rest as jobs, stores and tells what came back.

    It is itself an ask/tell source: `ask()` returns the open jobs of the stage, `tell()` takes results in any order.
    Everything it knows is derived from the ledger, so making it anew resumes the study.
    """

    def __init__(self, study: Study, images: Mapping[str, Any], store: Store, workers: int = 1) -> None:
        self.study, self.workers = study, workers
        self.strategy = IntervalNarrowing(Interval(*study.interval), study.points, study.repeats)
        self.records: dict[str, RunRecord] = {}
        self.reused, self.trained = 0, 0  # members found in the ledger, and trained since
        self.saved = 0  # member-steps not taken since, as members share their first task
        self.certificates: dict[str, Certificate] = {}
        self._images, self._store = dict(images), store
        self._jobs: dict[int, Job] = {}
        self._ahead: dict[int, Job] = {}
        self._ahead_begun = False
        self._numbers = 0
        self._look_up("eval", self._zero())
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
    def steps_per_task(self) -> int:
        return int(-(-self._images["examples_per_task"] // self.study.batch_size))

    def ask(self) -> list[Job]:
        """The open jobs, the same ones until they are told: those of the current stage, then work done ahead.

        ε = 0 is evaluated whatever the search finds: a worker that waits for the end of a repeat trains that.
        """
        if self.done:
            return []
        if not self._ahead_begun:
            self._ahead_begun = True
            self._open(self._ahead, [Cohort(self.study.method, (member,)) for member in self._early()], "eval")
        if not self._jobs:
            taken = {member for job in self._ahead.values() for member in job.cohort.members}
            missing = [one for one in self._missing() if not (self.evaluating and one in taken)]
            self._open(self._jobs, self._cohorts(missing), self.phase)
            if self.evaluating:
                self._open_certificates()
        return [*self._jobs.values(), *self._ahead.values()]

    def tell(self, results: Sequence[JobResult]) -> None:
        """Stores what was trained, before anything else, and moves on when the stage is complete."""
        for result in results:
            if result.value is None:
                raise TrainingFailed(f"a cohort could not be trained: {result.error}")
            job = (self._jobs if result.number in self._jobs else self._ahead).pop(result.number)
            self.saved += result.value.saved
            if job.certify is not None:
                self._certify(job, result)
                continue
            described = [content(self.study, self._images, job.phase, member) for member in job.cohort.members]
            fresh = records(job, result, described)
            self._store.add(fresh)
            self.trained += len(fresh)
            self.records.update((record.key, record) for record in fresh)
        self._advance()

    @property
    def phase(self) -> str:
        """The stream of the current stage: "cv" or "eval"."""
        return "eval" if self.evaluating else self.study.score_on

    @property
    def stage(self) -> str:
        return "evaluation" if self.evaluating else f"repeat {len(self.strategy.rounds)} of {self.study.repeats}"

    def stage_members(self) -> tuple[int, int]:
        """(members of this stage that are known, members of this stage)."""
        wanted = self._wanted()
        return len(wanted) - len(self._missing()), len(wanted)

    def remaining_steps(self) -> int:
        """Member-steps that are still to be trained; an estimate, as later repeats may meet points they know."""
        study = self.study
        search = self._member_steps(study.score_on)
        certified = (len(self._uncertified()) if self.evaluating else study.certify) * search
        if self.evaluating:
            return len(self._missing()) * self._member_steps("eval") + certified
        later_rounds = study.repeats - len(self.strategy.rounds)
        later = later_rounds * (study.points - 2) * len(study.seeds)  # a new grid shares its ends with the old one
        evaluated = 0 if study.score_on == "eval" else len(study.seeds) + len(self._unknown("eval", self._zero()))
        return (len(self._missing()) + later) * search + evaluated * self._member_steps("eval") + certified

    def search_records(self) -> tuple[RunRecord, ...]:
        """Every member of the search that has been trained, each once."""
        epsilons = dict.fromkeys(epsilon for found in self.strategy.rounds for epsilon in found.epsilons)
        return tuple(self._known(self.study.score_on, epsilons))

    def evaluation_records(self) -> tuple[RunRecord, ...]:
        """The members of the evaluation that have been trained: the chosen ε and ε = 0."""
        return tuple(self._known("eval", self._evaluated())) if self.evaluating else ()

    def _sample(self) -> list[str]:
        """Keys of the members of the search that are to be certified."""
        return certificates.sample(self.study.name, self.search_records(), self.study.certify)

    def _uncertified(self) -> list[str]:
        return [key for key in self._sample() if key not in self.certificates]

    def _certify(self, job: Job, result: JobResult) -> None:
        """Compares the member trained alone with what the ledger has of it, and stores the differences."""
        (member,) = job.cohort.members
        certificate = certificates.compare(self.records[self._key(job.phase, member)], result)
        self._store.certify([certificate])
        self.certificates[certificate.key] = certificate

    def _known(self, phase: str, epsilons: Sequence[float] | dict[float, None]) -> Iterator[RunRecord]:
        for epsilon in epsilons:
            for seed in self.study.seeds:
                if record := self.records.get(self._key(phase, Member(epsilon, seed))):
                    yield record

    def _evaluated(self) -> list[float]:
        best = self.strategy.best
        return [] if best is None else list(dict.fromkeys([best.epsilon, 0.0]))

    def _wanted(self) -> list[Member]:
        """All members of the current stage."""
        epsilons = self._evaluated() if self.evaluating else [asked.epsilon for asked in self.strategy.ask()]
        return [Member(epsilon, seed) for epsilon in dict.fromkeys(epsilons) for seed in self.study.seeds]

    def _missing(self) -> list[Member]:
        return self._unknown(self.phase, self._wanted())

    def _zero(self) -> list[Member]:
        return [Member(0.0, seed) for seed in self.study.seeds]

    def _early(self) -> list[Member]:
        """Members of the evaluation to train before the search ends; a GPU would rather have all of them together."""
        search_is_evaluation = self.study.score_on == "eval"
        return [] if search_is_evaluation or self.study.device != "cpu" else self._unknown("eval", self._zero())

    def _unknown(self, phase: str, members: list[Member]) -> list[Member]:
        return [member for member in members if self._key(phase, member) not in self.records]

    def _look_up(self, phase: str, members: list[Member]) -> None:
        """Takes from the ledger what it knows of these members."""
        found = self._store.get([self._key(phase, member) for member in self._unknown(phase, members)])
        self.records.update(found)
        self.reused += len(found)

    def _advance(self) -> None:
        """Goes through the stages as far as the ledger's knowledge reaches."""
        while not self._jobs:
            self._look_up(self.phase, self._wanted())
            if self.evaluating:
                self.certificates.update(self._store.certificates(self._uncertified()))
            if self.evaluating or self._missing():
                return
            self.strategy.tell([self._observe(suggestion) for suggestion in self.strategy.ask()])

    def _observe(self, suggestion: Suggestion) -> Observation:
        """The mean A_T over the seeds; a value of ε that loses any seed has none."""
        keys = [self._key(self.phase, Member(suggestion.epsilon, seed)) for seed in self.study.seeds]
        records = [self.records[key] for key in keys]
        if any(record.status != "ok" for record in records):
            return Observation(suggestion.number, None)
        scores = [float(average_accuracy(record.accuracies)) for record in records]
        return Observation(suggestion.number, sum(scores) / len(scores))

    def _cohorts(self, members: list[Member]) -> list[Cohort]:
        """Cuts the members into cohorts of nearly equal size, those of a seed together, as they share its data."""
        if not members:
            return []
        ordered = sorted(members, key=lambda member: member.seed)
        pieces = self.workers * (COHORTS_PER_WORKER if self.study.device == "cpu" else 1)
        pieces = min(pieces, len(ordered))
        cuts = [len(ordered) * piece // pieces for piece in range(pieces + 1)]
        cohorts = [Cohort(self.study.method, tuple(ordered[a:b])) for a, b in itertools.pairwise(cuts)]
        return sorted(cohorts, key=lambda cohort: -len(cohort.members))

    def _open_certificates(self) -> None:
        """One job for each member of the sample: it is trained alone, without a shared first task."""
        records = {record.key: record for record in self.search_records()}
        for key in self._uncertified():
            alone = Cohort(self.study.method, (Member(records[key].epsilon, records[key].seed),))
            self._open(self._jobs, [alone], self.study.score_on, certificates.order(records[key], records))

    def _open(self, jobs: dict[int, Job], cohorts: list[Cohort], phase: str, certify: Certify | None = None) -> None:
        study = self.study
        for cohort in cohorts:
            jobs[self._numbers] = Job(
                number=self._numbers,
                stage=self.stage,
                phase=phase,
                cohort=cohort,
                config=study.train_config(),
                dataset=study.dataset,
                data_dir=study.data_dir.absolute(),
                tasks=study.stream_tasks(phase),
                examples_per_task=study.examples_per_task,
                path=str(study.numeric_path),
                transfer=measures_transfer(phase),
                certify=certify,
            )
            self._numbers += 1

    def _member_steps(self, phase: str) -> int:
        """Steps of one member without its first task, which is shared, and without a memory cheap."""
        return self.steps_per_task * max(1, len(self.study.stream_tasks(phase)) - 1)

    def _key(self, phase: str, member: Member) -> str:
        return content_key(content(self.study, self._images, phase, member))
