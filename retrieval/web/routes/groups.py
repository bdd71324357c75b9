"""Routes of groups: photos that verified matches link, as `cairn group` found them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from index.text import csv_text
from retrieval.groups.groups import FoundGroup, read_groups
from retrieval.groups.tables import group_rows
from retrieval.web.models import MAX_NUMBER, Group, GroupedPhoto, GroupPage
from retrieval.web.problems import ProblemError
from retrieval.web.routes.exports import attached
from retrieval.web.service import Service, describe_those_there, service_of

router = APIRouter(prefix="/api", tags=["groups"])


@router.get("/groups")
def groups(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=0, le=500)] = 60,
) -> GroupPage:
    """List groups of photos, the largest first, a page at a time."""
    service = service_of(request)
    result = read_groups(service.collection)
    page = result.groups[offset : offset + limit]
    photos = describe_those_there(service, [number for group in page for number in group.photos])
    described = {photo.number: photo.model_dump() for photo in photos}
    shown = [
        Group(
            group=group.number,
            photos=[
                GroupedPhoto.model_validate(
                    {
                        **described[number],
                        "duplicate_of": group.duplicates.get(number),
                        "kind": group.kinds.get(number),
                    }
                )
                for number in group.photos
                if number in described
            ],
            links=group.links,
            similar=[list(some) for some in group.similar],
        )
        for group in page
    ]
    return GroupPage(total=len(result.groups), inliers=result.inliers, out_of_date=result.out_of_date, groups=shown)


def group_of(service: Service, number: int) -> FoundGroup:
    """Return a group by its number; raises ProblemError if there is no such group."""
    match = next((group for group in read_groups(service.collection).groups if group.number == number), None)
    if match is None:
        raise ProblemError(
            404, "There is no group {number}: the groups may have been searched for again.", number=number
        )
    return match


@router.get("/groups.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def groups_file(request: Request) -> Response:
    """Return all groups as a table (CSV), as `cairn group --out` writes it, without the paths of the photos."""
    service = service_of(request)
    try:
        rows = list(group_rows(service.collection, read_groups(service.collection).groups))
    except KeyError:
        raise ProblemError(503, "The collection has just changed: try again.") from None
    table = csv_text(map(no_formula, (*row[:2], *row[3:])) for row in rows)
    return attached(table.encode(), "text/csv; charset=utf-8", "groups.csv")


def no_formula(cell: str) -> str:
    """Write a cell so that no spreadsheet takes it for a formula: with an apostrophe before, as the pages do.

    >>> no_formula("=HYPERLINK(1)"), no_formula("cat.jpg")
    ("'=HYPERLINK(1)", 'cat.jpg')
    """
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else cell
