"""A stream of the user's own: what it is made of is part of its results, and known wherever a study is looked at."""

import sys

import pytest

from epsearch.failures.errors import UsageError
from epsearch.loop.content import content
from epsearch.preparation import history
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.session.session import open_store, train
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Comparison, MemoryStudy
from results.ledger.store import Store
from tests.epsearch import conftest
from tests.epsearch.preparation.conftest import STREAM, TINY
from tests.epsearch.test_cli import one_line
from tests.support.drive import make
from trainers.plugins import calls
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import SOURCE
from trainers.streams import StreamRequest

CHANGED = STREAM.replace(
    "    pass",
    "    def train(self, *told):\n        found = super().train(*told)\n        "
    "return found._replace(labels=found.labels[::-1].copy())",
)


def networks(loop):
    return [record.fingerprint for record in loop.evaluation_records()]


@pytest.fixture
def study(small_study, tmp_path, monkeypatch):
    """A function that builds a study of an own stream, the smallest there is."""
    monkeypatch.chdir(tmp_path)
    tiny = {"dataset": "mine:factory", "repeats": 1, "points": 3, "seeds": 1, "examples_per_task": 40, "certify": 0}
    return lambda **options: small_study(**tiny | {"name": "one"} | options)


def begin(study):
    """What the beginning of a run writes down, or refuses."""
    study.out.mkdir(exist_ok=True)
    with open_store(study.storage) as store:
        history.save(store, study, open_evaluation(study)[0].describe(), Disjointness(), extend=False)


class TestSource:
    @pytest.mark.slow
    def test_a_study_whose_source_changed_is_shown_and_reported_but_not_gone_on_with(
        self, mine, study, epsearch, tmp_path
    ):
        mine()
        first, effort = train(study())
        assert effort.trained > 0
        mine(CHANGED)
        one_line(epsearch("run", *TINY, "--name", "one"), "mine.py", "'one'", "--name one-2")
        one_line(epsearch("run", "--name", "one", "--points", "4", "--extend"), "mine.py", "--name one-2")
        one_line(epsearch("plan", *TINY, "--name", "one"), "mine.py", "--name one-2")
        reported = epsearch("report", "one", "--json")
        assert reported.status == 0 and reported.json["chosen"] == {"epsilon": first.best.point[0]}

        second, effort = train(study(name="one-2"))
        assert effort.trained > 0 == effort.reused
        assert networks(second) != networks(first)  # what trained is what is there now
        one_line(epsearch("run", *TINY, "--name", "one"), "mine.py", "--name one-3")

        mine()
        again, effort = train(study())
        assert effort.trained == 0 and networks(again) == networks(first)
        (tmp_path / "mine.py").unlink()
        assert epsearch("list").status == epsearch("show", "one").status == 0

    @pytest.mark.parametrize(
        ("dataset", "name", "line", "file"),
        [
            ("mine:factory", "mine.py", "import shades_x", "shades_x.py"),
            ("mine:factory", "mine.py", "from shades_x.deep import tone", "shades_x/deep.py"),
            ("lab_x.mine:factory", "lab_x/mine.py", "from .sub.tone import tone", "lab_x/sub/tone.py"),
            ("lab_x.mine:factory", "lab_x/mine.py", "", "lab_x/tone.py"),
        ],
    )
    def test_what_it_imports_belongs_to_it_and_the_package_that_it_is_in(self, dataset, name, line, file, mine, study):
        mine(f"{line}\n{STREAM}", name)
        mine("tone = 1\n", file)
        begin(study(dataset=dataset))
        begin(study(dataset=dataset))
        mine("tone = 1  # but otherwise\n", file)
        with pytest.raises(UsageError, match=rf"^study 'one' was made with another {file};.*--name one-2$"):
            begin(study(dataset=dataset))

    @pytest.mark.parametrize("kind", [Comparison, MemoryStudy])
    def test_comparisons_and_memory_studies_are_refused_as_well(self, kind, mine, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        known = set(kind.options())
        options = {name: value for name, value in (conftest.TINY | {"sizes": "2,4"}).items() if name in known}
        asked = build(kind, options | {"dataset": "mine:factory", "methods": "agem", "out": tmp_path, "name": "one"})
        mine()
        begin(asked)
        mine(CHANGED)
        with pytest.raises(UsageError, match=r"another mine\.py;.*--name one-2$"):
            begin(asked)

    def test_only_what_comes_from_outside_has_its_source_in_the_key(self, mine, small_study, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        mine()
        keys = []
        for dataset in ("mine:factory", "permuted_digits"):
            study = small_study(dataset=dataset)
            described = open_evaluation(study)[0].describe()
            with Store.open(f"sqlite:///{tmp_path}/empty.sqlite") as store:
                trainee = make(study, store).missing()[0]
            found = content(study, described, trainee)
            keys.append(found)
            assert (SOURCE in found["stream"]) == (SOURCE in described) == (dataset == "mine:factory")
        own, ours = keys
        assert len(own["stream"].pop(SOURCE)) == 16  # one hash, however many files there are
        assert own["stream"] == ours["stream"]

    def test_a_worker_that_finds_another_source_does_not_train(self, mine, small_study, tmp_path, monkeypatch):
        """It imports the module when its first job comes, which may be long after the run has begun."""
        monkeypatch.chdir(tmp_path)
        mine()
        study = small_study(dataset="mine:factory")
        with Store.open(f"sqlite:///{tmp_path}/empty.sqlite") as store:
            job = make(study, store).ask()[0]
        assert job.stream.source == open_evaluation(study)[0].describe()[SOURCE]
        mine(CHANGED)
        job.stream.open()  # in this process the code is as it was
        calls._IMPORTED.clear()
        del sys.modules["mine"]
        with pytest.raises(ForeignError, match=r"^mine\.py of dataset 'mine:factory' "):
            job.stream.open()

    def test_a_source_that_changes_while_it_is_imported(self, mine, tmp_path):
        mine("from pathlib import Path\nPath(__file__).write_text('x = 1')\n" + STREAM)
        with pytest.raises(
            ForeignError, match=r"^mine\.py of .* changed while it was imported; run the command again$"
        ):
            StreamRequest("mine:factory", tmp_path, range(3), 40, beside=tmp_path).open()
