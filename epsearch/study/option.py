"""What an option is: how it is written, parsed, shown, whether it tells studies apart; how `--help` groups them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epsearch.failures.errors import UsageError, brief
from epsearch.study.parsers import plain


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Option:
    """One row of the table: an option of the command line, which YAML files and services take by its name."""

    name: str
    """With underscores, as the field of the description has it."""
    default: Any
    """The field's value where neither the user nor the dataset's definition gives one."""
    convert: Callable[..., Any]
    """From `study/parsers.py`: (text or YAML value, the name that messages use) -> the field's value, or UsageError;
    `of_method`: also handed the name of the study's method.
    """
    help: str
    identifies: bool = True
    """Whether it can change a study's figures; the others say how and where it runs."""
    write: Callable[[Any], Any] = _as_it_is
    """The inverse of `convert`, but for None."""
    none: str | None = None
    """The word that stands for the value None; None where YAML and JSON have null for it."""
    aliases: tuple[str, ...] = ()
    """Other flags for the same."""
    later: bool = False
    """True for an option that older stored studies lack: it identifies a study only where it is not the default."""
    of_method: bool = False
    """Whether what it may be depends on the study's method."""

    @property
    def flag(self) -> str:
        """The option on the command line, with hyphens."""
        return "--" + self.name.replace("_", "-")

    def parse(self, value: Any, method: str | None = None) -> Any:
        """Returns the field's value of a text, or of a value of YAML, JSON or Python. Raises UsageError, one line.

        method: the study's, None where there is none or it is not known.
        """
        name, value = self.flag.removeprefix("--"), plain(value)
        try:
            return self.convert(value, name, method) if self.of_method else self.convert(value, name)
        except (ValueError, OverflowError):  # a file's number of more digits than Python turns into a text
            raise UsageError(f"{name} cannot be {brief(value)}") from None

    def show(self, value: Any) -> Any:
        """Returns the value as YAML and JSON write it: the inverse of `parse`."""
        return self.none if value is None else self.write(value)


HELP_GROUPS = {
    "What is searched": (
        *("search", "trainer", "set", "against", "interval", "objective", "strategy", "strategy_seed"),
        *("repeats", "points", "choose", "race", "score_on"),
    ),
    "Stream": (
        *("dataset", "data_dir", "tasks", "cv_tasks", "classes_per_task", "image_size", "examples_per_task"),
        *("skip_corrupt", "allow_shared"),
    ),
    "Seeds and evaluation": ("seeds", "most_seeds", "eval_seeds", "certify", "moved_starts"),
    "Where and how it runs": (
        *(
            "runner",
            "workers",
            "time_budget",
            "time_limit",
            "memory_limit",
            "address",
            "niceness",
            "task_timeout",
            "device",
            "precision",
            "numeric_path",
        ),
        "checkpoints",
    ),
    "Output": ("name", "out", "storage", "add_metrics", "add_figures"),
}
OF_METHODS = "Method and training"  # all others, hyperparameters among them
