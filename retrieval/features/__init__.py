"""A photo as features: extraction, how a segment encodes their geometry, and the staging folder between the two."""
