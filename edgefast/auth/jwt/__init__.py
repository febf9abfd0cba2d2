"""Signed tokens (RFC 7515, 7519): what is one, whose signature it has, what it says, and what comes of it.

In: a token's bytes, keys (edgefast/auth/jwt/keyset.py), what policies ask for (edgefast/ir/credentials.py), the time. Out: an Outcome.
Must never: believe a word of a token whose signature nobody verified, but for which key is asked and when it ends; or show a token.
"""
