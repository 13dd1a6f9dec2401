"""Members of a benchmark that takes hours: trained in processes, stored as they come, resumed by the same command."""

import argparse
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import machine
from machine import Figures

import epsearch
from epsearch.preparation.arithmetic import fastest_here
from results.files import write_atomically
from trainers.streams import DataError, open_stream


class Script(NamedTuple):
    """One kind of members, and how they are stored and reported."""

    order: Callable[[Figures], Any]
    """Key by which a file sorts them."""
    line: Callable[[Any, list[Figures]], str]
    """line(piece, its members): what is printed of them."""

    def write(self, file: Path, figures: Figures) -> None:
        """Writes one line a member: small, and easy to compare."""
        head = json.dumps({name: value for name, value in figures.items() if name != "members"}, indent=1)
        members = sorted(figures["members"], key=self.order)
        lines = ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in members)
        write_atomically(file, f'{head[:-2]},\n "members": [\n{lines}\n ]\n}}\n'.encode())

    def train(
        self,
        file: Path,
        figures: Figures,
        pieces: Iterable[Any],
        train: Callable[[Any], list[Figures]],
        wanted: int,
        workers: int,
        until: float,
    ) -> None:
        """Trains pieces in processes, and writes the members of each as soon as they are there.

        figures: what the file has; wanted: members when nothing is left; until: seconds after which no piece is begun.
        """
        facts = machine.facts()
        rest = {name: value for name, value in figures.items() if name != "facts"}
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=leave_with_parent) as pool:
            for piece, members in go_on(pieces, pool, workers, train, until):
                figures["members"] += [one | {"commit": facts["commit"]} for one in members]
                self.write(file, {"facts": facts, **rest})
                print(f"{len(figures['members'])} of {wanted}: {self.line(piece, members)}", flush=True)


def go_on(pieces: Iterable[Any], pool: Executor, workers: int, train: Callable[..., Any], until: float) -> Iterator:
    """(piece, its members) in the order in which they are ready; none is begun after `until` seconds."""
    waiting, running, end = iter(pieces), {}, time.monotonic() + until
    while True:
        while len(running) < workers and time.monotonic() < end and (piece := next(waiting, None)):
            running[pool.submit(train, piece)] = piece
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()


def leave_with_parent() -> None:
    """Or processes whose parent is killed would train to no end and then wait for ever."""

    def watch() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def first_path(figures: Figures, dataset: str, tasks: int, data_dir: str, hidden: tuple[int, ...]) -> str:
    """Returns the numeric path of all members, that of the first ones, as paths round differently.

    Downloads what is missing, once, before there are processes. Raises DataError where there are no images.
    """
    stream = open_stream(dataset, Path(data_dir), range(tasks), None)
    if "numeric_path" not in figures:
        figures["numeric_path"] = fastest_here(stream.inputs, hidden, stream.density)
    return str(figures["numeric_path"])


def parser_of(doc: str) -> argparse.ArgumentParser:
    """The arguments of a script on MNIST that goes on where it stopped; doc: its docstring."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="the folder that has MNIST, or that it is downloaded to")
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    parser.add_argument(
        "--until", type=float, default=float("inf"), metavar="SECONDS", help="after which no cohort is begun"
    )
    parser.add_argument("--tiny", type=Path, metavar="FILE", help="tries all of it with 60 images a task, into FILE")
    return parser


def write(file: Path, figures: Figures) -> None:
    """Writes what was measured so far, with the machine that it was measured on."""
    text = json.dumps({"facts": machine.facts(), **figures}, indent=1, ensure_ascii=False)
    write_atomically(file, f"{text}\n".encode())


def outcomes(
    makers: Iterable[Callable[..., epsearch.Study]], arguments: argparse.Namespace
) -> Iterator[epsearch.Outcome]:
    """Yields the outcome of each study in the ledger of arguments.out, trained one after another.

    makers: of places, workers and a time budget, each makes a study. Ends quietly when the time is over.
    """
    end, places = time.monotonic() + arguments.until, {"data_dir": arguments.data_dir, "out": arguments.out}
    for make in makers:
        left = end - time.monotonic()
        if left < 1:
            return
        budget = {"time_budget": f"{int(left)}s"} if math.isfinite(left) else {}
        try:
            yield epsearch.run(make(workers=arguments.workers, **places, **budget))
        except epsearch.Interrupted as stopped:
            print(stopped, flush=True)
            return


def run(doc: str, name: str, make: Callable[[Path, str, int, float, bool], None]) -> None:
    """Runs a script with its arguments; make(file, data_dir, workers, until, tiny) trains what the file lacks."""
    parser = parser_of(doc)
    arguments = parser.parse_args()
    tiny = arguments.tiny is not None
    try:
        make(
            arguments.tiny or machine.RESULTS / f"{name}.json",
            arguments.data_dir,
            arguments.workers,
            arguments.until,
            tiny,
        )
    except (DataError, ValueError) as error:
        parser.error(str(error))
