"""Objects that nobody here reads: what to say of them, and the policies of other projects that are only remembered.

In: apiVersion and kind. Out: words, and `ForeignPolicy`. Must never: guess what a foreign object means.
"""
