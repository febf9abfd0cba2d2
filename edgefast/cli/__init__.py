"""The command line: one file per subcommand, each loaded only when it is called.

In: arguments, files, a running proxy's admin address. Out: text on standard output, problems on standard error, exit
statuses 0 (fine), 1 (problems found), 2 (wrong usage). It must hold no rule of its own: it calls the other rooms.
"""
