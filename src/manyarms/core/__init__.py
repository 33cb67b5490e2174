"""Tools that are independent of bandits: compilation, randomness, sampling, ranking, statistics."""
