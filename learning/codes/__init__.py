"""Binary and product codes of a learnt descriptor, and the moments they need."""
