"""ClosedGate: admits nobody, and says where to go instead (port 18001 in Controller Namespace mode, spec section 5).

In: a call of any kind. Out: Refused. The permission to have tokens reviewed is granted in Gateway Namespace mode alone,
so in the other one no token can be judged. Must never ask anybody anything: whoever knocks would make us knock.
"""

from __future__ import annotations

from controller.push.gate import Admission, Connection
from controller.push.refusal import Refused

__all__ = ["ClosedGate"]


class ClosedGate:
    """Refuses every call and names the port to use instead."""

    async def admit(self, connection: Connection) -> Admission:
        """See `Gate`."""
        raise Refused(
            "closed",
            "PERMISSION_DENIED",
            "tokens are not accepted in Controller Namespace mode; use the fleet's certificate "
            "at port 18000",
        )
