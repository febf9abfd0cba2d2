"""The worker's command: `python -P -m edgefast.proxy.worker --fd N`. Only the agent runs it."""

from __future__ import annotations

from edgefast.proxy.worker.worker import main

if __name__ == "__main__":
    main()
