"""Self-contained HTML pages: the template and its parts.

Every text is escaped here, and only here.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from itertools import accumulate
from string import Template
from types import ModuleType
from typing import Any

import pandas as pd

from results.export import csv_text
from results.figures.style import plotly
from results.labels import MISSING, subscripts

# Without a link to plotly's server: the page must work, and stay private, without a network.
FIGURE_SETTINGS = {
    "displaylogo": False,  # it is a link to plotly's site
    "responsive": True,
    "plotlyServerURL": "",
    "modeBarButtons": [["toImage", "resetScale2d"]],  # to save a figure, to undo a zoom
}
TOGETHER = re.compile(r" (?=%)| (?=[=±] )|(?<= [=±]) ")
"""Spaces within a figure, such as "p = 0.06" and "84 ± 3 %", at which no line is to be broken."""
MOST_ROWS = 200
"""Most rows of a figure's data in a table of the page; its CSV files, also those that its buttons save, have all."""
MOST_WORDS = 30
"""Most words of a caption that stand below a figure; the sentences after them unfold."""
SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")
"""Ends of the sentences of a caption."""


def page(title: str, name: str, heading: str, lead: str, body: str, kicker: str = "Search for ε · study") -> str:
    """Returns the whole page. `body` is HTML, the other arguments are plain text.

    plotly.js is included once, packed to a third of its size, and nothing is loaded from anywhere. `kicker` is printed
    before the name, above the heading.
    """
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        kicker=escape(kicker),
        name=escape(name),
        heading=escape(heading),
        lead=prose(lead),
        body=body,
        css=_asset("page.css"),
        plotlyjs=_packed_plotly(),
        figuresjs=_asset("figures.js"),
    )


def section(heading: str, *parts: str, unfolds: bool = False) -> str:
    """Returns a section with its heading; `parts` are HTML. unfolds: whether the heading unfolds them."""
    begin, end = f"<h2>{escape(heading)}</h2>", ""
    if unfolds:
        begin, end = f'<details class="part"><summary>{begin}</summary>', "</details>"
    return "\n".join(["<section>", begin, *(part for part in (*parts, end) if part), "</section>"])


def prose(text: str) -> str:
    """Returns plain text as HTML, with metric names set as symbols."""
    return TOGETHER.sub("\N{NO-BREAK SPACE}", subscripts(escape(text)))


def paragraphs(text: str) -> str:
    """Returns plain text, with blank lines between paragraphs, as HTML paragraphs."""
    return "\n".join(f"<p>{prose(part)}</p>" for part in text.split("\n\n") if part)


def small(text: str) -> str:
    """Returns a remark below a table; "" without text."""
    return f'<p class="after">{prose(text)}</p>' if text else ""


def figure(name: str, module: ModuleType, numbers: Any, *folds: str) -> str:
    """Returns a figure of `results.figures`: drawing, caption, buttons that save it, and the tables of its data.

    The drawing is JSON that figures.js shows in the reader's colours and width; where there is no JavaScript, the
    tables are open instead. The first clause of the caption names the figure for screen readers; of a long caption,
    what comes after MOST_WORDS unfolds. `name` becomes the id of the element. folds: HTML of `fold`, of parts that
    belong to the figure, which stand beside those of its caption and data.
    """
    text, drawing = module.caption(numbers), module.draw(numbers)
    short = re.split(r"[:.,;] ", text, maxsplit=1)[0]
    first, rest = shorten(text)
    # Within a script element only "</" and "<!--" have a meaning, and JSON may write "<" in another way.
    source, config = drawing.to_json().replace("<", "\\u003c"), escape(json.dumps(FIGURE_SETTINGS))
    tables = module.tables(numbers)
    more = fold("About this figure", f'<p class="caption">{prose(rest)}</p>', False) if rest else ""
    data = "".join(_data(file, data) for file, data in tables.items())
    parts = (more, f'<details class="data" open><summary>Data</summary>{data}</details>', *folds)
    return (
        f'<figure aria-label="{escape(short)}">\n'
        f'<div class="plot" id="figure-{name}" style="height: {drawing.layout.height}px"></div>\n'
        f'<script type="application/json" class="drawing" data-place="figure-{name}" data-config="{config}">{source}'
        f"</script>\n<figcaption>{prose(first)}</figcaption>\n"
        f'<div class="folds">{"".join(parts)}{_saving(short, next(iter(tables), ""))}</div>\n</figure>'
    )


def shorten(caption: str) -> tuple[str, str]:
    """Returns a caption as at most MOST_WORDS words and the rest, parted between sentences.

    A first sentence that is too long is parted at a semicolon, a colon or a comma, or else after the last word.

    >>> shorten("Dots: single seeds. Bars: one standard error.")
    ('Dots: single seeds. Bars: one standard error.', '')
    >>> shorten("Short. A " + "word " * 30 + "end.")[0]
    'Short.'
    """
    for between in (SENTENCES, re.compile(r"(?<=[;:]) "), re.compile(r"(?<=,) ")):
        parts = between.split(caption)
        fitting = _fitting(parts)
        if fitting:
            return " ".join(parts[:fitting]), " ".join(parts[fitting:])
    words = caption.split()
    return " ".join(words[:MOST_WORDS]), " ".join(words[MOST_WORDS:])


def _fitting(parts: Sequence[str]) -> int:
    """Returns how many of the first parts have at most MOST_WORDS words together."""
    ends = accumulate(len(part.split()) for part in parts)
    return sum(end <= MOST_WORDS for end in ends)


def _saving(figure: str, table: str) -> str:
    """Returns the buttons that save a figure, which figures.js shows; table: name of its first table, "" for none."""
    kinds = ("svg", "png", *(["csv"] if table else []))
    buttons = (
        f'<button type="button" data-save="{kind}"{f" data-table={chr(34)}{escape(table)}{chr(34)}" * (kind == "csv")} '
        f'aria-label="Save as {kind.upper()}: {escape(figure)}">{kind.upper()}</button>'
        for kind in kinds
    )
    return f'<span class="save" hidden>{"".join(buttons)}</span>'


def _data(name: str, data: pd.DataFrame) -> str:
    """Returns a table of a figure's data with six digits, as far as a page can bear it, and its whole CSV file."""
    head = data.head(MOST_ROWS)
    rows = (("", [_number(value) for value in row]) for row in head.itertuples(index=False))
    more = f"The first {len(head)} of {len(data)} rows; the file has all." if len(head) < len(data) else ""
    # As a string of JSON, in which "<" can be written in another way.
    file = json.dumps(csv_text(data)).replace("<", "\\u003c")
    button = (
        f'<span class="save" hidden><button type="button" data-save="csv" data-table="{escape(name)}">'
        f"Save {escape(name)}.csv</button></span>"
    )
    source = f'<script type="application/json" class="rows" data-table="{escape(name)}">{file}</script>'
    header = [(str(column), "") for column in data.columns]
    return table(header, rows, f"{name}.csv") + small(more) + button + source


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return MISSING if value != value else f"{value:.6g}"


def tiles(items: Iterable[tuple[str, str, str]]) -> str:
    """Returns headline numbers (label, value, detail), of which the first is emphasised."""
    # The first is the answer to what was asked, the others qualify it.
    cells = [
        f'<div class="tile{" main" if i == 0 else ""}"><div class="label">{prose(label)}</div>'
        f'<div class="value">{escape(value)}</div><div class="detail">{prose(detail)}</div></div>'
        for i, (label, value, detail) in enumerate(items)
    ]
    return f'<div class="tiles">{"".join(cells)}</div>'


def banner(kind: str, label: str, text: str, advice: str) -> str:
    """Returns a verdict: its kind, which decides the colour, the kind in words, what was found, and what to do.

    advice: with blank lines between paragraphs.
    """
    more = "".join(f'<p class="advice">{prose(part)}</p>' for part in advice.split("\n\n") if part)
    said = f"<p>{prose(text)}</p>{more}"
    return f'<div class="banner {escape(kind)}"><div class="label">{escape(label)}</div>{said}</div>'


def fold(heading: str, body: str, visible: bool = False) -> str:
    """Returns a long part under a heading that unfolds it, unless it is `visible`; `body` is HTML."""
    return f"<details{' open' * visible}><summary>{escape(heading)}</summary>{body}</details>"


def notes(items: Iterable[str]) -> str:
    """Returns a list of what a reader must not miss; "" without items."""
    listed = "".join(f"<li>{prose(item)}</li>" for item in items)
    return f'<ul class="notes">{listed}</ul>' if listed else ""


def facts(items: Mapping[str, str]) -> str:
    """Returns label and text in two columns."""
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in items.items())}</dl>"


def code(name: str, text: str, label: str = "", kind: str = "") -> str:
    """Returns preformatted text with a button that copies it; `name` becomes the id of the element.

    label: its name for screen readers, by default `name`; kind: "text" for prose, whose lines are broken, "command" for
    a line that is broken between words alone, not at hyphens
    """
    label = escape(label or name)
    button = (
        f'<button type="button" data-copy="{escape(name)}" aria-label="Copy: {label}">Copy</button>'
        '<span class="hidden" role="status"></span>'
    )
    # A region that scrolls must be reached by keyboard, too.
    inner = escape(text)
    if kind == "command":
        inner = " ".join(f'<span class="word">{word}</span>' for word in inner.split(" "))
    box = f'<pre id="{escape(name)}" tabindex="0" role="region" aria-label="{label}">{inner}</pre>'
    return f'<div class="code{f" {kind}" if kind else ""}">{button}{box}</div>'


def table(header: Iterable[tuple[str, str]], rows: Iterable[tuple[str, Iterable[str]]], caption: str) -> str:
    """Returns a table of plain texts.

    header  (name, unit) of each column
    rows    (class, cells), of which the first names the row; the class "group" makes its only cell a heading over all
            columns
    caption what the table shows, for who does not see what stands around it
    """
    columns = list(header)
    return grid(columns, "".join(_rows(len(columns), rows)), caption)


def _rows(columns: int, rows: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    for kind, cells in rows:
        texts = [escape(cell) for cell in cells]
        if kind == "group":
            yield f'<tr class="group"><th scope="colgroup" colspan="{columns}">{texts[0]}</th></tr>'
        else:
            yield row(texts, kind)


def row(cells: Iterable[str], kind: str = "") -> str:
    """Returns a row of a table; `cells` are HTML, and the first is the row's header."""
    first, *others = cells
    return f'<tr class="{kind}"><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'


def grid(header: Iterable[tuple[str, str]], body: str, caption: str, kind: str = "") -> str:
    """Returns a table that scrolls if it is too wide. `header`: (name, unit) of each column; `body`: rows as HTML."""
    head = "".join(
        f'<th scope="col">{prose(n)}<span class="unit">{escape(u) or "&nbsp;"}</span></th>' for n, u in header
    )
    named = f'<caption class="hidden">{escape(caption)}</caption>'
    inner = f"{named}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    region = f'class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"'
    return f'<div {region}><table class="{kind}">{inner}</table></div>'


def _asset(name: str) -> str:
    """Returns the text of a file beside this module, also where the package is installed as an archive."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _packed_plotly() -> str:
    """Returns plotly.js, compressed and in base64, without the time that gzip would write into it."""
    return base64.b64encode(gzip.compress(plotly("offline").get_plotlyjs().encode(), mtime=0)).decode()
