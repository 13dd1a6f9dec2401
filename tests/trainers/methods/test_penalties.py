"""What EWC, PI, MAS, RWALK and SI promise: importances by hand, on models small enough to know the answer."""

import numpy as np
import pytest
import torch

from tests.support.reference import PenaltyReference
from trainers import Architecture, Hyperparameters
from trainers.methods import METHODS
from trainers.methods.penalty import Step, TaskEnd

DOUBLE = torch.float64
PENALTIES = ("ewc", "pi", "mas", "rwalk", "si")


def row(*values):
    return torch.tensor([values], dtype=DOUBLE)


def end(params, first=True, sensitivities=(), examples=1, form="code", real=None):
    """The end of a task of one member, all of whose parameters are real unless said otherwise."""
    real = torch.ones(params.shape[1], dtype=torch.bool) if real is None else torch.tensor(real)
    values = Hyperparameters(penalty_form=form, damping=0.1)
    return TaskEnd(first, params, real, examples, values, lambda: iter(sensitivities))


class Learner:
    """A member whose parameters are moved by a penalty's rule, given any loss's gradient."""

    def __init__(self, method, params, rate=0.1, strength=0.0, every=3, form="code"):
        self.penalty, self.params, self.rate = METHODS[method].rule, params, rate
        self.state = self.penalty.start(params)
        self.values = Hyperparameters(lr=rate, strength=strength, fisher_every=every, penalty_form=form)
        self.steps = 0

    def step(self, g):
        if self.penalty.refresh and (self.steps + 1) % self.values.fisher_every == 0:
            self.penalty.refresh(self.state, self.params, self.values)
        direction = self.penalty.direction(self.state, Step(self.params, g, self.values))
        self.params.add_(direction, alpha=-self.rate)
        self.steps += 1

    def end_task(self, **changes):
        self.penalty.end_task(self.state, end(self.params, form=self.values.penalty_form, **changes))
        self.steps = 0


def test_fisher_of_a_model_of_two_parameters_by_hand():
    """τ = 3, gradients (1, 2), (3, 0), …: the estimate is refreshed before the steps 2 and 5 (0-based).

    squares before step 2: 1 + 9, 4 + 0; F = 0.9/3 · that = (3, 1.2). Before step 5, the gradients of the steps 2 … 4:
    4 + 0 + 1 and 1 + 16 + 0: F = 0.1·(3, 1.2) + 0.3·(5, 17) = (1.8, 5.22).
    """
    gradients = [(1, 2), (3, 0), (2, 1), (0, 4), (1, 0), (5, 5)]
    learner = Learner("ewc", row(0.0, 0.0))
    fishers = []
    for g in gradients:
        learner.step(row(*map(float, g)))
        fishers.append(learner.state["fisher"][0].tolist())
    assert fishers[1] == [0, 0]
    assert fishers[2] == fishers[4] == pytest.approx([3.0, 1.2])
    assert fishers[5] == pytest.approx([1.8, 5.22])
    learner.end_task()
    assert learner.state["importance"][0].tolist() == pytest.approx([0, 1])  # scaled to [0, 1] over all parameters
    assert (learner.state["squares"] == 0).all() and learner.state["fisher"][0].tolist() == fishers[5]
    assert torch.equal(learner.state["anchor"], learner.params)


def test_rwalks_fisher_never_forgets_within_a_task_but_in_the_papers_form():
    """The same gradients: in the released code the squares add up, 10 + 5 and 4 + 17."""
    for form, expected in (("code", [0.3 + 0.3 * 15, 0.12 + 0.3 * 21]), ("paper", [1.8, 5.22])):
        learner = Learner("rwalk", row(0.0, 0.0), form=form)
        for g in [(1, 2), (3, 0), (2, 1), (0, 4), (1, 0), (5, 5)]:
            learner.step(row(*map(float, g)))
        assert learner.state["fisher"][0].tolist() == pytest.approx(expected)


def test_a_task_shorter_than_the_estimates_window_leaves_plain_sgd():
    """As EWC and RWALK on Split CUB in the released code: 30 steps a task, an estimate every 50."""
    for method in ("ewc", "rwalk"):
        learner, plain = Learner(method, row(1.0, 2.0), strength=10.0, every=50), row(1.0, 2.0)
        for _task in range(2):
            for k in range(30):
                g = row(np.sin(k), np.cos(k))
                learner.step(g)
                plain.add_(g, alpha=-0.1)
            learner.end_task()
        assert torch.allclose(learner.params, plain)


def test_pis_path_integral_on_a_quadratic():
    """Along −∫ g·dθ the loss ½ Σ c θ² falls from start to end: the path is the loss that each parameter has taken away.

    In small steps; and the importance is the path over the squared distance plus ξ.
    """
    curvature, start = torch.tensor([[4.0, 1.0, 0.25]], dtype=DOUBLE), row(1.0, -2.0, 3.0)
    learner = Learner("pi", start.clone(), rate=1e-4)
    for _ in range(20_000):
        learner.step(curvature * learner.params)
    fallen = 0.5 * curvature * (start**2 - learner.params**2)
    assert torch.allclose(learner.state["path"], fallen, rtol=3e-4)
    learner.end_task()
    expected = fallen / ((learner.params - start) ** 2 + 1e-3)
    assert torch.allclose(learner.state["importance"], expected, rtol=3e-4)
    assert (learner.state["path"] == 0).all()


def test_pi_adds_up_over_tasks_and_never_below_zero():
    learner = Learner("pi", row(0.0, 0.0), rate=1.0)
    learner.step(row(-1.0, 1.0))
    learner.end_task()
    first = learner.state["importance"].clone()
    assert torch.allclose(first, row(1 / 1.001, 1 / 1.001))
    learner.state["path"].copy_(row(-5.0, 2.0))  # a path along which the loss has grown
    learner.end_task()
    assert learner.state["importance"][0].tolist() == pytest.approx([first[0, 0].item(), first[0, 1].item() + 2000])


def test_si_keeps_the_sum_over_tasks_above_zero_where_pi_keeps_each_task():
    learner = Learner("si", row(0.0, 0.0), rate=1.0)
    learner.step(row(-1.0, 1.0))
    learner.end_task()
    assert learner.state["importance"][0].tolist() == pytest.approx([1 / 1.1, 1 / 1.1])
    for path, expected in (((-0.05, 2.0), (1 / 1.1 - 0.5, 1 / 1.1 + 20)), ((-5.0, -0.1), (0.0, 1 / 1.1 + 19))):
        learner.state["path"].copy_(row(*path))
        learner.end_task()
        assert learner.state["importance"][0].tolist() == pytest.approx(expected)


def test_the_penalty_is_part_of_the_change_but_not_of_the_gradient_in_the_path():
    """ω += −g·Δθ with the unpenalised g and the whole step."""
    learner = Learner("pi", row(1.0), rate=0.1, strength=2.0)
    learner.state["importance"].fill_(3.0)
    learner.state["anchor"].fill_(0.0)
    learner.step(row(0.5))
    direction = 0.5 + 2 * 2.0 * 3.0 * 1.0
    assert learner.params.item() == pytest.approx(1 - 0.1 * direction)
    assert learner.state["path"].item() == pytest.approx(0.5 * 0.1 * direction)


def test_mas_by_finite_differences():
    """On a real engine: importances against numerical derivatives of Σ ‖logits‖² over every mini-batch."""
    from tests.support.learners import engine_of, learner, untrained
    from tests.support.plain_run import flat
    from tests.support.toy_streams import toy
    from trainers.networks import MLP
    from trainers.numeric_path import NumericPath

    stream, one = toy(range(2), examples=8, classes=2, pixels=3), learner("mas", batch_size=3)
    net = MLP((3, 4, 2))
    for path in (NumericPath(products="mkl"), NumericPath(products="mkl", sparse=True), NumericPath()):
        engine = engine_of(one, stream, path, Architecture(hidden=(4,)))
        with torch.inference_mode():
            learners = untrained(engine, [one])
            engine.load_task(0)
            engine.train(learners, 0, engine.steps)
            theta = learners.params.clone()
            engine.finish(learners, True)
        found = flat(net, learners.state["importance"])
        expected = torch.zeros_like(found, dtype=DOUBLE)
        inputs, labels = shown(stream)
        for begin in range(0, 8, 3):  # mini-batches of 3, 3 and 2
            expected += numerical(net, theta, inputs[begin : begin + 3]).abs() / 8
        assert len(labels) == 8
        assert torch.allclose(found.double(), expected, atol=2e-4, rtol=1e-3)
        assert (learners.state["importance"][0][~net.real] == 0).all()


def shown(stream):
    """The first task's examples of seed 0, in training order."""
    from trainers.schedule import training_order

    order = training_order(0, 0, stream.available, stream.examples)
    inputs, labels = stream.train(0, 0, order)
    return torch.from_numpy(inputs).double() / stream.largest, labels


def numerical(net, theta, x, h=1e-6):
    """Central differences of Σ ‖logits‖² by every parameter, in the order of `flat`."""
    from tests.support.plain_run import flat

    def total(row_):
        outputs = net.activations(net.layers(row_), x[None])
        return float((outputs[-1] ** 2).sum())

    base = theta.double()
    derivatives = torch.zeros_like(base)
    for index in torch.nonzero(net.real)[:, 0].tolist():
        up, down = base.clone(), base.clone()
        up[0, index] += h
        down[0, index] -= h
        derivatives[0, index] = (total(up) - total(down)) / (2 * h)
    return flat(net, derivatives)


def test_mas_replaces_or_adds():
    gradients = [row(1.0, -2.0), row(-3.0, 0.5)]
    for form, second in (("code", [2.0, 1.25]), ("paper", [4.0, 2.5])):
        learner = Learner("mas", row(0.0, 0.0), form=form)
        for expected in ([2.0, 1.25], second):
            learner.end_task(sensitivities=gradients, examples=2)
            assert learner.state["importance"][0].tolist() == pytest.approx(expected)


def test_rwalks_scores_count_twice_after_the_first_task():
    """S ← S + (S + Ω)/2 in the released code, (S + Ω)/2 in the paper; Ω is doubled after the first task."""
    for form, expected in (("code", ([2.0, 4.0], [3.5, 6.5])), ("paper", ([2.0, 4.0], [1.5, 2.5]))):
        learner = Learner("rwalk", row(0.0, 0.0), form=form)
        for task, scores in enumerate(expected):
            learner.state["gain"].copy_(row(2.0, 4.0) if task == 0 else row(1.0, 1.0))
            learner.end_task(first=task == 0)
            assert learner.state["score"][0].tolist() == pytest.approx(scores), (form, task)
            assert (learner.state["gain"] == 0).all() and torch.equal(learner.state["since"], learner.params)


def test_padding_takes_no_part_in_the_scaling():
    """A zero in the padding must not become the smallest importance."""
    learner = Learner("ewc", row(0.0, 0.0, 0.0))
    learner.state["fisher"].copy_(row(2.0, 6.0, 0.0))
    learner.end_task(real=[True, True, False])
    assert learner.state["importance"][0].tolist() == pytest.approx([0, 1, 0])


@pytest.mark.parametrize("form", ["code", "paper"])
@pytest.mark.parametrize("method", PENALTIES)
def test_random_tensors_agree_with_float64(method, form):
    """Two tasks of 25 steps of random gradients, five members with their own rates and λ; every step to 1e-6."""
    rng = np.random.default_rng(0)
    members, size, every = 5, 40, 4
    rates, strengths = rng.uniform(0.001, 0.05, members), rng.uniform(0.0005, 0.005, members)
    start = rng.standard_normal((members, size))
    references = [
        PenaltyReference(method, theta, rate=rate, strength=strength, every=every, form=form)
        for theta, rate, strength in zip(start, rates, strengths, strict=True)
    ]
    theirs = start.copy()
    learner = Learner(method, torch.tensor(start), torch.tensor(rates), torch.tensor(strengths), every, form)
    for _task in range(2):
        for step in range(25):
            g = rng.standard_normal((members, size))
            if learner.penalty.refresh and (step + 1) % every == 0:
                learner.penalty.refresh(learner.state, learner.params, learner.values)
            given = Step(learner.params, torch.tensor(g), learner.values)
            direction = learner.penalty.direction(learner.state, given)
            learner.params.sub_(direction * learner.rate[:, None])
            for m, reference in enumerate(references):
                reference.before_step(theirs[m], step)
                change = -rates[m] * reference.direction(theirs[m], g[m])
                reference.after_step(g[m], change)
                theirs[m] += change
            assert np.abs(learner.params.numpy() - theirs).max() <= 1e-6 and np.abs(theirs).max() < 100
        sensitivities = [rng.standard_normal((members, size)) for _ in range(3)]
        learner.end_task(sensitivities=map(torch.tensor, sensitivities), examples=7, first=_task == 0)
        for m, reference in enumerate(references):
            reference.end_task(theirs[m], [one[m] for one in sensitivities], 7)
            found = learner.state["importance"][m].numpy()
            assert np.abs(found - reference.importance).max() <= 1e-6 * max(1, np.abs(found).max())
            assert np.abs(found).max() > 0
