"""Headers of tables: which field a column is for, as people name it in six languages.

English, German, French, Spanish, Italian and Dutch are understood, in upper or lower case, with accents or without,
with spaces, hyphens or underscores. A few headers mean something else as often ("Breite" is also how wide a print is):
these count where the cells bear it out, see `retrieval.catalogue.tables.columns`.
"""

import unicodedata

PHOTO = "photo"
"""The field that says which photo a row is about; the others are called by their keys in the catalogue."""

# Of several columns for one field, the one counts whose header stands in an earlier part, parted by semicolons.
_HEADERS = {
    "taken": "taken; date taken, datetimeoriginal, photo date, date of photo, capture date, date captured, date shot, "
    "shooting date, aufnahmedatum, aufgenommen, aufgenommen am, aufnahmezeit, aufnahmezeitpunkt, aufnahmetag, "
    "datum der aufnahme, fotodatum, date de prise de vue, date de la prise de vue, date prise de vue, prise de vue, "
    "date de la photo, fecha de toma, fecha de captura, fecha de la foto, fecha foto, data di scatto, "
    "data dello scatto, data scatto, data di ripresa, data della foto, data foto, opnamedatum, datum opname, "
    "datum van opname, datum foto; date, date time, date et heure, datum, datum uhrzeit, datum en tijd, fecha, "
    "fecha y hora, data e ora; data",
    "title": "title; titel, titre, título, titolo, photo title, bildtitel, fototitel, titre de la photo, "
    "título de la foto, titolo della foto, titolo foto",
    "camera": "camera; kamera, cámara, fotocamera, appareil, appareil photo, fotoapparat, macchina fotografica, "
    "fototoestel, camera model, kameramodell, modelo de cámara, modello fotocamera, cameramodel",
    "latitude": "latitude; lat, gps latitude, decimal latitude, breitengrad, geografische breite, "
    "geographische breite, gps breite, latitud, latitudine, breedtegraad, geografische breedte; breite, breedte",
    "longitude": "longitude; lon, lng, long, gps longitude, decimal longitude, längengrad, laengengrad, "
    "geografische länge, geographische länge, geografische laenge, geographische laenge, gps länge, longitudine, "
    "lengtegraad, geografische lengte; longitud; länge, laenge, lengte",
    "tag": "tag, tags, keyword, keywords, subject, subjects, schlagwort, schlagworte, schlagwörter, schlagwoerter, "
    "stichwort, stichworte, stichwörter, stichwoerter, mot clé, mots clés, mot clef, mots clefs, étiquette, "
    "étiquettes, palabra clave, palabras clave, etiqueta, etiquetas, parola chiave, parole chiave, etichetta, "
    "etichette, trefwoord, trefwoorden, sleutelwoord, sleutelwoorden",
    PHOTO: "name; path; file; filename; dateiname, bilddatei, nom du fichier, nom de fichier, nombre de archivo, "
    "nombre del archivo, nombre de fichero, nome file, nome del file, bestandsnaam; datei, fichier, archivo, fichero, "
    "bestand; dateipfad, pfad, chemin, ruta, percorso, pad; image, photo, bild, foto, imagen, immagine, afbeelding; "
    "nom, nombre, nome, naam",
}
# "Data" of any kind, and how long and wide a print or a frame is.
_DOUBTFUL = "data, breite, breedte, länge, laenge, longitud, lengte"
_YEARS = "year, jahr, année, año, anno, jaar"


def normal_header(header: str) -> str:
    r"""Return a header without what people write in different ways: case, accents, spaces and punctuation.

    >>> normal_header("Aufnahme-Datum"), normal_header(" DATE_TAKEN "), normal_header("Schlagwo\u0308rter")
    ('aufnahmedatum', 'datetaken', 'schlagworter')
    """
    return "".join(one for one in unicodedata.normalize("NFKD", header.casefold()) if one.isalnum())


def rank_of(header: str, field: str) -> int | None:
    """How well a header names a field: 0 is best; None if it does not."""
    return _RANKS[field].get(normal_header(header))


def is_doubtful(header: str) -> bool:
    """Whether a header that names a field means something else as often."""
    return normal_header(header) in _DOUBTFUL_HEADERS


def is_year(header: str) -> bool:
    """Whether a header says that its column holds years."""
    return normal_header(header) in _YEAR_HEADERS


def field_of(header: str) -> str | None:
    """The field that a header names beyond doubt, or None; no field but those of what is known of a photo."""
    if is_doubtful(header):
        return None
    return next((field for field in _RANKS if field != PHOTO and rank_of(header, field) is not None), None)


def _split(names: str) -> list[str]:
    return [normal_header(name) for name in names.split(",")]


_RANKS = {
    field: {name: rank for rank, names in enumerate(ranks.split(";")) for name in _split(names)}
    for field, ranks in _HEADERS.items()
}
_DOUBTFUL_HEADERS = frozenset(_split(_DOUBTFUL))
_YEAR_HEADERS = frozenset(_split(_YEARS))
