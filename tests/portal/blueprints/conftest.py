"""A cluster, people who write and fill out blueprints, and one blueprint."""

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from cluster import runtime
from jobs.blueprints import operations
from tests import fleet_rows
from tests.portal.blueprints.world import source


@pytest.fixture
def fleet(db):
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    yield cluster
    runtime.use(None)


@pytest.fixture
def people(fleet, make_user):
    made = {name: make_user(name) for name in ("lena", "omar", "mei")}
    made["boss"] = make_user("boss", staff=True)
    group = Group.objects.create(name="vision")
    made["mei"].groups.add(group)
    return made


@pytest.fixture
def as_(people):
    def client(name):
        made = Client()
        made.force_login(people[name], "django.contrib.auth.backends.ModelBackend")
        return made

    return client


@pytest.fixture
def train(people):
    return operations.create(people["lena"], source())
