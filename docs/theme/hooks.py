"""Hooks of mkdocs: the README as the first page, and the source files that pages link to."""

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(\.\./([^)#]+)\)")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".md": "markdown"}
PICTURE = re.compile(
    r"<picture>.*?srcset=\"docs/([^\"]+)\".*?<img src=\"docs/([^\"]+)\" alt=\"([^\"]+)\".*?</picture>", re.S
)


def on_files(files: Files, config: Any) -> Files:
    """Adds the first page, and a page for each file or folder of the repository that a page links to."""
    files.append(File.generated(config, "index.md", content=first_page()))
    wanted = [target for file in files.documentation_pages() for target in LINK.findall(file.content_string)]
    made: set[str] = set()
    while wanted:
        target = wanted.pop().rstrip("/")
        if target not in made:
            made.add(target)
            files.append(File.generated(config, source_page(target), content=listing(ROOT / target, target)))
            if target.endswith(".md"):
                wanted += LINK.findall(at_home(ROOT / target))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links out of docs/ to the pages of source files."""
    if page.file.src_uri.startswith("source/"):
        return markdown
    up = "" if page.file.src_uri == "index.md" else "../"  # mkdocs leaves the addresses of raw HTML as they are
    markdown = markdown.replace('<img src="images/', f'<img src="{up}images/')
    return LINK.sub(lambda match: f"]({source_page(match[1].rstrip('/'))})", markdown)


def first_page() -> str:
    """The README, with both pictures of a <picture> by scheme."""
    return PICTURE.sub(r"![\3](\2#only-light)\n![\3](\1#only-dark)", at_home(ROOT / "README.md"))


def at_home(path: Path) -> str:
    """A page of the root of the repository, with its links as they are within docs/."""

    def moved(match: re.Match[str]) -> str:
        target = match[1]
        if target.startswith(("http", "#")):
            return match[0]
        return f"]({target.removeprefix('docs/') if target.startswith('docs/') else f'../{target}'})"

    return re.sub(r"\]\(([^)]+)\)", moved, path.read_text(encoding="utf-8"))


def source_page(target: str) -> str:
    """Path within docs/ of the page of a file or a folder."""
    return f"source/{target.lstrip('.').replace('/', '.')}.md"


def listing(path: Path, target: str) -> str:
    """A page with a file's text, or with the modules of a folder and what each is for."""
    front = f"---\nsearch:\n  exclude: true\n---\n\n# {target}\n\n"
    if path.is_dir():
        lines = [f"| `{each.name}` | {purpose(each)} |" for each in sorted(path.glob("*.py"))]
        return front + "\n".join(["| module | what it is for |", "| --- | --- |", *lines]) + "\n"
    if path.suffix == ".md":
        return below(LINK.sub(lambda match: f"]({source_page(match[1])})", at_home(path)))
    text = path.read_text(encoding="utf-8")
    return f"{front}``````{LANGUAGES.get(path.suffix, 'text')}\n{text}``````\n"


def below(text: str) -> str:
    """The text with links to pages of docs/ as they are one folder below."""
    return re.sub(r"\]\(((?:source/)?[\w.-]+\.md)", r"](../\1", text)


def purpose(path: Path) -> str:
    """First line of a module's docstring."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]
