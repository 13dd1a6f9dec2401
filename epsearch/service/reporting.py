"""What is read of a study: its findings as figures, tables, texts and pages."""

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
from epsearch.preparation import growth
from epsearch.service.answers import Figure, Ledger, Sharing
from epsearch.service.results_cache import ResultsCache, StudyResults
from epsearch.service.studies import Studies
from epsearch.session.session import Effort, stored_loop
from epsearch.terminal import lists, outcome
from results.ledger import schema

SANDBOX = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
SCRIPT = re.compile(rb"<script(?![^>]*\btype=)[^>]*>(.*?)</script>", re.DOTALL)
MOST_SHARING = 200
EVENTS = 1000  # that are read at a time


class Reporter:
    """Reads for the API and the pages."""

    def __init__(self, studies: Studies, findings: ResultsCache) -> None:
        self._studies, self._findings = studies, findings
        self._writing = threading.Lock()  # two would write the same files
        self._looking = threading.Lock()
        self._known: dict[str, tuple[object, frozenset[str]]] = {}

    def found(self, name: str) -> StudyResults:
        """What is known of a study. Raises NoStudy, also for one that has not begun."""
        found = self._findings.get(name)
        if found is None:
            self._studies.status(name)
            raise NoStudy(f"study {name!r} has not begun: nothing is known of it yet")
        return found

    def figure(self, name: str, module: ModuleType, numbers: Any) -> Figure:
        """A figure as JSON has it."""
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
        """(the page of a study, the headers that it needs), written anew where the study has changed since.

        Raises NoStudy, and UsageError before there is anything to report.
        """
        return self._page(self._written(name).report)

    def outcome(self, name: str, path: str | None = None, run: bool = False) -> tuple[RenderableType, dict[str, Any]]:
        """What a run prints at its end, as a renderable and as JSON; errors as of `report`.

        path: where the client says that it keeps the report, in the place of ours; it is printed, and not opened.
        run: with the work of the study's last run, as its events tell of it.
        """
        result = self._written(name)
        if run:
            result = replace(result, effort=self._last_run(name, result.effort))
        if path is not None:
            result = replace(result, report=Path(one_line(path)))
        return outcome.renderable(result), outcome.as_json(result)

    def shown(self, name: str) -> tuple[RenderableType, dict[str, Any]]:
        """What `epsearch show` prints, as a renderable and as JSON. Raises NoStudy."""
        status = self._studies.status(name)
        row = growth.find(self._studies.store, name)
        if row is None:
            return lists.waiting(status, self._studies.study(name)), lists.as_json(status)
        own = self._studies.settings
        loop = stored_loop(row, self._studies.store, own.storage, own.out)
        return lists.study(loop), lists.study_as_json(loop)

    def side_by_side(self, names: Sequence[str]) -> tuple[bytes, dict[str, str]]:
        """(the page that compares searches, its headers). Raises UsageError where they cannot be compared."""
        own = self._studies.settings
        with self._writing:
            _, page = api.side_by_side(names, own.storage, own.out)
            return self._page(page)

    def ledger(self) -> Ledger:
        """How many runs there are, and which studies share them."""
        with self._looking:
            keys = self._keys()
        pairs = Counter[tuple[str, str]]()
        users: dict[str, list[str]] = {}
        for study, own in keys.items():
            for key in own:
                users.setdefault(key, []).append(study)
        for several in users.values():
            pairs.update(combinations(sorted(several), 2))
        runs = len(self._studies.store.names(schema.runs))
        return Ledger(
            runs=runs,
            studies={study: len(own) for study, own in keys.items()},
            shared=[Sharing(studies=pair, members=count) for pair, count in pairs.most_common(MOST_SHARING)],
            unused=max(0, runs - len(users)),
        )

    def _keys(self) -> dict[str, frozenset[str]]:
        """Study -> keys of its members that are there; looked for again where something has been stored since."""
        own, store = self._studies.settings, self._studies.store
        for row in store.studies():
            last = store.events.newest(row.name, "records", "state")
            version = (row.checksum, last and last.id)
            if version != self._known.get(row.name, (None, None))[0]:
                keys: frozenset[str] = frozenset()
                with suppress(UsageError):  # it cannot be read
                    keys = frozenset(stored_loop(row, store, own.storage, own.out).records)
                self._known[row.name] = (version, keys)
        there = {row.name for row in store.studies()}
        self._known = {name: one for name, one in self._known.items() if name in there}
        return {name: keys for name, (_, keys) in self._known.items()}

    def _written(self, name: str) -> api.Outcome:
        self._studies.status(name)
        if growth.find(self._studies.store, name) is None:
            raise NoStudy(f"study {name!r} has not begun: there is nothing to report yet")
        own = self._studies.settings
        with self._writing:
            return api.report(name, own.storage, own.out)

    def _last_run(self, name: str, known: Effort) -> Effort:
        """What the last run of a study did; known: without it. What began before events were kept is not told."""
        store = self._studies.store
        begun, last = store.events.newest(name, "begin"), store.events.newest(name, "progress")
        if begun is None:
            return known
        trained, after = 0, begun.id
        while some := store.events.read(name, after, EVENTS):
            after = some[-1].id
            trained += sum(int(one.data.get("stored", 0)) for one in some if one.kind == "records")
        now = {} if last is None or last.id < begun.id else last.data
        seconds, steps = float(now.get("seconds") or 0.0), int(now.get("member_steps") or 0)
        reused = max(0, known.reused - trained)
        return replace(known, trained=trained, reused=reused, seconds=seconds, member_steps=steps)

    def _page(self, path: Path) -> tuple[bytes, dict[str, str]]:
        page = path.read_bytes()
        return page, {"Content-Security-Policy": policy(page)}


def policy(page: bytes) -> str:
    """What a self-contained page may do: run the scripts that stand in it, and nothing else.

    `strict-dynamic` lets the page's own script add plotly, which it carries packed.
    """
    hashes = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in SCRIPT.findall(page))
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return f"{SANDBOX}; script-src {allowed} 'strict-dynamic'"
