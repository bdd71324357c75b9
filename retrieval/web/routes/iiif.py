"""Routes of parts of photos at any size, with the addresses of the IIIF Image API 3.0."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from retrieval.catalogue.schema import ImageRow
from retrieval.photos.tiles import LARGEST, SIDE, kept_tile, level_sizes
from retrieval.web.access.gate import VIEWERS
from retrieval.web.access.rights import user_of
from retrieval.web.access.viewers import CONTEXT as AUTHORIZATION
from retrieval.web.access.viewers import access_service, earlier_service, probe_result, probe_service
from retrieval.web.models import IiifInformation, IiifTiles
from retrieval.web.problems import ProblemError
from retrieval.web.routes.photos import JPEG, LARGEST_PICTURE, Number, is_known, keep_for_a_while
from retrieval.web.service import Service, service_of

router = APIRouter(prefix="/api/iiif", tags=["photos"])

CUTTING_SECONDS = 120.0
"""Seconds that cutting a photo into tiles may take, once."""

EXTRA_FEATURES = (
    "sizeByWh",
    "regionByPct",
    "regionByPx",
    "regionSquare",
    "sizeByConfinedWh",
    "sizeByH",
    "sizeByPct",
    "sizeByW",
    "rotationBy90s",
    "mirroring",
    "baseUriRedirect",
    "jsonldMediaType",
)

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_REGION = re.compile(rf"(?P<pct>pct:)?(?P<parts>{_NUMBER}(?:,{_NUMBER}){{3}})", re.ASCII)
_SIZE = re.compile(rf"(?P<within>!)?(?P<width>\d{{1,9}})?,(?P<height>\d{{1,9}})?|pct:(?P<pct>{_NUMBER})", re.ASCII)

FORMATS = {"jpg": "jpeg", "png": "png", "webp": "webp"}
QUALITIES = ("color", "gray", "bitonal")
"""Of pictures, besides the default one, which is in colour."""

UPRIGHT = {"mirrored": False, "degrees": 0, "colours": "color", "format": "jpeg"}
"""A part as tiles of it are kept."""

_ROTATION = re.compile(r"(?P<mirrored>!)?(?P<degrees>0|90|180|270)")
_FILE = re.compile(rf"(?P<quality>default|{'|'.join(QUALITIES)})\.(?P<format>jpg|png|webp)")


Region = Annotated[str, Path(description="`full`, `square`, `x,y,w,h` or `pct:x,y,w,h`.")]
Size = Annotated[str, Path(description="`max`, `w,`, `,h`, `w,h`, `!w,h` or `pct:n`.")]
Rotation = Annotated[str, Path(description="`0`, `90`, `180` or `270`, clockwise; `!`: mirrored before.")]
File = Annotated[str, Path(description="`default`, `color`, `gray` or `bitonal`, with `.jpg`, `.png` or `.webp`.")]
PICTURES: dict[int | str, dict[str, Any]] = {
    **JPEG,
    200: {"content": {"image/jpeg": {}, "image/png": {}, "image/webp": {}}},
}


def served_sizes(service: Service, width: int | None, height: int | None) -> tuple[int, Sequence[tuple[int, int]]]:
    """Sizes in which a photo is shown, the largest first, and the level of its tiles for each. Without access to
    originals, tiles give no more pixels than pictures do.
    """
    sizes = level_sizes(width or 1, height or 1)
    skipped = 0
    if not service.options.exports.files:
        skipped = next(level for level, size in enumerate(sizes) if max(size) <= LARGEST_PICTURE)
    return skipped, sizes[skipped:]


@router.get("/{number}", include_in_schema=False)
async def iiif_photo(request: Request, number: Number) -> RedirectResponse:
    """Redirect from the address of a photo to its `info.json`, as the IIIF Image API requires."""
    return RedirectResponse(f"{request.url.replace(query='')}/info.json", 303)


@router.get("/{number}/info.json", response_model=IiifInformation)
async def iiif_information(request: Request, number: Number) -> Response:
    """Return the size of a photo and its tiles: `info.json` of the IIIF Image API 3.0."""
    service = service_of(request)
    row = await _row(service, number)
    _, sizes = served_sizes(service, row.width, row.height)
    information = IiifInformation(
        id=str(request.url.replace(query="")).removesuffix("/info.json"),
        width=sizes[0][0],
        height=sizes[0][1],
        maxWidth=LARGEST_PICTURE,
        tiles=[IiifTiles(width=SIDE, scaleFactors=[2**level for level in range(len(sizes))])],
        extraQualities=list(QUALITIES),
        extraFormats=["webp"],
        extraFeatures=list(EXTRA_FEATURES),
    )
    answer = information.model_dump(by_alias=True)
    if (access := access_service(request)) is not None:
        answer["@context"] = [AUTHORIZATION, answer["@context"]]
        answer["service"] = [probe_service(f"{information.id}/probe", access), earlier_service(access)]
    return linked_data(request, answer)


@router.get("/{number}/probe", responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}})
async def iiif_probe(request: Request, number: Number) -> Response:
    """Say whether the visitor may see a photo: the probe service of the IIIF Authorization Flow API 2.0."""
    status = 401 if VIEWERS in request.scope and user_of(request) is None else 200
    if status == 200:
        await _row(service_of(request), number)
    return linked_data(request, probe_result(status))


def linked_data(request: Request, resource: dict[str, Any]) -> Response:
    """Answer with JSON-LD if the client asks for it, else with plain JSON."""
    accepted, contexts = request.headers.get("accept", ""), resource["@context"]
    # Of several contexts that of the resource is the last; Cairn's own terms follow it.
    profile = contexts if isinstance(contexts, str) else [one for one in contexts if isinstance(one, str)][-1]
    kind = f'application/ld+json;profile="{profile}"' if "application/ld+json" in accepted else "application/json"
    headers = {"Vary": "Accept", "Cache-Control": "private, no-cache"}
    if VIEWERS in request.scope:  # what is open to everyone is open to pages of all sites
        headers["Access-Control-Allow-Origin"] = "*"
    return JSONResponse(resource, media_type=kind, headers=headers)


@router.get("/{number}/{region}/{size}/{rotation}/{file}", responses=PICTURES, response_class=Response)
async def iiif_image(
    request: Request, number: Number, region: Region, size: Size, rotation: Rotation, file: File
) -> Response:
    """Return a part of a photo, upright or turned: an image request of the IIIF Image API 3.0."""
    service = service_of(request)
    row = await _row(service, number)
    level, sizes = served_sizes(service, row.width, row.height)
    box = parse_region(region, *sizes[0])
    wanted = parse_size(size, box)
    form = parse_form(rotation, file)
    tag = f'"{row.sha256}-{level}-{"-".join(map(str, [*box, *wanted, *form.values()]))}"'
    if is_known(request, tag):
        return Response(status_code=304, headers=keep_for_a_while(tag))
    tile = _find_tile(box, wanted, sizes) if form == UPRIGHT else None

    async def kept() -> bytes | None:
        if tile is None:
            return None
        return await run_in_threadpool(kept_tile, row.sha256, service.cache, level + tile[0], *tile[1:])

    picture = await kept()
    if picture is None:
        async with service.cutting(row.sha256 or ""):  # a page asks for many tiles at once: the photo is cut once
            picture = await kept()
            if picture is None:
                job = {"path": row.path, "name": row.name, "sha256": row.sha256, "cache": str(service.cache)}
                part = {"level": level, "box": box, "size": wanted, "form": form}
                _, picture = await service.decode(
                    request, "part", {**job, **part}, least_pixels=LARGEST, seconds=CUTTING_SECONDS
                )
    return Response(picture, media_type=f"image/{form['format']}", headers=keep_for_a_while(tag))


async def _row(service: Service, number: int) -> ImageRow:
    row = service.recent.recall(number)
    if row is None:
        row = await service.row(number)
        service.recent.remember([row])
    return row


def parse_region(region: str, width: int, height: int) -> tuple[float, float, float, float]:
    """Parse a region of IIIF to left, top, right and bottom; raises ProblemError if it is not valid."""
    if region == "full":
        return 0, 0, width, height
    if region == "square":
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        return left, top, left + side, top + side
    match = _REGION.fullmatch(region)
    if match is None:
        raise ProblemError(400, "A region is full, square, x,y,w,h or pct:x,y,w,h.")
    x, y, w, h = map(float, match["parts"].split(","))
    if match["pct"]:
        x, w, y, h = x * width / 100, w * width / 100, y * height / 100, h * height / 100
    elif not all(value.is_integer() for value in (x, y, w, h)):
        raise ProblemError(400, "A region is full, square, x,y,w,h or pct:x,y,w,h.")
    right, bottom = min(x + w, width), min(y + h, height)
    if right - x < 1 or bottom - y < 1:
        raise ProblemError(400, "The region lies outside the photo, or is less than a pixel.")
    return x, y, right, bottom


def parse_size(size: str, box: Sequence[float]) -> tuple[int, int]:
    """Parse a size of IIIF to width and height; raises ProblemError if it is not available."""
    wide, high = box[2] - box[0], box[3] - box[1]
    ratio = wide / high
    match = _SIZE.fullmatch(size)
    if size == "max":
        scale = min(1, LARGEST_PICTURE / max(wide, high))
        width, height = wide * scale, high * scale
    elif match is None or size in (",", "!,") or (match["within"] and not (match["width"] and match["height"])):
        raise ProblemError(400, "A size is max, w, ,h w,h !w,h or pct:n.")
    elif match["pct"]:
        width, height = (float(match["pct"]) / 100 * side for side in (wide, high))
    else:
        width, height = float(match["width"] or 0), float(match["height"] or 0)
        if match["within"]:
            scale = min(width / wide, height / high, 1)
            width, height = wide * scale, high * scale
        elif not match["width"]:
            width = height * ratio
        elif not match["height"]:
            height = width / ratio
    whole = max(1, round(width)), max(1, round(height))
    if width <= 0 or height <= 0 or whole[0] > -(-wide // 1) or whole[1] > -(-high // 1):
        raise ProblemError(400, "A region is never enlarged: ask for its own size or less.")
    if max(whole) > LARGEST_PICTURE:
        raise ProblemError(400, "A picture has at most {side} pixels a side.", side=LARGEST_PICTURE)
    return whole


def parse_form(rotation: str, file: str) -> dict[str, Any]:
    """Parse rotation, quality and format of IIIF for `encode_part`; raises ProblemError if they are not available."""
    turn, match = _ROTATION.fullmatch(rotation), _FILE.fullmatch(file)
    if turn is None:
        raise ProblemError(400, "A rotation is 0, 90, 180 or 270, or that with ! before it.")
    if match is None:
        raise ProblemError(400, "A picture is default, color, gray or bitonal, and ends in .jpg, .png or .webp.")
    return {
        "mirrored": turn["mirrored"] is not None,
        "degrees": int(turn["degrees"]),
        "colours": "color" if match["quality"] == "default" else match["quality"],
        "format": FORMATS[match["format"]],
    }


def _find_tile(
    box: Sequence[float], size: tuple[int, int], sizes: Sequence[tuple[int, int]]
) -> tuple[int, int, int] | None:
    """Level, column and row of the requested tile; None if it is not a tile."""
    for level, (width, height) in enumerate(sizes):
        step = SIDE << level
        column, row = box[0] / step, box[1] / step
        if column.is_integer() and row.is_integer():
            left, top = int(column) * SIDE, int(row) * SIDE
            part = min(SIDE, width - left), min(SIDE, height - top)
            edges = min((left + SIDE) << level, sizes[0][0]), min((top + SIDE) << level, sizes[0][1])
            if part == size and edges == (box[2], box[3]):
                return level, int(column), int(row)
    return None
