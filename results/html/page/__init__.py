"""One self-contained HTML page: the template, and the pieces that are the same wherever they stand. Every
text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from string import Template
from typing import Any

from results.figures.style import plotly
from results.labels import subscripts

FIGURE_SETTINGS = {
    "displaylogo": False,
    "responsive": True,
    "plotlyServerURL": "",
    "modeBarButtons": [["toImage", "resetScale2d"]],
}


def page(title: str, name: str, heading: str, lead: str, body: str, kicker: str = "Search for ε · study") -> str:
    """The whole page. `body` is HTML, the rest is plain text; plotly.js is inside, once, and nothing is
    loaded from anywhere. `kicker` stands before the name, above the heading.
    """
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        kicker=escape(kicker),
        name=escape(name),
        heading=escape(heading),
        lead=prose(lead),
        body=body,
        css=_asset("page.css"),
        plotlyjs=plotly("offline").get_plotlyjs(),
    )


def section(heading: str, *parts: str) -> str:
    """A section with its heading; `parts` are HTML."""
    return "\n".join(["<section>", f"<h2>{escape(heading)}</h2>", *(part for part in parts if part), "</section>"])


def prose(text: str) -> str:
    """Plain text, escaped, with its metric names set as symbols."""
    return subscripts(escape(text))


def paragraphs(text: str) -> str:
    """Plain text with blank lines between paragraphs."""
    return "\n".join(f"<p>{prose(part)}</p>" for part in text.split("\n\n") if part)


def small(text: str) -> str:
    """A remark below a table."""
    return f'<p class="after">{prose(text)}</p>' if text else ""


def figure(name: str, drawing: Any, caption: str) -> str:
    """A plotly figure with its caption, which is also what a screen reader says; `name` becomes the element's
    id.
    """
    div = plotly("io").to_html(
        drawing, include_plotlyjs=False, full_html=False, config=FIGURE_SETTINGS, div_id=f"figure-{name}"
    )
    label = f'role="img" aria-label="{escape(caption)}"'
    plain = "<noscript><p>This figure needs JavaScript; its data are in the CSV files beside this page.</p></noscript>"
    return f"<figure>\n<div {label}>{div}</div>\n{plain}\n<figcaption>{prose(caption)}</figcaption>\n</figure>"


def tiles(items: Iterable[tuple[str, str, str]]) -> str:
    """Headline numbers: (label, value, detail); the first stands out."""
    cells = [
        f'<div class="tile{" main" if i == 0 else ""}"><div class="label">{prose(label)}</div>'
        f'<div class="value">{escape(value)}</div><div class="detail">{prose(detail)}</div></div>'
        for i, (label, value, detail) in enumerate(items)
    ]
    return f'<div class="tiles">{"".join(cells)}</div>'


def banner(kind: str, label: str, text: str, advice: str) -> str:
    """A verdict: its kind (which colours it), in words, what was found, and what to do."""
    said = f"<p>{prose(text)}</p>" + (f'<p class="advice">{prose(advice)}</p>' if advice else "")
    return f'<div class="banner {escape(kind)}"><div class="label">{escape(label)}</div>{said}</div>'


def folded(heading: str, body: str, shown: bool) -> str:
    """Something long under its heading, to be unfolded unless `shown`; `body` is HTML."""
    return f"<details{' open' * shown}><summary>{escape(heading)}</summary>{body}</details>"


def notes(items: Iterable[str]) -> str:
    """What a reader must not miss; nothing where there is nothing to say."""
    listed = "".join(f"<li>{prose(item)}</li>" for item in items)
    return f'<ul class="notes">{listed}</ul>' if listed else ""


def facts(items: Mapping[str, str]) -> str:
    """Label and text, two columns."""
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in items.items())}</dl>"


def code(name: str, text: str) -> str:
    """Preformatted text with a button that copies it; `name` becomes the element's id."""
    button = f'<button type="button" data-copy="{escape(name)}">Copy</button>'
    return f'<div class="code">{button}<pre id="{escape(name)}">{escape(text)}</pre></div>'


def table(header: Iterable[tuple[str, str]], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """`header`: (name, unit) a column. `rows`: (class, cells); the class "group" makes its one cell a heading
    over all columns.
    """
    columns = list(header)
    body = []
    for kind, cells in rows:
        texts = [escape(cell) for cell in cells]
        if kind == "group":
            body.append(f'<tr class="group"><th scope="colgroup" colspan="{len(columns)}">{texts[0]}</th></tr>')
        else:
            body.append(f'<tr class="{kind}">{"".join(f"<td>{text}</td>" for text in texts)}</tr>')
    return grid(columns, "".join(body))


def grid(header: Iterable[tuple[str, str]], body: str, kind: str = "") -> str:
    """A table that scrolls where it is too wide. `header`: (name, unit) a column; `body`: its rows as HTML."""
    head = "".join(
        f'<th scope="col">{prose(n)}<span class="unit">{escape(u) or "&nbsp;"}</span></th>' for n, u in header
    )
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="{kind}">{inner}</table></div>'


def _asset(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
