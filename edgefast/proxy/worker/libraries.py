"""Libraries that few policies need: loaded beside the event loop before a table is applied that needs them.

In: the resources of a commit, as bytes.
Out: loaded modules, so that the swap imports nothing; an import would stop all requests for 25 ms.
A worker without such a policy saves their memory and load time.
Must never: fail a commit. The component that needs a module retries a failed load and reports it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from importlib import import_module

import msgspec

__all__ = ["load_libraries"]

log = logging.getLogger(__name__)

#: A field that is in a policy (ir.PolicyUnit) which asks for them, and whatever needs them. Who says the word elsewhere has them loaded in vain.
_NEEDED = {
    msgspec.msgpack.encode("jwt"): (
        "edgefast.core.policy.token_requirements",
        "edgefast.core.policy.token_verification",
    ),
    msgspec.msgpack.encode("oidc"): (
        "edgefast.core.policy.login_flow",
        "edgefast.core.policy.token_requirements",
        "edgefast.core.policy.token_verification",
    ),
}


async def load_libraries(
    policies: Iterable[bytes], load: Callable[[str], object] = import_module
) -> None:
    """Load what these policies need and nobody has loaded, on a thread of its own."""
    missing = {
        field: names for field, names in _NEEDED.items() if not sys.modules.keys() >= set(names)
    }
    if not missing:
        return
    wanted = {
        name
        for data in policies
        for field, names in missing.items()
        if field in data
        for name in names
    }
    if not wanted:
        return
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            for name in sorted(wanted):
                load(name)
        except Exception as error:
            log.error("policies: a library cannot be loaded: %s", error)
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:  # the loop is closed
            return

    threading.Thread(target=run, name="libraries", daemon=True).start()
    await done.wait()
