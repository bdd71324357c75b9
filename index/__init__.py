"""Arrays only: nearest-neighbour search, vocabulary, postings segments and tf-idf scoring."""
