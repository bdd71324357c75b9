"""Meanings of the columns of a table of metadata, by header and, if that is ambiguous, by cells."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from index.errors import CairnError
from index.messages import Message
from retrieval.catalogue.headers import PHOTO, is_doubtful, is_year, normal_header, rank_of
from retrieval.catalogue.metadata_store import TAG, folded_key
from retrieval.catalogue.tables.cells import Survey
from retrieval.metadata.fields import FIELDS, WORDS
from retrieval.metadata.text import LONGEST_KEY, clean

_PLACE = ("latitude", "longitude")
_SINGLE = [key for key, row in FIELDS.items() if key not in (*_PLACE, TAG)]  # fields with one column
_LISTED = 300  # characters of a list of columns in a sentence


@dataclass(frozen=True)
class Columns:
    """Meanings of the columns of a table."""

    photo: int  # place of the column that names the photo of a row
    keys: list[str]  # of each column; "" for the photo's, and for those without a name
    labels: dict[str, str]  # names of the columns that are stored as text, by key
    day_first: bool | None  # the order of dates such as 03/04/1923
    report: dict[str, Any]  # photo, understood, kept and warnings: see `importing.ImportReport`
    refused: dict[str, str] = field(default_factory=dict)  # name under which invalid cells of a field are stored


def parse_mapping(text: str) -> tuple[str, str]:
    """Read FIELD=HEADER of `--map`: the key of the field, and the header."""
    word, equals, header = text.partition("=")
    if not equals or not header.strip():
        raise CairnError("A column is mapped as FIELD=HEADER, such as DATE=Datum.")
    name = normal_header(word)
    key = WORDS.get(name) or (name if name in FIELDS else None)
    if key is None:
        raise CairnError(f"There is no field {word.strip()!r} to map a column to: choose one of {', '.join(WORDS)}.")
    return key, header


def understand_columns(
    path: Path,
    names: Sequence[str],
    surveys: Sequence[Survey],
    name_column: str | None = None,
    mapping: Sequence[tuple[str, str]] = (),
    plain: Sequence[str] = (),
) -> Columns:
    """Decide the meanings of the columns of a table from their headers and the counts of types of their cells.

    Mapped headers take precedence, then headers that name a field best. Ambiguous headers count only if the cells
    confirm them. If several columns may name the photo of a row, the one is chosen whose cells are most often names of
    photos, or else names of files. Columns in `plain` are stored as text, without interpretation.
    """
    chosen = _mapped(path, names, mapping)
    warnings: list[str | Message] = []
    photo = _photo_column(path, names, surveys, name_column, chosen, warnings)
    fields: dict[int, str] = {place: key for key, places in chosen.items() for place in places}
    plain_places = {_find(names, header) for header in plain}
    free = [place for place, name in enumerate(names) if name and place != photo and place not in fields]
    open_places = [place for place in free if place not in plain_places]
    candidates = {key: _candidates(names, open_places, key) for key in FIELDS}
    for key in _SINGLE:
        candidates[key] = [
            place for place in candidates[key] if not is_doubtful(names[place]) or _bears_out(surveys[place], key)
        ]
    fields |= dict.fromkeys(candidates[TAG], TAG)
    for key in _SINGLE:
        winner = next(iter(chosen.get(key, ())), None)
        if winner is None and candidates[key]:
            winner = candidates[key][0]
            _refuse_equals(path, names, winner, candidates[key], key)
            fields[winner] = key
        warnings += _beaten(names, winner, candidates[key], key)
    fields |= _places(path, names, surveys, chosen, candidates, warnings)
    labels: dict[str, str] = {}
    keys, stored = [], []
    for place, name in enumerate(names):
        if place in fields or place == photo or not name:
            keys.append(fields.get(place, ""))
            continue
        label = _column_label(name) if folded_key(name) in FIELDS else name
        keys.append(folded_key(label))
        labels.setdefault(keys[-1], label)
        stored.append(label)
    warnings += _suspicions(names, surveys, fields, {photo, *plain_places})
    report = {
        "photo": names[photo],
        "understood": [{"column": names[place], "as": fields[place]} for place in sorted(fields)],
        "kept": list(dict.fromkeys(stored)),
        "warnings": warnings,
    }
    day_first = next((surveys[place].day_first for place, key in fields.items() if key == "taken"), None)
    refused = {key: _column_label(names[place]) for place, key in fields.items() if not FIELDS[key].kind.longest}
    return Columns(photo, keys, labels, day_first, report, refused)


def column_sentences(report: Mapping[str, Any]) -> list[str]:
    """Describe `Columns.report` in sentences."""
    understood = ", ".join(f"{one['column']} as {FIELDS[one['as']].word}" for one in report["understood"])
    stored = ", ".join(report["kept"])
    lines = [f"Columns: {_short(report['photo'])} says which photo; understood: {_short(understood) or 'no other'}."]
    if stored:
        lines.append(f"Kept as they are: {_short(stored)}.")
    return lines + list(report["warnings"])


def _bears_out(survey: Survey, key: str) -> bool:
    """Whether the cells of a column confirm a field that its header may name."""
    return survey.mostly(survey.dates + survey.years if key == "taken" else survey.fits[key])


def _column_label(name: str) -> str:
    """The name under which cells are stored as text if their column has the name of a field."""
    return f"{name[: LONGEST_KEY - 9]} (column)"


def _short(text: str) -> str:
    return text if len(text) <= _LISTED else f"{text[:_LISTED]}…"


def _listed(names: Sequence[str]) -> str:
    return _short(", ".join(repr(name) for name in names[:20]) or "none")


def _find(names: Sequence[str], header: str) -> int | None:
    """The column of a header: exact, else ignoring case, else normalised."""
    wanted = clean(header, LONGEST_KEY)
    for normal in (str, str.casefold, normal_header):
        there = [normal(name) for name in names]
        if normal(wanted) and normal(wanted) in there:
            return there.index(normal(wanted))
    return None


def _mapped(path: Path, names: Sequence[str], mapping: Sequence[tuple[str, str]]) -> dict[str, list[int]]:
    """Columns by the fields that they were mapped to."""
    chosen: dict[str, list[int]] = {}
    for key, header in mapping:
        place = _find(names, header)
        if place is None:
            raise CairnError(
                "{path} has no column {header} to map; its columns are {names}.",
                path=path,
                header=repr(header),
                names=_listed(names),
            )
        if any(place in places for places in chosen.values()):
            raise CairnError("{--map} gives the column {header} twice: keep one of them.", header=repr(header))
        if key in chosen and key != TAG:
            raise CairnError("{--map} gives two columns for {key}: keep one of them.", key=FIELDS[key].word)
        chosen.setdefault(key, []).append(place)
    return chosen


def _photo_column(
    path: Path,
    names: Sequence[str],
    surveys: Sequence[Survey],
    wanted: str | None,
    mapped: Mapping[str, Sequence[int]],
    warnings: list[str | Message],
) -> int:
    """Place of the column that names the photo of a row; warns if there are other candidates."""
    taken = {place for places in mapped.values() for place in places}
    if wanted is not None:
        place = _find(names, wanted)
        if place is None:
            raise CairnError(
                "{path} has no column {header}; its columns are {names}.",
                path=path,
                header=repr(wanted),
                names=_listed(names),
            )
        if place in taken:
            raise CairnError(
                "The column {wanted} names the photo of each row: leave it out of {--map}.", wanted=repr(wanted)
            )
        return place
    candidates = _candidates(names, [place for place in range(len(names)) if place not in taken], PHOTO)
    if not candidates:
        raise CairnError(
            "No column of {path} names the photo of each row; its columns are {names}: call one of them name, path or "
            "file, or give {--name-column}.",
            path=path,
            names=_listed(names),
        )
    best = max(candidates, key=lambda place: (surveys[place].photos, surveys[place].files))  # ties: the first
    if len(candidates) > 1:
        others = [names[place] for place in candidates if place != best]
        warnings.append(
            Message(
                "Columns {columns} may all name the photo of each row: {best} is used; {--name-column} would choose "
                "another, such as {other}.",
                columns=_listed([names[best], *others]),
                best=repr(names[best]),
                other=repr(others[0]),
            )
        )
    return best


def may_say_photo(header: str) -> bool:
    """Whether a column of this header may name the photo of a row."""
    return rank_of(header, PHOTO) is not None


def _candidates(names: Sequence[str], places: Sequence[int], field: str) -> list[int]:
    """Places of the columns whose headers name a field, the best first."""
    ranked = [(rank, place) for place in places if (rank := rank_of(names[place], field)) is not None]
    return [place for _, place in sorted(ranked)]


def _refuse_equals(path: Path, names: Sequence[str], winner: int, candidates: Sequence[int], key: str) -> None:
    equals = [names[place] for place in candidates if normal_header(names[place]) == normal_header(names[winner])]
    if len(equals) > 1:
        raise CairnError(
            "{path} has {number} columns for the {what}, {columns}: keep one of them, or choose one with {--map} "
            "{map}.",
            path=path,
            number=len(equals),
            what=FIELDS[key].word,
            columns=_listed(equals),
            map=f"{FIELDS[key].word.upper()}={equals[0]}",
        )


def _beaten(names: Sequence[str], winner: int | None, candidates: Sequence[int], key: str) -> list[str | Message]:
    """Return warnings for columns that are stored as text because another one has the same meaning."""
    return [
        Message(
            "Column {column} is imported as text, because {winner} already gives the {what}; {--map} {map} would "
            "choose it instead.",
            column=repr(names[place]),
            winner=repr(names[winner]),
            what=FIELDS[key].word,
            map=f"{FIELDS[key].word.upper()}={names[place]}",
        )
        for place in candidates
        if winner is not None and place != winner
    ]


def _places(
    path: Path,
    names: Sequence[str],
    surveys: Sequence[Survey],
    chosen: Mapping[str, Sequence[int]],
    candidates: Mapping[str, Sequence[int]],
    warnings: list[str | Message],
) -> dict[int, str]:
    """Choose the columns of latitude and longitude: headers that may mean sizes count only if both are confirmed."""
    columns: dict[str, int] = {}
    for key in _PLACE:
        sure = [*chosen.get(key, ()), *(place for place in candidates[key] if not is_doubtful(names[place]))]
        both = sure or candidates[key]
        if both:
            columns[key] = both[0]
    doubtful = [place for key, place in columns.items() if key not in chosen and is_doubtful(names[place])]
    if doubtful:
        bears_out = len(columns) == 2 and surveys[columns["latitude"]].mostly(surveys[columns["latitude"]].latitudes)
        bears_out = bears_out and surveys[columns["longitude"]].mostly(surveys[columns["longitude"]].degrees)
        # Sizes of prints are also in range, but have fewer decimals.
        if len(doubtful) == 2:
            bears_out = bears_out and all(2 * surveys[place].fine >= surveys[place].filled for place in doubtful)
        if bears_out:
            warnings.append(
                Message(
                    "Columns {latitude} and {longitude} are read as latitude and longitude, as their values look like "
                    "places.",
                    latitude=repr(names[columns["latitude"]]),
                    longitude=repr(names[columns["longitude"]]),
                )
            )
        else:
            if len(columns) == 2:
                headers = ", ".join(repr(names[place]) for place in doubtful)
                warnings.append(
                    Message(
                        "{columns}: imported as text, because the values do not look like places; if they are, give "
                        "{--map} LATITUDE=… and {--map} LONGITUDE=….",
                        columns=headers,
                    )
                )
            columns = {key: place for key, place in columns.items() if place not in doubtful}
    for key, place in columns.items():
        if key not in chosen:
            _refuse_equals(path, names, place, candidates[key], key)
        rivals = [rival for rival in candidates[key] if not is_doubtful(names[rival])]
        warnings += _beaten(names, place, rivals, key)
    return {place: key for key, place in columns.items()}


def _suspicions(
    names: Sequence[str], surveys: Sequence[Survey], fields: Mapping[int, str], known: Collection[int | None]
) -> list[str | Message]:
    """Warn of columns that are stored as text and look like dates or coordinates, if no other column has these."""
    filled = set(fields.values())
    free = [place for place, name in enumerate(names) if name and place not in known and place not in fields]
    warnings: list[str | Message] = []
    if "taken" not in filled:
        for place in free:
            survey = surveys[place]
            years = survey.years if is_year(names[place]) else 0
            if survey.mostly(survey.dates + years):
                warnings.append(
                    Message(
                        "Column {column} looks like dates and is imported as text: if it says when the photos were "
                        "taken, give {--map} DATE={name}.",
                        column=repr(names[place]),
                        name=names[place],
                    )
                )
    if not filled.issuperset(_PLACE):
        fine = [place for place in free if surveys[place].mostly(min(surveys[place].fine, surveys[place].degrees))]
        if len(fine) + len(filled.intersection(_PLACE)) > 1:
            headers = ", ".join(repr(names[place]) for place in fine[:4])
            warnings.append(
                Message(
                    "{columns}: imported as text, although the values look like coordinates; if they are, give {--map} "
                    "LATITUDE=… and {--map} LONGITUDE=….",
                    columns=headers,
                )
            )
        warnings += [
            Message(
                "Column {column} looks like coordinates and is kept as text: two columns are read, latitude and "
                "longitude.",
                column=repr(names[place]),
            )
            for place in free
            if surveys[place].mostly(surveys[place].pairs)
        ]
    return warnings
