"""The table of metadata fields: every face follows it."""

import inspect
from typing import get_type_hints

import pytest

import cairn
from retrieval.catalogue.headers import is_doubtful, rank_of
from retrieval.commands.query import query
from retrieval.library.photos import Photo
from retrieval.metadata.fields import FIELDS, WORDS, Field, FieldFilter, Metadata
from retrieval.metadata.xmp import SPACES
from retrieval.web.languages import messages
from retrieval.web.models import Filters
from retrieval.web.models import Photo as ListedPhoto
from retrieval.web.rendering import render

ROWS = [pytest.param(row, id=row.name) for row in FIELDS.values()]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_complete(row: Field) -> None:
    assert row.label and row.help.endswith(".") and row.headers and WORDS[row.word] == row.key
    for source in (*row.sources, *row.last):
        space, _, name = source.partition(":")
        assert space in ("exif", "gps", "iptc", "xmp", "takeout", "name") and name
        assert space != "xmp" or name.partition(":")[0] in SPACES
    names = [name.strip() for name in row.headers.replace(";", ",").split(",")]
    assert all(rank_of(name, row.key) is not None for name in names)
    assert all(is_doubtful(name.strip()) for name in row.doubtful.split(",") if name)


@pytest.mark.parametrize("row", ROWS)
def test_values_are_read_as_they_are_written(row: Field) -> None:
    kind = get_type_hints(Metadata)[row.name]
    value = {str | None: "1923", float | None: -12.5, int | None: 4, bool: True, tuple[str, ...]: "1923"}[kind]
    assert [row.kind.read(text) for text in row.kind.write(value)] == [value]


@pytest.mark.parametrize("row", ROWS)
def test_every_face_has_a_field(row: Field) -> None:
    assert row.name in Photo.__dataclass_fields__ and row.name in ListedPhoto.model_fields
    assert f"{row.name} : {row.kind.spoken}" in str(Photo.__doc__)
    page = render("photos", language="de")
    assert f"&quot;label&quot;: &quot;{messages('de')[row.label]}&quot;" in page


@pytest.mark.parametrize("name", FieldFilter.__dataclass_fields__)
def test_every_face_has_a_filter(name: str) -> None:
    requested = name.removesuffix("s") if name in ("tags", "without_tags") else name
    assert requested in Filters.model_fields and requested in inspect.signature(query).parameters
    assert name in inspect.signature(cairn.Filter).parameters and f"\n{name} : " in str(inspect.getdoc(cairn.Filter))
