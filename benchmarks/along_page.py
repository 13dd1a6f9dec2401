"""The measured part of docs/along.md, from benchmarks/results/forecasts.json, however much of it is there."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from along import Row, rows
from charts import percent, table
from forecasts import FIRST, FURTHER, INDIFFERENCE, MODEL, RULES, SEEN
from machine import Figures

from results.labels import count_text, method_label, number_text, signed_text
from search_spaces import load_definition

PLAIN = next(iter(RULES))
LEAST_COVERED, WIDEST, MOST_UNRESOLVED, MOST_WORSE, GAP, MOST_STEPS = 0.9, 2.0, 1 / 3, 0.2, 1.0, 0.6
"""Aims: share of intervals that hold, half width and loss against the plain choice in points, share of "cannot tell" on
streams whose values differ by so many points, share of the steps."""


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """Returns (Markdown, no plots)."""
    streams = figures["streams"]
    missing = len(rows()) - len(streams)
    state = "All of it is measured."
    if missing:
        state = f"Still to come, by the same commands: {count_text(missing, 'stream')} of {len(rows())}."
    if not streams:
        return state, {}
    chosen = [one for one in streams if not one["judge"]]
    judges = [one for one in streams if one["judge"]]
    text = [state, "## Regret", REGRET, table(HEAD, [line for one in streams for line in lines(one)])]
    text += ["## Intervals", INTERVALS, table(INTERVAL_HEAD, [line for one in streams for line in intervals(one)])]
    lines_of_aims = [*aims("all", streams), *(aims("those that judge alone", judges) if judges else [])]
    text += ["## Against the aims", AIMS, table(AIMS_HEAD, lines_of_aims)]
    text += ["## Cost of a search along tasks", COSTS, table(COSTS_HEAD, list(costs(streams)))]
    text += ["## Candidates", CANDIDATES, candidates(chosen)]
    text += ["On the streams that judge alone:", candidates(judges)] if judges else []
    return "\n\n".join(text), {}


REGRET = (
    "*Regret*: by how many points of A_T the chosen value is behind the best one on the evaluation's tasks; mean "
    "(worst) over searches of three seeds. *Better*: what the model's choice gains on the plain one, ± its standard "
    "error over the evaluation's seeds. *r*: correlation of prediction and truth over the values. *Gap*: between the "
    "best and the worst value."
)
INTERVALS = (
    "*Covered*: share of true A_T, and of true differences from the choice, inside the 95 % intervals. *Half width*: "
    "median, points. *Cannot tell*: share of searches in which another value may be better by anything, and by more "
    f"than {100 * INDIFFERENCE:g} point. *Ruled out*: share of values whose whole interval is behind the choice, and "
    "of searches in which the best value is one of them."
)
CANDIDATES = "Mean regret (mean correlation) over the streams, points, of every rule that was tried, by tasks seen."
COSTS = (
    f"A search along tasks (below) begins with {FIRST} tasks. *Steps*: of all its members, in those of a search whose "
    f"values all see {SEEN[-1]} tasks; the aim is {percent(MOST_STEPS)} or less. *Cannot tell*: share of searches in "
    "which another value may be better by more than a point at the last task."
)
COSTS_HEAD = ("stream", *(name for k in FURTHER for name in (f"regret, to {k} tasks", "steps", "cannot tell")))
AIMS = (
    f"Aims: {percent(LEAST_COVERED)} of the intervals of A_T hold, their median half width is {WIDEST:g} points or "
    f"less, at most {percent(MOST_UNRESOLVED)} of the searches on streams with a gap of more than a point cannot tell, "
    f"and on no stream is the model's choice behind the plain one by more than {MOST_WORSE:g} points."
)
AIMS_HEAD = (
    *("streams", "tasks seen", "A_T covered", "differences covered", "half width", "cannot tell"),
    "worst against plain",
)
HEAD = ("stream", "gap", "tasks seen", "regret, highest A_k", "regret, model", "better", "r, highest A_k", "r, model")
INTERVAL_HEAD = (
    *("stream", "tasks seen", "A_T covered", "half width", "differences covered", "half width", "cannot tell"),
    "ruled out",
)


def title(stream: Figures) -> str:
    """The stream and the method, in words, and whether it judges alone."""
    return f"{stream_and_method(stream)}{', judges alone' if row_of(stream).judge else ''}"


def stream_and_method(stream: Figures) -> str:
    """The stream and the method, in words."""
    row = row_of(stream)
    images = "" if row.images is None else f", {row.images:,} images"
    return f"{load_definition(row.dataset).title}{images}, {method_label(row.method)}"


def row_of(stream: Figures) -> Row:
    return next(row for row in rows() if row.name == stream["stream"])


def lines(stream: Figures) -> Iterator[list[str]]:
    """Yields a line of the regrets for each number of tasks."""
    for one in stream["searches"]:
        plain, model = one["rules"][PLAIN], one["rules"][MODEL]
        better, error = one["better"]
        yield [
            title(stream),
            number_text(stream["gap"], 1),
            str(one["tasks seen"]),
            *(f"{number_text(rule['regret'], 2)} ({number_text(rule['worst'], 2)})" for rule in (plain, model)),
            f"{signed_text(better, 2)} ± {number_text(error, 2)}",
            *(number_text(rule["r"], 2) for rule in (plain, model)),
        ]


def intervals(stream: Figures) -> Iterator[list[str]]:
    """Yields a line of the intervals for each number of tasks."""
    for one in stream["searches"]:
        yield [
            title(stream),
            str(one["tasks seen"]),
            percent(one["covered"]),
            number_text(one["half width"], 1),
            percent(one["differences covered"]),
            number_text(one["half width of differences"], 1),
            " / ".join(map(percent, one["unresolved"])),
            f"{percent(one['ruled out'])} / {percent(one['best ruled out'])}",
        ]


def aims(group: str, streams: list[Figures]) -> Iterator[list[str]]:
    """Yields a line of the aims for each number of tasks: which are met, and by how much others are missed."""
    for k in SEEN:
        of_k = [(one, search) for one in streams for search in one["searches"] if search["tasks seen"] == k]
        covered, apart = (
            float(np.mean([search[name] for _, search in of_k])) for name in ("covered", "differences covered")
        )
        width = float(np.median([search["half width"] for _, search in of_k]))
        unclear = float(np.mean([search["unresolved"][1] for one, search in of_k if one["gap"] > GAP]))
        worst, (behind, error) = min(
            ((stream_and_method(one), search["better"]) for one, search in of_k), key=lambda each: each[1][0]
        )
        yield [
            group,
            str(k),
            f"{percent(covered)} ({against(covered - LEAST_COVERED, percent)})",
            percent(apart),
            f"{number_text(width, 1)} ({against(WIDEST - width, plainly)})",
            f"{percent(unclear)} ({against(MOST_UNRESOLVED - unclear, percent)})",
            f"{signed_text(behind, 2)} ± {number_text(error, 2)} ({against(behind + MOST_WORSE, plainly)}): {worst}",
        ]


def costs(streams: list[Figures]) -> Iterator[list[str]]:
    """Yields a line for each stream, and one for their mean."""
    for stream in streams:
        cells = [title(stream)]
        for one in stream["along"]:
            regret = f"{number_text(one['regret'], 2)} ({number_text(one['worst'], 2)})"
            cells += [regret, percent(one["steps"]), percent(one["unresolved"])]
        yield cells
    cells = ["mean"]
    for together in zip(*(stream["along"] for stream in streams), strict=True):
        regret, steps, unclear = (
            float(np.mean([one[name] for one in together])) for name in ("regret", "steps", "unresolved")
        )
        cells += [
            number_text(regret, 2),
            f"{percent(steps)} ({against(MOST_STEPS - steps, percent)})",
            percent(unclear),
        ]
    yield cells


def against(margin: float, text: Any) -> str:
    """Returns whether an aim is met.

    >>> against(-1.25, plainly), against(0.0, plainly)
    ('missed by 1.2', 'met')
    """
    return "met" if margin >= 0 else f"missed by {text(-margin)}"


def plainly(value: float) -> str:
    return number_text(value, 1)


def candidates(streams: list[Figures]) -> str:
    """A line for each rule, a column for each number of tasks."""
    body = []
    for name in (*RULES, MODEL):
        cells = []
        for k in SEEN:
            scores = [
                search["rules"][name] for one in streams for search in one["searches"] if search["tasks seen"] == k
            ]
            regret, r = (float(np.mean([score[key] for score in scores])) for key in ("regret", "r"))
            cells.append(f"{number_text(regret, 2)} ({number_text(r, 2)})")
        body.append([name, *cells])
    return table(["rule", *map(str, SEEN)], body)


SECTION = (section, "uv run python benchmarks/forecasts.py")
