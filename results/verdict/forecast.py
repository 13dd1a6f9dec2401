"""The accuracy that a search on few tasks predicts for as many tasks as the evaluation has."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from results.inert import all_equal
from results.labels import A_T, number_text, signed_text
from results.ledger.record import RunRecord, Unit
from results.metrics import METRICS
from results.points import group, point_text
from results.search import SearchResults
from results.statistics.extrapolation import FEWEST_TASKS, INDIFFERENCE, Extrapolation


class Forecast(NamedTuple):
    """A prediction of A_T, for every tried value with members that did not diverge."""

    seen: int
    """Tasks of the search; of one that goes on along tasks, those of its last stage."""
    tasks: int
    """Tasks of the evaluation, for which A_T is predicted."""
    values: tuple[float, ...]
    """Tried values, ascending."""
    model: Extrapolation
    """Predictions in the order of the values; fractions."""
    chosen: int | None
    """Position of the chosen value; None where it has no member yet."""

    @property
    def holds(self) -> bool:
        """Whether the chosen value has the highest predicted accuracy of all tried ones."""
        return self.chosen == self.model.choice

    @property
    def doubtful(self) -> bool:
        """Whether another value is predicted to be better by more than `INDIFFERENCE`."""
        mean = self.model.mean
        return self.chosen is not None and bool(mean[self.model.choice] - mean[self.chosen] > INDIFFERENCE)


@lru_cache(maxsize=16)  # the terminal and several sections of a report ask for it
def forecast(results: SearchResults) -> Forecast | None:
    """Returns the prediction of a search of one number by A_T on fewer tasks than the evaluation has; else None.

    Also None with one seed, for an inert search, and below `FEWEST_TASKS` tasks.
    """
    members = results.deciding
    if results.score_on != "cv" or results.objective != A_T or not results.is_curve or not members:
        return None
    tasks_seen, tasks = members[0].tasks, _evaluated_tasks(results)
    units = sorted({record.unit for record in members})
    if not FEWEST_TASKS <= tasks_seen < tasks or len(units) < 2:
        return None
    points = sorted(results.stages[-1].points) if results.stages else results.points
    values = tuple(float(point[0]) for point in points)
    of_point = group(members, results.parameters, points)
    of_value = [of_point[point] for point in points]
    accuracies = np.array([_matrices(records, units, tasks_seen) for records in of_value])
    present = np.array([[any(record.unit == unit for record in records) for unit in units] for records in of_value])
    if len(values) < 2 or all_equal(accuracies[:, :, -1].mean(axis=2)):
        return None
    try:
        model = Extrapolation.fit(_along(results, values), accuracies, tasks, present)
    except ValueError:  # all have diverged
        return None
    chosen = results.chosen[0]
    return Forecast(tasks_seen, tasks, values, model, values.index(chosen) if chosen in values else None)


def in_words(results: SearchResults) -> str:
    """Returns what is predicted for the evaluation's tasks, beside what was measured there; "" without a prediction."""
    prediction = forecast(results)
    if prediction is None:
        return ""
    model = prediction.model
    best = point_text(results.parameters, (prediction.values[model.choice],))
    low, high = (number_text(100 * float(end[model.choice]), 1) for end in (model.low, model.high))
    mean = number_text(100 * float(model.mean[model.choice]), 1)
    size = f"{prediction.tasks} tasks from {prediction.seen}"
    predicted = f"A_T predicted for {size} is highest at {best}: {mean} % ({low} to {high} %)"
    parts = [f"{predicted}{_describe_distance(results, prediction)}."]
    if prediction.doubtful:
        parts[0] = f"The choice may not hold for {prediction.tasks} tasks. {parts[0]}"
    measured = _describe_measurements(results, prediction)
    return " ".join([*parts, *([measured] if measured else [])])


def caution(results: SearchResults) -> str:
    """Returns the caution that the choice may not hold on the evaluation's tasks; "" without a doubt."""
    prediction = forecast(results)
    if prediction is None or not prediction.doubtful:
        return ""
    best = point_text(results.parameters, (prediction.values[prediction.model.choice],))
    return (
        f"The choice may not hold for {prediction.tasks} tasks: predicted from {prediction.seen}, A_T is highest at "
        f"{best}{_describe_distance(results, prediction)} (docs/along.md). More --cv-tasks would tell."
    )


def as_json(results: SearchResults) -> dict[str, Any] | None:
    """Returns the prediction as JSON, accuracies as fractions; None without one."""
    prediction = forecast(results)
    if prediction is None:
        return None
    model = prediction.model
    columns = {"value": prediction.values, "mean": model.mean, "low": model.low, "high": model.high, "seen": model.seen}
    rows = [
        {
            name: None if math.isnan(cell) or math.isinf(cell) else float(cell)
            for name, cell in zip(columns, row, strict=True)
        }
        for row in zip(*columns.values(), strict=True)
    ]
    return {"seen": prediction.seen, "tasks": prediction.tasks, "best": prediction.values[model.choice], "values": rows}


def _describe_distance(results: SearchResults, prediction: Forecast) -> str:
    """Returns how far the chosen value is predicted to be behind, with its interval; or whether others may be best."""
    model = prediction.model
    if prediction.holds or prediction.chosen is None:
        return "" if model.resolved() else "; other values may be as good"
    ends = (100 * float(ends[prediction.chosen]) for ends in (model.behind_low, model.behind_high))
    ahead = 100 * float(model.mean[model.choice] - model.mean[prediction.chosen])
    low, high = (signed_text(end, 1) for end in ends)
    name = point_text(results.parameters, results.chosen)
    return f", {number_text(ahead, 1)} points above {name} (95 % interval {low} to {high})"


def _describe_measurements(results: SearchResults, prediction: Forecast) -> str:
    """Returns the prediction for evaluated values beside what was measured; "" before the evaluation."""
    parts = []
    for point in results.evaluated:
        scores = [METRICS[A_T].of(record) for record in results.evaluation_of(point) if record.status == "ok"]
        place = prediction.values.index(float(point[0])) if point[0] in prediction.values else None
        if not scores or place is None or math.isnan(prediction.model.mean[place]):
            continue
        predicted = number_text(100 * float(prediction.model.mean[place]), 1)
        measured = number_text(float(np.mean(scores)), 1)
        parts.append(f"{point_text(results.parameters, point)}: predicted {predicted} %, measured {measured} %")
    return f"Beside the evaluation, {'; '.join(parts)}." if parts else ""


def _evaluated_tasks(results: SearchResults) -> int:
    """Returns the number of tasks of the evaluation."""
    if results.evaluation:
        return results.evaluation[0].tasks
    return int(results.config.get("tasks", 0)) - int(results.config.get("cv_tasks", 0))


def _matrices(members: tuple[RunRecord, ...], units: list[Unit], tasks: int) -> np.ndarray:
    """Returns [S, k, k] accuracies of the members of one value; NaN of units without one."""
    of_unit = {record.unit: record.accuracies for record in members}
    missing = np.full((tasks, tasks), math.nan)
    return np.array([of_unit.get(unit, missing) for unit in units])


def _along(results: SearchResults, values: tuple[float, ...]) -> np.ndarray:
    """Returns [K, 1], where values lie on the searched axis, from 0 to 1."""
    log = results.parameters[0] in results.log
    ends = results.domain[0] or (min(values), max(values))
    places = np.array([*values, *ends], dtype=float)
    places = np.log(places) if log else places
    low, high = min(places), max(places)
    return np.asarray((places[: len(values)] - low) / (high - low or 1.0))[:, None]
