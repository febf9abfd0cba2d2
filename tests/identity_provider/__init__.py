"""OpenID providers, browsers and a relying party: what tests of logins run against.

In: programs that are built once into the cache folder. Out: providers on loopback with one interface (`provider.py`),
user agents that sign in at them, and sites behind a login: an application that signs users in by itself, and edgefast.
Must never import the product: it is started as a process.
"""
