"""Sections: which made Gateway has the TLS listener of a host name, and the names of both.

In: the names that have a TLS listener. Out: `Sections`. A Gateway has at most 64 listeners. The names are divided by their hash:
a name that comes or goes moves no listener of other names, except when the number of Gateways changes.
Source: Gateway API, maxItems of `spec.listeners`.
Must never: depend on the order of the names.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable

from edgefast.api.model.origin import INGRESS_CLASS
from edgefast.translate.ingress.servers import CATCH_ALL

#: The name of the GatewayClass, of its EdgeProxy, and what names of Gateways begin with.
NAME = INGRESS_CLASS
#: The listener without a host name.
DEFAULT = ""
#: Listeners of one Gateway.
MOST_LISTENERS = 64
#: Characters of a host name in the name of an object.
_LONGEST = 100


class Sections:
    """Which Gateway has the TLS listener of a name: few Gateways change when a name comes or goes."""

    def __init__(self, names: Iterable[str]) -> None:
        found = list(names)
        self.first = self.count = _first_count(len(found))
        # More Gateways, where chance gives one of them too many names.
        while self.count and max(Counter(map(self.bucket, found)).values()) > MOST_LISTENERS:
            self.count *= 2

    def bucket(self, name: str) -> int:
        """Return the number of the Gateway with a name; 0: of the first one."""
        if not self.count:
            return 0
        digest = hashlib.blake2s(name.encode(), digest_size=4).digest()
        return int.from_bytes(digest) % self.count + 1

    def gateway(self, name: str) -> str:
        """Return the Gateway with a name."""
        number = 0 if name == DEFAULT else self.bucket(name)
        return f"{NAME}-{number}" if number else NAME


def _first_count(names: int) -> int:
    """Return the Gateways for so many names besides the first one, which has room for a few."""
    if names <= MOST_LISTENERS - 2:
        return 0
    return int(2 ** math.ceil(math.log2(names / (MOST_LISTENERS / 2))))


def section_of(name: str) -> str:
    """Return the name of the TLS listener of a host name."""
    return "https" if name == DEFAULT else f"https.{label_of(name)}"


def label_of(host: str) -> str:
    """Return a host as a part of a name: short, and different for each host."""
    text = "catch-all" if host == CATCH_ALL else host.replace("*", "any", 1)
    if host == CATCH_ALL or host.startswith("*") or len(text) > _LONGEST:
        digest = hashlib.blake2s(host.encode(), digest_size=4).hexdigest()
        return f"{text[:_LONGEST].rstrip('.-')}-{digest}"
    return text
