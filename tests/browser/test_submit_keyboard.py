"""The whole way to a submitted job by keyboard alone: form, faults, YAML, dry run, submit; and a blueprint filled out."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from cluster import runtime
from cluster.kinds import JOB
from jobs.blueprints import definition, operations
from tests import fleet_rows
from tests.browser.conftest import Server

MOST = 120


@pytest.fixture
def fleet() -> Iterator[object]:
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    yield cluster
    runtime.use(None)


def tab_to(page: Page, target: str, key: str = "Tab") -> None:
    """Press Tab until the element has the focus, as somebody without a mouse would."""
    for _step in range(MOST):
        if page.evaluate("(target) => document.activeElement?.matches(target) ?? false", target):
            return
        page.keyboard.press(key)
    raise AssertionError(f"the keyboard does not reach {target}")


def write(page: Page, target: str, text: str) -> None:
    tab_to(page, target)
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def test_a_job_is_written_mended_and_submitted_by_keyboard(page: Page, server: Server, sign_in: Callable, fleet):
    sign_in("lena", staff=False)
    page.goto(f"{server.url}/")
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Submit job")).to_be_visible()
    tab_to(page, "[value=shape-gang]")
    page.keyboard.press("Enter")
    expect(page.locator("#f-name")).to_have_value("gang-1")
    write(page, "#f-name", "by-hand")
    write(page, "#f-tasks-0-gpus", "64")
    expect(page.locator("#e-f-tasks-0-gpus")).to_contain_text("asks 64 GPUs")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("2")
    expect(page.locator("#e-f-tasks-0-gpus")).to_be_hidden()
    tab_to(page, "#more-0 > summary")
    page.keyboard.press("Enter")
    write(page, "#f-tasks-0-env", "LR=0.1")
    expect(page.locator(".cm-content")).to_contain_text("LR")
    expect(page.locator("#f-tasks-0-gpus")).to_have_class("ba-in num chgin")
    expect(page.locator(".cm-line.chg", has_text="nvidia.com/gpu: 2").first).to_be_visible()
    write(page, "#f-min_available", "9")
    expect(page.locator("#e-f-min_available")).to_contain_text("9 is above")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#check")).to_contain_text("to mend")
    write(page, "#f-min_available", "4")
    expect(page.locator("#dry-run")).to_contain_text("copy of the cluster")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="by-hand")).to_be_visible()
    spec = fleet.get(JOB, "by-hand", "default")["spec"]["tasks"][0]["template"]["spec"]
    assert spec["containers"][0]["env"] == [{"name": "LR", "value": "0.1"}]


def test_the_keyboard_leaves_the_yaml_editor_again(page: Page, server: Server, sign_in: Callable, fleet):
    sign_in("lena", staff=False)
    page.goto(f"{server.url}/submit/?shape=single")
    tab_to(page, ".cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("# by hand\n")
    tab_to(page, "#check button", "Tab")
    page.keyboard.press("Shift+Tab")
    expect(page.locator("#yaml")).to_have_value(re.compile("# by hand"))


def test_a_blueprint_is_filled_out_by_keyboard(page: Page, server: Server, sign_in: Callable, fleet):
    user = sign_in("lena", staff=False)
    operations.create(user, definition.example("train"))
    page.goto(f"{server.url}/submit/")
    tab_to(page, "a[href='/blueprints/']")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Blueprints")).to_be_visible()
    tab_to(page, "a[href='/blueprints/train/']")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="PyTorch, several nodes")).to_be_visible()
    write(page, "#p-workers", "99")
    expect(page.locator("#e-p-workers")).to_contain_text("must be 16 or less")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("3")
    expect(page.locator("#e-p-workers")).to_be_hidden()
    expect(page.locator("#yaml-side")).to_contain_text("replicas: 3")
    write(page, "#f-name", "filled")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="filled")).to_be_visible()
    assert fleet.get(JOB, "filled", "default")["spec"]["minAvailable"] == 4
