"""The command that searches a collection."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from index.options.declaration import build
from index.options.panels import FILTERS, OUTPUT, SEARCH
from retrieval.commands.described import QueryFeatures
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import CatalogueAddress, Folder, Json, MatchAll, QueryBox, SearchCluster, ShardNumber
from retrieval.commands.printing import print_answer
from retrieval.metadata.fields import FieldFilter
from retrieval.search.options import SearchOptions

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Queries:
    """The query, as options of the command line."""

    photos: Annotated[list[str], typer.Argument(help="A photo's file, or its name in the collection.")]
    box: QueryBox = None
    top: Annotated[int, typer.Option(rich_help_panel=SEARCH, help="Number of results.", min=1)] = 20


@dataclass(frozen=True)
class QuerySources:
    """Features of the queries, and how several are combined, as options of the command line."""

    features: QueryFeatures = None
    match_all: MatchAll = False


@dataclass(frozen=True)
class MoreFilters:
    """Filters that no metadata field declares, as options of the command line."""

    near: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            rich_help_panel=FILTERS,
            metavar="LATITUDE LONGITUDE KM",
            help="Only photos taken within so many kilometres of this place.",
        ),
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=FILTERS,
            metavar="KEY=VALUE",
            help="Only photos with this value under this key, such as a column of an imported table; may be repeated.",
        ),
    ] = None


@dataclass(frozen=True)
class AnswerFiles:
    """Files that an answer is written to, as options of the command line."""

    picture: Annotated[
        Path | None, typer.Option(rich_help_panel=OUTPUT, help="Write a picture of the best matches (.jpg or .png).")
    ] = None
    annotations: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            metavar="FILE",
            help="Write the results as W3C Web Annotations (.jsonld) or TEI (.xml), as cairn annotations does.",
        ),
    ] = None


@dataclass(frozen=True)
class SearchPlace:
    """Where to search and how to print the answer, as options of the command line."""

    catalogue: CatalogueAddress = None
    cluster: SearchCluster = None
    shards: ShardNumber = 0
    json: bool = Json


@grouped
def query(
    *,
    collection: Folder,
    asked: Queries,
    options: Annotated[dict[str, Any], OptionsOf(SearchOptions)],
    sources: QuerySources,
    filters: Annotated[dict[str, Any], OptionsOf(FieldFilter)],
    more: MoreFilters,
    files: AnswerFiles,
    place: SearchPlace,
) -> None:
    """Find the photos that show the same object or landmark as a photo, or as a box drawn in one."""
    from retrieval.catalogue.filters import PhotoFilter, parse_condition
    from retrieval.library.cluster import joined
    from retrieval.library.opening import open_named
    from retrieval.metadata.places import Near

    wanted = replace(
        build(PhotoFilter, filters),
        near=Near(*more.near) if more.near is not None else None,
        where=tuple(parse_condition(one) for one in more.where or ()),
    )
    if files.picture is not None:
        from retrieval.search.picture import check_picture

        check_picture(files.picture)
    with (
        joined(place.cluster, place.shards) as work,
        open_named(collection, catalogue=place.catalogue, cluster=work) as opened,
    ):
        answer = opened.search(asked.photos, asked.box, top=asked.top, where=wanted, **vars(sources), **options)
        if files.picture is not None:
            answer.save_picture(files.picture)
        if files.annotations is not None:
            opened.save_annotations(files.annotations, answer=answer)
    print_answer(answer, files.picture, place.json)
