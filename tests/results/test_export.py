from __future__ import annotations

import dataclasses
import errno
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from results import files
from results.export import accuracies_table, export_runs, runs_table
from results.files import atomically, write_atomically
from results.metrics import average_accuracy
from tests.support.synthetic import record


def test_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    members = [record(seed=s, epsilon=e) for s in range(2) for e in (0.0, 0.3)] + [record(seed=9, diverged=True)]
    written = export_runs(members, tmp_path / "new")
    assert {p.name for p in written} == {"runs.csv", "runs.parquet", "accuracies.csv", "accuracies.parquet"}
    assert {p.name for p in (tmp_path / "new").iterdir()} == {p.name for p in written}
    for name in ("runs", "accuracies"):
        text = pd.read_csv(tmp_path / "new" / f"{name}.csv")
        binary = pd.read_parquet(tmp_path / "new" / f"{name}.parquet")
        assert list(text.columns) == list(binary.columns)
        for column in ("epsilon", "A_T") if name == "runs" else ("accuracy",):
            assert text[column].astype(float).equals(binary[column].astype(float))


def test_one_flat_row_a_run() -> None:
    table = runs_table([record(epsilon=0.3), record(seed=1, diverged=True)])
    row = table.iloc[0]
    assert row["A_T"] == pytest.approx(100 * float(average_accuracy(record(epsilon=0.3).accuracies)))
    assert (row["tasks"], row["content.dataset"], row["content.network.lr"]) == (3, "permuted_mnist", 0.1)
    assert row["content.network.hidden"] == "[256, 256]"
    assert row["violation_share"] == pytest.approx(0.3)
    assert table["diverged_task"].tolist() == [pd.NA, 1]
    assert (row["fingerprint"], row["cohort"]) == (record(epsilon=0.3).fingerprint, "cohort-0")
    assert table["status"].tolist() == ["ok", "diverged"]


def test_accuracies_are_one_based_and_only_the_measured_ones() -> None:
    member = record(tasks=4)
    table = accuracies_table([member])
    assert len(table) == 4 + 4 * 5 // 2 + 3
    cell = table[(table["k"] == 3) & (table["j"] == 2)]
    assert cell["accuracy"].tolist() == [member.accuracies[2, 1]]
    assert (table["j"] <= table["k"] + 1)[table["k"] > 0].all()
    assert table["k"].min() == 0 and (table["j"].min(), table["j"].max()) == (1, 4)


def test_metrics_can_be_computed_from_the_table_alone() -> None:
    member = record(tasks=4)
    a = accuracies_table([member]).pivot(index="k", columns="j", values="accuracy")
    assert 100 * a.loc[4].mean() == pytest.approx(runs_table([member])["A_T"].item())
    unseen = [a.loc[task - 1, task] - a.loc[0, task] for task in (2, 3, 4)]
    assert 100 * sum(unseen) / 3 == pytest.approx(runs_table([member])["FWT"].item())


def test_hyperparameters_of_mixed_types_still_fit_one_column(tmp_path: Path) -> None:
    values = ({"a": 1, "b": True}, {"a": "many", "c": None}, {"a": 1.5, "b": False})
    members = [dataclasses.replace(record(seed=s), content=c) for s, c in enumerate(values)]
    export_runs(members, tmp_path)
    table = pd.read_parquet(tmp_path / "runs.parquet")
    assert table["content.a"].tolist() == ["1", "many", "1.5"]
    assert table["content.b"].isna().tolist() == [False, True, False]


def test_no_records_still_make_files_with_a_header(tmp_path: Path) -> None:
    export_runs([], tmp_path)
    assert pd.read_csv(tmp_path / "accuracies.csv").columns[-1] == "accuracy"
    assert len(pd.read_parquet(tmp_path / "runs.parquet")) == 0


@pytest.fixture(params=[files.DESCRIPTORS, "/nowhere"], ids=["unnamed at first", "named"])
def descriptors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the system has files without a name."""
    monkeypatch.setattr(files, "DESCRIPTORS", request.param)
    return str(request.param)


def test_a_kill_while_a_file_is_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descriptors: str
) -> None:
    """Without a name the file goes with its process; where the system has no such files, half a one stays."""
    path, during, sync = write_atomically(tmp_path / "x.csv", b"old"), [], os.fsync

    def look(handle: int) -> None:
        sync(handle)
        during.append(len(list(tmp_path.iterdir())))

    monkeypatch.setattr(os, "fsync", look)
    unnamed = files._unnamed_file(tmp_path)
    if unnamed is not None:
        os.close(unnamed)
    assert write_atomically(path, b"new").read_bytes() == b"new"
    assert during == [1 if unnamed is not None else 2] and path.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


@pytest.mark.usefixtures("descriptors")
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_atomically(tmp_path / "x.csv", b"old")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write() -> None:
        with atomically(path):
            raise full  # as a write does, which knows no path

    with pytest.raises(OSError, match=f"{re.escape(str(path))}"):
        write()
