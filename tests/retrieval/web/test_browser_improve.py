"""Improving the search, and what other photos show of a photo, in a real browser."""

import json
import re
from typing import Any

import pytest

from tests.conftest import Indexed
from tests.retrieval.web.test_improve import LEFT
from tests.support.browser import DOT, Visit, chromium, visit  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB: dict[str, Any] = {
    **{"id": 7, "kind": "improve", "title": "Improve search for these photos", "about": "", "state": "running"},
    "step": "judge-queries",
    **{
        "title_of_step": "Evaluating: searches",
        "done": 30,
        "of": 60,
        "unit": "",
        "share": None,
        "seconds_left": 9.0,
        "result": None,
    },
    **{"error": None, "note": None, "added": LEFT["at"], "started": LEFT["at"], "ended": None},
}
ADDED = JOB | {"id": 6, "kind": "index", "state": "done", "result": {"added": 3, "seconds": {"total": 240.0}}}
DONE = JOB | {"state": "done", "ended": LEFT["at"], "result": LEFT}
STATE = {"photos": 9, "missing": 0, "foreign": False, "interrupted": False, "last": None, "picture": None}
DRAW = """async (number) => {
  const { objects } = await import("/static/js/photos/objects.js");
  const { photo } = await import("/static/js/api.js");
  const own = document.createElement("div");
  const panel = document.querySelector("#objects") ?? document.querySelector("#facts").parentElement.appendChild(own);
  await objects(document.querySelector(".box-canvas"), await photo(number), panel);
}"""


def test_the_button_is_followed_to_the_verdict(visit: Visit) -> None:  # noqa: F811
    jobs: list[Any] = [ADDED]
    states = [STATE]
    asked: list[Any] = []

    def answer(route: Any) -> None:
        if route.request.method == "POST":
            asked.append((route.request.post_data_json, route.request.headers.get("x-cairn")))
            jobs.append(JOB)
            route.fulfill(status=201, json=JOB)
        else:
            route.fulfill(json={"jobs": jobs})

    def tell(route: Any) -> None:
        text = json.dumps({"jobs": jobs})
        route.fulfill(content_type="text/event-stream", body=f"retry: 300\n\nevent: jobs\ndata: {text}\n\n")

    page = visit.page
    page.route("**/api/jobs", answer)
    page.route("**/api/jobs/events", tell)
    seen = {"photos": 70, "looked": 24, "alike": 1, "scenes": None, "enough": False}
    page.route("**/api/improve/look", lambda route: route.fulfill(json=seen))
    page.route("**/api/improve", lambda route: route.fulfill(json=states[-1]))
    page.route("**/api/improve/picture?*", lambda route: route.fulfill(content_type="image/svg+xml", body=DOT))
    visit.open("/improve")
    assert page.locator("#verdict").is_hidden()
    assert page.locator("#takes").text_content().startswith("For 9 photos this takes about 60 minutes.")
    page.get_by_text("Of 24 photos that were looked at, 1 shows the same thing as another.").wait_for()
    page.get_by_role("button", name="Improve search for these photos").press("Enter")
    page.get_by_text("Evaluating: searches").wait_for()
    assert asked == [({"kind": "improve"}, "1")] and page.locator("#begin").is_disabled()
    states.append(STATE | {"last": LEFT, "picture": "/api/improve/picture"})
    jobs[:] = [DONE]
    page.locator("#verdict").wait_for()
    assert page.locator("#sentence").text_content() == (
        "Search finds more now: of 8 searches, 3 find more than before and 1 less. All photos were read again with "
        "what was learnt."
    )
    assert page.get_by_role("heading", name="Found now, but not before").is_visible()
    assert page.locator("#gained a").get_attribute("href") == "/match?q=1:10,20,200,150&photo=2"
    assert not re.search("average precision|rootsift|inlier", page.locator("main").inner_text(), re.IGNORECASE)
    page.get_by_text("Details", exact=True).click()
    assert page.locator("#picture").is_visible() and page.locator("#begin").is_enabled()


def test_outlines_lead_to_the_photos_that_show_them(visit: Visit, indexed: Indexed) -> None:  # noqa: F811
    page = visit.open("/")
    first, second = visit.number("coffee_001.jpg"), visit.number("coffee_002.jpg")
    facts = {"photos": [second], "inliers": 40}
    part = {**facts, "region": [[20, 10], [120, 10], [120, 90], [20, 90]], "share": 0.2, "whole": False}
    whole = {**facts, "region": [[0, 0], [200, 0], [200, 150], [0, 150]], "share": 0.95, "whole": True}
    told = {"grouped": True, "objects": [whole, part]}
    page.route("**/api/photos/*/objects", lambda route: route.fulfill(json=told))
    visit.open(f"/photo?number={first}")
    page.evaluate("document.querySelector('svg.objects')?.remove()")
    page.evaluate(DRAW, first)
    marks = page.locator("svg.objects .object")
    assert marks.count() == 2 and not marks.nth(0).locator(".region").is_visible()
    button = page.get_by_role("button", name="Part 1 of this photo · 1 photo")
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "true" and "open" in (marks.nth(1).get_attribute("class") or "")
    assert page.locator(f'.object-photos a[href="/photo?number={second}"]').is_visible()
    href = page.get_by_role("link", name="Search for all photos of this").get_attribute("href")
    assert href == f"/search?q={first}:20,10,120,90"
    # The line is clicked, and what is within it is not in the way of a box.
    button.press("Enter")
    marks.nth(1).locator(".catch").dispatch_event("click")
    assert button.get_attribute("aria-expanded") == "true"
    page.get_by_label("Outline on the photo").uncheck()
    assert page.locator("svg.objects").is_hidden()
    page.evaluate("localStorage.clear()")
