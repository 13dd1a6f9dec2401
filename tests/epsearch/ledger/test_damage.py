"""Damaged and newer ledgers: a row that cannot be used is one line, all others work, and none is used as a result."""

import json
import shutil

import pytest

from results.ledger import schema
from tests.support.ledgers import ARGUMENTS, NAME, execute, finished, query, results

RUN = ["run", *ARGUMENTS, "--name", NAME, "--quiet"]


@pytest.fixture
def out(tmp_path):
    """A copy of the finished ledger, where the commands look for it."""
    shutil.copytree(finished(), tmp_path / "runs")
    return tmp_path / "runs"


def one_line(answer, *parts):
    assert answer.status == 2 and answer.out == ""
    assert answer.err.startswith("epsearch: ") and answer.err.count("\n") == 1, answer.err
    for part in parts:
        assert part in answer.err, answer.err


def sealed(row):
    """As a program writes it: what is wrong with it is not that it was damaged."""
    return schema.with_checksum({"name": "second", "created": "2030-01-01T00:00:00+00:00"} | row)


def add_study(out, **row):
    execute(out, "INSERT INTO epsearch_studies VALUES (:name, :config, :created, :checksum)", **sealed(row))


def changed(out, **changes):
    """The config of the first study with other options."""
    config = json.loads(query(out, "SELECT config FROM epsearch_studies")[0][0])
    return json.dumps(config | {"study": config["study"] | changes})


STUDIES = {
    "no JSON": (lambda out: "{", "damaged: config is no JSON"),
    "no object": (lambda out: "[]", "damaged: config is no JSON object"),
    "too deep": (lambda out: '{"study": ' + "[" * 100_000 + "]" * 100_000 + "}", "damaged: config is no JSON"),
    "another option": (
        lambda out: changed(out, warmup=0.9),
        "needs another version of epsearch: no option 'warmup'",
    ),
    "another kind": (lambda out: '{"kind": "ablation", "study": {}}', "no command 'ablation'; known: run, compare"),
    "an odd kind": (lambda out: '{"kind": [], "study": {}}', "needs another version of epsearch: "),
    "another method": (lambda out: changed(out, method="packnet"), "no method 'packnet'"),
    "another strategy": (lambda out: changed(out, strategy="cma"), "no strategy 'cma'"),
    "another dataset": (lambda out: changed(out, dataset="core50"), "no dataset 'core50'"),
    "no options": (lambda out: "{}", "needs another version of epsearch: nothing known as 'study'"),
    "options that are none": (lambda out: '{"study": 5, "stream": {}}', "needs another version of epsearch: "),
    "no stream": (
        lambda out: json.dumps({name: one for name, one in json.loads(changed(out)).items() if name != "stream"}),
        "nothing known as 'stream'",
    ),
    "an odd seal": (lambda out: json.dumps(json.loads(changed(out)) | {"seal": {"odd": 1}}), "unexpected keyword"),
    "an odd past": (lambda out: json.dumps(json.loads(changed(out)) | {"earlier": [7]}), "needs another version"),
}


@pytest.mark.slow
@pytest.mark.few(8)
@pytest.mark.parametrize(("config", "why"), STUDIES.values(), ids=STUDIES)
def test_a_study_that_cannot_be_read_is_one_line(epsearch, out, config, why):
    add_study(out, config=config(out))
    first, second = epsearch("list", "--json").json
    assert (first["name"], first["status"], second["name"]) == (NAME, "finished", "second")
    assert why in second["status"] and second["status"].startswith(("damaged: ", "needs "))
    assert epsearch("show", NAME, "--json").json["finished"] is True
    for command in ("show", "report"):
        one_line(epsearch(command, "second"), "study 'second' cannot be read, ", why)
        one_line(epsearch(command), "it is the newest, name another one")
    one_line(epsearch("report", NAME, "second"), why)
    if why.startswith("damaged"):
        one_line(epsearch(*RUN, "--name", "second"), why, "choose another --name")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    ["config = replace(config, '60', '70')", "config = CAST(x'80ff' AS TEXT)", "config = x'00'", "created = 7"],
)
def test_a_changed_study_is_damaged(epsearch, out, change):
    execute(out, f"UPDATE epsearch_studies SET {change}")
    (row,) = epsearch("list", "--json").json
    assert row["name"] == NAME and row["status"].startswith("damaged: ")
    one_line(epsearch("show", NAME), "damaged: ")
    one_line(epsearch(*RUN), "damaged: ", "choose another --name")


@pytest.mark.slow
def test_beside_a_damaged_study_its_members_serve_another(epsearch, out):
    execute(out, "UPDATE epsearch_studies SET config = '{'")
    assert epsearch(*RUN, "--name", "other", "--json").json["effort"]["trained"] == 0


RECORDS = {
    "another digit": "accuracies = replace(accuracies, '1', '2')",
    "another shape": "accuracies = '[[0.5]]'",
    "NaN where there is none": "accuracies = replace(accuracies, '0.', 'NaN, 0.')",
    "no JSON": "initial = '['",
    "too deep": f"within = '{'[' * 100_000}'",
    "a blob": "accuracies = x'0001'",
    "no text": "violations = CAST(x'80' AS TEXT)",
    "no number": "epsilon = 'many'",
    "another seed": "seed = 77",
    "another status": "status = 'lost'",
    "another content": "content = '{}'",
    "another phase": "phase = 'cv '",
    "nothing": "accuracies = ''",
    "no checksum": "checksum = ''",
}


@pytest.mark.slow
@pytest.mark.few(8)
@pytest.mark.parametrize("change", RECORDS.values(), ids=RECORDS)
def test_a_damaged_record_is_not_used(epsearch, out, change):
    check_that_it_is_not_used(epsearch, out, f"UPDATE epsearch_runs SET {change}")


def check_that_it_is_not_used(epsearch, out, change):
    key = query(out, "SELECT key FROM epsearch_runs WHERE epsilon = 0 AND phase = 'cv' ORDER BY seed")[0][0]
    execute(out, f"{change} WHERE key = '{key}'")
    assert epsearch("list", "--json").json[0]["status"] == "finished"  # which looks at no record
    shown = epsearch("show", "--json").json
    assert list(shown["damaged"]) == [key] and shown["finished"] is False
    assert key[:12] in epsearch("show").out
    one_line(epsearch("report"), "no finished round yet", key[:12])


@pytest.mark.slow
def test_a_run_trains_it_again_and_says_so(epsearch, out):
    before = results(out)
    assert len({key for key, *_ in before}) == len(before)
    reference = epsearch(*RUN, "--json")
    assert reference.json["effort"]["trained"] == 0 and reference.err == ""
    keys = query(out, "SELECT key FROM epsearch_runs WHERE phase = 'cv' AND epsilon = 0 OR phase = 'eval'")
    execute(out, "UPDATE epsearch_runs SET accuracies = replace(accuracies, '1', '2') WHERE phase = 'eval'")
    execute(out, "UPDATE epsearch_runs SET seconds = 1e300 WHERE phase = 'cv' AND epsilon = 0")
    answer = epsearch(*RUN, "--json")
    assert answer.status == 0 and answer.json["effort"]["trained"] == len(keys)
    assert sum(key[:12] in answer.err for (key,) in keys) >= 3 and "trained again and replaces it" in answer.err
    assert results(out) == before
    for what in ("chosen", "chosen_score", "evaluation", "rounds"):
        assert answer.json[what] == reference.json[what]
    again = epsearch(*RUN, "--json")
    assert again.json["effort"]["trained"] == 0 and again.err == ""


@pytest.mark.slow
def test_a_damaged_certificate_is_made_again(epsearch, out):
    before = query(out, "SELECT key, accuracy_difference FROM epsearch_certificates ORDER BY key")
    execute(out, f"UPDATE epsearch_certificates SET accuracy_difference = 0.5 WHERE key = '{before[0][0]}'")
    shown = epsearch("show", "--json").json
    assert shown["finished"] is False and list(shown["damaged"]) == [f"{before[0][0]} certificate"]
    told = f"{before[0][0][:12]}… (certificate: its checksum does not match)"
    assert told in epsearch("show").out
    answer = epsearch(*RUN)
    assert answer.status == 0 and told in answer.err and "trained again and replaces it" in answer.err
    assert epsearch("show", "--json").json["damaged"] == {}
    assert query(out, "SELECT key, accuracy_difference FROM epsearch_certificates ORDER BY key") == before


LEDGERS = {
    "no runs": (["DROP TABLE epsearch_runs"], "the ledger is damaged: there is no table epsearch_runs"),
    "no studies": (["DROP TABLE epsearch_studies"], "there is no table epsearch_studies"),
    "no version": (["DROP TABLE epsearch_schema"], "there is no table epsearch_schema"),
    "no column": (["ALTER TABLE epsearch_runs DROP COLUMN within"], "epsearch_runs has no column within"),
    "an odd version": (["UPDATE epsearch_schema SET version = 'two'"], "schema version must be one whole number"),
    "two versions": (["INSERT INTO epsearch_schema VALUES (2, 3)"], "schema version must be one whole number"),
    "a newer version": (["UPDATE epsearch_schema SET version = 99"], "made by a newer epsearch"),
    "a development version": (["UPDATE epsearch_schema SET version = 3"], "schema version 3, this epsearch writes 2; "),
}


@pytest.mark.slow
@pytest.mark.parametrize(("statements", "why"), LEDGERS.values(), ids=LEDGERS)
def test_a_ledger_that_is_none_is_one_line(epsearch, out, statements, why):
    execute(out, *statements)
    before = (out / "epsearch.sqlite").read_bytes()
    for arguments in (["list"], ["show"], ["report"], RUN):
        one_line(epsearch(*arguments), why)
    assert (out / "epsearch.sqlite").read_bytes() == before


def test_a_view_can_be_read_but_not_written_to(epsearch, out):
    execute(
        out,
        "ALTER TABLE epsearch_runs RENAME TO kept",
        "CREATE VIEW epsearch_runs AS SELECT * FROM kept",
    )
    assert epsearch("list", "--json").json[0]["status"] == "finished"
    one_line(epsearch(*RUN), "epsearch_runs is a view, not a table")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("*", "epsearch_runs has lost its primary key"),
        ("CAST(epsilon AS TEXT) AS epsilon", "epsearch_runs.epsilon is TEXT, not DOUBLE"),
    ],
    ids=["no key", "another type"],
)
def test_nothing_is_trained_for_a_table_that_would_lose_it(epsearch, out, select, why):
    """A row of a column that turns numbers into text is damaged as soon as it is written."""
    names = [row[1] for row in query(out, "PRAGMA table_info(epsearch_runs)")]
    kept = [select] if select == "*" else [select, *(name for name in names if name != "epsilon")]
    execute(
        out,
        f"CREATE TABLE other AS SELECT {', '.join(kept)} FROM epsearch_runs",
        "DROP TABLE epsearch_runs",
        "ALTER TABLE other RENAME TO epsearch_runs",
    )
    before = results(out)
    one_line(epsearch(*RUN), f"the ledger is damaged: {why}, and cannot be written to")
    assert results(out) == before and epsearch("list").status == 0


@pytest.mark.slow
def test_files_that_are_no_ledger(epsearch, out):
    file = out / "epsearch.sqlite"
    whole = file.read_bytes()
    for content in (b"not a database, but as long as one " * 100, whole[:5000], whole[:100] + bytes(len(whole) - 100)):
        file.write_bytes(content)
        for arguments in (["list"], ["show"], ["report"], RUN):
            one_line(epsearch(*arguments), "ledger")
        assert file.read_bytes() == content
