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
    """Write imported values into a new table, for `importing.import_table`; return the numbers of photos and of keys.

    The first column names the photos. Keys with several values have several columns; tags are separated by semicolons.
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
        save_bytes(
            path, text.getvalue().encode("utf-8-sig")
        )  # with a byte order mark, so that spreadsheets detect UTF-8
    except OSError as error:
        raise CairnError(f"{path} cannot be written ({error.strerror or error}): choose another place.") from error
    return len(imported), len(keys)
