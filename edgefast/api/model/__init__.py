"""What the Structs of all kinds are made of: scalars with their limits, metadata, references, and the shape of a Struct.

In: nothing. Out: annotated types, the roots of all Structs, readers of single values (sizes, durations, timestamps, regular
expressions), what is known of the API and not served. Must never: know a kind by name, but for what is not served of it.
"""
