"""A study as an experiment of MLflow: runs once, however often it is published; and a server that has gone."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import epsearch
from epsearch.publishing import mlflow as ours
from results.metrics import average_accuracy
from tests.support.limits import HANGS
from tests.support.places import on_disk
from tests.support.servers import free_port, get, server

SERVER = "mlflow==3.17.2"  # as its client in pyproject; it needs older versions of what we need


class Tracked:
    """What a client of MLflow does, as far as it is used: experiments and runs of one server, kept in memory."""

    def __init__(self):
        self.experiments, self.runs, self.files, self.numbers = {}, {}, {}, itertools.count()

    def get_experiment_by_name(self, name):
        return self.experiments.get(name)

    def create_experiment(self, name, tags):
        self.experiments[name] = SimpleNamespace(experiment_id=name, tags=tags, lifecycle_stage="active")
        return name

    def search_runs(self, experiments, max_results, page_token=None):
        runs = [run for run in self.runs.values() if run.experiment in experiments]
        start = int(page_token or 0)
        return Page(runs[start : start + 3], str(start + 3) if start + 3 < len(runs) else None)

    def create_run(self, experiment, tags):
        key = f"run{next(self.numbers)}"
        data = SimpleNamespace(tags=dict(tags), params={}, metrics={}, curve={})
        info = SimpleNamespace(run_id=key, status="RUNNING")
        self.runs[key] = SimpleNamespace(experiment=experiment, info=info, data=data)
        return self.runs[key]

    def log_batch(self, run, metrics=(), params=(), tags=()):
        data = self.runs[run].data
        data.params |= {one.key: one.value for one in params}
        data.tags.update({one.key: one.value for one in tags})
        for one in metrics:
            data.metrics[one.key] = one.value
            data.curve.setdefault(one.key, []).append((one.step, one.value))

    def log_metric(self, run, key, value, step):
        self.runs[run].data.metrics[key] = value

    def set_terminated(self, run, status, end_time):
        self.runs[run].info.status = status

    def update_run(self, run, status):
        self.runs[run].info.status = status

    def delete_run(self, run):
        del self.runs[run]

    def log_artifacts(self, run, folder):
        self.files[run] = {path.name for path in Path(folder).iterdir()}


class Page(list):
    def __init__(self, runs, token):
        super().__init__(runs)
        self.token = token


@pytest.fixture
def tracked(monkeypatch):
    client = Tracked()
    monkeypatch.setattr(ours, "connect", lambda uri: client)
    return client


@pytest.fixture
def publish(studies):
    return lambda name: epsearch.publish(name, "mlflow", "http://localhost:1", studies.out)


def children(client, parent):
    return [one for one in client.runs.values() if one.data.tags.get(ours.PARENT) == parent.info.run_id]


def points(client):
    """The runs of points, by stream and label."""
    found = [one for one in client.runs.values() if ours.PARENT not in one.data.tags]
    return {(one.data.tags["stream"], one.data.tags[ours.NAME]): one for one in found if "stream" in one.data.tags}


@pytest.mark.slow
def test_a_point_is_a_run_with_means_and_a_run_for_each_seed(studies, publish, tracked):
    loop = studies.trained(name="one")
    told = publish("one")
    assert told.places == told.added == len(points(tracked))
    for (stream, label), run in points(tracked).items():
        members = children(tracked, run)
        assert sorted(one.data.params["seed"] for one in members) == ["0", "1"], label
        assert run.data.metrics["A_T"] == pytest.approx(np.mean([one.data.metrics["A_T"] for one in members]))
        assert [step for step, _ in run.data.curve["A_k"]] == [1, 2]
        assert run.info.status == "FINISHED" and stream in ("cv", "eval")
        for one in members:
            known = next(record for record in loop.records.values() if record.key == one.data.tags[ours.KEY])
            assert one.data.metrics["A_T"] == pytest.approx(100 * float(average_accuracy(known.accuracies)))
    study = next(one for one in tracked.runs.values() if one.data.tags[ours.PLACE] == ours.STUDY)
    assert study.data.tags["state"] == "finished" and "report.html" in tracked.files[study.info.run_id]


@pytest.mark.slow
def test_names_of_metrics_have_no_parentheses_which_mlflow_refuses(studies, publish, tracked):
    studies.trained(name="one", add_metrics="forgetting-avalanche")
    publish("one")
    for run in points(tracked).values():
        assert run.data.metrics["Forgetting Avalanche"] == pytest.approx(-run.data.metrics["BWT"])
        assert not any("(" in name for name in run.data.metrics)


@pytest.mark.slow
def test_publishing_again_adds_nothing_and_growing_replaces_means(studies, publish, tracked):
    studies.trained(name="one", jobs=1)
    publish("one")
    unfinished = {one.info.status for one in tracked.runs.values()}
    assert "RUNNING" in unfinished
    loop = studies.trained(name="one")
    publish("one")
    before = json.dumps({key: vars(run.data) for key, run in tracked.runs.items()}, default=str)
    told = publish("one")
    assert (told.added, told.files) == (0, 0)
    assert json.dumps({key: vars(run.data) for key, run in tracked.runs.items()}, default=str) == before
    studies.extended(loop, seeds=3)
    publish("one")
    searched = [run for (stream, _), run in points(tracked).items() if stream == "cv"]
    # The value that the curve of two seeds named is no point of the search of three.
    assert sorted(len(children(tracked, run)) for run in searched)[1:] == [3] * (len(searched) - 1)
    assert len({run.data.tags[ours.PLACE] for run in tracked.runs.values()}) == len(tracked.runs)


@pytest.mark.slow
def test_an_experiment_that_is_not_ours_is_left_alone(studies, publish, tracked):
    studies.trained(name="one", jobs=1)
    tracked.create_experiment("one", {})
    with pytest.raises(epsearch.UsageError, match="has an experiment 'one' that epsearch has not published"):
        publish("one")
    assert not tracked.runs


def test_a_missing_client_is_one_line(studies, epsearch, monkeypatch):
    studies.trained(name="one", jobs=1)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    answer = epsearch("publish", "one", "--out", studies.out, "--to", "mlflow", "http://localhost:1")
    assert answer.status == 2 and "pip install 'epsearch[mlflow]'" in answer.err and answer.err.count("\n") == 1


@pytest.mark.slow
def test_a_server_that_is_gone_ends_no_training_and_its_password_is_not_shown(epsearch, small_options, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    gone = f"mlflow:http://me:s3cretive@127.0.0.1:{free_port()}"
    answer = epsearch("run", *small_options, "--name", "one", "--quiet", "--live", gone)
    assert answer.status == 0 and "report  " in answer.out
    first, last = answer.err.splitlines()
    assert first.startswith("nothing more is logged to mlflow:http://me:***@127.0.0.1:")
    assert last.startswith("cannot publish to MLflow at http://me:***@127.0.0.1:")
    assert "s3cretive" not in answer.err + answer.out


@pytest.mark.exhaustive
@pytest.mark.install
def test_a_server_of_mlflow_returns_what_was_logged_and_published(studies, epsearch, small_options, tmp_path):
    """The server has an environment of its own."""
    uv, port = os.environ.get("UV") or shutil.which("uv"), free_port()
    with ExitStack() as ends:
        folder = ends.enter_context(on_disk())
        for command in (["venv", "--python", sys.executable, "env"], ["pip", "install", "--python", "env", SERVER]):
            subprocess.run([uv, *command], cwd=folder, check=True, timeout=HANGS, start_new_session=True)
        command = [folder / "env" / "bin" / "mlflow", "server", "--host", "127.0.0.1", "--port", port]
        quiet = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
        url = ends.enter_context(server(command, port, tmp_path, **quiet))
        answer = epsearch("run", *small_options, "--name", "one", "--quiet", "--live", f"mlflow:{url}")
        assert answer.status == 0 and answer.err == "", answer.err
        again = epsearch("publish", "one", "--to", "mlflow", url, "--json").json
        assert again["added"] == again["files"] == 0
        api = f"{url}/api/2.0/mlflow"
        experiment = get(f"{api}/experiments/get-by-name?experiment_name=one")["experiment"]["experiment_id"]
        runs = get(f"{api}/runs/search", experiment_ids=[experiment], max_results=1000)["runs"]
        tags = [{one["key"]: one["value"] for one in run["data"]["tags"]} for run in runs]
        parents = {run["info"]["run_id"] for run, known in zip(runs, tags, strict=True) if known.get("round")}
        seeds = [known for known in tags if known.get(ours.PARENT) in parents]
        assert parents and len(seeds) == 2 * len(parents)
        (study,) = [run for run, known in zip(runs, tags, strict=True) if known[ours.PLACE] == ours.STUDY]
        files = get(f"{api}/artifacts/list?run_id={study['info']['run_id']}")["files"]
        assert "report.html" in {one["path"] for one in files}
        parent = next(iter(parents))
        history = get(f"{api}/metrics/get-history?run_id={parent}&metric_key=A_k")["metrics"]
        assert [one["step"] for one in history] == [1, 2]
