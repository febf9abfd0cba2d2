"""The command line: one file per subcommand, each loaded only when it is called.

In: arguments, files, a running proxy's admin address.
Out: text on standard output, problems on standard error, exit statuses 0 (fine), 1 (problems
found), 2 (wrong usage).
Must never: contain its own validation or translation rules; it calls the other packages.
"""
