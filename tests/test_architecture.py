"""The borders between packages and rooms: who may import whom, and that importing does nothing heavy."""

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module

import pytest

from tests.support.sizes import PACKAGES, ROOT, classes, product

PUBLIC, ALL = 338, 399  # classes: few ideas are easier to learn than many
MORE: tuple[str, ...] = (
    *("Axis", "Curve", "Extrapolation", "Part", "SearchStage", "Shape"),
    *(
        "Credential",
        "Filters",
        "Labels",
        "Limits",
        "NotOwner",
        "People",
        "Person",
        "QueueFull",
        "ReadOnly",
        "StudyLabels",
        "Sender",
    ),
    "LogHandler",
    *("PaperFile", "Summary"),
    *("IidStream", "JointStream", "Pickles", "RotatedStream", "SplitPixelsStream", "StreamWrapper", "Unit"),
    *("Forecast", "VarianceShares"),
    *("Cost", "Evidence", "ProtocolResults", "ProtocolRow", "Regret", "RowCost"),
    *("Claim", "StoredClaim"),
    *("Choice", "OneMethod", "ProtocolLoop", "ProtocolStudy", "Walk"),
    *("Losses", "Subspaces", "Term", "Weighed", "Weighing"),
    *("ContinualHyperparameterFramework", "Known", "Predicted", "Protocol", "Question", "Trial", "View"),
    *("Equivalence", "Pack"),
    *("ForkServer", "Guard"),
    *("GuardedProtocol", "GuardedStrategy"),
    *("SlurmJob", "TimeLeft"),
)
"""Names of the public classes beyond these ceilings."""
IMPORT = (ast.Import, ast.ImportFrom)

# (folder, modules it may import besides the standard library and itself)
ALLOWED = {
    "trainers": {"numpy", "torch"},
    "search_spaces": {"numpy", "yaml"},
    "search_spaces/adapters": {"optuna", "ray", "search_spaces"},
    "results": {"numpy", "pandas", "plotly", "pyarrow", "sqlalchemy", "psycopg", "scipy", "threadpoolctl", "yaml"},
}
# Numba comes in through one module, which engines/__init__.py imports late, so that a GPU machine can do without.
# psutil, too, comes in through one module: only trainers of users, which not every machine runs, need it.
ALLOWED_ALONE = {
    "trainers/engines/compiled/kernels.py": {"numba"},
    "trainers/engines/compiled/vectors.py": {"llvmlite", "numba"},
    "trainers/foreign/process_tree.py": {"psutil"},
}
AT_CALL_TIME = {
    "results/pages/vector.py": {"fontTools", "kaleido"},
    "trainers/persistence/places.py": {"fsspec"},
    "trainers/streams/images/decoder.py": {"PIL"},
    "trainers/streams/pixels/digits.py": {"sklearn"},
    "trainers/streams/download.py": {"torchvision"},
    "trainers/networks/weights.py": {"torchvision"},
    "trainers/foreign/libraries/avalanche.py": {"avalanche"},
}


@cache
def nodes(path):
    """All nodes of a file's syntax tree, outer ones first."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports(path):
    """[(top-level module, whether the import runs when the file is imported)]."""
    functions = [node for node in nodes(path) if isinstance(node, ast.FunctionDef)]
    late = {node for function in functions for node in ast.walk(function) if isinstance(node, IMPORT)}
    found = []
    for node in nodes(path):
        if isinstance(node, IMPORT):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [(name.split(".")[0], node not in late) for name in names]
    return found


@cache
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
        (
            "trainers.population",
            ["ray", "pandas", "plotly", "sqlalchemy", "sklearn", "torchvision", "fsspec", "triton", "epsearch"],
        ),
        ("search_spaces", ["torch", "ray", "optuna", "pandas", "results"]),
        ("search_spaces.adapters.optuna_strategies", ["torch", "ray", "pandas", "results"]),
        ("results", ["torch", "ray", "plotly", "trainers", "search_spaces"]),
        ("epsearch", ["torch", "ray", "pandas", "yaml", "rich", "typer"]),
        ("epsearch.cli", ["torch", "ray", "plotly", "pandas", "sqlalchemy", "scipy", "optuna", "numpy"]),
        ("results.pages.search.report", ["torch", "ray", "optuna", "scipy.stats"]),
        ("epsearch.findings.listing", ["torch", "ray", "plotly", "pandas", "scipy", "optuna", "numba", "rich"]),
        (
            "epsearch.terminal.lists",
            [
                *("torch", "ray", "plotly", "pandas", "scipy", "optuna", "numba", "numpy"),
                *("trainers.streams", "epsearch.loop.base"),
            ],
        ),
    ],
)
def test_importing_is_light(module, absent):
    code = f"import sys, {module}; print([name for name in {absent!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_a_command_that_reads_no_ledger_imports_no_database():
    command = [sys.executable, "-X", "importtime", "-m", "epsearch", "run", "--print-config"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in answer.stderr.splitlines()}
    assert "epsearch.study.description" in imported
    assert not imported & {"torch", "ray", "pandas", "scipy", "sqlalchemy", "epsearch.api"}


def modules():
    """{dotted name: file} of the product."""
    found = {}
    for package in PACKAGES:
        for path in files(package):
            found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


@cache
def arrows():
    """{module: modules of ours that it imports}, wherever in the file it does so."""
    known, found = modules(), {}
    for name, path in known.items():
        imported = set()
        for node in nodes(path):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= {one if one in known else node.module for one in inner}
        found[name] = imported & known.keys() - {name}
    return found


def between(folder):
    """The arrows between what stands in a folder: {entry: other entries that it imports}; `__init__` is none."""
    found = defaultdict(set)
    for name, imported in arrows().items():
        entry, others = inside(name, folder), {inside(one, folder) for one in imported}
        if entry:
            found[entry] |= {one for one in others if one and one != entry}
    return found


def inside(module, folder):
    """The entry of a folder that a module is, or stands in; None for others."""
    return module[len(folder) + 1 :].split(".")[0] if module.startswith(f"{folder}.") else None


def circle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_module_imports_itself_in_a_circle_late_or_not():
    assert circle(arrows()) is None


@pytest.mark.parametrize("folder", sorted({name.rpartition(".")[0] for name in modules()} - {""}))
def test_no_circle_between_the_rooms_of_a_folder(folder):
    assert circle(between(folder)) is None


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_import_only_what_stands_behind_them(package):
    """In the order that the package's own map has."""
    rooms, found = import_module(package).ROOMS, between(package)
    assert set(rooms) == set(found)
    upward = {(room, other) for room in rooms for other in found[room] if rooms.index(other) < rooms.index(room)}
    assert not upward


def test_circles_are_seen():
    assert circle({"a": {"b"}, "b": {"a"}}) is not None
    assert "trainers.engines.compiled.engine" in arrows()["trainers.engines"]  # which it imports late


def test_nothing_below_the_terminal_prints():
    """Neither by rich nor by typer: whoever listens decides what is seen; a service sends what a terminal shows."""
    parts = ("terminal/", "cli.py", "commands/", "arguments.py", "service/")
    doors = tuple(f"epsearch/{part}" for part in parts)
    for package in PACKAGES:
        for path in files(package):
            relative = path.relative_to(ROOT).as_posix()
            if not relative.startswith(doors):
                assert not {"rich", "typer", "click"} & {module for module, _ in imports(path)}, relative


BY_KIND = {
    *("Study", "OneMethod", "Search", "Table", "Comparison", "MemoryStudy", "ProtocolStudy"),
    *("Loop", "SearchLoop", "TableLoop", "ProtocolLoop", "SearchResults", "TableResults", "ProtocolResults"),
}


def type_tests(nodes):
    """Lines that ask for the type of a study, a loop or results."""
    for node in nodes:
        asked = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            asked = [part for one in node.args[1:] for part in ast.walk(one)]
        elif isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        if BY_KIND & {getattr(one, "id", getattr(one, "attr", "")) for one in asked}:
            yield node.lineno


def test_kinds_of_study_are_asked_what_they_do_and_not_what_they_are():
    for path in files("epsearch"):
        assert not list(type_tests(nodes(path))), path


@pytest.mark.parametrize("code", ["isinstance(a, (int, Search))", "kind is not Search", "issubclass(a, kinds.Table)"])
def test_type_tests_are_seen(code):
    assert list(type_tests(ast.walk(ast.parse(code)))) == [1]


# What is compared in rows is a table; all other registers have every kind of study.
OF_TABLES = {"epsearch/loop/table.py"}


def registers():
    """(file, name, classes that are its keys) of every mapping that is written down by kind of study.

    A key is a description, `Search`, or its command, `Search.kind`.
    """
    for path in files("epsearch"):
        for node in nodes(path):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict):
                keys = [
                    getattr(key, "value", key) if isinstance(key, ast.Attribute) else key for key in node.value.keys
                ]
                names = [getattr(key, "id", None) for key in keys]
                if names and set(names) <= BY_KIND:
                    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                    yield path.relative_to(ROOT).as_posix(), getattr(target, "id", ""), names


def test_every_kind_of_study_is_in_every_register():
    from epsearch.study.kinds import KINDS, Table

    every = sorted(kind.__name__ for kind in KINDS.values())
    tables = sorted(kind.__name__ for kind in KINDS.values() if issubclass(kind, Table))
    found = list(registers())
    assert {"TRAINING", "CHECKS", "LOOPS", "REPORTS", "VIEWS"} <= {name for _, name, _ in found}
    assert {file for file, _, _ in found} >= OF_TABLES
    for file, name, kinds in found:
        assert sorted(kinds) == (tables if file in OF_TABLES else every), f"{name} of {file}"
    assert all(name == kind.kind for name, kind in KINDS.items())


def test_no_more_classes_than_are_named():
    """A commit that adds a class raises the ceiling by its name, or takes another one out."""
    names = [name for path in product() for name in classes(path)]
    public = [name for name in names if not name.startswith("_")]
    assert set(MORE) <= set(public)
    assert len(public) <= PUBLIC + len(MORE)
    assert len(names) <= ALL + len(MORE)


def test_the_map_has_every_package():
    """By its name and the first line of its docstring."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("__init__.py")):
            folder, text = path.parent.relative_to(ROOT), path.read_text(encoding="utf-8")
            (first, *_) = (ast.get_docstring(ast.parse(text)) or "").splitlines()
            assert f"{'  ' * (len(folder.parts) - 1)}{folder.name}".ljust(22) + first in page
