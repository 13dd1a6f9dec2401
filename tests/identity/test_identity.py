"""What a study is known by, and what stands in ledgers, is as it was when the fixtures beside this file were made."""

import gzip
import json
from pathlib import Path

import pytest

from tests.identity import cases

KNOWN = json.loads(cases.IDENTITIES.read_text(encoding="utf-8"))
OFTEN = {
    *("search", "and grows", "race", "subtracted", "epsilon and lr", "all methods", "memory", "split_cub_je"),
    *("class folders", "own stream"),
}
"""One of each kind; the others vary them, and are slow together."""


def tried(arguments):
    """Of a search the option for its choice: there was no curve when the ledger was made."""
    return ["--choose", "tried"] if arguments.startswith("run") else []


@pytest.fixture
def folder():
    with cases.elsewhere() as folder:
        yield folder


@pytest.fixture
def ledger(folder):
    """The committed ledger, in the out folder `old`."""
    (folder / "old").mkdir()
    (folder / "old" / "epsearch.sqlite").write_bytes(gzip.decompress(cases.LEDGER.read_bytes()))
    return folder / "old" / "epsearch.sqlite"


def test_every_case_is_known():
    assert KNOWN["cases"].keys() == cases.CASES.keys() and cases.CASES.keys() >= OFTEN


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in OFTEN else pytest.mark.slow) for one in cases.CASES]
)
def test_names_options_and_keys_stay(name, folder):
    assert json.loads(json.dumps(cases.of_case(name))) == KNOWN["cases"][name]


def test_an_old_ledger_is_reported_and_resumed(ledger, folder):
    before = cases.results(ledger)
    assert [row["name"] for row in json.loads(cases.run(["list", "--json", "--out", "old"]))] == [
        "search",
        "comparison",
        "sizes",
    ]
    for name in ("search", "comparison", "sizes"):
        cases.run(["show", name, "--json", "--out", "old"])
        answer = json.loads(cases.run(["report", name, "--json", "--out", "old"]))
        assert "<html" in Path(answer["report"]).read_text(encoding="utf-8")
    for name in ("growth", "comparison", "memory study"):
        command = [*cases.KEPT[name].replace("--extend", "").split(), *tried(cases.KEPT[name])]
        answer = json.loads(cases.run([*command, "--out", "old"]))
        assert answer["effort"]["trained"] == 0
    assert cases.results(ledger) == before


@pytest.mark.skipif(cases.processor() not in KNOWN["bits"], reason="bits of results are this processor's and torch's")
def test_results_stay_bit_for_bit(folder):
    assert cases.digest_of_results(folder / "new") == KNOWN["bits"][cases.processor()]
