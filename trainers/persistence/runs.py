"""Checkpoints of runs, in storage that machines may share.

Names are COMMON/RUN_TASK_MACHINE.kept. COMMON is a hash of what runs have in common, RUN one of what tells them apart,
TASK a number, MACHINE in words: another one would round differently. A task's file is written before that of the task
before is removed, so that no more than one task is lost with half a file. Fork points, whose names end in .fork, stay.
If a place fails, one line reports it, and this process does not use it for RETRY_SECONDS seconds.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from trainers.notes import notify
from trainers.persistence.array_store import Arrays, file_name, mark_of, pack, unpack
from trainers.persistence.checked_files import Damaged
from trainers.persistence.places import Place, reason

Answer = TypeVar("Answer")

RETRY_SECONDS = 300.0  # what has gone may be back then; storage that hangs would else hold every cohort up
NEWEST, FORK = "kept", "fork"
NAME = re.compile(rf"([0-9a-f]+)_(\d+)_([^_]+)\.({NEWEST}|{FORK})")  # nothing else in the folder is ours

_LOST: dict[str, float] = {}  # places that have failed, and when


class _File(NamedTuple):
    """The parts of a file's name."""

    run: str
    """Which run."""
    task: int
    """After which of its tasks, counted from 0."""
    machine: str
    """On what machine it was trained."""
    kind: str
    """NEWEST or FORK."""


class Runs:
    """Checkpoints of the runs that share `common`, a JSON-able description.

    every: True to keep those of all tasks, not of the newest alone.
    """

    def __init__(self, place: Place, common: Mapping[str, Any], machine: str, every: bool) -> None:
        self._common, self._where = common, str(place)
        lost = time.monotonic() - _LOST.get(self._where, -RETRY_SECONDS) < RETRY_SECONDS
        self._place = None if lost else place
        self._folder, self._kind = file_name(mark_of(common)), FORK if every else NEWEST
        self._machine = re.sub(r"[^\w.]+|_", "-", machine)
        self._listed: set[_File] | None = None  # when the first run is looked for; then kept up to date
        self._told_of_others = False

    def __str__(self) -> str:
        return self._where

    def newest(self, identity: Mapping[str, Any], before: int | None = None) -> tuple[int, Arrays] | None:
        """Returns (the last task of the run, counted from 0, that was kept undamaged; what was kept); None without any.

        before: of those before this one; None for all. Says so, once, where only machines that are not alike have kept
        runs.
        """
        files = self._files([identity])
        mine = {file.task for file in files if file.machine == self._machine}
        for task in sorted((task for task in mine if before is None or task < before), reverse=True):
            if (arrays := self.at(identity, task)) is not None:
                return task, arrays
        if files and not mine and not self._told_of_others:
            others = ", ".join(sorted({file.machine for file in files}))
            notify(f"{self} has checkpoints from another machine ({others}; this is {self._machine}): runs start anew")
            self._told_of_others = True
        return None

    def at(self, identity: Mapping[str, Any], task: int) -> Arrays | None:
        """Returns the arrays of the run after the task; None for none, or damaged ones."""
        for file in self._files([identity]):
            if file.task == task and file.machine == self._machine:
                content = self._ask(partial(_content, name=self._path(file), mark=self._mark(identity, task)))
                if content is not None:
                    return unpack(content)
        return None

    def save(self, identity: Mapping[str, Any], task: int, arrays: Arrays) -> None:
        """Keeps the run after the task; not what was kept of it after earlier ones, unless that is a fork point."""
        file = _File(_run(identity), task, self._machine, self._kind)
        mine = {
            file
            for file in self._files([identity])
            if file.machine == self._machine and file.kind == self._kind == NEWEST
        }
        before = {file for file in mine if file.task < task}

        def write(place: Place) -> None:
            place.write(self._path(file), self._mark(identity, task), pack(arrays))
            if before:
                place.remove([self._path(file) for file in before])

        self._ask(write)
        self._list([file], before)

    def names(self, identities: Iterable[Mapping[str, Any]]) -> set[str]:
        """Returns the names of the files of these runs, on any machine."""
        return {self._path(file) for file in self._files(identities)}

    def delete(self, identities: Iterable[Mapping[str, Any]]) -> None:
        """Removes the files of these runs on any machine; fork points only where those are kept here, too."""
        files = [file for file in self._files(identities) if self._kind in (FORK, file.kind)]
        if files:
            self._ask(lambda place: place.remove([self._path(file) for file in files]), "they stay there")
            self._list([], files)

    def _files(self, identities: Iterable[Mapping[str, Any]]) -> list[_File]:
        """Returns the files of these runs."""
        if self._listed is None:
            names = self._ask(lambda place: place.names(self._folder)) or []
            matches = (NAME.fullmatch(name) for name in names)
            self._listed = {_File(match[1], int(match[2]), match[3], match[4]) for match in matches if match}
        runs = {_run(identity) for identity in identities}
        return [file for file in self._listed if file.run in runs]

    def _list(self, more: Iterable[_File], fewer: Iterable[_File]) -> None:
        self._listed = (self._listed or set()).union(more).difference(fewer)

    def _path(self, file: _File) -> str:
        return f"{self._folder}/{file.run}_{file.task}_{file.machine}.{file.kind}"

    def _mark(self, identity: Mapping[str, Any], task: int) -> str:
        return mark_of([self._common, identity, self._machine, task])

    def _ask(self, call: Callable[[Place], Answer], otherwise: str = "training goes on without them") -> Answer | None:
        """Returns the result of a call of the place; None once it has failed."""
        if self._place is None:
            return None
        try:
            return call(self._place)
        except OSError as error:
            notify(f"checkpoints at {self} cannot be used, {reason(error)}: {otherwise}")
            self._place, _LOST[self._where] = None, time.monotonic()
            return None


def works(place: Place) -> None:
    """Records that the place works, whatever it did before."""
    _LOST.pop(str(place), None)


def _run(identity: Mapping[str, Any]) -> str:
    return file_name(mark_of(identity))


def _content(place: Place, name: str, mark: str) -> bytes | None:
    """Returns the content under a mark; None without it, with a note where the file holds another content."""
    try:
        return place.contents(name, mark)
    except FileNotFoundError:  # removed since it was listed
        return None
    except Damaged as error:
        notify(f"{place}/{name} cannot be used, {error}: what it kept is trained again")
        return None
