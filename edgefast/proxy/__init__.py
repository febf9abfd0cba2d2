"""The running proxy: one agent process, its workers, and the small servers that show their state.

In: shards (compiled tables) from a provider.
Out: served ports, acknowledgements, metrics and dumps.
The agent never handles a request; a worker never reads a user's file. The package does not depend
on the source of the objects behind the shards.
"""
