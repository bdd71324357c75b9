"""Ground truth in the layout of Oxford5K and Paris6K, as measuring reads it; learning reads it too."""

from learning.labels.ground_truth import Query, missing_photos, read_ground_truth

__all__ = ["Query", "missing_photos", "read_ground_truth"]
