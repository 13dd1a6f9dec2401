"""An SQLite file that another one takes the name of, or that is overwritten in place, while a store has it open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from results.ledger.retry import RetryPolicy
from results.ledger.store import Store, StoreError
from tests.support.synthetic import record

MANY = [record(seed=seed) for seed in range(300)]  # of many pages
KEYS = {one.key for one in MANY}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{file}") as opened:
        yield opened


def keys(file: Path) -> set[str]:
    with Store.read(f"sqlite:///{file}") as other:
        return {one.key for one in other.all_runs()}


def test_the_log_of_the_old_file_is_not_taken_for_one_of_the_new(store: Store, file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    Store.open(f"sqlite:///{new}").close()
    store.add(MANY)
    assert Path(f"{file}-wal").stat().st_size > 100_000
    new.replace(file)
    lines: list[str] = []
    store.retries = RetryPolicy(0.0, lines.append)
    late = record(seed=1000)
    assert store.add([late]) == 1
    assert store.lacking([*KEYS, late.key]) == KEYS
    assert len(lines) == 1 and "is not the file that it was" in lines[0]
    assert keys(file) == {late.key}


def test_a_file_that_is_removed_is_made_again(store: Store, file: Path) -> None:
    store.add(MANY[:5])
    file.unlink()
    assert store.add(MANY[5:7]) == 2
    assert keys(file) == {one.key for one in MANY[5:7]}


def test_a_reader_follows_the_name(store: Store, file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    with Store.open(f"sqlite:///{new}") as other:
        other.add(MANY[:3])
    with Store.read(f"sqlite:///{file}") as reader:
        assert reader.all_runs() == []
        store.close()
        new.replace(file)
        assert len(reader.all_runs()) == 3


@pytest.mark.parametrize("harm", ["truncated", "overwritten by an empty ledger"])
def test_reopened_a_store_knows_what_was_overwritten(store: Store, file: Path, tmp_path: Path, harm: str) -> None:
    """As SQLite has pages in memory, nothing seems to lack before."""
    store.add(MANY)
    with store.transaction("read") as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(FULL)")
    if harm == "truncated":
        os.truncate(file, 0)
    else:
        new = tmp_path / "new.sqlite"
        Store.open(f"sqlite:///{new}").close()
        shutil.copyfile(new, file)
    try:
        store.reopen()
        lacking = store.lacking(KEYS)
    except StoreError:
        return  # it is damaged, and says so
    assert lacking == KEYS - keys(file)
