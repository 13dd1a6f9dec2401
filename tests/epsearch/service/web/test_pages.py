"""The pages without a browser: what they say, to whom, and what their forms do."""

import re
import shutil
from dataclasses import replace

import pytest

from epsearch.study.kinds import KINDS
from tests.epsearch.service.web.conftest import asking
from tests.support import ledgers


@pytest.fixture
def web(settings):
    with asking(settings) as client:
        yield client


@pytest.fixture
def guarded(settings, secrets):
    with asking(replace(settings, tokens=secrets[1])) as client:
        client.secrets = secrets[0]
        yield client


@pytest.fixture
def trained(settings):
    """The name of a study that is finished."""
    shutil.copytree(ledgers.finished(), settings.out, dirs_exist_ok=True)
    return ledgers.NAME


def post(web, path, **values):
    return web.post(path, data=values, follow_redirects=False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_has_every_option_once_with_its_help_but_those_of_the_service(web, kind):
    page = web.get(f"/new?kind={kind}").text
    names = re.findall(r'<(?:input|select) [^>]*name="(\w+)"', page)
    own = {"kind", "priority"}
    places = {"out", "storage", "data_dir", "checkpoints", "address"}
    assert sorted({*names} - own) == sorted(KINDS[kind].options().keys() - places)
    assert len(names) == len({*names})
    for name in {*names} - own:
        assert re.search(rf'<label for="f-{name}">[^<]+</label>', page)
        assert re.search(rf'<p class="help" id="f-{name}-help">[^<]+</p>', page)


def test_a_study_is_submitted_without_scripts(web):
    answer = post(web, "/new", kind="run", do="submit", name="mine", points="3", repeats="2", seeds="2", race="true")
    assert answer.status_code == 303 and answer.headers["location"] == "/studies/mine"
    shown = web.get("/studies/mine")
    assert shown.status_code == 200 and "waits in the queue" in shown.text
    config = web.get("/api/v1/studies/mine").json()["config"]
    assert (config["points"], config["repeats"], config["seeds"], config["race"]) == (3, 2, [0, 1], True)


def test_an_error_is_one_line_beside_the_form_and_what_was_typed_stays(web):
    answer = post(web, "/new", kind="run", do="submit", name="mine", points="two", seeds="3")
    assert answer.status_code == 422
    assert 'role="alert">points must be a whole number &gt;= 3, got &#39;two&#39;</p>' in answer.text
    assert re.search(r'name="points" value="two"[^>]*aria-invalid="true"', answer.text)
    assert re.search(r'name="seeds" value="3"', answer.text)
    assert answer.text.count("aria-invalid") == 1
    assert web.get("/api/v1/studies").json()["total"] == 0


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"out": "/elsewhere"}, "out is the service&#39;s to say; leave it out"),
        ({"dataset": "os:system"}, "runs code of this machine"),
        ({"priority": "9999"}, "priority must be &lt;= 1000, got 9999"),
        ({"name": "../../etc"}, "name must consist of letters"),
    ],
)
def test_a_form_may_not_open_places_of_this_machine(web, given, line):
    answer = post(web, "/new", kind="run", do="submit", **given)
    assert answer.status_code == 422 and line in answer.text


def test_what_was_typed_is_text_and_never_part_of_the_page(web):
    evil = '"><script>alert(1)</script>'
    answer = post(web, "/new", kind="run", do="submit", name=evil, points=evil)
    assert answer.status_code == 422 and "<script>alert" not in answer.text
    for path in ("/", "/new", "/compare"):
        text = web.get(path, params={"search": evil, "name": evil, "study": evil}).text
        assert "<script>alert" not in text and "&lt;script&gt;" in text
    missing = web.get(f"/studies/{evil.replace('/', '')}")
    assert missing.status_code == 404 and "<script>alert" not in missing.text


def test_a_queued_study_is_cancelled_and_resumed(web):
    post(web, "/new", kind="run", do="submit", name="mine")
    assert post(web, "/studies/mine/cancel").headers["location"] == "/studies/mine"
    page = web.get("/studies/mine").text
    assert "cancelled" in page and "/studies/mine/resume" in page and "/studies/mine/cancel" not in page
    assert post(web, "/studies/mine/resume").status_code == 303
    assert web.get("/api/v1/studies/mine").json()["state"] == "queued"
    changes = web.get("/changes").text
    assert re.findall(r'<td class="word">(submit|cancel|resume)</td>', changes) == ["resume", "cancel", "submit"]


def test_deleting_wants_the_name_once_more(web):
    post(web, "/new", kind="run", do="submit", name="mine")
    post(web, "/studies/mine/cancel")
    refused = post(web, "/studies/mine/delete", confirm="yours")
    assert refused.status_code == 422 and "confirm must be the study&#39;s name, &#39;mine&#39;" in refused.text


def test_a_finished_study_is_shown_compared_and_extended(trained, web):
    page = web.get(f"/studies/{trained}").text
    assert page.count('class="drawing"') >= 4 and page.count("<figure ") == page.count('class="data"')
    runs = page.split('id="table-runs"')[1].split("</table>")[0]
    assert (
        len(re.findall(r"<td>2</td><td>–</td></tr>", runs)) == runs.count('<tr><th scope="row"') >= 4
    )  # a row a point: two seeds
    assert re.search(r"\d\d\.\d\d ± \d", runs)
    members = page.split('id="table-members"')[1].split("</table>")[0]
    assert members.count('<tr><th scope="row"') == web.get(f"/api/v1/studies/{trained}").json()["members"]
    assert ">finished</span>" in web.get("/").text
    report = web.get(f"/studies/{trained}/report")
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    ledger = web.get("/ledger").text
    assert f'<a href="/studies/{trained}">{trained}</a>' in ledger

    alone = web.get("/compare", params={"study": [trained]})
    assert alone.status_code == 422 and f"got &#39;{trained}&#39; alone" in alone.text
    post(web, "/new", kind="compare", do="submit", name="table")
    other = web.get("/compare", params={"study": [trained, "table"]})
    assert other.status_code == 422 and "only searches can be set side by side" in other.text

    same = post(web, f"/studies/{trained}/extend", repeats="1")
    assert same.status_code == 422 and "nothing differs from what the study has" in same.text
    fewer = post(web, f"/studies/{trained}/extend", seeds="1")
    assert fewer.status_code == 422 and "seeds can only grow at their end" in fewer.text
    more = post(web, f"/studies/{trained}/extend", seeds="0,1,2", repeats="1")
    assert more.status_code == 303
    assert web.get(f"/api/v1/studies/{trained}").json()["state"] == "queued"


def test_the_list_is_filtered_and_paged(web):
    for i in range(52):
        assert (
            post(web, "/new", kind="compare" if i % 2 else "run", do="submit", name=f"study-{i:02}").status_code == 303
        )
    first, second = web.get("/").text, web.get("/?page=2").text
    assert (first.count('id="study-'), second.count('id="study-')) == (50, 2)
    assert "1–50 of 52" in first and "51–52 of 52" in second
    assert re.search(r'rel="next" href="/\?page=2"', first)
    some = web.get("/", params={"kind": "run", "search": "study-1", "state": "queued"}).text
    assert re.findall(r'id="study-(study-\d+)"', some) == ["study-18", "study-16", "study-14", "study-12", "study-10"]
    assert "No study fits" in web.get("/?state=failed").text


def test_who_may_only_read_is_offered_nothing_else(guarded):
    guarded.headers["authorization"] = f"Bearer {guarded.secrets['ann']}"
    post(guarded, "/new", kind="run", do="submit", name="mine")
    assert "by ann" in guarded.get("/studies/mine").text and "/studies/mine/cancel" in guarded.get("/studies/mine").text
    guarded.headers["authorization"] = f"Bearer {guarded.secrets['board']}"
    page, listed = guarded.get("/studies/mine").text, guarded.get("/").text
    assert '<form method="post" action="/studies' not in page and "/change" not in page.replace("/changes", "")
    assert 'href="/new"' not in listed and "board, reads" in listed
    assert post(guarded, "/studies/mine/cancel").status_code == 403
    assert post(guarded, "/new", kind="run", do="submit", name="other").status_code == 403


def test_signing_in_leads_to_the_page_that_was_wanted(guarded):
    sent = guarded.get("/ledger?a=b", follow_redirects=False)
    assert sent.status_code == 303 and sent.headers["location"] == "/sign-in?next=%2Fledger%3Fa%3Db"
    page = guarded.get("/sign-in", params={"next": "/ledger?a=b"}).text
    assert 'name="next" value="/ledger?a=b"' in page and "<nav" not in page
    wrong = post(guarded, "/sign-in", token="nobody's", next="/ledger")
    assert wrong.status_code == 401 and "not known here" in wrong.text
    right = post(guarded, "/sign-in", token=guarded.secrets["ann"], next="/ledger")
    assert right.headers["location"] == "/ledger"
    assert guarded.get("/ledger").status_code == 200
    post(guarded, "/sign-out")
    assert guarded.get("/ledger", follow_redirects=False).status_code == 303
    for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example", "evil"):
        answer = post(guarded, "/sign-in", token=guarded.secrets["ann"], next=elsewhere)
        assert answer.headers["location"] == "/"


def test_files_are_kept_for_ever_under_their_hash_and_asked_for_again_without(web):
    page = web.get("/").text
    files = {*re.findall(r'(?:src|href|stream)="(/static/[^"]+)"', page)}
    assert len(files) >= 7
    for path in files:
        answer = web.get(path)
        assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"], path
        assert web.get(path.partition("?")[0]).headers["cache-control"] == "no-cache"
    packed = web.get("/static/plotly.js")
    assert packed.headers["content-encoding"] == "gzip" and b"3.7.0" in packed.content[:500]
    assert web.get("/static/pages.py").status_code == 404
