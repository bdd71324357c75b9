"""The table of metadata: the single declaration of each field, for readers, catalogue, tables, commands and pages.

A row is a field of `Metadata`, annotated with a `Field`. Filters on fields are fields of `FieldFilter`, annotated with
an `Option`. Everything else is derived from these: sources in EXIF, IPTC, XMP and the JSON of Google Takeout; values in
the catalogue; columns of tables; options of commands, parameters of requests and keywords in Python; and displays on
pages.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args

from index.docstrings import with_paragraphs
from index.messages import said
from index.options.declaration import Option, options_of
from index.options.panels import FIELD_FILTERS, FILTERS
from retrieval.metadata import combining
from retrieval.metadata.combining import SourceTexts
from retrieval.metadata.kinds import DATE, FLAG, LATITUDE, LONGITUDE, MOST_STARS, RATING, TAGS, Kind, text
from retrieval.metadata.text import LONGEST_CAMERA, LONGEST_CAPTION, LONGEST_TITLE

T = TypeVar("T", bound=type)

_STARS = "rating, stars, bewertung, sterne, étoiles, valoración, estrellas, valutazione, stelle, waardering, sterren"
_FAVOURITE = "favourite, favorite, favorit, lieblingsfoto, favori, favorito, preferito, favoriet"


@dataclass(frozen=True)
class Field:
    """A row of the table."""

    label: str  # its name on pages, in English
    help: str  # its meaning, in a sentence
    kind: Kind  # how its values are written and read
    # sources in files, the best first: ``exif:`` and ``gps:`` with names of tags, ``iptc:`` with record and number,
    # ``xmp:`` with prefix and name, ``takeout:`` with keys of its JSON, ``name:`` for the name of the file
    sources: tuple[str, ...] = ()
    last: tuple[str, ...] = ()  # further sources, if no file has it in `sources`
    # combines the sources; by default the first valid value counts
    combine: Callable[[Sequence[SourceTexts], Sequence[str]], Any] | None = None
    written: tuple[str, ...] = ()  # properties of XMP that it is written to in a sidecar; empty: it is not written
    # headers of its columns in tables, in English, German, French, Spanish, Italian and Dutch, separated by commas.
    # If there are several columns, headers in earlier parts, separated by semicolons, take precedence
    headers: str = ""
    doubtful: str = ""  # ambiguous headers, which count only if the cells confirm them
    word: str = ""  # its name in `--map` and on pages of tables; "": as in Python
    key: str = ""  # its name in the catalogue and in conditions; "": as in Python
    facet: str = ""  # heading of the list of its values with numbers of photos; "": no such list
    name: str = ""  # its name in Python, as a field of `Metadata`


@dataclass(frozen=True)
class Metadata:
    """Metadata of a photo; every text is clean (see `clean`)."""

    taken: Annotated[
        str | None,
        Field(
            said("Taken"),
            "Local time of the camera: YYYY, YYYY-MM, … or YYYY-MM-DDTHH:MM:SS.",
            DATE,
            sources=(
                "exif:DateTimeOriginal",
                "xmp:exif:DateTimeOriginal",
                "iptc:2:55",
                "xmp:photoshop:DateCreated",
                "exif:DateTimeDigitized",
                "xmp:exif:DateTimeDigitized",
                "xmp:xmp:CreateDate",
                "gps:GPSDateStamp",
                "takeout:photoTakenTime",
            ),
            last=("exif:DateTime", "name:date"),  # the former: when the file was last changed
            combine=combining.day,
            written=("xmp:exif:DateTimeOriginal", "xmp:photoshop:DateCreated"),
            headers="taken; date taken, datetimeoriginal, photo date, date of photo, capture date, date captured, "
            "date shot, shooting date, aufnahmedatum, aufgenommen, aufgenommen am, aufnahmezeit, aufnahmezeitpunkt, "
            "aufnahmetag, datum der aufnahme, fotodatum, date de prise de vue, date de la prise de vue, "
            "date prise de vue, prise de vue, date de la photo, fecha de toma, fecha de captura, fecha de la foto, "
            "fecha foto, data di scatto, data dello scatto, data scatto, data di ripresa, data della foto, data foto, "
            "opnamedatum, datum opname, datum van opname, datum foto; date, date time, date et heure, datum, "
            "datum uhrzeit, datum en tijd, fecha, fecha y hora, data e ora; data",
            doubtful="data",
            word="date",
        ),
    ] = None
    camera: Annotated[
        str | None,
        Field(
            said("Camera"),
            "Make and model.",
            text(LONGEST_CAMERA),
            sources=("exif:Make", "exif:Model", "xmp:tiff:Make", "xmp:tiff:Model"),
            combine=combining.camera,
            headers="camera; kamera, cámara, fotocamera, appareil, appareil photo, fotoapparat, macchina fotografica, "
            "fototoestel, camera model, kameramodell, modelo de cámara, modello fotocamera, cameramodel",
            facet=said("Cameras"),
        ),
    ] = None
    latitude: Annotated[  # both or none
        float | None,
        Field(
            said("Latitude"),
            "Degrees north, WGS 84.",
            LATITUDE,
            sources=("gps:GPSLatitude", "xmp:exif:GPSLatitude", "takeout:geoData.latitude"),
            combine=combining.latitude,
            written=("xmp:exif:GPSLatitude",),
            headers="latitude; lat, gps latitude, decimal latitude, breitengrad, geografische breite, "
            "geographische breite, gps breite, latitud, latitudine, breedtegraad, geografische breedte; "
            "breite, breedte",
            doubtful="breite, breedte",
        ),
    ] = None
    longitude: Annotated[
        float | None,
        Field(
            said("Longitude"),
            "Degrees east, WGS 84.",
            LONGITUDE,
            sources=("gps:GPSLongitude", "xmp:exif:GPSLongitude", "takeout:geoData.longitude"),
            combine=combining.longitude,
            written=("xmp:exif:GPSLongitude",),
            headers="longitude; lon, lng, long, gps longitude, decimal longitude, längengrad, laengengrad, "
            "geografische länge, geographische länge, geografische laenge, geographische laenge, gps länge, "
            "longitudine, lengtegraad, geografische lengte; longitud; länge, laenge, lengte",
            doubtful="länge, laenge, longitud, lengte",
        ),
    ] = None
    title: Annotated[
        str | None,
        Field(
            said("Title"),
            "Title; the caption, where the file has no title.",
            text(LONGEST_TITLE),
            sources=(
                "xmp:dc:title",
                "iptc:2:5",
                "exif:XPTitle",
            ),
            last=("xmp:dc:description", "iptc:2:120", "exif:ImageDescription", "takeout:description", "name:moment"),
            written=("xmp:dc:title",),
            headers="title; titel, titre, título, titolo, photo title, bildtitel, fototitel, titre de la photo, "
            "título de la foto, titolo della foto, titolo foto",
        ),
    ] = None
    tags: Annotated[  # distinct, ignoring case
        tuple[str, ...],
        Field(
            said("Tags"),
            "Keywords, and the names of people that were marked.",
            TAGS,
            sources=(
                "xmp:dc:subject",
                "iptc:2:25",
                "exif:XPKeywords",
                "xmp:lr:hierarchicalSubject",
                "xmp:digiKam:TagsList",
                "xmp:mwg-rs:Regions",
                "takeout:people.name",
            ),
            combine=combining.tags,
            written=("xmp:dc:subject",),
            headers="tag, tags, keyword, keywords, subject, subjects, schlagwort, schlagworte, schlagwörter, "
            "schlagwoerter, stichwort, stichworte, stichwörter, stichwoerter, mot clé, mots clés, mot clef, "
            "mots clefs, étiquette, étiquettes, palabra clave, palabras clave, etiqueta, etiquetas, parola chiave, "
            "parole chiave, etichetta, etichette, trefwoord, trefwoorden, sleutelwoord, sleutelwoorden",
            key="tag",
            word="tags",
        ),
    ] = ()
    caption: Annotated[
        str | None,
        Field(
            said("Caption"),
            "What is said of it at length.",
            text(LONGEST_CAPTION),
            sources=(
                "xmp:dc:description",
                "iptc:2:120",
                "exif:ImageDescription",
                "exif:XPComment",
                "takeout:description",
            ),
            written=("xmp:dc:description",),
            headers="caption; bildunterschrift, bildlegende, légende, leyenda, pie de foto, didascalia, bijschrift, "
            "onderschrift",
        ),
    ] = None
    rating: Annotated[
        int | None,
        Field(
            said("Rating"),
            "Stars, 1 to 5.",
            RATING,
            sources=("xmp:xmp:Rating", "exif:Rating"),
            written=("xmp:xmp:Rating",),
            headers=_STARS,
            doubtful=_STARS,
            facet=said("Ratings"),
        ),
    ] = None
    favourite: Annotated[
        bool,
        Field(
            said("Favourite"),
            "Whether it was marked as a favourite.",
            FLAG,
            sources=("takeout:favorited", "xmp:xmpDM:good"),
            written=("xmp:xmpDM:good",),
            headers=_FAVOURITE,
            doubtful=_FAVOURITE,
            facet=said("Favourites"),
        ),
    ] = False


@dataclass(frozen=True)
class FieldFilter:
    """Conditions on a photo's name and fields: a part of a text, the least number of stars, or a mark that is set.

    Except for dates and tags, a condition has the name of its field.
    """

    name: Annotated[str, Option("Only photos whose name contains this, in upper or lower case.", FILTERS)] = ""
    folder: Annotated[str, Option("Only photos in this folder, or below it.", FILTERS)] = ""
    taken_from: Annotated[
        str,
        Option(
            "Only photos that may have been taken on this date or later: 1923, 1923-05 or 1923-05-17.",
            FIELD_FILTERS,
            metavar="DATE",
        ),
    ] = ""
    taken_to: Annotated[
        str,
        Option(
            "Only photos that may have been taken until the end of this year, month or day.",
            FIELD_FILTERS,
            metavar="DATE",
        ),
    ] = ""
    camera: Annotated[str, Option("Only photos of a camera whose make and model contain this.", FIELD_FILTERS)] = ""
    title: Annotated[str, Option("Only photos whose title contains this.", FIELD_FILTERS)] = ""
    tags: Annotated[
        tuple[str, ...],
        Option(
            "Only photos with this tag; with several tags, only photos with all of them.",
            FIELD_FILTERS,
            name="tag",
            flags=("--tag",),
        ),
    ] = ()
    without_tags: Annotated[
        tuple[str, ...],
        Option(
            "Only photos without this tag; with several tags, only photos with none of them.",
            FIELD_FILTERS,
            name="without_tag",
        ),
    ] = ()
    caption: Annotated[str, Option("Only photos whose caption contains this.", FIELD_FILTERS)] = field(
        default="", kw_only=True
    )
    rating: Annotated[
        int | None, Option("Only photos with at least this many stars.", FIELD_FILTERS, least=1, most=MOST_STARS)
    ] = field(default=None, kw_only=True)
    favourite: Annotated[bool, Option("Only favourites.", FIELD_FILTERS, flags=("--favourite",))] = field(
        default=False, kw_only=True
    )
    pages: Annotated[
        str,
        Option(
            "Only these pages of books, counted in order: 12, 1-10 or 5-. The page that stands for its whole file "
            "counts as page 1, and so does a photo that is alone in its file.",
            FIELD_FILTERS,
            metavar="PAGES",
        ),
    ] = field(default="", kw_only=True)
    words: Annotated[
        str,
        Option(
            "Only photos with all of these words, or words that begin with them, in their name, title, caption, tags, "
            "camera, imported columns, album or date (May 1923); case and accents do not matter.",
            FILTERS,
        ),
    ] = field(default="", kw_only=True)


def _rows() -> Iterable[Field]:
    for one in fields(Metadata):
        (row,) = (part for part in get_args(one.type) if isinstance(part, Field))
        yield replace(row, name=one.name, key=row.key or one.name, word=row.word or one.name)


FIELDS = MappingProxyType({row.key: row for row in _rows()})
"""The rows, by what the catalogue calls them."""

WORDS = MappingProxyType({row.word: row.key for row in FIELDS.values()})
"""Words for the fields, in `--map` and in sentences, and what the catalogue calls them."""

SOURCES = frozenset(source for row in FIELDS.values() for source in (*row.sources, *row.last))
"""All that is looked for in files."""


def combined(layers: Sequence[SourceTexts]) -> Metadata:
    """Combine the results of readers of several files, by precedence."""
    values: dict[str, Any] = {}
    for row in FIELDS.values():
        combine = row.combine or partial(combining.first, read=row.kind.read)
        found = (combine(layers, some) for some in (row.sources, row.last))
        values[row.name] = next((value for value in found if value is not None), None)
    return Metadata(**{name: value for name, value in values.items() if value is not None})


def describing(kind: T) -> T:
    """Class decorator that inserts the descriptions of the fields of `FieldFilter` into a docstring: ``{filters}``."""
    rows = [f"{one.path[0]} : {one.spoken}\n    {one.option.help}" for one in options_of(FieldFilter).values()]
    kind.__doc__ = with_paragraphs(kind.__doc__ or "", {"{filters}": "\n".join(rows)})
    return kind
