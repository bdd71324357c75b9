"""Routes of improving search: the result of the last run. A job begins a run."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, ValidationError

from index.arrays import load_json
from index.errors import CairnError
from index.files.reading import IrregularFile, open_regular
from retrieval.collection.layout import IMPROVEMENT, IMPROVEMENT_PICTURE, IMPROVING
from retrieval.descriptors.foreign import is_foreign
from retrieval.library.browsing import count_missing
from retrieval.web.access.limits import SEARCHING
from retrieval.web.languages import map_texts, translate_drawn
from retrieval.web.models import MAX_NUMBER
from retrieval.web.problems import ProblemError
from retrieval.web.rendering import HEADERS, language_of
from retrieval.web.service import Service, service_of

router = APIRouter(prefix="/api/improve", tags=["improve"])

_LARGEST = 1 << 20  # bytes of a picture


class WhichDescriptor(BaseModel):
    """What photos are described with, and what searches find with it."""

    descriptor: str
    map: dict[str, float | None] | None = Field(
        None, description="Mean average precision of held-out searches, 0 to 1, by `words` alone and `verified`."
    )


class Counted(BaseModel):
    """Held-out searches with one way of searching."""

    won: int | None = None
    lost: int | None = None
    difference: float | None = None
    standard_error: float | None = None


class Gain(BaseModel):
    """A photo that a search finds with what was learnt, and did not before."""

    photo: int = Field(ge=0, le=MAX_NUMBER, description="The query photo.")
    box: tuple[float, float, float, float] = Field(description="What was searched for in it, in pixels.")
    found: int = Field(ge=0, le=MAX_NUMBER)


class JudgedBy(BaseModel):
    """The searches that a verdict is based on."""

    photos: int
    scenes: int
    queries: int
    words: Counted
    verified: Counted


class LastImprovement(BaseModel):
    """Result of improving search."""

    verdict: str = Field(description="better, worse, same or cannot say.")
    sentence: str
    before: WhichDescriptor
    after: WhichDescriptor | None
    searches: JudgedBy | None
    gained: list[Gain] = Field(
        [], max_length=60, description="Some of the photos that are found now and were not before."
    )
    switched: bool = Field(description="Whether all photos were indexed with what was learnt.")
    dropped: list[Any] = Field([], exclude=True)
    at: str = Field(description="When, UTC.")
    seconds: dict[str, float]


class ImproveState(BaseModel):
    """Whether search can be improved, and the result of the last run."""

    photos: int
    missing: int = Field(description="Photos whose files were gone when they were last looked for.")
    foreign: bool = Field(description="Whether features are of another program: then there is nothing to improve.")
    interrupted: bool = Field(description="Whether a run was stopped, or is under way: the next goes on with it.")
    last: LastImprovement | None
    picture: str | None = Field(description="Address of the picture of the last verdict, below that of the server.")


@router.get("")
def improve_state(request: Request) -> ImproveState:
    """Say whether search can be improved by learning from the photos, and return the result of the last run."""
    service = service_of(request)
    collection = service.collection
    last = _last(service)
    has_picture = last is not None and (collection.folder / IMPROVEMENT_PICTURE).is_file()
    return ImproveState(
        photos=service.count(),
        missing=count_missing(collection.catalogue),
        foreign=is_foreign(collection.options.descriptor),
        interrupted=(collection.folder / IMPROVING).is_dir(),
        last=last,
        picture="/api/improve/picture" if has_picture else None,
    )


class Look(BaseModel):
    """A quick check whether enough photos show the same thing to measure what searches gain."""

    photos: int
    looked: int = Field(description="Photos that were looked at: all where photos were linked before, else a sample.")
    alike: int = Field(description="Of those: photos that show the same as another.")
    scenes: int | None = Field(description="Groups that they make; null for a sample.")
    enough: bool = Field(description="Whether it can most likely be said what searches gain.")


@router.get("/look", dependencies=SEARCHING)
async def improve_look(request: Request) -> Look:
    """Check for some seconds whether enough photos show the same thing, before anything is learnt."""
    answer, _ = await service_of(request).search(request, "look", {})
    return Look.model_validate(answer)


@router.get("/picture", response_class=Response, responses={200: {"content": {"image/svg+xml": {}}}})
def improve_picture(request: Request) -> Response:
    """Draw the last verdict: results of searches before, and with what was learnt."""
    path = service_of(request).collection.folder / IMPROVEMENT_PICTURE
    try:
        with open_regular(path) as file:
            picture = file.read(_LARGEST)
    except (IrregularFile, OSError):
        raise ProblemError(404, "The search of this collection was not improved yet.") from None
    language = language_of(request)
    text = map_texts(picture.decode("utf-8", "replace"), lambda text: translate_drawn(text, language))
    return Response(text, media_type="image/svg+xml", headers={**HEADERS, "Content-Language": language})


def _last(service: Service) -> LastImprovement | None:
    """Result of the last run; None if there was none, or if its file is damaged."""
    path = service.collection.folder / IMPROVEMENT
    if not path.is_file():
        return None
    try:
        return LastImprovement.model_validate(load_json(path))
    except (CairnError, ValidationError):
        return None
