"""The results of a study of protocols: choices, evidence by hashes, costs."""

from collections.abc import Iterable, Mapping

from epsearch.findings.evidence import HashesOfTasks, evidence
from epsearch.findings.facts import unfinished_notes
from epsearch.loop.cautions import of_protocol
from epsearch.loop.protocols import ProtocolLoop
from epsearch.loop.walks import Walk
from epsearch.protocols.protocol import EVALUATION
from epsearch.protocols.registry import sentence
from results.ledger.retry import RetryPolicy
from results.protocols import Cost, Evidence, ProtocolResults, ProtocolRow
from trainers.streams.base import bytes_of_example


def protocol_results(
    loop: ProtocolLoop, facts: Mapping[str, str], waiting: RetryPolicy | None = None
) -> ProtocolResults:
    """Returns the results so far; for the arguments see `Report.results`; it never waits for the ledger."""
    study = loop.study
    hashes_of_tasks: HashesOfTasks = {}
    return ProtocolResults(
        name=study.name,
        dataset=study.dataset,
        method=study.method,
        parameter=study.space.names[0],
        log=study.space.parameters[0].log,
        candidates=tuple(map(float, study.candidates)),
        constants={float(value): loop.records_of(loop.constants(value)) for value in study.candidates},
        rows=tuple(_row(loop, name, hashes_of_tasks) for name in study.protocols),
        config=study.to_dict(),
        facts=facts,
        notes=tuple(unfinished_notes(loop)),  # the page itself says what its units are
    )


def _row(loop: ProtocolLoop, name: str, hashes_of_tasks: HashesOfTasks) -> ProtocolRow:
    walks = [loop.walks[name, order] for order in range(loop.study.orders)]
    protocol = walks[0].protocol
    failures = dict.fromkeys(f"{walk.failure}." for walk in walks if walk.failure)
    return ProtocolRow(
        name=name,
        title=protocol.title,
        sees=sentence(protocol),
        source=protocol.source,
        per_task=protocol.per_task,
        bound=protocol.bound,
        evidence=_evidence(loop, walks, hashes_of_tasks),
        choices={walk.order: walk.schedule for walk in walks if walk.chosen},
        records=loop.records_of(loop.finals(name)),
        cost={walk.order: _cost(loop, walk) for walk in walks if walk.chosen},
        remark=" ".join([of_protocol(loop.study, walks[0].seen_tasks), *failures]).strip(),
    )


def _evidence(loop: ProtocolLoop, walks: Iterable[Walk], hashes_of_tasks: HashesOfTasks) -> Evidence:
    """Returns the evidence of one protocol in all orders."""
    judging = loop.constants(loop.study.candidates[0])
    return evidence(
        loop, ((walk.tried, [run for run in judging if run.order == walk.order]) for walk in walks), hashes_of_tasks
    )


def _cost(loop: ProtocolLoop, walk: Walk) -> Cost:
    """Returns what the choices of a protocol took in one order, as if it were alone."""
    steps, flop = 0.0, 0.0
    for choice in walk.choices:
        for run in choice.tried:
            of_run = loop.cost_of(run, choice.since)
            steps, flop = steps + of_run[1], flop + of_run[0]
    return Cost(steps, flop, _storage(loop, walk))


def _storage(loop: ProtocolLoop, walk: Walk) -> int:
    """Returns the bytes of evaluation examples that a protocol stores beyond their task, in order to choose.

    A choice that is made once needs all tasks in view again; one that is made at every task needs earlier ones' tests.
    """
    view, protocol = walk.protocol.view, walk.protocol
    if view is None or view.stream != EVALUATION or not walk.choices or (protocol.per_task and protocol.newest):
        return 0
    stream, seed = loop.stream(walk.phase, walk.order), loop.study.seeds[0]
    last = max(run.prefix[0] if run.prefix else len(stream.tasks) for run in walk.choices[-1].tried)
    earlier = stream.tasks[: last - 1] if protocol.per_task else stream.tasks[:last]
    examples = sum(len(stream.test(seed, task).labels) for task in earlier)
    examples += 0 if protocol.per_task else sum(stream.size(seed, task) for task in earlier)
    return examples * bytes_of_example(stream)
