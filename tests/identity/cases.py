"""Studies of every kind, method, stream and strategy, by the command line alone, and what each of them is known by.

`python -m tests.identity.cases` writes identities.json and ledger.sqlite.gz beside this file, from which the tests know
what must never change by itself; with `bits`, only the bits of results on this processor, from a commit whose results
are known to be right. Nothing here knows how the product is made inside.
"""

import gzip
import hashlib
import json
import sqlite3
import sys
import tempfile
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from importlib.metadata import entry_points, version
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from llvmlite.binding import get_host_cpu_name

from tests.support import image_folders as made
from tests.trainers.streams.test_permuted import write_idx

PLACE = "--runner local --device cpu --json --quiet"
PIXELS = f"--tasks 4 --seeds 2 --examples-per-task 60 --memory-batch 8 {PLACE} --numeric-path cpu-float32-mkl"
TWO = "--cv-tasks 2"
SIZED = "--memory 3"
SEARCH = f"run {PIXELS} {TWO} {SIZED} --repeats 1 --points 4"
SHORT = f"run {PIXELS} {TWO} {SIZED} --repeats 1 --points 3 --certify 0"
COMPARED = f"compare {PIXELS} {TWO} {SIZED}"
IMAGES = (
    f"--tasks 4 --classes-per-task 2 --seeds 1 --memory 2 --memory-batch 6 --image-size 16 --batch-size 6 {PLACE} "
    "--network reduced_resnet18 --numeric-path cpu-float32-onednn"
)
OF_IMAGES = f"run --cv-tasks 2 --repeats 1 --points 3 --certify 0 --moved-starts 0 --interval 0 0.5 {IMAGES}"
STRATEGIES = ("narrowing", "interval-ci", "grid", "random", "qmc", "tpe", "gp", "cmaes")
OWN = """
from pathlib import Path
from trainers.streams import open_stream

def factory(tasks, examples_per_task):
    return open_stream("permuted_digits", Path("."), tasks, examples_per_task)
"""

CASES = {
    "search": SEARCH,
    "search that grows": f"{SEARCH} --name grown",
    "and grows": f"{SEARCH} --name grown --seeds 3 --extend",
    **{f"strategy {name}": f"{SHORT} --strategy {name}" for name in STRATEGIES[1:]},
    "strategy seed": f"{SHORT} --strategy random --strategy-seed 1",
    "race": f"{SHORT} --seeds 3 --race",
    "race with more seeds": f"{SHORT} --seeds 2 --race --most-seeds 4",
    "evaluation seeds": f"{SHORT} --eval-seeds 7,8,9",
    "interval": f"{SHORT} --interval 0.1 0.4",
    "score on eval": f"{SHORT} --score-on eval",
    "readings": f"{SHORT} --trigger epsilon --scale raw --satisfied unit",
    "subtracted": f"{SHORT} --numeric-path cpu-float32-mkl-subtracted",
    "tensors": f"{SHORT} --numeric-path cpu-float32-torch",
    "lr and memory of er": f"{SHORT} --method er --strategy random --search lr=log:0.01..0.1 memory=2,3",
    "epsilon and lr": f"{SHORT} --strategy tpe --search epsilon=0..1 lr=log:0.01..0.1",
    **{
        f"strength of {name}": f"{SHORT} --method {name} --search strength=log:0.1..10 --fisher-every 2"
        for name in ("ewc", "mas")
    },
    **{f"lr of {name}": f"{SHORT} --method {name} --search lr=0.01..0.1" for name in ("van", "gem", "prognn")},
    "all methods": f"{COMPARED} --methods all",
    "raw average": f"{SHORT} --method a_agem --search lr=0.01..0.1 --a-agem-scale raw",
    "readings of methods": f"{COMPARED} --methods mas,rwalk,gem,ewc --penalty-form paper --margin 0.2 --fisher-every 2 "
    "--settings ewc.lr=0.01,ewc.strength=100",
    "tuned": f"{COMPARED} --methods van,ewc --tune",
    "memory": f"memory {PIXELS} {TWO} --sizes 2,3",
    "permuted_mnist": f"{SHORT} --dataset permuted_mnist --data-dir data/mnist",
    "split_cub": f"{OF_IMAGES} --dataset split_cub --data-dir data",
    "split_cub_je": f"{OF_IMAGES} --dataset split_cub_je --data-dir data",
    "split_awa": f"{OF_IMAGES} --dataset split_awa --data-dir data",
    "split_awa_je": f"{OF_IMAGES} --dataset split_awa_je --data-dir data",
    "class folders": f"{OF_IMAGES} --dataset folder:data/mine --name folders --allow-shared",
    "class folders, compared": f"compare {IMAGES} {TWO} --dataset folder:data/mine --methods van,soft_agem,prognn "
    "--name folders",
    "own stream": f"{SHORT} --dataset mine:factory",
}
KEPT = {
    "search": f"{SEARCH} --repeats 2 --name search",
    "growth": f"{SEARCH} --repeats 2 --name search --seeds 3 --extend",
    "comparison": f"{CASES['all methods']} --name comparison",
    "memory study": f"{CASES['memory']} --name sizes",
}
"""What stands in the committed ledger."""

PLACES = ("out", "storage", "data_dir", "version", "created")
"""What of a study's options is about where, not what."""

HERE = Path(__file__).parent
IDENTITIES, LEDGER = HERE / "identities.json", HERE / "ledger.sqlite.gz"

# What accuracies say about the next member is left out: they differ in a digit between processors.
ALL = "SELECT key, phase, method, epsilon, seed FROM epsearch_runs {} ORDER BY key"
OF_TABLES, FIRST = ALL.format(""), ALL.format("WHERE seed < 2 AND (phase = 'cv' OR epsilon = 0)")


def make_data(folder: Path) -> None:
    """Small datasets in every layout, always of the same bytes."""
    write_idx(folder / "data" / "mnist", images=(100, 20))
    made.every_layout(folder / "data", copies=True)
    (folder / "mine.py").write_text(OWN)


def run(arguments: list[str]) -> str:
    """What one command prints, run in this process. Raises AssertionError where it does not end well."""
    (command,) = entry_points(group="console_scripts", name="epsearch")
    out, err = StringIO(), StringIO()
    with patch("sys.argv", ["epsearch", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            command.load()()
        except SystemExit as stop:
            assert not stop.code, (arguments, err.getvalue())
    return out.getvalue()


def identity(out: Path, query: str) -> dict[str, object]:
    """What the only study in a folder is known by."""
    with closing(sqlite3.connect(out / "epsearch.sqlite")) as connection:
        ((name, config),) = connection.execute("SELECT name, config FROM epsearch_studies").fetchall()
        rows = connection.execute(query).fetchall()
    options = {
        name: value for name, value in json.loads(config.replace(str(Path.cwd()), "")).items() if name not in PLACES
    }
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return {"name": name, "options": options, "members": len(rows), "keys": digest}


def of_case(name: str) -> dict[str, object]:
    """The identity of one case, run in this folder; a case that grows first runs the one before."""
    arguments, out = CASES[name].split(), Path("runs") / name
    for one in (*(("search that grows",) if name == "and grows" else ()), name):
        run([*CASES[one].split(), "--out", str(out)])
    independent = arguments[0] != "run" and "--tune" not in arguments
    return identity(out, OF_TABLES if independent else FIRST)


def results(ledger: Path) -> list[tuple]:
    """What a ledger knows of members, but for when, how long and beside whom they were trained."""
    columns = "key, phase, method, epsilon, seed, status, steps, accuracies, initial, within, violations, fingerprint"
    with closing(sqlite3.connect(ledger)) as connection:
        return connection.execute(f"SELECT {columns} FROM epsearch_runs ORDER BY key").fetchall()


def digest_of_results(folder: Path) -> str:
    """Trains the studies of the committed ledger again, with choices as they were then; returns a digest."""
    for arguments in KEPT.values():
        # No curve chose when the ledger was made.
        run([*arguments.split(), *(["--choose", "tried"] if arguments.startswith("run") else []), "--out", str(folder)])
    return hashlib.sha256(json.dumps(results(folder / "epsearch.sqlite")).encode()).hexdigest()


def processor() -> str:
    """Returns LLVM's name for this processor and the version of torch: bits of results depend on both."""
    return f"{get_host_cpu_name()}, torch {version('torch')}"


@contextmanager
def elsewhere():
    """A fresh folder with the data, to which the program goes, and a cache of its own."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name)
        make_data(folder)
        own = {"EPSEARCH_CACHE": str(folder / "cache"), "EPSEARCH_LOOKS": "none"}
        with patch.dict("os.environ", own), patch("sys.path", [*sys.path]):
            yield folder
        sys.modules.pop("mine", None)  # whose file goes with the folder


def main() -> None:
    known = json.loads(IDENTITIES.read_text(encoding="utf-8"))
    with elsewhere() as folder:
        known["bits"][processor()] = digest_of_results(folder / "bits")
        if sys.argv[1:] != ["bits"]:
            known["cases"] = {name: of_case(name) for name in CASES}
            for arguments in KEPT.values():
                run([*arguments.split(), "--out", "kept"])
            with gzip.GzipFile(LEDGER, "wb", mtime=0) as packed:
                packed.write((folder / "kept" / "epsearch.sqlite").read_bytes())
    IDENTITIES.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
