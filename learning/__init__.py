"""Learning of descriptors and similarities, with labels and without."""
