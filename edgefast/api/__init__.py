"""API: typed models of every kind that is read, the strict decoder, and the Snapshot of all objects.

In: YAML or JSON text, or objects of an API server. Out: frozen Structs and `Problem` values. Start
with `kinds.py` (the kinds), then `decode` (the decoder), then `snapshot.py`.
Must never: do I/O, read a clock, or resolve a reference from one object to another.
"""

__all__: list[str] = []
