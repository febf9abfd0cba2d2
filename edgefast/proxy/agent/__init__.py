"""The agent: the parent process and its workers' lives.

Never touches a request. Knows tables, sockets and processes; not where tables come from (pipelines), nor what operators
ask (admin), and never imports the worker, which it starts by name.
"""
