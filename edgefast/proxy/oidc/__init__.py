"""OIDC in the agent: tokens of identity providers for all workers."""
