"""Signed tokens (RFC 7515, 7519): parsing, signature verification, claims and the result for a request.

In: a token's bytes, keys (edgefast/auth/jwt/key_set.py), the requirements of policies
(edgefast/ir/credentials.py), the time.
Out: an Outcome.
Must never: trust a claim without a verified signature, except to select the key and check the
expiry; or show a token.
"""
