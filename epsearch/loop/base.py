"""members -> cohorts -> jobs -> records: what all loops share. The ledger is asked first, and told before all else.

A loop is an ask/tell source: `ask()` returns the open jobs of the stage, `tell()` takes results in any order. All it
knows is derived from the ledger, so making it anew resumes the work.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from epsearch.failures.errors import TrainingFailed, UsageError
from epsearch.loop.content import content, measures_transfer, records
from epsearch.loop.cost import step_cost
from epsearch.loop.jobs import Certify, Job, JobResult, Trainee
from epsearch.study.disjointness import Proof
from epsearch.study.kinds import Setup
from results.ledger.record import RunRecord, Summary, content_key
from results.ledger.store import Store
from search_spaces.published.definition import load_definition
from search_spaces.space import Value
from trainers.cohort import Cohort
from trainers.streams.plugin import SOURCE

COHORTS_PER_WORKER = 4  # small enough that no worker idles long at the end of a stage, and little is lost in a crash


class Loop(ABC):
    """The parts of a loop that do not depend on what is asked. Subclasses say which members a stage wants."""

    def __init__(self, study: Setup, images: Mapping[str, Any], store: Store, workers: int) -> None:
        self.study, self.workers = study, workers
        self.records: dict[str, RunRecord] = {}
        self.reused, self.trained = 0, 0  # members found in the ledger, and trained since
        self.saved = 0  # member-steps not taken since, as members share their first task
        self.notes: list[str] = []  # lines that workers have for the user
        self.damaged: dict[str, str] = {}  # records that could not be used, key -> why; some trained again since
        self.proof = Proof()  # that the search has seen nothing of the evaluation, as the ledger keeps it
        self.row = ""  # checksum of the study's row in the ledger; with one, its summary there is kept up to date
        self._images, self._store = dict(images), store
        self._jobs: dict[int, Job] = {}
        self._numbers = 0
        self._keys: dict[Trainee, str] = {}

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether nothing is left to train."""

    @property
    @abstractmethod
    def stage(self) -> str:
        """What is being trained, in words."""

    @abstractmethod
    def headline(self) -> str:
        """The best so far, in words."""

    @abstractmethod
    def heading(self) -> str:
        """What the whole study will do, in words."""

    @abstractmethod
    def remaining_work(self) -> float:
        """An estimate of what is still to be done, in steps times their weight."""

    @abstractmethod
    def ask(self) -> list[Job]:
        """The open jobs, the same ones until they are told."""

    @abstractmethod
    def _wanted(self) -> list[Trainee]:
        """All members of the current stage."""

    @abstractmethod
    def _advance(self) -> None:
        """Goes through the stages as far as the ledger's knowledge reaches."""

    def tell(self, results: Sequence[JobResult]) -> None:
        """Stores what was trained, before anything else, and moves on when the stage is complete."""
        for result in results:
            if result.foreign:
                raise UsageError(result.error)
            if result.value is None:
                raise TrainingFailed(f"a cohort could not be trained: {result.error}", result.traceback)
            job = self._close(result.number)
            self.saved += result.value.saved
            self.notes += result.value.note.splitlines()
            self._keep(job, result)
        self._advance()
        self.sum_up()

    def sum_up(self) -> None:
        """Writes the summary to the ledger, unless it is there."""
        if (now := self.summary()) is not None:
            self._store.sum_up(now)

    def summary(self) -> Summary | None:
        """What `epsearch list` shows of the study; None where the ledger does not keep it."""
        if not self.row:
            return None
        status = self.state() + (f", {len(self.unused())} damaged" if self.unused() else "")
        return Summary(self.study.name, self.row, status, *self.choice())

    def choice(self) -> tuple[dict[str, Value] | None, float | None, bool]:
        """What `Summary` has as chosen, score, inert: nothing, where nothing is searched."""
        return None, None, False

    def stage_members(self) -> tuple[int, int]:
        """(members of this stage that are known, members of this stage); those with the same result count once."""
        wanted = self._wanted()
        different = len({self._key(trainee) for trainee in wanted})
        return different - len(self._unknown(wanted)), different

    def unused(self) -> dict[str, str]:
        """Records of the ledger that cannot be used, key -> why."""
        return {key: why for key, why in self.damaged.items() if key not in self.records}

    def state(self) -> str:
        """Finished, or what is being trained and how far that is."""
        if self.done:
            return "finished"
        known, wanted = self.stage_members()
        return f"{self.stage}: {known} of {wanted} members trained"

    def found(self, trainees: Iterable[Trainee]) -> tuple[RunRecord, ...]:
        """Those that have been trained."""
        keys = (self._key(trainee) for trainee in trainees)
        return tuple(self.records[key] for key in keys if key in self.records)

    def _close(self, number: int) -> Job:
        return self._jobs.pop(number)

    def _keep(self, job: Job, result: JobResult) -> None:
        fresh = records(job, result, [content(self.study, self._images, trainee) for trainee in job.trainees])
        self.records.update((record.key, record) for record in fresh)
        self._store.add(fresh, self.summary())
        self.trained += len(fresh)

    def _unknown(self, trainees: Iterable[Trainee]) -> list[Trainee]:
        """Those that are not known yet; of several that have the same result, the first."""
        by_key = {self._key(trainee): trainee for trainee in reversed(list(trainees))}
        return [trainee for key, trainee in reversed(by_key.items()) if key not in self.records]

    def _look_up(self, trainees: Iterable[Trainee]) -> None:
        """Takes from the ledger what it knows of these members."""
        known = self._store.get([self._key(trainee) for trainee in self._unknown(trainees)])
        self.records.update(known)
        self.damaged |= known.damaged
        self.reused += len(known)

    def _cohorts(self, trainees: Sequence[Trainee]) -> list[list[Trainee]]:
        """Cuts the members into cohorts, the longest work first.

        Members of a cohort share method and configuration but for the learning rate; those of a seed stay together, as
        they share its data.
        """
        kinds: dict[tuple[str, str, Any], list[Trainee]] = {}
        for trainee in sorted(trainees, key=lambda one: one.member.seed):
            kinds.setdefault((trainee.phase, trainee.method, replace(trainee.config, learning_rate=1.0)), []).append(
                trainee
            )
        cohorts = []
        for alike in kinds.values():
            pieces = self.workers * (COHORTS_PER_WORKER if self.study.device == "cpu" else 1)
            pieces = min(pieces, len(alike))
            cuts = [len(alike) * piece // pieces for piece in range(pieces + 1)]
            cohorts += [alike[a:b] for a, b in itertools.pairwise(cuts)]
        return sorted(cohorts, key=lambda cohort: -len(cohort) * self._work(cohort[0]))

    def _open(self, jobs: dict[int, Job], cohorts: Iterable[Sequence[Trainee]], certify: Certify | None = None) -> None:
        study = self.study
        for trainees in cohorts:
            first = trainees[0]
            members = tuple(
                one.member
                if one.config == first.config or one.member.learning_rate
                else replace(one.member, learning_rate=one.config.learning_rate)
                for one in trainees
            )
            jobs[self._numbers] = Job(
                number=self._numbers,
                stage=self.stage,
                phase=first.phase,
                cohort=Cohort(first.method, members),
                config=first.config,
                stream=study.request(first.phase, self._images.get(SOURCE)),
                path=str(study.numeric_path),
                transfer=measures_transfer(first.phase),
                weight=self._weight(first),
                at_once=self.workers,
                certify=certify,
            )
            self._numbers += 1

    def _weight(self, trainee: Trainee) -> float:
        tasks = len(self.study.stream_tasks(trainee.phase))
        classes = self.study.classes_per_task or load_definition(self.study.dataset).classes
        return step_cost(trainee.method, trainee.config, classes, tasks)

    def _work(self, trainee: Trainee) -> float:
        """Of one member without its first task, which is shared, and without a memory cheap."""
        later = max(1, len(self.study.stream_tasks(trainee.phase)) - 1)
        steps = -(-self._images["examples_per_task"] // trainee.config.batch_size)
        return float(steps * later * self._weight(trainee))

    def _key(self, trainee: Trainee) -> str:
        if trainee not in self._keys:
            self._keys[trainee] = content_key(content(self.study, self._images, trainee))
        return self._keys[trainee]
