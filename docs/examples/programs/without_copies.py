"""Hide copies: of each photo and its near duplicates one stays, and all files stay where they are.

usage: python without_copies.py COLLECTION
"""

import sys

import cairn


def hide_copies(collection: cairn.Collection) -> list[str]:
    """Hide what is a copy of all of another photo; return the names of what was hidden."""
    copies = [name for group in collection.group() for name, kind in group.kinds.items() if kind in ("copy", "turned")]
    return collection.hide(copies) if copies else []


if __name__ == "__main__":
    with cairn.open(sys.argv[1]) as opened:
        print("\n".join(hide_copies(opened)))
