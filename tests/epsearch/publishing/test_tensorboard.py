"""A study as runs of TensorBoard, published and logged while it trains."""

import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from tensorboardX.event_file_writer import EventsWriter  # noqa: F401 what the product needs is there

import epsearch
from results.metrics import average_accuracy_curve
from tests.support.servers import free_port, get, server


def files(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*") if path.is_file()}


@pytest.fixture
def publish(studies, tmp_path):
    return lambda name: epsearch.publish(name, "tensorboard", str(tmp_path / "logs"), studies.out)


@pytest.mark.slow
def test_a_point_is_a_run_with_a_run_for_each_seed_and_is_written_once(studies, publish, tmp_path):
    studies.trained(name="one", jobs=1)
    unfinished = publish("one")
    loop = studies.trained(name="one")
    told = publish("one")
    assert told.added == told.places > unfinished.added
    before = files(tmp_path / "logs")
    records = {(one.phase, one.epsilon, one.seed) for one in (*loop.search_records(), *loop.evaluation_records())}
    runs = {path.parent.relative_to(tmp_path / "logs" / "one").as_posix() for path in before} - {"."}
    members = {f"{phase}/epsilon={epsilon}/seed-{seed}" for phase, epsilon, seed in records}
    assert runs == members | {run.rpartition("/")[0] for run in members}
    assert publish("one").added == 0 and files(tmp_path / "logs") == before
    studies.extended(loop, seeds=3)
    assert publish("one").added > 0
    assert len({path.parent for path in files(tmp_path / "logs")}) == len(files(tmp_path / "logs"))  # one file a run


@pytest.mark.slow
def test_rows_of_tables_are_runs(studies, publish, tmp_path):
    studies.trained("memory", name="sizes", sizes="2,3", methods="agem")
    publish("sizes")
    assert {path.name for path in (tmp_path / "logs" / "sizes" / "eval").iterdir()} == {
        "row=A-GEM,memory=2",
        "row=A-GEM,memory=3",
    }


def test_a_folder_that_cannot_be_written_to_and_a_missing_package_are_one_line(
    studies, epsearch, tmp_path, monkeypatch
):
    studies.trained(name="one", jobs=1)
    (tmp_path / "file").write_text("")
    publish = ("publish", "one", "--out", studies.out, "--to", "tensorboard")
    answer = epsearch(*publish, tmp_path / "file")
    assert answer.status == 2 and "cannot write to the TensorBoard folder" in answer.err
    monkeypatch.setitem(sys.modules, "tensorboardX.summary", None)
    answer = epsearch(*publish, tmp_path / "logs")
    assert answer.status == 2 and "pip install 'epsearch[tensorboard]'" in answer.err
    assert not (tmp_path / "logs").exists()


@pytest.mark.slow
def test_a_training_is_logged_as_it_goes_and_completed_at_its_end(epsearch, small_options, tmp_path):
    answer = epsearch("run", *small_options, "--name", "one", "--live", "tensorboard:logs", "--quiet")
    assert answer.status == 0, answer.err
    seeds = {path.parent.name for path in files(tmp_path / "logs")}
    assert {"seed-0", "seed-1", "progress", "one"} <= seeds
    published = epsearch("publish", "one", "--to", "tensorboard", "logs", "--json").json
    assert published["added"] == 0  # all of it had been written by the run
    plain = epsearch("run", *small_options, "--print-config", "--live", "tensorboard:logs")
    assert "live" not in plain.out


@pytest.mark.parametrize("target", ["tensorboard", "tensorboard:", "wandb:x"])
def test_another_live_target_is_refused_before_anything_is_trained(epsearch, small_options, tmp_path, target):
    answer = epsearch("run", *small_options, "--live", target)
    assert answer.status == 2 and answer.err.count("\n") == 1
    assert f"live must be mlflow:URI or tensorboard:FOLDER, got '{target}'" in answer.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.service
def test_tensorboard_shows_a_published_study(studies, publish, tmp_path):
    loop = studies.trained(name="one")
    publish("one")
    port = free_port()
    program = Path(sys.executable).with_name("tensorboard")
    command = [program, "--logdir", tmp_path / "logs", "--port", port, "--load_fast", "false", "--reload_interval", "1"]
    with server(command, port, tmp_path) as url:
        point = loop.best.point[0]
        wanted = f"one/cv/epsilon={point}"
        tags = get(f"{url}/data/plugin/scalars/tags")
        while wanted not in tags or f"{wanted}/seed-1" not in tags:  # it reads the folder in its own time
            tags = get(f"{url}/data/plugin/scalars/tags")
        assert {"A_k", "A_T", "A_T_std", "F_T"} <= set(tags[wanted])
        shown = get(f"{url}/data/plugin/scalars/scalars?tag=A_k&run={quote(wanted)}")
        records = [one for one in loop.search_records() if one.epsilon == point]
        means = 100 * average_accuracy_curve(np.stack([one.accuracies for one in records])).mean(axis=0)
        assert {step: value for _, step, value in shown} == pytest.approx(dict(enumerate(means, start=1)), rel=1e-5)
        asked = {
            "experimentName": "",
            "colParams": [],
            "startIndex": 0,
            "sliceSize": 100,
            "allowedStatuses": ["STATUS_SUCCESS"],
        }
        groups = get(f"{url}/data/plugin/hparams/session_groups", **asked)["sessionGroups"]
        assert point in {group["hparams"]["epsilon"] for group in groups}
