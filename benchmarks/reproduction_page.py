"""The measured part of docs/reproduction.md, from benchmarks/results/reproduction.json, however much of it is there."""

import csv
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import yaml
from charts import table
from machine import Figures
from reproduction import ROWS, SEEDS, Row, left, rows

from results.labels import MISSING, count_text, method_label, number_text
from results.pages.reproductions import answer_text, reproductions_sheet
from results.pages.sheet import as_markdown
from results.verdict.reproduction import of_scores
from search_spaces.published.definition import load_definition
from search_spaces.published.pack import Pack, load_pack, packs

COMPARISON = Path(__file__).parent.parent / "docs" / "comparison" / "comparison.csv"
HEAD = (
    *("scenario", "method", "setting", "seeds", "A_T %", "F_T %", "printed A_T %", "difference", "in standard errors"),
    *("within a point?", "A_T % with our weights"),
)


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """Returns (Markdown, no plots): a table for each source."""
    members = figures["members"]
    missing = len(left(members))
    state = (
        f"Still to come, by the same command: {count_text(missing, 'run')}." if missing else "All of it is measured."
    )
    text, tables = [state], yaml.safe_load(ROWS.read_text(encoding="utf-8"))["tables"]
    for name, facts in tables.items():
        body = [
            [*cells(row, own), mean(members_of(row._replace(start=""), members))]
            for row in rows()
            if row.table == name and row.start and (own := members_of(row, members))
        ]
        if body:
            text += [f"## {name}", f"{facts['source']}. {facts['about']}", table(HEAD, body)]
            text += [facts["remarks"]] if "remarks" in facts else []
    return "\n\n".join(text), {}


def members_of(row: Row, members: list[Figures]) -> list[Figures]:
    """Returns the stored members of a row."""
    identity = json.dumps(row.identity, sort_keys=True)
    return [one for one in members if json.dumps(one["row"], sort_keys=True) == identity]


def mean(own: list[Figures]) -> str:
    """Returns A_T of members as mean ± standard deviation; a dash without any."""
    scores = np.array([one["A_T"] for one in own], float)
    spread = f" ± {scores.std(ddof=1):.2f}" if len(own) > 1 else ""
    return f"{number_text(float(scores.mean()), 2)}{spread}" if len(own) else MISSING


def cells(row: Row, own: list[Figures]) -> list[str]:
    """Returns a line of the table: ours as mean ± standard deviation, and the difference from print."""
    scores = np.array([one["A_T"] for one in own], float)
    forgotten = [one["F_T"] for one in own if one["F_T"] is not None]
    answer = None if row.pack is None else of_scores(row.pack.as_data(), [*scores])
    apart = None if answer is None else float(answer["difference"])
    error = scores.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0
    return [
        row.scenario,
        method_label(row.method),
        row.setting or MISSING,
        f"{len(own)} of {len(SEEDS)}",
        mean(own),
        number_text(float(np.mean(forgotten)), 2) if forgotten else MISSING,
        MISSING if answer is None else f"{answer['printed']:g}",
        MISSING if apart is None else f"{apart:+.2f}",
        MISSING if apart is None or not error else f"{apart / error:+.1f}",
        MISSING if answer is None else answer_text(answer),
    ]


def answers(figures: Figures) -> tuple[str, dict[str, str]]:
    """Returns (Markdown, no plots): the table that `epsearch reproduce --table` writes, and how many packs are left."""
    trained = {one["name"]: one for one in figures["answers"]}
    left = [name for name in packs() if name not in trained]
    compared = {name: answer for name in left if (answer := of_comparison(load_pack(name))) is not None}
    rows = sorted((trained | compared).values(), key=lambda one: (one["source"], one["dataset"], one["name"]))
    missing = len(left) - len(compared)
    state = f"Still to come, by the same command: {count_text(missing, 'pack')}." if missing else "All packs have run."
    if compared:
        state += f" {len(compared)} have run as rows of [the comparison](comparison.md), with its seeds."
    tally = Counter(one["answer"] for one in rows)
    counts = ", ".join(f"{count} {answer}" for answer, count in tally.most_common())
    _, table_text, *remarks = as_markdown(reproductions_sheet(rows)).strip().split("\n\n")
    return "\n\n".join((f"{state} {counts}.", table_text, *remarks)), {}


def of_comparison(pack: Pack) -> Figures | None:
    """Returns the answer of a full-size pack of Permuted MNIST from docs/comparison.md; None without a row.

    That table was trained with the same settings, those of the definition. The tests need no more of the scores than
    their mean and standard deviation.
    """
    rows = list(csv.DictReader(COMPARISON.read_text(encoding="utf-8").splitlines()))
    row = next((one for one in rows if one["method"] == pack.method), None)  # a variant follows its method
    usual = pack.settings in ({}, {"epsilon": load_definition("permuted_mnist").reported_epsilon})
    if row is None or not int(row["n"]) or not usual or pack.dataset != "permuted_mnist":
        return None
    n, mean, deviation = int(row["n"]), float(row["A_T_mean"]), float(row["A_T_std"])
    apart = deviation * math.sqrt(n / 2)  # two scores that have all of the population's variance
    scores = [mean - apart, mean + apart, *[mean] * (n - 2)]
    return of_scores(pack.as_data(), scores, int(row["diverged"]))


SECTION = (section, "uv run python benchmarks/reproduction.py --data-dir FOLDER")
ANSWERS = (answers, "uv run python benchmarks/packs.py --data-dir FOLDER")
