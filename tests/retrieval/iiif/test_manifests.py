"""Manifests of both versions, and what makes no sense."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.iiif.manifests import IiifManifest, Listing, ManifestPage, read_document
from retrieval.iiif.pictures import NotIiifError, TiledPicture, picture_requests

OF_2 = {
    "@context": "http://iiif.io/api/presentation/2/context.json",
    "@id": "https://a.example/1/manifest",
    "@type": "sc:Manifest",
    "label": [{"@value": "Narrenschiff", "@language": "de"}, {"@value": "Ship of Fools", "@language": "en"}],
    "metadata": [
        {"label": "Author", "value": "<a href='x'>Brant</a>, Sebastian"},
        {"label": [{"@value": "Ort", "@language": "de"}], "value": ["Basel", "Strassburg", "Basel"]},
        {"label": "Empty", "value": ""},
        "nonsense",
    ],
    "attribution": "Kept in <b>Basel</b>",
    "license": "https://creativecommons.org/publicdomain/mark/1.0/",
    "related": {"@id": "https://a.example/1", "format": "text/html"},
    "sequences": [
        {
            "canvases": [
                {
                    "@id": "https://a.example/1/c1",
                    "@type": "sc:Canvas",
                    "label": "f. 1r",
                    "images": [
                        {
                            "resource": {
                                "@id": "https://a.example/i1/full/full/0/default.jpg",
                                "@type": "dctypes:Image",
                                "service": {
                                    "@context": "http://iiif.io/api/image/2/context.json",
                                    "@id": "https://a.example/i1/",
                                    "profile": "http://iiif.io/api/image/2/level2.json",
                                },
                            }
                        }
                    ],
                },
                {
                    "@id": "https://a.example/1/c2",
                    "label": "f. 1v",
                    "images": [
                        {
                            "resource": {
                                "@type": "oa:Choice",
                                "default": {"@id": "https://a.example/2.jpg", "@type": "dctypes:Image"},
                                "item": [{"@id": "https://a.example/uv.jpg", "@type": "dctypes:Image"}],
                            }
                        }
                    ],
                },
                {"@id": "https://a.example/1/c3", "label": "lost", "images": []},
            ]
        }
    ],
    "structures": [
        {"@type": "sc:Range", "label": "Prologue", "canvases": ["https://a.example/1/c1#xywh=0,0,9,9"]},
        {"@type": "sc:Range", "label": "All", "canvases": ["https://a.example/1/c1", "https://a.example/1/c2"]},
    ],
}


def _read(document: Any) -> IiifManifest | Listing:
    return read_document(json.dumps(document).encode())


def test_a_manifest_of_version_2_is_read() -> None:
    assert _read(OF_2) == IiifManifest(
        label="Ship of Fools",
        pairs={"Author": ("Brant , Sebastian",), "Ort": ("Basel", "Strassburg")},
        attribution="Kept in Basel",
        rights="https://creativecommons.org/publicdomain/mark/1.0/",
        homepage="https://a.example/1",
        pages=(
            ManifestPage(
                *("https://a.example/1/c1", "f. 1r", "https://a.example/i1"),
                *("https://a.example/i1/full/full/0/default.jpg", 2, ("All", "Prologue")),
            ),
            ManifestPage("https://a.example/1/c2", "f. 1v", "", "https://a.example/2.jpg", 0, ("All",)),
        ),
        left_out=1,
    )


def test_a_manifest_of_version_3_is_read() -> None:
    service = [{"id": "https://a.example/i", "type": "ImageService3", "profile": "level1"}]
    choice = {"type": "Choice", "items": [{"id": "https://a.example/i.jpg", "type": "Image", "service": service}]}
    note = {"type": "Annotation", "motivation": "painting", "body": choice}
    comment = {"type": "Annotation", "motivation": "commenting", "body": {"type": "Image", "id": "https://a.example/x"}}
    canvas = {
        "id": "https://a.example/c",
        "type": "Canvas",
        "label": {"none": ["1"], "de": ["eins"]},
        "items": [{"type": "AnnotationPage", "items": [comment, note]}],
    }
    inner = {
        "type": "Range",
        "label": {"en": ["Chapter"]},
        "items": [{"type": "SpecificResource", "source": "https://a.example/c"}],
    }
    found = _read(
        {
            "type": "Manifest",
            "label": {"fr": ["La nef"]},
            "items": [canvas],
            "rights": "http://rightsstatements.org/vocab/NoC-NC/1.0/",
            "requiredStatement": {"label": {"en": ["Credit"]}, "value": {"en": ["A library"]}},
            "homepage": [{"id": "https://a.example/home", "type": "Text"}],
            "structures": [{"type": "Range", "label": {"en": ["Contents"]}, "items": [inner]}],
        }
    )
    page = ManifestPage("https://a.example/c", "1", "https://a.example/i", "https://a.example/i.jpg", 3, ("Chapter",))
    statement = ("A library", "http://rightsstatements.org/vocab/NoC-NC/1.0/", "https://a.example/home")
    assert found == IiifManifest("La nef", {}, *statement, (page,))


def test_collections_of_both_versions_are_read() -> None:
    old = {
        "@type": "sc:Collection",
        "collections": [{"@id": "https://a.example/sub", "@type": "sc:Collection"}],
        "manifests": [{"@id": "https://a.example/m", "@type": "sc:Manifest"}, {"@id": "file:///etc/passwd"}],
        "first": "https://a.example/p1",
    }
    new = {"type": "Collection", "items": [{"id": "https://a.example/m", "type": "Manifest"}, {"type": "Manifest"}, 1]}
    assert _read(old) == Listing(("https://a.example/m", "https://a.example/sub", "https://a.example/p1"))
    assert _read(new) == Listing(("https://a.example/m",))


def _half(width: int, height: int) -> int:
    return max(width, height) // 2


@pytest.mark.parametrize(
    ("more", "target"),
    (
        ({}, "full/400,/0/default.jpg"),
        ({"profile": ["http://iiif.io/api/image/2/level2.json", {"maxWidth": 300}]}, "full/240,/0/default.jpg"),
        ({"maxWidth": 300, "maxHeight": 200}, "full/160,/0/default.jpg"),
        ({"maxArea": 480_000 // 4}, "full/309,/0/default.jpg"),
        ({"sizes": [{"width": 100, "height": 125}, {"width": 450, "height": 563}]}, "full/450,/0/default.jpg"),
        ({"sizes": [{"width": 100, "height": 125}, {"width": 800, "height": 1000}]}, "full/800,/0/default.jpg"),
        ({"profile": "http://iiif.io/api/image/2/level0.json"}, "full/full/0/default.jpg"),
        (
            {"profile": "http://iiif.io/api/image/2/level0.json", "sizes": [{"width": 300, "height": 375}]},
            "full/300,/0/default.jpg",
        ),
        ({"@context": "http://iiif.io/api/image/3/context.json", "profile": "level2"}, "full/400,/0/default.jpg"),
        (
            {"@context": "http://iiif.io/api/image/3/context.json", "sizes": [{"width": 500, "height": 625}]},
            "full/500,625/0/default.jpg",
        ),
        ({"@context": "http://library.stanford.edu/iiif/image-api/1.1/context.json"}, "full/400,/0/native.jpg"),
    ),
)
def test_the_size_that_is_needed_is_asked_for(more: dict[str, Any], target: str) -> None:
    assert picture_requests({"width": 800, "height": 1000, **more}, _half) == [target]


def test_a_picture_that_is_needed_whole_is_asked_for_whole() -> None:
    assert picture_requests({"width": 8, "height": 9}, max) == ["full/full/0/default.jpg"]
    assert picture_requests({"width": 8, "height": 9, "profile": "level1"}, max) == ["full/max/0/default.jpg"]


@pytest.mark.parametrize(
    "info", (None, [], {}, {"width": -1, "height": 5}, {"width": 1e400, "height": 5}, {"width": "5"})
)
def test_nonsense_is_no_information_of_a_picture(info: Any) -> None:
    with pytest.raises(NotIiifError):
        picture_requests(info, max)


DEEP = b'{"type":"Manifest","label":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize("content", (b"", b"<html>", b"\xff\xfe", b"[]", b"1", b'{"type":"Canvas"}', b"9" * 5000, DEEP))
def test_nonsense_is_no_manifest(content: bytes) -> None:
    with pytest.raises(NotIiifError):
        read_document(content)


_KEYS = (
    "type",
    "@type",
    "id",
    "@id",
    "items",
    "label",
    "value",
    "metadata",
    "body",
    "service",
    "sequences",
    "canvases",
)
_WORDS = ("Manifest", "Canvas", "AnnotationPage", "painting", "Image", "Range", "https://a.example/1", "en", "level0")
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS) | st.text(max_size=3),
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.sampled_from((*_KEYS, "structures", "motivation")), some)
    ),
    max_leaves=30,
)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from((*_KEYS, "structures", "images", "first", "rights", "width")), _JSON))
def test_nonsense_in_a_manifest_is_left_out(document: dict[str, Any]) -> None:
    found = read_document(json.dumps({**document, "type": "Manifest"}).encode())
    assert isinstance(found, IiifManifest)
    assert isinstance(read_document(json.dumps({**document, "type": "Collection"}).encode()), Listing)


@given(_JSON)
def test_nonsense_in_what_is_told_of_a_picture_is_left_out(some: Any) -> None:
    known = {"sizes": some, "profile": some, "maxWidth": some, "maxArea": some, "extraFeatures": some, "@context": some}
    tiles = {"tiles": [{"width": some, "scaleFactors": some}, some], "tile_width": 50, "scale_factors": [some, 3]}
    requests = picture_requests({"width": 800, "height": 1000, **known, **tiles}, max)
    assert len(requests) == 2 and all(isinstance(one, TiledPicture) or one.startswith("full/") for one in requests)


def test_a_circle_of_ranges_ends() -> None:
    deep: dict[str, Any] = {"type": "Range", "label": {"en": ["x"]}, "items": ["https://a.example/c"]}
    for _ in range(300):
        deep = {"type": "Range", "label": {"en": ["x"]}, "items": [deep, deep] if _ < 2 else [deep]}
    assert isinstance(_read({"type": "Manifest", "structures": [deep], "items": []}), IiifManifest)


def test_texts_are_bounded_as_they_are_kept_for_each_page() -> None:
    pairs = [{"label": f"{number}", "value": "x" * 9000} for number in range(50)]
    found = _read({"type": "Manifest", "label": "y" * 9000, "metadata": pairs})
    assert isinstance(found, IiifManifest) and len(found.label) <= 5000
    assert sum(len(text) for texts in found.pairs.values() for text in texts) <= 20_000
