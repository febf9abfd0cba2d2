"""Diagnostics: problems beyond one object's own translation: unused, unreachable, missing, perhaps misspelt.

In: the world and the outcomes. Out: Problems. Must never: change what is served.
"""
