"""The benchmark of patches HPatches: its set, its lists of pairs, its three tasks."""
