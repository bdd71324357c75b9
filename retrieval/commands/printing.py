"""What cairn index, info and query print."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.text import likely, printable_name
from retrieval.commands.console import note, print_failures, print_json, say
from retrieval.metadata.pages import FILMS

if TYPE_CHECKING:
    from retrieval.library.answers import Answer
    from retrieval.library.reports import Added

_LISTED, _ENDINGS = 100, 12  # photos, and endings of files, that are printed for people
_LABEL = 25  # characters, of a name before its value
_SHOWN = 5  # files that are printed of those that were left out


def report_index(folder: Path, report: "Added", json: bool) -> None:
    """Print the report of indexing."""
    from retrieval.search.answers import IF_MOVED

    for text in report.notes:
        note(text)
    if json:
        print_json({"collection": str(folder), **report.to_dict()})
        return
    back = f" ({len(report.back)} back)" if report.back else ""
    say(
        f"{folder}: {report.added} added, {report.unchanged} unchanged{back}, {len(report.moved)} moved, "
        f"{len(report.vanished)} vanished, {len(report.failed)} failed; "
        f"{report.images} photos, {report.features} features, {report.words} words "
        f"in {report.seconds['total']:.1f} s."
    )
    for one in report.manifests:
        _say_manifest(one)
    if report.reread:
        say(f"The metadata of {report.reread} unchanged photos was read again from their files.")
    if report.left:
        say(
            f"The time limit was reached with {report.left} photos left: run the same command again to continue with "
            "them."
        )
    if report.vanished:
        say(f"Files that have gone: {len(report.vanished)}; {IF_MOVED}.")
    print_failures(report.newly_failed)
    if report.failed_before:
        say(f"Of the failed, {report.failed_before} failed before and are unchanged: cairn info lists them.")
    for entry in report.kept_out_reasons[:_SHOWN]:
        say(f"left out: {printable_name(entry['path'])}: {printable_name(entry['reason'])}")
    if report.kept_out:
        listed = "--json lists all, " if len(report.kept_out) > _SHOWN else ""
        say(f"Left out as removed for good: {len(report.kept_out)}; {listed}cairn index --again adds them.")
    if report.featureless:
        say(f"{_never_found(report.featureless, report.text_only)}; cairn info lists such.")
    if report.text_masked:
        say(f"Printed text was left out of {report.text_masked} of the added photos.")
    if report.places:
        say(f"Links to photos that are in the collection: {len(report.places)}; each file is one photo.")
    for entry in report.remarks[:_SHOWN]:
        say(f"added with a note: {printable_name(entry['path'])}: {entry['reason']}")
    if len(report.remarks) > _SHOWN:
        say(f"Added with a note: {len(report.remarks)}; --json lists all.")
    if report.pages_left:
        say(f"Pages left out: {report.pages_left}, beyond --max-pages or 10,000, or of files not named .tif or .pdf.")
    if report.folders_passed_over:
        named = ", ".join(f"{count} {printable_name(name)}" for name, count in report.folders_passed_over.items())
        say(f"Folders that were skipped: {named} (--include adds one).")
    others = {ending: count for ending, count in report.passed_over.items() if ending not in FILMS}
    if films := sum(report.passed_over.values()) - sum(others.values()):
        say(f"Films that were skipped: {films} (--films adds them).")
    if others:
        say(f"Passed over: {_endings(list(others.items()))} (not photos that Cairn can read).")


def _say_manifest(manifest: Mapping[str, Any]) -> None:
    """Print the result of a manifest, if there is any."""
    name = printable_name(manifest["label"] or manifest["manifest"])
    if manifest["reason"]:
        say(f"not fetched: {printable_name(manifest['manifest'])}: {printable_name(manifest['reason'])}")
    if manifest["fetched"] or manifest["failed"] or manifest["withdrawn"]:
        say(f"{name}: {manifest['pages']} pages, {manifest['fetched']} fetched, {len(manifest['failed'])} failed.")
    for entry in manifest["failed"][:_SHOWN]:
        say(f"not fetched: {printable_name(entry['page'])}: {printable_name(entry['reason'])}")
    for photo in manifest["withdrawn"][:_SHOWN]:
        say(f"withdrawn by its library, and kept here: {printable_name(photo)}")
    if max(len(manifest["failed"]), len(manifest["withdrawn"])) > _SHOWN:
        say(f"{name}: --json lists all pages.")


def _never_found(count: int, text_only: int = 0) -> str:
    why = ["blank, blurred or too small"] * (count > text_only) + ["nothing but text"] * (text_only > 0)
    return f"{count} {'photo' if count == 1 else 'photos'} can never be found: {', or '.join(why)}"


def _endings(counted: list[tuple[str, int]]) -> str:
    """Endings of files and how many have each, the most frequent ones."""
    texts = [f"{count} {ending or 'without an ending'}" for ending, count in counted[:_ENDINGS]]
    others = sum(count for _, count in counted[_ENDINGS:])
    return ", ".join([*texts, *([f"{others} others"] if others else [])])


def print_facts(collection: Path, facts: Mapping[str, Any]) -> None:
    """Print the facts about a collection."""
    from retrieval.collection.summary import describe_augmentation, describe_global

    say(f"{collection}: {facts['images']} photos, {facts['features']} features, {facts['segments']} segments")
    if added := facts["date_added"]:
        say(f"photos added {added['first'][:10]} to {added['last'][:10]} (UTC)")
    descriptor, vocabulary = facts["descriptor"], facts["vocabulary"]
    say(f"descriptor   {descriptor['name']}, {descriptor['dim']} dimensions, {descriptor['fingerprint'][:12]}")
    if descriptor["foreign"]:
        needed = "" if facts["extensions"] else ", another program's: new photos need --features"
        say(f"keypoints    {descriptor['foreign']}{needed}")
    for extension in facts["extensions"]:
        say(f"extension    {extension}")
    say(f"signature    {facts['signature'] or 'none'}")
    if vocabulary:
        say(
            f"vocabulary   {vocabulary['words']} words from {vocabulary['trained_on']}, "
            f"recall@1 {vocabulary['recall_at_1']:.3f}, {vocabulary['fingerprint'][:12]}"
        )
        drift = vocabulary["drift"]
        if drift["ratio"] is not None:
            say(f"added        {drift['added']['images']} photos, {drift['ratio']:.2f} times as far from their words")
        say(f"             {drift['advice']}")
    for part, size in facts["bytes"].items():
        say(f"{part:<12} {size / 1e6:10.2f} MB")
    say(f"a feature    {facts['bytes_per_feature']:10.2f} bytes")
    if (augmentation := facts["augmentation"]) is not None:
        say(f"augmentation {describe_augmentation(augmentation)}")
    if (rows := facts["global_descriptors"]) is not None:
        say(f"global       {describe_global(rows)}")
    if facts["missing"]:
        say(f"missing      {facts['missing']} photos whose files were gone: connect the drive and index again; if they")
        say("             were moved, index the folder where they are now, and they are recognised by content; if")
        say("             they are gone for good, cairn remove --missing takes them out")
    if facts["text_masked"]:
        say(f"text         left out of {facts['text_masked']} photos")
    if names := facts["featureless"]:
        text_only = set(facts["text_only"])
        say(f"no features  {_never_found(len(names), len(text_only))}")
        for name in names[:_LISTED]:
            say(f"             {printable_name(name)}{': nothing but text' if name in text_only else ''}")
        if len(names) > _LISTED:
            say(f"             and {len(names) - _LISTED} more, which --json lists")
    if facts["removed"]:
        say(f"removed      {facts['removed']} photos that still take space: cairn compact frees it")
    for entry in facts["removed_for_good"][:_LISTED]:
        say(f"removed for good: {printable_name(entry['name'])}: {printable_name(entry['path'])}")
    if facts["removed_for_good"]:
        more = len(facts["removed_for_good"]) - _LISTED
        rest = f"{more} more were removed for good, which --json lists; " if more > 0 else ""
        say(f"             {rest}cairn index --again takes them in again")
    print_failures(facts["failed"])


def print_environment(environment: Mapping[str, Any]) -> None:
    """Print the result of `describe_environment`: a heading for each part, and a line for each fact."""
    for part, facts in environment.items():
        if not facts:
            continue
        say(part.replace("_", " "))
        if isinstance(facts, Mapping):
            for name, value in facts.items():
                say(f"    {name:<{_LABEL}} {_value(value)}")
        else:
            for one in facts:
                first, *others = one.values()
                rest = (f"{key} {_value(value)}" for key, value in zip([*one][1:], others, strict=True))
                say(f"    {first:<{_LABEL}} {', '.join(rest)}")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def print_answer(answer: "Answer", picture: Path | None, json: bool) -> None:
    """Print the results of a query."""
    if answer.missing_shards:
        note(f"{len(answer.missing_shards)} shards of the collection were missing, whose photos were not searched.")
    if json:
        print_json(answer.to_dict())
        return
    for query in answer.queries:
        for remark in query.remarks:
            say(f"{printable_name(query.name)}: {remark}")
    if not answer:
        say("No photo of the collection passes the filters." if answer.passing == 0 else "Nothing found.")
    found = True
    for one in answer:
        if found and not one.found:
            say("Perhaps:" if one.rank > 1 else "Nothing found for sure. Perhaps:")
        found = one.found
        say(f"{one.rank:4d}  {likely(one.probability):>4}  {one.score:.4f}  {printable_name(one.name)}")
    if picture is not None:
        say(f"Picture: {picture}")
