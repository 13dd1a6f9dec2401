"""Study: the frozen description of one search, and how it is read from options and YAML."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from epsearch.errors import UsageError, unknown
from epsearch.machine import cuda_present
from epsearch.options import OPTIONS, Option
from search_spaces.definition import load_definition
from trainers.cohort import TrainConfig


@dataclass(frozen=True)
class Study:
    """One search. Fields are the options of `epsearch run`; see `options.py` for what each means and allows."""

    dataset: str
    method: str
    repeats: int
    points: int
    seeds: tuple[int, ...]
    cv_tasks: int
    tasks: int
    memory: int
    memory_batch: int | None
    batch_size: int
    lr: float
    examples_per_task: int | None
    interval: tuple[float, float]
    score_on: str
    trigger: str
    scale: str
    satisfied: str
    device: str
    precision: str
    numeric_path: str | None
    certify: int
    runner: str
    workers: int | None
    address: str
    name: str
    out: Path
    storage: str
    data_dir: Path

    def identity(self) -> dict[str, Any]:
        """What makes the study this one, JSON-able: everything that can change a figure, nothing that cannot."""
        identifying = {option.name for option in OPTIONS if option.identifies}
        return {name: value for name, value in self.shown().items() if name in identifying}

    def shown(self) -> dict[str, Any]:
        """Every option as YAML and JSON write it."""
        return {option.name: option.show(getattr(self, option.name)) for option in OPTIONS}

    def to_yaml(self) -> str:
        """The study as a file that `epsearch run --config` reads back to the same study."""
        text: str = yaml.safe_dump(self.shown(), sort_keys=False, allow_unicode=True, default_flow_style=None)
        return text

    def stream_tasks(self, phase: str) -> range:
        """Tasks of D^CV ("cv") or D^EV ("eval"), numbered in the whole stream."""
        return range(self.cv_tasks) if phase == "cv" else range(self.cv_tasks, self.tasks)

    def train_config(self) -> TrainConfig:
        return TrainConfig(
            learning_rate=self.lr,
            batch_size=self.batch_size,
            memory=self.memory,
            memory_batch=self.memory_batch,
            trigger=self.trigger,
            scale=self.scale,
            satisfied=self.satisfied,
        )

    @property
    def folder(self) -> Path:
        """Where the study's report and tables lie."""
        return self.out / self.name


def build_study(given: Mapping[str, Any], config: Path | None = None) -> Study:
    """The effective study: the command line over the YAML file over the dataset's definition.

    `given` maps option names to values; None means not given. Raises UsageError.
    """
    chosen = {**_read_yaml(config), **{name: value for name, value in given.items() if value is not None}}
    parsed = {name: _option(name).parse(value) for name, value in chosen.items() if value is not None}
    dataset = parsed.setdefault("dataset", _option("dataset").default)
    values = {option.name: option.default for option in OPTIONS} | _defined(dataset) | parsed
    values["storage"] = ledger_url(values["out"], values["storage"])
    values["device"] = _device(values["device"])
    study = Study(**values)
    _check(study)
    if values["name"] is not None:
        return study
    digest = hashlib.sha256(json.dumps(study.identity(), sort_keys=True).encode()).hexdigest()
    return replace(study, name=f"{dataset}-{digest[:6]}")


def restore_study(identity: Mapping[str, Any], name: str, out: Path, storage: str) -> Study:
    """The study that a ledger keeps under `name`, with today's places."""
    stored = {key: _option(key).parse(value) for key, value in identity.items()}
    places = {"name": name, "out": out, "storage": storage}
    return Study(**{option.name: option.default for option in OPTIONS} | stored | places)


def ledger_url(out: Path, storage: str | None = None) -> str:
    """The URL of the ledger: SQLite in the out folder unless another is given."""
    return storage if storage is not None else f"sqlite:///{(out / 'epsearch.sqlite').absolute()}"


def _option(name: str) -> Option:
    by_name = {option.name: option for option in OPTIONS}
    if name not in by_name:
        raise UsageError(unknown("option", name, by_name))
    return by_name[name]


def _read_yaml(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the config file {path}: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"{path} must hold `option: value` lines, got a {type(content).__name__}")
    options = {str(key).replace("-", "_"): value for key, value in content.items()}
    names = [option.name for option in OPTIONS]
    for key in options:
        if key not in names:
            raise UsageError(f"{path}: {unknown('option', key, names)}")
    return options


def _defined(dataset: str) -> dict[str, Any]:
    """What the dataset's definition fixes, under the names of the options."""
    definition = load_definition(dataset)
    return {
        "repeats": definition.repeats,
        "points": definition.points,
        "seeds": tuple(range(definition.seeds)),
        "cv_tasks": definition.cv_tasks,
        "tasks": definition.tasks,
        "memory": definition.memory,
        "memory_batch": definition.memory_batch,
        "batch_size": definition.batch_size,
        "lr": definition.learning_rate,
        "interval": (definition.interval.low, definition.interval.high),
    }


def _device(wanted: str) -> str:
    if wanted == "cpu":
        return "cpu"
    if cuda_present():
        return "cuda"
    if wanted == "cuda":
        raise UsageError("device is 'cuda', but torch finds no CUDA GPU here; allowed here: cpu, auto")
    return "cpu"


def _check(study: Study) -> None:
    """Conditions between options."""
    if study.precision == "tf32" and study.device != "cuda":
        raise UsageError("precision tf32 is arithmetic of NVIDIA GPUs; with device cpu only float32 is allowed")
    if study.cv_tasks >= study.tasks:
        raise UsageError(
            f"cv-tasks must be < tasks, so that tasks remain for the evaluation; got {study.cv_tasks} and {study.tasks}"
        )
    if study.examples_per_task is not None and study.examples_per_task < study.batch_size:
        raise UsageError(
            f"examples-per-task must be >= batch-size, got {study.examples_per_task} and {study.batch_size}"
        )
    if study.memory == 0:
        raise UsageError(f"memory must be >= 1 for {study.method}, which projects against a memory, got 0")
