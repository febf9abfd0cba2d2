"""Shell completion: scripts for bash, zsh and fish, made of the tree of commands.

In: the root command.
Out: the text of a script. A script has all names in it, so that the Tab key starts no process.
Must never: run a command, or depend on a package of the shell such as bash-completion.
"""
