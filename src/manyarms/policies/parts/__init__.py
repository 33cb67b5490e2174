"""Parts that several policies share: MOSS on a random set, mixtures, the guard."""
