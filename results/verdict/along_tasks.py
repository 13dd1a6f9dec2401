"""The choice of a search along tasks in words: predicted for as many tasks as the evaluation has."""

from typing import Any

from results.labels import count_text, number_text
from results.points import point_text
from results.search import SearchResults, SearchStage


def evaluated_tasks(results: SearchResults) -> int:
    """Returns the number of tasks of the evaluation."""
    return int(results.config["tasks"]) - int(results.config["cv_tasks"])


def first_tasks(results: SearchResults) -> str:
    """Returns on how many tasks a search chose: its own, or from how many it predicted."""
    first = results.search[0].tasks
    if not results.stages:
        return count_text(first, "task")
    last = results.stages[-1].tasks
    more = f" to {last}" if last > first else ""
    return f"predicted for {evaluated_tasks(results)} tasks from {first}{more}"


def scope(results: SearchResults) -> str:
    """Returns which stage scores of the search are from, in a sentence for a caption; "" where they chose."""
    if not results.stages:
        return ""
    chosen = f"the choice is by A_T predicted for {evaluated_tasks(results)} tasks from {results.stages[-1].tasks}"
    return f"All values are shown after {count_text(results.search[0].tasks, 'task')}, the first stage; {chosen}."


def in_brief(results: SearchResults) -> str:
    """Returns for how many tasks the choice is predicted, from how many, and whether another may be better."""
    last = results.stages[-1]
    predicted = f"predicted for {evaluated_tasks(results)} tasks from {last.tasks}"
    if last.resolved:
        return f"{predicted}: no other value may be better by more than a point"
    others = count_text(len(last.rivals), "other")
    return f"{predicted}; {others} may be better by more than a point: cannot tell from {last.tasks} tasks"


def in_words(results: SearchResults) -> str:
    """Returns the choice with its predicted A_T, whether others may be better, and what was allowed to see what."""
    last, names = results.stages[-1], results.parameters
    mean, low, high = (number_text(100 * part, 1) for part in last.predicted)
    text = (
        f"The search chose {point_text(names, last.choice)}, {in_brief(results)}. Its predicted A_T is {mean} % "
        f"({low} to {high} %)."
    )
    return f"{text} {sight(results)}{_no_further(results)}"


def sight(results: SearchResults) -> str:
    """Returns which tasks have chosen, in a sentence; numbered from 1."""
    first, last = int(results.config["cv_tasks"]), results.stages[-1].tasks
    tasks, more = int(results.config["tasks"]), last - first
    motions = "rotations" if results.dataset.startswith("rotated") else "permutations"
    further = f" and {_span(tasks + 1, tasks + more)} of other {motions}" if more else ""
    return f"Chosen by A_T predicted from tasks {_span(1, first)}{further}; the evaluation's tasks were not seen."


def table(results: SearchResults) -> list[dict[str, Any]]:
    """Returns a row a stage: tasks, values left, choice, its predicted A_T with its interval in fractions, resolved."""
    return [
        {
            "tasks": stage.tasks,
            "values": len(stage.points),
            "choice": dict(zip(results.parameters, stage.choice, strict=True)),
            **dict(zip(("mean", "low", "high"), stage.predicted, strict=True)),
            "rivals": len(stage.rivals),
            "resolved": stage.resolved,
        }
        for stage in results.stages
    ]


def row(results: SearchResults, stage: SearchStage) -> list[str]:
    """Returns the cells of a stage for a page: tasks, values, choice, predicted A_T, values that may be better."""
    mean, low, high = (number_text(100 * part, 1) for part in stage.predicted)
    choice = point_text(results.parameters, stage.choice)
    return [str(stage.tasks), str(len(stage.points)), choice, f"{mean} ({low} to {high})", str(len(stage.rivals))]


def further(results: SearchResults) -> str:
    """Returns the option with which an open search goes on to twice as many tasks; "" where nothing is open.

    Or where there are no further tasks. It ends earlier where fewer tell.
    """
    last = results.stages[-1] if results.stages else None
    if last is None or last.resolved or last.tasks >= results.task_limit:
        return ""
    return f"--most-cv-tasks {min(2 * last.tasks, results.task_limit)}"


def _no_further(results: SearchResults) -> str:
    """Returns why an open search cannot go on; "" for one that can, or that is resolved."""
    last = results.stages[-1]
    if last.resolved or further(results) or last.tasks >= evaluated_tasks(results):
        return ""
    return " The stream has no further tasks to go on to."


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}–{last}"
