"""Results of a study as figures, tables, texts and pages."""

import base64
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import RenderableType

from epsearch import api
from epsearch.failures.errors import NoStudy, UsageError
from epsearch.failures.lines import one_line
from epsearch.preparation import history
from epsearch.service.answers import Figure, Ledger, Sharing
from epsearch.service.results_cache import ResultsCache, StudyResults
from epsearch.service.studies import Studies
from epsearch.session.session import Effort, stored_loop
from epsearch.terminal import lists, outcome
from results.ledger import schema

SANDBOX = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:"
)
SCRIPT = re.compile(rb"<script(?![^>]*\btype=)[^>]*>(.*?)</script>", re.DOTALL)
MOST_SHARING = 200  # pairs of studies
EVENTS = 1000  # read at a time


class Reporter:
    """Reports of one service, for the API and the pages."""

    def __init__(self, studies: Studies, results: ResultsCache) -> None:
        self._studies, self._results = studies, results
        self._writing = threading.Lock()  # concurrent reports would write the same files
        self._counting = threading.Lock()
        self._keys: dict[str, tuple[object, frozenset[str]]] = {}  # study -> (version, keys of its stored members)

    def results(self, name: str) -> StudyResults:
        """Returns the results of a study. Raises NoStudy, also before it has begun."""
        results = self._results.get(name)
        if results is None:
            self._studies.status(name)
            raise NoStudy(f"study {name!r} has not begun: it has no results yet")
        return results

    def figure(self, name: str, module: ModuleType, numbers: Any) -> Figure:
        """Returns a figure with its caption and tables."""
        return Figure(
            name=name,
            caption=module.caption(numbers),
            drawing=json.loads(module.draw(numbers).to_json()),
            tables={
                table: json.loads(rows.to_json(orient="records", double_precision=15))
                for table, rows in module.tables(numbers).items()
            },
        )

    def report(self, name: str) -> tuple[bytes, dict[str, str]]:
        """Writes the report of a study; returns the page and its HTTP headers.

        Raises NoStudy, and UsageError before there is anything to report.
        """
        return self._page(self._write(name).report)

    def outcome(self, name: str, path: str | None = None, run: bool = False) -> tuple[RenderableType, dict[str, Any]]:
        """Returns the output of a run, as a renderable and as JSON; for the errors see `report`.

        path: of the report at the client, printed in place of the path here. run: True to include the work of the last
        run, as its events have it.
        """
        result = self._write(name)
        if run:
            result = replace(result, effort=self._last_run(name, result.effort))
        if path is not None:
            result = replace(result, report=Path(one_line(path)))
        return outcome.renderable(result), outcome.as_json(result)

    def description(self, name: str) -> tuple[RenderableType, dict[str, Any]]:
        """Returns the output of `epsearch show`, as a renderable and as JSON. Raises NoStudy."""
        status = self._studies.status(name)
        row = history.find(self._studies.store, name)
        if row is None:
            return lists.waiting(status, self._studies.study(name)), lists.as_json(status)
        settings = self._studies.settings
        loop = stored_loop(row, self._studies.store, settings.storage, settings.out)
        return lists.study(loop), lists.study_as_json(loop)

    def reasons(self, name: str) -> tuple[RenderableType, dict[str, Any]]:
        """Returns the output of `epsearch show --why`, as a renderable and as JSON.

        Raises NoStudy, and UsageError before a round is finished.
        """
        self._studies.status(name)
        settings = self._studies.settings
        study = api.load(name, settings.out, settings.storage)
        return outcome.reasons(study), outcome.reasons_as_json(study)

    def side_by_side(self, names: Sequence[str]) -> tuple[bytes, dict[str, str]]:
        """Writes the page that compares searches; returns it with its headers. Raises UsageError."""
        settings = self._studies.settings
        with self._writing:
            _, page = api.side_by_side(names, settings.storage, settings.out)
            return self._page(page)

    def ledger(self) -> Ledger:
        """Counts the runs of the ledger, and those that studies share."""
        with self._counting:
            keys = self._keys_by_study()
        pairs = Counter[tuple[str, str]]()
        users: dict[str, list[str]] = {}
        for study, keys_of_study in keys.items():
            for key in keys_of_study:
                users.setdefault(key, []).append(study)
        for several in users.values():
            pairs.update(combinations(sorted(several), 2))
        runs = len(self._studies.store.names(schema.runs))
        return Ledger(
            runs=runs,
            studies={study: len(keys_of_study) for study, keys_of_study in keys.items()},
            shared=[Sharing(studies=pair, members=count) for pair, count in pairs.most_common(MOST_SHARING)],
            unused=max(0, runs - len(users)),
        )

    def _keys_by_study(self) -> dict[str, frozenset[str]]:
        """Returns study -> keys of its stored members; reads again only studies that have changed."""
        settings, store = self._studies.settings, self._studies.store
        for row in store.studies():
            last = store.events.newest(row.name, "records", "state")
            version = (row.checksum, last and last.id)
            if version != self._keys.get(row.name, (None, None))[0]:
                keys: frozenset[str] = frozenset()
                with suppress(UsageError):  # it cannot be read
                    keys = frozenset(stored_loop(row, store, settings.storage, settings.out).records)
                self._keys[row.name] = (version, keys)
        names = {row.name for row in store.studies()}
        self._keys = {name: entry for name, entry in self._keys.items() if name in names}
        return {name: keys for name, (_, keys) in self._keys.items()}

    def _write(self, name: str) -> api.Outcome:
        self._studies.status(name)
        if history.find(self._studies.store, name) is None:
            raise NoStudy(f"study {name!r} has not begun: there is nothing to report yet")
        settings = self._studies.settings
        with self._writing:
            return api.report(name, settings.storage, settings.out)

    def _last_run(self, name: str, effort: Effort) -> Effort:
        """Adds the last run of a study to an effort without it, as far as there are events of it."""
        store = self._studies.store
        begun, last = store.events.newest(name, "begin"), store.events.newest(name, "progress")
        if begun is None:
            return effort
        trained, after = 0, begun.id
        while events := store.events.read(name, after, EVENTS):
            after = events[-1].id
            trained += sum(int(event.data.get("stored", 0)) for event in events if event.kind == "records")
        now = {} if last is None or last.id < begun.id else last.data
        seconds, steps = float(now.get("seconds") or 0.0), int(now.get("member_steps") or 0)
        reused = max(0, effort.reused - trained)
        return replace(effort, trained=trained, reused=reused, seconds=seconds, member_steps=steps)

    def _page(self, path: Path) -> tuple[bytes, dict[str, str]]:
        page = path.read_bytes()
        return page, {"Content-Security-Policy": policy(page)}


def policy(page: bytes) -> str:
    """Returns the content security policy of a self-contained page: its own scripts, and nothing else.

    `strict-dynamic` lets the page's script add plotly, which the page contains compressed.
    """
    hashes = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in SCRIPT.findall(page))
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"{SANDBOX}; script-src {allowed} 'strict-dynamic'"
