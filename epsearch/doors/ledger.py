"""The door to a ledger: trains, reads and changes studies in this process."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from epsearch.doors.door import Request, View
from epsearch.events import Listener, Warned, together, warner
from epsearch.failures.errors import Unavailable, UsageError
from epsearch.ledger.location import ledger_url
from epsearch.status import StudyStatus
from epsearch.study.description import Study
from results.ledger.errors import StoreError
from results.ledger.url import LedgerUrl
from results.ledger.writers.states import FAILED

UV = "UV_RUN_RECURSION_DEPTH"
"""Environment variable that `uv run` sets."""


class LedgerDoor:
    """A ledger; storage: its URL, by default that of the environment or a file in the folder of reports."""

    def __init__(self, out: Path, storage: str | None) -> None:
        self._out, self._url = out, storage

    @property
    def _storage(self) -> LedgerUrl:
        return ledger_url(self._out, None if self._url is None else Study.options()["storage"].parse(self._url))

    def list(self) -> list[StudyStatus]:
        """Returns the studies, oldest first."""
        from epsearch.findings import listing

        return listing.list_studies(self._storage, self._out)

    def show(self, name: str | None, why: bool = False) -> View:
        """Returns options and results of a study, or the reasons of its answer."""
        from epsearch.findings import listing
        from epsearch.terminal import lists

        if why:
            from epsearch import api
            from epsearch.terminal import outcome

            study = api.load(name, self._out, self._storage)
            return View(lambda width, colours: outcome.reasons(study), lambda: outcome.reasons_as_json(study))
        loop = listing.load(name, self._storage, self._out)
        return View(lambda width, colours: lists.study(loop), lambda: lists.study_as_json(loop))

    def report(
        self, names: Sequence[str], figures: Sequence[str], with_printed: bool = False, metrics: Sequence[str] = ()
    ) -> View:
        """Writes the report of a study, or the page of several side by side, from the ledger."""
        from epsearch import api
        from epsearch.terminal import outcome

        if len(names) < 2:
            name = names[0] if names else None
            result = api.report(name, self._storage, self._out, figures, with_printed, metrics)
            return _with_images(_outcome(result), result.image_files)
        for flag, value in (("--with-printed", with_printed), ("--metrics", metrics)):
            if value:
                raise UsageError(f"{flag} is for the report of one study, got {len(names)}")
        several, page = api.side_by_side(names, self._storage, self._out, figures)
        view = View(
            lambda width, colours: outcome.side_by_side(several, page),
            lambda: outcome.side_by_side_as_json(several, page),
        )
        return _with_images(view, several.image_files)

    def plan(self, request: Request, listener: Listener) -> View:
        """Plans a study; measures the speed of this machine for a few seconds."""
        from epsearch.session import session
        from epsearch.session.plan_text import in_brief, in_words
        from epsearch.terminal.consoles import facts

        plan = session.plan(study_of(request), listener, request.extend)
        words, brief = in_words(plan), in_brief(plan)
        rows = words if request.verbose else brief
        return View(lambda width, colours: facts(rows), lambda: plan.as_json() | {"words": words, "brief": brief})

    def run(self, request: Request, listener: Listener, resume: bool = False) -> View:
        """Trains a study in this process. Raises Cancelled for a cancelled one, unless resumed."""
        from trainers.foreign.fork_servers import keep_servers

        with keep_servers():  # the process that declares a trainer goes on as the one that members are copies of
            study = study_of(request)
            with _notify_at_end(study, request.notify, listener):
                return _train(study, request, listener, resume)

    def resume(
        self, name: str | None, failed: bool, options: Mapping[str, Any], wait: bool, live: Sequence[str]
    ) -> Sequence[Callable[[Listener], View]]:
        """Resumes stored studies, one after another."""
        from epsearch.control import resuming

        def train(name: str | None, listener: Listener) -> View:
            study = resuming.stored_study(name, self._storage, self._out, options)
            return _train(study, Request(type(study), {}, wait=wait, live=live), listener, True)

        return [partial(train, name) for name in (resuming.failed_studies(self._storage) if failed else [name])]

    def watch(self, name: str, listener: Listener) -> StudyStatus:
        """Follows a study by its events in the ledger."""
        from epsearch.control.watching import watch

        return watch(name, self._storage, self._out, listener)

    def cancel(self, name: str, deadline: float) -> StudyStatus:
        """Stops a study, also on another machine."""
        from epsearch.control.cancelling import cancel

        return cancel(name, self._storage, self._out, deadline)

    def delete(self, name: str, sure: Callable[[str], bool]) -> View:
        """Deletes a study from the ledger, with the members that no other study uses."""
        from epsearch.control.removing import delete
        from epsearch.terminal import lists

        def confirm(removal: Any) -> bool:
            return sure(f"delete study {name} with {lists.removal_text(removal)}?")

        removal = delete(name, self._storage, self._out, confirm)
        return View(
            lambda width, colours: f"deleted study {name} with {lists.removal_text(removal)}\n",
            lambda: lists.removal_as_json(removal),
        )


def study_of(request: Request) -> Study:
    """Returns the study of a request. Raises UsageError."""
    if request.extend:
        from epsearch.api import build_extension  # reads the ledger, which other studies need not wait for

        return build_extension(request.options, request.config)
    from epsearch.preparation.build import build

    return build(request.kind, request.options, request.config)


def _train(study: Study, request: Request, listener: Listener, resume: bool) -> View:
    """Trains a study and logs it to other tools, which get means, evaluation and report at its end.

    request: says how.
    """
    from epsearch import api

    with ExitStack() as stack:
        loggers = [stack.enter_context(api.live(target, warner(listener))) for target in request.live]
        events = together(listener, *loggers)
        how = (request.extend, request.wait, resume, request.with_printed, request.metrics)
        result = api.run(study, events, *how)
    for target in request.live:
        tool, _, where = target.partition(":")
        try:
            api.publish(result.study.name, tool, where, result.study.out, result.study.storage)
        except UsageError as error:  # the training has succeeded all the same
            listener(Warned(str(error)))
    return _outcome(result)


@contextmanager
def _notify_at_end(study: Study, url: str | None, listener: Listener) -> Iterator[None]:
    """Sends a message to a URL when the block has ended, however it ends; None for no message."""
    from epsearch import notice

    if url is None:
        yield
        return
    notice.check_url(url)
    error = ""
    try:
        yield
    except Exception as failure:
        error = str(failure)
        raise
    finally:
        if why := notice.send(url, notice.message(_status(study, error))):
            listener(Warned(f"no message could be sent: {why}"))


def _status(study: Study, error: str) -> StudyStatus:
    """Returns how a study stands at the end of its run; error: why it failed before the ledger had it."""
    from epsearch.findings.listing import open_ledger, status

    with suppress(UsageError, Unavailable, StoreError), open_ledger(study.storage) as store:
        return status(store, str(study.name), study.storage, study.out)
    return StudyStatus(name=str(study.name), state=FAILED, reason=error)


def _outcome(result: Any) -> View:
    from epsearch.terminal import outcome  # imports pandas, which can wait until the end

    place, program = _place_of(result.study), _program()
    return View(lambda width, colours: outcome.renderable(result, place, program), lambda: outcome.as_json(result))


def _program() -> str:
    """Returns how a command begins that works as it is typed: with `uv run` where that has made this one work."""
    if UV not in os.environ:
        return "epsearch"
    prefix = str(Path(sys.prefix))
    others = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if not folder.startswith(prefix)]
    return "epsearch" if shutil.which("epsearch", path=os.pathsep.join(others)) else "uv run epsearch"


def _place_of(study: Study) -> str:
    """Returns the options that name the ledger of a study, for a command; "" for the usual one."""
    out = "" if study.out == Study.options()["out"].default else f" --out {shlex.quote(str(study.out))}"
    storage = "" if study.storage == ledger_url(study.out) else f" --storage {shlex.quote(str(study.storage))}"
    return out + storage


def _with_images(view: View, paths: Sequence[Path]) -> View:
    """Returns a view that also names the files of figures."""
    from epsearch.terminal.image_files import with_paths

    if not paths:
        return view
    return View(
        lambda width, colours: with_paths(view.renderable(width, colours), paths),
        lambda: {**view.data(), "figures": [str(path) for path in paths]},
    )
