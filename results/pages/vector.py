"""Figures as SVG and PDF for a paper.

As wide as one of its columns, on white, with the fonts in the files.
"""

import asyncio
import base64
import io
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

from results.figures import FORMATS, parameter_curve
from results.figures.paper import INCH, paper_style
from results.figures.style import FONT
from results.files import write_atomically
from results.pages.writing import Figures

COLUMN = 3.4
"""Inches of a column of most two-column papers."""
DRAWN = 480
"""Pixels of width that a figure is drawn with; made smaller to the column, its letters have 7 points."""
ENTRY, LETTER, MARK = 21, 6.6, 46
"""Pixels: height of a line of the legend, width of a letter in it, and width of the mark before each name."""
ROOM = 0.045
"""Share of the width that a panel beside another one gives up for the numbers and the title of its own axis."""
SECONDS = 300
"""Seconds that a figure may take; a browser that hangs is given up behind them."""
PROGRAM = "BROWSER_PATH"
"""Environment variable with the path of the browser, where that is not found by its name."""
EMBEDDED = "Figure"
"""Name under which a font stands in an SVG file."""


class DrawingError(Exception):
    """Something that drawing needs is missing here, in one line."""


def write_vectors(
    figures: Figures, folder: Path, formats: Sequence[str] = FORMATS, width: float = COLUMN
) -> tuple[Path, ...]:
    """Writes every figure that shows anything as <name>.<format> into `folder`, each atomically; returns the paths.

    formats   of FORMATS
    width     inches

    Raises DrawingError where kaleido or a Chromium is missing or fails, and OSError where a file cannot be written.
    """
    drawings = {name: _for_paper(module, numbers, width) for name, (module, numbers) in figures.items()}
    specs = {
        folder / f"{name}.{kind}": (drawing, _options(drawing, kind, width))
        for name, drawing in drawings.items()
        if drawing.data
        for kind in formats
    }
    for path, image in (_render(specs) if specs else {}).items():
        write_atomically(path, with_font(image.decode()).encode() if path.suffix == ".svg" else image)
    return tuple(specs)


def _for_paper(module: ModuleType, numbers: Any, width: float) -> Any:
    """Returns a figure as it stands in a paper: ε against A_T alone in `paper_style`, all others narrowed."""
    drawing = module.draw(numbers)
    if module is parameter_curve:
        return paper_style(drawing, width)
    narrow(drawing)
    return drawing


def narrow(drawing: Any) -> None:
    """Fits a figure to DRAWN pixels and to white paper: a legend has its own lines above the panels."""
    layout = drawing.layout
    names = [trace.name for trace in drawing.data if trace.name and trace.showlegend is not False]
    lines = _lines(names) if layout.showlegend is not False and len(names) > 1 else 0
    above = 30 + ENTRY * lines
    layout.update(
        width=DRAWN,
        height=round(0.72 * layout.height) + above - 30,
        paper_bgcolor="white",
        plot_bgcolor="white",
        margin={"l": 50, "r": 12, "t": above, "b": 46},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "top", "yref": "container"},
    )
    for axis in (*drawing.select_xaxes(), *drawing.select_yaxes()):
        axis.title.update(font_size=layout.font.size, standoff=4)  # plotly's own are a fifth larger
    for axis in drawing.select_xaxes():
        low, high = axis.domain or (0, 1)
        beside = layout[(axis.anchor or "y").replace("y", "yaxis")]
        if low > 0 and beside.title.text and beside.type != "category":
            low = axis.domain[0] + ROOM
            axis.domain = (low, high)
        axis.title.text = _break_lines(axis.title.text or "", int((high - low) * (DRAWN - 62) / LETTER))


def with_font(svg: str) -> str:
    """Returns an SVG with the letters that it uses of its font inside; as it is where that font cannot be found."""
    letters = {letter for text in re.findall(r">([^<]+)<", svg) for letter in unescape(text)}
    font = _font(letters)
    if font is None:
        return svg
    data = base64.b64encode(font).decode()
    face = f"@font-face{{font-family:{EMBEDDED};src:url(data:font/woff;base64,{data}) format('woff')}}"
    named = re.sub(r"font-family:\s*Inter,", f"font-family: {EMBEDDED}, Inter,", svg)
    return re.sub(r"(<svg\b[^>]*>)", rf"\1<style>{face}</style>", named, count=1)


def _lines(names: Sequence[str]) -> int:
    """Returns how many lines the names of a legend take at most, with entries as wide as the longest."""
    widest = MARK + LETTER * max(len(re.sub(r"<[^>]*>", "", name)) for name in names)
    a_line = max(1, int((DRAWN - 12) // widest))
    return -(-len(dict.fromkeys(names)) // a_line)


def _break_lines(title: str, letters: int) -> str:
    """Returns a title in lines of at most `letters` letters, not counting tags; longer words stay whole.

    >>> _break_lines("LCA<sub>10</sub> (fraction)", 12)
    'LCA<sub>10</sub><br>(fraction)'
    """
    lines: list[str] = []
    for word in title.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and len(re.sub(r"<[^>]*>", "", longer)) <= letters:
            lines[-1] = longer
        else:
            lines.append(word)
    return "<br>".join(lines)


def _options(drawing: Any, kind: str, width: float) -> dict[str, Any]:
    size = {"width": drawing.layout.width, "height": drawing.layout.height}
    return {"format": kind, **size, "scale": INCH * width / drawing.layout.width}


def _render(specs: Mapping[Path, tuple[Any, dict[str, Any]]]) -> dict[Path, bytes]:
    """Returns every image, rendered by one browser without a network."""
    try:
        import kaleido
        from kaleido.errors import ChromeNotFoundError
    except ImportError:
        raise DrawingError("figures as files need kaleido: pip install 'epsearch[figures]'") from None

    async def render() -> dict[Path, bytes]:
        # Without MathJax, which would come from the network; plotly.js is that of the installed plotly.
        page = kaleido.PageGenerator(mathjax=False)
        path = os.environ.get(PROGRAM) or None
        async with kaleido.Kaleido(path=path, page_generator=page, timeout=SECONDS) as browser:
            return {path: await browser.calc_fig(drawing, opts=options) for path, (drawing, options) in specs.items()}

    try:
        return _run(render)
    except ChromeNotFoundError:
        where = f" at {PROGRAM}" if PROGRAM in os.environ else f"; install one, or give its path as {PROGRAM}"
        raise DrawingError(f"figures as files need Chromium or Chrome, and there is none{where}") from None
    except (OSError, RuntimeError, TimeoutError) as error:
        raise DrawingError(f"the browser that draws figures has failed: {error or type(error).__name__}") from error


def _run(render: Any) -> dict[Path, bytes]:
    """Returns the result of a coroutine, also within a notebook, whose thread has a loop of its own."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        files: dict[Path, bytes] = thread.submit(lambda: asyncio.run(render())).result()
    return files


def _font(letters: set[str]) -> bytes | None:
    """Returns the system's font for these letters as WOFF; fontconfig names it, as for the browser."""
    program = shutil.which("fc-match")
    if program is None:
        return None
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    logging.getLogger("fontTools.subset").setLevel(logging.ERROR)  # it warns of tables that no browser reads
    families = FONT.replace("'", "")
    output = subprocess.run([program, "-f", "%{file}\n%{index}", families], capture_output=True, text=True, check=False)
    file, _, number = output.stdout.partition("\n")
    if output.returncode or not Path(file).is_file():
        return None
    with TTFont(file, fontNumber=int(number or 0), lazy=True) as font:
        subsetter = Subsetter(Options(layout_features=[], hinting=False, notdef_outline=True))
        subsetter.populate(text="".join(sorted(letters)))
        subsetter.subset(font)
        font.flavor = "woff"
        out = io.BytesIO()
        font.save(out)
    return out.getvalue()
