"""What leaves the service: no folder of its machine, output of processes, advice in the words of pages."""

import json
import re

import pytest

from epsearch.failures.errors import UsageError
from epsearch.service.sending import hide_paths
from epsearch.service.web.advice import on_page
from epsearch.service.work import job, processes
from epsearch.service.work.processes import LARGEST_LOG, LOG, output
from tests.support import ledgers
from tests.support.service import STUDY, client_of, settings, with_a_finished_study


def test_folders_of_the_machine_are_named_by_their_options(tmp_path):
    own = settings(tmp_path / "runs", roots=(tmp_path / "images",))
    hide = hide_paths(own)
    for text, wanted in (
        (f"cannot write {own.out}/first/report.html", "cannot write OUT/first/report.html"),
        (f"{own.data_dir}: no such file", "DATA: no such file"),
        (f"dataset folder:{tmp_path}/images/birds", "dataset folder:birds"),
        (f"below {tmp_path}/images)", "below IMAGES)"),
        (f"{own.out}-more and {own.out}.txt", f"{own.out}-more and {own.out}.txt"),
        (f"{own.out}", "OUT"),
    ):
        assert hide(text.encode(), "").decode() == wanted


@pytest.mark.parametrize("named", ["/", "{}", "{}/", "x", "/tmp"])
def test_a_path_of_the_client_shows_no_other(tmp_path, named):
    """Only what the client has named itself stays, also where a terminal or JSON writes it otherwise."""
    own = settings(tmp_path / 'of "me"')
    hide, text = hide_paths(own), f"at {own.out}/first, from {own.data_dir}"
    assert str(tmp_path) not in hide(text.encode(), named.format(tmp_path.parent)).decode()
    report = f"{own.out}/first/report.html"
    broken = f"report  {report[:30]}\x1b[0m\n        \x1b[32m{report[30:]}"
    for written in (report, broken, json.dumps({"report": report})):
        answer = hide(f"{written} of {own.data_dir}".encode(), report).decode()
        assert answer == f"{written} of DATA"


@pytest.mark.slow
def test_no_answer_has_a_folder_of_the_machine(tmp_path):
    own = with_a_finished_study(tmp_path / "runs")
    with client_of(own, raises=False) as client:
        client.post("/api/v1/studies", json=STUDY | {"name": "waiting"})
        (own.out / "waiting").mkdir()
        (own.out / "waiting" / LOG).write_text(f"epsearch: cannot read {own.data_dir}/MNIST\n")
        pages = [
            "/",
            "/new",
            "/compare",
            "/ledger",
            "/people",
            "/changes",
            "/help",
            "/api/v1",
            f"/studies/{ledgers.NAME}",
        ]
        pages += [f"/studies/{ledgers.NAME}/{part}" for part in ("report", "change")]
        answers = [client.get(path, headers={"accept": "text/html"}) for path in pages]
        parts = ("", "/standing", "/log", "/runs", "/figures", "/report", "/shown", "/outcome", "/output")
        answers += [client.get(f"/api/v1/studies/{ledgers.NAME}{part}") for part in parts]
        answers += [client.get(f"/api/v1/{part}") for part in ("studies", "ledger", "audit", "studies/waiting/output")]
        for answer in answers:
            assert answer.status_code == 200 and str(tmp_path) not in answer.text, answer.url
            assert int(answer.headers["content-length"]) == len(answer.content)
        named = {"path": "elsewhere/report.html"}
        for address in (f"/api/v1/studies/{ledgers.NAME}/outcome?format=json", "/studies/outcome"):
            assert str(tmp_path) not in client.get(address, params=named).text
        assert answers[-1].text == "epsearch: cannot read DATA/MNIST"


def test_the_output_is_the_end_of_all_that_the_processes_wrote(tmp_path, monkeypatch):
    own = settings(tmp_path / "runs")
    assert output("first", own, 100) == ""
    monkeypatch.setattr(processes, "_command", lambda name, settings: ["echo", f"begins {name}"])
    for _ in range(2):
        processes.StudyProcess("first", own)._process.wait()
    assert output("first", own, 1000) == "begins first\nbegins first"
    (own.out / "first" / LOG).write_bytes(b"x" * (LARGEST_LOG + 1))
    processes.StudyProcess("first", own)._process.wait()
    assert output("first", own, 20) == "xxxxxxx" + "begins first"[:13] or output("first", own, 20).endswith(
        "begins first"
    )
    assert {one.name for one in (own.out / "first").iterdir()} == {LOG, f"{LOG}.1"}
    (own.out / "first" / "logs").mkdir()
    (own.out / "first" / "logs" / "member.log").write_text("Traceback: mine\n")
    assert output("first", own, 1000).endswith("logs/member.log:\nTraceback: mine")


def test_a_bug_leaves_its_traceback_there_and_bad_input_does_not(monkeypatch, capfd):
    def fails(error):
        def work(arguments):
            raise error

        monkeypatch.setattr(job, "_work", work)
        with pytest.raises(type(error)):
            job._work_with_traceback([])
        return capfd.readouterr().err

    assert "Traceback (most recent call last)" in fails(ZeroDivisionError("of ours"))
    assert fails(UsageError("points must be >= 3")) == ""


def test_advice_is_a_link_in_place_of_a_command():
    said = on_page(
        "<p>On larger tasks: epsearch run --dataset permuted_mnist --examples-per-task 2000 --strategy kg --seeds 6</p>"
        "<p>decide (--extend --seeds); wider (--extend --interval 0.5 1).</p>",
        "a b",
        "/lab",
    )
    assert (
        '<a href="/lab/new?dataset=permuted_mnist&amp;examples_per_task=2000&amp;strategy=kg&amp;seeds=6">New study</a>'
        in said
    )
    assert said.count('<a href="/lab/studies/a%20b/change#extend">Extend</a>: ') == 2 and "interval 0.5 1)" in said
    assert "epsearch run" not in said and not re.search(r"--[a-z]", said)
