"""Search protocols on equal terms: what each may see, what it chooses, and what that loses.

    uv run python benchmarks/protocols.py --data-dir FOLDER [--workers 2] [--until SECONDS] [--out FOLDER]

Trains the studies of benchmarks/protocols.yaml one after another, hours in all. benchmarks/results/protocols.json gets
every finished study, which is not trained again, also in another clone; members of the one that comes next lie in a
ledger in --out. benchmarks/page.py makes docs/protocols.md of it.
"""

import argparse
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import members
import numpy as np
import yaml
from machine import Figures

import epsearch
from results.metrics import METRICS
from results.protocol_tables import choice_table, constant_table, protocol_table
from results.protocols import ProtocolResults
from results.verdict import protocols as verdict

SPEC = Path(__file__).parent / "protocols.yaml"
TINY = {"examples_per_task": 60, "orders": 2, "seeds": 2, "measure_every": 2}


def studies(tiny: bool = False) -> Iterator[tuple[str, str, Figures]]:
    """Yields (stream, method, options of `epsearch protocols`) of each study; tiny: for a trial of a minute."""
    spec = yaml.safe_load(SPEC.read_text(encoding="utf-8"))
    for stream, of_stream in spec["studies"].items():
        for method, of_method in spec["methods"].items():
            own = spec["own"][stream] + spec["own"][method]
            names = [name for name in (*own, *spec["protocols"]) if [stream, method, name] not in spec["without"]]
            options = spec["common"] | of_stream | of_method | {"method": method, "protocols": ",".join(names)}
            name = f"{stream}-{method}{'-tiny' * tiny}".replace("_", "-")
            yield stream, method, options | {"name": name} | (TINY if tiny else {})


def described(stream: str, method: str, options: Figures, results: ProtocolResults) -> Figures:
    """Returns a finished study as JSON: tables of the report, and metrics of every judged member."""
    return {
        "stream": stream,
        "method": method,
        "options": options,
        "parameter": results.parameter,
        "answer": list(verdict.answer(results)),
        "protocols": _records(protocol_table(results)),
        "sights": {row.name: verdict.sight(row) for row in results.rows},
        "sources": {row.name: row.source for row in results.rows},
        "choices": _records(choice_table(results)),
        "constants": _records(constant_table(results)),
        "members": {
            **{row.name: _metrics(row.records) for row in results.rows},
            **{f"{value:g}": _metrics(records) for value, records in results.constants.items()},
        },
    }


def _metrics(records: Any) -> Figures:
    """Returns A_T and F_T, percent and fraction, by unit "order seed"; null where undefined."""
    values: Figures = {}
    for record in records:
        known = {name: METRICS[name].of(record) for name in ("A_T", "F_T")}
        unit = f"{record.unit.order} {record.unit.seed}"
        values[unit] = {name: round(value, 4) if np.isfinite(value) else None for name, value in known.items()}
    return values


def _records(frame: Any) -> list[Figures]:
    """Returns an object a row, null for missing values."""
    return json.loads(frame.to_json(orient="records"))


def train(file: Path, arguments: argparse.Namespace) -> None:
    """Trains the studies that the file does not have, and writes each when it is finished. Stops when time is over."""
    wanted = list(studies(arguments.tiny is not None))
    finished = stored(file, wanted)
    missing = [one for one in wanted if one[2]["name"] not in finished]
    makers = [partial(epsearch.ProtocolStudy, **options) for _, _, options in missing]
    for (stream, method, options), outcome in zip(missing, members.outcomes(makers, arguments), strict=False):
        name = options["name"]
        finished[name] = described(stream, method, options, outcome.results)
        results = [finished[one["name"]] for *_, one in wanted if one["name"] in finished]
        members.write(file, {"studies": results})
        print(f"{name}: {' '.join(finished[name]['answer'])}", flush=True)


def stored(file: Path, wanted: list[tuple[str, str, Figures]]) -> dict[str, Figures]:
    """Returns the studies of the file, by name, that have the options which are wanted today."""
    known = json.loads(file.read_text(encoding="utf-8"))["studies"] if file.exists() else []
    today = [options for *_, options in wanted]
    return {study["options"]["name"]: study for study in known if study["options"] in today}


def main() -> None:
    parser = members.parser_of(__doc__)
    parser.add_argument("--out", default="runs", help="folder of the ledger")
    arguments = parser.parse_args()
    train(arguments.tiny or machine.RESULTS / "protocols.json", arguments)


if __name__ == "__main__":
    main()
