"""Tables for people, in HTML, Markdown and LaTeX.

Texts are plain and written as in the report (A_T, ε, ±, true minus signs); each format escapes and sets them.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple, Self

from results.html import page
from results.labels import METRIC_NAME, subscripts

BEST = "best"
"""Look of the best mean of a column, bold in LaTeX."""


class Line(NamedTuple):
    """A line of a cell."""

    text: str
    """Plain text."""
    look: str = ""
    """How it is set: "" normally, "soft" (less important), "apart" (emphasised) or BEST, in LaTeX alone."""
    marks: tuple[str, ...] = ()
    """Raised signs after the text: numbers of footnotes, or "*"."""


Cell = tuple[Line, ...]
"""The lines of a cell, from top to bottom."""


@dataclass(frozen=True)
class Sheet:
    """A table for people. Raises ValueError where a row has another number of cells than the header."""

    title: str
    """Heading of a document, caption of a LaTeX table."""
    header: tuple[tuple[str, str], ...]
    """(name, unit) a column; the first column is set left, the others right."""
    rows: tuple[tuple[Cell, ...], ...]
    """The cells of each row."""
    footnotes: tuple[str, ...] = ()
    """Numbered from 1."""
    remarks: tuple[str, ...] = ()
    """Paragraphs below the table."""

    def __post_init__(self) -> None:
        for cells in self.rows:
            if len(cells) != len(self.header):
                raise ValueError(f"a row must have {len(self.header)} cells, got {len(cells)}")

    def standalone(self, notes: Iterable[str]) -> Self:
        """Returns the table for a document of its own, which needs the notes that are at the top of the page."""
        return replace(self, remarks=(*self.remarks, *notes))


def number_texts(groups: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Returns all different texts in their order, and for each group the numbers (from 1) of its texts.

    >>> number_texts([["a"], [], ["b", "a"]])
    (('a', 'b'), [('1',), (), ('2', '1')])
    """
    notes = [tuple(group) for group in groups]
    texts = tuple(dict.fromkeys(text for group in notes for text in group))
    return texts, [tuple(str(texts.index(text) + 1) for text in group) for group in notes]


def as_html(sheet: Sheet) -> str:
    """Returns the table with its footnotes and remarks, for `page.section`; its title is for screen readers alone."""
    rows = "".join(page.row(map(_html_cell, cells)) for cells in sheet.rows)
    notes = "".join(f"<li>{page.prose(note)}</li>" for note in sheet.footnotes)
    listed = f'<ol class="after">{notes}</ol>' if notes else ""
    return (
        page.grid(sheet.header, rows, sheet.title, "sheet")
        + listed
        + "".join(page.small(text) for text in sheet.remarks)
    )


def as_markdown(sheet: Sheet) -> str:
    """Returns a document with a pipe table; the lines of a cell are separated by <br>."""
    head = [f"{_markdown(name)} ({_markdown(unit)})" if unit else _markdown(name) for name, unit in sheet.header]
    aligned = [":--", *["--:"] * (len(head) - 1)]
    # A row of a pipe table is one line of text, so line breaks are tags, which Markdown lets through.
    body = [["<br>".join(_line(line, _markdown) for line in cell) for cell in cells] for cells in sheet.rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, aligned, *body))
    notes = "\n".join(f"{i}. {_markdown(note)}" for i, note in enumerate(sheet.footnotes, start=1))
    parts = [f"# {_markdown(sheet.title)}", table, notes, *map(_markdown, sheet.remarks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_latex(sheet: Sheet) -> str:
    r"""Returns a table environment for a document with \usepackage{booktabs}, in pdfLaTeX or any newer engine.

    The lines of a cell become lines of the table.
    """
    head = [_latex(f"{name} ({unit})" if unit else name) for name, unit in sheet.header]
    # Some space between rows, because each may take several lines and booktabs draws no rules between them.
    body = "\n\\addlinespace\n".join("\n".join(_latex_lines(cells)) for cells in sheet.rows)
    numbers = (rf"$^{{{i}}}$ {_latex(note)}" for i, note in enumerate(sheet.footnotes, start=1))
    below = "\\par\n".join([*numbers, *map(_latex, sheet.remarks)])
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs}.",
            r"\begin{table}[p]",
            r"\centering\scriptsize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{_latex(sheet.title)}}}",
            rf"\begin{{tabular}}{{@{{}}l{'r' * (len(head) - 1)}@{{}}}}",
            r"\toprule",
            rf"{' & '.join(head)} \\",
            r"\midrule",
            *([body] if body else []),
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\medskip",
            r"\begin{minipage}{\linewidth}\raggedright",
            below,
            r"\end{minipage}",
            r"\end{table}",
            "",
        ]
    )


LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    # At the start of a line a bare [ or * would be read as an argument of the \\ before it.
    **{sign: f"{{{sign}}}" for sign in "[]*"},
    **{"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$"},
    **{
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "≈": r"$\approx$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "√": r"$\surd$",
        "∞": r"$\infty$",
        "²": "$^{2}$",
        "ₚ": "$_{p}$",
    },
    **{"–": "--", "—": "---", "…": r"\ldots{}", "ε": r"$\varepsilon$"},
}


def _html_cell(cell: Cell) -> str:
    return "".join(f'<span class="line {line.look}">{_line(line, page.prose)}</span>' for line in cell)


def _line(line: Line, escape: Callable[[str], str]) -> str:
    """Returns a line in HTML or Markdown, which have the same tag for raised signs."""
    raised = f"<sup>{escape(','.join(line.marks))}</sup>" if line.marks else ""
    return escape(line.text) + raised


def _markdown(text: str) -> str:
    # First Markdown's signs, then HTML, whose tags must not be escaped.
    signs = re.sub(r"([\\`*|\[\]#~])", r"\\\1", text)
    lowered = subscripts(signs.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    return lowered.replace("_", r"\_")


def _latex_lines(cells: Sequence[Cell]) -> Iterable[str]:
    """Yields the lines of one row; a cell with fewer lines leaves the rest empty."""
    # LaTeX's cells have one line, so a row with k lines becomes k rows.
    for lines in zip_longest(*cells, fillvalue=Line("")):
        yield rf"{' & '.join(map(_latex_line, lines))} \\"


def _latex_line(line: Line) -> str:
    text = _latex(line.text) + (f"$^{{{','.join(line.marks)}}}$" if line.marks else "")
    command = {BEST: r"\textbf", "apart": r"\emph"}.get(line.look)
    return text if command is None else f"{command}{{{text}}}"


def _latex(text: str) -> str:
    r"""Returns escaped text with metric names and Greek letters as mathematics.

    >>> _latex("A_T of x_y: ε = 5 %, λ − 1, LCA_10")
    '$A_T$ of x\\_y: $\\varepsilon$ = 5 \\%, $\\lambda$ $-$ 1, $\\mathrm{LCA}_{10}$'
    """
    return re.sub(rf"{METRIC_NAME}|.", _latex_token, text.replace("\n", " "))


def _latex_token(token: re.Match[str]) -> str:
    letter, index = token.group(1), token.group(2)
    if letter is not None:
        name = letter if len(letter) == 1 else rf"\mathrm{{{letter}}}"
        return f"${name}_{index if len(index) == 1 else f'{{{index}}}'}$"
    sign = token.group()
    # By its Unicode name, so that a method with a hyperparameter of its own needs no entry here: κ becomes \kappa.
    greek = unicodedata.name(sign, "").removeprefix("GREEK SMALL LETTER ")
    if sign not in LATEX and "α" <= sign <= "ω" and greek.isalpha():
        return rf"$\{greek.lower().replace('lamda', 'lambda')}$"
    return LATEX.get(sign, sign)
