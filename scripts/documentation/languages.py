#!/usr/bin/env python
"""Collect the texts of the pages for translators, and compile the translations for the pages.

usage: python -m scripts.documentation.languages            writes retrieval/web/static/languages/*.po and *.json
       python -m scripts.documentation.languages --new fr   begins a language (needs babel: pip install ".[test]")

Texts are collected from the pages (text, and readable attributes), from `t("…")` and `tn(number, "…", "…")` in their
scripts, from the errors of the server, and from the pictures that it draws. Translations are kept; those of texts no
longer in use move to the end of a file, for reuse.
"""

import argparse
import ast
import builtins
import gettext
import json
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.jslexer import tokenize, unquote_string
from babel.messages.pofile import read_po, write_po

from retrieval.web.languages import FOLDER, PATTERNS, map_texts
from retrieval.web.rendering import PAGES, read_page
from retrieval.web.routes.pages import engine_choices, expansion_choices

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "retrieval" / "web" / "static" / "js"
SPEAKING = (
    "index",
    "retrieval/web",
    "retrieval/jobs",
    "retrieval/curation",
    "retrieval/iiif",
    "retrieval/indexing",
    "retrieval/collection",
    "retrieval/groups",
    "retrieval/integrity/check.py",
    "retrieval/library/filters.py",
    "retrieval/library/impressions.py",
    "retrieval/library/links.py",
    "retrieval/library/manifests.py",
    "retrieval/library/opened.py",
    "retrieval/library/searches.py",
    "retrieval/impressions/clock.py",
    "retrieval/library/print_clock.py",
    "retrieval/library/standing.py",
    "retrieval/library/text_alone.py",
    "retrieval/catalogue",
    "retrieval/descriptors",
    "retrieval/features",
    "retrieval/foreign/contract.py",
    "retrieval/matching",
    "retrieval/metadata",
    "retrieval/photos",
    "retrieval/regions",
    "retrieval/search",
    "retrieval/shards",
    "learning/library/improving.py",
)
"""Packages and modules whose errors visitors read, except `SILENT`."""

SILENT = (
    "index/extras.py",
    "index/flann_search.py",
    "index/hamming/kinds.py",
    "index/inverted_lists.py",
    "index/opencv.py",
    "index/options/declaration.py",
    "index/word_weights.py",
    "retrieval/catalogue/tables/exporting.py",
    "retrieval/descriptors/blocks/descriptor.py",
    "retrieval/descriptors/codes.py",
    "retrieval/features/extraction.py",
    "retrieval/features/options.py",
    "retrieval/groups/pairs.py",
    "retrieval/indexing/described.py",
    "retrieval/indexing/describing.py",
    "retrieval/indexing/on_cluster.py",
    "retrieval/indexing/workshop.py",
    "retrieval/web/access/commands.py",
    "retrieval/web/access/options.py",
    "retrieval/web/access/passwords.py",
    "retrieval/web/running.py",
    "retrieval/web/serve_command.py",
    "retrieval/web/shelf/instance.py",
    "retrieval/web/shelf/open_command.py",
)
"""Modules whose errors are only read in a terminal."""

ERRORS = (
    *("Error", "Refused", "Message", "NotFound", "NoName", "TooManySearches", "NotMoved"),
    *("CollectionChanged", "CollectionLocked", "NotGrouped", "ForeignObject", "NotComparable"),
    *("Damaged", "LaterVersion", "Unreachable", "Unreadable", "NotHere", "PhotoUnusable", "ExtensionMissing"),
    *("VersionsDiffer", "WorkerDied"),
)
"""Suffixes of the names of functions and classes of refusals."""

FRAGMENTS = ("retrieval/iiif",)
"""Packages whose errors are reasons, parts of sentences without a full stop."""

PICTURES = ("learning/reports/verdict_picture.py",)
"""Modules that draw pictures for pages: the arguments of `_text`."""

PLACEHOLDER = re.compile(r"\{(\w+)\}")
COUNTED = 200  # numbers that distinguish the plural forms of a language
WIDTH = 120

Text = str | tuple[str, str]
"""A text: a sentence, or a pair of singular and plural."""


class WrongTextError(Exception):
    """A text in the code that cannot be translated."""


# Texts


def collect() -> dict[Text, list[str]]:
    """List the texts in a stable order, each with its files."""
    texts: dict[Text, list[str]] = {}

    def note(text: Text, path: Path) -> None:
        places = texts.setdefault(text, [])
        if (name := path.relative_to(ROOT).as_posix()) not in places:
            places.append(name)

    for path in sorted(PAGES.glob("*.html")):
        for entry in page_texts(path):
            note(entry, path)
    for path in sorted(SCRIPTS.rglob("*.js")):
        for text in script_texts(path.read_text(encoding="utf-8"), path.name):
            note(text, path)
    for path, text in error_texts():
        note(text, path)
    several = {text[1] for text in texts if isinstance(text, tuple)}
    if twice := several.intersection(text for text in texts if isinstance(text, str)):
        raise WrongTextError(f"{sorted(twice)} are said with t and with tn: say them in one way.")
    return texts


def page_texts(path: Path) -> list[str]:
    """List the texts of a page's file, in its order."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    if (whole := path.read_text(encoding="utf-8")).startswith("<!doctype"):  # a shell
        map_texts(whole, note)
        return texts
    fields, main = read_page(path.stem)
    texts.append(fields["title"])
    map_texts(main, note)
    for place, html in (("engines", engine_choices()), ("expansions", expansion_choices())):
        if f"<!-- {place} -->" in main:
            map_texts(html, note)
    return texts


def script_texts(source: str, name: str) -> list[Text]:
    """List the literal arguments of `t` and `tn` in JavaScript. Raises WrongTextError for a concatenated text."""
    literals: list[Text] = []
    tokens = [one for one in tokenize(source) if one.type not in ("comment", "linecomment", "multilinecomment")]
    for place, token in enumerate(tokens):
        if token.type == "template_string":
            for inner in _inner(token.value):
                literals += script_texts(inner, name)
        before = tokens[place - 1].value if place else ""
        if token.value not in ("t", "tn") or token.type != "name" or before in (".", "function"):
            continue
        if place + 1 >= len(tokens) or tokens[place + 1].value != "(":
            continue
        arguments = _arguments(tokens[place + 2 :])
        wanted = arguments[:1] if token.value == "t" else arguments[1:3]
        literal = [len(one) == 1 and one[0].type == "string" for one in wanted]
        if all(literal):
            texts = tuple(str(unquote_string(one[0].value)) for one in wanted)
            literals.append(texts[0] if len(texts) == 1 else (texts[0], texts[1]))
        elif token.value == "tn" or any(one.type in ("string", "template_string") for one in wanted[0]):
            raise WrongTextError(f"{name}, line {token.lineno}: {token.value} takes whole sentences, in quotes.")
    return literals


def _arguments(tokens: list) -> list[list]:  # type: ignore[type-arg]  # of babel's tokens, which have no type
    """Split the arguments of a call; `tokens` begin after its bracket."""
    arguments: list[list] = [[]]  # type: ignore[type-arg]
    depth = 0
    for token in tokens:
        if token.type == "operator" and token.value in ("(", "[", "{"):
            depth += 1
        elif token.type == "operator" and token.value in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                break
        elif token.type == "operator" and token.value == "," and depth == 0:
            arguments.append([])
            continue
        arguments[-1].append(token)
    return arguments


def _inner(template: str) -> Iterator[str]:
    """Return the code in a template: the contents of its ${…}."""
    start = template.find("${")
    while start >= 0:
        depth, end = 1, start + 2
        while depth and end < len(template):
            depth += {"{": 1, "}": -1}.get(template[end], 0)
            end += 1
        yield template[start + 2 : end - 1]
        start = template.find("${", end)


def error_texts() -> Iterator[tuple[Path, str]]:
    """Return the texts of the server's errors and pictures, with {name} as placeholders."""
    for room in SPEAKING:
        end = "" if room in FRAGMENTS else "."
        for path in sorted((ROOT / room).rglob("*.py")) or [ROOT / room]:
            for node in () if path.relative_to(ROOT).as_posix() in SILENT else _calls(path, ERRORS):
                if hasattr(builtins, getattr(node.func, "id", "")):  # no visitor reads it
                    continue
                for argument in node.args:
                    text = argument.value if isinstance(argument, ast.Constant) else ""
                    if isinstance(text, str) and text.endswith(end) and " " in text:
                        yield path, text
            for node in _calls(path, ("said",)):
                if isinstance(argument := node.args[0], ast.Constant):
                    yield path, str(argument.value)
    yield from picture_texts()


def picture_texts() -> Iterator[tuple[Path, str]]:
    """Return the texts of pictures, with {name} as placeholders."""
    for path in (ROOT / picture for picture in PICTURES):
        for node in _calls(path, ("_text",)):
            text = _sentence(node.args[2])
            if re.search("[a-z]", PLACEHOLDER.sub("", text)):
                yield path, text


def _calls(path: Path, endings: tuple[str, ...]) -> Iterator[ast.Call]:
    """Return the calls in a module of functions with these suffixes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith(endings):
            yield node


def _sentence(node: ast.expr) -> str:
    """A string of Python code with {names} in it; "" if it is not a string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if not isinstance(node, ast.JoinedStr):
        return ""
    text, names = "", set()
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
            continue
        assert isinstance(part, ast.FormattedValue)
        inner = part.value.args[0] if isinstance(part.value, ast.Call) and part.value.args else part.value
        name = {ast.Name: "id", ast.Attribute: "attr"}.get(type(inner), "")
        word = getattr(inner, name) if name else "value"
        while word in names:
            word += "_"
        names.add(word)
        text += f"{{{word}}}"
    return text


# Translations


def catalogue_of(language: str) -> Catalog:
    """Read a language's file; an empty catalogue if it does not exist."""
    path = FOLDER / f"{language}.po"
    if not path.is_file():
        return Catalog(locale=language)
    with path.open("rb") as file:
        return read_po(file, locale=language)


def update(old: Catalog, texts: dict[Text, list[str]]) -> Catalog:
    """Return a catalogue of the current texts, with the translations of an older one."""
    new = Catalog(locale=old.locale)
    known = {one.id: one for one in (*old.obsolete.values(), *old) if one.id}
    for text, places in texts.items():
        before = known.pop(text, None)
        new.add(text, before.string if before else None, [(place, 0) for place in places])
        if before:
            new[text].user_comments = before.user_comments
    for text, one in known.items():
        if any(one.string):
            new.obsolete[text if isinstance(text, str) else text[0]] = one
    return new


def as_po(catalogue: Catalog) -> str:
    """Format a catalogue for gettext, without dates, so that the same texts give the same file."""
    head = (
        f"# {catalogue.locale.english_name} texts of the pages: see docs/how-to/translate.md.\n"
        'msgid ""\nmsgstr ""\n'
        f'"Language: {catalogue.locale}\\n"\n"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        f'"Content-Transfer-Encoding: 8bit\\n"\n"Plural-Forms: {catalogue.plural_forms}\\n"\n\n'
    )
    file = BytesIO()
    write_po(file, catalogue, width=WIDTH, omit_header=True, include_lineno=False)
    return head + file.getvalue().decode().lstrip("\n").rstrip("\n") + "\n"


def as_json(catalogue: Catalog) -> str:
    """Format a catalogue for the pages: translations by English text, plural forms by Unicode's categories."""
    forms = _forms(catalogue)
    own = catalogue.locale.get_language_name(catalogue.locale) or str(catalogue.locale)
    drawn = {text for _, text in picture_texts() if PLACEHOLDER.search(text)}
    translations: dict[str, object] = {}
    patterns = []
    for english, others in entries(catalogue):
        if not all(others):
            continue
        if len(english) > 1:
            translations[english[1]] = {form: others[place] for form, place in forms.items()}
        else:
            translations[english[0]] = others[0]
            patterns += [english[0]] if english[0] in drawn else []
    whole = {"": own[0].upper() + own[1:], **dict(sorted(translations.items())), PATTERNS: sorted(patterns)}
    return json.dumps(whole, ensure_ascii=False, indent=0) + "\n"


def entries(catalogue: Catalog) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the English of each text, in one or two forms, and all forms of its translation."""
    for one in catalogue:
        if one.id:
            string = one.string or ""
            yield _several(one.id), _several(string)


def _several(text: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def _forms(catalogue: Catalog) -> dict[str, int]:
    """Map categories of Unicode's plural rules to gettext's forms."""
    which = gettext.c2py(catalogue.plural_expr)
    rule = catalogue.locale.plural_form
    forms = {rule(number): which(number) for number in range(COUNTED, -1, -1)}
    return {**forms, "other": forms.get("other", catalogue.num_plurals - 1)}  # "other" may only be for fractions


def problems(catalogue: Catalog) -> list[str]:
    """List texts without a translation, or with other {names} than in English."""
    sentences = []
    for english, others in entries(catalogue):
        if not all(others):
            sentences.append(f"not translated: {english[-1]}")
            continue
        wanted = set(PLACEHOLDER.findall(english[-1]))
        optional = {"n"} if len(english) > 1 else set()  # "the photo" needs no number
        for text in others:
            if wanted - optional - set(PLACEHOLDER.findall(text)) or set(PLACEHOLDER.findall(text)) - wanted:
                sentences.append(f"other {{names}}: {english[-1]} - {text}")
    return sentences


def main() -> None:
    """Update all languages, or begin one."""
    parser = argparse.ArgumentParser(description="Collect what the pages say, and make what they read of translations.")
    parser.add_argument("--new", metavar="CODE", help="begin a language, such as fr")
    new = parser.parse_args().new
    texts = collect()
    for language in sorted({path.stem for path in FOLDER.glob("*.po")} | ({new} if new else set())):
        catalogue = update(catalogue_of(language), texts)
        (FOLDER / f"{language}.po").write_text(as_po(catalogue), encoding="utf-8")
        (FOLDER / f"{language}.json").write_text(as_json(catalogue), encoding="utf-8")
        wrong = problems(catalogue)
        print(f"{language}: {len(texts)} texts, {len(wrong)} to do")
        for one in wrong:
            print(f"  {one}")


if __name__ == "__main__":
    main()
