"""What is tested on is to be new: copies are refused above a hundredth of the images, near-duplicates are told."""

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.search import search_results
from epsearch.preparation import data, history
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation, prepare
from epsearch.session.session import open_store
from epsearch.study.kinds import Comparison, MemoryStudy
from results.ledger.url import LedgerUrl
from tests.support import image_folders as made
from tests.support.drive import fake, finish, make
from tests.support.events import Recorded

CLASSES = 8
IMAGES = {
    "classes_per_task": 2,
    "image_size": 16,
    "network": "reduced_resnet18",
    "numeric_path": "cpu-float32-onednn",
    "batch_size": 4,
    "memory": 2,
    "memory_batch": 4,
    "examples_per_task": "all",
    "certify": 0,
}


def birds(root, tests=2, **changed):
    """Class folders with so many test images a class; changed: name of a file -> its pixels."""
    files = {
        f"{part}/{label}/{at}.png": made.noise(1000 * label + 100 * (part == "test") + at, 16, 16)
        for label in range(CLASSES)
        for part, count in (("train", 4), ("test", tests))
        for at in range(count)
    }
    return made.folders(root, files | {name: change(files) for name, change in changed.items()})


def copy(name):
    return lambda files: files[name]


def noisy(name):
    return lambda files: np.clip(files[name].astype(int) + np.resize([1, -1, 0], (16, 16, 3)), 0, 255).astype(np.uint8)


@pytest.fixture
def search(small_study, tmp_path):
    """A function that builds a search on class folders."""
    return lambda root, **options: small_study(dataset=f"folder:{root}", **IMAGES | options)


def test_copies_are_refused_in_one_line_that_says_what_helps(search, tmp_path):
    root = birds(tmp_path / "birds", **{"test/0/0.png": copy("train/7/1.png")})
    with pytest.raises(UsageError) as error:
        open_evaluation(search(root))
    assert str(error.value) == (
        f"at most 1 % of the test images may be known, on folder:{root} 1 of 8 test images of the cross-validation and "
        "0 of 8 of the evaluation occur in training or in the search, too; --allow-shared goes on with them"
    )
    _, disjointness = open_evaluation(search(root, allow_shared=True))
    assert not disjointness.sound and "1 of 8 test images" in disjointness.sentence


def test_up_to_a_hundredth_is_told_and_not_refused(search, tmp_path, monkeypatch):
    root = birds(tmp_path / "birds", **{"test/4/0.png": copy("train/4/1.png")})
    monkeypatch.setattr(data, "MOST_KNOWN", 1 / 8)
    _, disjointness = open_evaluation(search(root))
    assert not disjointness.sound and "1 of 8 of the evaluation occur" in disjointness.sentence
    monkeypatch.setattr(data, "MOST_KNOWN", 0.12)
    with pytest.raises(UsageError):
        open_evaluation(search(root))


def test_near_duplicates_are_a_warning_in_the_run_and_in_the_report(search, tmp_path):
    root = birds(tmp_path / "birds", **{"test/4/0.png": noisy("train/0/1.png")})
    study, events = search(root), Recorded()
    disjointness = prepare(study, events).disjointness
    assert disjointness.sound and events.warnings == [disjointness.warning]
    assert disjointness.warning.startswith(
        "0 of 8 test images of the cross-validation and 1 of 8 of the evaluation are near-"
    )
    with open_store(LedgerUrl(f"sqlite:///{tmp_path}/ledger.sqlite")) as store:
        history.save(store, study, {}, disjointness, extend=False)
        assert history.read(history.find(store, study.name), study.storage, study.out).disjointness == disjointness


def test_only_what_searches_is_checked(search, tmp_path):
    root = birds(tmp_path / "birds", **{"test/0/0.png": copy("train/7/1.png")})
    known = set(Comparison.options())
    asked = {"dataset": f"folder:{root}", "cv_tasks": 2, "tasks": 4, "seeds": 2, "methods": "agem,van", "device": "cpu"}
    asked |= {name: value for name, value in IMAGES.items() if name in known}
    assert open_evaluation(build(Comparison, asked))[1].sound
    with pytest.raises(UsageError, match="--allow-shared"):
        open_evaluation(build(Comparison, asked | {"tune": True}))
    assert "allow_shared" not in MemoryStudy.options()


def test_a_permuted_stream_shares_by_construction_which_is_said(small_study):
    study = small_study(points=3, repeats=1, certify=0)
    study.out.mkdir()
    with open_store(study.storage) as store:
        loop = make(study, store)
        loop.disjointness = open_evaluation(study)[1]
        finish(loop, fake(lambda one: 0.9 - (one.epsilon - 0.3) ** 2))
        assert loop.disjointness.sound
        assert search_results(loop, {}).disjointness.endswith("; all tasks show the same images, permuted")


def test_a_ledger_keeps_what_was_allowed_and_nothing_else(small_study, tmp_path):
    plain, allowed = small_study(name="one"), small_study(name="two", allow_shared=True)
    assert plain.digest() == allowed.digest()
    with open_store(LedgerUrl(f"sqlite:///{tmp_path}/ledger.sqlite")) as store:
        for study in (plain, allowed):
            history.save(store, study, {}, data.Disjointness(), extend=False)
        assert "allow_shared" not in history.find(store, "one").config
        assert "warning" not in history.find(store, "one").config["seal"]
        assert history.read(history.find(store, "two"), plain.storage, plain.out).study.value("allow_shared")
        history.save(store, small_study(name="two"), {}, data.Disjointness(), extend=False)
        assert not history.read(history.find(store, "two"), plain.storage, plain.out).study.value("allow_shared")
