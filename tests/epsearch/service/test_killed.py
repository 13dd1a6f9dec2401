"""The service as a process: killed with studies running and queued, and told to end; nothing is trained twice."""

import json
import os
import signal
import socket
import time
from collections import Counter
from contextlib import closing
from http.client import HTTPConnection

import pytest

from tests.support.limits import HANGS
from tests.support.service import STUDY, Process, until
from tests.support.trainings import log

LONG = STUDY | {"examples_per_task": 1000, "tasks": 5, "workers": 1, "repeats": 2}
"""Takes seconds on any machine, in many cohorts."""


@pytest.fixture
def serving(tmp_path):
    """A function that starts the service; whatever becomes of the test, none is left."""
    made = []

    def start(**environment):
        made.append(Process(tmp_path / "service", environment=environment))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.end()


def submitted(service, names, **options):
    for number, name in enumerate(names):
        # A rate of its own, or the ledger would have its members already.
        body = LONG | {"name": name, "lr": 0.05 + 0.001 * number} | options
        assert service.ask("POST", "/api/v1/studies", body)["state"] == "queued"


def trained(file):
    """(run, life) -> how often it was begun and how often it ended."""
    return {event: Counter(str(one.run) for one in log.read(file) if one.event == event) for event in ("begin", "end")}


def finished(service, names):
    def all_of_them():
        states = service.states()
        assert not [name for name in names if states[name] in ("failed", "cancelled")], states
        return all(states[name] == "finished" for name in names)

    until(all_of_them)


@pytest.mark.parametrize("kills", [pytest.param(1, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.fuzz)])
def test_a_service_that_is_killed_loses_and_repeats_nothing(tmp_path, serving, kills, capsys):
    """Its studies' processes live on; the next service finds them by their leases."""
    names, trainings = ["one", "two", "three", "four"], tmp_path / "trainings"
    environment = log.environment(trainings)
    service = serving(**environment)
    submitted(service, names)
    seen = []
    for number in range(kills):
        if not {"running", "queued"} & {*service.states().values()}:  # they were faster than the kills
            more = [f"{name}-{number}" for name in names[:4]]
            submitted(service, more, batch_size=11 + number)
            names += more
        counted = trained(trainings)["begin"].total()
        until(  # in the middle of something new
            lambda counted=counted, service=service: (
                trained(trainings)["begin"].total() > counted or {*service.states().values()} == {"finished"}
            )
        )
        seen.append(Counter(service.states().values()))
        service.end(signal.SIGKILL)
        service = serving(**environment)
    assert seen[0]["queued"] == 3, seen
    finished(service, names)
    members = service.ask("GET", "/api/v1/ledger")["runs"]
    service.end()
    found = trained(trainings)
    twice = {run: times for run, times in found["begin"].items() if times > 1}
    with capsys.disabled():
        print(f"\nservice killed {len(seen)} times: {members} members, {len(twice)} trained twice")
    assert not twice and found["begin"] == found["end"]


@pytest.mark.slow
def test_a_study_whose_process_is_killed_goes_on(tmp_path, serving):
    trainings = tmp_path / "trainings"
    service = serving(**log.environment(trainings))
    submitted(service, ["one"])
    for count in (1, 3):
        until(lambda count=count: trained(trainings)["end"].total() >= count)
        pid = log.read(trainings)[-1].pid
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: [one for one in log.read(trainings)[-1:] if one.pid != pid])
    finished(service, ["one"])


@pytest.mark.slow
def test_told_to_end_it_ends_at_once_and_its_study_goes_on_with_the_next(tmp_path, serving, capsys):
    """With streams open, one of which takes nothing that it is sent."""
    trainings = tmp_path / "trainings"
    environment = log.environment(trainings)
    service = serving(**environment)
    submitted(service, ["one"], tasks=12, seeds=6, repeats=5)
    until(lambda: trained(trainings)["end"].total() > 0)
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    listeners = []
    for path in ("events?after=0", "studies/one/events", "events"):
        one = socket.create_connection((host, int(port)))
        one.sendall(f"GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        listeners.append(one)
    for one in listeners[:2]:
        assert b"200" in one.recv(100)
    seconds = service.end(signal.SIGTERM)
    begun = time.monotonic()
    with capsys.disabled():
        print(f"\nSIGTERM with streams open: the service ended after {seconds:.2f} s")
    assert service.process.returncode in (0, 130, 143), service.said
    assert "Traceback" not in service.said
    for one in listeners:
        one.close()
    service = serving(**environment)
    until(lambda: service.states()["one"] != "interrupted")
    assert service.states()["one"] in ("queued", "running"), "its study had not ended when the service did"
    before = trained(trainings)["end"].total()
    until(lambda: trained(trainings)["end"].total() > before)
    with capsys.disabled():
        print(f"its study went on {time.monotonic() - begun:.1f} s later")
    assert not [run for run, times in trained(trainings)["end"].items() if times > 1]
    assert json.dumps(service.ask("POST", "/api/v1/studies/one/cancel"))
    until(lambda: service.states()["one"] == "cancelled")


@pytest.mark.slow
def test_a_connection_outlives_the_pauses_of_those_who_poll(serving):
    """Those who ask every five seconds would else meet its end now and then, which is an error to them."""
    service = serving()
    with closing(HTTPConnection(service.url.removeprefix("http://"), timeout=HANGS)) as connection:
        connection.connect()
        connection.auto_open = 0  # another connection would hide the end of this one
        for pause in (0, 6):
            time.sleep(pause)
            connection.request("GET", "/health")
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
