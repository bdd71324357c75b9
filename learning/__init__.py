"""Learning of descriptors and similarities from a collection; empty until the learners land."""
