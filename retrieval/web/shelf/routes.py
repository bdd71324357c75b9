"""Routes of a shelf: its page, and the collections in it."""

import contextlib
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from index.attributes import some_of
from index.errors import CairnError
from index.options.declaration import options_of
from retrieval.catalogue.browsing import CoverPhoto as KnownCover
from retrieval.curation.choosing import folder_below
from retrieval.features.options import FeatureOptions
from retrieval.photos.listing import CACHE
from retrieval.photos.thumbnails import SIZES
from retrieval.web.access.rights import WRITING, Role, caller_of, role_of, user_of
from retrieval.web.models import MAX_NUMBER
from retrieval.web.problems import ProblemError, refusing
from retrieval.web.rendering import show_page
from retrieval.web.routes.adding import AllowedFolder, named_roots, root_folder
from retrieval.web.routes.photos import answer_thumbnail
from retrieval.web.shelf.mounted import collection_address
from retrieval.web.shelf.names import LONGEST_TITLE
from retrieval.web.shelf.service import ShelfService, shelf_of
from retrieval.web.shelf.shelf import Card

router = APIRouter(prefix="/api", tags=["collections"])
pages = APIRouter(include_in_schema=False)

DETAILS = {"usual": 1024, "fine": 1600}
"""Longer side, in pixels, to which photos are reduced before detection, by the visitor's choice."""

Name = Annotated[str, InPath(max_length=255, description="Of the collection, as /api/collections lists it.")]
Title = Annotated[str, StringConstraints(max_length=4 * LONGEST_TITLE)]


class ShelfHealth(BaseModel):
    """That the server is alive."""

    status: Literal["ok"]
    collections: int
    folders: bool = Field(description="Whether folders of the server may be chosen: see --photos.")
    role: Role = Field(description="What the one who asks may do.")
    user: str | None = Field(description="Name of the user in the password file; null without one.")
    session: bool = Field(description="Whether the one who asks signed in here with a password, and may sign out.")
    server: str = Field(description="Tells this run of the server from others.")


class Cover(BaseModel):
    """Cover photo of a collection."""

    number: int
    name: str
    width: int | None = Field(description="Pixels of the upright original.")
    height: int | None


class ListedCollection(BaseModel):
    """A collection in the list."""

    name: str = Field(description="Of its folder.")
    title: str
    address: str = Field(description="Of its pages and its API, below that of the server.")
    photos: int | None = Field(description="null: its catalogue cannot be looked at.")
    cover: Cover | None
    bytes: int = Field(description="On disk, without thumbnails.")
    changed: str | None = Field(description="ISO 8601, UTC.")
    jobs: int = Field(description="Jobs that wait or are under way.")


class Collections(BaseModel):
    """All collections, the last changed first."""

    collections: list[ListedCollection]


class NewCollection(BaseModel):
    """A collection to create, and the folder of its photos."""

    title: Title = Field(description="What people call it: any text.")
    root: int | None = Field(
        None, ge=0, le=10_000, description="Which root the folder lies below, as /api/roots lists them; null: none yet."
    )
    path: str = Field("", max_length=4096, description="Of the folder, below the root.")
    detail: Literal["usual", "fine"] = Field(
        "usual", description="fine: smaller things are found, for twice the time and room."
    )
    ignore: Literal["text"] | None = Field(None, description=options_of(FeatureOptions)["ignore"].option.help)
    films: bool | None = Field(None, description="Take films of folders, too, from now on.")


class Renamed(BaseModel):
    """A collection that has another title."""

    name: str
    title: str


class ReturnedCollection(Renamed):
    """A collection that was restored from the bin."""

    address: str


class MadeCollection(ReturnedCollection):
    """A collection that was made."""

    job: int | None = Field(description="Number of the job that indexes its photos.")


class Renaming(BaseModel):
    """Another title."""

    title: Title


class NewCover(BaseModel):
    """The new cover photo of a collection."""

    photo: int = Field(ge=0, le=MAX_NUMBER, description="Number of the photo.")


class Discarded(BaseModel):
    """A collection that was moved to the bin."""

    folder: str = Field(description="Where it is now, below the folder of collections.")


class BinnedCollection(BaseModel):
    """A collection in the bin."""

    folder: str = Field(description="Its folder in the bin.")
    title: str
    moved: str | None = Field(description="When it was moved there: ISO 8601, UTC; null: not known.")


class BinnedCollections(BaseModel):
    """Contents of the bin, the last moved first."""

    collections: list[BinnedCollection]


class ShelfRoots(BaseModel):
    """Where photos may be taken from."""

    roots: list[AllowedFolder]


@pages.api_route("/", methods=["GET", "HEAD"])
def page(request: Request) -> HTMLResponse:
    """Show the list of collections."""
    return show_page(request, "shelf")


@router.get("/health")
def health(request: Request) -> ShelfHealth:
    """Tell that the server is alive."""
    service = shelf_of(request)
    return ShelfHealth(
        status="ok",
        collections=len(service.names(request.scope)),
        folders=bool(service.options.roots),
        role=role_of(request),
        user=user_of(request),
        session=caller_of(request.scope).signed_in,
        server=service.id,
    )


@router.get("/collections")
def collections(request: Request) -> Collections:
    """List the collections."""
    service = shelf_of(request)
    return Collections(collections=[_listed(service, card) for card in service.cards(request.scope)])


@router.post("/collections", status_code=201, dependencies=WRITING)
def make(request: Request, wanted: NewCollection) -> MadeCollection:
    """Make a collection, and index a folder of photos into it."""
    service = shelf_of(request)
    _refuse_some(request)
    folder = None if wanted.root is None else folder_below(service.options.roots, wanted.root, wanted.path)
    with refusing(400):
        name = service.shelf.make(wanted.title, max_side=DETAILS[wanted.detail], ignore=wanted.ignore)
    job = None if folder is None else service.index(name, folder, wanted.films).id
    return MadeCollection(name=name, title=service.shelf.title(name), address=collection_address(name), job=job)


@router.patch("/collections/{name}", dependencies=WRITING)
def rename(request: Request, name: Name, wanted: Renaming) -> Renamed:
    """Give a collection another title; its folder and its address stay."""
    service = shelf_of(request)
    with refusing(400):
        service.find(request.scope, name)
        _refuse_some(request)
        title = service.shelf.rename(name, wanted.title)
    app = service.opened.app(name)
    if app is not None:
        app.state.service.name = title
    return Renamed(name=name, title=title)


@router.delete("/collections/{name}", dependencies=WRITING)
async def discard(request: Request, name: Name) -> Discarded:
    """Move a collection to the bin, a folder next to the collections. Indexed photos stay where they are."""
    service = shelf_of(request)
    await run_in_threadpool(service.find, request.scope, name)
    _refuse_some(request)
    async with service.opened.closed(name):
        if await run_in_threadpool(service.jobs, name):
            raise ProblemError(409, "Work on this collection is under way: wait until it has ended, or cancel it.")
        with refusing(400):
            moved = await run_in_threadpool(service.shelf.discard, name)
        with contextlib.suppress(CairnError):  # the collection is gone, and its jobs have nothing to do
            await run_in_threadpool(service.forget, name)
    return Discarded(folder=str(moved.relative_to(service.home)))


@router.get("/bin", dependencies=WRITING)
def binned_collections(request: Request) -> BinnedCollections:
    """List the collections in the bin."""
    _refuse_some(request)
    entries = shelf_of(request).shelf.binned()
    return BinnedCollections(
        collections=[
            BinnedCollection(
                folder=one.folder,
                title=one.title,
                moved=one.moved.isoformat(timespec="seconds") if one.moved else None,
            )
            for one in entries
        ]
    )


@router.post("/bin/{folder}/back", dependencies=WRITING)
def put_collection_back(
    request: Request, folder: Annotated[str, InPath(max_length=255, description="As /api/bin lists it.")]
) -> ReturnedCollection:
    """Restore a collection from the bin, with its title."""
    _refuse_some(request)
    shelf = shelf_of(request).shelf
    with refusing(400):
        name = shelf.put_back(folder)
    return ReturnedCollection(name=name, title=shelf.title(name), address=collection_address(name))


@router.put("/collections/{name}/cover", status_code=204, dependencies=WRITING)
def choose_cover(request: Request, name: Name, wanted: NewCover) -> None:
    """Choose the cover photo of a collection."""
    with refusing(400):
        shelf_of(request).find(request.scope, name)
        shelf_of(request).shelf.choose_cover(name, wanted.photo)


@router.get(
    "/collections/{name}/cover",
    responses={200: {"content": {"image/jpeg": {}}}, 304: {"description": "Not changed."}},
    response_class=Response,
)
async def cover(
    request: Request, name: Name, size: Annotated[int, Query(json_schema_extra={"enum": list(SIZES)})] = 512
) -> Response:
    """Return a thumbnail of a collection's cover photo."""
    service = shelf_of(request)
    await run_in_threadpool(service.find, request.scope, name)
    card = await run_in_threadpool(service.shelf.card, name)
    if card.cover is None or size not in SIZES:
        raise ProblemError(404, "There is no such picture.")
    return await answer_thumbnail(request, service.decode, card.cover, size, service.home / name / CACHE)


@router.get("/roots", dependencies=WRITING)
def roots(request: Request) -> ShelfRoots:
    """List the folders from which photos may be chosen."""
    return ShelfRoots(roots=named_roots(shelf_of(request).options.roots))


router.add_api_route("/roots/{root}/folders", root_folder, dependencies=WRITING)


def _refuse_some(request: Request) -> None:
    """Refuse users who may see only some collections: errors about titles or names would reveal the others."""
    if caller_of(request.scope).collections:
        raise ProblemError(403, "Only people who may see all collections can make, rename or remove one.")


def _listed(service: ShelfService, card: Card) -> ListedCollection:
    return ListedCollection(
        address=collection_address(card.name),
        cover=_cover(card.cover),
        **some_of(card, "name", "title", "photos", "bytes"),
        changed=card.changed.isoformat(timespec="seconds") if card.changed else None,
        jobs=len(service.jobs(card.name)),
    )


def _cover(cover: KnownCover | None) -> Cover | None:
    return None if cover is None else Cover(**some_of(cover, "number", "name", "width", "height"))
