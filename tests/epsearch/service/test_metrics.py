"""Metrics by the conventions of Prometheus: names, units, types, labels; and its own checker where it is installed."""

import re
import shutil
import subprocess
from collections import Counter
from importlib.metadata import version

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support import ledgers
from tests.support.service import SECRETS, STUDY, TOKENS, client_of, with_a_finished_study

NEVER = re.compile(r"(milli|micro|nano|kilo|mega|giga)|_(ms|us|minutes|hours|days|percent|kb|mb|kib|mib|count)\b")
TYPES = ("counter", "gauge", "histogram", "summary")
LABELS = {"method", "route", "status", "reason", "state", "le", "version", "python_version"}
"""Those that have few values, whatever clients send."""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """What a service says that has answered, refused and queued something."""
    own = with_a_finished_study(tmp_path_factory.mktemp("metrics") / "runs", tokens=TOKENS)
    right = {"authorization": f"Bearer {SECRETS['write']}"}
    with client_of(own) as client:
        assert client.get("/api/v1/studies", headers=right).status_code == 200
        assert client.post("/api/v1/studies", json=STUDY | {"name": "waits"}, headers=right).status_code == 201
        for number in range(30):
            client.get(f"/api/v1/studies/{number}", headers=right)
            client.get(f"/nothing/{number}", headers=right)
        for number in range(3):
            client.get("/api/v1/studies", headers={"authorization": f"Bearer guess-{number}"})
        answer = client.get("/metrics", headers=right)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.text


@pytest.fixture(scope="module")
def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(families, name, label):
    return {sample.labels[label]: sample.value for sample in families[name].samples}


@pytest.mark.slow
def test_every_family_has_one_help_and_one_type_before_its_samples(text, families):
    heads = Counter(tuple(line.split()[1:3]) for line in text.splitlines() if line.startswith("#"))
    assert set(heads.values()) == {1} and len(heads) == 2 * len(families)
    current = ""
    for line in text.splitlines():
        if line.startswith("# HELP"):
            current, words = line.split()[2], line.split()[3:]
            assert words and words[0][0].isupper() and words[-1].endswith("."), line
        elif not line.startswith("#"):
            assert line.startswith(current), f"{line} stands below {current}"


@pytest.mark.slow
def test_names_have_base_units_and_the_suffix_of_their_type(families):
    for name, family in families.items():
        assert re.fullmatch(r"epsearch(_[a-z]+)+", name) and not NEVER.search(name), name
        assert family.type in TYPES, f"{name} is {family.type}"
        samples = {sample.name for sample in family.samples}
        if family.type == "counter":
            assert samples == {f"{name}_total"} or not samples
        elif family.type == "histogram":
            assert samples == {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            assert samples == {name} and not name.endswith(("_total", "_sum", "_bucket"))
        assert not any(unit in name for unit in ("_seconds_", "_bytes_")), "the unit is last"
        assert not any(label in name.split("_") for sample in family.samples for label in sample.labels), name


def test_what_only_rises_is_a_counter(families):
    counters = {name for name, family in families.items() if family.type == "counter"}
    assert counters == {
        "epsearch_requests",
        "epsearch_refusals",
        "epsearch_heads_refused",
        "epsearch_process_cpu_seconds",
    }
    assert not any("created" in name for name in families)


def test_labels_have_few_values_whatever_clients_send(text, families):
    for family in families.values():
        for sample in family.samples:
            assert sample.labels.keys() <= LABELS, sample
    assert not any(word in text for word in ("waits", ledgers.NAME, "guess", "writer", "/nothing", *SECRETS.values()))
    routes = {sample.labels["route"] for sample in families["epsearch_requests"].samples}
    assert "/api/v1/studies/{name}" in routes and not any(route.rpartition("/")[2].isdigit() for route in routes)


def test_they_say_what_has_happened(families):
    assert values(families, "epsearch_studies", "state") == {
        **dict.fromkeys(("running", "cancelled", "failed", "interrupted"), 0.0),
        **{"queued": 1.0, "finished": 1.0},
    }
    assert families["epsearch_open_submissions"].samples[0].value == 1.0
    assert families["epsearch_open_streams"].samples[0].value == 0.0
    assert values(families, "epsearch_refusals", "reason") == {"401": 3.0, "wrong token": 3.0}
    assert values(families, "epsearch_build_info", "version") == {version("epsearch"): 1.0}
    for name in ("cpu_seconds", "resident_memory_bytes", "start_time_seconds"):
        assert families[f"epsearch_process_{name}"].samples[0].value > 0


@pytest.mark.service
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing(text):
    command = ["promtool", "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    wrong = "# TYPE epsearch_things_total gauge\nepsearch_things_total 1\n"
    assert subprocess.run(command, input=wrong, capture_output=True, text=True).returncode
