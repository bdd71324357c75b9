"""The one exception for what a user can cause."""


class CairnError(Exception):
    """A request that cannot be met, or a file that cannot be used.

    Its message is one plain sentence: what is wrong, and what to do about it. The command line prints that sentence
    and exits with 2; it never shows a traceback for it.
    """
