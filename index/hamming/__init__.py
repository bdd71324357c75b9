"""Binary signatures of features: their sources, and voting for photos by them."""
