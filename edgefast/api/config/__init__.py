"""Config: EdgeGateway, the configuration file, which is no object of an API server.

In: a document. Out: its Struct, and the addresses of stores that it holds. Must never: connect to
them.
"""
