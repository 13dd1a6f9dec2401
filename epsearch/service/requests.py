"""What clients say of a study, on its way to one: what they may not choose is refused, and the service's own put in.

A client's places would be places of this machine, and a module that it names would be code that runs here.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from epsearch.api import grown
from epsearch.failures.errors import UsageError, brief, refused
from epsearch.plugins.kinds import NAMING
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.service.settings import Settings
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Search
from epsearch.study.limits import LARGE
from epsearch.study.option import PLACE
from epsearch.study.parsers import one_of, whole
from results.ledger.writers.queue import Submission
from search_spaces.published.definition import UnknownDataset, load_definition
from trainers.streams import present

SERVER_SET = tuple(name for name, one in Study.options().items() if one.scope == PLACE)
"""Options that say where things are: a client's would open places of this machine."""
CALLED = {"search": "run", "comparison": "compare", "memory study": "memory"}
"""What people call a kind of study -> the kind."""
PRIORITIES = (-1000, 1000)


def described(given: Mapping[str, Any], settings: Settings) -> Study:
    """The study that a client describes: `kind`, and options by name as a YAML file has them. Raises UsageError."""
    written = {str(name).replace("-", "_"): value for name, value in given.items()}
    wanted = written.pop("kind", Search.kind)
    if isinstance(wanted, str) and (meant := CALLED.get(wanted.lower())):
        raise UsageError(f"no kind {wanted!r}; known: {', '.join(KINDS)}; did you mean {meant!r}?")
    return build(KINDS[one_of(wanted, "kind", KINDS)], checked(written, settings) | places(settings))


def checked(options: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Options of a client, without those that open places of this machine. Raises UsageError."""
    for name in SERVER_SET:
        if options.get(name) is not None:
            raise UsageError(f"{name.replace('_', '-')} is the service's to say; leave it out")
    allowed = dict(options)
    if (dataset := allowed.get("dataset")) is not None:
        allowed["dataset"] = _dataset(str(dataset), settings)
    for option in NAMING:
        value = allowed.get(option, "")
        parts = value if isinstance(value, (list, dict)) else [value]  # of settings the keys name methods
        if any(":" in str(part) for part in parts):
            _allow_modules(option, value, settings)
    if allowed.get("pretrained") not in (None, "none", "imagenet"):
        raise UsageError(f"pretrained must be none or imagenet here, got {brief(allowed['pretrained'])}")
    return allowed


def _allow_modules(option: str, value: Any, settings: Settings) -> None:
    """Raises UsageError where this service was not started to allow code that a client names."""
    if not settings.modules:
        raise UsageError(
            f"{option.replace('_', '-')} {brief(value)} runs code of this machine, which this service was not "
            "started to allow (--allow-modules)"
        )


def _dataset(dataset: str, settings: Settings) -> str:
    """A registered name as it is, folder:NAME below the roots, a module only where that is allowed."""
    kind, colon, rest = dataset.partition(":")
    if not colon:
        with refused(UnknownDataset):  # before it is looked for among the folders of this machine
            return load_definition(dataset).name
    if kind != "folder":
        _allow_modules("dataset", dataset, settings)
        return dataset
    for root in settings.roots:
        with suppress(OSError, ValueError, RuntimeError):  # what cannot be a name, and links in a circle
            place = (root / rest).resolve()
            if place.is_relative_to(root.resolve()) and place.exists():
                return f"folder:{place}"
    if not settings.roots:
        raise UsageError(f"dataset {brief(dataset)} names a folder, and this service was started without --images")
    roots = ", ".join(str(root) for root in settings.roots)
    raise UsageError(f"there is no {brief(rest)} below the folders of images of this service (--images {roots})")


def check_data(study: Study) -> None:
    """Raises UsageError for what does not fit the data, where those are there and can be looked at in a moment.

    Other studies fail when their process looks: images are decoded first, data that are missing are downloaded.
    """
    tasks = len(study.all_seeds) * study.tasks
    named = ":" not in study.dataset and load_definition(study.dataset).image_size is None
    if named and tasks <= LARGE and present(study.dataset, study.data_dir):
        open_evaluation(study)


def of_submission(submission: Submission, settings: Settings) -> Study:
    """The study of a submission, with this service's places. Raises UsageError."""
    given, options = submission.given, submission.given.get("options")
    if not submission.readable or options is None:
        raise UsageError(f"what was submitted as {submission.study!r} cannot be read; submit it again")
    if options.get("search") is not None:  # which goes over the interval; a client could not have given both
        options = {name: value for name, value in options.items() if name != "interval"}
    kind = KINDS[one_of(given.get("kind", Search.kind), "kind", KINDS)]
    placed = {**options, **places(settings)}
    # A search that grows keeps its folder of datasets.
    return grown(placed | {"data_dir": None}) if given.get("extend") else build(kind, placed)


def is_of(submission: Submission, study: Study, extend: bool, settings: Settings) -> bool:
    """Whether a study is that of a submission, also of one to a version with fewer options."""
    with suppress(UsageError):
        return bool(submission.given.get("extend")) == extend and of_submission(submission, settings) == study
    return False


def places(settings: Settings) -> dict[str, Any]:
    """Values of SERVER_SET."""
    return {name: getattr(settings, name) for name in SERVER_SET}


def priority(value: Any) -> int:
    """A priority as it was given. Raises UsageError."""
    low, high = PRIORITIES
    return whole(0 if value is None else value, "priority", low=low, high=high)
