"""What people meet who come by an address for which they have no key."""

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db


def test_the_pages_of_the_api_and_of_the_admin_lead_to_the_sign_in(client):
    for name in ("api:docs", "admin:index"):
        answer = client.get(reverse(name), follow=True)
        assert answer.redirect_chain[-1][0] == f"{reverse('login')}?next={reverse(name)}"


def test_the_admin_tells_who_is_no_staff_so(client, make_user):
    client.force_login(make_user("ivo"), "django.contrib.auth.backends.ModelBackend")
    answer = client.get(reverse("admin:index"), follow=True)
    assert answer.status_code == 403
    assert "You may not do this" in answer.content.decode()


def test_staff_come_in(client, make_user):
    client.force_login(make_user("lena", staff=True), "django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse("admin:index")).status_code == 200
    assert client.get(reverse("api:docs")).status_code == 200
