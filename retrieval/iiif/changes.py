"""Streams of changes: which manifests are new, changed or gone since a stream was read last.

The algorithm is that of the IIIF Change Discovery API 1.0, section 3.5: backwards from the newest change, of each
manifest the newest one, until a change is older than the last run has read. The times are the stream's own, so that it
makes no difference what this machine's clock says.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from index.messages import Message
from retrieval.iiif.addresses import is_address
from retrieval.iiif.fetching import Fetcher
from retrieval.iiif.manifests import Change, ChangePage, read_document
from retrieval.iiif.pictures import NotIiifError

LARGEST_DOCUMENT = 32 << 20
"""Bytes of a manifest, a collection of them, or a page of changes."""

MOST_CHANGE_PAGES, MOST_CHANGED = 2_000, 200_000
"""Most pages of a stream that are read in one run, and manifests that are remembered."""

JSON = 'application/ld+json;profile="http://iiif.io/api/presentation/3/context.json", application/json;q=0.9, */*;q=0.5'
"""Requested types of content."""


@dataclass
class ChangeStream:
    """State of a stream."""

    until: datetime | None = None  # of the newest change that was read
    left: dict[str, None] = field(default_factory=dict)  # manifests and collections that are still to be fetched


def read_changes(
    address: str,
    page: ChangePage,
    stream: ChangeStream,
    fetcher: Fetcher,
    notes: list[str],
    moved: dict[str, str] | None = None,
) -> dict[str, Message | None]:
    """Read the changes since a stream was last read. Returns the manifests that are gone, and why (None if the last run
    reported it). Manifests to fetch go into `stream`, notices into `notes`, new addresses into `moved`.
    """
    since, until = stream.until, stream.until
    names = ("", address, page.stream)
    wanted: dict[str, None] = {}
    gone: dict[str, Message | None] = {}
    only_gone = False
    for change in _newest_first(address, page, fetcher, notes):
        if since and change.time and change.time < since:
            break
        if change.time:  # a time in the future would hide all other changes until then
            until = min(max(change.time, until or change.time), datetime.now(UTC))
        if change.kind == "Refresh" and since is None:
            break
        only_gone = only_gone or change.kind == "Refresh"
        if not change.address or change.address in wanted or change.address in gone:
            continue
        is_own = change.stream in names
        is_reported = since is not None and change.time == since  # by the last run
        if change.kind == "Delete" or (change.kind == "Remove" and is_own):
            gone[change.address] = None if is_reported else Message("its library has withdrawn it, its pages stay")
        elif only_gone:
            continue
        elif change.kind in ("Create", "Update") or (change.kind == "Add" and is_own):
            wanted[change.address] = None
        elif change.kind == "Move" and change.moved_to:
            why = Message("it has moved to {address}, its pages stay", address=change.moved_to)
            gone[change.address] = None if is_reported else why
            if change.moved_to not in gone:
                wanted[change.moved_to] = None
                if moved is not None:
                    moved[change.address] = change.moved_to
        if len(wanted) + len(gone) >= MOST_CHANGED:
            notes.append(f"{address} lists more than {MOST_CHANGED:,} manifests: only the newest changes count.")
            break
    stream.until = until
    stream.left = {one: None for one in (*wanted, *stream.left) if one not in gone}
    return gone


def _newest_first(address: str, page: ChangePage, fetcher: Fetcher, notes: list[str]) -> Iterator[Change]:
    seen = {address}
    while True:
        yield from reversed(page.changes)
        if not page.earlier or page.earlier in seen:
            return
        if len(seen) > MOST_CHANGE_PAGES:
            notes.append(f"Only the newest {MOST_CHANGE_PAGES:,} pages of {address} were read.")
            return
        seen.add(page.earlier)
        document = read_document(fetcher.fetch(page.earlier, LARGEST_DOCUMENT, accept=JSON).content)
        if not isinstance(document, ChangePage):
            raise NotIiifError("{address} is no page of changes", address=page.earlier)
        page = document


def streams_from(text: str | None) -> dict[str, ChangeStream]:
    """Read the stored states of streams by their addresses, without invalid ones."""
    streams = {}
    try:
        for address, known in json.loads(text or "{}").items():
            until = known["until"] and datetime.fromisoformat(known["until"]).astimezone(UTC)
            streams[address] = ChangeStream(until, {one: None for one in known["left"] if is_address(one)})
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        pass
    return streams


def streams_text(streams: Mapping[str, ChangeStream]) -> str:
    """Return states of streams in the form that `streams_from` reads."""
    return json.dumps(
        {
            address: {"until": known.until and known.until.isoformat(), "left": [*known.left][:MOST_CHANGED]}
            for address, known in streams.items()
        }
    )
