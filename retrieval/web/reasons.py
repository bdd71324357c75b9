"""Why photos could not be read, how they were read, and what is wrong with damaged files, in the visitor's language.

Commands and catalogues keep English.
"""

import re
from typing import Any

from index.messages import Message, Naming, on_command_line, said
from retrieval.web.languages import fill_in, translate

_IN_BRACKETS = re.compile(r"(?P<reason>.*?) (?P<detail>\(.*\))", re.DOTALL)
_ON_PAGES = {
    "the file has changed since it was indexed: run cairn index": said(
        "the file has changed since it was indexed: look for new photos"
    )
}
"""Reasons that name a command."""

REASONS = (
    said("It cannot be read"),
    said("It does not say at which revision it is"),
    said("It is damaged"),
    said("It is not a regular file"),
    said("It is not as long as what was written"),
    said("It is not what was written"),
    said("It says twice at which revision it is, and not the same"),
    said("The catalogue is missing"),
    said("The checksums of the collection are missing"),
    said("The checksums of the collection are not what was written"),
    said("The copy of the catalogue is missing"),
    said("The copy of the catalogue is not what was written"),
    said("The copy of the catalogue is older than what was written"),
    said("The descriptor cannot be read: {error}"),
    said("The file cannot be read"),
    said("The file is missing"),
    said("The file is not what was written"),
    said("The global descriptors are not what was written"),
    said("The groups are not what was written"),
    said("The options cannot be read: {error}"),
    said("The segment is missing"),
    said("The statistics of the postings are not what was written"),
    said("The statistics were computed while postings were damaged"),
    said("The thumbnail is not what was written"),
    said("The tiles of a photo are not what was written"),
    said("The vocabulary cannot be read: {error}"),
    said("The vocabulary is missing"),
    said("The words that photos are found by are not those that are said of them"),
    said("What photos borrow of others is not what was written"),
    said("HEIC needs an optional package: {command}"),
    said("PDF needs an optional package: {command}"),
    said("decoding it takes far longer than a photo of its size does"),
    said("decoding it was broken off"),
    said("decoding it was broken off, most likely for want of memory"),
    said("it is a folder, not a photo"),
    said("it is in no folder that photos may be taken from, so nothing is written beside it"),
    said("it is not a photo in a format that can be read, or its header is damaged"),
    said("it is not a regular file"),
    said("its decoder crashed"),
    said("its features are others than those that were indexed"),
    said("its first frame is blank, and the next was read"),
    said("its first {frames} frames are blank, and the next was read"),
    said("its link leads back to itself"),
    said("its link leads out of the folders that photos may be taken from"),
    said("its name is not valid"),
    said("its name is too long"),
    said("its samples are packed in a way that is not known"),
    said("its sidecar cannot be written"),
    said("its sidecar has a document type, which XMP never has"),
    said("its sidecar is a link: put a file in its place"),
    said("its sidecar is nested too deeply"),
    said("its sidecar is not XML"),
    said("its sidecar is not XMP"),
    said("its sidecar is too large to be one"),
    said("its strips share the same bytes, which no photo's do"),
    said("its transparency was laid over black, as white hides it"),
    said("no process can be started to decode it"),
    said("permission to read it is denied"),
    said("the PDF is locked by a password"),
    said("the file cannot be read"),
    said("the file does not exist"),
    said("the file ends early, and fine details may be missing"),
    said("the file has 1 page, and no page {wanted}"),
    said("the file has {pages} pages, and no page {wanted}"),
    said("the file is damaged"),
    said("the file is empty"),
    said("the file is in more than {parts} parts, which is far more than a photo of its length has"),
    said("the file is truncated"),
    said("the film has no frame at {time}"),
    said("the film is damaged"),
    said("the film is damaged, or in a format that cannot be read"),
    said("the lowest {share}% are missing"),
    said("the page is damaged"),
    said("the photo has no pixels"),
    said("the photo has {count} samples of {bits} bits a pixel, which is more than is read"),
    said("the photo has {scans} scans of {across}x{down} pixels, which is more than the limit of {all} pixels in all"),
    said("the photo is {width}x{height} pixels, which is more than the limit of {most} pixels"),
    said("the text stored in the file unpacks to far more than a photo's does"),
    said("there is not enough memory to decode it"),
    said("line {line} is about the same photo"),
    said("no photo is called so"),
    said("the row has {cells} cells, and the first line {header}"),
    said("the row names no photo"),
    said("the value is cut off after {longest} characters"),
    said("{cell} is no date; kept as text under {column}"),
    said("{cell} is no place in degrees north and east; kept as text under {column}"),
    said("{cell} is not a number of stars, 1 to {most}; kept as text under {column}"),
    said("{cell} is not clear: write {day} if the day is first, {month} if the month is; kept as text under {column}"),
    said("{cell} is not yes or no; kept as text under {column}"),
    said("{count} photos are called so"),
    said("1 more page of the file left out"),
    said("{pages} more pages of the file left out"),
)


def reason_in(text: str, language: str) -> str:
    """Translate a reason or a remark as far as it is known; what stands behind it in brackets stays."""
    plain = text.removesuffix(".")
    plain = _ON_PAGES.get(plain, plain)
    translated = fill_in(plain, REASONS, language)
    if translated == plain and (parts := _IN_BRACKETS.fullmatch(plain)):
        return f"{translate(parts['reason'], language)} {parts['detail']}"
    return translated


def in_language(message: Message, language: str, naming: Naming = on_command_line) -> str:
    """Translate a message, and the reasons in it; without a translation it stays English."""

    def say(text: str) -> str:
        translated = translate(text, language)
        return reason_in(text, language) if translated == text and not text.endswith(".") else translated

    return message.sentence(naming, say)


def say_reasons(entries: list[dict[str, Any]], language: str, key: str = "reason") -> list[dict[str, Any]]:
    """Add to each entry with a reason what pages say of it, ``said``."""
    return [{**entry, "said": reason_in(entry[key], language)} for entry in entries]
