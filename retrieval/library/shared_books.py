"""Books that share pictures: pages linked by groups, and pages with finds of the same saved search."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from typing import Annotated

from index.reports import Report
from retrieval.catalogue.curation.rejections import rejected_pairs
from retrieval.catalogue.curation.saved import Find, StoredSearch, finds_of, saved_searches
from retrieval.catalogue.link_store import links_in
from retrieval.collection.collection import Collection
from retrieval.groups.groups import NotGrouped, read_groups
from retrieval.groups.links import components, found_numbers
from retrieval.library.motifs import UNRELATED, PageFacts, book_pages
from retrieval.library.photos import cache_of, photos_there
from retrieval.search.probability import FOUND

_Matches = dict[tuple[int, int], list[int]]  # photos that match, and the ids of the searches that found both


@dataclass(frozen=True)
class SharedPage(Report):
    """A page of one book and one of another that show the same picture."""

    first: Annotated[str, "Name of the photo of one book."]
    second: Annotated[str, "Name of the photo of the other."]
    first_page: Annotated[str, "Label of the page in the one book."]
    second_page: Annotated[str, "Label of the page in the other."]
    numbers: Annotated[tuple[int, int], "Of the photos."]
    searches: Annotated[tuple[str, ...], "Saved searches with finds on both; empty if only a group links them."]
    box: Annotated[
        tuple[float, float, float, float] | None,
        "x0, y0, x1, y1 of the find of the first of these on the first page, in pixels.",
    ]


@dataclass(frozen=True)
class BookPair(Report):
    """Two books that share pictures."""

    first: Annotated[str, "Name of a book."]
    second: Annotated[str, "Name of another book."]
    pictures: Annotated[
        int,
        "Number of shared pictures: pages that match each other, directly or through others of the two "
        "books, count once, or as often as different saved searches have finds on them.",
    ]
    pages: Annotated[tuple[SharedPage, ...], "Pairs of matching pages."]


@dataclass(frozen=True)
class SharedBooks(Report):
    """Which books share pictures."""

    books: Annotated[tuple[str, ...], "Those that share any, by date."]
    pairs: Annotated[tuple[BookPair, ...], "Those with most pictures first."]
    grouped: Annotated[bool, "Whether the collection was grouped; otherwise only saved searches count."]

    def matrix(self) -> list[Sequence[str]]:
        """Return a table of texts: a row and a column for each book, and how many pictures each two share."""
        counts = {ends: str(one.pictures) for one in self.pairs for ends in permutations((one.first, one.second))}
        return [("", *self.books), *((row, *(counts.get((row, one), "") for one in self.books)) for row in self.books)]

    def page_rows(self) -> list[Sequence[str]]:
        """Return a table of texts: a row for each two pages that match."""
        rows = [("book", "page", "photo", "other_book", "other_page", "other_photo", "searches")]
        for pair in self.pairs:
            for one in pair.pages:
                ends = pair.first, one.first_page, one.first, pair.second, one.second_page, one.second
                rows.append((*ends, "; ".join(one.searches)))
        return [*rows]


def shared_books(collection: Collection, category: str | None = None) -> SharedBooks:
    """Find out which books share pictures.

    With a category, only finds of saved searches in it, and their query photos, count. By default groups count too, and
    finds that are sure or in any category other than "not related".
    """
    catalogue = collection.catalogue
    linked, grouped = ([], True) if category is not None else _linked(collection)
    searches = catalogue.read(saved_searches)
    found = {one.id: {find.number: find for find in _counting(collection, one, category)} for one in searches}
    numbers = {number for some in (*linked, *found.values()) for number in some}
    photos = photos_there(catalogue, sorted(numbers), cache_of(collection.folder))
    pages = book_pages(catalogue, photos)
    books = _in_order(pages.values())
    rank = {key: place for place, key in enumerate(books)}
    place = {number: (rank[page.key], number) for number, page in pages.items()}
    rejected = catalogue.read(rejected_pairs)
    matching = chain(
        ((pair, None) for pair in linked),
        ((pair, search) for search, finds in found.items() for pair in combinations(sorted(finds), 2)),
    )
    shared: defaultdict[tuple[str, str], _Matches] = defaultdict(dict)  # of two books, the earlier first
    for pair, search in matching:
        if place.keys() >= set(pair) and pair not in rejected:
            one, other = sorted(pair, key=place.__getitem__)
            if pages[one].key != pages[other].key:
                ids = shared[pages[one].key, pages[other].key].setdefault((one, other), [])
                ids += [search] if search is not None else []
    called = {one.id: one.name for one in searches}
    names = {photo.number: photo.name for photo in photos}

    def page(one: int, other: int, ids: list[int]) -> SharedPage:
        box = _box(found[ids[0]][one].region) if ids else None
        ends = names[one], names[other], pages[one].page, pages[other].page
        return SharedPage(*ends, (one, other), tuple(called[search] for search in ids), box)

    cells = sorted(shared.items(), key=lambda one: [rank[key] for key in one[0]])
    pairs = [
        BookPair(books[first], books[second], count, tuple(page(*ends, ids) for ends, ids in sorted(some.items())))
        for ((first, second), some), count in zip(cells, _counts([some for _, some in cells]), strict=True)
    ]
    sharing = {key for ends in shared for key in ends}
    return SharedBooks(
        tuple(book for key, book in books.items() if key in sharing),
        tuple(sorted(pairs, key=lambda one: -one.pictures)),
        grouped,
    )


def _linked(collection: Collection) -> tuple[list[tuple[int, int]], bool]:
    """Pairs of photos linked by groups; and whether the collection was grouped."""
    try:
        groups = read_groups(collection)
    except NotGrouped:
        return [], False
    group_of = {number: group.number for group in groups.groups for number in group.photos}
    links = collection.catalogue.read(links_in, list(group_of))
    query_images, found, _ = found_numbers(links.items(), groups.inliers)
    pairs = {(min(pair), max(pair)) for pair in zip(query_images.tolist(), found.tolist(), strict=True)}
    return sorted((one, other) for one, other in pairs if group_of.get(one) == group_of.get(other)), True


def _counting(collection: Collection, search: StoredSearch, category: str | None) -> Iterator[Find]:
    """The finds of a saved search that count."""
    queries = search.query.get("queries")
    query_images = [one.get("photo") for one in queries if isinstance(one, dict)] if isinstance(queries, list) else []
    for find in collection.catalogue.read(finds_of, search.id):
        likely = find.category != UNRELATED and (find.category is not None or (find.probability or 0) >= FOUND)
        if find.number in query_images or (likely if category is None else find.category == category):
            yield find


def _in_order(pages: Iterable[PageFacts]) -> dict[str, str]:
    """Return unique names of books by key, ordered by date."""
    of_key: dict[str, PageFacts] = {}
    for page in pages:
        known = of_key.setdefault(page.key, page)
        if (page.date or "9") < (known.date or "9"):
            of_key[page.key] = page
    counts = Counter(page.book for page in of_key.values())
    ordered = sorted(of_key.values(), key=lambda page: (page.date is None, page.date, page.book, page.key))
    return {page.key: page.book if counts[page.book] == 1 else f"{page.book} ({page.key})" for page in ordered}


def _counts(shared: Sequence[_Matches]) -> list[int]:
    """Numbers of pictures that pairs of books share, by matching pages and searches with finds on both."""
    stride = 1 + max((other for matches in shared for pair in matches for other in pair), default=0)
    edges = {  # a photo is a separate node for each pair of books, so that one call suffices for all
        (place * stride + one, place * stride + other): searches
        for place, matches in enumerate(shared)
        for (one, other), searches in matches.items()
    }
    joined = {node: label for label, nodes in enumerate(components(edges)) for node in nodes}
    by_component: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for (node, _), searches in edges.items():
        by_component[node // stride, joined[node]].update(searches)
    counts = [0] * len(shared)
    for (place, _), some in by_component.items():
        counts[place] += max(1, len(some))
    return counts


def _box(region: list[list[float]] | None) -> tuple[float, float, float, float] | None:
    if not region:
        return None
    xs, ys = ([point[axis] for point in region] for axis in (0, 1))
    return min(xs), min(ys), max(xs), max(ys)
