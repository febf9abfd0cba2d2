"""OIDC: logins of browsers at an identity provider: cookies, requests to the provider, decisions.

In: facts of a request, answers of the provider, the time, random bytes. Out: decisions and texts.
Source: OpenID Connect Core 1.0, Discovery 1.0, RP-Initiated Logout 1.0; RFC 6749, RFC 7636 (PKCE),
RFC 9207 (iss in the callback), RFC 6265bis (cookies).
Must never: open a connection, read a clock, or show a token.
"""
