"""The numbers of several searches: members, choices and verdicts."""

import json
from collections.abc import Iterator, Sequence

import pandas as pd

from results.labels import strategy_label
from results.ledger.record import RunRecord
from results.points import point_text
from results.search import EvaluatedChoice, SearchResults
from results.search_tables import by_seed, compare
from results.statistics.spread import spread
from results.verdict.assessment import trust

STREAM_KEYS = (
    *("scenario", "validation", "cv_tasks", "tasks", "classes_per_task", "image_size"),
    *("examples_per_task", "skip_corrupt"),
    *("batch_size", "epochs", "steps", "optimizer", "momentum", "weight_decay", "lr_factor", "memory_batch"),
)
"""Options that determine which data a member sees, and how it steps: they must be the same."""

STRATEGY_KEYS = ("strategy", "strategy_seed", "name", "method", "search", "seeds")
"""Options that may differ, or have a note of their own."""

PLACES = ("out", "storage", "data_dir", "runner", "workers", "niceness", "address", "certify", "moved_starts")
"""Options that change no result."""

MOST_SHOWN = 40
"""Characters; an option whose differing values are longer is only named."""


def check_studies(studies: Sequence[SearchResults]) -> None:
    """Raises ValueError unless these are two or more different studies of one dataset on the same streams.

    The message is one line that names the differing option and the studies.
    """
    names = ", ".join(s.name for s in studies)
    if len(studies) < 2:
        raise ValueError(f"searches to compare must be two or more, got {names or 'none'}")
    # By name, as they were asked for: a study beside itself would differ from itself by nothing.
    if len({s.name for s in studies}) < len(studies):
        raise ValueError(f"searches to compare must be different ones, got {names}")
    for what, values in _data_settings(studies):
        if len(set(values.values())) > 1:
            got = ", ".join(f"{value} ({name})" for name, value in values.items())
            raise ValueError(f"searches to compare must have the same {what}, got {got}")


def _data_settings(studies: Sequence[SearchResults]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields what determines the data that members see, and its value by study where it is known."""
    yield "dataset", {s.name: s.dataset for s in studies}
    yield "score-on", {s.name: s.score_on for s in studies}
    yield "objective", {s.name: s.objective for s in studies}
    searched = {name for s in studies for name in s.parameters}
    # A searched option varies within each study, so it cannot be compared between them.
    for key in STREAM_KEYS:
        if key not in searched:
            yield key.replace("_", "-"), {s.name: _value(s, key) for s in studies if key in s.config}
    yield "tasks of the search", {s.name: _tasks(s.search) for s in studies if s.search}
    yield "tasks of the evaluation", {s.name: _tasks(s.evaluation) for s in studies if s.evaluation}
    yield "images", {s.name: images for s in studies if (images := _images(s))}


def _value(study: SearchResults, key: str) -> str:
    """Returns an option's value as JSON, but words without quotes."""
    value = study.config[key]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tasks(records: Sequence[RunRecord]) -> str:
    return " and ".join(map(str, sorted({record.tasks for record in records})))


def _images(study: SearchResults) -> str:
    """Returns the fingerprints of the images of the search; "" where none is known."""
    # Only streams of images have their fingerprint; those of pixels have none.
    streams = (record.content.get("stream", {}) for record in study.search)
    return " and ".join(sorted({str(stream["images"]) for stream in streams if "images" in stream}))


def differing_options(studies: Sequence[SearchResults]) -> list[str]:
    """Returns the options in which the studies differ, with their values where these are short.

    Without those of the strategy, and those that change no result.
    """
    keys = dict.fromkeys(key for s in studies for key in s.config if key not in (*STRATEGY_KEYS, *PLACES))
    values_of = {key: list(dict.fromkeys(_value(s, key) for s in studies if key in s.config)) for key in keys}
    texts = {key: ", ".join(values) for key, values in values_of.items() if len(values) > 1}
    return [f"{key} ({text})" if len(text) <= MOST_SHOWN else key for key, text in texts.items()]


def all_evaluated_choices(studies: Sequence[SearchResults]) -> tuple[EvaluatedChoice, ...]:
    """Returns every choice evaluated on the evaluation stream that any of the studies knows of, oldest first."""
    # Each study marks its own choice as its own, so the same one comes in two forms.
    choices = {(choice.when, choice.point): choice for s in studies for choice in s.evaluated_choices}
    return tuple(choices[key] for key in sorted(choices))


def row_labels(studies: Sequence[SearchResults]) -> list[str]:
    """Returns the strategy of each study; with the study's name where another has the same strategy."""
    labels = [strategy_label(s.strategy) for s in studies]
    return [
        f"{label} ({s.name})" if labels.count(label) > 1 else label for label, s in zip(labels, studies, strict=True)
    ]


def strategies_table(studies: Sequence[SearchResults]) -> pd.DataFrame:
    """Returns one row a study; NaN where there is nothing.

    Columns: study, strategy, settings (number of tried points), members (of the search), chosen (text), kind, low, high
    (the verdict and its interval); the score of the chosen point in percent, with standard deviations of the sample:
    search_mean, search_std, search_n, evaluation_mean, evaluation_std, evaluation_n; and its score in the evaluation
    minus that of the first study, paired by seed: difference, standard_error, pairs.
    """
    return pd.DataFrame([_row(study, studies[0]) for study in studies])


def _row(study: SearchResults, first: SearchResults) -> dict[str, object]:
    verdict = trust(study).verdict
    # The first is compared with nothing, not with itself: a difference of 0 ± 0 would look like a measured one.
    others = [] if study is first else first.evaluation_of(first.chosen)
    pair = compare(study.evaluation_of(study.chosen), others, study.objective)
    return {
        "study": study.name,
        "strategy": study.strategy,
        "settings": len(study.points),
        "members": len({r.key for r in study.search}),
        "chosen": point_text(study.parameters, study.chosen),
        "kind": verdict.kind,
        "low": verdict.low,
        "high": verdict.high,
        **_spread("search", study.members_of(study.chosen), study.objective),
        **_spread("evaluation", study.evaluation_of(study.chosen), study.objective),
        "difference": pair.mean,
        "standard_error": pair.error,
        "pairs": pair.n,
    }


def _spread(name: str, members: Sequence[RunRecord], objective: str) -> dict[str, object]:
    over = spread(list(by_seed(members, objective).values()))
    return {f"{name}_mean": over.mean, f"{name}_std": over.std, f"{name}_n": over.n}
