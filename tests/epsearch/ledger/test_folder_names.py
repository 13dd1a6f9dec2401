"""Any folder that the file system takes can be --out, in every command."""

import os
import shutil

import pytest
import yaml

from tests.support.ledgers import ARGUMENTS, NAME, finished

NAMES = {
    "percent": "a%20b",
    "half a percent": "100%",
    "query": "what?mode=ro",
    "fragment": "a#b",
    "spaces": " a  b ",
    "unicode": "ünï-日本-😀",
    "quotes": 'it\'s "so"',
    "newline": "two\nlines",
    "dash": "-x",
    "flag": "--name",
    "brackets": "[red]a[link]",
    "home": "~",
    "a home": "~nobody-of-this-name",
    "a url": "postgresql:",
    "a login": "sqlite:a:b@c password=d",
    "memory": ":memory:",
    "uri": "file:x?mode=memory",
    "backslash": "a\\b",
    "glob": "*?[a-z]{x}",
    "dots": "...",
    "not utf-8": os.fsdecode(b"\xff\xfe"),
}


@pytest.mark.slow
@pytest.mark.few(12)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_every_command_takes_it(epsearch, tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    out = tmp_path / name
    shutil.copytree(finished(), out)
    place = f"--out=./{name}" if name.startswith("~") else f"--out={name}"
    listed = epsearch("list", place, "--json")
    assert listed.json[0]["status"] == "finished", listed.err
    assert epsearch("show", place, "--json").json["finished"] is True
    again = epsearch("plan", *ARGUMENTS, "--name", NAME, place, "--json")
    assert again.json["ahead"]["now"] == 0, again.err
    assert sorted(os.listdir(tmp_path)) == sorted([name, "cache"] if (tmp_path / "cache").exists() else [name])
    missing = epsearch("show", "other", place)
    assert missing.status == 2 and missing.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["~", f"a%20b\n?#[red]'{NAMES['not utf-8']}"], ids=["home", "all at once"])
def test_what_a_run_writes_there_runs_again(epsearch, tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shutil.copytree(finished(), tmp_path / name, ignore=shutil.ignore_patterns(NAME))
    place = f"--out=./{name}" if name.startswith("~") else f"--out={name}"
    run = ["run", *ARGUMENTS, "--name", NAME]
    assert epsearch(*run, place).status == 0
    written = tmp_path / name / NAME / "study.yaml"
    assert yaml.safe_load(written.read_text(encoding="utf-8")) == yaml.safe_load(
        epsearch(*run, place, "--print-config").out
    )
    shutil.copy(written, tmp_path / "again.yaml")
    (tmp_path / name / NAME / "report.html").unlink()
    assert epsearch("run", "--config", "again.yaml", "--json").json["effort"]["trained"] == 0
    assert (tmp_path / name / NAME / "report.html").exists()
    assert not (tmp_path / "home").exists()


def test_a_folder_without_a_ledger_is_named_on_one_line(epsearch):
    answer = epsearch("list", "--out", "two\nlines")
    assert answer.status == 2 and answer.err.count("\n") == 1 and "two\\nlines" in answer.err


def test_home_is_home(epsearch, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for out in ("~/runs", "~"):
        assert f"{tmp_path}/home" in epsearch("list", "--out", out).err
        printed = epsearch("run", *ARGUMENTS, "--out", out, "--print-config").out
        assert yaml.safe_load(printed)["out"].startswith(f"{tmp_path}/home")
