"""Identity of a collection: a random text stored in both its folder and its catalogue, to detect a mix-up.

The catalogue may be in a database anywhere, and an address may be that of another collection by mistake. The SQLite
file in the folder always belongs to it, so that a whole collection may be copied.
"""

import hashlib
import re
import secrets
from pathlib import Path

from index.arrays import save_bytes
from index.errors import CairnError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import printable_address
from retrieval.catalogue.schema import FILE
from retrieval.catalogue.segment_rows import segments_in
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.layout import IDENTITY, SEAL
from retrieval.collection.seal import sound_seal
from retrieval.collection.segments import has_foreign_photos, is_there, published

IDENTITY_KEY = "cairn.identity"
"""Setting of the catalogue: the collection's identity."""

_LENGTH = 32  # digits
_LARGEST = 1 << 10  # bytes of the file


class WrongCatalogueError(CairnError):
    """The catalogue belongs to another collection."""


def read_identity(folder: Path) -> str | None:
    """Identity stored in a collection's folder; None if missing or damaged."""
    path = folder / IDENTITY
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        contents = path.read_bytes()
    except OSError:
        return None
    identity = contents[:_LENGTH].decode("ascii", "replace")
    return identity if re.fullmatch("[0-9a-f]+", identity) and contents == _encoded(identity) else None


def write_identity(folder: Path, identity: str) -> None:
    """Store an identity in a collection's folder."""
    save_bytes(folder / IDENTITY, _encoded(identity))


def check_identity(folder: Path, catalogue: Catalogue, *, is_new: bool = False) -> None:
    """Raise WrongCatalogueError if a catalogue does not certainly belong to the folder; changes nothing.

    If only one of the two has an identity, the folder must have exactly the segments that the catalogue names; if
    neither has, at least one of them.
    """
    stored, known = read_identity(folder), catalogue.setting(IDENTITY_KEY)
    if stored is not None and stored == known:
        return
    if is_own(folder, catalogue):
        if stored is not None and known is not None:
            raise WrongCatalogueError(
                "The catalogue {file} belongs to another collection: restore this one's from a copy, or move it away "
                "and run {cairn repair}.",
                file=folder / FILE,
            )
        return
    elsewhere = catalogue.address.get_backend_name() != "sqlite" and sealed_database(folder) == "sqlite"
    if (stored is None or known is None) and not elsewhere:
        one_sided = stored is not None or known is not None
        if has_segments_of(folder, catalogue, all_of_them=one_sided) and not (is_new and known is not None):
            return
    where = printable_address(catalogue.address)
    if is_new:
        own = f"give {folder} a database of its own"
        if catalogue.address.get_backend_name() == "postgresql":
            own += f", or a schema of its own in that one, as with {_with_schema(folder, catalogue)}"
        raise WrongCatalogueError(f"The catalogue {where} belongs to another collection: {own}.")
    raise WrongCatalogueError(
        "The catalogue {where} belongs to another collection: give the address that {folder} was made with, or leave "
        "out {--catalogue} if it was made without.",
        where=where,
        folder=folder,
    )


def keep_identity(folder: Path, catalogue: Catalogue, *, is_new: bool = False) -> None:
    """Store the identity in folder and catalogue, with the lock held, or raise as `check_identity` does.

    A process killed between the two leaves it only in the folder.
    """
    check_identity(folder, catalogue, is_new=is_new)
    stored, known = read_identity(folder), catalogue.setting(IDENTITY_KEY)
    identity = stored or known or secrets.token_hex(_LENGTH // 2)
    if stored is None:
        write_identity(folder, identity)
    if known is None:
        catalogue.write(keep_setting, IDENTITY_KEY, identity)


def _with_schema(folder: Path, catalogue: Catalogue) -> str:
    """The address of a catalogue with a schema named after a folder."""
    name = re.sub("[^a-z0-9_]+", "_", folder.stem.lower()).strip("_")[:40]
    name = name if re.match("[a-z]", name) and not name.startswith("pg_") else f"photos_{name}".rstrip("_")
    if name == catalogue.address.query.get("schema"):
        name += "_2"
    return printable_address(catalogue.address.update_query_dict({"schema": name}))


def is_own(folder: Path, catalogue: Catalogue) -> bool:
    """Whether a catalogue is the SQLite file in a folder."""
    address = catalogue.address
    if address.get_backend_name() != "sqlite" or not address.database:
        return False
    return Path(address.database).resolve() == (folder / FILE).resolve()


def has_segments_of(folder: Path, catalogue: Catalogue, *, all_of_them: bool = False) -> bool:
    """Whether a folder has one, or `all_of_them` and no other, of the segments that its catalogue names."""
    rows = catalogue.read(segments_in)
    if not rows:
        return not any(has_foreign_photos(path, catalogue) for path in published(folder))
    if all_of_them:
        names = {row.folder for row in rows}
        return all(is_there(folder, row) for row in rows) and names == {path.name for path in published(folder)}
    return any(is_there(folder, row) for row in rows)


def sealed_database(folder: Path) -> str | None:
    """Database of a collection's catalogue, such as sqlite or postgresql, by its seal; None if that is lost."""
    seal = sound_seal(folder / SEAL)
    return seal.database[:40] if seal is not None else None


def _encoded(identity: str) -> bytes:
    """An identity with its checksum, to detect damage."""
    return f"{identity} {hashlib.sha256(identity.encode()).hexdigest()[:16]}\n".encode()
