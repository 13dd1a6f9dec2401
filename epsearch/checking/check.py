"""A trainer trained a few times on the tasks of a search, each time in a process of its own, and compared."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from epsearch.checking import words
from epsearch.checking.check_cache import Checked, Finding, keep
from epsearch.checking.tried import Tried, of_declared, of_space, usual
from epsearch.events import Listener, Note, ignore, stops, warner
from epsearch.failures.errors import Interrupted, refused
from epsearch.loop.jobs import bytes_free
from epsearch.plugins.loading import PLUGINS, files_of, versions_of
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.build import unsearched
from epsearch.preparation.data import Prepared, prepare
from epsearch.preparation.trainers import declare
from epsearch.study.kinds import Search
from epsearch.study.limits import LARGEST_SEED
from results.points import value_text
from trainers.cohort import CohortResult, Learner
from trainers.foreign.process import Observations
from trainers.foreign.running import Request, Run, train
from trainers.notes import redirect_notes
from trainers.numeric_path import NumericPath
from trainers.plugins.calls import ForeignError


class Ran(NamedTuple):
    """What came of one training."""

    result: CohortResult | None
    """None where it failed."""
    error: str
    """Why, in one line."""
    watched: Observations


def check(given: Mapping[str, Any], listener: Listener = ignore) -> Checked:
    """Trains a trainer with the same values twice, once with another seed, and with far values of each setting.

    given: options as of a search, by name: of a trainer, a stream, what is searched and set, limits. What is searched
    is varied; where nothing is, what the trainer declares. listener: hears which training is on its way.

    What is found is kept for reports, and so that `run` refuses what does nothing. Raises UsageError where the trainer
    cannot be had or the options do not fit it; what it does in a training is a finding. Raises Interrupted.
    """
    with redirect_notes(warner(listener)), refused(ForeignError):
        study = unsearched(given)
        prepared = prepare(study, listener)
        study = replace(study, numeric_path=numeric_path(study, prepared.stream, listener=listener))
        return _Check(study, prepared, listener).all()


class _Check:
    """Of one trainer on one stream."""

    def __init__(self, study: Search, prepared: Prepared, listener: Listener) -> None:
        self._study, self._images, self._listener = study, prepared.images, listener
        declared, own = declare(study.method), dict(study.set)
        space = study.search
        self._tried = of_declared(declared.parameters or (), own) if space is None else of_space(space)
        self._values, self._repeatable = usual(self._tried, own), declared.deterministic
        with refused(ValueError):
            Learner.of(study.method, study.seeds[0], **self._values)
        self._stream = study.request("cv").open()
        self._request = self._requested()
        self._count, self._most = 0, 3 + sum(len(one.values) - 1 for one in self._tried)
        self._watched: list[Observations] = []

    def all(self) -> Checked:
        """What is found; kept where the trainer comes through at all."""
        first = self._train("as it is", self._values)
        if first.result is None:
            return self._checked([words.fails(first.error)], {}, first)
        again = self._train("the same once more", self._values)
        repeats = words.Repeats(first.result, again.result, self._repeatable)
        findings = [repeats.finding(self._study.seeds[0], again.error), self._seed(first.result, repeats)]
        findings += [words.matrix(first.result, len(self._stream.tasks)), words.tested(first.result)]
        inert = {}
        for one in self._tried:
            finding, without_effect = self._setting(one, first.result, repeats)
            findings.append(finding)
            if without_effect:
                inert[one.name] = one.values
        found = self._checked(findings, inert, first)
        keep(self._study, self._images, found, self._tried)
        return found

    def _seed(self, first: CohortResult, repeats: words.Repeats) -> Finding:
        """On the same data, which would differ in any case."""
        seed = self._study.seeds[0]
        other = next(iter(self._study.seeds[1:]), seed + 1 if seed < LARGEST_SEED else seed - 1)
        ran = self._train(f"seed {other} on the data of seed {seed}", self._values, other)
        return repeats.seed(first, ran.result, (seed, other), ran.error)

    def _setting(self, one: Tried, first: CohortResult, repeats: words.Repeats) -> tuple[Finding, bool]:
        """(what one setting does, whether that is nothing), with all else equal."""
        results: dict[Any, CohortResult | None] = {one.usual: first}
        for value in one.values[1:]:
            if value in one.between and not repeats.all_the_same(results.values()):
                break
            ran = self._train(f"{one.name} = {value_text(value)}", self._values | {one.name: value})
            if ran.result is None:
                return words.setting_fails(one.name, value, ran.error, self._study.search is not None), False
            results[value] = ran.result
        found = {value: result for value, result in results.items() if result is not None}
        return repeats.setting(one.name, found), len(found) > 1 and repeats.all_the_same(found.values())

    def _checked(self, findings: list[Finding], inert: Mapping[str, tuple[Any, ...]], first: Ran) -> Checked:
        """With what was seen of all trainings."""
        refusals = [one.refusal for one in self._watched if one.refusal]
        findings.insert(2, words.ahead(sum(one.ahead for one in self._watched), refusals))
        seen, most = first.watched, max(one.peak for one in self._watched)
        seconds = None
        if seen.begun is not None and seen.tasks:
            seconds = (seen.tasks[-1] - seen.begun) / len(seen.tasks)
            findings.append(words.time(seconds, seen.begun, self._request.limits.seconds))
        findings.append(words.memory(most, self._request.limits.bytes))
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return Checked(self._study.method, created, self._values, tuple(findings), inert, seconds, most)

    def _train(self, what: str, values: Mapping[str, Any], seed: int | None = None) -> Ran:
        """Once, in a process of its own; seed: another one than that of the data. What the trainer does is no error."""
        self._count += 1
        self._listener(Note(f"training {self._count} of at most {self._most}: {what}"))
        ours, watched = self._study.seeds[0], Observations()
        self._watched.append(watched)
        run = Run(values, ours if seed is None else seed, self._stream, transfer=False, data_seed=ours)
        try:
            return Ran(train(self._request, run, self._progress, watched=watched), "", watched)
        except ForeignError as error:
            return Ran(None, str(error), watched)

    def _progress(self, tasks: int) -> None:
        if stops(self._listener):
            raise Interrupted

    def _requested(self) -> Request:
        """As members of a search are requested, one at a time."""
        study, parts = self._study, self._images[PLUGINS][self._study.method]
        path, limits = NumericPath.parse(str(study.numeric_path)), study.limits
        assert limits is not None
        if limits.bytes is None:
            limits = replace(limits, bytes=bytes_free(path, 1))
        every = self._images[PLUGINS]
        networks = {name: files_of(every[name]) for name, kind in study.plugged().items() if kind == "network"}
        files, versions = files_of(parts), versions_of(parts)
        return Request(study.method, Path.cwd(), files, versions, path.device, limits=limits, networks=networks)
