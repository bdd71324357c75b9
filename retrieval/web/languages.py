"""Languages of the pages, the choice of one for a visitor, and the translation of pages. English texts are in the pages
and in the code; translations are in ``static/languages/CODE.json``, which ``scripts/documentation/languages.py`` makes
of ``CODE.po``. The browser reads the same file (``static/js/language.js``).
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from html import escape, unescape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "static" / "languages"
ENGLISH = "en"
COOKIE = "cairn-language"
"""Cookie that says which language a visitor chose."""

PATTERNS = "{}"
"""Key in a language's file: texts of pictures with {names} in them, which are met with values in place."""

ATTRIBUTES = ("title", "placeholder", "aria-label", "alt")
"""Attributes of HTML that people read or hear."""


Messages = dict[str, str | dict[str, str] | list[str]]

_MARKUP = re.compile(r'(<!--.*?-->|<(?:[^>"]|"[^"]*")*>)', re.DOTALL)
_ATTRIBUTE = re.compile(rf'(\s(?:{"|".join(ATTRIBUTES)})=")([^"]*)"')
_LETTER = re.compile(r"[^\W\d_]")
_PLACE = re.compile(r"\{\{\w+\}\}|<!--")


@cache
def messages(language: str) -> Messages:
    """Return the translations of English sentences: a text, or one for each plural form; none for English."""
    if language == ENGLISH:
        return {}
    messages_by_text: Messages = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return messages_by_text


@cache
def languages() -> dict[str, str]:
    """List the languages of the pages: the name of each in itself, by its code (BCP 47)."""
    others = (path.stem for path in sorted(FOLDER.glob("*.json")))
    return {ENGLISH: "English", **{code: str(messages(code)[""]) for code in others}}


def choose_language(chosen: str | None, accepted: str) -> str:
    """Choose the language of a page, by the visitor's cookie `COOKIE`, or else Accept-Language (RFC 9110, 12.5.4)."""
    known = languages()
    if chosen in known:
        return chosen
    wanted: list[tuple[float, str]] = []
    for one in accepted.split(",")[:20]:
        code, _, weight = one.strip().partition(";")
        match = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", weight)
        wanted.append((float(match[1]) if match else float(not weight), code.strip().lower()))
    for preference, code in sorted(wanted, key=lambda one: -one[0]):
        # "de-AT" is served by "de".
        for candidate in (code, code.partition("-")[0]):
            if preference > 0 and candidate in known:
                return candidate
    return ENGLISH


def map_texts(html: str, change: Callable[[str], str]) -> str:
    """Change the readable texts in HTML: text between tags, and the values of `ATTRIBUTES`.

    All attributes must be in double quotes, without any script. `change` takes text with single spaces, without markup.
    """

    def text(raw: str) -> str:
        words = " ".join(unescape(raw).split())
        if not _LETTER.search(words) or _PLACE.search(raw):
            return raw
        before, after = raw[: len(raw) - len(raw.lstrip())], raw[len(raw.rstrip()) :]
        changed = change(words)
        return raw if changed == words else f"{before}{escape(changed, quote=True)}{after}"

    def attribute(found: re.Match[str]) -> str:
        return f'{found[1]}{text(found[2])}"'

    # Every second part is a tag or a comment.
    parts = _MARKUP.split(html)
    return "".join(
        text(part) if place % 2 == 0 else part if part.startswith("<!") else _ATTRIBUTE.sub(attribute, part)
        for place, part in enumerate(parts)
    )


def translate(text: str, language: str) -> str:
    """Translate a fixed English text; without a translation it stays English."""
    translation = messages(language).get(text) if text else None  # "" has the language's own name
    return translation if isinstance(translation, str) else text


def spoken(text: str, **values: object) -> dict[str, list[str]]:
    """A text in every language of the pages, as the Presentation API has it."""
    return {code: [translate(text, code).format(**values)] for code in languages()}


@cache
def _form(english: str) -> re.Pattern[str]:
    """The pattern of an English text with {names}."""
    parts = enumerate(re.split(r"\{(\w+)\}", english))
    form = "".join(f"(?P<{part}>.+)" if place % 2 else re.escape(part) for place, part in parts)
    return re.compile(form, re.DOTALL)


def fill_in(text: str, templates: Iterable[str], language: str) -> str:
    """Translate a text that has its values in it already, by the templates that it may be made of."""
    if language == ENGLISH or (said := translate(text, language)) != text:
        return text if language == ENGLISH else said
    for english in templates:
        if match := _form(english).fullmatch(text):
            other = translate(english, language)
            return re.sub(r"\{(\w+)\}", lambda name: match.groupdict().get(name[1], name[0]), other)
    return text


def translate_drawn(text: str, language: str) -> str:
    """Translate a text of a picture, if it is known."""
    return fill_in(text, messages(language).get(PATTERNS, ()), language)


def translate_html(html: str, language: str) -> str:
    """Translate all texts of a page."""
    return html if language == ENGLISH else map_texts(html, lambda text: translate(text, language))
