"""OpenID providers, browsers and a relying party: what tests of logins run against.

In: programs that `programs.py` builds once into the cache folder. Out: providers on loopback with one interface
(`provider.py`), user agents that sign in at them, and an application that signs users in without edgefast.
Must never import the product: these modules judge it.
"""
