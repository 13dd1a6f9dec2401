"""Advice of verdicts in the words of pages: what is a command on a terminal is a link or a button here."""

import re
import shlex
from html import escape, unescape
from urllib.parse import quote, urlencode

from epsearch.study.kinds import Search

RUN = re.compile(r"epsearch run((?: --[a-z-]+(?: [^-\s<;][^\s<;]*)+)+)")
"""A command with options that have values, in the text of a page."""
EXTEND = re.compile(r"\(--extend --(seeds|interval)((?: [\d.e-]+)*)\)")


def on_page(html: str, name: str, root: str) -> str:
    """Returns the HTML of a verdict on a study with links in place of commands.

    name: of the study; root: path below which the service lies.
    """
    change = f"{root}/studies/{quote(name, safe='')}/change#extend"
    html = RUN.sub(lambda match: _new_study(match[1].rstrip("."), root) + "." * match[1].endswith("."), html)
    return EXTEND.sub(lambda match: f'(<a href="{escape(change)}">Extend</a>: {match[1]}{match[2]})', html)


def _new_study(options: str, root: str) -> str:
    """Returns a link to the form of a new study with these options."""
    values: dict[str, str] = {}
    for word in shlex.split(unescape(options)):
        if word.startswith("--"):
            values[word.removeprefix("--").replace("-", "_")] = ""
        else:
            last = list(values)[-1]
            values[last] = f"{values[last]} {word}".strip()
    known = {option: value for option, value in values.items() if option in Search.options()}
    said = ", ".join(f"{option.replace('_', ' ')} {value}" for option, value in known.items())
    return f'<a href="{escape(root)}/new?{escape(urlencode(known))}">New study</a> with {escape(said)}'
