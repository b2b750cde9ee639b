"""REST for tests: a client of one user, a manifest, and what a refusal has."""

import json

from django.test import Client

from tests.portal import objects as make
from tests.portal.conftest import PASSWORD


class Api:
    """A REST client of one user."""

    def __init__(self, user=None):
        self.client = Client(enforce_csrf_checks=True)
        self.headers = {}
        if user is not None:
            answer = self.post("auth/login", {"username": user.username, "password": PASSWORD})
            assert answer.status_code == 200, answer.content
            self.headers = {"Authorization": f"Token {answer.json()['token']}"}

    def get(self, path, **query):
        return self.client.get(path if path.startswith("/") else f"/api/v1/{path}", query, headers=self.headers)

    def post(self, path, body="", content_type="application/json", **headers):
        sent = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.client.post(f"/api/v1/{path}", sent, content_type, headers=self.headers | headers)

    def delete(self, path):
        return self.client.delete(f"/api/v1/{path}", headers=self.headers)

    def patch(self, path, body):
        return self.client.patch(f"/api/v1/{path}", json.dumps(body), "application/json", headers=self.headers)


def manifest(name="train", **spec):
    job = make.job(name)
    return {"apiVersion": job["apiVersion"], "kind": "Job", "metadata": {"name": name}, "spec": job["spec"] | spec}


def problem(answer, status):
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert {"type", "title", "status", "detail"} <= set(body)
    assert body["status"] == status
    return body
