"""What `--ignore text` changes: searches with pages of type, and features of photos without any.

Run as `python -m tests.benchmarks.bench_masked_text`; it never gates. For each of four typefaces, 60 pages with 20
ornaments are printed and photographed (`tests/support/printed_pages.py`), indexed with and without their text, and each
page is searched with: *wrong* are pages that were found without an ornament in common, of all pairs. With `--photos
FOLDER`, which may be repeated, the share of features that is left out of photos, and the time to look for text, too.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

SETS = ((0, 22, 1), (1, 18, 2), (2, 26, 1), (3, 20, 1))
"""Typeface, size and columns."""


def main() -> None:
    """Measure and print."""
    from tests.support.masked_pages import print_set, search_set
    from tests.support.printed_pages import typefaces

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, action="append", default=[], help="folder of photos without type")
    parser.add_argument("--every", type=int, default=1, help="look at every so many of these photos")
    parser.add_argument("--workers", type=int, default=2, help="processes that index")
    parser.add_argument("--sets", type=int, default=len(SETS), help="how many of the sets of pages")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for typeface, size, columns in SETS[: arguments.sets]:
            folder = Path(scratch) / f"{typeface}"
            dealt = print_set(folder, typeface, size, columns)
            print(f"{typefaces()[typeface].stem}, {size} pixels, columns: {columns}")
            for ignore in (None, "text"):
                one = search_set(folder, dealt, ignore, arguments.workers)
                print(
                    f"  ignore {ignore or 'nothing':8} {one.features:8} features, "
                    f"wrong {one.wrong:5}, found {one.found} of {one.wanted}",
                    flush=True,
                )
    for folder in arguments.photos:
        _print_share(folder, arguments.every)


def _print_share(folder: Path, every: int) -> None:
    from retrieval.photos.decoding import read_photo
    from retrieval.photos.listing import list_photos
    from retrieval.regions.detection import detect_regions, mostly_in
    from retrieval.regions.text_lines import text_mask

    shares, seconds = [], []
    for _, path in list_photos([folder])[::every]:
        grey = read_photo(path).grey
        start = time.perf_counter()
        mask = text_mask(grey)
        seconds.append(time.perf_counter() - start)
        share = 0.0
        if mask.any():
            regions, left = detect_regions(grey), detect_regions(grey, outside=mask)
            kept = len(left) - np.count_nonzero(mostly_in(left.ellipses, mask, np.sqrt(3)))
            share = 1 - kept / max(1, len(regions))
        shares.append(share)
    print(
        f"{folder}: {len(shares)} photos, text seen in {np.count_nonzero(shares)}, features left out "
        f"{100 * np.mean(shares):.2f}%, {1000 * np.median(seconds):.0f} ms a photo"
    )


if __name__ == "__main__":
    main()
