"""Tables of what was imported (CSV, RFC 4180), written so that an import reads the same from them."""

import csv
import io
from pathlib import Path

from index.arrays import save_bytes
from index.errors import CairnError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.metadata_store import TAG, imported_values
from retrieval.metadata.fields import FIELDS


def export_table(catalogue: Catalogue, path: Path) -> tuple[int, int]:
    """Write what was imported into a new table, which `importing.import_table` reads.

    Parameters
    ----------
    catalogue : Catalogue
        Of the collection.
    path : Path
        The table, which must not be there yet. Its first column names the photos, and of a key with several values
        there are several columns; tags are parted by semicolons.

    Returns
    -------
    photos, keys : int
        How many photos something was imported for, and how many keys these values have.

    Raises
    ------
    CairnError
        The table is there, or cannot be written.
    """
    if path.exists():
        raise CairnError(f"{path} already exists: choose another name for the table.")
    imported = catalogue.read(imported_values)
    widths: dict[str, int] = {}
    for values in imported.values():
        for key, several in values.items():
            widths[key] = max(widths.get(key, 1), 1 if key == TAG else len(several))
    known = [key for key in FIELDS if key in widths]
    keys = [*known, *sorted(widths.keys() - set(known))]
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["name", *(key for key in keys for _ in range(widths[key]))])
    for number, name, place in catalogue.places():
        if number in imported:
            row = [name if name.strip() == name else place]
            for key in keys:
                several = imported[number].get(key, [])
                cells = [";".join(several)] if key == TAG else several
                row += [*cells, *[""] * (widths[key] - len(cells))]
            writer.writerow(row)
    try:
        save_bytes(path, text.getvalue().encode("utf-8-sig"))  # marked as UTF-8, or spreadsheets take it for another
    except OSError as error:
        raise CairnError(f"{path} cannot be written ({error.strerror or error}): choose another place.") from error
    return len(imported), len(keys)
