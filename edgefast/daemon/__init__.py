"""What every long-running process of edgefast has, proxy and controller alike: a log, addresses, small HTTP servers.

It must never know what the process is for.
"""
