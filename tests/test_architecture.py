"""The borders between the packages: who may import whom, and that importing does nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("epsearch", "trainers", "search_spaces", "results")
OURS = set(PACKAGES)

# (folder, modules it may import besides the standard library and itself)
ALLOWED = {
    "trainers": {"numpy", "torch"},
    "search_spaces": {"numpy", "yaml"},
    "search_spaces/adapters": {"optuna", "ray", "search_spaces"},
    "results": {"numpy", "pandas", "plotly", "pyarrow", "sqlalchemy", "psycopg", "scipy", "yaml"},
}
# Numba comes in through one module, which engines/__init__.py imports late, so that a GPU machine can do without.
ALLOWED_ALONE = {"trainers/engines/kernels.py": {"numba"}}
AT_CALL_TIME = {
    "trainers/streams/decoding.py": {"PIL"},
    "trainers/streams/digits.py": {"sklearn"},
    "trainers/streams/download.py": {"torchvision"},
    "trainers/networks/weights.py": {"torchvision"},
}


def imports(path):
    """(top-level module, whether the import runs when the file is imported)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {node for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            yield name.split(".")[0], node not in late


def files(folder):
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", ["trainers", "search_spaces", "results"])
def test_leaves_import_only_what_they_may(folder):
    for path in files(folder):
        relative = path.relative_to(ROOT).as_posix()
        allowed = ALLOWED[folder] | {folder}
        if relative.startswith("search_spaces/adapters"):
            allowed = allowed | ALLOWED["search_spaces/adapters"]
        for module, at_once in imports(path):
            late = set() if at_once else AT_CALL_TIME.get(relative, set())
            known = module in sys.stdlib_module_names or module in allowed | late | ALLOWED_ALONE.get(relative, set())
            assert known, f"{relative} imports {module}"


def test_the_arrow_test_sees_imports():
    found = dict(imports(ROOT / "trainers" / "networks" / "weights.py"))
    assert found["torchvision"] is False and found["numpy"] is True


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("trainers", ["torch", "ray", "pandas", "epsearch"]),
        ("trainers.population", ["ray", "pandas", "plotly", "sqlalchemy", "sklearn", "torchvision", "epsearch"]),
        ("search_spaces", ["torch", "ray", "optuna", "pandas", "results"]),
        ("search_spaces.adapters.optuna", ["torch", "ray", "pandas", "results"]),
        ("results", ["torch", "ray", "plotly", "trainers", "search_spaces"]),
        ("epsearch.cli", ["torch", "ray", "plotly", "pandas"]),
    ],
)
def test_importing_is_light(module, absent):
    code = f"import sys, {module}; print([name for name in {absent!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_files_stay_small():
    long = {
        path.relative_to(ROOT).as_posix(): count
        for package in PACKAGES
        for path in files(package)
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 300
    }
    assert not long
