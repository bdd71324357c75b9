"""Ask a collection with each of its photos, and count by pandas what is found of each folder.

usage: python table_of_answers.py COLLECTION
"""

import sys

import pandas as pd

import cairn


def table(collection: cairn.Collection, most: int = 100) -> pd.DataFrame:
    """A row for each photo that another one finds."""
    names = [photo.name for photo in collection.photos()[:most]]
    answers = (pd.DataFrame(answer).assign(query=answer.query) for answer in collection.search_many(names, turns=1))
    found = pd.concat(answers, ignore_index=True)
    return found[found["name"] != found["query"]]


if __name__ == "__main__":
    with cairn.open(sys.argv[1]) as opened:
        rows = table(opened)
        print(rows.groupby("query")[["inliers", "probability"]].agg(["count", "mean", "max"]))
