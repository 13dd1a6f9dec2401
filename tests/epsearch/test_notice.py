"""Messages at the end of a study: to a host that answers, that refuses, that leads elsewhere, that is silent."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from epsearch import notice
from epsearch.failures.errors import UsageError
from epsearch.service.work.scheduler import Scheduler
from epsearch.service_url import parse
from epsearch.status import StudyStatus
from results.ledger.store import Store
from results.ledger.writers.holder import here
from tests.support import ledgers, service
from tests.support.service import STUDY, client_of, settings, until

SECRET = "T0PSECRET"


@contextmanager
def hook(*answers):
    """Yields (URL, messages that came); answers: status of each, and the last one's from then on."""
    came, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{SECRET}", came
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(notice, "PAUSES", (0.0, 0.0))


@pytest.mark.parametrize(
    ("url", "hosts", "words"),
    [
        ("ftp://chat.example/x", None, "notify must be like https://HOST/PATH"),
        ("http://chat.example/x", None, "notify must be an https URL"),
        ("https://ann:secret@chat.example/x", None, "notify must be like https://HOST/PATH"),
        ("https://chat.example/x", ("other.example",), "got 'chat.example'; allowed: other.example"),
        ("https://chat.example/x", (), "the service allows none"),
    ],
)
def test_other_urls_are_refused_without_their_path(url, hosts, words):
    with pytest.raises(UsageError, match=words) as refused:
        notice.check_url(url.replace("/x", f"/{SECRET}"), hosts)
    assert SECRET not in str(refused.value) and "secret" not in str(refused.value)


def test_a_message_says_state_and_result():
    done = StudyStatus(name="first", state="finished", summary="finished", chosen={"epsilon": 0.25}, score=0.8469)
    said = notice.message(done, "https://lab.example/studies/first")
    assert said["text"] == "epsearch: first is finished: ε = 0.25, A_T 84.69 % https://lab.example/studies/first"
    failed = notice.message(StudyStatus(name="first", state="failed", reason="no\nspace"))
    assert failed["text"] == "epsearch: first is failed: no space" and failed["url"] is None


@pytest.mark.parametrize(
    ("answers", "count", "why"),
    [
        ((204,), 1, ""),
        ((500, 429, 200), 3, ""),
        ((503,), 3, "127.0.0.1 answers with status 503"),
        ((404,), 1, "127.0.0.1 answers with status 404"),
        ((302,), 1, "127.0.0.1 answers with status 302"),
    ],
)
def test_it_is_sent_three_times_at_most_and_follows_no_redirect(answers, count, why):
    with hook(*answers) as (url, came):
        assert notice.send(url, {"text": "x"}) == why and len(came) == count


def test_a_host_that_does_not_answer_costs_a_line():
    assert notice.send(f"http://127.0.0.1:1/{SECRET}", {}) == "127.0.0.1 does not answer: ConnectError"
    assert notice.send(f"http://127.0.0.1:1/{SECRET}\x01", {}) == "127.0.0.1 does not answer: InvalidURL"


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_sends_one_at_its_end(epsearch, fails):
    with hook(200) as (url, came):
        more = ["--strategy", "grid", "--points", "2"] if fails else []
        answer = epsearch("run", *ledgers.ARGUMENTS, *more, "--name", "mine", "--notify", url)
    if fails:
        assert answer.status == 2 and came == [], "nothing has begun"
    else:
        assert answer.status == 0 and [one["state"] for one in came] == ["finished"] and came[0]["score"] > 0.1
    assert SECRET not in answer.err


@pytest.mark.slow
def test_a_service_sends_one_to_an_allowed_host_and_keeps_its_url_to_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(Scheduler, "_begin_next", lambda *of: None)
    with hook(200) as (url, came):
        own = settings(tmp_path / "runs", notify_hosts=("127.0.0.1",), url=parse("https://lab.example"))
        with client_of(own) as client, Store.open(own.storage) as store:
            for name in ("done", "refused"):
                answer = client.post("/api/v1/studies", params={"notify": url}, json=STUDY | {"name": name})
                assert answer.status_code == 201
            page = client.post("/new", data={"kind": "run", "do": "submit", "name": "other", "notify": "https://a.b/c"})
            assert page.status_code == 422 and "allowed: 127.0.0.1" in page.text
            worker = Scheduler(own, store)
            store.leases.acquire("done", here(), resume=False)
            store.leases.enter("finished")
            store.leases.release()
            worker.step()
            worker._fail(store.queue.submission("refused"), "no such data")
            until(lambda: len(came) == 2)
            every = [client.get(path).text for path in ("/", "/changes", "/studies/done", "/api/v1/studies/done")]
            every += [client.get("/api/v1/audit").text]
        assert {(one["study"], one["state"]) for one in came} == {("done", "finished"), ("refused", "failed")}
        assert came[0]["url"].startswith("https://lab.example/studies/")
        assert not any(SECRET in text for text in every)
    assert service.settings(tmp_path / "more").notify_hosts == ()
