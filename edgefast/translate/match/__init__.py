"""Match: hostnames, paths and the other conditions of requests, with their precedence.

In: fields of routes and listeners. Out: ir.Match, sort keys, intersections of hostnames.
Must never: know the object that contains a match.
"""
