"""The notebook runs from its first cell to its last, and shows progress, answer, figure and tables by itself."""

import json

import nbformat
import pytest
from nbclient import NotebookClient

import epsearch
from tests.support.limits import HANGS
from tests.support.sizes import ROOT

NOTEBOOK = ROOT / "examples" / "first_search.ipynb"


def outputs(cell, kind):
    """What a cell shows of a kind of data."""
    return ["".join(one["data"][kind]) for one in cell["outputs"] if kind in one.get("data", {})]


@pytest.mark.slow
def test_the_notebook_runs_and_shows_its_results(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    search = next(cell for cell in notebook.cells if "repeats=3, seeds=6" in cell.source)
    search.source = search.source.replace("repeats=3, seeds=6", "repeats=1, seeds=2, tasks=6")  # all cells in less time
    NotebookClient(notebook, timeout=HANGS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    progress, answer = outputs(code[1], "text/html")
    assert "<progress" in progress and "members" in progress
    assert "95 % confidence set" in answer and "A-GEM (ε = 0)" in answer and "difference" in answer
    (markdown,) = outputs(code[1], "text/markdown")
    assert markdown.startswith("#### notebook\n\n**ε = ")
    for cell in code[3:5]:
        (figure,) = outputs(cell, "application/vnd.plotly.v1+json") or map(json.dumps, outputs(cell, "text/html"))
        assert figure
    assert "<table" in outputs(code[5], "text/html")[0]
    assert "report.html" in code[-1]["outputs"][0]["text"]


def test_the_notebook_is_stored_without_results():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


@pytest.mark.slow
def test_outside_of_a_notebook_its_listener_is_refused():
    with pytest.raises(epsearch.UsageError, match="needs a notebook"):
        epsearch.notebook_listener()
