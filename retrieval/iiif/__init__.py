"""Pictures of libraries: IIIF manifests, and the one place from which Cairn asks other hosts for anything."""
