"""docs/protocols.md: the table of protocols, and what benchmarks/results/protocols.json has, however much that is."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from charts import Point, Range, dark, scatter, table
from machine import Figures
from protocols import studies

from epsearch.protocols.per_task import TRIES, ContinualHyperparameterFramework
from epsearch.protocols.protocol import EVALUATION, TEST, Protocol
from epsearch.protocols.registry import PROTOCOLS, protocol, sentence
from results.labels import (
    MISSING,
    bytes_text,
    count_text,
    dataset_label,
    mean_std_text,
    method_label,
    number_text,
    signed_text,
)
from results.points import parameter_label, value_text
from results.statistics.regret import Regret, regret
from results.verdict.protocols import DIGITS, interval_text, marks_of, regret_text, relative_text

CHEAP, STAND_IN = ("first-task", "default", "published"), ("first-2",)
"""Cheap choices of Lee et al., and what stands for them where a study has none: two tasks, on which all methods act."""
OTHERS = ("end-of-training", "current-task", "seen-tasks", "seen-tasks-on-memory")
"""Protocols of Lee et al. that are compared with cheap ones."""
LARGEST_UNSEEN = 1.0
"""Points; where a larger difference may stay unseen, nothing can be told."""


def every_protocol() -> str:
    """Returns the table of the protocols by name, from the code."""
    usual = {name: protocol(name) for name in PROTOCOLS}
    rows = [[f"`{name}`", sentence(one), *cost(one), one.source or MISSING] for name, one in usual.items()]
    return table(("name", "when it chooses, and by what", "trains", "keeps", "source"), rows).replace("---:", "---")


def cost(one: Protocol) -> tuple[str, str]:
    """Returns what a protocol trains in order to choose, and what it keeps beyond a task.

    >>> cost(PROTOCOLS["default"]), cost(PROTOCOLS["current-task"])
    (('nothing', 'nothing'), ('K members of each task', 'nothing'))
    """
    view = one.view
    if view is None:
        return "nothing", "nothing"
    if one.per_task:
        members = f"2 to {TRIES + 1}" if isinstance(one, ContinualHyperparameterFramework) else "K"
        examples = "test sets" if view.tests == TEST else "held-out examples"
        return f"{members} members of each task", "nothing" if one.newest else f"{examples} of earlier tasks"
    if view.stream != EVALUATION:
        return "K members of the search stream", "nothing of the evaluation"
    whole = view.tasks is None and view.share == 1
    return f"K members{'' if whole else ' of that part'}", f"all examples{'' if whole else ' of that part'}"


NUMBERS = (
    *("A_T_mean", "A_T_std", "regret", "regret_low", "regret_high", "smallest_visible", "relative_steps", "kept"),
    *("choice_median", "choice_low", "choice_high"),
)
"""Columns that may be null."""


class Study(NamedTuple):
    """A finished study."""

    figures: Figures

    @property
    def title(self) -> str:
        """The stream and the method, in words."""
        scenario = self.figures["options"].get("scenario")
        words = f", {scenario}-incremental" if scenario else ""
        return f"{dataset_label(self.figures['stream'])}{words}, {method_label(self.figures['method'])}"

    @property
    def rows(self) -> list[Figures]:
        """Rows of the table of protocols; NaN where the file has null."""
        return [row | {name: _number(row[name]) for name in NUMBERS} for row in self.figures["protocols"]]

    @property
    def names(self) -> list[str]:
        """Names of its protocols."""
        return [row["protocol"] for row in self.figures["protocols"]]

    def scores(self, name: str) -> np.ndarray:
        """Returns A_T [orders, seeds] of a protocol in percent; NaN where a member is missing or diverged."""
        members = self.figures["members"]
        units = sorted({tuple(map(int, unit.split())) for each in members.values() for unit in each})
        orders, seeds = sorted({order for order, _ in units}), sorted({seed for _, seed in units})
        own = members[name]
        rows = [[_number(own.get(f"{order} {seed}", {}).get("A_T")) for seed in seeds] for order in orders]
        return np.array(rows, dtype=np.float64)


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """Returns (Markdown, {name of a plot: SVG})."""
    done = [Study(one) for one in figures["studies"]]
    every = {(stream, method) for stream, method, _ in studies()}
    missing = every - {(one.figures["stream"], one.figures["method"]) for one in done}
    state = f"Still to come, by the same commands: {len(missing)} of {len(every)} studies."
    if not missing:
        state = "All of it is measured."
    if not done:
        return state, {}
    plot = scatter({one.title: points(one) for one in done}, AXIS, 2)
    text = [state, "![Regret against cost of every protocol](images/protocols.svg)", ABOUT]
    for one in done:
        rows = [line(row) for row in one.rows]
        text += [f"### {one.title}", " ".join(one.figures["answer"]), table(head(one), rows), options(one)]
    text += ["### Lee et al.'s claims that can be tested here", CLAIMS, *filter(None, map(claims, done)), counted(done)]
    return "\n\n".join(text), {"protocols.svg": plot, "protocols-dark.svg": dark(plot)}


AXIS = "regret, points, over the cost, × the training that is judged"
ABOUT = (
    "In the figure whiskers are 95 % intervals, circles are hollow where a protocol peeks, and points of equal cost "
    "stand side by side. In the tables *chosen* is the median over orders and tasks, with the range; *peeks* has the "
    "tests that both chose and judge, of those that judge. A_T: mean ± standard deviation over orders and seeds."
)
CLAIMS = (
    "Lee et al. 2024 (arXiv 2404.06466) say that no protocol is better than the choice on the first task, or than a "
    "default value; that choosing at the end of training, which needs all data again, does not do clearly better "
    "either; and so that the cheapest should be taken. Below is A_T of each dearer protocol of theirs minus that of "
    "a cheap one, in points, paired by order and seed, with the 95 % interval over orders; in brackets what the "
    f"choices cost. Where the interval has both signs and more than {LARGEST_UNSEEN:g} point may stay unseen, nothing "
    "can be told."
)


def head(study: Study) -> tuple[str, ...]:
    """Returns the header of a study's table."""
    label = parameter_label(study.figures["parameter"])
    return "protocol", f"{label} chosen", "A_T %", "regret (95 %)", "smallest visible", "steps", "kept", "peeks"


def line(row: Figures) -> list[str]:
    """Returns the cells of a protocol."""
    marks = ", ".join(mark for mark in marks_of(row) if mark != "peeks")
    low, high = row["choice_low"], row["choice_high"]
    spread = f" ({value_text(low)} to {value_text(high)})" if low < high else ""
    lost = f" ({row['diverged']} diverged)" if row["diverged"] else ""
    many = f", up to {row['most_values']} values" if row["most_values"] > 1 else ""
    return [
        f"{row['title']}{f' ({marks})' if marks else ''}",
        MISSING if math.isnan(low) else f"{value_text(row['choice_median'])}{spread}{many}",
        f"{mean_std_text(row['A_T_mean'], row['A_T_std'], DIGITS)}{lost}",
        regret_text(row["regret"], row["regret_low"], row["regret_high"]),
        number_text(row["smallest_visible"], DIGITS),
        relative_text(row["relative_steps"]),
        MISSING if math.isnan(row["kept"]) else bytes_text(row["kept"]) if row["kept"] else "none",
        f"{'yes' if row['peeks'] else 'no'}, {row['shared']:,} of {row['judged']:,}",
    ]


def options(study: Study) -> str:
    """Returns the size of a study, what differs from the dataset's definition, and its candidates."""
    settings, values = study.figures["options"], [value_text(float(one["value"])) for one in study.figures["constants"]]
    units = f"{count_text(settings['orders'], 'order')} × {count_text(settings['seeds'], 'seed')}"
    size = f"{units}, {settings['examples_per_task']:,} examples a task"
    own = [f"{settings['tasks']} tasks with those of the search"] if "tasks" in settings else []
    own += [f"reference batches of {settings['memory_batch']}"] if "memory_batch" in settings else []
    held = f"of which {100 * settings['validation']:g} % are held out"
    return f"{', '.join([size, held, *own])}; candidates: {', '.join(values)}."


def points(study: Study) -> Mapping[str, Point]:
    """Returns title -> cost and regret of the protocols that have both."""
    return {
        row["title"]: Point(
            row["relative_steps"], Range(row["regret"], *_ends(row)), hollow=row["peeks"] or row["bound"]
        )
        for row in study.rows
        if not math.isnan(row["regret"] + row["relative_steps"])
    }


def claims(study: Study) -> str:
    """Returns a sentence for each protocol that is compared with a cheap one; "" without a pair."""
    begin = [f"**{study.title}.**"]
    if CHEAP[0] not in study.names:
        label = parameter_label(study.figures["parameter"])
        begin += [f"No choice of {label} on the first task is measured here."]
    sentences = [f"*{title(study, a)} − {title(study, b)}*: {reading(one)[1]}." for a, b, one in pairs(study)]
    return " ".join([*begin, *sentences]) if sentences else ""


def pairs(study: Study) -> Iterator[tuple[str, str, Regret]]:
    """Yields (dearer protocol, cheap one, by how much the dearer one is better)."""
    cheap = [name for name in CHEAP if name in study.names] or [name for name in STAND_IN if name in study.names]
    for other in OTHERS:
        if other in study.names:
            for one in cheap:
                yield other, one, regret(study.scores(other), study.scores(one))


def title(study: Study, name: str) -> str:
    """Returns a protocol with its cost."""
    row = next(row for row in study.rows if row["protocol"] == name)
    return f"{row['title']} ({relative_text(row['relative_steps'])})"


def reading(one: Regret) -> tuple[str, str]:
    """Returns what a pair says, in a word and in a sentence with its figures.

    >>> reading(Regret(0.2, -0.1, 0.5, 0.3, 5, True, 0.5, (0.2,)))[1]
    '+0.20 points (−0.10 to 0.50), no difference is shown, as claimed; one of 0.50 would be seen'
    """
    if math.isnan(one.mean):
        return "none", "not comparable, as members have diverged"
    if not any(one.by_order):
        return "level", "0, equal in every order, as claimed"
    interval = f" ({interval_text(one.low, one.high)})" if one.low < one.high else ""
    words = f"{signed_text(one.mean, DIGITS)} points{interval}"
    if one.low > 0:
        return "better", f"{words}, better, against the claim"
    if one.high < 0:
        return "worse", f"{words}, worse, as claimed"
    if not one.visible <= LARGEST_UNSEEN:
        return "unclear", f"{words}, cannot tell at this size"
    visible = number_text(one.visible, DIGITS)
    return "level", f"{words}, no difference is shown, as claimed; one of {visible} would be seen"


def counted(done: list[Study]) -> str:
    """Returns how many pairs say what."""
    words = Counter(reading(one)[0] for study in done for *_, one in pairs(study))
    compared = words.total() - words["none"]
    if not compared:
        return "No pair can be compared yet."
    return (
        f"Of {count_text(compared, 'pair')} the dearer protocol is better in {words['better']} and worse in "
        f"{words['worse']}; in {words['level']} no difference is shown, and in {words['unclear']} it cannot be told. "
        "Each interval stands alone: of twenty, one misses."
    )


def _ends(row: Figures) -> tuple[float, float]:
    """Returns the interval of a regret; where there is none, the regret itself."""
    low, high = row["regret_low"], row["regret_high"]
    return (row["regret"], row["regret"]) if math.isnan(low) else (low, high)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


SECTION = (section, "uv run python benchmarks/protocols.py --data-dir FOLDER")
