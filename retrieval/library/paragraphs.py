"""Paragraphs shared by the docstrings of a collection's methods."""

SHARED = {
    "{progress}": """\
progress : bool or callable, optional
    True shows bars; a callable receives step, done and total.""",
    "{workers}": """\
workers : int
    Processes; 0: one for each core.""",
    "{cluster_workers}": """\
workers : int
    Processes, unless a cluster does the work; 0: one for each core. The result does not depend on it.""",
    "{photos}": """\
photos : str, int, path-like, Photo or Result, or iterable of them
    Photos of the collection.""",
    "{photo}": """\
photo : str, path-like, int, Photo or Result
    Its name, file or number, or an element of an answer or a list.""",
    "{queries}": """\
photo : str, path-like, int, bytes, ndarray, PIL.Image.Image, Photo or Result; or an iterable of them
    A name in the collection or a file; a number in the collection; the content of a file; an image in RGB, as
    for `cairn.as_image`; or a photo of the collection. Several are searched for together.""",
    "{query}": """\
query : str, int, path-like, bytes, ndarray, PIL.Image.Image, Photo or Result
    The query photo, as for `search`.""",
    "{box}": """\
box : sequence of four floats, optional
    x0, y0, x1, y1 in pixels of the upright photo: search for its content.""",
    "{where}": """\
where : Filter or mapping, optional
    Photos to search: a `cairn.Filter`, or its fields, such as ``{"folder": "rome"}``.""",
    "{match_all}": """\
match_all : bool
    With several photos: results must match all of them, not any.""",
    "{impressions}": """\
photos : iterable of str, path-like, int, Photo or Result
    Photos of the collection; the reference may be among them.
reference : str, path-like, int, bytes, ndarray, PIL.Image.Image, Photo or Result, optional
    Any photo, as `search` takes it, whose frame the others are brought into; otherwise the first of the photos.""",
    "{search}": """\
search : int or str
    Its id; or its name, if unique.""",
    "{album}": """\
name : str
    Of the album, ignoring case.""",
    "{features}": """\
features : path-like, optional
    Features of the photos, of a collection of features of another program.""",
    "{raises_locked}": """\
Raises
------
CollectionLocked
    Another process is changing the collection.""",
    "{raises_unchanged}": """\
Raises
------
PhotoNotFound
    There is no such photo; nothing is changed then.""",
    "{raises_missing}": """\
Raises
------
PhotoNotFound
    There is no such photo.""",
    "{raises_unusable}": """\
Raises
------
PhotoNotFound, PhotoUnusable
    There is no such photo, or it cannot be read.""",
    "{raises_no_album}": """\
Raises
------
CairnError
    There is no such album.""",
}
"""Paragraphs by the lines that they replace."""
