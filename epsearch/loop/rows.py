"""The rows of a comparison: methods with their hyperparameters, as the definition or the user gives them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from epsearch.loop.jobs import Trainee
from epsearch.study.kinds import Comparison, MemoryStudy, Table
from results.labels import epsilon_text, method_label
from search_spaces.published.definition import load_definition, method_grids
from trainers.cohort import Member, TrainConfig

SMALL_BATCH = 10  # ER's other reference batch, that of its authors' script


@dataclass(frozen=True)
class Row:
    """One method with all of its hyperparameters; every seed is a member."""

    label: str
    method: str
    config: TrainConfig
    epsilon: float = 0.0
    strength: float | None = None

    def trainees(self, phase: str, seeds: tuple[int, ...]) -> list[Trainee]:
        return [
            Trainee(phase, self.method, self.config, Member(self.epsilon, seed, strength=self.strength))
            for seed in seeds
        ]

    def shown(self) -> dict[str, Any]:
        """The hyperparameters that tables name."""
        return {"lr": self.config.learning_rate} | ({} if self.strength is None else {"λ": self.strength})

    def candidates(self) -> list["Row"]:
        """The row with every learning rate, and λ, of A-GEM's grids (appendix G)."""
        grids = method_grids()
        strengths = dict(grids.strengths).get(self.method, (None,))
        return [
            replace(self, config=replace(self.config, learning_rate=rate), strength=strength)
            for rate in grids.learning_rates
            for strength in strengths
        ]


def table_rows(study: Table) -> tuple[Row, ...]:
    """What the study compares, as it begins."""
    return ROWS[study.kind](study)


def comparison_rows(study: Comparison) -> tuple[Row, ...]:
    """One row a method; ER with two reference batches, A-A-GEM with unit and with raw gradients."""
    config = _config(study, memory=study.memory)
    config = replace(config, fisher_every=study.fisher_every, penalty_form=study.penalty_form, margin=study.margin)
    return tuple(row for method in study.methods for row in _variants(study, method, config))


def memory_rows(study: MemoryStudy) -> tuple[Row, ...]:
    """One row a method and size."""
    rows = []
    for method in study.methods:
        for size in study.sizes:
            config = replace(_config(study, memory=size), a_agem_scale=study.a_agem_scale)
            label = method_label(method)
            if method == "a_agem" and study.a_agem_scale == "raw":
                label += " (raw average)"
            rows.append(_row(study, method, config, _with_epsilon(label, method, study.epsilon)))
    return tuple(rows)


def _variants(study: Comparison, method: str, config: TrainConfig) -> Iterator[Row]:
    label = _with_epsilon(method_label(method), method, study.epsilon)
    if method == "er":
        for batch in dict.fromkeys((study.memory_batch, SMALL_BATCH)):
            name = "the whole memory" if batch is None else f"reference batch {batch}"
            yield _row(study, method, replace(config, memory_batch=batch), f"{label}, {name}")
    elif method == "a_agem":
        yield _row(study, method, config, label)
        yield _row(study, method, replace(config, a_agem_scale="raw"), f"{label} (raw average)")
    else:
        yield _row(study, method, config, label)


def _row(study: Table, method: str, config: TrainConfig, label: str) -> Row:
    """The study's settings name every method's hyperparameters, unless they are to be tuned."""
    published = load_definition(study.dataset).method(method)
    given = {field: value for name, field, value in study.settings if name == method}
    return Row(
        label,
        method,
        replace(config, learning_rate=given.get("lr", published.learning_rate)),
        study.epsilon if method == "soft_agem" else 0.0,
        given.get("strength", published.strength),
    )


def _config(study: Table, memory: int) -> TrainConfig:
    return TrainConfig(
        batch_size=study.batch_size,
        memory=memory,
        memory_batch=study.memory_batch,
        trigger=study.trigger,
        scale=study.scale,
        satisfied=study.satisfied,
        network=study.network,
        pretrained=study.pretrained,
    )


def _with_epsilon(label: str, method: str, epsilon: float) -> str:
    return f"{label}, ε = {epsilon_text(epsilon)}" if method == "soft_agem" else label


ROWS: dict[str, Callable[[Any], tuple[Row, ...]]] = {Comparison.kind: comparison_rows, MemoryStudy.kind: memory_rows}
