"""The agent: the parent process, and the lifecycle of its workers.

The agent never handles a request. It manages tables, sockets and processes. It does not depend on
the source of tables (pipelines) or on the operator's servers (admin). It starts the worker by name
and never imports it.
"""
