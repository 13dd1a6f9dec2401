"""Sizes of the product; as a program, prints them in one line, with files and folders that have grown large."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("epsearch", "trainers", "search_spaces", "results")
LINES, MODULES = 300, 12  # of a file, of a folder: from there on the line names them
ONE_A_METHOD = "trainers/methods"


def product() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def classes(path: Path) -> list[str]:
    """Names of all classes of a file, nested ones included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def main() -> None:
    files = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in product()
    }
    folders = Counter(str(Path(name).parent) for name in files if not name.endswith("__init__.py"))
    large = [f"{name} {count} lines" for name, count in files.items() if count > LINES]
    large += [f"{name} {count} modules" for name, count in folders.items() if count > MODULES and name != ONE_A_METHOD]
    names = [name for path in product() for name in classes(path)]
    public = sum(not name.startswith("_") for name in names)
    print(f"{sum(files.values()):,} lines, {len(names)} classes, {public} public; large: {', '.join(large) or 'none'}")


if __name__ == "__main__":
    main()
