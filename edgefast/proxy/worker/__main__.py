"""The worker's command: `python -P -m edgefast.proxy.worker --fd N`. The agent runs it, nobody else."""

from __future__ import annotations

from edgefast.proxy.worker.worker import main

if __name__ == "__main__":
    main()
