"""The worker: one process with one event loop and one engine, started as `python -P -m edgefast.proxy.worker --fd N`.

Its only way to the agent is the control channel; it never imports the agent.
"""
