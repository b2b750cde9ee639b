"""Rights are looked at again while a socket is open: whoever lost one loses the stream, within two looks."""

import asyncio

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from knox.models import AuthToken

from cluster.access import policy
from cluster.projection import Batch, notify
from jobs.models import Job
from jobs.projection import project_jobs
from portal.live import consumer
from portal.policy import StaffPolicy
from tests.portal import objects as make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services, pytest.mark.asyncio]
LONGEST = 30
"""Seconds for which somebody may still hear what is not for them any more."""


class ByGroup(StaffPolicy):
    """Jobs are seen by the group that is called as their queue."""

    def visible(self, user, queryset):
        rows = super().visible(user, queryset)
        return rows.filter(queue__in=self._groups(user)) if queryset.model is Job else rows

    def may(self, user, action, obj=None):
        return (action != "scheduler.view" and super().may(user, action, obj)) or bool(user and user.is_staff)

    def rights(self, user):
        return ",".join(self._groups(user))

    def _groups(self, user):
        if not hasattr(user, "its_groups"):
            user.its_groups = sorted(user.groups.values_list("name", flat=True))
        return user.its_groups


@database_sync_to_async
def person(name="ada", groups=(), **more):
    user = get_user_model().objects.create_user(name, **more)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    user.its_groups = sorted(groups)
    return user


@pytest.fixture
def by_group(settings):
    settings.BASALT_POLICY = "tests.portal.test_live_rights.ByGroup"
    policy.cache_clear()


@pytest.fixture(autouse=True)
def _look_often(monkeypatch):
    assert 2 * consumer.CHECK <= LONGEST
    monkeypatch.setattr(consumer, "CHECK", 0.1)


@pytest.fixture
async def one_job(transactional_db):
    await database_sync_to_async(lambda: project_jobs(Batch([make.job()])))()
    await asyncio.sleep(0.25)


async def watching(open_page, user, topic="jobs", **more):
    page = await open_page(user, **more)
    assert await page.connect()
    await page.ask(topic=topic, uids=["uid-train"])
    return page, await page.hear()


async def closed(page):
    return (await page.receive_output(3))["code"]


@database_sync_to_async
def change(user, **values):
    get_user_model().objects.filter(pk=user.pk).update(**values)


@database_sync_to_async
def sign_out(page):
    cookie = dict(page.scope["headers"])[b"cookie"].decode()
    client = Client(headers={"cookie": cookie, "host": "localhost"})
    assert client.post("/sign-out/").status_code == 302


async def test_a_user_who_is_locked_loses_the_stream(open_page, one_job):
    page, _ = await watching(open_page, ada := await person())
    await change(ada, is_active=False)
    assert await closed(page) == consumer.SIGNED_OUT


async def test_signing_out_ends_the_stream_of_every_page_of_that_session(open_page, one_job):
    page, _ = await watching(open_page, await person())
    await sign_out(page)
    assert await closed(page) == consumer.SIGNED_OUT


async def test_a_new_password_ends_the_streams_of_older_sessions(open_page, one_job):
    page, _ = await watching(open_page, ada := await person())
    await database_sync_to_async(lambda: (ada.set_password("another one"), ada.save()))()
    assert await closed(page) == consumer.SIGNED_OUT


async def test_the_token_of_a_locked_user_ends(open_page, one_job):
    ada = await person()
    token = (await database_sync_to_async(AuthToken.objects.create)(ada))[1]
    page, _ = await watching(open_page, None, token=token)
    await change(ada, is_active=False)
    assert await closed(page) == consumer.SIGNED_OUT


async def test_a_job_of_others_is_not_there_by_list_or_by_name(open_page, by_group, one_job):
    ada = await person(groups=["another"])
    for topic in ("jobs", "job:uid-train"):
        _, first = await watching(open_page, ada, topic)
        assert (first["changed"], first["gone"], first.get("pods", [])) == ([], ["uid-train"], [])


@pytest.mark.parametrize("topic", ["jobs", "job:uid-train"])
async def test_who_leaves_a_group_is_told_that_its_jobs_are_gone_and_nothing_more(open_page, by_group, one_job, topic):
    page, first = await watching(open_page, ada := await person(groups=["default"]), topic)
    assert [row["name"] for row in first["changed"]] == ["train"]
    await database_sync_to_async(ada.groups.clear)()
    after = await page.hear()
    assert (after["changed"], after["gone"]) == ([], ["uid-train"])
    await database_sync_to_async(notify)("jobs", ["uid-train"])
    assert (await page.hear())["changed"] == []


async def test_who_comes_into_a_group_is_told_its_jobs(open_page, by_group, one_job):
    page, first = await watching(open_page, ada := await person(groups=["another"]))
    assert first["changed"] == []
    await database_sync_to_async(lambda: ada.groups.add(Group.objects.create(name="default")))()
    assert [row["name"] for row in (await page.hear())["changed"]] == ["train"]


async def test_a_topic_that_is_not_for_this_rank_any_more_ends(open_page, by_group, one_job):
    page, first = await watching(open_page, ada := await person(is_staff=True), "scheduler")
    assert first["type"] == "snapshot"
    await change(ada, is_staff=False)
    told = await page.hear()
    assert (told["type"], told["topic"], told["detail"]) == ("error", "scheduler", "you may not see this any more")


async def test_a_topic_of_another_rank_is_refused(open_page, by_group, one_job):
    _, told = await watching(open_page, await person(), "scheduler")
    assert (told["type"], told["detail"]) == ("error", "you may not see this")
