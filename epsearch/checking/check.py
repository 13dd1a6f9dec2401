"""Trains a trainer a few times on the tasks of a search, and compares the results."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from epsearch.checking import check_cache, findings
from epsearch.checking.check_cache import CheckReport, Finding
from epsearch.checking.settings import Setting, of_declared, of_space, usual
from epsearch.events import Listener, Note, ignore, stops, warner
from epsearch.failures.errors import Interrupted, as_usage_error
from epsearch.loop.jobs import bytes_free, decode, encode
from epsearch.plugins.loading import PLUGINS, files_of, versions_of
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.build import build_unchecked
from epsearch.preparation.data import Prepared, prepare
from epsearch.preparation.trainers import declare
from epsearch.study.kinds import Search
from epsearch.study.limits import LARGEST_SEED
from results.ledger.record import content_key
from results.points import value_text
from trainers.cohort import CohortResult, Learner
from trainers.foreign.fork_servers import keep_servers
from trainers.foreign.process import Observations
from trainers.foreign.running import Request, Run, train
from trainers.notes import redirect_notes
from trainers.numeric_path import NumericPath
from trainers.plugins.calls import ForeignError

AGAIN = "the same once more"
Recipient = Callable[[Finding], object]
"""Called with each finding as it is known, which is in another order than in the report."""


def check(
    options: Mapping[str, Any], listener: Listener = ignore, recipient: Recipient = lambda finding: None
) -> CheckReport:
    """Trains a trainer with the same values twice, once with another seed, and with far values of each setting.

    options: those of a search, by name: trainer, stream, limits, what is searched and set. The settings of `search`
    vary; without it, those that the trainer declares. listener: called with a note before each training.

    Trainings are stored until the report is made: after an interruption the same check reuses them, but for those that
    failed. The report is cached for the reports of studies, and so that `run` refuses settings without effect. Raises
    UsageError for a trainer that cannot be loaded or options that do not fit it; its own errors are findings. Raises
    Interrupted.
    """
    with redirect_notes(warner(listener)), as_usage_error(ForeignError), keep_servers():
        study = build_unchecked(options)
        prepared = prepare(study, listener)
        study = replace(study, numeric_path=numeric_path(study, prepared.stream, listener=listener))
        return _Check(study, prepared, listener, recipient).report()


class _Check:
    """A check of one trainer on one stream."""

    def __init__(self, study: Search, prepared: Prepared, listener: Listener, recipient: Recipient) -> None:
        self._study, self._images, self._listener, self._recipient = study, prepared.images, listener, recipient
        declared, values = declare(study.method), dict(study.set)
        space = study.search
        self._settings = of_declared(declared.parameters or (), values) if space is None else of_space(space)
        self._values, self._repeatable = usual(self._settings, values), declared.deterministic
        with as_usage_error(ValueError):
            Learner.of(study.method, study.seeds[0], **self._values)
        self._stream = study.request("cv").open()
        self._request = self._make_request()
        self._most = 3 + sum(len(setting.values) - 1 for setting in self._settings)
        self._observations: list[Observations] = []  # of each training
        self._trained = check_cache.read_trainings(study, self._images, self._settings, self._values)

    def report(self) -> CheckReport:
        """Trains, and returns the report; it is cached unless the first training fails."""
        first, error = self._train("as it is", self._values)
        if first is None:
            return self._report([self._tell(findings.fails(error))], self._time(), {})
        complete = [
            self._tell(findings.matrix(first, len(self._stream.tasks))),
            self._tell(findings.accuracy_source(first)),
        ]
        time = self._time()
        again, error = self._train(AGAIN, self._values)
        repeats = findings.Repeatability(first, again, self._repeatable)
        lines = [self._tell(repeats.finding(self._study.seeds[0], error)), self._tell(self._seed(first, repeats))]
        lines += complete
        inert = {}
        for setting in self._settings:
            finding, without_effect = self._setting(setting, first, repeats)
            lines.append(self._tell(finding))
            if without_effect:
                inert[setting.name] = setting.values
        report = self._report(lines, time, inert)
        check_cache.write(self._study, self._images, report, self._settings)
        check_cache.delete_trainings(self._study, self._images, self._settings, self._values)
        return report

    def _tell(self, finding: Finding) -> Finding:
        """Passes a finding on as soon as it is known, and returns it."""
        self._recipient(finding)
        return finding

    def _seed(self, first: CohortResult, repeats: findings.Repeatability) -> Finding:
        """Trains with another seed on the same data, which would differ in any case."""
        seed = self._study.seeds[0]
        other = next(iter(self._study.seeds[1:]), seed + 1 if seed < LARGEST_SEED else seed - 1)
        result, error = self._train(f"seed {other} on the data of seed {seed}", self._values, other)
        return repeats.seed(first, result, (seed, other), error)

    def _setting(self, setting: Setting, first: CohortResult, repeats: findings.Repeatability) -> tuple[Finding, bool]:
        """Returns the finding on a setting, with all else equal, and whether it has no effect."""
        name = setting.name
        results: dict[Any, CohortResult] = {setting.usual: first}
        for value in setting.values[1:]:
            if value in setting.between and not repeats.all_the_same(results.values()):
                break
            result, error = self._train(f"{name} = {value_text(value)}", self._values | {name: value})
            if result is None:
                return findings.setting_fails(name, value, error, self._study.search is not None), False
            results[value] = result
        return repeats.setting(name, results), len(results) > 1 and repeats.all_the_same(results.values())

    def _time(self) -> tuple[float | None, list[Finding]]:
        """Returns the seconds of a task in the first training, with their finding; None if no task was reported."""
        first = self._observations[0]
        if first.begun is None or not first.tasks:
            return None, []
        seconds = (first.tasks[-1] - first.begun) / len(first.tasks)
        start = first.begun - first.imported + max(first.imported, first.import_seconds)
        return seconds, [self._tell(findings.time(seconds, start, self._request.limits.seconds))]

    def _report(
        self, lines: list[Finding], time: tuple[float | None, list[Finding]], inert: Mapping[str, tuple[Any, ...]]
    ) -> CheckReport:
        """Returns the report, with what was observed in all trainings."""
        refusals = [observations.refusal for observations in self._observations if observations.refusal]
        lines.insert(
            2, self._tell(findings.ahead(sum(observations.ahead for observations in self._observations), refusals))
        )
        seconds, more = time
        more += [self._tell(finding) for finding in findings.start(self._observations)]
        most = max(observations.peak for observations in self._observations)
        lines += [*more, self._tell(findings.memory(most, self._request.limits.bytes))]
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return CheckReport(self._study.method, created, self._values, tuple(lines), inert, seconds, most)

    def _train(self, title: str, values: Mapping[str, Any], seed: int | None = None) -> tuple[CohortResult | None, str]:
        """Trains once in a process of its own; returns (result, ""), or (None, the error in a line).

        A training of the same check that was interrupted is reused. seed: None for the seed of the data.
        """
        ours, observations = self._study.seeds[0], Observations()
        used, number = ours if seed is None else seed, len(self._observations) + 1
        key = content_key({"values": dict(values), "seed": used, "number": number if title == AGAIN else 0})
        if key in self._trained:
            self._listener(Note(f"training {number} of at most {self._most}: {title}, stored before the interruption"))
            self._observations.append(Observations(**self._trained[key]["observations"]))
            return decode(self._trained[key]["result"]), ""
        self._observations.append(observations)
        self._listener(Note(f"training {number} of at most {self._most}: {title}"))
        run = Run(values, used, self._stream, transfer=False, data_seed=ours)
        # The repetition shows what a fresh import comes to.
        request = replace(self._request, copied=title != AGAIN)
        try:
            result = train(request, run, self._progress, watched=observations)
        except ForeignError as error:
            return None, str(error)
        self._trained[key] = {"result": encode(result), "observations": asdict(observations)}
        check_cache.write_trainings(self._study, self._images, self._settings, self._values, self._trained)
        return result, ""

    def _progress(self, tasks: int) -> None:
        if stops(self._listener):
            raise Interrupted

    def _make_request(self) -> Request:
        """Returns a request like the one for a member of a search, trained alone."""
        study, every = self._study, self._images[PLUGINS]
        path, limits = NumericPath.parse(str(study.numeric_path)), study.limits
        assert limits is not None
        if limits.bytes is None:
            limits = replace(limits, bytes=bytes_free(path, 1))
        networks = {name: files_of(every[name]) for name, kind in study.plugins().items() if kind == "network"}
        files, versions = files_of(every[study.method]), versions_of(every[study.method])
        return Request(study.method, Path.cwd(), files, versions, path.device, limits=limits, networks=networks)
