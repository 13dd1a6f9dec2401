"""A study as one file to cite: complete, the same every time, and what is in it can be checked."""

import json
import zipfile

import pytest

from results.pages import vector
from tests.epsearch.test_cli import one_line

PARTS = {
    *("README.md", "methods.md", "references.bib", "study.yaml", "study.zip", "verification.json", "versions.txt"),
    *("tables/evaluation.csv", "tables/evaluation.tex", "tables/search.csv", "tables/trust.csv"),
    *("figures/epsilon_A_T.csv", "figures/epsilon_A_T_curve.csv", "figures/best_so_far.csv"),
}


@pytest.fixture
def no_browser(monkeypatch):
    """A machine that cannot draw."""

    def fail(*_, **__):
        raise vector.DrawingError("no Chromium is here")

    monkeypatch.setattr(vector, "write_vectors", fail)


@pytest.mark.slow
def test_the_unpacked_file_is_imported_and_verified(epsearch, small_options, tmp_path, no_browser):
    assert epsearch("run", *small_options, "--name", "mine").status == 0
    answer = epsearch("export", "mine", "--paper")
    assert answer.status == 0 and "images of figures left out: no Chromium is here" in answer.out
    there = tmp_path / "unpacked"
    with zipfile.ZipFile(tmp_path / "mine-paper.zip") as archive:
        assert set(archive.namelist()) >= PARTS
        archive.extractall(there)
    text = {name: (there / name).read_text(encoding="utf-8") for name in PARTS if not name.endswith(".zip")}
    assert "We searched ε of ε-SOFT-GEM" in text["methods.md"] and "none shared" in text["methods.md"]
    assert "@" in text["references.bib"] and r"\toprule" in text["tables/evaluation.tex"]
    assert "disjointness" in json.loads(text["verification.json"])
    assert not any(str(tmp_path) in one for one in text.values()), "no folder of this machine is published"
    commands = [line for line in text["README.md"].splitlines() if line.startswith("epsearch ")]
    assert len(commands) == 2
    for command in commands:
        done = epsearch(*command.replace("study.zip", str(there / "study.zip")).split()[1:])
        assert done.status == 0, done.err
    assert "the same bit for bit" in done.out
    # The second one has the same runs, and says when the first was verified.
    assert epsearch("export", "mine", tmp_path / "again.zip", "--paper", "--json").json["parts"]
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "mine-paper.zip").read_bytes()


@pytest.mark.slow
def test_a_study_without_a_paper_is_refused_in_a_line(epsearch, small_options, tmp_path):
    one_line(epsearch("export", "--all", "x", "--paper"), "export --paper takes NAME and FILE, got --all")
    small = ["--tasks", 4, "--cv-tasks", 2, "--seeds", 1, "--examples-per-task", 60, "--memory", 3]
    compared = epsearch("compare", "--methods", "van", *small, "--runner", "local", "--name", "table")
    assert compared.status == 0
    one_line(epsearch("export", "table", "--paper"), "--paper is for searches; 'table' is a study of")
    one_line(epsearch("export", "nothing", "--paper"), "no study 'nothing'; known: table")
    (tmp_path / "kept.zip").write_text("a letter", encoding="utf-8")
    assert epsearch("run", *small_options, "--name", "mine").status == 0
    one_line(epsearch("export", "mine", "kept.zip", "--paper"), "exists and is no such file")
    assert (tmp_path / "kept.zip").read_text(encoding="utf-8") == "a letter"
