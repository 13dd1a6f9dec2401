"""Makes the helpers beside this file importable under any import mode of pytest, without a package that would
shadow `results`; and a ledger on each database: set EPSEARCH_TEST_POSTGRES to a PostgreSQL URL to run the
tests there as well as on SQLite.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from results import schema
from results.database import connect
from results.store import Store

POSTGRES = os.environ.get("EPSEARCH_TEST_POSTGRES", "")
HELPERS = ("synthetic", "synthetic_methods", "synthetic_settings")

for helper in HELPERS:
    name = f"results_{helper}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{helper}.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    if not POSTGRES:
        pytest.skip("EPSEARCH_TEST_POSTGRES is not set")
    engine = connect(POSTGRES)
    schema.metadata.drop_all(engine)
    engine.dispose()
    return POSTGRES


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened
