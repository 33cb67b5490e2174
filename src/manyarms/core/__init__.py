"""Tools that know nothing of bandits: compilation, randomness, sampling, ranking, statistics."""
