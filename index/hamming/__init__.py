"""Binary signatures of features: where they come from, and photos voted for by them."""
