"""Promises of methods: `method_checks`."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from epsearch.testing.promises import Check, checks_of, sure
from epsearch.testing.toy import black, pairs, suit_stream, toy
from trainers.cohort import Architecture, Cohort, CohortResult, Learner
from trainers.hyperparameters import Hyperparameter, Hyperparameters, Value
from trainers.methods import METHODS, PLUGGED, plug
from trainers.methods.rules import ALL, NORM, RESERVOIR, SIGN, Columns, Method, Mix, Mixing, Products
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort
from trainers.scenarios import CLASS, DOMAIN, TASK
from trainers.schedule import generator
from trainers.streams.base import TaskStream

NETWORK = Architecture(hidden=(24, 16))
USUAL: dict[str, Value] = {
    **{"epsilon": 0.3, "lr": 0.1, "batch_size": 4, "memory": 3, "memory_batch": 8, "fisher_every": 5, "strength": 1.0},
}
TENSORS = NumericPath()
COMPILED = NumericPath(products="mkl")
UNDER_TEST = "epsearch.testing:method"  # begins its name, where it has none
RESULT = ("accuracies", "initial", "within", "violations", "diverged_task", "diverged_step", "fingerprints")
NO_MIXING = "its rule is no Mixing"
FEW = 0.01  # of the parameters: an importance, or a unit near zero, may make a rounding error large
CLOSE = 1e-4  # of parameters after some fifty steps in float32, whichever engine takes them


class MethodCase:
    """A method with values for its checks.

    values, others: see `method_checks`; path: the numeric path, by default the compiled one if Numba is installed.
    """

    def __init__(
        self,
        method: Method | str,
        values: Mapping[str, Value] | None = None,
        others: Mapping[str, Value] | None = None,
        path: NumericPath | None = None,
    ) -> None:
        self.name = method if isinstance(method, str) else self._register(method)
        self.method = PLUGGED.get(self.name) or METHODS[self.name]
        self.path = path or (COMPILED if find_spec("numba") else TENSORS)
        declared = {hyperparameter.name: hyperparameter for hyperparameter in self.method.hyperparameters}
        every = USUAL | dict(values or {})
        self.values = {
            name: every[name] if name in every and hyperparameter.fits(every[name]) else hyperparameter.default
            for name, hyperparameter in declared.items()
        }
        self.others = {
            name: _other(hyperparameter, self.values[name]) for name, hyperparameter in declared.items()
        } | dict(others or {})

    @property
    def grows(self) -> bool:
        """True if its network grows."""
        return isinstance(self.method.rule, Columns)

    def learner(self, seed: int = 0, /, **changes: Value) -> Learner:
        """Returns a learner with the usual values, except for changes."""
        return Learner.of(self.name, seed, **self.values | changes)

    def train(self, learners: Sequence[Learner], stream: TaskStream, path: NumericPath | None = None) -> CohortResult:
        """Trains learners together, from the start."""
        return train_cohort(
            Cohort(tuple(learners)), Training(suit_stream(self.method, stream), NETWORK, path or self.path)
        )

    def acting(self, tasks: int) -> set[str]:
        """Returns hyperparameters that change the final parameters after a number of tasks."""
        stream = toy(range(tasks), examples=66)
        base = self.train([self.learner()], stream).fingerprints[0]
        return {
            name
            for name in self.method.names
            if self.train([self.learner(**{name: self.others[name]})], stream).fingerprints[0] != base
        }

    def _register(self, method: Method) -> str:
        names = [name for name, registered in (METHODS | PLUGGED).items() if registered is method]
        if names:
            return names[0]
        # One of its own: checks of several methods may be made before any is run.
        name = f"{UNDER_TEST}_{len(PLUGGED)}"
        plug(name, method)
        return name


def method_checks(
    method: Method | str, values: Mapping[str, Value] | None = None, others: Mapping[str, Value] | None = None
) -> list[Check]:
    """Returns checks of a method, a Method or a name; they train for a few seconds, and print what passed.

    values: of hyperparameters, over USUAL and declared defaults; others: of each declared hyperparameter, a value that
    must change a result. Raises ValueError for an invalid method.
    """
    return checks_of(PROMISES, MethodCase(method, values, others))


def numbers_and_tensors_mix_alike(case: MethodCase) -> str | None:
    """A `mix` is written once, for one learner with numbers and for many with tensors [M]."""
    rule = case.method.rule
    if not isinstance(rule, Mixing):
        return NO_MIXING
    products = [
        (1.0, 0.5, 2.0),
        (1.0, -0.5, 2.0),
        (1e-3, -1e-3, 4.0),
        (0.0, 0.0, 1.0),
        (1.0, 0.0, 0.0),
        (0.0, 0.0, 0.0),
    ]
    values = case.learner().hyperparameters
    tensors = {name: torch.full((len(products),), float(value)) for name, value in _per_learner(case, values).items()}
    share = 0.25
    gg, gr, rr = torch.tensor(products).unbind(dim=1)
    losses = [(0.5, 0.25), (0.5, 2.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1.0, 1.0)]
    known = dict(zip(("loss", "reference_loss"), torch.tensor(losses).unbind(dim=1), strict=True))
    together = rule.mix(Products(gg, gr, rr, share, **known), values.but(**tensors))
    for row, inner in enumerate(products):
        alone = rule.mix(Products(*inner, share, 0.0, 1.0, *losses[row]), values)
        for part in Mix._fields:
            number, tensor = float(getattr(alone, part)), getattr(together, part)
            entry = float(tensor[row] if isinstance(tensor, torch.Tensor) and tensor.dim() else tensor)
            sure(
                np.isclose(number, entry, rtol=1e-4, atol=1e-6),
                f"{part} of the mix must be the same for numbers and for tensors, got {number:g} and {entry:g} for "
                f"g·g, g·g_ref, g_ref·g_ref = {inner}",
            )
    return None


def what_is_needed_of_g_ref_is_enough(case: MethodCase) -> str | None:
    """Where a rule needs the sign of g·g_ref alone, which is not negative, the direction is g."""
    rule = case.method.rule
    if not isinstance(rule, Mixing):
        return NO_MIXING
    asked = False
    for changes in _each({name: case.others[name] for name in case.method.names}):
        values = case.learner(**changes).hyperparameters
        needed = rule.needs(values)
        sure(needed in (SIGN, NORM, ALL), f"needs must return SIGN, NORM or ALL, got {needed!r}")
        if needed != SIGN:
            continue
        asked = True
        for inner in ((4.0, 1.0, 2.0), (4.0, 0.0, 0.0), (0.0, 0.0, 2.0), (1e-40, 1e-40, 1e-40), (1e-6, 5.0, 1e8)):
            mix = Mix(*map(float, rule.mix(Products(*inner), values)))
            sure(
                mix == (1.0, 0.0, 0.0),
                f"a rule that needs the sign of g·g_ref alone must take g where it is not negative, got {mix} for "
                f"g·g, g·g_ref, g_ref·g_ref = {inner} with {_format(values)}; it needs NORM, or ALL",
            )
    return None if asked else "no values need the sign alone"


def members_are_the_same_alone_and_together(case: MethodCase) -> None:
    """Whoever else is in a cohort changes nothing: bit for bit on compiled paths, else up to rounding."""
    apart: dict[str, Value] = {"lr": 0.01}
    apart |= {name: case.others[name] for name in case.method.per_learner if name in case.method.names}
    learners = [case.learner(seed, **changes) for seed in (0, 1) for changes in _each(apart)]
    together = case.train(learners, toy())
    for row, learner in enumerate(learners):
        alone = case.train([learner], toy())
        if case.path.products == "torch":
            same = np.allclose(together.params[row], alone.params[0], atol=CLOSE)
        else:
            same = all(np.array_equal(*_rows(together, row, alone, field)) for field in RESULT)
            same = same and np.array_equal(together.params[row], alone.params[0])
        sure(
            same,
            f"a member must have the same result alone and in a cohort; that of seed {learner.seed} with "
            f"{_format(learner.hyperparameters)} has not: the rule uses something of other members",
        )


def engines_agree(case: MethodCase) -> str | None:
    """The engine of tensors, which GPUs use, and the compiled one make the same network."""
    if case.path.products == "torch":
        return "Numba is not installed" if case.path == TENSORS else f"{case.path} is that of tensors"
    stream = toy(examples=66)
    ours, theirs = (case.train([case.learner()], stream, path).params[0] for path in (case.path, TENSORS))
    by = np.abs(ours - theirs)
    share = float(np.mean(~(by < CLOSE)))
    sure(
        share <= FEW,
        f"both engines must train the same network; {share:.0%} of its parameters differ, by up to {by.max():.2g}",
    )
    return None


def a_first_task_is_plain_sgd_where_it_must_be(case: MethodCase) -> str | None:
    """No memory and no importance is there yet: the first task is shared with plain SGD."""
    if case.method.memory == RESERVOIR:
        return "a reservoir replays from its second step on"
    plain = MethodCase("van", {name: case.values[name] for name in ("lr", "batch_size")}, path=case.path)
    result, expected = (method_case.train([method_case.learner()], toy(range(2))) for method_case in (case, plain))
    same = result.accuracies[0, 0, 0] == expected.accuracies[0, 0, 0]
    sure(
        same and np.allclose(result.within[0, 0], expected.within[0, 0]),
        "a first task must be plain SGD, as nothing is in the memory yet; it is another network's",
    )
    return None


def every_declared_hyperparameter_acts(case: MethodCase) -> None:
    """What is declared is part of every result's key: what cannot change a result must not be."""
    acting = case.acting(3)
    missing = [name for name in case.method.names if name not in acting]
    values = ", ".join(f"{name} {case.values[name]} and {case.others[name]}" for name in missing)
    sure(not missing, f"a hyperparameter that is declared must change a result; these gave the same one: {values}")


def hyperparameters_act_from_as_many_tasks_on_as_declared(case: MethodCase) -> None:
    """A search on fewer tasks is refused, as it could find nothing."""
    for tasks in (1, 2):
        acting = case.acting(tasks)
        declared = {name for name in case.method.names if case.method.tasks_needed(name) <= tasks}
        sure(
            not acting - declared,
            f"{_names(acting - declared)} must not act on {tasks} tasks, where it is declared to "
            "need more: a search of it would be refused",
        )
        sure(
            not declared - acting,
            f"{_names(declared - acting)} must act on {tasks} tasks, or stand in `late`: a search "
            "of it would find nothing",
        )


def zero_gradients_do_no_harm(case: MethodCase) -> None:
    """Gradients that vanish have no direction: the step must stay finite."""
    result = case.train([case.learner()], black())
    sure(
        result.diverged_task[0] == -1 and np.isfinite(result.params[0]).all(),
        "gradients that are zero must do no harm; the member diverges on images without a bright pixel",
    )


def saturated_losses_do_no_harm(case: MethodCase) -> str | None:
    """With one class the loss is zero, and so is every gradient, the memory's too."""
    if DOMAIN not in case.method.scenarios:
        return "it has a second class from the second task on"
    stream = toy(examples=66, classes=1)
    result = case.train([case.learner()], stream)
    sure(result.diverged_task[0] == -1, "a loss that is zero must do no harm; the member diverges with a single class")
    if not case.grows:
        start = MLP((stream.inputs, *NETWORK.hidden, 1)).init(generator(0, "init", stream.tasks.start))
        sure(np.array_equal(result.params[0], start), "where every gradient is zero no parameter may move")
    return None


def outputs_of_later_tasks_stay_as_they_are(case: MethodCase) -> str | None:
    """Outputs that no example so far competes with get no gradient, by task and by class."""
    if case.grows:
        return "its network grows"
    for scenario in (scenario for scenario in (TASK, CLASS) if scenario in case.method.scenarios):
        stream = pairs(scenario, range(2))  # two of six classes are in no task
        sizes = (stream.inputs, *NETWORK.hidden, stream.outputs)
        result = case.train([case.learner()], stream)
        rows = (MLP(sizes).init(generator(0, "init", stream.tasks.start)), result.params[0])
        before, after = (MLP(sizes).layers(torch.from_numpy(row)[None])[-1] for row in rows)
        moved = (before.weight != after.weight).any(dim=1)[0] | (before.bias != after.bias)[0]
        sure(
            bool(moved[:4].all()) and not moved[4 : stream.outputs].any(),
            f"outputs of the scenario {scenario} must move in their own tasks and stay as they are before them; "
            f"{int(moved[:4].sum())} of 4 moved, and {int(moved[4 : stream.outputs].sum())} of 2 that stay",
        )
    return None


def a_diverging_member_disturbs_nobody(case: MethodCase) -> None:
    """It is marked, and the others of its cohort train as if it were not there."""
    tame = case.learner()
    result, alone = case.train([case.learner(lr=1e30), tame], toy()), case.train([tame], toy())
    sure(
        result.diverged_task.tolist() == [0, -1] and np.isnan(result.accuracies[0]).all(),
        "a member that diverges must be marked, and no other; with lr = 1e30 the first task must be lost",
    )
    same = np.allclose(result.params[1], alone.params[0], atol=CLOSE)
    sure(same, "a member that diverges must disturb nobody; the other one of its cohort has another network than alone")


PROMISES = (
    numbers_and_tensors_mix_alike,
    what_is_needed_of_g_ref_is_enough,
    members_are_the_same_alone_and_together,
    engines_agree,
    a_first_task_is_plain_sgd_where_it_must_be,
    every_declared_hyperparameter_acts,
    hyperparameters_act_from_as_many_tasks_on_as_declared,
    outputs_of_later_tasks_stay_as_they_are,
    zero_gradients_do_no_harm,
    saturated_losses_do_no_harm,
    a_diverging_member_disturbs_nobody,
)


def _other(hyperparameter: Hyperparameter, value: Value) -> Value:
    """Another value that is as likely to matter."""
    if hyperparameter.choices:
        return next((word for word in hyperparameter.choices if word != value), value)
    if value is None or isinstance(value, str):
        return 1
    near = [value + 1, value - 1] if hyperparameter.whole else [3 * value, value / 3, value + 0.4, value - 0.4]
    return next((number for number in near if number != value and hyperparameter.fits(number)), value)


def _each(changes: Mapping[str, Value]) -> list[dict[str, Value]]:
    """None of the changes, and each alone."""
    return [{}, *({name: value} for name, value in changes.items())]


def _per_learner(case: MethodCase, values: Hyperparameters) -> dict[str, Any]:
    return {name: vars(values)[name] for name in case.method.per_learner}


def _rows(together: CohortResult, row: int, alone: CohortResult, field: str) -> tuple[Any, Any]:
    """Returns the results of a member, with numbers for NaN."""
    first, other = (np.asarray(getattr(result, field)[at]) for result, at in ((together, row), (alone, 0)))
    return (
        (first, other)
        if first.dtype.kind not in "f"
        else (np.nan_to_num(first, nan=-1.0), np.nan_to_num(other, nan=-1.0))
    )


def _format(values: Hyperparameters) -> str:
    return ", ".join(f"{name} {value}" for name, value in vars(values).items())


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names))
