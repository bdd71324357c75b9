"""The one exception for what a user can cause, and how its message shows a text that is not ours."""


class CairnError(Exception):
    """A request that cannot be met, or a file that cannot be used.

    Its message is one plain sentence: what is wrong, and what to do about it. The command line prints that sentence
    and exits with 2; it never shows a traceback for it.
    """


def shown(text: str, longest: int = 80) -> str:
    """A text of a file as a message may show it: in quotes, without control characters, and no longer than that."""
    return repr(text if len(text) <= longest else f"{text[:longest]}…")
