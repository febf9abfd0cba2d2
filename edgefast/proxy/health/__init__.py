"""How backends fare: the memory in which all workers count together."""
