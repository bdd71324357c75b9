"""Models of the API for searches, matches and comparisons of impressions."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, FiniteFloat, create_model, model_validator

from index.extensions import extensions
from index.options.declaration import Declared, options_of
from retrieval.search.options import SearchOptions
from retrieval.web.models import Filters, Number, Photo

MAX_QUERIES = 8
MOST_DECIDED = 500
BOX = "x0, y0, x1, y1: pixels of the upright original, the centre of its top-left pixel at (0, 0)."
Box = tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
Point = tuple[float, float]


Region = Annotated[
    list[Point] | None,
    Field(
        description="Where the query's box, or all of its photo, lies in the photo, clipped to it: three to eight "
        "corners. null: not verified, or no outline that can be trusted."
    ),
]


class QueryPhoto(BaseModel):
    """One photo of a query: of the collection, or uploaded with the request; or a box in one."""

    photo: Number | None = Field(None, description="Number of a photo of the collection, or else:")
    upload: Annotated[int, Field(ge=0, lt=MAX_QUERIES)] | None = Field(
        None, description="Which of the uploaded photos, counted from 0."
    )
    box: Box | None = Field(None, description=f"{BOX} Left out: the whole photo.")

    @model_validator(mode="after")
    def _one_source(self) -> "QueryPhoto":
        if (self.photo is None) == (self.upload is None):
            raise ValueError("give the number of a photo, or which upload, and not both")
        return self


def _parameters(*names: str, but: Collection[str] = ()) -> dict[str, Any]:
    """Return options of a search as fields of a model: named ones, or all but some; never options that name files."""
    known = options_of(SearchOptions)
    return {
        name: (_type_of(one), Field(one.default, description=one.option.help, ge=one.option.least, le=one.option.most))
        for name, one in known.items()
        if name in (names or known) and name not in but and not one.option.local
    }


def _type_of(one: Declared) -> Any:
    """The type of a parameter: one of the names, where all are known, and of installed extensions."""
    if not one.option.names:
        return one.kind
    added = [extra.name for extra in extensions(one.option.extends)] if one.option.extends else []
    return Literal[tuple(dict.fromkeys([*one.option.names, *added]))]


class _HowToMatch(BaseModel):
    similarity: bool | None = Field(
        None, description="Score by the learnt similarity that the server was started with; left out: if there is one."
    )


_RANKED = ("expand", "every_turn", "soft", "global_descriptors")  # options of the ranking, not of a single match


HowToMatch = create_model(
    "HowToMatch", __base__=_HowToMatch, __doc__="How a query is answered.", **_parameters(but=_RANKED)
)


class HowToExplain(HowToMatch):  # type: ignore[misc, valid-type]
    """How a match is explained."""

    turn: float | None = Field(
        None,
        ge=0,
        lt=7,
        description="Turn at which the photo was found, as a search says; the likeliest where it is left out.",
    )
    full: bool = Field(True, description="Whether the search looked up all features at that turn, as it says.")


_HowToRank = create_model("_HowToRank", __base__=HowToMatch, **_parameters(*_RANKED))


class HowToSearch(_HowToRank, Filters):  # type: ignore[misc, valid-type]
    """How a query is answered, and what may be found."""

    match: Literal["any", "all"] = Field("any", description="Whether results must match any of the photos, or all.")
    top: int = Field(20, ge=1, le=1000, description="Number of results, at most.")


TextAlone = Annotated[bool, Field(description="Also say which results match in printed text alone: `text_alone`.")]


class SearchRequest(HowToSearch):
    """A search."""

    queries: list[QueryPhoto] = Field(min_length=1, max_length=MAX_QUERIES)
    text: TextAlone = False


class MatchRequest(HowToExplain):
    """A request to explain a match."""

    queries: list[QueryPhoto] = Field(min_length=1, max_length=1)
    photo: Number


class LikePhoto(Photo):
    """A photo that looks like what words say."""

    likeness: float = Field(
        description="Cosine between the global descriptors of words and photo; it confirms nothing."
    )


class LikeAnswer(BaseModel):
    """Photos that look like what words say, the best first."""

    like: str
    photos: list[LikePhoto]


class Result(BaseModel):
    """A photo that was found."""

    rank: int
    name: str
    title: str | None
    score: float
    inliers: int = Field(description="Matches that one map of the plane explains; 0: not verified.")
    probability: float = Field(
        description="Calibrated probability that the photos show the same thing, by geometry and score."
    )
    found: bool = Field(description="Whether it is as probable as what is called found; the others are perhaps right.")
    homography: list[list[float]] | None = Field(description="3 x 3, from pixels of the query to the photo's.")
    number: int
    width: int | None
    height: int | None
    query_index: int = Field(description="Which photo of the query it matches.")
    turn: float = Field(description="Turn of the query that it was found at: radians, clockwise.")
    region: Region
    page: int | None = Field(
        None,
        description="Of a file of several, from 1, or of a film its time in ms; null for the one that stands for it.",
    )
    mirrored: bool = Field(False, description="Whether it shows the mirror image of the query.")
    full: bool = Field(True, description="Whether all features of the query were looked up at that turn, as upright.")


class QueryRemark(BaseModel):
    """A remark on how an uploaded photo was read."""

    name: str
    reason: str = Field(description="A part of a sentence, such as: the lowest 3% are missing.")
    said: str = Field("", description="The same in the visitor's language.")


class SearchAnswer(BaseModel):
    """The answer to a search, as `cairn query --json` prints it, without the paths of files."""

    query: str | list[str]
    box: list[float] | None = Field(description="Of a query of one photo.")
    boxes: list[list[float] | None] = Field(description="Of each photo of the query.")
    engine: str
    expand: str
    global_descriptors: str = Field(description="What they did: none, shortlist, fused or alone.")
    augmented: bool = Field(description="Whether photos were scored with what they borrow of others.")
    similarity: dict[str, Any] | None
    filter: dict[str, Any] | None = Field(description="The filter of the search, if there was one.")
    passing: int | None = Field(description="How many photos did.")
    turned: bool = Field(description="Whether views at other turns than upright were looked at.")
    sure: bool = Field(description="Whether they can hardly change the answer, by what upright found.")
    missing_shards: list[int] = Field([], description="Parts of the collection that no worker of the cluster held.")
    results: list[Result]
    seconds: dict[str, float]
    rejected: list[int] = Field(
        [], description="Photos that were rejected as matches and left out; missing if there are none."
    )
    remarks: list[QueryRemark] = Field(
        [], description="Remarks on uploads that are incomplete, or not exactly one photo."
    )
    uploads: list[str | None] = Field([], description="SHA-256 of each photo of the query, where one was uploaded.")
    text_alone: list[int] = Field(
        [],
        description="Results, found or likely, whose matches lie in printed text in both photos, if that was asked: "
        "the same type looks alike on different pages.",
    )


class MatchQuery(BaseModel):
    """The query of a match."""

    name: str
    width: int
    height: int
    box: list[float] | None


class MatchedFeatures(BaseModel):
    """A feature of the query and one of the photo; (a, b, c) of the ellipse a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1."""

    query: Point
    photo: Point
    query_ellipse: tuple[float, float, float]
    photo_ellipse: tuple[float, float, float]


class MatchAnswer(BaseModel):
    """Why a query and a photo match."""

    query: MatchQuery
    photo: Photo
    score: float
    inliers: int
    probability: float = Field(
        description="Calibrated probability that the photos show the same thing, by geometry and score."
    )
    found: bool = Field(description="Whether it is as probable as what is called found.")
    homography: list[list[float]] | None
    region: Region
    turn: float = Field(description="By which the query was turned to match, radians.")
    is_of_text: bool = Field(description="Whether what matches lies in printed text, in both photos.")
    matches: list[MatchedFeatures]


class ComparedPictures(BaseModel):
    """Two impressions in one frame, as JPEG in addresses (`data:`)."""

    reference: str
    photo: str
    overlay: str = Field(description="Ink of the query alone is vermilion, that of the photo alone blue, of both dark.")
    residual: str = Field(description="Ink that one of them surely lacks, in the same colours.")


class ImpressionsAnswer(BaseModel):
    """What differs between two impressions of a block or plate, the query's and the photo's."""

    box: list[float] = Field(description="The frame, x0, y0, x1, y1 in pixels of the query's photo.")
    size: list[int] = Field(description="Width and height of the frame, pixels.")
    verdict: Literal["one block", "cut alike", "unsure"]
    displacement: float | None = Field(
        description="Widths of a line that a quarter of the lines is displaced by at least."
    )
    missing: list[float] = Field(description="Share of the ink of the query that the photo lacks, and the other way.")
    line_widths: list[float] = Field(description="Mean width of the lines of both, pixels of the frame.")
    tolerance: float = Field(description="Pixels of the frame within which ink counts as there.")
    correlation: float
    breaks: list[int] = Field(description="Places where the query alone has ink, and where the photo alone has.")
    largest_breaks: list[list[list[int]]] = Field(
        description="x, y, width, height and area of the largest of both, pixels of the frame."
    )
    pictures: ComparedPictures


class ClockDecided(BaseModel):
    """Decisions about the print clock of impressions."""

    clock: Literal["breaks", "widths"] = Field("breaks", description="Breaks, of woodcuts; widths, of engravings.")
    leave_out: list[Number] = Field([], max_length=MOST_DECIDED, description="Photos that are not read.")
    undated: list[Number] = Field([], max_length=MOST_DECIDED, description="Photos whose date does not count.")
    dated: list[Number] = Field(
        [], max_length=MOST_DECIDED, description="Photos whose date counts although it comes from the file."
    )
    regions: list[Box] = Field([], max_length=MOST_DECIDED, description="Boxes of the reference that are not read.")
    before: list[tuple[Number, Number]] = Field(
        [], max_length=MOST_DECIDED, description="Pairs of photos; the first was printed before the second."
    )


class ClockPhoto(BaseModel):
    """The print clock's result for an impression."""

    name: str
    number: int
    breaks: int = Field(description="Of the lines that all impressions have.")
    line_width: float = Field(description="Mean width of these lines, pixels of the frame.")
    place: int = Field(description="In the order of printing, from 1.")
    places: tuple[int, int] = Field(description="Interval of 90% of its place.")
    year: float | None = Field(description="Of its date.")
    counts: bool = Field(description="Whether its date calibrates the clock.")
    from_file: bool = Field(description="Whether its date comes from the file, as that of the camera or scanner.")
    read: float | None = Field(description="Year by the clock; null: two impressions of different years are not dated.")
    years: tuple[float, float] | None = Field(description="Interval of 90% of that year.")


class ClockBreak(BaseModel):
    """A place where a line is broken, pixels of the frame."""

    x: float
    y: float
    broken: list[int] = Field(description="Places in `photos`, from 0, of the impressions in which it is.")


class PrintClockAnswer(BaseModel):
    """The order in which impressions were printed."""

    box: list[float] = Field(description="The frame, x0, y0, x1, y1 in pixels of the reference.")
    size: list[int] = Field(description="Width and height of the frame, pixels.")
    decisions: ClockDecided = Field(description="Decisions that were applied.")
    kept: ClockDecided = Field(description="Decisions stored with the reference.")
    photos: list[ClockPhoto] = Field(description="The earliest first; those that do not match are not among them.")
    earlier: list[list[float]] = Field(description="Of each photo, the probability that it is earlier than each.")
    breaks: list[ClockBreak]
    pictures: list[str] = Field(
        description="Of each photo: lines that are read in blue, breaks ringed, JPEG (`data:`)."
    )
