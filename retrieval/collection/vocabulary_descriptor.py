"""The descriptor in the vocabulary's folder, if a collection was retrained with another: both change at once."""

from pathlib import Path

from index.arrays import save_bytes
from index.errors import CairnError
from index.extensions import place_of
from index.files.reading import open_regular
from retrieval.collection.layout import DESCRIPTOR
from retrieval.descriptors.registry import find_descriptor, model_file

NAME_FILE = "descriptor.txt"
"""File of the descriptor's name, where that has no file of its own."""

_LARGEST = 200  # bytes of a name


def descriptor_of(vocabulary: Path) -> str | None:
    """Return the descriptor in a vocabulary's folder, for `find_descriptor`, or None if the options name it."""
    if (vocabulary / DESCRIPTOR).is_file():
        return str(vocabulary / DESCRIPTOR)
    path = vocabulary / NAME_FILE
    try:
        with open_regular(path) as file:
            name = file.read(_LARGEST + 1).decode("ascii", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CairnError(
            "{path} cannot be read ({reason}): run {cairn check}.", path=path, reason=error.strerror or error
        ) from error
    if len(name) > _LARGEST or not name.isprintable() or model_file(name) is not None:
        raise CairnError("{path} does not name a descriptor: run {cairn check}, then {cairn repair}.", path=path)
    return name


def files_of(name: str) -> dict[str, bytes]:
    """Return the file, by its name in the vocabulary's folder, that records a descriptor."""
    file = model_file(name)
    if file is not None:
        from retrieval.descriptors.learnt import read_model_file

        return {DESCRIPTOR: read_model_file(file)}
    find_descriptor(name)
    name = place_of("descriptor", name)
    return {NAME_FILE: f"{name}\n".encode("ascii")}


def kept_files(vocabulary: Path) -> dict[str, bytes]:
    """Return the file that records the descriptor in a vocabulary's folder, if there is one."""
    paths = [vocabulary / name for name in (DESCRIPTOR, NAME_FILE)]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def write_files(vocabulary: Path, files: dict[str, bytes]) -> None:
    """Write the files of `files_of` into a new vocabulary's folder."""
    for name, contents in files.items():
        save_bytes(vocabulary / name, contents)
