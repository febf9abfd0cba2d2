"""Policies: the access and traffic policies of a request between its match and its limits.

In: units of policies from the table, requests that matched a rule with such units. Out: admitted,
answered, or a wait.
Must never: let a request pass before its admission is decided.
"""
