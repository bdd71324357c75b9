"""Write the pairs of photos that hloc is to match, and for new photos those that they are to be localised by.

usage: python pairs_for_hloc.py COLLECTION OUT [PHOTO ...]
"""

import sys
from pathlib import Path

import cairn


def main(folder: str, out: Path, photos: list[str]) -> None:
    """Write OUT/pairs.txt, and OUT/pairs-query.txt where there are photos to localise."""
    out.mkdir(parents=True, exist_ok=True)
    with cairn.open(folder) as collection:
        print(collection.pairs(20, verified=True).save(out / "pairs.txt"))
        if photos:
            pairs = [pair for answer in collection.search_many(photos, top=10) for pair in answer.to_pairs()]
            (out / "pairs-query.txt").write_text("".join(f"{query} {name}\n" for query, name in pairs))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
