"""The table of search protocols by name, and the sentence that says what each may see."""

import re
from collections.abc import Callable
from dataclasses import replace

from epsearch.failures.errors import UsageError, brief
from epsearch.protocols.one_value import Known, Predicted
from epsearch.protocols.per_task import ContinualHyperparameterFramework
from epsearch.protocols.protocol import EVALUATION, MEMORY, SEARCH, TEST, TESTS, VALIDATION, Protocol, View
from trainers.spelling import unknown

LEE = "Lee et al. 2024 (arXiv 2404.06466)"
FIRST_TASKS, PERCENT = 2, 10.0
"""Usual k of `first-k`, as in Mai et al.'s survey, and of `k-percent`."""

PROTOCOLS: dict[str, Protocol] = {
    "cv-tasks": Protocol("cross-validation tasks", "Chaudhry et al. 2019 (arXiv 1812.00420)", View(SEARCH, TEST)),
    "extrapolated": Predicted("cross-validation tasks, extrapolated", "", View(SEARCH, TEST)),
    "default": Known("default", LEE, None, of="default"),
    "published": Known("published value", LEE, None, of="published"),
    "first-task": Protocol("first task", LEE, View(tasks=1)),
    "first-k": Protocol("first {k} tasks", "Mai et al. 2021 (arXiv 2101.10423)", View(tasks=FIRST_TASKS)),
    "k-percent": Protocol(
        "first {k} % of the steps", "Mesbahi et al. 2024 (arXiv 2404.02113)", View(share=PERCENT / 100)
    ),
    "end-of-training": Protocol("end of training", LEE, View()),
    "end-of-training-on-test": Protocol("end of training, test sets", "", View(tests=TEST)),
    "current-task": Protocol("current task", LEE, View(), per_task=True, newest=True),
    "seen-tasks": Protocol("seen tasks", LEE, View(), per_task=True),
    "seen-tasks-on-memory": Protocol("seen tasks, memory", LEE, View(tests=MEMORY), per_task=True),
    "chf": ContinualHyperparameterFramework(
        "continual hyperparameter framework",
        "De Lange et al. 2021 (arXiv 1909.08383)",
        View(),
        per_task=True,
        newest=True,
    ),
    "hindsight": Protocol("hindsight, task by task", "", View(tests=TEST), per_task=True, bound=True),
}
"""Name -> protocol. The contract suite runs for every entry."""

PLUGGED: dict[str, Protocol] = {}
"""Protocols of others, by module:attribute, which this process has loaded."""

NUMBERED: dict[str, tuple[str, str, str, Callable[[str, View], View]]] = {
    "first-k": (
        r"first-(-?\d[\d.]*)",
        r"[1-9]\d{0,3}",
        "a whole K in 1…9999",
        lambda k, view: replace(view, tasks=int(k)),
    ),
    "k-percent": (
        r"(-?\d[\d.]*)-percent",
        r"(?!0+(?:\.0*)?$)\d{1,2}(?:\.\d+)?|100",
        "a K above 0, and up to 100",
        lambda k, view: replace(view, share=float(k) / 100),
    ),
}
"""Name -> how it is written with a number; which numbers are allowed, and in words; the view with one."""


def protocol(name: str) -> Protocol:
    """Returns the protocol of a name, ours or plugged. Raises UsageError, with the nearest name.

    >>> protocol("first-4").view.tasks, protocol("first-4").title, protocol("25-percent").view.share
    (4, 'first 4 tasks', 0.25)
    """
    if name in PLUGGED:
        return PLUGGED[name]
    for template, (pattern, allowed, words, view_of) in NUMBERED.items():
        usual = FIRST_TASKS if template == "first-k" else PERCENT
        match = re.fullmatch(pattern, name)
        if not match and name != template:
            continue
        number = match[1] if match else f"{usual:g}"
        if not re.fullmatch(allowed, number):
            raise UsageError(f"protocol {template} must have {words}, got {brief(name)}")
        numbered = PROTOCOLS[template]
        assert numbered.view is not None
        return replace(numbered, title=numbered.title.format(k=number), view=view_of(number, numbered.view))
    if name not in PROTOCOLS:
        plain = (name for name in PROTOCOLS if name not in NUMBERED)
        raise UsageError(unknown("protocol", name, (*plain, "first-K", "K-percent", "module:attribute")))
    return PROTOCOLS[name]


def on_tests(name: str, tests: str) -> str:
    """Returns the name of a protocol that chooses by other tests. Raises UsageError where there is none.

    >>> on_tests("end-of-training", "test"), on_tests("seen-tasks-on-memory", "validation")
    ('end-of-training-on-test', 'seen-tasks')
    """
    plain = re.sub(rf"-on-({'|'.join(TESTS)})$", "", name)
    variant = plain if tests == VALIDATION else f"{plain}-on-{tests}"
    view = PROTOCOLS[variant].view if variant in PROTOCOLS else None
    if view is None or view.tests != tests:
        parts = (name.partition("-on-") for name in PROTOCOLS if "-on-" in name)
        listed = " and ".join(f"{name} on {other}" for name, _, other in parts)
        raise UsageError(f"on {tests} does not go with protocol {plain}; what goes: {listed}, or either on validation")
    return variant


def chooses_by_scores(name: str) -> bool:
    """Returns whether a protocol chooses once, by the scores of values alone, so that any strategy may search.

    >>> [name for name in PROTOCOLS if not chooses_by_scores(name)]
    ['default', 'published', 'current-task', 'seen-tasks', 'seen-tasks-on-memory', 'chf', 'hindsight']
    """
    search_protocol = protocol(name)
    scored = search_protocol.view is not None and not (search_protocol.per_task or search_protocol.newest)
    return type(search_protocol) in (Protocol, Predicted) and scored


def sentence(search_protocol: Protocol) -> str:
    """Returns what a protocol may see before it chooses, and when it chooses.

    >>> sentence(PROTOCOLS["seen-tasks"])
    'Chooses at every task, by the held-out examples of all tasks so far of the evaluation stream.'
    """
    if search_protocol.view is None:
        return "Sees nothing: takes a value that is known before."
    view = search_protocol.view
    examples = {TEST: "test sets", VALIDATION: "held-out examples", MEMORY: "held-out memory"}[view.tests]
    where = "search stream, whose tasks are not judged" if view.stream == SEARCH else "evaluation stream"
    if search_protocol.per_task:
        newest = "the newest task" if search_protocol.newest else "all tasks so far"
        return f"Chooses at every task, by the {examples} of {newest} of the {where}."
    first = "task" if view.tasks == 1 else f"{view.tasks} tasks"
    part = "all tasks" if view.tasks is None else f"the first {first}"
    part = part if view.share == 1 else f"the first {100 * view.share:g} % of the steps"
    return f"Chooses once, by the {examples} of {part} of the {where}."


__all__ = ["EVALUATION", "PLUGGED", "PROTOCOLS", "chooses_by_scores", "on_tests", "protocol", "sentence"]
