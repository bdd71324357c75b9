"""The languages of pages: which one a visitor gets, and what is translated of a page."""

import re

import httpx
import pytest

from retrieval.web.languages import COOKIE, choose_language, languages, map_texts, messages, translate, translate_html
from retrieval.web.routes.pages import PAGES


@pytest.mark.parametrize(
    ("chosen", "accepted", "expected"),
    [
        (None, "", "en"),
        (None, "de", "de"),
        (None, "de-AT,en;q=0.5", "de"),
        (None, "fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "en"),
        (None, "en;q=0.3, de;q=0.9", "de"),
        (None, "de;q=0, en;q=0.1", "en"),
        (None, "DE-ch", "de"),
        ("en", "de", "en"),
        ("de", "en", "de"),
        ("../../etc/passwd", "de", "de"),
        (None, ";;q=x,,de;q=2;=" * 5000, "en"),
        (None, "xx", "en"),
    ],
)
def test_visitors_get_what_they_chose_or_their_browser_prefers(
    chosen: str | None, accepted: str, expected: str
) -> None:
    assert choose_language(chosen, accepted) == expected


def test_texts_and_read_attributes_change_and_nothing_else() -> None:
    html = (
        '<p title="Say &quot;x&quot;" class="Class">\n  Two  words &amp; <b>bold</b> 12 <!-- a comment --></p>'
        '<input value="<!-- Value -->" placeholder="Place" aria-label="Label"><img alt="" src="/a.png">{{main}}'
    )
    seen: list[str] = []

    def change(text: str) -> str:
        seen.append(text)
        return f'<{text}">'

    changed = map_texts(html, change)
    assert seen == ['Say "x"', "Two words &", "bold", "Place", "Label"]
    assert 'title="&lt;Say &quot;x&quot;&quot;&gt;" class="Class"' in changed  # nothing becomes markup
    assert "\n  &lt;Two words &amp;&quot;&gt; <b>&lt;bold&quot;&gt;</b> 12 <!-- a comment -->" in changed
    assert 'value="<!-- Value -->"' in changed and 'alt=""' in changed and changed.endswith("{{main}}")
    assert map_texts(html, lambda text: text) == html
    assert translate_html("<b>Photos</b>", "de") == "<b>Fotos</b>" and translate_html("<b>Xyzzy</b>", "de")
    assert translate("", "de") == ""  # and not what the language calls itself


@pytest.mark.slow
def test_pages_say_their_language_and_who_gets_it(client: httpx.Client) -> None:
    assert languages() == {"en": "English", "de": "Deutsch"}
    german = {text for text in messages("de").values() if isinstance(text, str)}
    for path in PAGES:
        answer = client.get(path, headers={"Accept-Language": "de-DE,de;q=0.9,en;q=0.5"})
        assert answer.headers["content-language"] == "de" and '<html lang="de" ' in answer.text
        assert {one.strip() for one in answer.headers["vary"].lower().split(",")} >= {"accept-language", "cookie"}
        assert '<option value="de" lang="de" selected>Deutsch</option>' in answer.text
        title = re.search("<title>(.*) · Cairn</title>", answer.text)
        assert title and title[1] in german, path
        english = client.get(path, headers={"Accept-Language": "de", "Cookie": f"{COOKIE}=en"})
        assert english.headers["content-language"] == "en" and ">Photos</a>" in english.text
    assert client.get("/static/languages/de.json").headers["content-type"] == "application/json"
