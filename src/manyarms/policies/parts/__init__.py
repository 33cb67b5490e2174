"""What several policies share: slots, fresh arms, indices, mixtures, queues."""
