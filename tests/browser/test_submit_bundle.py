"""A text of other things than one Job is applied, by the same keys."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from cluster import runtime
from cluster.kinds import QUEUE
from tests import fleet_rows
from tests.browser.conftest import Server

QUEUES = "\n---\n".join(
    f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{weight: 2}}"
    for name in ("day-4x8", "night")
)


def test_ctrl_enter_applies_several_objects(page: Page, server: Server, sign_in: Callable):
    sign_in(staff=True)
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    try:
        page.goto(f"{server.url}/submit/")
        page.locator(".cm-content").click()
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(QUEUES)
        expect(page.get_by_role("button", name="Apply all")).to_be_visible()
        expect(page.locator(".acts .go")).to_be_hidden()
        page.locator(".cm-content").press("Control+Enter")
        expect(page.get_by_role("heading", name="2 objects applied")).to_be_visible()
        assert cluster.get(QUEUE, "day-4x8")["spec"]["weight"] == 2
    finally:
        runtime.use(None)
