"""Results of a search, finished or not, for its report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from epsearch.failures.errors import UsageError
from epsearch.findings.claims import stored_claim
from epsearch.findings.evaluations import evaluations
from epsearch.findings.evidence import evidence
from epsearch.findings.facts import full_size, unfinished_notes, unit_notes
from epsearch.findings.listing import open_ledger
from epsearch.ledger.damage import describe_unused
from epsearch.loop.cautions import cautions
from epsearch.loop.certificates import tolerance
from epsearch.loop.jobs import is_self_reported
from epsearch.loop.search import SearchLoop
from epsearch.loop.strategy_driver import race
from epsearch.plugins.loading import NOISY, PLUGINS
from epsearch.protocols.registry import protocol, sentence
from epsearch.study.kinds import Search
from results.labels import count_text
from results.ledger.record import RunRecord
from results.ledger.retry import RetryPolicy
from results.objectives import of_record
from results.points import Point, group, point_of, point_text
from results.search import Race, SearchResults, SearchRound
from search_spaces.space import Parameter
from search_spaces.strategy import Round
from trainers.hyperparameters import LR, OF_EVERY_METHOD
from trainers.methods import method
from trainers.streams.permuted import PermutedStream, RotatedStream

MOTIONS = {PermutedStream.kind: "permuted", RotatedStream.kind: "rotated"}
"""Kind of a stream whose tasks all have the same images -> what a task does to them."""
ALIKE = (
    "memory",
    "memory_batch",
    "batch_size",
    *(hyperparameter.name for hyperparameter in OF_EVERY_METHOD if hyperparameter.later),
)
"""Hyperparameters that the paper has the same in all rows of a table."""


def search_results(loop: SearchLoop, facts: Mapping[str, str], waiting: RetryPolicy | None = None) -> SearchResults:
    """Returns the results of the finished rounds; for the arguments see `Report.results`.

    Raises UsageError before the first round is finished, and if no value has a score.
    """
    best, study = loop.best, loop.study
    if best is None and loop.done:
        raise UsageError(
            f"study {study.name!r} has no value left to choose: members of every one diverged; {_instead(study)}"
        )
    if best is None:
        damage = f" ({describe_unused(unused)})" if (unused := loop.unused_records()) else ""
        raise UsageError(f"study {study.name!r} has no finished round yet{damage}; run it again to go on")
    return _results(loop, best.point, best.value, facts, waiting)


def _instead(study: Search) -> str:
    """Returns what to do where every member has diverged."""
    searched = study.space.names
    return (
        f"try other values of {', '.join(searched)}" if study.foreign or LR.name in searched else "try a smaller --lr"
    )


def search_so_far(loop: SearchLoop, waiting: RetryPolicy | None = None) -> SearchResults | None:
    """Returns the results with open rounds, for growing figures; None before the first member.

    During the first round the leading point stands in for the choice; no verdict can be based on it.
    """
    best = loop.best
    if best is not None:
        return _so_far(loop, best.point, best.value, waiting)
    names, records = loop.study.space.names, loop.search_records()
    members = group(records, names, (point for round in loop.rounds() for point in round.points))
    means = {
        point: float(np.mean([of_record(loop.study.objective, record) for record in stored]))
        for point, stored in members.items()
        if stored and all(record.status == "ok" for record in stored)
    }
    if not means:
        return None
    leading = max(means, key=means.__getitem__)
    return replace(_so_far(loop, leading, means[leading], waiting), leading=True)


def _so_far(loop: SearchLoop, chosen: Point, score: float, waiting: RetryPolicy | None) -> SearchResults:
    """Returns the results with open rounds and their members."""
    rounds = tuple(_search_round(loop, round) for round in loop.rounds())
    return replace(_results(loop, chosen, score, {}, waiting), rounds=rounds, search=loop.search_records())


def _finished_rounds(loop: SearchLoop) -> tuple[SearchRound, ...]:
    """Returns the rounds with all their members: in others, points differ in their number of seeds."""
    unfinished = {part.strategy.rounds[-1].points for part in (loop, *loop.earlier) if not part.strategy.done}
    finished = [_search_round(loop, round) for round in loop.rounds() if round.points not in unfinished]
    return tuple(replace(round, number=number) for number, round in enumerate(finished, start=1))


def _search_round(loop: SearchLoop, round: Round) -> SearchRound:
    """Returns a round with the scores that were measured, beside those that are predicted."""
    search_round = SearchRound(
        round.number, round.points, round.scores, round.span, round.winners, round.note, round.named
    )
    if not loop.study.extrapolates:
        return search_round
    return replace(search_round, scores=tuple(map(loop.mean_of, round.points)), predicted=round.scores)


def _of_rounds(loop: SearchLoop, rounds: Sequence[SearchRound]) -> tuple[RunRecord, ...]:
    """Returns the members of some rounds of the search, in the order of their storage."""
    points = dict.fromkeys(point for round in rounds for point in round.points)
    records = loop.search_records()
    keys = {record.key for members in group(records, loop.study.space.names, points).values() for record in members}
    return tuple(record for record in records if record.key in keys)


def _results(
    loop: SearchLoop, chosen: Point, score: float, facts: Mapping[str, str], waiting: RetryPolicy | None
) -> SearchResults:
    study, space, rounds, certificates = loop.study, loop.study.space, _finished_rounds(loop), loop.certificates
    parameters = zip(*(part.study.space.parameters for part in (*loop.earlier, loop)), strict=True)
    with open_ledger(study.storage, waiting) as store:  # a loop has its own members alone
        evaluated = evaluations(loop, store)  # before the notes, which name trouble with the log of evaluations
    return SearchResults(
        name=study.name,
        dataset=study.dataset,
        method=study.method,
        score_on=study.scored_on,
        parameters=space.names,
        limits=_limits(study),
        log=tuple(parameter.name for parameter in space.parameters if parameter.log),
        objective=study.maximised,
        strategy=study.strategy,
        chosen=chosen,
        chosen_score=score,
        baseline=study.baseline,
        domain=tuple(map(_hull, parameters)),
        seeds=study.seeds,
        eval_seeds=study.final_seeds,
        orders=study.orders,
        rounds=rounds,
        search=_of_rounds(loop, rounds),
        evaluation=loop.evaluation_records(),
        references=loop.references(),
        config=study.to_dict(),
        facts=facts,
        notes=tuple(_notes(loop)),
        certificates=tuple(certificates[key] for key in sorted(certificates) if key in loop.records),
        perturbed=tuple(
            certificates[key].accuracy_difference for key in sorted(certificates) if key not in loop.records
        ),
        tolerance=tolerance(study, loop.images),
        trainer_repeats=_trainer_repeats(loop) if study.foreign else None,
        choice=loop.driver.choice,
        stages=loop.stages,
        task_limit=study.task_limit if study.extrapolates else 0,
        grown=loop.grown_records(),
        race=_race(loop),
        evaluated_choices=evaluated,
        disjointness=_disjointness(loop),
        earlier=tuple(part.heading() for part in loop.earlier),
        comparable=comparable(study, chosen),
        claim=stored_claim(loop),
        sees=sentence(protocol(study.protocol)),
        # Of tasks of their own `disjointness` says the same, from before the training.
        evidence=evidence(loop, loop.tests()) if loop.done and study.scored_on != "cv" else None,
    )


def comparable(study: Search, chosen: Point) -> bool:
    """Returns whether the sizes of the evaluation are the paper's, also those that were searched."""
    values, searched = study.hyperparameters, dict(zip(study.space.names, chosen, strict=True))
    same = all(searched[name] == getattr(values, name) for name in ALIKE if name in searched)
    return same and full_size(study, values.memory)


def _disjointness(loop: SearchLoop) -> str:
    """Returns the proof that search and evaluation share no data.

    For permuted or rotated tasks it adds that all tasks show the same images.
    """
    motion = MOTIONS.get(loop.images.get("kind", ""), "") if loop.disjointness.sentence else ""
    return loop.disjointness.sentence + (f"; all tasks show the same images, {motion}" if motion else "")


def _trainer_repeats(loop: SearchLoop) -> bool:
    """Returns True if a plug-in trainer declares that the same seed gives the same result."""
    return NOISY not in loop.images.get(PLUGINS, {}).get(loop.study.method, {})


def _hull(parameters: Sequence[Parameter]) -> tuple[float, float] | None:
    """Returns the lowest and the highest end of a parameter in all parts of a search; None for choices."""
    ends = [(part.low, part.high) for part in parameters if part.low is not None and part.high is not None]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if len(ends) == len(parameters) else None


def _limits(study: Search) -> dict[str, tuple[float, float]]:
    """Returns the smallest and the largest number that a search may try, by hyperparameter."""
    declared = method(study.method).declarations(study.space.names)
    return {one.name: (one.smallest_searched, one.high) for one in declared if not one.choices}


def _race(loop: SearchLoop) -> Race | None:
    """Returns the savings of the race, in members of the search; None without a race."""
    if not loop.study.race:
        return None
    study, shares = loop.study, loop.driver.assigned_seeds().values()
    return Race(sum(map(len, shares)), len(shares) * len(study.units), race.ALPHA, loop.dropped_points())


def _notes(loop: SearchLoop) -> list[str]:
    """Returns the cautions that a reader of the figures needs, besides those that the report derives."""
    notes = [*unit_notes(loop.study), *unfinished_notes(loop)]
    if loop.study.foreign:
        count = sum(is_self_reported(record.fingerprint) for record in loop.records.values())
        if count:
            members = "all" if count == len(loop.records) else f"{count} of {len(loop.records)}"
            notes.append(
                f"Accuracies are self-reported: {members} members were tested by the trainer, not by epsearch."
            )
        if not loop.study.compared:
            notes.append(
                "The trainer declares no baseline, and --against names none: the choice is compared with nothing."
            )
    if loop.evaluation_log.trouble:
        notes.append(f"Choices that were evaluated in other ledgers are not counted: {loop.evaluation_log.trouble}.")
    if not loop.disjointness.sound:
        notes.append(f"Search and evaluation, or training and tests, share data: {loop.disjointness.sentence}.")
    if loop.disjointness.warning:
        notes.append(f"{loop.disjointness.warning}.")
    notes += cautions(loop.study, loop.choice(), loop.seen_tasks)
    of_points = (record for record in loop.records.values() if record.method not in loop.study.reference_rows)
    diverged = [record for record in of_points if record.status == "diverged"]
    if diverged:
        names = loop.study.space.names
        values = dict.fromkeys(point_text(names, point_of(record, names)) for record in diverged)
        lost = f"{count_text(len(diverged), 'member')} diverged ({'; '.join(values)})"
        notes.append(f"{lost}; a value that loses a seed has no score.")
    return notes
