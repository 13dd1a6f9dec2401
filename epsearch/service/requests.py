"""Turns a client's request into a study: refuses what clients may not choose, and adds the service's own paths.

A client's paths would be paths of this machine, and a module that it names would be code that runs here.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from epsearch.api import build_extension
from epsearch.failures.errors import UsageError, as_usage_error, brief
from epsearch.plugins.kinds import NAMING
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.service.settings import Settings
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Search
from epsearch.study.limits import LARGE
from epsearch.study.option import PLACE
from epsearch.study.parsers import one_of, whole
from results.ledger.writers.queue import Labels, Submission
from search_spaces.published.definition import UnknownDataset, load_definition
from trainers.streams import present

SERVER_SET = tuple(name for name, option in Study.options().items() if option.scope == PLACE)
"""Options with paths, which the service chooses: a client's would be paths of this machine."""
TITLES = {"run": "search", "compare": "comparison", "memory": "memory study", "protocols": "protocol study"}
"""Kind of study -> its title."""
PRIORITIES = (-1000, 1000)
TAG = re.compile(r"[\w.-]{1,40}")
OF_THE_URL = frozenset({"notify", "priority"})
"""Parameters of requests that are no options of a study."""
MOST_TAGS = 10
LONGEST_NOTES = 5000  # characters
UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters, of which databases refuse some, and halves of surrogate pairs, which no file can have."""


def build_study(request: Mapping[str, Any], settings: Settings) -> Study:
    """Builds the study of a request: `kind`, and options by name as in a YAML file. Raises UsageError."""
    options = {str(name).replace("-", "_"): value for name, value in request.items()}
    kind = options.pop("kind", Search.kind)
    if meant := next((one for one, title in TITLES.items() if title == str(kind).lower()), None):
        raise UsageError(f"no kind {kind!r}; known: {', '.join(KINDS)}; did you mean {meant!r}?")
    return build(KINDS[one_of(kind, "kind", KINDS)], check_options(options, settings) | server_options(settings))


def check_options(options: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Returns the options that a client may set. Raises UsageError for others."""
    for name in SERVER_SET:
        if options.get(name) is not None:
            raise UsageError(f"{name.replace('_', '-')} is set by the service; leave it out")
    for name in OF_THE_URL.intersection(options):
        raise UsageError(f"{name} goes into the URL, like ?{name}={brief(options[name])}; leave it out of the body")
    allowed = dict(options)
    if (dataset := allowed.get("dataset")) is not None:
        allowed["dataset"] = _dataset(str(dataset), settings)
    for option in NAMING:
        value = allowed.get(option, "")
        parts = value if isinstance(value, (list, dict)) else [value]  # in `settings`, the keys are method names
        if any(":" in str(part) for part in parts):
            _allow_modules(option, value, settings)
    if allowed.get("pretrained") not in (None, "none", "imagenet"):
        raise UsageError(f"pretrained must be none or imagenet here, got {brief(allowed['pretrained'])}")
    if isinstance(pack := allowed.get("from_pack"), dict):
        settings_of = pack.get("settings")
        named = {name: pack[name] for name in ("dataset", "method") if name in pack}
        checked = check_options(named | (settings_of if isinstance(settings_of, dict) else {}), settings)
        # A folder below the roots, as any other.
        allowed["from_pack"] = pack | {name: checked[name] for name in ("dataset",) if name in checked}
    _check_text("the options", json.dumps(options, ensure_ascii=False, default=str))
    return allowed


def _allow_modules(option: str, value: Any, settings: Settings) -> None:
    """Raises UsageError unless the service allows code that a client names."""
    if not settings.modules:
        raise UsageError(
            f"{option.replace('_', '-')} {brief(value)} runs code of this machine, which this service does not allow "
            "(--allow-modules)"
        )


def _dataset(dataset: str, settings: Settings) -> str:
    """Returns the dataset to use.

    Registered names stay unchanged, folder:NAME is looked up below the roots, and modules need permission.
    """
    kind, colon, rest = dataset.partition(":")
    if not colon:
        with as_usage_error(UnknownDataset):  # before `build` searches the folders of this machine
            return load_definition(dataset).name
    if kind != "folder":
        _allow_modules("dataset", dataset, settings)
        return dataset
    for root in settings.roots:
        with suppress(OSError, ValueError, RuntimeError):  # impossible names, and circular links
            path = (root / rest).resolve()
            if path.is_relative_to(root.resolve()) and path.exists():
                return f"folder:{path}"
    if not settings.roots:
        raise UsageError(f"dataset {brief(dataset)} names a folder, and this service was started without --images")
    roots = ", ".join(str(root) for root in settings.roots)
    raise UsageError(f"there is no {brief(rest)} below the folders of images of this service (--images {roots})")


def check_data(study: Study) -> None:
    """Raises UsageError for options that do not fit the data, if those are present and quick to read.

    Other studies fail in their process: images are decoded first, missing data are downloaded.
    """
    tasks = len(study.all_seeds) * study.tasks
    named = ":" not in study.dataset and load_definition(study.dataset).image_size is None
    if named and tasks <= LARGE and present(study.dataset, study.data_dir):
        open_evaluation(study)


def submitted_study(submission: Submission, settings: Settings) -> Study:
    """Returns the study of a submission, with this service's paths. Raises UsageError."""
    request, options = submission.given, submission.given.get("options")
    if not submission.readable or options is None:
        raise UsageError(f"the submission of {submission.study!r} cannot be read; submit it again")
    if options.get("search") is not None:  # excludes the interval, which is stored all the same
        options = {name: value for name, value in options.items() if name != "interval"}
    kind = KINDS[one_of(request.get("kind", Search.kind), "kind", KINDS)]
    options = {**options, **server_options(settings)}
    # A search that is extended keeps its folder of datasets.
    return build_extension(options | {"data_dir": None}) if request.get("extend") else build(kind, options)


def is_same(submission: Submission, study: Study, extend: bool, settings: Settings) -> bool:
    """Returns whether a submission describes this study, even if an older version with fewer options received it."""
    with suppress(UsageError):
        return bool(submission.given.get("extend")) == extend and submitted_study(submission, settings) == study
    return False


def server_options(settings: Settings) -> dict[str, Any]:
    """Returns the service's values of SERVER_SET."""
    return {name: getattr(settings, name) for name in SERVER_SET}


def parse_labels(tags: Any, notes: Any) -> Labels:
    """Returns the labels of a request; tags: a list, or text with commas between. Raises UsageError."""
    words = tags.split(",") if isinstance(tags, str) else tags
    if not isinstance(words, list) or not isinstance(notes, str):
        raise UsageError("tags must be a list of words, and notes a text")
    tags_of_study = tuple(dict.fromkeys(word for text in words if (word := str(text).strip())))
    for word in tags_of_study:
        if not TAG.fullmatch(word):
            raise UsageError(f"a tag must have 1 to 40 letters, digits or . _ -, got {brief(word)}")
    if len(tags_of_study) > MOST_TAGS:
        raise UsageError(f"a study may have at most {MOST_TAGS} tags, got {len(tags_of_study)}")
    if len(notes) > LONGEST_NOTES:
        raise UsageError(f"notes may have at most {LONGEST_NOTES:,} characters, got {len(notes):,}")
    _check_text("notes", notes)
    return Labels(tags_of_study, notes.strip().replace("\r\n", "\n"))


def _check_text(what: str, text: str) -> None:
    """Raises UsageError for characters that cannot be stored."""
    if wrong := UNWRITABLE.search(text):
        raise UsageError(f"{what} must be text that can be stored, got the character U+{ord(wrong[0]):04X}")


def parse_priority(value: Any) -> int:
    """Returns the priority of a request. Raises UsageError."""
    low, high = PRIORITIES
    return whole(0 if value is None else value, "priority", low=low, high=high)
