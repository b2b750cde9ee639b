"""Looking at what plugins made, for the tests beside this."""

import base64

from cluster.kinds import COMMAND, CONFIG_MAP, EVENT, JOB, NETWORK_POLICY, SECRET, SERVICE
from cluster.objects import name
from tests.jobs.world import command, job, task

ALL = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)


def names(world, *kinds):
    return {f"{kind.kind}/{name(obj)}" for kind in kinds or ALL for obj in world.cluster.list(kind).items}


def submit(world, title="lm", *tasks, **plugins):
    roles = tasks or (task("master", 1), task("worker", 2))
    return world.cluster.create(JOB, job(title, *roles, plugins=plugins))


def find(world, kind, title):
    return world.cluster.get(kind, title, "default")


def files(world, title="lm-ssh"):
    return {key: base64.b64decode(value).decode() for key, value in find(world, SECRET, title)["data"].items()}


def ask(world, made, action):
    world.cluster.create(COMMAND, command(made, action))


def told(world, reason="PluginError"):
    return [event["message"] for event in world.cluster.list(EVENT).items if event["reason"] == reason]


def resources(world, title="lm"):
    return find(world, JOB, title)["status"].get("controlledResources", {})
