"""JWKS, the key sets of token issuers: the agent fetches them, caches them on disk, and sends changes to the workers."""
