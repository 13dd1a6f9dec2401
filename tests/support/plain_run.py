"""Whole runs by a plain loop over one member, on the same batches, with the rules of `reference.py`."""

import itertools

import numpy as np
import torch

from tests.support.reference import PenaltyReference, PlainLearner, gem_direction, step_direction
from trainers.methods import METHODS, Penalty, Projection
from trainers.networks import MLP
from trainers.pool import Pool
from trainers.schedule import generator

STRENGTHS = {"ewc": 10.0, "pi": 0.1, "mas": 0.1, "rwalk": 1.0}


def plain_run(method, member, stream, config):
    """(accuracies [T, T], parameters after every step) of one run without any engine."""
    net = MLP((stream.inputs, *config.hidden, stream.classes))
    start = torch.from_numpy(net.init(generator(member.seed, "init", stream.tasks.start)))[None]
    learner = PlainLearner(net.sizes, unpadded(net, start))

    def examples(inputs, labels):
        return torch.from_numpy(inputs).float() / stream.largest, torch.from_numpy(labels)

    return run_of(learner, examples, method, member, stream, config)


def run_of(learner, examples, method, member, stream, config):
    """The run of a learner; `examples(inputs, labels)` are tensors of what the stream or a pool holds."""
    rule = _rule(method, learner, member, config)
    pool = Pool(stream, member.seed, config, METHODS[method].memory)
    tasks = len(stream.tasks)
    accuracies, trace = np.full((tasks, tasks), np.nan), []
    for task in range(tasks):
        step, sensitivities = 0, []
        for segment in pool.load_task(task):
            for rows in segment.rows:
                trace.append(_step(learner, rule, pool, segment, rows, step, examples))
                step += 1
        if isinstance(rule, PenaltyReference):
            for segment in pool.load_task(task):
                for rows in segment.rows:
                    x, y = _batch(pool, rows[: segment.current], examples)
                    sensitivities.append(_double(learner.sensitivity(x, y)))
            rule.end_task(_double(learner.flat()), sensitivities, pool.shown)
        pool.remember(task)
        for tested in range(task + 1):
            accuracies[task, tested] = learner.accuracy(*examples(*stream.test(member.seed, stream.tasks[tested])))
    return accuracies, trace


def unpadded(net, row):
    """[(weight [out, in], bias [out])] of one member, as torch.nn.Linear has them."""
    sizes = zip(net.sizes, net.sizes[1:], strict=False)
    return [(w[0, :k, :n].T, b[0, :n]) for (k, n), (w, b) in zip(sizes, net.layers(row), strict=True)]


def flat(net, row):
    """One member's parameters [D] in the order of `PlainLearner.flat`."""
    return torch.cat([part.reshape(-1) for pair in unpadded(net, row) for part in pair])


def _rule(method, learner, member, config):
    """How the plain loop makes a step: a penalty with its state, or a function of g and the reference gradients."""
    rate = member.learning_rate or config.learning_rate
    if isinstance(METHODS[method].rule, Penalty):
        theta = _double(learner.flat())
        return PenaltyReference(method, theta, rate, member.strength, config.fisher_every, config.penalty_form)

    def direction(g, references, sizes):
        if not references:
            return g
        if isinstance(METHODS[method].rule, Projection):
            return gem_direction(g, references, config.margin)
        scale = config.a_agem_scale if method == "a_agem" else config.scale
        return step_direction(method, g, references[0], member.epsilon, scale, sizes)

    direction.rate, direction.together = rate, method == "er"
    return direction


def _step(learner, rule, pool, segment, rows, step, examples):
    bounds = np.cumsum([0, segment.current, *segment.parts])
    batches = [_batch(pool, rows[a:b], examples) for a, b in itertools.pairwise(bounds)]
    if getattr(rule, "together", False) and learner.normalises:
        batches = [tuple(torch.cat(parts) for parts in zip(*batches, strict=True))]
    # Reference batches first, the oldest task's before all: with batch normalisation they move the statistics in turn.
    *references, last = [_double(learner.gradient(*batch)) for batch in (*batches[1:], batches[0])]
    gradients = [last, *references]
    if isinstance(rule, PenaltyReference):
        theta = _double(learner.flat())
        rule.before_step(theta, step)
        direction = rule.direction(theta, gradients[0])
    else:
        direction = rule(gradients[0], gradients[1:], (segment.current, segment.reference))
    learner.step(torch.from_numpy(direction).to(learner.flat().dtype), rule.rate)
    return learner.flat()


def _batch(pool, rows, examples):
    return examples(pool.inputs[rows], pool.labels[rows])


def _double(tensor):
    return tensor.double().numpy()
