"""Model: the parts of all Structs: scalars with their limits, metadata, references, and the shape of a Struct.

In: nothing. Out: annotated types, the roots of all Structs, readers of single values, and API
fields that are not served. Single values are sizes, durations, timestamps and regular expressions.
Must never: know a kind by name, except for its fields that are not served.
"""
