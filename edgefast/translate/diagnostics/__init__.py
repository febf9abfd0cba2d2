"""Findings: what is told of objects beside their own translation: unused, unreached, lost, perhaps misspelt.

In: the world and the outcomes. Out: Problems. Must never: change what is served.
"""
