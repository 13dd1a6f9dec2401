"""The pages without a browser: what they say, to whom, and what their forms do."""

import re
import shutil
from dataclasses import replace

import pytest

from epsearch import api, events
from epsearch.preparation.build import build
from epsearch.service.app import application
from epsearch.service.web import pages
from epsearch.session.session import open_store
from epsearch.study.kinds import KINDS, ProtocolStudy
from results.ledger.writers.states import FINISHED
from tests.epsearch.conftest import TINY
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


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_form_has_every_option_once_with_its_help_but_those_of_the_service(web, kind):
    page = web.get(f"/new?kind={kind}").text
    names = re.findall(r'<(?:input|select) [^>]*name="(\w+)"', page)
    own = {"kind", "priority"}
    places = {"out", "storage", "data_dir", "checkpoints", "address"}
    code = {name for name, one in KINDS[kind].options().items() if one.part == "trainer"}
    code |= {"trainer", "add_figures"}  # of this machine, which the service does not allow
    assert sorted({*names} - own) == sorted(KINDS[kind].options().keys() - places - code)
    assert "module:" not in page and "folder:" not in page
    assert len(names) == len({*names})
    for name in {*names} - own:
        assert re.search(rf'<label for="f-{name}">[^<]+</label>', page)
        assert re.search(rf'<p class="help" id="f-{name}-help">[^<]+</p>', page)


@pytest.mark.slow
def test_a_study_is_submitted_without_scripts(web):
    answer = post(web, "/new", kind="run", do="submit", name="mine", points="3", repeats="2", seeds="2", race="true")
    assert answer.status_code == 303 and answer.headers["location"] == "/studies/mine"
    shown = web.get("/studies/mine")
    assert shown.status_code == 200 and "waits in the queue" in shown.text
    config = web.get("/api/v1/studies/mine").json()["config"]
    assert (config["points"], config["repeats"], config["seeds"], config["race"]) == (3, 2, [0, 1], True)


@pytest.mark.slow
def test_an_error_is_one_line_beside_the_form_and_what_was_typed_stays(web):
    answer = post(web, "/new", kind="run", do="submit", name="mine", points="two", seeds="3")
    assert answer.status_code == 422
    line = "points must be a whole number &gt;= 1, got &#39;two&#39;"
    head, form = answer.text.split('<form class="study"')
    assert f'role="alert" tabindex="-1" autofocus><a href="#f-points">{line}</a></p>' in head
    assert f'<p class="why" id="f-points-why">{line}</p>' in form
    assert re.search(r'name="points" value="two"[^>]*aria-invalid="true"', answer.text)
    assert re.search(r'name="seeds" value="3"', answer.text)
    assert answer.text.count("aria-invalid") == 1
    assert web.get("/api/v1/studies").json()["total"] == 0


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"out": "/elsewhere"}, "out is set by the service; leave it out"),
        ({"dataset": "os:system"}, "runs code of this machine"),
        ({"priority": "9999"}, "priority must be &lt;= 1000, got 9999"),
        ({"name": "../../etc"}, "name must consist of letters"),
    ],
)
def test_a_form_may_not_open_places_of_this_machine(web, given, line):
    answer = post(web, "/new", kind="run", do="submit", **given)
    assert answer.status_code == 422 and line in answer.text


@pytest.mark.slow
def test_what_was_typed_is_text_and_never_part_of_the_page(web):
    evil = '"><script>alert(1)</script>'
    answer = post(web, "/new", kind="run", do="submit", name=evil, points=evil)
    assert answer.status_code == 422 and "<script>alert" not in answer.text
    for path in ("/", "/new", "/compare"):
        text = web.get(path, params={"search": evil, "name": evil, "study": evil}).text
        assert "<script>alert" not in text and "&lt;script&gt;" in text
    missing = web.get(f"/studies/{evil.replace('/', '')}")
    assert missing.status_code == 404 and "<script>alert" not in missing.text


@pytest.mark.slow
def test_a_queued_study_is_cancelled_and_resumed(web):
    post(web, "/new", kind="run", do="submit", name="mine")
    assert post(web, "/studies/mine/cancel").headers["location"] == "/studies/mine"
    page = web.get("/studies/mine").text
    assert "cancelled" in page and "/studies/mine/resume" in page and "/studies/mine/cancel" not in page
    assert post(web, "/studies/mine/resume").status_code == 303
    assert web.get("/api/v1/studies/mine").json()["state"] == "queued"
    changes = web.get("/changes").text
    assert re.findall(r'<td class="word">(submit|cancel|resume)</td>', changes) == ["resume", "cancel", "submit"]


@pytest.mark.slow
def test_a_study_of_protocols_is_shown_with_its_report(settings, web):
    given = TINY | {"tasks": 5, "points": 2, "protocols": "cv-tasks,current-task,default", "search": "epsilon=0..1"}
    known = {name: value for name, value in given.items() if name in ProtocolStudy.options()}
    own = {"out": settings.out, "storage": str(settings.storage), "name": "mine", "runner": "local"}
    api.run(build(ProtocolStudy, known | own | {"device": "cpu"}))
    page = web.get("/studies/mine").text
    assert '<p class="kicker">protocol study' in page and ">finished</span>" in page
    assert page.count("<figure ") == page.count('class="data"') >= 2 and "only searches" not in page
    runs = page.split('id="table-runs"')[1].split("</table>")[0]
    assert all(name in runs for name in ("cv-tasks", "current-task", "default", "ε = 1"))
    assert "protocol study" in web.get("/?kind=protocols").text and "mine" not in web.get("/?kind=memory").text
    status = web.get("/api/v1/studies/mine").json()
    assert (status["kind"], status["state"]) == ("protocols", "finished")
    assert "current task" in web.get("/studies/mine/report").text
    for path in ("outcome", "shown", "runs", "figures", "standing", "log", "output"):
        assert web.get(f"/api/v1/studies/mine/{path}").status_code == 200, path
    assert post(web, "/studies/mine/extend", seeds="5").status_code == 422
    assert web.get("/compare", params={"study": ["mine", "mine"]}).status_code == 422


@pytest.mark.slow
def test_deleting_wants_the_name_once_more(web):
    post(web, "/new", kind="run", do="submit", name="mine")
    post(web, "/studies/mine/cancel")
    refused = post(web, "/studies/mine/delete", confirm="yours")
    assert refused.status_code == 422 and "confirm must be the study&#39;s name, &#39;mine&#39;" in refused.text


@pytest.mark.slow
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
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts allow-downloads;")
    ledger = web.get("/ledger").text
    assert f'<a href="/studies/{trained}">{trained}</a>' in ledger
    (link,) = re.findall(r'Next: <a href="([^"]+)">extend it</a>, with seeds 6\.', page)
    assert 'name="seeds" value="6"' in web.get(link).text, "the form has the next step"

    alone = web.get("/compare", params={"study": [trained]})
    assert alone.status_code == 422 and f"got only &#39;{trained}&#39;" in alone.text
    post(web, "/new", kind="compare", do="submit", name="table")
    other = web.get("/compare", params={"study": [trained, "table"]})
    assert other.status_code == 422 and "only searches can be set side by side" in other.text

    same = post(web, f"/studies/{trained}/extend", repeats="1")
    assert same.status_code == 422 and "no field differs from the study" in same.text
    fewer = post(web, f"/studies/{trained}/extend", seeds="1")
    assert fewer.status_code == 422 and "seeds can only be added at the end" in fewer.text
    more = post(web, f"/studies/{trained}/extend", seeds="0,1,2", repeats="1")
    assert more.status_code == 303
    assert web.get(f"/api/v1/studies/{trained}").json()["state"] == "queued"


@pytest.mark.slow
def test_a_page_listens_to_every_kind_of_event(web):
    every = ",".join(events.kinds())
    page = web.get("/").text
    assert f'data-kinds="{every}"' in page and f"&amp;kinds={every}" in page


@pytest.mark.slow
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


@pytest.mark.slow
def test_who_may_only_read_is_offered_nothing_else(guarded):
    guarded.headers["authorization"] = f"Bearer {guarded.secrets['ann']}"
    post(guarded, "/new", kind="run", do="submit", name="mine")
    assert "by ann" in guarded.get("/studies/mine").text and "/studies/mine/cancel" in guarded.get("/studies/mine").text
    guarded.headers["authorization"] = f"Bearer {guarded.secrets['board']}"
    page, listed = guarded.get("/studies/mine").text, guarded.get("/").text
    assert '<form method="post" action="/studies' not in page and "/change" not in page.replace("/changes", "")
    assert "<button disabled>Cancel</button>" in page and "Your token may only read." in page
    assert 'href="/new"' not in listed and "board</a><span>, reads" in listed
    refused = post(guarded, "/studies/mine/cancel")
    assert refused.status_code == 403 and "the token &#39;board&#39; may only read</p>" in refused.text
    assert '<nav aria-label="Pages">' in refused.text
    for do in ("submit", "plan"):
        answer = post(guarded, "/new", kind="run", do=do, name="other", points="7")
        assert (
            answer.status_code == 403
            and "may only read</p>" in answer.text
            and 'name="points" value="7"' in answer.text
        )
        assert re.search(r'value="submit" class="main" disabled>', answer.text)
    more = post(guarded, "/studies/mine/extend", points="9")
    assert more.status_code == 403 and 'name="points" value="9"' in more.text
    assert guarded.get("/api/v1/studies").json()["total"] == 1
    assert guarded.get("/api/v1/studies/mine").json()["state"] == "queued"


@pytest.mark.slow
def test_no_form_of_a_page_works_for_somebody_who_may_only_read(settings, secrets):
    own = replace(settings, tokens=secrets[1])
    with asking(own) as client, open_store(own.storage) as store:
        client.headers["authorization"] = f"Bearer {secrets[0]['ann']}"
        post(client, "/new", kind="run", do="submit", name="mine")
        client.headers["authorization"] = f"Bearer {secrets[0]['board']}"
        app = application(own, store, works=False)
        routes = (one for router in pages.routes(app.state.service) for one in router.routes)
        forms = [one.path for one in routes if "POST" in one.methods]
        assert len(forms) >= 7
        for path in {*forms} - {"/sign-in", "/sign-out"}:
            answer = post(client, path.replace("{name}", "mine"), confirm="mine", seeds="9", name="other")
            assert answer.status_code == 403 and "may only read" in answer.text, path
            assert answer.headers["content-type"].startswith("text/html"), path
        assert client.get("/api/v1/studies").json()["total"] == 1 and len(store.queue.changes(10)) == 1


@pytest.mark.slow
def test_addresses_of_forms_lead_to_the_page_that_has_them(web):
    post(web, "/new", kind="run", do="submit", name="mine")
    for path, to in (("extend", "/change"), ("delete", "/change"), ("labels", "/change"), ("resume", "")):
        answer = web.get(f"/studies/mine/{path}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/studies/mine{to}")
    assert web.get("/api/v1/studies/mine").json()["state"] == "queued"


@pytest.mark.slow
def test_what_was_typed_stays_when_the_kind_changes(web):
    answer = web.get("/new?kind=run&name=mine&seeds=4&points=&switch=compare", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/new?kind=compare&name=mine&seeds=4")
    page = web.get(answer.headers["location"]).text
    assert re.search(r'name="name" value="mine"', page) and re.search(r'name="seeds" value="4"', page)
    assert '<button formmethod="get" formaction="/new" name="switch" value="compare" aria-current="true">' in page


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"search": "epsilon=1..0"}, "search"),
        ({"search": "epsilo=0..1", "points": "5"}, "search"),
        ({"dataset": "permuted_digit"}, "dataset"),
        ({"cv_tasks": "9", "tasks": "4"}, "cv_tasks"),
        ({"batch_size": "5000"}, "batch_size"),
        ({"seeds": "1,1"}, "seeds"),
    ],
)
def test_an_error_marks_the_field_that_it_is_about(web, typed, field):
    answer = post(web, "/new", kind="run", do="submit", name="mine", **typed)
    assert answer.status_code == 422
    assert re.findall(r'name="(\w+)"[^>]*aria-invalid="true"', answer.text) == [field]
    assert f'<a href="#f-{field}">' in answer.text


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_form_speaks_no_command_line_and_has_numbers_for_defaults(web, kind):
    page = web.get(f"/new?kind={kind}").text
    for text in re.findall(r'<p class="help"[^>]*>([^<]+)</p>|placeholder="([^"]*)"', page):
        assert "--" not in "".join(text) and "`" not in "".join(text), text
    assert re.search(r'name="seeds"[^>]*placeholder="0,1,2,3,4,5 on permuted_digits"', page)
    other = web.get(f"/new?kind={kind}&dataset=split_cifar").text
    assert re.search(r'name="batch_size"[^>]*placeholder="\d+ on split_cifar"', other)


@pytest.mark.slow
def test_a_finished_study_that_is_submitted_again_leads_to_its_page(trained, web):
    answer = post(web, "/new", do="submit", **{n: str(v) for n, v in ledgers.STUDY.items()}, name=trained, kind="run")
    assert answer.headers["location"] == f"/studies/{trained}?already=1", answer.text
    page = web.get(answer.headers["location"]).text
    assert pages.ALREADY[FINISHED] in page and ">finished</span>" in page
    assert pages.ALREADY[FINISHED] not in web.get(f"/studies/{trained}").text
    verdict = web.get(f"/api/v1/studies/{trained}").json()["verdict"]["text"].split(":")[0]
    assert page.split('id="figures"')[0].count(verdict) == 1


@pytest.mark.slow
def test_what_failed_before_it_began_is_to_be_changed(settings, web):
    post(web, "/new", kind="run", do="submit", name="mine", points="7", seeds="0,1", priority="3")
    with open_store(settings.storage) as store:
        store.queue.fail("mine", "the data are not there")
    page = web.get("/studies/mine").text
    assert page.split('id="log"')[0].count("the data are not there") == 1
    assert '<p class="lead">priority 3</p>' in page and "No member was trained." in page and "curves" not in page
    assert "<button>Resume</button>" in page
    again = re.search(r'<a class="button main" href="([^"]+)">Change it: new study from these options</a>', page)
    form = web.get(again[1].replace("&amp;", "&")).text
    for name, value in (("points", "7"), ("seeds", "0,1"), ("name", ""), ("lr", "")):
        assert re.search(rf'name="{name}" value="{value}"', form), name


@pytest.mark.slow
def test_a_study_of_the_queue_says_what_is_before_it(web):
    for name in ("one", "two", "three"):
        post(web, "/new", kind="run", do="submit", name=name)
    assert "It waits in the queue: it is the next one." in web.get("/studies/one").text
    third = web.get("/studies/three").text
    assert "2 are before it." in third and 'Before it: <a href="/studies/one">one</a>, <a href="/studies/two">' in third


@pytest.mark.slow
def test_help_and_the_routes_of_the_api_are_there_for_people(web):
    text = web.get("/help").text
    for word in ("cohort", "member", "certificate", "interrupted", "Forgetting"):
        assert word in text
    page, schema = web.get("/api/v1").text, web.get("/api/v1/openapi.json").json()
    rows = re.findall(r"<code>(GET|POST|PUT|DELETE) ([^<]+)</code></th><td class=\"word\">([^<]+)</td>", page)
    known = {(method.upper(), path) for path, one in schema["paths"].items() for method in one}
    assert {(method, path) for method, path, _ in rows} == known and all(len(what) > 10 for _, _, what in rows)
    assert "curl -X POST &#39;http://127.0.0.1" in page and 'href="/api/v1"' in text


@pytest.mark.slow
def test_a_report_leads_back_to_the_study(trained, web):
    report = web.get(f"/studies/{trained}/report")
    assert '<nav aria-label="Service" ' in report.text and f'href="/studies/{trained}"' in report.text
    raw = web.get(f"/api/v1/studies/{trained}/report")
    assert "Service" not in raw.text.split("<header>")[0]
    assert report.headers["content-security-policy"] == raw.headers["content-security-policy"]


@pytest.mark.slow
def test_signing_in_leads_to_the_page_that_was_wanted(guarded):
    sent = guarded.get("/ledger?a=b", follow_redirects=False)
    assert sent.status_code == 303 and sent.headers["location"] == "/sign-in?next=%2Fledger%3Fa%3Db"
    page = guarded.get("/sign-in", params={"next": "/ledger?a=b"}).text
    assert 'name="next" value="/ledger?a=b"' in page and "<nav" not in page
    wrong = post(guarded, "/sign-in", token="nobody's", next="/ledger")
    assert wrong.status_code == 401 and "Unknown token" in wrong.text
    right = post(guarded, "/sign-in", token=guarded.secrets["ann"], next="/ledger")
    assert right.headers["location"] == "/ledger"
    assert guarded.get("/ledger").status_code == 200
    post(guarded, "/sign-out")
    assert guarded.get("/ledger", follow_redirects=False).status_code == 303
    for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example", "evil"):
        answer = post(guarded, "/sign-in", token=guarded.secrets["ann"], next=elsewhere)
        assert answer.headers["location"] == "/"


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_request_from_elsewhere_asks_again_from_a_page_of_ours(guarded):
    """A strict cookie does not come along from a report, which has no origin; what comes from us brings it."""
    cross = guarded.get("/ledger?a=<b>", headers={"Sec-Fetch-Site": "cross-site"}, follow_redirects=False)
    assert cross.status_code == 200 and '<meta http-equiv="refresh" content="0">' in cross.text
    assert "<b>" not in cross.text and "Ledger" not in cross.text
    again = guarded.get("/ledger", headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=False)
    assert again.status_code == 303 and again.headers["location"].startswith("/sign-in")
