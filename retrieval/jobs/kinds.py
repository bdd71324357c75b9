"""Kinds of jobs: the arguments of each, and the command line that is made of them when it begins.

A queue keeps the kind and what it is told, never a command: whatever it holds, no other command is run, and none for
another collection.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from index.errors import CairnError
from index.messages import said
from retrieval.collection.layout import UPLOADS
from retrieval.iiif.fetching import parse_address
from retrieval.photos.listing import stays_below

MOST = 10_000
"""Names of photos, or places of them, that one job is told."""

LONGEST = 4096
"""Characters of each."""


class OutsideError(CairnError):
    """Photos were to be taken from where this server takes none."""


def outside() -> OutsideError:
    """The error of a place that photos may not be taken from."""
    return OutsideError(
        "This server takes no photos from there: whoever runs it may allow that folder with {--photos}."
    )


class UnreadableError(CairnError):
    """What a queue holds of a job makes no sense."""


def _absolute(path: str) -> str:
    if not os.path.isabs(path):  # noqa: PTH117 (it may be the path of no file)
        raise ValueError("the path is not absolute")
    return path


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("there is a null character in it")
    return text


def _fetchable(address: str) -> str:
    try:
        parse_address(address)
    except CairnError:
        raise ValueError("it is no address that may be asked") from None
    return address


Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST), AfterValidator(_plain)]
Place = Annotated[Text, AfterValidator(_absolute)]
Address = Annotated[Text, AfterValidator(_fetchable)]


class JobKind(BaseModel):
    """Arguments of a job of one kind; raises pydantic's ValidationError if they are invalid."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    kind: ClassVar[str]
    title: ClassVar[str]  # what it does, in English
    effort: ClassVar[int] = 0  # how long it takes, roughly: 0 seconds, 1 minutes, 2 longer, 3 longest
    changes_photos: ClassVar[bool] = False  # whether photos are listed otherwise afterwards
    parts: ClassVar[dict[str, float]] = {}  # steps of the command, and which part of its time each takes, about

    @property
    def about(self) -> str:
        """With what it is done, such as the name of a folder; may be empty."""
        return ""

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """What stands behind the collection in the command line.

        Parameters
        ----------
        collection : Path
            Its folder.
        roots : sequence of Path
            Folders below which photos may be taken.

        Raises
        ------
        OutsideError
            Photos would be taken from elsewhere.
        """
        return []

    def command(self, collection: Path, roots: Sequence[Path], catalogue: str | None = None) -> list[str]:
        """Make the arguments of ``cairn``: arguments, never a line for a shell; see `options`."""
        address = [] if catalogue is None else ["--catalogue", catalogue]
        return [*self._words(), str(collection.absolute()), *address, "--json", *self.options(collection, roots)]

    def _words(self) -> list[str]:
        return [self.kind]


def _limits(below: Iterable[Path]) -> list[str]:
    """Options that keep a command within folders, wherever links lead."""
    return [word for folder in below for word in ("--below", str(folder.absolute()))]


class IndexJob(JobKind):
    """Add photos: files, folders of them, and pages of IIIF manifests of the public Internet."""

    kind = "index"
    effort = 1
    title = said("Add photos")
    changes_photos = True
    parts: ClassVar[dict[str, float]] = {"look": 0.02, "extract": 0.5, "vocabulary": 0.28, "index": 0.2}
    places: list[Place] = Field(default=[], max_length=MOST)
    manifests: list[Address] = Field(default=[], max_length=MOST)
    films: bool | None = None  # None: as it was

    @model_validator(mode="after")
    def _something(self) -> "IndexJob":
        if not self.places and not self.manifests:
            raise ValueError("it needs places or manifests")
        return self

    @property
    def about(self) -> str:
        """The name of a folder that is alone, but for that of uploads; the host of a manifest."""
        if not self.places:
            return parse_address(self.manifests[0]).host
        name = Path(self.places[0]).name
        return name if len(self.places) == 1 and name != UPLOADS else ""

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Name the places, and the folders that their links must not lead out of."""
        below = allowed(collection, roots)
        if not all(stays_below(place, below) for place in self.places):
            raise outside()
        films = {None: [], True: ["--films"], False: ["--no-films"]}[self.films]
        return [*_limits(below), *films, "--", *self.places, *self.manifests]


def index_of(places: Iterable[Path], films: bool | None = None) -> IndexJob:
    """Say that photos are added from some places, and films or none from now on; None: as it was."""
    return IndexJob(places=[str(place.absolute()) for place in places], films=films)


def index_of_manifest(address: str) -> IndexJob:
    """Say that the pages of a manifest are added; raises CairnError if that is no address which may be asked."""
    try:
        return IndexJob(manifests=[address.strip()])
    except ValidationError:
        raise CairnError(said("This is no address of a manifest: it begins with https:// or http://.")) from None


class GroupJob(JobKind):
    """Look for groups; `augment` says whether photos borrow features of linked ones: None leaves that as it is."""

    kind = "group"
    effort = 2
    title = said("Find groups")
    augment: bool | None = None

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Return whether photos borrow features."""
        return {None: [], True: ["--augment"], False: ["--no-augment"]}[self.augment]


class RetrainJob(JobKind):
    """Make a new vocabulary from all photos."""

    kind = "retrain"
    effort = 2
    title = said("Learn patterns anew")
    changes_photos = True
    drop_missing: bool = False

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Return whether photos are left out that cannot be read."""
        return ["--drop-missing"] if self.drop_missing else []


class Compact(JobKind):
    """Give back the room of what was removed."""

    kind = "compact"
    title = said("Give back room")


class RemoveJob(JobKind):
    """Take photos out, by their names or all whose files have gone; their files stay."""

    kind = "remove"
    title = said("Remove photos")
    changes_photos = True
    names: list[Text] = Field(default=[], max_length=MOST)
    missing: bool = False
    for_good: bool = False

    @model_validator(mode="after")
    def _one_choice(self) -> "RemoveJob":
        if self.missing == bool(self.names) or (self.missing and self.for_good):
            raise ValueError("it needs names, or those that are missing, and not both")
        return self

    @property
    def about(self) -> str:
        """The name of a photo that is alone, or how many there are."""
        if self.missing:
            return ""
        return self.names[0] if len(self.names) == 1 else str(len(self.names))

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Name the photos."""
        if self.missing:
            return ["--missing"]
        # Names come last: they may begin with a hyphen.
        return [*(["--for-good"] if self.for_good else []), "--", *self.names]


class MetadataJob(JobKind):
    """Read again what the photos' files say of them."""

    kind = "metadata"
    effort = 1
    title = said("Read what the files say of photos")
    changes_photos = True

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Have files read."""
        return ["--refresh"]


class SidecarsJob(JobKind):
    """Write what was decided of photos into XMP sidecars beside them, where photos may be taken from."""

    kind = "sidecars"
    effort = 1
    title = said("Write sidecars for other programs")

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Have them written, and name the folders that their links must not lead out of."""
        below = allowed(collection, roots)
        if not below:
            raise outside()
        return ["--write-sidecars", *_limits(below)]

    def _words(self) -> list[str]:
        return ["metadata"]


class MoveJob(JobKind):
    """Say that the photos below a folder are in another one now."""

    kind = "move"
    title = said("Find photos in another folder")
    old: Place
    new: Place

    @property
    def about(self) -> str:
        """The name of the folder that has gone."""
        return Path(self.old).name

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Name both folders; the new one is one that photos may be taken from."""
        if not stays_below(self.new, allowed(collection, roots)):
            raise outside()
        return ["--moved", self.old, self.new]

    def _words(self) -> list[str]:
        return ["roots"]


class CheckJob(JobKind):
    """Read every file of the collection."""

    kind = "check"
    effort = 1
    title = said("Check all files")


class Improve(JobKind):
    """Learn from the collection's own photos how to find more in them."""

    kind = "improve"
    effort = 3
    title = said("Improve search for these photos")


class SearchesJob(JobKind):
    """Ask the standing searches for photos that are new."""

    kind = "searches"
    title = said("Ask the saved searches")

    def _words(self) -> list[str]:
        return ["searches", "ask"]


STEPS = {
    "Fetching": said("Fetching pages"),
    "Looking": said("Looking for photos"),
    "Features": said("Reading photos"),
    "Vocabulary": said("Learning patterns"),
    "Indexing": said("Making photos findable"),
    "Verifying": said("Comparing photos"),
    "Comparing looks": said("Comparing what photos look like"),
    "Borrowing": said("Letting linked photos help each other"),
    "Checking": said("Checking"),
    "Reading": said("Reading"),
    "Writing": said("Writing"),
    "Copying": said("Copying"),
    "Views": said("Rendering views"),
    "Image pairs": said("Comparing photos"),
    "Patches": said("Cutting out what matches"),
    "Describing": said("Describing what matches"),
    "Whitenings": said("Learning"),
    "Judge: indexing": said("Judging: reading photos"),
    "Judge: linking": said("Judging: comparing photos"),
    "Judge: matching": said("Judging: comparing photos"),
    "Judge: searches": said("Judging: searches"),
}
"""What pages call a step, by its title on the command line."""

_ALL = (IndexJob, GroupJob, RetrainJob, Compact, RemoveJob, MetadataJob, SidecarsJob, MoveJob, CheckJob, Improve)
KINDS: dict[str, type[JobKind]] = {one.kind: one for one in (*_ALL, SearchesJob)}
"""All kinds, by their names."""

PLAIN = tuple(name for name, one in KINDS.items() if not one.model_fields)
"""Kinds that are told nothing."""


def needs_nothing(kind: str) -> bool:
    """Whether work of a kind can be begun by its name alone."""
    try:
        KINDS[kind]()
    except (KeyError, ValidationError):
        return False
    return True


def read(kind: str, told: str) -> JobKind:
    """Make work of what a queue holds of it; raises UnreadableError if that makes no sense."""
    if kind not in KINDS:
        raise UnreadableError("There is no such kind of work.")
    try:
        return KINDS[kind].model_validate_json(told)
    except ValidationError:
        raise UnreadableError("What this work was told makes no sense: begin it again.") from None


def allowed(collection: Path, roots: Sequence[Path]) -> list[Path]:
    """Folders below which photos may be taken: the roots of the server, and the uploads that the collection keeps."""
    uploads = collection / UPLOADS
    return [*roots, *([uploads] if stays_below(uploads, [collection]) else [])]
