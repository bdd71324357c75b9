"""Checks of single files of a collection: options, descriptor and vocabulary."""

from index.arrays import hash_file, load_json
from index.errors import CairnError, LaterVersion, Unreadable, refuse_unreadable
from index.extensions import ExtensionMissing
from index.vocabulary import META_FILE, Vocabulary
from retrieval.collection.layout import DESCRIPTOR, OPTIONS, SEGMENTS, VOCABULARY, is_vocabulary
from retrieval.collection.options import read_options
from retrieval.collection.seal import Seal
from retrieval.collection.vocabulary_descriptor import NAME_FILE, descriptor_of
from retrieval.descriptors.registry import find_descriptor
from retrieval.foreign.computed import make_extractor
from retrieval.integrity.report import Findings, size_of


def check_static(findings: Findings, seal: Seal | None, vocabulary: str | None) -> dict[str, str | None]:
    """Check options, descriptor and vocabulary; return the fingerprints of `vocabulary` and `descriptor`, or None."""
    if seal is not None:
        _compare_with_seal(findings, seal, vocabulary)
    fingerprints = {"vocabulary": None, "descriptor": _check_descriptor(findings, vocabulary)}
    if vocabulary is not None:
        sealed = seal if seal is not None and seal.vocabulary == vocabulary else None
        return fingerprints | {"vocabulary": _check_vocabulary(findings, sealed, vocabulary)}
    return fingerprints


def _compare_with_seal(findings: Findings, seal: Seal, vocabulary: str | None) -> None:
    """Compare files with the seal, except those of a vocabulary that is no longer in use."""
    for name, sealed in seal.files.items():
        top = name.split("/")[0]
        path = findings.folder / name
        if is_vocabulary(top) and top != vocabulary:
            continue
        if top == SEGMENTS and not path.parent.exists():
            continue  # the catalogue decides whether it should exist
        remedy = _remedy(findings) if is_vocabulary(top) else None
        try:
            # By its length first: it may be of any.
            same = path.stat().st_size == sealed.bytes and hash_file(path, findings.tell) == sealed.sha256
        except FileNotFoundError:
            findings.damage(name, "The file is missing.", remedy)
            continue
        except OSError as error:
            refuse_unreadable(path, error)
            findings.damage(name, f"The file cannot be read ({error.strerror or error}).", remedy)
            continue
        findings.was_read(1, size_of(path))
        if not same:
            findings.damage(name, "The file is not what was written.", remedy)


def _remedy(findings: Findings) -> str:
    return (
        f"Run cairn repair {findings.folder}; if that cannot restore the {VOCABULARY}, cairn retrain {findings.folder} "
        "makes a new one."
    )


def _check_descriptor(findings: Findings, vocabulary: str | None) -> str | None:
    """Read the options and the descriptor in use; return the fingerprint of that and of the regions."""
    try:
        options = read_options(findings.folder / OPTIONS)
    except Unreadable:
        raise
    except CairnError as error:
        if isinstance(error, LaterVersion) and not findings.is_damaged(OPTIONS):
            raise
        findings.damage(OPTIONS, f"The options cannot be read: {error}")
        return None
    files = [OPTIONS, DESCRIPTOR, *(f"{vocabulary}/{name}" for name in (DESCRIPTOR, NAME_FILE))]
    if findings.is_damaged(*files):
        return None
    options.check_extensions(findings.folder)
    brought = None
    try:
        brought = descriptor_of(findings.folder / vocabulary) if vocabulary is not None else None
        descriptor = find_descriptor(brought or options.descriptor, findings.folder)
        return make_extractor(descriptor, options.features).fingerprint
    except (ExtensionMissing, Unreadable):
        raise
    except CairnError as error:
        own = DESCRIPTOR if options.descriptor == DESCRIPTOR else OPTIONS
        place = own if brought is None else f"{vocabulary}/{DESCRIPTOR}"
        findings.damage(place, f"The descriptor cannot be read: {error}")
        return None


def _check_vocabulary(findings: Findings, seal: Seal | None, name: str) -> str | None:
    """Return the vocabulary's fingerprint; without a seal that knows its files, they are compared with that."""
    folder = findings.folder / name
    if seal is None:
        try:
            fingerprint = Vocabulary.load(folder).fingerprint
        except Unreadable:
            raise
        except CairnError as error:
            if folder.is_dir():  # it may have been replaced meanwhile
                findings.damage(name, f"The vocabulary cannot be read: {error}", _remedy(findings))
            return None
        paths = list(folder.iterdir())
        findings.was_read(len(paths), sum(map(size_of, paths)))
        findings.tell(sum(map(size_of, paths)))
        return fingerprint
    if folder.is_dir():
        for other in sorted({f"{name}/{path.name}" for path in folder.iterdir()} - seal.files.keys()):
            findings.notes.append(f"{other} is not one of the collection's files.")
    if any(one.file.startswith(f"{name}/") for one in findings.damaged):
        return None
    return str(load_json(folder / META_FILE)["fingerprint"])
