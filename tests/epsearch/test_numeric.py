"""Which numeric path a study takes, and that it keeps it."""

import json

import pytest

from epsearch import ledger, numeric, session, studies
from epsearch.errors import UsageError
from epsearch.preparation import open_evaluation
from trainers.numeric_path import NumericPath


def test_the_fastest_is_measured_once_a_machine(cache, monkeypatch):
    import trainers.engines.choice as choice

    measured = []
    monkeypatch.setattr(choice, "fastest_path", lambda *about: measured.append(about) or NumericPath(products="onednn"))
    assert numeric.fastest_here(64, 256, 0.52) == "cpu-float32-onednn"
    assert numeric.fastest_here(64, 256, 0.47) == "cpu-float32-onednn"
    assert measured == [(64, 256, 0.5)]
    assert list(json.loads((cache / "numeric-paths.json").read_text()).values()) == ["cpu-float32-onednn"]
    (cache / "numeric-paths.json").write_text("no JSON")
    assert numeric.fastest_here(64, 256, 0.5) == "cpu-float32-onednn" and len(measured) == 2


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "file"))
    assert NumericPath.parse(numeric.fastest_here(64, 16, 0.5)).device == "cpu"


def test_sparse_inputs_are_chosen_where_they_are_faster_only():
    from trainers.engines.choice import fastest_path

    assert fastest_path(1568, 256, 0.02).sparse  # a fiftieth of the pixels: no machine is faster with all of them
    assert not fastest_path(1568, 256, 0.9).sparse
    assert not fastest_path(64, 256, 0.02).sparse


def test_a_given_path_wins(small_study):
    study = small_study(numeric_path="cpu-float32-mkl-sparse")
    assert numeric.numeric_path(study, open_evaluation(study)[0], "cpu-float32-onednn") == "cpu-float32-mkl-sparse"


def test_a_study_keeps_the_path_it_began_with(small_study, console, epsearch, tmp_path):
    study = small_study(numeric_path="cpu-float32-mkl-sparse", name="mine")
    first = studies.train_and_report(study, console)
    again = studies.train_and_report(small_study(numeric_path=None, name="mine"), console)
    assert first.effort.trained > 0 and again.effort.trained == 0
    assert again.results.config["numeric_path"] == "cpu-float32-mkl-sparse"
    loop = studies.load("mine", study.storage, study.out)
    assert loop.done and loop.study.numeric_path == "cpu-float32-mkl-sparse"


def test_another_path_under_the_same_name_is_refused(small_study, console):
    studies.train_and_report(small_study(name="mine"), console)
    with pytest.raises(UsageError, match="numeric_path"):
        studies.train_and_report(small_study(name="mine", numeric_path="cpu-float32-onednn"), console)


@pytest.mark.parametrize("path", ["cuda-float32", "cuda-tf32"])
def test_a_path_of_another_device_is_refused(small_study, console, path):
    with pytest.raises(UsageError, match=f"numeric-path '{path}' does not fit device 'cpu' with precision 'float32'"):
        studies.train_and_report(small_study(numeric_path=path), console)


@pytest.mark.parametrize(
    "text", ["", "cpu", "cpu-float32", "cpu-float32-mkl-dense", "cuda-float32-mkl", "cpu-float32-blas"]
)
def test_other_names_are_refused(text):
    with pytest.raises(ValueError, match="no numeric path"):
        NumericPath.parse(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("cpu-float32-mkl", NumericPath(products="mkl")),
        ("cpu-float32-onednn-sparse", NumericPath(products="onednn", sparse=True)),
        ("cpu-float32-torch", NumericPath()),
        ("cuda-float32", NumericPath("cuda")),
        ("cuda-tf32", NumericPath("cuda", "tf32")),
    ],
)
def test_names_of_paths(text, path):
    assert NumericPath.parse(text) == path and str(path) == text


def test_a_study_from_before_there_were_paths_can_be_listed(small_study, console):
    study = small_study(name="old")
    with session.open_store(f"sqlite:///{_made(study.out) / 'epsearch.sqlite'}") as store:
        store.save_study("old", {"study": study.identity(), "stream": dict(open_evaluation(study)[0].describe())})
    (row,) = ledger.list_studies(study.storage, study.out)
    assert row.name == "old" and row.chosen is None


def _made(folder):
    folder.mkdir()
    return folder
