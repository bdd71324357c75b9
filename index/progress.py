"""How far a long task is, as every package tells it."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""To be called with the name of a step, how much of it is done, and how much there is."""
Step = Callable[[int, int], None]
"""The same within one step: how much is done, and how much there is."""
