"""The options of all commands that train, one row each: name, default, what it takes, help.

A command takes the options that its description (kinds.py) has as fields. CLI, YAML and service read this table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from epsearch.cache import cache_folder
from epsearch.ledger.location import storage
from epsearch.study import limits
from epsearch.study import parsers as of
from epsearch.study.hyperparameters import space, space_shown
from search_spaces.strategies import STRATEGIES
from trainers.cohort import NETWORKS
from trainers.hyperparameters import Hyperparameter
from trainers.methods import hyperparameters
from trainers.numeric_path import PRECISIONS


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Option:
    """One row of the table: an option of the command line, which YAML files and services take by its name."""

    name: str
    """With underscores, as the field of the description has it."""
    default: Any
    """The field's value where neither the user nor the dataset's definition gives one."""
    parse: Callable[[Any], Any]
    """Turns text or a YAML value into the field's value or raises UsageError."""
    help: str
    identifies: bool = True
    """Whether it can change a study's figures; the others say how and where it runs."""
    show: Callable[[Any], Any] = _as_it_is
    """The inverse of `parse`."""
    aliases: tuple[str, ...] = ()
    """Other flags for the same."""
    later: bool = False
    """Whether it came later than the first ledgers: then it identifies a study only where it differs from its default.

    Older studies go on being themselves.
    """

    @property
    def flag(self) -> str:
        """The option on the command line, with hyphens."""
        return "--" + self.name.replace("_", "-")


FIRST: tuple[Option, ...] = (
    Option(
        "dataset",
        "permuted_digits",
        of.dataset,
        "Stream of tasks: a name of `epsearch datasets`; folder:PATH, class folders or a zip of them; module:factory.",
    ),
    Option("method", "soft_agem", of.method, "Method whose hyperparameter is searched."),
    Option(
        "strategy",
        "narrowing",
        of.one_of("strategy", *STRATEGIES),
        f"How the search goes on from what it has seen: {', '.join(STRATEGIES)}.",
        later=True,
    ),
    Option(
        "search",
        None,
        space,
        "What is searched, like epsilon=0..1 or lr=log:0.003..0.3 memory=10,25,50. [default: ε over --interval]",
        show=space_shown,
        later=True,
    ),
    Option(
        "strategy_seed",
        0,
        of.whole("strategy-seed", 0, limits.STRATEGY_SEED),
        "Seed of strategies that draw at random.",
        later=True,
    ),
    Option(
        "race",
        False,
        of.yes_or_no("race"),
        "Begin every value with two seeds, and add seeds only to those not yet separated from the best.",
        later=True,
    ),
    Option(
        "methods",
        None,
        of.methods,
        "Methods with commas between, or all. [default: all that fit the command]",
        show=list,
    ),
    Option(
        "sizes",
        None,
        of.sizes,
        "Memory sizes to compare, examples per class and task. [default: the dataset's, like 25,50,100]",
        show=list,
    ),
    Option("repeats", None, of.whole("repeats", 1, limits.ROUNDS), "Rounds of the search. [default: the dataset's]"),
    Option(
        "points", None, of.whole("points", 3, limits.VALUES), "Values tried in each round. [default: the dataset's]"
    ),
    Option("seeds", None, of.seeds, "A count, a list 0,1,2 or a range 0..4. [default: the dataset's]", show=list),
    Option(
        "eval_seeds",
        None,
        partial(of.seeds, name="eval-seeds"),
        "Seeds of the evaluation, as --seeds. [default: those of the search]",
        show=of.list_or_none,
        later=True,
    ),
    Option(
        "cv_tasks",
        None,
        of.whole("cv-tasks", 1, limits.TASKS),
        "Tasks of the search, the first of the stream. [default: the dataset's]",
    ),
    Option(
        "tasks",
        None,
        of.whole("tasks", 2, limits.TASKS),
        "Tasks of the whole stream; the rest is for evaluation. [default: the dataset's]",
    ),
    Option(
        "classes_per_task",
        None,
        of.whole("classes-per-task", 1, limits.CLASSES),
        "Classes of each task of a stream of images. [default: the dataset's; 5 for folder:PATH]",
    ),
    Option(
        "image_size",
        None,
        of.whole("image-size", 1, limits.SIDE),
        "Side in pixels to which images are resized. [default: the dataset's; 32 for folder:PATH]",
    ),
    Option(
        "network",
        None,
        of.one_of("network", *NETWORKS),
        "mlp for pixels; reduced_resnet18 or resnet18 for images. [default: the dataset's]",
    ),
    Option(
        "pretrained",
        None,
        of.pretrained,
        "Weights that resnet18 starts from: imagenet, a file's path, or none. [default: the dataset's]",
        show=of.none_for_none,
    ),
    Option(
        "skip_corrupt",
        False,
        of.yes_or_no("skip-corrupt"),
        "Leave out images that cannot be decoded, instead of refusing to start.",
    ),
    Option(
        "examples_per_task",
        None,
        of.or_all(of.whole("examples-per-task", 1)),
        "Training examples of each task, or all. [default: all]",
        show=of.all_for_none,
    ),
)

# Below the hyperparameters.
OTHERS: tuple[Option, ...] = (
    Option(
        "settings",
        (),
        of.settings,
        "Learning rates and λ of methods, like ewc.lr=0.01,ewc.strength=100. [default: the dataset's]",
        show=of.settings_shown,
    ),
    Option(
        "tune",
        False,
        of.yes_or_no("tune"),
        "First choose each method's learning rate, and λ, from A-GEM's grids on the cross-validation tasks.",
    ),
    Option("interval", None, of.interval, "Where ε is searched, LOW HIGH. [default: 0 1]", show=list),
    Option(
        "score_on",
        "cv",
        of.one_of("score-on", "cv", "eval"),
        "Stream that scores ε: cv is the protocol; eval reproduces the printed figures and flatters the result.",
    ),
    Option("device", "auto", of.one_of("device", "auto", "cpu", "cuda"), "Where members are trained."),
    Option("precision", "float32", of.one_of("precision", *PRECISIONS), "Matrix products of a GPU: float32 or tf32."),
    Option(
        "numeric_path",
        None,
        of.numeric_path,
        "Arithmetic, like cpu-float32-mkl. [default: the fastest here, measured; a study keeps its own]",
        identifies=False,
    ),
    Option(
        "certify",
        2,
        of.whole("certify", 0, limits.MEMBERS),
        "Members of the search that are trained once more, alone, to prove that cohorts change nothing.",
        identifies=False,
    ),
    Option(
        "runner",
        "tune",
        of.one_of("runner", "tune", "local"),
        "Ray Tune (one machine or a cluster), or threads of this process; the results are the same.",
        identifies=False,
    ),
    Option(
        "workers",
        None,
        of.whole("workers", 1, limits.WORKERS),
        "Cohorts trained at a time. [default: every core]",
        identifies=False,
    ),
    Option("address", "local", str, "Ray cluster to join; local starts a private Ray.", identifies=False),
    Option(
        "name", None, of.name, "Name of the study. [default: the dataset and a hash of the options]", identifies=False
    ),
    Option(
        "out",
        Path("runs"),
        of.path("out"),
        "Folder for the ledger and the reports.",
        identifies=False,
        show=of.path_shown,
    ),
    Option(
        "storage",
        None,
        storage,
        "SQLAlchemy URL of the ledger. [default: $EPSEARCH_STORAGE, or SQLite in --out]",
        identifies=False,
        show=str,
    ),
    Option(
        "data_dir",
        cache_folder(),
        of.path("data-dir"),
        "Folder of datasets; what is missing is downloaded there.",
        identifies=False,
        show=of.path_shown,
    ),
)


def of_hyperparameter(one: Hyperparameter) -> Option:
    """The option that gives a hyperparameter's value where it is not searched."""
    return Option(
        one.name,
        None if one.published else one.default,
        of.hyperparameter(one),
        one.help,
        show=of.all_for_none if one.all_for_none else _as_it_is,
        aliases=one.aliases,
        later=True,
    )


def options() -> tuple[Option, ...]:
    """All options, in the order of `--help`: with one for every hyperparameter of any method."""
    return (*FIRST, *(of_hyperparameter(one) for one in hyperparameters().values()), *OTHERS)


def default(name: str) -> Any:
    """The default of an option that has one for every dataset."""
    return next(option.default for option in (*FIRST, *OTHERS) if option.name == name)
