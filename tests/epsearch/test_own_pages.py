"""Pages on bringing one's own: each example is written to files, and each command runs."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SIZES = ["--seeds", "2", "--tasks", "4", "--cv-tasks", "2", "--examples-per-task", "60", "--certify", "0"]
HERE = ["--runner", "local", "--device", "cpu", "--quiet"]
OF_SEARCHES = ["--points", "3", "--repeats", "1"]
OF_METHODS = ["--memory", "3", "--memory-batch", "8"]

PAGES = {
    "own-method": OF_METHODS,
    "own-network": OF_METHODS,
    "own-stream": OF_METHODS,
    "own-strategy": OF_METHODS,
    "own-protocol": OF_METHODS,
    "own-metric": OF_METHODS,
    "own-trainer": [],
}
SLOW = {"own-trainer", "own-network"}  # processes that import torch, and a trial


def blocks(page, language):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def write(page, folder):
    """The files of a page, named by the first line of each."""
    for code in blocks(page, "python"):
        name = re.match(r'"""(\w+\.py): ', code)[1]
        (folder / name).write_text(code, encoding="utf-8")


def commands(page):
    return [line.removeprefix("epsearch ").split() for block in blocks(page, "console") for line in block.splitlines()]


@pytest.mark.few(1)
@pytest.mark.parametrize("page", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in PAGES])
def test_the_examples_of_a_page_run(page, epsearch, tmp_path):
    write(page, tmp_path)
    told = commands(page)
    assert told
    for number, arguments in enumerate(told):
        sizes = SIZES + OF_SEARCHES if arguments[0] == "run" else SIZES[:-2]
        shown = epsearch(*arguments, *sizes, *PAGES[page], *HERE, "--name", f"study-{number}", "--json")
        assert shown.status == 0, shown.err
        # A metric changes no member: a later command of its page may find all of them stored.
        assert shown.json["effort"]["trained"] > 0 or (page == "own-metric" and number)


MAMMOTH = '''
"""A stand-in with the calls of Mammoth that the recipe takes, and with its habits."""

import os
import tempfile

import torch
from torch import nn

os.chdir(tempfile.gettempdir())
torch.set_num_threads(2)


class Der(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.net = nn.Linear(64, 10)
        self.args, self.buffer, self.at, self.opt = args, [], None, torch.optim.SGD(self.net.parameters(), args["lr"])

    def forward(self, x):
        return self.net(x)

    def meta_begin_task(self, dataset):
        assert self.at is None and self.net.training
        self.at = dataset

    def meta_observe(self, inputs, labels, not_aug_inputs, epoch=None):
        assert self.at is not None and os.getcwd() != tempfile.gettempdir() and torch.get_num_threads() == 1
        self.opt.zero_grad()
        logits = self.net(inputs)
        loss = nn.functional.cross_entropy(logits, labels)
        for x, z in self.buffer[-1:]:
            loss = loss + self.args["alpha"] * nn.functional.mse_loss(self.net(x), z)
        loss.backward()
        self.opt.step()
        if len(self.buffer) < self.args["buffer_size"]:
            self.buffer.append((not_aug_inputs, logits.detach()))
        return loss.item()

    def meta_end_task(self, dataset):
        self.at = None


def load_runner(model, dataset, args):
    os.chdir(tempfile.gettempdir())
    assert "seed" not in args and model == "der" and os.environ["HF_HUB_OFFLINE"] == "1"
    return Der(args), object()
'''


@pytest.mark.slow
def test_the_recipe_of_mammoth_runs_with_a_stand_in(epsearch, tmp_path, monkeypatch):
    write("mammoth", tmp_path)
    (tmp_path / "checkout" / "mammoth").mkdir(parents=True)
    (tmp_path / "checkout" / "mammoth" / "__init__.py").write_text(MAMMOTH, encoding="utf-8")
    monkeypatch.setenv("MAMMOTH", str(tmp_path / "checkout"))
    check, run = commands("mammoth")
    checked = epsearch(*check, *SIZES[:-2], "--device", "cpu", "--json")
    assert checked.status == 0, checked.err + checked.out
    shown = epsearch(*run, *SIZES[:-1], "1", *OF_SEARCHES, *HERE, "--name", "mammoth", "--json")
    assert shown.status == 0, shown.err
    assert shown.json["effort"]["trained"] == 8
    assert "every prediction was the same" in Path(shown.json["report"]).read_text(encoding="utf-8")


def test_every_page_is_named_by_the_overview():
    text = (DOCS / "plugins.md").read_text(encoding="utf-8")
    assert {*re.findall(r"\]\((own-\w+)\.md\)", text)} == PAGES.keys() == {one.stem for one in DOCS.glob("own-*.md")}


def test_the_overview_names_every_group_of_entry_points():
    from epsearch.plugins.kinds import KINDS

    text = (DOCS / "plugin-rules.md").read_text(encoding="utf-8")
    assert {*re.findall(r"epsearch\.[a-z]+(?=`)", text)} == {kind.group for kind in KINDS.values()}
    (toml,) = blocks("plugin-rules", "toml")
    assert {*re.findall(r'"(epsearch\.[a-z]+)"', toml)} <= {kind.group for kind in KINDS.values()}
