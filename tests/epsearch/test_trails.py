"""Commands of the trails run, with small sizes; Slurm's script is ended and goes on."""

import re
import shlex

import numpy as np
import pytest

from epsearch.cli import app
from tests.support import chromium
from tests.support.image_folders import encoded, put
from tests.support.sizes import ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
SIZES = (
    "--seeds 2 --tasks 4 --cv-tasks 2 --examples-per-task 60 --memory 3 --memory-batch 8 --runner local --device cpu"
)
OF_SEARCHES = "--points 4 --repeats 1"
ELSEWHERE = ("split_cifar", "report NAME")
"""Commands that do not run here: CIFAR-100 is absent (tests/test_split_cifar.py has it); NAME stands for any study."""


def commands(page):
    """Lines of a page's blocks without a language, without what stands before `epsearch`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for language, code in blocks if not language for line in code.splitlines()]
    lines = [line for line in lines if "examples/" not in line and "kubectl " not in line]
    return [line.partition("epsearch ")[2] for line in lines if "epsearch " in line]


def sized(line, folder):
    """Arguments of a command with small sizes, as far as it has them."""
    arguments = shlex.split(line)
    command, *rest = arguments
    if command not in ("run", "compare", "memory", "protocols", "plan"):
        return arguments
    small = [] if "--extend" in rest else shlex.split(SIZES)
    if command == "run" or (command == "plan" and rest[:1] not in (["compare"], ["memory"])):
        small += [] if "--extend" in rest else shlex.split(OF_SEARCHES)
    if command == "protocols":
        small += ["--points", "2"]
    if "--race" in rest:
        small[1] = "3"
    if "ewc" in rest:
        small[small.index("--examples-per-task") + 1] = "200"  # of fewer it would estimate nothing
    if any(part.startswith("folder:") for part in rest):
        small[small.index("--examples-per-task") + 1] = "16"
    if "permuted_mnist" in rest:
        small += ["--data-dir", str(folder / "data")]
    if command == "memory":
        small[small.index("--examples-per-task") + 1] = "300"  # of fewer several sizes would keep everything
        at = small.index("--memory")
        del small[at : at + 2]
    if "--extend" in rest:
        at = rest.index("--seeds")
        rest[at + 1] = "3"
        rest[rest.index("--examples-per-task") + 1] = "60"
        return [command, *rest, *small]
    return [command, *rest, *small, *(["--quiet"] if command != "plan" else [])]


@pytest.fixture
def data(tmp_path):
    """MNIST and class folders, made of noise."""
    from tests.trainers.streams.test_permuted import write_idx
    from trainers.streams.pixels import mnist

    mnist.load.cache_clear()
    write_idx(tmp_path / "data", images=(100, 20))
    for label in range(32):
        for part, count in (("train", 4), ("test", 2)):
            for number in range(count):
                pixels = np.random.default_rng((label, number, count)).integers(0, 256, (32, 32, 3), dtype=np.uint8)
                put(tmp_path / "my_birds" / part / f"bird_{label:02}" / f"{number}.png", encoded(pixels))
    yield tmp_path
    mnist.load.cache_clear()


@pytest.mark.parametrize("page", ["first-search.md", "compare.md"])
def test_the_commands_of_a_page_run(page, epsearch, data):
    lines = [line for line in commands(page) if not any(part in line for part in ELSEWHERE)]
    assert len(lines) >= 6
    for line in lines:
        shown = epsearch(*sized(line, data))
        assert shown.status == 0, (line, shown.err)


def test_tables_for_a_paper_are_written_again(epsearch, tmp_path):
    """What figures.md says of files, but for figures, which tests/results/pages makes."""
    assert epsearch(*sized("compare --methods agem,er --name NAME", tmp_path)).status == 0
    (line,) = (line for line in commands("figures.md") if "--metrics" in line)
    assert epsearch(*line.split()).status == 0
    assert (tmp_path / "runs" / "NAME" / "comparison.tex").exists()
    assert epsearch(*sized("run --name search", tmp_path)).status == 0
    assert epsearch(*sized("protocols --protocols default,end-of-training --name others", tmp_path)).status == 0
    (line,) = (line for line in commands("figures.md") if "--paper" in line)
    assert epsearch(*line.replace("NAME", "search").split()).status == 0 and (tmp_path / "search-paper.zip").exists()
    files = re.findall(r"`([\w*/]+\.(?:csv|yaml))`", (DOCS / "figures.md").read_text(encoding="utf-8"))
    folders = [tmp_path / "runs" / name for name in ("search", "others", "NAME")]
    assert files and [one for one in files if not any(list(folder.glob(one)) for folder in folders)] == []


@pytest.mark.service
def test_figures_are_files_for_a_paper(epsearch, tmp_path):
    """The first command of figures.md, which starts a browser."""
    if chromium.program() is None:
        pytest.skip("no Chromium is installed")
    assert epsearch(*sized("run --name NAME", tmp_path)).status == 0
    (line,) = (line for line in commands("figures.md") if "--figures" in line)
    written = epsearch(*line.split())
    assert written.status == 0, written.err
    for format in line.split()[-1].split(","):
        files = list((tmp_path / "runs" / "NAME").glob(f"**/*.{format}"))
        assert files and all(file.name in written.out for file in files)


def test_every_command_of_the_trails_is_one_of_ours():
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups} | {"run", "compare", "memory", "plan", "import", "export"}
    for page in ("first-search.md", "compare.md", "figures.md", "install.md", "service.md", "clusters.md"):
        for line in commands(page):
            assert line.split()[0] in known, line


def test_the_tokens_of_a_lab_are_made(epsearch, tmp_path):
    """All lines on tokens, one after another; tests/epsearch/service serves with such files."""
    made = [line.partition("#")[0] for line in commands("service.md") if line.startswith("token ")]
    assert len(made) == 4
    for line in made:
        assert epsearch(*line.split()).status == 0, line
    listed = epsearch("token", "--tokens", "tokens.txt", "--list").out
    assert all(name in listed for name in ("ann", "ann/laptop", "board", "root"))
