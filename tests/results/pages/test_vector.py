"""Figures for a paper: vectors at the width of a column, with their fonts; and what is said where none can be drawn."""

from __future__ import annotations

import base64
import io
import re
import shutil
import sys
import zlib
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from results.pages import comparison as methods
from results.pages import memory
from results.pages.search import report
from results.pages.vector import DRAWN, DrawingError, narrow, with_font, write_vectors
from tests.support import chromium
from tests.support.synthetic import study
from tests.support.synthetic_methods import comparison, memory_study

KINDS = {
    "search": lambda: report.figures(study(repeats=3, points=5, seeds=2)),
    "comparison": lambda: methods.figures(comparison()),
    "memory study": lambda: memory.figures(memory_study()),
}
DRAWS = pytest.mark.skipif(chromium.program() is None, reason="no Chromium is installed")
NAMES = pytest.mark.skipif(shutil.which("fc-match") is None, reason="no fontconfig is installed")


def embedded(svg: str) -> TTFont:
    """The font that an SVG has inside."""
    data = re.search(r"@font-face\{[^}]*url\(data:font/woff;base64,([^)]*)\)", svg)
    assert data is not None
    return TTFont(io.BytesIO(base64.b64decode(data[1])))


def objects(pdf: bytes) -> bytes:
    """A PDF with its compressed streams unpacked."""
    parts = [pdf]
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, flags=re.DOTALL):
        try:
            parts.append(zlib.decompressobj().decompress(stream))
        except zlib.error:
            continue
    return b"\n".join(parts)


@pytest.mark.service
@DRAWS
@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_vectors_at_the_width_of_a_column_with_its_font(kind: str, tmp_path: Path) -> None:
    figures = KINDS[kind]()
    paths = write_vectors(figures, tmp_path, ("svg", "pdf"), width=3.4)
    assert {path.name for path in paths} == {f"{name}.{format}" for name in figures for format in ("svg", "pdf")}
    for path in paths:
        if path.suffix == ".svg":
            svg = path.read_text(encoding="utf-8")
            assert svg.startswith("<svg ") and "<image" not in svg and "fill: rgb(255, 255, 255)" in svg
            assert float(re.search(r' width="([\d.]+)"', svg)[1]) == pytest.approx(3.4 * 96)  # type: ignore[index]
            assert not re.search(r"(?:href|src)=\"http|url\(['\"]?http", svg)
        else:
            pdf = objects(path.read_bytes())
            assert pdf.startswith(b"%PDF") and b"/Subtype /Image" not in pdf
            (box,) = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ", pdf))
            assert float(box) == pytest.approx(3.4 * 72, abs=1)
            fonts = re.findall(rb"/FontDescriptor\b", pdf)
            assert fonts and len(re.findall(rb"/FontFile[23]?\b", pdf)) >= len(
                set(re.findall(rb"/FontName ?/\S+", pdf))
            )


@pytest.mark.slow
@NAMES
def test_an_svg_has_the_letters_that_it_shows_and_no_others() -> None:
    svg = '<svg width="9"><text style="font-family: Inter, Arial;">ε &lt; 0.5 − A</text></svg>'
    found = with_font(svg)
    letters = set(map(chr, embedded(found).getBestCmap()))
    assert set("ε < 0.5 − A") <= letters and not letters & set("BCxyz123")
    assert "font-family: Figure, Inter" in found and found.startswith('<svg width="9"><style>')


def test_an_svg_stays_as_it_is_where_nobody_knows_the_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert with_font("<svg><text>a</text></svg>") == "<svg><text>a</text></svg>"


@pytest.mark.slow
def test_a_legend_of_many_names_gets_lines_of_its_own_and_titles_stay_on_their_panels() -> None:
    figures = KINDS["comparison"]()
    module, numbers = figures["accuracy_curve"]
    drawing, wide = module.draw(numbers), module.draw(numbers)
    narrow(drawing)
    assert drawing.layout.width == DRAWN and drawing.layout.paper_bgcolor == "white"
    assert drawing.layout.legend.orientation == "h" and drawing.layout.margin.t > wide.layout.margin.t + 60
    module, numbers = KINDS["memory study"]()["memory_panels"]
    panels = module.draw(numbers)
    narrow(panels)
    titles = [axis.title.text for axis in panels.select_xaxes() if axis.title.text]
    assert titles and all("<br>" in title for title in titles)


def test_figures_without_data_are_left_out(tmp_path: Path) -> None:
    bare = report.figures(study(repeats=1, points=3, seeds=1, evaluated=False))
    assert write_vectors({"accuracy_curve": bare["accuracy_curve"]}, tmp_path, ("svg",)) == ()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_no_browser_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    with pytest.raises(
        DrawingError, match=r"^figures as files need Chromium or Chrome, and there is none at BROWSER_PATH$"
    ):
        write_vectors(KINDS["search"](), tmp_path, ("pdf",))


@pytest.mark.slow
def test_a_browser_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "browser"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(broken))
    with pytest.raises(DrawingError, match=r"^the browser that draws figures has failed: ") as caught:
        write_vectors(KINDS["search"](), tmp_path, ("pdf",))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_no_kaleido_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(DrawingError, match=r"^figures as files need kaleido: pip install 'epsearch\[figures\]'$"):
        write_vectors(KINDS["search"](), tmp_path, ("pdf",))
