"""What pages say: that all of it is collected, translated, and as the files have it."""

import ast
import builtins
from pathlib import Path

import pytest

pytest.importorskip("babel", reason="babel is not installed")

from babel.messages.catalog import Catalog

from index.errors import CairnError
from index.messages import Message
from retrieval.web.languages import FOLDER, PATTERNS, messages
from retrieval.web.reasons import in_language
from scripts.documentation.languages import (
    ERRORS,
    ROOT,
    SILENT,
    SPEAKING,
    WrongTextError,
    as_json,
    as_po,
    catalogue_of,
    collect,
    problems,
    script_texts,
    update,
)


@pytest.mark.parametrize("language", sorted(path.stem for path in FOLDER.glob("*.po")))
def test_all_that_is_said_is_translated_and_up_to_date(language: str) -> None:
    catalogue = update(catalogue_of(language), collect())
    again = "run python -m scripts.documentation.languages, and translate what it lists"
    assert not problems(catalogue), again
    assert (FOLDER / f"{language}.po").read_text(encoding="utf-8") == as_po(catalogue), again
    assert (FOLDER / f"{language}.json").read_text(encoding="utf-8") == as_json(catalogue), again


def test_texts_of_scripts_are_found_wherever_they_stand() -> None:
    source = r"""
        // t("in a comment")
        const one = t("Say \"it\", {name}", { name: t("inside") });
        const text = `${tn(list.filter((x) => x).length, "{n} photo", "{n} photos")}, ${t("in a template")}`;
        told(t(detail)); const found = /t\("no"\)/.exec(split("t")); object.t("a method");
        export function tn(number, one, several) {}
    """
    found = script_texts(source, "x.js")
    assert sorted(map(str, found)) == sorted(
        map(str, ['Say "it", {name}', "inside", ("{n} photo", "{n} photos"), "in a template"])
    )


@pytest.mark.parametrize(
    "source", ['t("half " + name)', "t(`whole ${name}`)", 't(one ? "a" : "b")', 'tn(1, "photo", several)']
)
def test_sentences_built_of_pieces_are_refused(source: str) -> None:
    with pytest.raises(WrongTextError, match="whole sentences"):
        script_texts(source, "x.js")


def test_translations_are_kept_and_wrong_placeholders_told() -> None:
    texts = {"Photos": ["a"], ("{n} photo of {name}", "{n} photos of {name}"): ["b"]}
    old = Catalog(locale="pl")
    old.add("Photos", "Zdjęcia")
    old.add("Gone", "Nie ma")
    new = update(old, texts)
    assert problems(new) == ["not translated: {n} photos of {name}"]
    new["{n} photo of {name}"].string = ("{n} zdjęcie {name}", "{n} zdjęcia {name}", "{n} zdjęć {nazwa}")
    assert problems(new) == ["other {names}: {n} photos of {name} - {n} zdjęć {nazwa}"]
    assert '#~ msgid "Gone"' in as_po(new)
    back = update(new, {"Gone": ["c"]})
    assert back["Gone"].string == "Nie ma"


def test_forms_are_those_of_unicode_for_numbers_of_a_language() -> None:
    import json

    catalogue = Catalog(locale="pl")
    catalogue.add(("{n} photo", "{n} photos"), ("one", "few", "many"))
    forms = json.loads(as_json(catalogue))["{n} photos"]
    # Polish: 1; 2 to 4, 22 to 24; 0, 5 to 21; and fractions.
    assert forms == {"one": "one", "few": "few", "many": "many", "other": "many"}


def test_only_pictures_are_recognised_by_what_they_say() -> None:
    patterns = messages("de")[PATTERNS]
    assert isinstance(patterns, list) and "{won} found more" in patterns
    assert "At most {most} photos can be downloaded at once: select fewer." in messages("de")
    assert "At most {most} photos can be downloaded at once: select fewer." not in patterns


def test_a_sentence_of_the_server_is_said_with_what_stands_in_it() -> None:
    reason = CairnError("The file of {name} is no longer there.", name="'Müller {a}.jpg'")
    message = Message("The photo {name} cannot be shown: {reason}.", name="{reason}", reason=reason)
    said = in_language(message, "de")
    assert said == "Das Foto {reason} lässt sich nicht zeigen: Die Datei von 'Müller {a}.jpg' ist nicht mehr da."


UNSEEN = {
    "index/cluster/connection.py": "check_address load_dask",
    "index/cluster/storage.py": "__init__",
    "index/extensions.py": "check_contract register",
    "index/neighbours.py": "check_whole",
    "index/similarity.py": "check_similarity_path",
    "learning/library/improving.py": "_refuse",
    "retrieval/catalogue/database.py": "_schema_of",
    "retrieval/catalogue/filters.py": "_as_field",
    "retrieval/catalogue/passing.py": "change_passing choose_films",
    "retrieval/catalogue/photo_lookup.py": "photo_called",
    "retrieval/catalogue/tables/columns.py": "parse_mapping",
    "retrieval/catalogue/tables/importing.py": "__post_init__",
    "retrieval/collection/identity.py": "check_identity",
    "retrieval/collection/opening.py": "catalogue_place",
    "retrieval/collection/options.py": "_folder _number_or_all",
    "retrieval/descriptors/learnt.py": "check_model_path",
    "retrieval/groups/groups.py": "__post_init__",
    "retrieval/groups/links.py": "link_photos",
    "retrieval/groups/tables.py": "check_table",
    "retrieval/iiif/addresses.py": "plain_host",
    "retrieval/indexing/adding.py": "_adopt_vocabulary index_photos make_vocabulary",
    "retrieval/indexing/removal.py": "remove_photos",
    "retrieval/library/filters.py": "filter_from",
    "retrieval/library/impressions.py": "save_files",
    "retrieval/library/links.py": "save_annotations",
    "retrieval/library/manifests.py": "read_addresses",
    "retrieval/library/opened.py": "opened paths_of",
    "retrieval/matching/verification.py": "__post_init__",
    "retrieval/photos/options.py": "__post_init__",
    "retrieval/photos/thumbnails.py": "thumbnail",
    "retrieval/search/picture.py": "check_picture",
    "retrieval/shards/epoch.py": "open_epoch",
    "retrieval/shards/joins.py": "_all_there",
}
"""Functions whose errors are only read in a terminal, or in Python, in modules of which pages show others."""


def test_errors_that_pages_show_have_their_values_apart_from_the_text() -> None:
    found = {}
    for room in SPEAKING:
        for path in sorted((ROOT / room).rglob("*.py")) or [ROOT / room]:
            name = path.relative_to(ROOT).as_posix()
            if name not in SILENT and (functions := functions_with_built_errors(path)):
                found[name] = " ".join(sorted(functions))
    assert found == UNSEEN


def functions_with_built_errors(path: Path) -> set[str]:
    """Functions of a module that raise an error whose sentence is an f-string, which cannot be translated."""
    functions = set()
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            is_error = node.func.id.endswith(ERRORS) and not hasattr(builtins, node.func.id)
            text = node.args[0] if node.args else None
            if is_error and isinstance(text, ast.JoinedStr) and ast.unparse(text).rstrip("\"'").endswith("."):
                functions.add(function.name)
    return functions
