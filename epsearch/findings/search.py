"""What a search has found so far, in the shape that its report takes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from epsearch.failures.errors import UsageError
from epsearch.findings.evaluated import looks
from epsearch.findings.facts import unfinished
from epsearch.findings.listing import opened
from epsearch.ledger.damage import unused_in_words
from epsearch.loop.cautions import cautions
from epsearch.loop.certificates import tolerance
from epsearch.loop.jobs import is_self_reported
from epsearch.loop.search import SearchLoop
from epsearch.loop.strategy_driver import race
from epsearch.plugins.loading import NOISY, PLUGINS
from results.labels import count_text
from results.ledger.record import RunRecord
from results.ledger.retry import Patience
from results.objectives import of_record
from results.points import Point, group, point_of, point_text
from results.search import Evaluated, Race, SearchResults, SearchRound, Trainer
from search_spaces.space import Parameter
from search_spaces.strategy import Round
from trainers.streams.permuted import PermutedStream


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
    """The same with the rounds that are open, for figures that grow; None before the first member.

    While the first one is, the point that leads by the members that are there is chosen. No verdict may stand on it.
    """
    best = loop.best
    if best is not None:
        return _so_far(loop, best.point, best.value, waiting)
    names, records = loop.study.space.names, loop.search_records()
    members = group(records, names, (point for one in loop.rounds() for point in one.points))
    means = {
        point: float(np.mean([of_record(loop.study.objective, record) for record in there]))
        for point, there in members.items()
        if there and all(record.status == "ok" for record in there)
    }
    if not means:
        return None
    leading = max(means, key=means.__getitem__)
    return _so_far(loop, leading, means[leading], waiting)


def _so_far(loop: SearchLoop, chosen: Point, score: float, waiting: Patience | None) -> SearchResults:
    """With the rounds that are open and their members."""
    rounds = tuple(map(_shown, loop.rounds()))
    return replace(_results(loop, chosen, score, {}, waiting), rounds=rounds, search=loop.search_records())


def _finished_rounds(loop: SearchLoop) -> tuple[SearchRound, ...]:
    """The rounds whose members are all there: of others, some points have a seed more, and each member changes them."""
    open_ones = {one.strategy.rounds[-1].points for one in (loop, *loop.earlier) if not one.strategy.done}
    finished = [_shown(one) for one in loop.rounds() if one.points not in open_ones]
    return tuple(replace(one, number=number) for number, one in enumerate(finished, start=1))


def _shown(one: Round) -> SearchRound:
    return SearchRound(one.number, one.points, one.scores, one.span, one.winners, one.note, one.named)


def _of_rounds(loop: SearchLoop, rounds: Sequence[SearchRound]) -> tuple[RunRecord, ...]:
    """The members of the search that belong to some of its rounds, in their order."""
    points = dict.fromkeys(point for one in rounds for point in one.points)
    records = loop.search_records()
    known = {record.key for own in group(records, loop.study.space.names, points).values() for record in own}
    return tuple(record for record in records if record.key in known)


def _results(
    loop: SearchLoop, chosen: Point, score: float, facts: Mapping[str, str], waiting: Patience | None
) -> SearchResults:
    study, space, rounds, known = loop.study, loop.study.space, _finished_rounds(loop), loop.certificates
    searched = zip(*(one.study.space.parameters for one in (*loop.earlier, loop)), strict=True)
    evaluated = _looks(loop, waiting)  # before the notes, which say where not all of them could be found
    return SearchResults(
        name=study.name,
        dataset=study.dataset,
        method=study.method,
        score_on=study.score_on,
        parameters=space.names,
        log=tuple(one.name for one in space.parameters if one.log),
        objective=study.maximised,
        strategy=study.strategy,
        chosen=chosen,
        chosen_score=score,
        baseline=study.baseline,
        domain=tuple(map(_hull, searched)),
        seeds=study.seeds,
        eval_seeds=study.final_seeds,
        rounds=rounds,
        search=_of_rounds(loop, rounds),
        evaluation=loop.evaluation_records(),
        config=study.shown(),
        facts=facts,
        notes=tuple(_notes(loop)),
        certificates=tuple(known[key] for key in sorted(known) if key in loop.records),  # however they came
        moved=tuple(known[key].accuracy_difference for key in sorted(known) if key not in loop.records),
        tolerance=tolerance(study, loop.images),
        trainer=_trainer(loop) if study.foreign else None,
        choice=loop.driver.choice,
        race=_race(loop),
        looks=evaluated,
        disjointness=_apart(loop),
        grown=tuple(one.heading() for one in loop.earlier),
    )


def _apart(loop: SearchLoop) -> str:
    """The proof; of a permuted stream with what its tasks share by construction."""
    permuted = loop.proof.sentence and loop.images.get("kind") == PermutedStream.kind
    return loop.proof.sentence + ("; all tasks show the same images, permuted" if permuted else "")


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
    study, shares = loop.study, loop.driver.assigned_seeds().values()
    return Race(sum(map(len, shares)), len(shares) * len(study.seeds), race.ALPHA, loop.dropped())


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
    if loop.evaluation_log.trouble:
        notes.append(f"Choices that were evaluated in other ledgers are not counted: {loop.evaluation_log.trouble}.")
    if not loop.proof.sound:
        notes.append(f"Search and evaluation, or training and tests, are not wholly apart: {loop.proof.sentence}.")
    if loop.proof.warning:
        notes.append(f"{loop.proof.warning}.")
    notes += cautions(loop.study, loop.chosen())
    diverged = [record for record in loop.records.values() if record.status == "diverged"]
    if diverged:
        names = loop.study.space.names
        values = dict.fromkeys(point_text(names, point_of(record, names)) for record in diverged)
        lost = f"{count_text(len(diverged), 'member')} diverged ({'; '.join(values)})"
        notes.append(f"{lost}; a value that loses a seed has no score.")
    return notes
