"""Who may enter: what policies say of a request between its match and its limits.

In: units of policies from the table, requests that matched a rule that names them. Out: admitted, answered, or a wait.
Must never: let a request pass while it is not known whether it may.
"""
