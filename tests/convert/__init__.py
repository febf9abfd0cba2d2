"""Convert: the objects that Ingresses become serve the same, are valid and carry the names of their Ingresses."""
