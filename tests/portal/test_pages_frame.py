"""The frame and the overview: sign-in, preferences, errors, figures."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from cluster.models import Node
from jobs.choices import JobPhase
from portal import figures
from portal.vendor import FILES, VendorFinder
from tests import factories as make

pytestmark = pytest.mark.django_db(databases="__all__")
PASSWORD = "sesame open"


def test_sign_in_leads_to_where_one_wanted(client: Client, make_user):
    make_user("ada")
    wanted = reverse("jobs:list")
    page = client.get(wanted, follow=True)
    assert f'name="next" value="{wanted}"' in page.content.decode()
    response = client.post(reverse("login"), {"username": "ada", "password": PASSWORD, "next": wanted})
    assert response["Location"] == wanted


def test_sign_in_never_leads_to_another_site(client: Client, make_user):
    make_user("ada")
    response = client.post(reverse("login"), {"username": "ada", "password": PASSWORD, "next": "https://evil.example/"})
    assert response["Location"] == reverse("overview")


def test_a_wrong_password_is_said_and_the_name_kept(client: Client, make_user):
    make_user("ada")
    html = client.post(reverse("login"), {"username": "ada", "password": "no"}).content.decode()
    assert 'role="alert"' in html
    assert 'value="ada"' in html


def test_signing_out_takes_a_post(client: Client, ada):
    assert client.get(reverse("logout")).status_code == 405
    assert client.post(reverse("logout"))["Location"].startswith(reverse("login"))
    assert client.get(reverse("overview")).status_code == 302


@pytest.mark.parametrize(("theme", "kept"), [("dark", "dark"), ("light", "light"), ("<script>", None), ("", None)])
def test_theme_is_kept_in_a_cookie_and_rendered_by_the_server(client: Client, ada, theme: str, kept: str | None):
    response = client.post(reverse("theme"), {"theme": theme, "next": "/jobs/"})
    assert response["Location"] == "/jobs/"
    assert (client.cookies["theme"].value if "theme" in client.cookies else None) == kept
    html = client.get(reverse("overview")).content.decode()
    assert f'data-bs-theme="{kept or "light"}"' in html
    assert ("data-theme-chosen" in html.split(">", 2)[1]) == (kept is not None)


def test_a_forged_theme_cookie_is_not_rendered(client: Client, ada):
    client.cookies["theme"] = '"><script>'
    assert 'data-bs-theme="light"' in client.get(reverse("overview")).content.decode()


def test_theme_never_leads_to_another_site(client: Client, ada):
    assert client.post(reverse("theme"), {"theme": "dark", "next": "//evil.example"})["Location"] == "/"


def test_language_switch_works_without_a_script(client: Client, ada):
    client.post(reverse("set_language"), {"language": "zh-hans", "next": "/"})
    html = client.get(reverse("overview")).content.decode()
    assert '<html lang="zh-hans"' in html
    assert 'value="zh-hans" lang="zh-Hans" aria-pressed="true"' in html


def test_times_are_shown_in_the_readers_zone(client: Client, ada):
    moment = make.now().replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=3)
    make.save([job := make.job("one", created_at=moment)])
    url = reverse("jobs:detail", args=(job.uid,))
    client.cookies["tz"] = "Asia/Shanghai"
    assert f"{moment:%Y-%m-%d} 20:00:00" in client.get(url).content.decode()
    client.cookies["tz"] = "../../etc/passwd"
    assert f"{moment:%Y-%m-%d} 12:00:00" in client.get(url).content.decode()


def test_error_pages_have_the_right_status_and_need_nobody(client: Client, settings):
    response = client.get("/nowhere/", follow=True)
    assert response.redirect_chain or response.status_code == 404
    client.raise_request_exception = False
    from portal import views

    for view, status in ((views.server_error, 500), (views.not_found, 404), (views.forbidden, 403), (views.csrf_failure, 403)):
        from django.test import RequestFactory

        response = view(RequestFactory().get("/x/"))
        assert response.status_code == status
        assert b"Basalt" in response.content


def test_scripts_are_files_or_carry_the_nonce(client: Client, ada):
    response = client.get(reverse("overview"))
    html = response.content.decode()
    policy = response["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-eval" not in policy
    for tag in re.findall(r"<script([^>]*)>", html):
        assert "src=" in tag or "nonce=" in tag or 'type="application/json"' in tag
    assert not re.search(r"\son\w+=", html)
    assert "//cdn" not in html


def test_every_vendor_file_is_installed_and_nothing_else_is_found():
    finder = VendorFinder()
    if not finder.find("vendor/tabler.min.css"):
        pytest.skip("npm ci was not run")
    assert {name for name, _storage in finder.list(None)} == set(FILES)
    assert all(finder.find(f"vendor/{name}") for name in FILES)
    for name in ("vendor/package.json", "vendor/../package.json", "vendor/@tabler/core/package.json", "tabler.min.css"):
        assert finder.find(name) == []


def test_overview_costs_the_same_queries_however_much_there_is(client: Client, ada, django_assert_max_num_queries):
    make.fleet()
    make.save(make.many_jobs(5))
    with django_assert_max_num_queries(27) as few:
        client.get("/")
    make.save(make.many_jobs(400, seed=8))
    with django_assert_max_num_queries(len(few.captured_queries)):
        assert client.get("/").status_code == 200


def test_empty_overview_offers_the_first_steps(client: Client, ada, make_user):
    html = client.get("/").content.decode()
    assert "Submit the first job" in html
    assert "Start a sample workload" not in html
    client.force_login(make_user("boss", staff=True), "django.contrib.auth.backends.ModelBackend")
    html = client.get("/").content.decode()
    assert "Start a sample workload" in html
    make.save([make.job("one")])
    assert "Submit the first job" not in client.get("/").content.decode()


def test_overview_ranks_what_needs_somebody_and_ends_each_in_an_action(client: Client, ada):
    make.fleet()
    make.save(
        [
            make.job("never", verdict=make.verdict(code="pod.too_large", asked=12_000, limit=8000)),
            make.job("broke", phase=JobPhase.FAILED, finished_at=make.now()),
            make.job("waits", verdict=make.verdict(), created_at=make.now() - timedelta(hours=2)),
            make.job("patient", verdict=make.verdict(), created_at=make.now()),
        ]
    )
    html = client.get("/").content.decode()
    listed = re.search(r'<ul class="attn">(.*?)</ul>', html, re.S)[1]
    titles = re.findall(r"<b>([^<]*)</b>", listed)
    assert titles == ["never can never start", "1 unhealthy GPU", "n-030 is not ready", "broke failed", "waits"]
    assert listed.count("<li>") == len(re.findall(r'<a href="[^"]+" class="nowrap">[^<]+</a>', listed))


def test_an_unknown_range_leads_to_the_default(client: Client, ada):
    assert client.get("/?range=1y")["Location"] == "/"


def test_headline_counts_what_the_pages_list(ada):
    make.save([make.node("n-000", 8), make.node("n-001", 8, gpu_unhealthy=[1]), make.node("n-002", 8, cordoned=True)])
    running = make.job("r", phase=JobPhase.RUNNING, running=2, started_at=make.now())
    waits = [make.job(f"w{i}", gpus=4) for i in range(3)]
    ended = [
        make.job("f", phase=JobPhase.FAILED, finished_at=make.now()),
        make.job("c", phase=JobPhase.COMPLETED, finished_at=make.now()),
    ]
    gone = make.job("gone", phase=JobPhase.RUNNING, running=9, deleted_at=make.now())
    make.save([running, *waits, *ended, gone], make.pods(running, 2, node="n-000", gpus=[0, 1]))
    shown = figures.headline(ada)
    assert (shown.gpus_total, shown.gpus_free) == (24, 13)
    assert (shown.jobs_running, shown.pods_running) == (1, 2)
    assert (shown.jobs_waiting, shown.gpus_waiting) == (3, 12)
    assert (shown.jobs_failed, shown.jobs_ended) == (1, 2)
    assert shown.wait_median == pytest.approx(1200, abs=5)


def test_headline_without_anything_knows_no_wait(ada):
    shown = figures.headline(ada)
    assert shown.wait_median is None
    assert shown.gpus_total == 0


def test_health_counts_machines_and_faults():
    make.save(
        [make.node("a"), make.node("b", ready=False), make.node("c", gpu_unhealthy=[0, 3]), make.node("d", deleted_at=make.now())]
    )
    assert figures.health() == figures.Health(nodes=3, ready=2, faults=2)
    assert Node.objects.count() == 4


def test_the_overview_renews_its_lists_alone(client: Client, ada, django_assert_max_num_queries):
    make.save([make.job("broke", phase=JobPhase.FAILED, finished_at=make.now())])
    with django_assert_max_num_queries(12):
        html = client.get("/?part=side", headers={"HX-Request": "true"}).content.decode()
    assert "broke failed" in html
    assert "<html" not in html
    assert 'id="attention"' in html
    assert 'hx-swap-oob="true"' in html


def test_without_machines_every_page_says_so_and_how_to_add_some(client: Client, ada):
    for page in ("overview", "cluster:nodes", "cluster:gpus"):
        html = client.get(reverse(page)).content.decode()
        assert "No machines yet" in html
        assert "--fleet demo" in html


def test_who_has_no_script_reads_what_is_free_by_spine(client: Client, ada):
    make.save([make.node(name, gpus=2, rack="", spine=spine) for name, spine in (("a", ""), ("b", "s1"), ("c", "s1"))])
    assert client.get(reverse("overview")).context["spines"] == [("", 2, 2), ("s1", 4, 4)]


def test_the_failed_of_a_day_are_those_that_its_link_lists(client: Client, ada):
    ages = {"fresh": 1, "older": 23, "old": 25}
    for name, hours in ages.items():
        end = make.now() - timedelta(hours=hours)
        make.save([make.job(name, phase=JobPhase.FAILED, finished_at=end, deleted_at=end if name == "older" else None)])
    html = client.get(reverse("overview")).content.decode()
    link = re.search(r'href="([^"]*)"><div class="l">Failed, 24 h', html)
    assert link is not None
    page = client.get(link[1].replace("&amp;", "&"))
    assert {job.name for job in page.context["page"].object_list} == {"fresh", "older"}
    assert figures.headline(ada).jobs_failed == 2


def test_figures_are_worded_for_one_and_for_many(client: Client, ada):
    make.save([make.job("one", phase=JobPhase.RUNNING, running=1)])
    html = client.get(reverse("overview")).content.decode()
    assert ">in 1 pod</span>" in html
    assert 'data-many="in %(n)s pods"' in html
    assert "Why jobs are pending" in html


def test_who_is_signed_in_meets_errors_inside_the_frame(client: Client, ada):
    assert 'class="ba-top"' in client.get("/nowhere/").content.decode()
    client.logout()
    assert 'class="ba-top"' not in client.get("/nowhere/").content.decode()


def test_the_admin_names_things_in_the_readers_language(client: Client, make_user):
    client.force_login(get_user_model().objects.create_superuser("root"), "django.contrib.auth.backends.ModelBackend")
    html = client.get("/admin/").content.decode()
    assert all(word in html for word in ("Login attempts", "API tokens", "Users and groups"))
    client.cookies["django_language"] = "zh-hans"
    assert "\u767b\u5f55\u5c1d\u8bd5" in client.get("/admin/").content.decode()


@pytest.mark.parametrize(("chosen", "drawn"), [("dark", 'class="dark"'), ("light", 'class="light"'), ("pink", "")])
def test_the_admin_follows_the_theme(client: Client, chosen: str, drawn: str):
    client.force_login(get_user_model().objects.create_superuser("root"), "django.contrib.auth.backends.ModelBackend")
    client.cookies["theme"] = chosen
    head = client.get("/admin/").content.decode().split("<head>")[0]
    assert drawn in head
    assert drawn or not re.search(r'<html[^>]*class="', head)
