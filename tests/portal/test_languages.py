"""Who asks for Chinese is answered in Chinese, also by what Django and REST framework say of themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import translation

from cluster import runtime
from cluster.rows import event_row
from cluster.said import packed, said
from portal.simulations.names import DEFAULT, IN_FORCE, named
from tests import factories as make
from tests.portal.rest import Api, manifest
from tests.portal.test_one_language import SENTENCE

pytestmark = pytest.mark.django_db(databases="__all__")
CHINESE = re.compile("[一-鿿]")
TWO_WORDS = re.compile(r"(?:\b[a-z][a-z']+ ){2,}[a-z]+")
BODY = "application/json"


def ask(api: Api, method: str, path: str, body: Any = None, content_type: str = BODY, **headers: str) -> Any:
    sent = body if isinstance(body, (str, bytes)) else json.dumps(body if body is not None else {})
    given = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5", **api.headers, **headers}
    call = getattr(api.client, method)
    address = path if path.startswith("/") else f"/api/v1/{path}"
    return call(address, headers=given) if method == "get" else call(address, sent, content_type, headers=given)


@pytest.fixture
def api(make_user: Any, cluster: Any) -> Any:
    runtime.use(cluster)
    yield Api(make_user("zhou", staff=True))
    runtime.use(None)


def nobody(api: Api) -> Api:
    return Api()


REFUSALS: dict[str, tuple[int, Callable[[Api], Any]]] = {
    "no such object": (404, lambda api: ask(api, "get", "jobs/default/none")),
    "no such address": (404, lambda api: ask(api, "get", "nothing/here")),
    "not signed in": (401, lambda api: ask(nobody(api), "get", "jobs")),
    "a token that is none": (401, lambda api: ask(nobody(api), "get", "jobs", Authorization="Token abc")),
    "a wrong password": (401, lambda api: ask(nobody(api), "post", "auth/login", {"username": "zhou", "password": "no"})),
    "a method that is not there": (405, lambda api: ask(api, "delete", "queues")),
    "a type that is not read": (415, lambda api: ask(api, "post", "jobs", "x", "image/png")),
    "no body": (400, lambda api: ask(api, "post", "jobs", "")),
    "no yaml": (400, lambda api: ask(api, "post", "jobs", "a: 1\na: 2", "application/yaml")),
    "a filter that is none": (400, lambda api: ask(api, "get", "jobs?created_after=yesterday")),
    "a page that is none": (400, lambda api: ask(api, "get", "jobs?cursor=abc")),
    "a job with faults": (422, lambda api: ask(api, "post", "jobs", manifest("Bad Name", minAvailable=-1))),
    "a queue with faults": (
        422,
        lambda api: ask(api, "post", "queues", {
            "metadata": {"name": "q"}, "spec": {"deserved": {"cpu": "8"}, "capability": {"cpu": "4"}, "parent": "none"},
        }),
    ),
    "a queue that is not there": (404, lambda api: ask(api, "delete", "queues/none")),
    "a bundle": (400, lambda api: ask(api, "post", "apply", {"kind": "Nothing", "apiVersion": "v1"})),
    "an action that is none": (404, lambda api: ask(api, "post", "nodes/none/actions/paint")),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSALS)
def test_rest_refuses_in_the_language_that_is_asked_for(api: Any, what: str):
    status, call = REFUSALS[what]
    answer = call(api)
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Language"] == "zh-hans"
    body = answer.json()
    for text in (body["detail"], *(entry["detail"] for entry in body.get("errors", ()))):
        assert CHINESE.search(text), text
        assert not TWO_WORDS.search(text), text


def test_rest_speaks_english_to_who_asks_for_nothing(api: Any):
    assert api.get("jobs/default/none").json()["detail"] == "There is no Job default/none."


@pytest.mark.parametrize("path", ["/nowhere/", "/sign-in/"])
def test_pages_for_everybody_are_chinese(client: Client, path: str):
    page = client.get(path, headers={"Accept-Language": "zh-CN"}).getvalue().decode()
    assert '<html lang="zh-hans"' in page
    assert CHINESE.search(page)


def test_a_wrong_password_is_told_in_chinese(client: Client, make_user: Any):
    make_user("zhou")
    page = client.post("/sign-in/", {"username": "zhou", "password": "no"}, headers={"Accept-Language": "zh-CN"})
    assert "Please enter" not in page.getvalue().decode()
    assert not SENTENCE.search(re.sub(r"<script.*?</script>|<[^>]*>", " ", page.getvalue().decode(), flags=re.S))


def test_what_a_password_lacks_is_told_in_chinese(make_user: Any):
    user = get_user_model()(username="zhouzhou")
    with translation.override("zh-hans"):
        for password in ("1234", "password", "zhouzhou"):
            with pytest.raises(ValidationError) as caught:
                validate_password(password, user)
            assert all(CHINESE.search(text) for text in caught.value.messages)


def test_a_form_without_its_token_is_refused_in_chinese(make_user: Any):
    browser = Client(enforce_csrf_checks=True)
    page = browser.post("/sign-in/", {"username": "a", "password": "b"}, headers={"Accept-Language": "zh-CN"})
    assert page.status_code == 403
    assert not SENTENCE.search(re.sub(r"<script.*?</script>|<[^>]*>", " ", page.getvalue().decode(), flags=re.S))


EVENTS = ("/jobs/{uid}/", "/jobs/{uid}/?tab=events")


@pytest.mark.parametrize("path", EVENTS)
def test_events_of_ours_are_said_in_chinese_and_foreign_ones_are_marked_as_english(client: Client, make_user: Any, path: str):
    ours = said("claim %(name)r could not be made: %(error)s", name="data", error=said("%(name)s is being deleted", name="q"))
    job = make.job("train")
    told = make.event(job, "PVCError", str(ours), said=packed(ours))
    lying = make.event(job, "Lie", "all is <well>", said=packed(ours))
    make.save([job], [told, lying, make.event(job, "Pulled", "image is there")])
    client.force_login(make_user("zhou", staff=True), "django.contrib.auth.backends.ModelBackend")
    page = client.get(path.format(uid=job.uid), headers={"Accept-Language": "zh-CN"}).getvalue().decode()
    assert "申领 &#x27;data&#x27; 未能创建：q 正在删除" in page
    assert '<span lang="en">all is &lt;well&gt;</span>' in page
    assert '<span lang="en">image is there</span>' in page
    page = client.get(path.format(uid=job.uid)).getvalue().decode()
    assert "claim &#x27;data&#x27; could not be made: q is being deleted" in page
    assert 'lang="en">image' not in page


def test_rows_carry_what_an_event_says_in_each_language(make_user: Any):
    ours = said("created job %(name)s", name="a")
    told = make.event(make.job("train"), "Created", str(ours), said=packed(ours))
    assert event_row(told)["words"] == {"en": "created job a", "zh-hans": "已创建作业 a"}
    assert event_row(make.event(make.job("train"), "Pulled", "image"))["words"] == {"en": "image"}


def test_names_that_nobody_gave_are_the_readers(make_user: Any):
    with translation.override("zh-hans"):
        assert [named(name) for name in (IN_FORCE, DEFAULT, "mine")] == ["生效中", "Volcano 默认配置", "mine"]
    assert named(IN_FORCE) == "in force"
