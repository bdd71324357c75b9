"""Pictures from libraries: IIIF manifests, and the only code that sends requests to other hosts."""
