"""Migration: objects that edgefast does not read: their problems, and the recorded policies of other projects.

In: apiVersion and kind. Out: messages, and `ForeignPolicy`. Must never: guess what a foreign object
means.
"""
