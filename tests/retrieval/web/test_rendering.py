"""Tests of pages as they are sent."""

import re

import pytest

from retrieval.web.rendering import PAGES, SCRIPTS, modules_of, read_page, render, static_version


@pytest.mark.parametrize(
    "name", [one.stem for one in sorted(PAGES.glob("*.html")) if one.stem not in ("shell", "plain")]
)
def test_a_page_names_all_modules_that_its_script_needs(name: str) -> None:
    script = read_page(name)[0].get("script")
    told = set(modules_of(script))
    # Counted in another way: every file that is named in one of them, but for those that are fetched when used.
    for file in [script, *told] if script else []:
        text = (SCRIPTS / file).read_text(encoding="utf-8")
        named = re.findall(r'(?<!import\()"(\.\.?/[^"]+\.js)"', text)
        assert {((SCRIPTS / file).parent / one).resolve().relative_to(SCRIPTS).as_posix() for one in named} <= told
    start = f'<link rel="modulepreload" href="/far/static/{static_version()}/js/'
    assert all(f'{start}{one}">' in render(name, "/far") for one in told)
    assert bool(told) == bool(script)
