"""Whole runs by a plain loop over one member, on the same batches, with the rules of `reference.py`.

Of a fork (`trainers.forks`), a run whose values change on the way.
"""

import itertools

import numpy as np
import torch

from epsearch.testing.toy import suit_stream
from tests.support.reference import (
    Facts,
    LossesReference,
    PenaltyReference,
    PlainLearner,
    SubspacesReference,
    gem_direction,
    step_direction,
)
from trainers.forks import values_at
from trainers.methods import Losses, Penalty, Projection, Subspaces
from trainers.networks import MLP
from trainers.pool import Pool
from trainers.scenarios import CLASS
from trainers.schedule import generator
from trainers.streams.competing import scenario_of


def plain_run(one, stream, hidden):
    """(accuracies [T, T], parameters after every step) of one run without any engine."""
    stream = suit_stream(one.declared, stream)
    net = MLP((stream.inputs, *hidden, stream.outputs))
    start = torch.from_numpy(net.init(generator(one.seed, "init", min(stream.tasks))))[None]
    network = PlainLearner(net.sizes, unpadded(net, start))
    network.per_task = stream.classes if scenario_of(stream) == CLASS else None

    def examples(inputs, labels):
        return torch.from_numpy(inputs).float() / stream.largest, torch.from_numpy(labels)

    return run_of(network, examples, one, stream)


def run_of(network, examples, one, stream):
    """As `plain_run` on a given network; `examples(inputs, labels)` are tensors of what the stream or a pool holds."""
    tasks = len(stream.tasks)
    # One of each values, in step: how many rows a batch has depends on them, what is remembered does not.
    pools = {
        values: Pool(stream, one.seed, one.declared, values) for values in (values_at(one, k) for k in range(tasks))
    }
    rule = None
    accuracies, trace = np.full((tasks, tasks), np.nan), []
    for task in range(tasks):
        if not stream.size(one.seed, stream.tasks[task]):
            continue  # of joint training, before its last task
        step, values = 0, values_at(one, task)
        network.task = task  # the newest one, on which the outputs of a class-incremental test depend
        rule, pool = _rule(network, one, values, rule), pools[values]
        for segment in {known: pool.load_task(task) for known, pool in pools.items()}[values]:
            for rows in segment.rows:
                trace.append(_step(network, rule, pool, segment, rows, step, examples))
                step += 1
        _end_task(rule, network, pool, values, examples)
        for every in pools.values():
            every.remember(task)
        for tested in range(task + 1):
            accuracies[task, tested] = network.accuracy(*examples(*stream.test(one.seed, stream.tasks[tested])))
    return accuracies, trace


def _end_task(rule, network, pool, values, examples):
    """What a rule with state does when the newest task ends."""
    if isinstance(rule, PenaltyReference):
        batches = [rows[: part.current] for part in pool.load_task(network.task) for rows in part.rows]
        batches = batches[: -(-pool.shown // values.batch_size)]  # of the first pass
        sensitivities = [_double(network.sensitivity(*_batch(pool, rows, examples))) for rows in batches]
        rule.end_task(_double(network.flat()), sensitivities, sum(map(len, batches)))
    if isinstance(rule, LossesReference):
        rule.end_task(network)
    if isinstance(rule, SubspacesReference):
        rule.end_task(network, _batch(pool, pool.sample(values.representations), examples)[0])


def unpadded(net, row):
    """[(weight [out, in], bias [out])] of one member, as torch.nn.Linear has them."""
    sizes = zip(net.sizes, net.sizes[1:], strict=False)
    return [(w[0, :k, :n].T, b[0, :n]) for (k, n), (w, b) in zip(sizes, net.layers(row), strict=True)]


def flat(net, row):
    """One member's parameters [D] in the order of `PlainLearner.flat`."""
    return torch.cat([part.reshape(-1) for pair in unpadded(net, row) for part in pair])


def _rule(network, one, values, before):
    """How the plain loop makes a step: a rule with state, or a function of g and the reference gradients.

    before: that of the task before, whose state is kept; None in the first.
    """
    rule = one.declared.rule
    if isinstance(rule, (Losses, Subspaces)):
        made = SubspacesReference(values) if isinstance(rule, Subspaces) else LossesReference(one.method, values)
        found = before or made
        found.values, found.rate = values, values.lr
        return found
    if isinstance(rule, Penalty):
        own = {"rate": values.lr, "strength": values.strength}
        own |= {"every": values.get("fisher_every"), "form": values.get("penalty_form")}
        own |= {"damping": values.get("damping")}
        if before is None:
            return PenaltyReference(one.method, _double(network.flat()), **own)
        vars(before).update(own)
        return before

    def direction(g, references, sizes, losses):
        if not references:
            return g
        if isinstance(rule, Projection):
            return gem_direction(g, references, values.margin)
        scale = values.get("a_agem_scale", values.get("scale"))
        facts = Facts(sizes, network.task + 1, losses, values.get("sensitivity", 0.0))
        return step_direction(one.method, g, references[0], values.get("epsilon"), scale, facts)

    direction.rate, direction.together = values.lr, one.method == "er"
    return direction


def _step(network, rule, pool, segment, rows, step, examples):
    bounds = np.cumsum([0, segment.current, *segment.parts])
    batches = [_batch(pool, rows[a:b], examples) for a, b in itertools.pairwise(bounds)]
    if isinstance(rule, LossesReference):
        names = [[pool.inputs[row].tobytes() for row in rows[a:b]] for a, b in itertools.pairwise(bounds)]
        network.step(rule.gradient(network, batches, names), rule.rate)
        return network.flat()
    if getattr(rule, "together", False) and network.normalises:
        batches = [tuple(torch.cat(parts) for parts in zip(*batches, strict=True))]
    # Reference batches first, the oldest task's before all: with batch normalisation they move the statistics in turn.
    *references, last = [(_double(network.gradient(*batch)), network.loss) for batch in (*batches[1:], batches[0])]
    gradients, losses = zip(last, *references, strict=True)
    if isinstance(rule, PenaltyReference):
        theta = _double(network.flat())
        rule.before_step(theta, step)
        direction = rule.direction(theta, gradients[0])
    elif isinstance(rule, SubspacesReference):
        direction = rule.direction(network, gradients[0])
    else:
        direction = rule(gradients[0], gradients[1:], (segment.current, segment.reference), losses)
    network.step(torch.from_numpy(direction).to(network.flat().dtype), rule.rate)
    if isinstance(rule, PenaltyReference):
        # What the step was, whatever an optimizer made of the direction.
        rule.after_step(gradients[0], _double(network.flat()) - theta)
    return network.flat()


def _batch(pool, rows, examples):
    return examples(pool.inputs[rows], pool.labels[rows])


def _double(tensor):
    return tensor.double().numpy()
