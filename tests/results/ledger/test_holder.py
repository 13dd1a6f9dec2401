"""Whether the process that holds a lease still exists: only what is certain counts."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from results.ledger.writers import holder as module
from results.ledger.writers.holder import UNKNOWN, Holder, here
from tests.support.holders import another_process, dead, killed, needs_proc

OURS = Holder("here", "a boot", "pid:[1]", os.getpid(), 1000)


def stat(pid: int, state: str = "S", threads: int = 1, started: int = 1000, name: str = "python") -> str:
    """A line of /proc/PID/stat; of the fields from the fourth on only the 20th and the 22nd are asked for."""
    return f"{pid} ({name}) {state} {'7 ' * 16}{threads} 0 {started} 7 7\n"


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Linux says, written by the test: this process is OURS."""
    for folder in ("self/ns", "sys/kernel/random", "77"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("a boot\n")
    (tmp_path / "self/ns/pid").symlink_to("pid:[1]")
    (tmp_path / "self/stat").write_text(stat(os.getpid()))
    monkeypatch.setattr(module, "PROC", tmp_path)
    return tmp_path


def test_it_comes_back_from_json() -> None:
    own = here().acquiring()
    assert Holder.from_json(own.to_json()) == own == here()
    assert Holder.from_json(own.to_json()).acquisition == own.acquisition != own.acquiring().acquisition


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", "null", "[" * 100_000),
        json.dumps(asdict(OURS) | {"pid": "1"}),
        json.dumps(asdict(OURS) | {"pid": True}),
        json.dumps(asdict(OURS) | {"container": "of a later version"}),
        json.dumps({name: value for name, value in asdict(OURS).items() if name != "started"}),
    ],
    ids=lambda text: text[:20],
)
def test_what_another_version_wrote_is_unknown_and_never_gone(text: str) -> None:
    assert Holder.from_json(text) == UNKNOWN and not UNKNOWN.gone()
    assert str(UNKNOWN) == "an unknown process"


def test_it_is_said_in_one_line() -> None:
    assert str(OURS) == f"pid {os.getpid()} on host here"
    assert str(replace(OURS, host="a\nb")) == f"pid {os.getpid()} on host 'a\\nb'"


@needs_proc
def test_a_process_is_gone_when_it_has_ended() -> None:
    with another_process() as (child, holder):
        assert holder.pid == child.pid and holder.boot == here().boot and not holder.gone()
        killed(child)
        assert holder.gone()  # as a zombie
        child.wait()
        assert holder.gone()
        assert not any(replace(holder, **other).gone() for other in ({"boot": "x"}, {"namespace": "pid:[1]"}))
        assert not any(replace(holder, **other).gone() for other in ({"boot": ""}, {"started": 0}))


@needs_proc
def test_a_number_that_another_process_has_now() -> None:
    assert not here().gone()
    assert replace(here(), started=here().started - 1).gone()
    assert dead() != here()


def test_what_is_unknown_is_never_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system without /proc."""
    before = here()
    monkeypatch.setattr(module, "PROC", tmp_path)
    assert (here().boot, here().namespace, here().started) == ("", "", 0) and here().pid == os.getpid()
    assert not here().gone() and not replace(here(), pid=2**22).gone() and not replace(before, started=1).gone()


def test_a_process_in_a_namespace_whose_proc_is_not_mounted_knows_of_nobody(proc: Path) -> None:
    assert here() == replace(OURS, host=here().host)
    (proc / "self/stat").write_text(stat(os.getpid() + 1))
    assert here().boot == "" and not OURS.gone()


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        (stat(77), False),
        (stat(77, name="a) S 7 (b c"), False),
        (stat(77, started=1001), True),
        (stat(77, "Z"), True),
        (stat(77, "Z", threads=2), False),
        (stat(77, "X"), True),
        (stat(77, "D"), False),
        ("77 (python) S 7", False),
        ("77", False),
        ("", False),
    ],
)
def test_what_linux_says_of_a_process(proc: Path, line: str, gone: bool) -> None:
    (proc / "77" / "stat").write_text(line)
    assert replace(OURS, pid=77).gone() is gone


def test_a_process_that_is_hidden_exists(proc: Path) -> None:
    """/proc may be mounted so that it does not show the processes of other users."""
    assert not OURS.gone()
    assert not replace(OURS, pid=2**80).gone()


@needs_proc
def test_a_process_that_nobody_knows_is_gone(proc: Path) -> None:
    assert replace(OURS, pid=dead().pid).gone()
