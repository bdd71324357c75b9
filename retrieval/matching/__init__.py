"""Whether two photos show the same, given the features of both; never a collection."""
