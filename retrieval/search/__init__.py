"""What asks a collection: query, engines, expansion, answers, homography, picture."""
