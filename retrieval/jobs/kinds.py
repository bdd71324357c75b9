"""Kinds of jobs: the arguments of each, and the command line that is built from them when it begins.

A queue stores the kind and its arguments, never a command: whatever it contains, no other command can be run, and none
for another collection.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from index.errors import CairnError
from index.messages import said
from retrieval.collection.layout import UPLOADS
from retrieval.iiif.addresses import parse_address
from retrieval.photos.listing import stays_below

MOST = 10_000
"""Most names or places of photos in one job."""

LONGEST = 4096
"""Characters of each."""


class OutsideError(CairnError):
    """The photos are outside the folders that this server may use."""

    _kind = "locked"


def outside() -> OutsideError:
    """The error of a place that photos may not be taken from."""
    return OutsideError(
        "This server does not take photos from that folder: whoever runs it can allow it with {--photos}."
    )


class UnreadableError(CairnError):
    """The stored arguments of a job are invalid."""


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
    words: ClassVar[tuple[str, ...]] = ()  # of the command; (): the kind
    title: ClassVar[str]  # in English
    effort: ClassVar[int] = 0  # rough duration: 0 seconds, 1 minutes, 2 longer, 3 longest
    changes_photos: ClassVar[bool] = False  # whether photos are listed otherwise afterwards
    parts: ClassVar[dict[str, float]] = {}  # steps of the command, and their approximate parts of its time

    @property
    def about(self) -> str:
        """Its object, such as the name of a folder; may be empty."""
        return ""

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Arguments after the collection in the command line; raises OutsideError for photos elsewhere."""
        return self.flags()

    def flags(self) -> list[str]:
        """Fields that are true or false, as options such as ``--no-films``, unless they have their defaults."""
        fields = type(self).model_fields
        return [
            f"--{'' if value else 'no-'}{name.replace('_', '-')}"
            for name, value in self
            if isinstance(value, bool) and value is not fields[name].default
        ]

    def command(
        self, collection: Path, roots: Sequence[Path], catalogue: str | None = None, hosts: Iterable[str] = ()
    ) -> list[str]:
        """Make the arguments of ``cairn``: arguments, never a line for a shell; see `options`.

        `hosts`: hosts that pages may be fetched from although their addresses are not public.
        """
        address = [] if catalogue is None else ["--catalogue", catalogue]
        options = [*self.asking(hosts), *self.options(collection, roots)]
        return [*(self.words or [self.kind]), str(collection.absolute()), *address, "--json", *options]

    def asking(self, hosts: Iterable[str]) -> list[str]:
        """Options of a job that asks other hosts."""
        return []


def _limits(below: Iterable[Path]) -> list[str]:
    """Options that confine a command to folders, wherever links lead."""
    return [word for folder in below for word in ("--below", str(folder.absolute()))]


class IndexJob(JobKind):
    """Add photos: files, folders of them, and pages of IIIF manifests of the public Internet."""

    kind = "index"
    effort = 1
    title = said("Add photos")
    changes_photos = True
    parts: ClassVar[dict[str, float]] = {"look": 0.02, "shots": 0.1, "extract": 0.5, "vocabulary": 0.28, "index": 0.2}
    places: list[Place] = Field(default=[], max_length=MOST)
    manifests: list[Address] = Field(default=[], max_length=MOST)
    films: bool | None = None  # None: no change

    @model_validator(mode="after")
    def _something(self) -> "IndexJob":
        if not self.places and not self.manifests:
            raise ValueError("it needs places or manifests")
        return self

    @property
    def about(self) -> str:
        """The name of a single folder other than that of uploads; the host of a manifest."""
        if not self.places:
            return parse_address(self.manifests[0]).host
        name = Path(self.places[0]).name
        return name if len(self.places) == 1 and name != UPLOADS else ""

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Name the places, and the folders that their links must not lead out of."""
        below = allowed(collection, roots)
        if not all(stays_below(place, below) for place in self.places):
            raise outside()
        return ["--early", *_limits(below), *self.flags(), "--", *self.places, *self.manifests]

    def asking(self, hosts: Iterable[str]) -> list[str]:
        """Name the hosts that may be asked, where pages are fetched."""
        return [word for host in hosts for word in ("--allow-host", host)] if self.manifests else []


def index_of(places: Iterable[Path], films: bool | None = None) -> IndexJob:
    """Job to add photos from some places; `films`: whether to take films from now on, None: no change."""
    return IndexJob(places=[str(place.absolute()) for place in places], films=films)


def index_of_manifest(address: str) -> IndexJob:
    """Job to add the pages of a manifest; raises CairnError if its address is not allowed."""
    try:
        return IndexJob(manifests=[address.strip()])
    except ValidationError:
        raise CairnError(
            said("This is not the address of a manifest, which begins with https:// or http://.")
        ) from None


class GroupJob(JobKind):
    """Find groups; `augment`: whether photos borrow features from linked ones; None: no change."""

    kind = "group"
    effort = 2
    title = said("Find groups")
    augment: bool | None = None


class RetrainJob(JobKind):
    """Make a new vocabulary from all photos."""

    kind = "retrain"
    effort = 2
    title = said("Learn new patterns")
    changes_photos = True
    drop_missing: bool = False


class Compact(JobKind):
    """Free the space of removed photos."""

    kind = "compact"
    title = said("Free space")


class RemoveJob(JobKind):
    """Remove photos, by name or all with missing files; files are not deleted."""

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
        """The name of a single photo, or the number of photos."""
        if self.missing:
            return ""
        return self.names[0] if len(self.names) == 1 else str(len(self.names))

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Name the photos, last: they may begin with a hyphen."""
        return [*self.flags(), *(["--", *self.names] if self.names else [])]


class MetadataJob(JobKind):
    """Read the metadata of the photos' files again."""

    kind = "metadata"
    effort = 1
    title = said("Read metadata from the files")
    changes_photos = True

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Have files read."""
        return ["--refresh"]


class SidecarsJob(JobKind):
    """Write entered metadata of photos into XMP sidecars next to them, in allowed folders."""

    kind = "sidecars"
    words = ("metadata",)
    effort = 1
    title = said("Write sidecars for other programs")

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Have them written, and name the folders that their links must not lead out of."""
        below = allowed(collection, roots)
        if not below:
            raise outside()
        return ["--write-sidecars", *_limits(below)]


class MoveJob(JobKind):
    """Record that the photos below a folder were moved to another one."""

    kind = "move"
    words = ("roots",)
    title = said("Find photos in another folder")
    old: Place
    new: Place

    @property
    def about(self) -> str:
        """The name of the old folder."""
        return Path(self.old).name

    def options(self, collection: Path, roots: Sequence[Path]) -> list[str]:
        """Name both folders; the new one is one that photos may be taken from."""
        if not stays_below(self.new, allowed(collection, roots)):
            raise outside()
        return ["--moved", self.old, self.new]


class CheckJob(JobKind):
    """Read every file of the collection."""

    kind = "check"
    effort = 1
    title = said("Check all files")


class Improve(JobKind):
    """Learn a descriptor from the collection's own photos."""

    kind = "improve"
    effort = 3
    title = said("Improve search for these photos")


class SearchesJob(JobKind):
    """Run the standing searches on new photos."""

    kind = "searches"
    words = ("searches", "ask")
    title = said("Run the saved searches")


STEPS = {
    "Fetching": said("Fetching pages"),
    "Looking": said("Looking for photos"),
    "Features": said("Reading photos"),
    "Vocabulary": said("Learning patterns"),
    "Indexing": said("Making photos searchable"),
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
    "Judge: indexing": said("Evaluating: reading photos"),
    "Judge: linking": said("Evaluating: comparing photos"),
    "Judge: matching": said("Evaluating: comparing photos"),
    "Judge: searches": said("Evaluating: searches"),
}
"""What pages call a step, by its title on the command line."""

KINDS: dict[str, type[JobKind]] = {one.kind: one for one in JobKind.__subclasses__()}
"""All kinds, by their names."""

PLAIN = tuple(name for name, one in KINDS.items() if not one.model_fields)
"""Kinds without arguments."""


def needs_nothing(kind: str) -> bool:
    """Whether jobs of a kind need no arguments."""
    try:
        KINDS[kind]()
    except (KeyError, ValidationError):
        return False
    return True


def read(kind: str, arguments: str) -> JobKind:
    """Make a job from its stored arguments; raises UnreadableError if they are invalid."""
    if kind not in KINDS:
        raise UnreadableError("There is no such kind of job.")
    try:
        return KINDS[kind].model_validate_json(arguments)
    except ValidationError:
        raise UnreadableError("The options of this job are not valid: start it again.") from None


def allowed(collection: Path, roots: Sequence[Path]) -> list[Path]:
    """Folders below which photos may be taken: the roots of the server, and the collection's uploads."""
    uploads = collection / UPLOADS
    return [*roots, *([uploads] if stays_below(uploads, [collection]) else [])]
