"""Models of the API; answers are the objects that the commands print with `--json`, without paths."""

from typing import Annotated, Any, Literal, get_origin, get_type_hints

from pydantic import BaseModel, Field, StringConstraints, create_model, model_validator

from index.errors import CairnError
from index.options.declaration import Declared, options_of
from retrieval.library.filters import Filter, filter_of
from retrieval.metadata.fields import FIELDS, FieldFilter, Metadata
from retrieval.metadata.fields import Field as MetadataField
from retrieval.web.access.roles import Role

MAX_NUMBER = 2**63 - 1
MAX_ALBUM = 2**31 - 1
MOST_PHOTOS = 10_000
"""Photos that a request may name; the pages change more by several requests."""

Number = Annotated[int, Field(ge=0, le=MAX_NUMBER, description="Number of a photo of the collection.")]
Text = Annotated[str | None, StringConstraints(max_length=1024)]
Texts = Annotated[list[Annotated[str, StringConstraints(max_length=1024)]], Field(max_length=20)]


class Problem(BaseModel):
    """Why a request failed."""

    detail: str = Field(description="One sentence.")


def _filter_field(one: Declared) -> tuple[Any, Any]:
    """A filter of a metadata field, as a field of a model."""
    kind = Texts if one.several else Text if one.kind is str else one.kind | None if one.optional else one.kind
    default: Any = [] if one.several else None if one.kind is str else one.default
    return kind, Field(default, description=one.option.help, ge=one.option.least, le=one.option.most)


_FieldFilters = create_model(
    "_FieldFilters", **{name: _filter_field(one) for name, one in options_of(FieldFilter).items()}
)  # type: ignore[call-overload]


class Filters(_FieldFilters):  # type: ignore[misc, valid-type]
    """A filter of photos; all its conditions must hold."""

    near: Text = Field(
        None, description="LATITUDE,LONGITUDE,KM: only photos that were taken within so many kilometres of there."
    )
    within: Text = Field(
        None,
        description="SOUTH,WEST,NORTH,EAST: only photos that were taken between these degrees, or on them.",
    )
    where: Texts = Field([], description="KEY=VALUE: only photos with all of these values, such as imported ones.")
    album: Annotated[int, Field(ge=0, le=MAX_ALBUM)] | None = Field(None, description="Only photos of this album.")
    hidden: bool = Field(False, description="Only photos that are hidden; they are left out otherwise.")

    @model_validator(mode="after")
    def _understood(self) -> "Filters":
        try:
            self.wanted()
        except CairnError as error:
            raise ValueError(str(error)) from None
        return self

    def wanted(self) -> Filter:
        """The filter that this is."""
        return filter_of({name: getattr(self, name) for name in Filters.model_fields})


class ExportRequest(BaseModel):
    """Photos to download."""

    photos: list[Number] = Field(min_length=1, description="Numbers of photos of the collection.")
    form: Literal["zip", "sheet", "png"] = Field(
        "zip",
        description="zip: their files in an archive; sheet: small pictures on pages, as a PDF file; png: these pages "
        "below each other, as one picture.",
    )


class Health(BaseModel):
    """That the server is alive."""

    status: Literal["ok"]
    collection: str
    images: int
    originals: bool = Field(description="Whether the files of photos may be taken away: see --originals.")
    folders: bool = Field(description="Whether folders of the server may be chosen: see --photos.")
    ready: bool = Field(description="Whether all is open that searches need; they wait for that otherwise.")
    shelf: str | None = Field(None, description="Address of the list of collections; null: there is only this one.")
    role: Role = Field(description="What the one who asks may do.")
    user: str | None = Field(description="Name of the one who asks; null where there is no password.")
    session: bool = Field(description="Whether the one who asks signed in here with a password, and may sign out.")
    server: str | None = Field(
        None, description="Distinguishes this server from others; null if that was not requested."
    )


class _Indexed(BaseModel):
    number: int
    name: str
    folder: str = Field(description="What stands before the last slash of the name.")
    width: int | None = Field(description="Pixels of the upright original.")
    height: int | None
    features: int


def _known(row: MetadataField) -> tuple[Any, Any]:
    """A field of metadata, as a field of a model."""
    kind = get_type_hints(Metadata)[row.name]
    several = get_origin(kind) is tuple
    default = [] if several else getattr(Metadata, row.name)
    return list[str] if several else kind, Field(default, description=row.help)


_Known = create_model("_Known", __base__=_Indexed, **{row.name: _known(row) for row in FIELDS.values()})  # type: ignore[call-overload]


class Photo(_Known):  # type: ignore[misc, valid-type]
    """A photo of the collection."""

    date_added: str | None = Field(None, description="When it was added to the collection: ISO 8601, UTC.")


class PhotoDetails(Photo):
    """A photo of the collection, and all that is known of it."""

    others: dict[str, list[str]] = Field({}, description="What else was imported, by the names of its columns.")
    link: str | None = Field(
        None, description="Address that lasts as long as the file is what it is, below the collection's."
    )
    film: float | None = Field(
        None, description="Of a frame of a film that may be had: where in it, in seconds; 0 for that of its first shot."
    )


class Layout(BaseModel):
    """Layout data of a wall of photos: two lists of the same length."""

    numbers: list[int] = Field(description="Numbers of the photos that pass, in the requested order.")
    ratios: list[int] = Field(description="Width over height of each, in hundredths; 0: not known.")


class Month(BaseModel):
    """A month of photos."""

    month: str = Field(description="YYYY-MM, or YYYY where the photos say only the year.")
    photos: int


class Timeline(BaseModel):
    """When photos were taken."""

    months: list[Month]
    undated: int = Field(description="Photos that do not say.")


class Places(BaseModel):
    """Where photos were taken: three lists of the same length."""

    numbers: list[int]
    latitudes: list[float] = Field(description="Degrees north, WGS 84.")
    longitudes: list[float] = Field(description="Degrees east.")


class Camera(BaseModel):
    """A camera."""

    camera: str = Field(description="Make and model.")
    photos: int


class Cameras(BaseModel):
    """Cameras, those of the most photos first."""

    cameras: list[Camera]


class FacetValue(BaseModel):
    """A value of a field."""

    value: str
    photos: int


class Facet(BaseModel):
    """Values of a field, those of the most photos first."""

    field: str = Field(description="Name of the field, as photos have it.")
    values: list[FacetValue]


class FacetFolder(BaseModel):
    """A folder of the names of photos."""

    folder: str
    photos: int = Field(description="Those in folders below it do not count.")


class FacetTag(BaseModel):
    """A tag."""

    tag: str
    photos: int


class FacetAlbum(BaseModel):
    """An album."""

    album: int
    name: str
    photos: int


class FacetYear(BaseModel):
    """A year in which photos were taken."""

    year: str
    photos: int


class Facets(BaseModel):
    """Values of the photos that pass the filters; for a field with a chosen value, the alternatives."""

    facets: list[Facet]
    folders: list[FacetFolder]
    tags: list[FacetTag]
    albums: list[FacetAlbum]
    years: list[FacetYear]


class PhotoPage(BaseModel):
    """A page of photos, ordered by name."""

    total: int = Field(description="Photos on all pages.")
    offset: int
    photos: list[Photo]


class Folder(BaseModel):
    """A folder of the names of photos."""

    folder: str
    photos: int


class Folders(BaseModel):
    """All folders."""

    folders: list[Folder]


class Tag(BaseModel):
    """A tag of photos."""

    tag: str
    photos: int


class Tags(BaseModel):
    """Tags, those of the most photos first."""

    tags: list[Tag]


Kind = Literal["copy", "part", "framed", "negative", "turned", "grey"]


KIND_HELP = (
    "What it is of the photo that it is a near duplicate of: a copy of all of it, a part of it, all of it with a frame "
    "or bars, a negative, turned, mirrored, or without its colours."
)


class GroupedPhoto(Photo):
    """A photo in a group."""

    duplicate_of: int | None = Field(description="Number of the photo that it is a near duplicate of.")
    kind: Kind | None = Field(description=f"{KIND_HELP} Null if it is not a duplicate.")


class Group(BaseModel):
    """Photos that verified matches link."""

    group: int
    photos: list[GroupedPhoto]
    links: int = Field(description="Pairs of the photos that are linked.")
    similar: list[list[int]] = Field(
        description="Numbers of photos that are similar shots: different photos of nearly the same view."
    )


class GroupPage(BaseModel):
    """A page of groups, the largest first."""

    total: int
    inliers: int = Field(description="Smallest number of verified matches that links two photos.")
    out_of_date: bool = Field(description="Whether photos were added or removed since the groups were found.")
    groups: list[Group]


class IiifTiles(BaseModel):
    """Tiles of a photo, as described by the IIIF Image API."""

    width: int
    scaleFactors: list[int]


class IiifInformation(BaseModel):
    """`info.json` of the IIIF Image API 3.0."""

    context: Literal["http://iiif.io/api/image/3/context.json"] = Field(
        default="http://iiif.io/api/image/3/context.json", serialization_alias="@context"
    )
    id: str = Field(description="Address of the photo: those of its parts begin with it.")
    type: Literal["ImageService3"] = "ImageService3"
    protocol: Literal["http://iiif.io/api/image"] = "http://iiif.io/api/image"
    profile: Literal["level2"] = "level2"
    width: int = Field(description="In which the photo is shown: that of the original, where the server gives it out.")
    height: int
    maxWidth: int = Field(description="Longest side of a single answer.")
    tiles: list[IiifTiles]
    extraQualities: list[str]
    extraFormats: list[str]
    extraFeatures: list[str]
