"""What a search has found so far, in the shape that its report takes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from epsearch.failures.errors import UsageError
from epsearch.findings.evaluated import looks
from epsearch.findings.facts import unfinished
from epsearch.findings.listing import opened
from epsearch.ledger.damage import unused_in_words
from epsearch.loop import race
from epsearch.loop.certificates import tolerance
from epsearch.loop.jobs import is_self_reported
from epsearch.loop.search import SearchLoop
from epsearch.plugins.loading import NOISY, PLUGINS
from results.labels import count_text
from results.ledger.record import RunRecord
from results.ledger.retry import Patience
from results.metrics import average_accuracy
from results.points import Point, group, point_of, point_text
from results.search import Evaluated, Race, SearchResults, SearchRound, Trainer
from search_spaces.space import Parameter


def search_results(loop: SearchLoop, facts: Mapping[str, str], waiting: Patience | None = None) -> SearchResults:
    """What the ledger knows of a study, in the shape the report takes; arguments as of `Reporting.results`.

    Raises UsageError before the first round is finished, and where no value has a score.
    """
    best, study = loop.best, loop.study
    if best is None and loop.done:
        raise UsageError(
            f"study {study.name!r} has no value left to choose: members of every one diverged; try a smaller --lr"
        )
    if best is None:
        damage = f" ({unused_in_words(unused)})" if (unused := loop.unused()) else ""
        raise UsageError(f"study {study.name!r} has no finished round yet{damage}; run it again to go on")
    return _results(loop, best.point, best.value, facts, waiting)


def search_so_far(loop: SearchLoop, waiting: Patience | None = None) -> SearchResults | None:
    """The same also while the first round is open, for figures that grow; None before the first member.

    What is chosen is then the point that leads by the members that are there: no verdict may stand on it.
    """
    best = loop.best
    if best is not None:
        return _results(loop, best.point, best.value, {}, waiting)
    names, records = loop.study.space.names, loop.search_records()  # also those of the round that is open
    members = group(records, names, (point for one in loop.rounds() for point in one.points))
    means = {
        point: float(np.mean([average_accuracy(record.accuracies) for record in there]))
        for point, there in members.items()
        if there and all(record.status == "ok" for record in there)
    }
    if not means:
        return None
    leading = max(means, key=means.__getitem__)
    return replace(_results(loop, leading, means[leading], {}, waiting), search=records)


def _of_finished_rounds(loop: SearchLoop) -> tuple[RunRecord, ...]:
    """The members of the search, without those of rounds that are open: their seeds are not all there.

    A verdict over points of which some have a seed more would change with each member that comes in.
    """
    names, records, known = loop.study.space.names, loop.search_records(), set[str]()
    for one in (loop, *loop.earlier):
        finished = {point: () for done in one.strategy.rounds for point in done.points}
        known |= {record.key for own in group(one.search_records(), names, finished).values() for record in own}
    return tuple(record for record in records if record.key in known)


def _results(
    loop: SearchLoop, chosen: Point, score: float, facts: Mapping[str, str], waiting: Patience | None
) -> SearchResults:
    study, space = loop.study, loop.study.space
    searched = zip(*(one.study.space.parameters for one in (*loop.earlier, loop)), strict=True)
    return SearchResults(
        name=study.name,
        dataset=study.dataset,
        method=study.method,
        score_on=study.score_on,
        parameters=space.names,
        log=tuple(one.name for one in space.parameters if one.log),
        strategy=study.strategy,
        chosen=chosen,
        chosen_score=score,
        baseline=study.baseline,
        domain=tuple(map(_hull, searched)),
        seeds=study.seeds,
        eval_seeds=study.final_seeds,
        rounds=tuple(
            SearchRound(one.number, one.points, one.scores, one.span, one.winners, one.note) for one in loop.rounds()
        ),
        search=_of_finished_rounds(loop),
        evaluation=loop.evaluation_records(),
        config=study.shown(),
        facts=facts,
        notes=tuple(_notes(loop)),
        certificates=tuple(loop.certificates[key] for key in sorted(loop.certificates)),  # however they came
        tolerance=tolerance(study, loop.images),
        trainer=_trainer(loop) if study.foreign else None,
        race=_race(loop),
        looks=_looks(loop, waiting),
        disjointness=loop.proof.sentence,
        grown=tuple(one.heading() for one in loop.earlier),
    )


def _trainer(loop: SearchLoop) -> Trainer:
    """What is to be said of somebody else's trainer."""
    parts = loop.images.get(PLUGINS, {}).get(loop.study.method, {})
    return Trainer(NOISY not in parts, sum(is_self_reported(record.fingerprint) for record in loop.records.values()))


def _looks(loop: SearchLoop, waiting: Patience | None) -> tuple[Evaluated, ...]:
    """Every choice that has been evaluated, also by other studies: a loop knows its own members alone."""
    with opened(loop.study.storage, waiting) as store:
        return looks(loop, store)


def _hull(parameters: Sequence[Parameter]) -> tuple[float, float] | None:
    """From the lowest to the highest end of a parameter in all searches of a study; None where there are choices."""
    ends = [(one.low, one.high) for one in parameters if one.low is not None and one.high is not None]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if len(ends) == len(parameters) else None


def _race(loop: SearchLoop) -> Race | None:
    """What the race saved, in members of the search; None without one."""
    if not loop.study.race:
        return None
    shares = loop.strategist.given().values()
    return Race(sum(map(len, shares)), len(shares) * len(loop.study.seeds), race.ALPHA)


def _notes(loop: SearchLoop) -> list[str]:
    """What a reader must know to judge the figures, besides what the report sees by itself."""
    notes = unfinished(loop)
    if loop.study.foreign:
        said = _trainer(loop).self_reported
        if said:
            of = "all" if said == len(loop.records) else f"{said} of {len(loop.records)}"
            notes.append(f"Accuracies are self-reported: {of} members were tested by the trainer, not by epsearch.")
        if not loop.study.compared:
            notes.append(
                "The trainer declares no baseline, and --against names none: the choice is compared with nothing."
            )
    if not loop.proof.sound:
        notes.append(f"Search and evaluation are not wholly apart: {loop.proof.sentence}.")
    diverged = [record for record in loop.records.values() if record.status == "diverged"]
    if diverged:
        names = loop.study.space.names
        values = dict.fromkeys(point_text(names, point_of(record, names)) for record in diverged)
        lost = f"{count_text(len(diverged), 'member')} diverged ({'; '.join(values)})"
        notes.append(f"{lost}; a value that loses a seed has no score.")
    return notes
