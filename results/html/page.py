"""One self-contained HTML page: the template, and the pieces that are the same on every page.

Every text is escaped here, and only here.
"""

from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from string import Template
from typing import Any

from results.figures.style import plotly
from results.labels import subscripts

# Without a link to plotly's server: the page must work, and stay private, without a network.
FIGURE_SETTINGS = {
    "displaylogo": False,  # it is a link to plotly's site
    "responsive": True,
    "plotlyServerURL": "",
    "modeBarButtons": [["toImage", "resetScale2d"]],  # to save a figure, to undo a zoom
}


def page(title: str, name: str, heading: str, lead: str, body: str, kicker: str = "Search for ε · study") -> str:
    """Returns the whole page. `body` is HTML, the other arguments are plain text.

    plotly.js is included once, and nothing is loaded from anywhere. `kicker` is printed before the name, above the
    heading.
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
    """Returns a section with its heading; `parts` are HTML."""
    return "\n".join(["<section>", f"<h2>{escape(heading)}</h2>", *(part for part in parts if part), "</section>"])


def prose(text: str) -> str:
    """Returns plain text as HTML, with metric names set as symbols."""
    return subscripts(escape(text))


def paragraphs(text: str) -> str:
    """Returns plain text, with blank lines between paragraphs, as HTML paragraphs."""
    return "\n".join(f"<p>{prose(part)}</p>" for part in text.split("\n\n") if part)


def small(text: str) -> str:
    """Returns a remark below a table; "" without text."""
    return f'<p class="after">{prose(text)}</p>' if text else ""


def figure(name: str, drawing: Any, caption: str) -> str:
    """Returns a plotly figure with its caption, which screen readers read, too.

    `name` becomes the id of the element.
    """
    div = plotly("io").to_html(
        drawing, include_plotlyjs=False, full_html=False, config=FIGURE_SETTINGS, div_id=f"figure-{name}"
    )
    label = f'role="img" aria-label="{escape(caption)}"'
    plain = "<noscript><p>This figure needs JavaScript; its data are in the CSV files beside this page.</p></noscript>"
    return f"<figure>\n<div {label}>{div}</div>\n{plain}\n<figcaption>{prose(caption)}</figcaption>\n</figure>"


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
    """Returns a verdict: its kind, which decides the colour, the kind in words, what was found, and what to do."""
    said = f"<p>{prose(text)}</p>" + (f'<p class="advice">{prose(advice)}</p>' if advice else "")
    return f'<div class="banner {escape(kind)}"><div class="label">{escape(label)}</div>{said}</div>'


def folded(heading: str, body: str, shown: bool) -> str:
    """Returns a long part under a heading that unfolds it, unless it is `shown`; `body` is HTML."""
    return f"<details{' open' * shown}><summary>{escape(heading)}</summary>{body}</details>"


def notes(items: Iterable[str]) -> str:
    """Returns a list of what a reader must not miss; "" without items."""
    listed = "".join(f"<li>{prose(item)}</li>" for item in items)
    return f'<ul class="notes">{listed}</ul>' if listed else ""


def facts(items: Mapping[str, str]) -> str:
    """Returns label and text in two columns."""
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in items.items())}</dl>"


def code(name: str, text: str) -> str:
    """Returns preformatted text with a button that copies it; `name` becomes the id of the element."""
    button = f'<button type="button" data-copy="{escape(name)}">Copy</button>'
    return f'<div class="code">{button}<pre id="{escape(name)}">{escape(text)}</pre></div>'


def table(header: Iterable[tuple[str, str]], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Returns a table of plain texts.

    header  (name, unit) of each column
    rows    (class, cells); the class "group" makes its only cell a heading over all columns
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
    """Returns a table that scrolls if it is too wide. `header`: (name, unit) of each column; `body`: rows as HTML."""
    head = "".join(
        f'<th scope="col">{prose(n)}<span class="unit">{escape(u) or "&nbsp;"}</span></th>' for n, u in header
    )
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="{kind}">{inner}</table></div>'


def _asset(name: str) -> str:
    """Returns the text of a file beside this module, also where the package is installed as an archive."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
