"""Matches and occurrences as TEI: zones of surfaces, and what points to them."""

from xml.etree.ElementTree import fromstring

from retrieval.library.motifs import Occurrence
from retrieval.library.photos import Photo
from retrieval.library.tei import matches_text, occurrences_text

TEI, XML = "{http://www.tei-c.org/ns/1.0}", "{http://www.w3.org/XML/1998/namespace}"


def _place(source: str, box: str) -> dict[str, object]:
    return {"source": source, "selector": {"value": f"xywh={box}"}}


def test_matches_are_links_between_zones() -> None:
    target, other, third = _place("a.jpg", "10,20,30,40"), _place("https://x/1?a&b", "percent:5,6.5,7,8"), "a\x00<.jpg"
    pairs = [
        (target, other, 0.98765),
        (target, _place(third, "0,0,1,1"), 1.0),
        (other, _place("a.jpg", "0,0,9,9"), 0.5),
    ]
    items = [{"target": one, "body": [two, {}], "probability": sure} for one, two, sure in pairs]
    root = fromstring(matches_text({"items": items}, "The <Fools>"))
    assert root.findtext(f".//{TEI}title") == "The <Fools>"
    surfaces = root.findall(f"{TEI}facsimile/{TEI}surface")
    assert [one.find(f"{TEI}graphic").get("url") for one in surfaces] == ["a.jpg", "https://x/1?a&b", "a\ufffd<.jpg"]
    zones = {
        one.get(f"{XML}id"): [one.get(key) for key in ("ulx", "uly", "lrx", "lry")] for one in root.iter(f"{TEI}zone")
    }
    assert [*zones.values()] == [
        ["10", "20", "40", "60"],
        ["0", "0", "9", "9"],
        ["5", "6.5", "12", "14.5"],
        ["0", "0", "1", "1"],
    ]
    assert surfaces[1].get("lrx") == "100" and surfaces[0].get("lrx") is None
    links = [(one.get("target").split(), one.get("cert")) for one in root.iter(f"{TEI}link")]
    names = {tuple(box): f"#{name}" for name, box in zones.items()}
    first, second = names["10", "20", "40", "60"], names["5", "6.5", "12", "14.5"]
    assert links == [
        ([first, second], "0.9877"),
        ([first, names["0", "0", "1", "1"]], "1.0000"),
        ([second, names["0", "0", "9", "9"]], "0.5000"),
    ]
    empty = fromstring(matches_text({"items": []}))
    assert [one.tag for one in empty] == [f"{TEI}teiHeader", f"{TEI}text"]


def test_occurrences_are_books_and_pages_that_point_to_zones() -> None:
    canvas = {"IIIF canvas": ("https://x/c1",), "IIIF size": ("200x400",)}
    photos = {1: Photo(1, "1.jpg", "/1.jpg", 100, 200, 5, others=canvas), 2: Photo(2, "b 2.jpg", "/2", 100, 200, 5)}
    corners = [[9.5, 19.5], [29.5, 19.5], [29.5, 59.5], [9.5, 59.5]]
    found = [
        Occurrence("1.jpg", 1, "Ship of Fools", "f. 1r", "1494", "Basel", 0.9, "copy", corners),
        Occurrence("b 2.jpg", 2, "Other", "2", "c. 1500", None, None, None, None),
    ]
    root = fromstring(occurrences_text(found, photos, "Fool"))
    (zone,) = root.iter(f"{TEI}zone")
    assert [zone.get(key) for key in ("ulx", "uly", "lrx", "lry")] == ["20", "40", "60", "120"]  # of the canvas
    one, other = root.iter(f"{TEI}bibl")
    assert (one.get("facs"), one.get("cert")) == (f"#{zone.get(f'{XML}id')}", "0.9000")
    reported = [(part.tag.removeprefix(TEI), part.text) for part in one]
    assert reported == [
        ("title", "Ship of Fools"),
        ("biblScope", "f. 1r"),
        ("date", "1494"),
        ("pubPlace", "Basel"),
        ("note", "copy"),
    ]
    assert one.find(f"{TEI}date").get("when") == "1494" and other.find(f"{TEI}date").get("when") is None
    surface = root.findall(f".//{TEI}surface")[1]
    assert (
        other.get("facs") == f"#{surface.get(f'{XML}id')}" and surface.find(f"{TEI}graphic").get("url") == "b%202.jpg"
    )
