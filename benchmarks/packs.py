"""Every pack once: published rows, trained with their sources' settings and held against print.

    uv run python benchmarks/packs.py --data-dir FOLDER [--workers 2] [--until SECONDS] [--out FOLDER]

Trains the packs one after another, those of few SGD steps first, hours in all. Members lie in a ledger in --out, so
that the same command goes on where it stopped; benchmarks/results/packs.json gets every answer. benchmarks/page.py
makes a table of docs/reproduction.md of it.
"""

import argparse
import os
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import members
from machine import Figures

import epsearch
from results.verdict.reproduction import reproduction
from search_spaces.published.pack import Pack, load_pack, packs

TINY = {"examples_per_task": 130, "seeds": 1}


def in_order() -> list[Pack]:
    """Returns all packs: those of large mini-batches first, which have few steps, and of these the quick methods."""
    slow = ("gem", "ewc", "pi", "joint", "prognn")
    return sorted(
        map(load_pack, packs()),
        key=lambda pack: (-int(pack.settings.get("batch_size", 10)), pack.method in slow, pack.name),
    )


def train(file: Path, arguments: argparse.Namespace) -> None:
    """Trains the packs, and writes each answer when it is there."""
    answers, tiny = list[Figures](), TINY if arguments.tiny else {}
    ending = "-tiny" if arguments.tiny else ""  # a study of its own
    makers = [partial(epsearch.Comparison, from_pack=one.name, name=one.name + ending, **tiny) for one in in_order()]
    for outcome in members.outcomes(makers, arguments):
        answer = reproduction(outcome.results)
        assert answer is not None
        answers.append(answer)
        members.write(file, {"answers": answers})
        print(f"{answer['name']}: {answer['answer']}, {answer['mean']} against {answer['printed']}", flush=True)


def main() -> None:
    parser = members.parser_of(__doc__)
    parser.add_argument("--out", default="runs", help="folder of the ledger")
    arguments = parser.parse_args()
    train(arguments.tiny or machine.RESULTS / "packs.json", arguments)


if __name__ == "__main__":
    main()
