"""Names and places of logs of plug-in trainers' output."""

from types import SimpleNamespace

import pytest

from epsearch.loop import jobs
from epsearch.loop.jobs import Run, log_of, member_name


def run(**values):
    return Run("cv", SimpleNamespace(method="a.b:train", seed=3, hyperparameters=SimpleNamespace(**values)))


def test_names_say_which_member_it_is():
    assert member_name(run(lr=0.1 + 0.2, kind="sgd")) == "a.b-train_lr=0.30000000000000004_kind=sgd_seed=3_cv"


@pytest.mark.parametrize(
    "values", [{"net": "mine:net"}, {"a": "../../x"}, {"a": "é" * 300}, {"a" * 50: 1, "b" * 90: 2}]
)
def test_names_are_safe_and_differ(values):
    name, other = member_name(run(**values)), member_name(run(**values, more=1))
    assert name.isascii() and "/" not in name and ":" not in name and len(f"{name}.log") < 255 and name != other


def test_a_folder_that_is_not_reached_is_replaced_by_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    job = SimpleNamespace(logs=tmp_path / "runs" / "one" / "logs", runs=[run(lr=1)])
    assert log_of(job) is None, "there is no such folder, either"
    (tmp_path / "tmp").mkdir()
    log = log_of(job)
    assert log.parent.is_dir() and log.parent.name == "one" and log.is_relative_to(tmp_path / "tmp")
    assert not job.logs.exists() and log.parents[1].stat().st_mode & 0o077 == 0
    job.logs.mkdir(parents=True)
    assert log_of(job) == job.logs / "a.b-train_lr=1_seed=3_cv.log"
    job.logs = None
    assert log_of(job) is None
