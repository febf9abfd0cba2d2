"""The running proxy: one agent process, its workers, and the small servers that show what they do.

In: shards (compiled tables) from a provider. Out: served ports, acknowledgements, metrics and dumps.
The agent never touches a request; a worker never reads a file of the user's. Nothing here knows
where the objects behind the shards came from.
"""
