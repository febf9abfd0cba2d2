"""Subcommands of `edgefast` that need a cluster; they join it through the entry-point group `edgefast.commands`.

In: a kubeconfig and flags. Out: text on standard output, problems on standard error.
Must never: be imported by `edgefast`.
"""
