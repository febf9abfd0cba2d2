"""Shares of clients in a bounded resource: what each client holds, whose turn is next, and which client loses some of it first.

In: members with their clients. Out: the client with most, the next one in turn.
Must never: take more than constant time for a member that comes or goes.
"""
