"""What is answered: to who asks for something, and to who asks why something waits."""

from __future__ import annotations

import re
from typing import Any

from django.utils import translation

from cluster.kinds import JOB
from jobs import held, reasons
from portal.scenario.expect.base import check
from portal.scenario.world import World


@check
def accepted(world: World, value: list[str]) -> list[str]:
    """Whose last creation or edit was taken."""
    return [f"{name}: {_answer(world, name)}" for name in value if world.answers.get(name, "") is not None]


@check
def refused(world: World, value: list[str]) -> list[str]:
    """Whose last creation or edit was refused."""
    return [f"{name}: {_answer(world, name)}" for name in value if not world.answers.get(name)]


@check
def message_names(world: World, value: list[str]) -> list[str]:
    """Words in the message of the last refusal."""
    message = str(world.refusal) if world.refusal else ""
    return [f"the last refusal does not name {word}: {message or 'there was none'}" for word in value if word not in message]


def _answer(world: World, name: str) -> str:
    if name not in world.answers:
        return "nothing was asked"
    error = world.answers[name]
    return "was taken" if error is None else f"was refused: {error}"


@check
def reason(world: World, value: dict[str, dict[str, Any]]) -> list[str]:
    """Numbers and words in the English text that says why a job or a pod waits."""
    found = []
    for job, asked in value.items():
        text = explain(world, job)
        for each in [*asked.get("numbers", ()), *asked.get("words", ())]:
            choices = each if isinstance(each, list) else [each]
            if not any(_occurs(choice, text) for choice in choices):
                found.append(f"the reason of {job} does not say {' or '.join(choices)}: {text or 'there is none'}")
    return found


def _occurs(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-]|\.\w)", text, re.IGNORECASE) is not None


def explain(world: World, job: str) -> str:
    """What the job's page says about why it waits."""
    verdict = world.verdict(job)
    found = verdict.as_dict() if verdict else held.verdict(world.find(JOB, job))
    if found is None:
        return ""
    with translation.override("en"):
        return " ".join([f"{reasons.say(found)}.", *filter(None, reasons.headline(found))])
