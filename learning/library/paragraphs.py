"""Paragraphs shared by the docstrings of learning functions."""

SAID = {
    "{patches}": """\
source : path, list of paths, or tuple of arrays
    Labelled patches, as `learn_descriptor` takes them.
out : path, optional
    File (.npz) to write.""",
    "{progress}": """\
progress : None, bool or callable
    Progress: none, bars, or a function of (step, done, of).""",
    "{learnt}": """\
Returns
-------
NewDescriptor

Raises
------
CairnError
    A source is missing, damaged or too small, or options do not go together.""",
}
"""Paragraphs by the lines that they replace."""
