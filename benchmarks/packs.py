"""Every pack once: published rows, trained with their sources' settings and held against print.

    uv run python benchmarks/packs.py --data-dir FOLDER [--workers 2] [--until SECONDS] [--out FOLDER]

Trains the packs one after another, those of few SGD steps first, hours in all. benchmarks/results/packs.json gets
every answer, and packs with an answer there are not trained again, also in another clone; members of the pack that
comes next lie in a ledger in --out. benchmarks/page.py makes a table of docs/reproduction.md of the answers.
"""

import argparse
import json
import os
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import members
from machine import Figures

import epsearch
from results.verdict.reproduction import of_scores, reproduction
from search_spaces.published.pack import Pack, load_pack, packs

QUESTION = ("source", "dataset", "method", "metric", "margin", "printed", "printed_error", "settings")
TINY = {"examples_per_task": 130, "seeds": 1}


def in_order() -> list[Pack]:
    """Returns all packs: those of large mini-batches first, which have few steps, and of these the quick methods."""
    slow = ("gem", "ewc", "pi", "joint", "prognn")
    return sorted(
        map(load_pack, packs()),
        key=lambda pack: (-int(pack.settings.get("batch_size", 10)), pack.method in slow, pack.name),
    )


def train(file: Path, arguments: argparse.Namespace) -> None:
    """Trains the packs that the file has no answer to, and writes each answer when it is there."""
    answers, ending = stored_answers(file), "-tiny" if arguments.tiny else ""  # a study of its own
    options, answered = TINY if arguments.tiny else {}, {one["name"] for one in answers}
    makers = [
        partial(epsearch.Comparison, from_pack=pack.name, name=pack.name + ending, **options)
        for pack in in_order()
        if pack.name not in answered
    ]
    for outcome in members.outcomes(makers, arguments):
        answer = reproduction(outcome.results)
        assert answer is not None
        answers.append(answer)
        members.write(file, {"answers": answers})
        print(f"{answer['name']}: {answer['answer']}, {answer['mean']} against {answer['printed']}", flush=True)


def stored_answers(file: Path) -> list[Figures]:
    """Returns the stored answers to packs that ask today what they asked then, each with today's remarks."""
    stored = json.loads(file.read_text(encoding="utf-8"))["answers"] if file.exists() else []
    today = {pack.name: of_scores(pack.as_data(), ()) for pack in in_order()}
    return [
        one | {"anomalies": today[one["name"]]["anomalies"]}
        for one in stored
        if one["name"] in today and all(one[part] == today[one["name"]][part] for part in QUESTION)
    ]


def main() -> None:
    parser = members.parser_of(__doc__)
    parser.add_argument("--out", default="runs", help="folder of the ledger")
    arguments = parser.parse_args()
    train(arguments.tiny or machine.RESULTS / "packs.json", arguments)


if __name__ == "__main__":
    main()
