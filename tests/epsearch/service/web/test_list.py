"""The list of studies as a lab uses it: mine, sorted, tagged; what is asked before a study is cancelled."""

import re
from dataclasses import replace

import httpx
import pytest

from tests.epsearch.service.web.conftest import serving
from tests.support.limits import HANGS
from tests.support.service import SECRETS, STUDY, TOKENS

API = "/api/v1"


def visitor(url, role):
    headers = {"accept": "text/html", "origin": url, "authorization": f"Bearer {SECRETS[role]}"}
    return httpx.Client(base_url=url, headers=headers, timeout=HANGS)


@pytest.fixture
def lab(settings):
    """A writer and a reader of a service with three studies of the writer and one of an admin; nothing is trained."""
    with (
        serving(replace(settings, tokens=TOKENS)) as url,
        visitor(url, "write") as writer,
        visitor(url, "read") as reader,
        visitor(url, "admin") as admin,
    ):
        for number, (owner, name) in enumerate(((writer, "b"), (writer, "c"), (writer, "a"), (admin, "d"))):
            answer = owner.post(f"{API}/studies", json=STUDY | {"name": name, "points": 3 + 2 * number})
            assert answer.status_code == 201
        yield writer, reader


def listed(page):
    return re.findall(r'<tr id="study-([^"]+)"', page)


@pytest.mark.slow
def test_mine_are_a_click_away(lab):
    writer, _ = lab
    page = writer.get("/").text
    (mine,) = re.findall(r'<a href="([^"]+)"[^>]*>Mine</a>', page)
    assert listed(page) == ["d", "a", "c", "b"] and listed(writer.get(mine).text) == ["a", "c", "b"]


@pytest.mark.slow
def test_headers_sort_by_links(lab):
    writer, _ = lab
    page = writer.get("/").text
    by = re.search(r'<th scope="col"><a href="(/\?[^"]*sort=name[^"]*)">Study</a>', page)[1]
    page = writer.get(by.replace("&amp;", "&")).text
    assert listed(page) == ["a", "b", "c", "d"] and re.search(r'aria-sort="ascending"><a href="[^"]*">Study', page)
    by = re.search(r'aria-sort="ascending"><a href="(/\?[^"]*)">Study', page)[1]
    assert listed(writer.get(by.replace("&amp;", "&")).text) == ["d", "c", "b", "a"]
    assert writer.get("/?sort=size").status_code == 422


@pytest.mark.slow
def test_tags_and_notes(lab):
    writer, reader = lab
    saved = writer.post("/studies/b/labels", data={"tags": "paper, fig.3,paper", "notes": "<b>first</b>\r\nline"})
    assert saved.status_code == 303
    status = reader.get(f"{API}/studies/b/standing").json()
    assert (status["tags"], status["notes"]) == (["paper", "fig.3"], "<b>first</b>\nline")
    page = reader.get("/studies/b").text
    assert "&lt;b&gt;first&lt;/b&gt;\nline" in page and '<a class="tag" href="/?tag=fig.3">fig.3</a>' in page
    assert listed(reader.get("/?tag=paper").text) == ["b"] == listed(reader.get("/?tag=fig.3").text)
    assert [one["name"] for one in reader.get(f"{API}/studies?tag=paper").json()["studies"]] == ["b"]
    assert "label" in reader.get("/changes").text
    assert reader.post("/studies/b/labels", data={"tags": "mine"}).status_code == 403
    assert writer.post("/studies/d/labels", data={"tags": "mine"}).status_code == 403, "of another owner"
    for tags in ("a b", "x" * 41, ",".join("abcdefghijk"), "a/b"):
        wrong = writer.post("/studies/b/labels", data={"tags": tags, "notes": "kept"})
        assert wrong.status_code == 422 and f'value="{tags}"' in wrong.text and ">kept</textarea>" in wrong.text
    assert writer.put(f"{API}/studies/b/labels", json={"tags": []}).json()["tags"] == []
    assert listed(reader.get("/?tag=paper").text) == []


@pytest.mark.slow
def test_labels_go_with_the_study(lab):
    writer, _ = lab
    writer.put(f"{API}/studies/b/labels", json={"tags": ["old"]})
    writer.post(f"{API}/studies/b/cancel")
    assert writer.delete(f"{API}/studies/b?confirm=b").status_code == 200
    writer.post(f"{API}/studies", json=STUDY | {"name": "b"})
    assert writer.get(f"{API}/studies/b/standing").json()["tags"] == []


@pytest.mark.slow
def test_cancelling_is_asked_once(lab):
    writer, reader = lab
    (link,) = re.findall(r'<a class="button" href="([^"]+)">Cancel</a>', writer.get("/studies/b").text)
    page = writer.get(link).text
    assert "Cancel b?" in page and writer.get(f"{API}/studies/b/standing").json()["state"] == "queued"
    (action,) = re.findall(r'<form class="study" method="post" action="([^"]+)">', page)
    assert writer.post(action).status_code == 303
    assert writer.get(f"{API}/studies/b/standing").json()["state"] == "cancelled"
    assert writer.get(link).status_code == 303, "there is nothing to cancel"
    assert reader.get("/studies/c/cancel").status_code == 303 and "Cancel</a>" not in reader.get("/studies/c").text
