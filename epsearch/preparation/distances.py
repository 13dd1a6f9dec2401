"""Steps between tests inside tasks, by method, and the share of a run that these tests take."""

from collections.abc import Iterator, Mapping
from typing import Any

from epsearch.loop.content import DISTANCES, measure_of, measures_transfer, stored_method
from epsearch.loop.jobs import Run
from epsearch.preparation.checks import CHECKS
from epsearch.study.description import Study
from epsearch.study.parsers import AUTO
from trainers.streams.base import TaskStream


def distances(study: Study) -> dict[str, Any]:
    """Returns the computed distances of a study, for the description of the stream; {} where none are computed.

    Each method has one on all streams and for all values that are searched, as min-ACC falls with more points: the
    least that takes at most the share `MEASURING` of every stream's run, with the study's own values.
    """
    if study.measure is None or study.measure[0] != AUTO:
        return {}
    from trainers.cost.flops import measured_every  # brings torch along

    steps: dict[str, int] = {}
    for run, stream in _runs(study):
        transfer, images = measures_transfer(run.phase), study.measure[1]
        every, _ = measured_every(run.learner, stream, study.architecture, transfer, images)
        name = stored_method(run.learner)
        steps[name] = max(steps.get(name, 1), every)
    return {DISTANCES: steps}


def costs_of_inner_tests(study: Study, images: Mapping[str, Any]) -> tuple[tuple[str, int, float], ...]:
    """Returns the tests inside tasks of each method: its title, steps between two of them, their share of a run's FLOP.

    The share is that of the stream where it is the largest. images: the stream's description.
    """
    if study.measure is None:
        return ()
    from trainers.cost.flops import measured_share

    shares: dict[tuple[str, int], float] = {}
    for run, stream in _runs(study):
        if (measure := measure_of(study, images, run)) is not None:
            every, count = measure
            share = measured_share(run.learner, stream, study.architecture, measures_transfer(run.phase), count)
            key = (run.learner.declared.title, every)
            shares[key] = max(shares.get(key, 0.0), share(every))
    return tuple((*key, share) for key, share in shares.items())


def _runs(study: Study) -> Iterator[tuple[Run, TaskStream]]:
    """Yields a run of each method on each stream that it is trained on, with the stream."""
    scored = {getattr(study, "scored_on", "cv")} if study.searches else set()
    learners = [learner for learner in CHECKS[study.kind].trained(study) if learner.declared.union is None]
    for phase in sorted({"eval", *scored}):
        stream = study.request(phase).open()
        yield from ((Run(phase, learner), stream) for learner in learners)
