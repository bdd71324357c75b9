"""Headers of tables: the field of a column, as people name it in six languages.

Headers of fields are listed in `retrieval.metadata.fields`, in English, German, French, Spanish, Italian and Dutch.
Case, accents, spaces, hyphens and underscores are ignored. A few headers are ambiguous ("Breite" is also the width of a
print): they count only if the cells confirm them, see `retrieval.catalogue.tables.columns`.
"""

import unicodedata

from retrieval.metadata.fields import FIELDS

PHOTO = "photo"
"""The field that says which photo a row is about; the others are called by their keys in the catalogue."""

_PHOTO_HEADERS = (
    "name; path; file; filename; dateiname, bilddatei, nom du fichier, nom de fichier, nombre de archivo, "
    "nombre del archivo, nombre de fichero, nome file, nome del file, bestandsnaam; datei, fichier, archivo, fichero, "
    "bestand; dateipfad, pfad, chemin, ruta, percorso, pad; image, photo, bild, foto, imagen, immagine, afbeelding; "
    "nom, nombre, nome, naam"
)
_YEARS = "year, jahr, année, año, anno, jaar"


def normal_header(header: str) -> str:
    r"""Normalise a header: without case, accents, spaces and punctuation.

    >>> normal_header("Aufnahme-Datum"), normal_header(" DATE_TAKEN "), normal_header("Schlagwo\u0308rter")
    ('aufnahmedatum', 'datetaken', 'schlagworter')
    """
    return "".join(one for one in unicodedata.normalize("NFKD", header.casefold()) if one.isalnum())


def rank_of(header: str, field: str) -> int | None:
    """How well a header names a field: 0 is best; None if it does not."""
    return _RANKS[field].get(normal_header(header))


def is_doubtful(header: str) -> bool:
    """Whether a header that names a field is ambiguous."""
    return normal_header(header) in _DOUBTFUL_HEADERS


def is_year(header: str) -> bool:
    """Whether a header names a column of years."""
    return normal_header(header) in _YEAR_HEADERS


def field_of(header: str) -> str | None:
    """The field of metadata that a header names unambiguously, or None."""
    if is_doubtful(header):
        return None
    return next((field for field in _RANKS if field != PHOTO and rank_of(header, field) is not None), None)


def _split(names: str) -> list[str]:
    return [normal_header(name) for name in names.split(",")]


_RANKS = {
    field: {name: rank for rank, names in enumerate(ranks.split(";")) for name in _split(names)}
    for field, ranks in {**{key: row.headers for key, row in FIELDS.items()}, PHOTO: _PHOTO_HEADERS}.items()
}
_DOUBTFUL_HEADERS = frozenset(name for row in FIELDS.values() for name in _split(row.doubtful) if name)
_YEAR_HEADERS = frozenset(_split(_YEARS))
