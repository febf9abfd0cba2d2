"""Store URL: addresses of a Redis server: `host:port`, `redis://host[:port][/database]`, `rediss://...` with TLS.

In: text of the configuration or of a Secret. Out: a `StoreURL`, or an error text.
Must never: show the text when it may hold a password; user and password come from `passwordRef`.
"""

from __future__ import annotations

import re

import msgspec

_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"  # to 65535
_HOST = r"([A-Za-z0-9]([-A-Za-z0-9._]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
#: `host:port`, as a CEL rule has it too.
ADDRESS_PATTERN = f"{_HOST}:{_PORT}"
#: All forms of a store's address.
URL_PATTERN = f"({ADDRESS_PATTERN}|rediss?://{_HOST}(:{_PORT})?(/[0-9]{{0,5}})?)"
DEFAULT_PORT = 6379

_ADDRESS = re.compile(ADDRESS_PATTERN)
_URL = re.compile(URL_PATTERN)


class StoreURL(msgspec.Struct, frozen=True):
    """Where a store is."""

    address: str  # "host:port"; IPv6 in brackets
    tls: bool = False
    database: int = 0


def check_store_url(text: str) -> str:
    """Return what is wrong with the address of a store, "" when it is one; never shows the text."""
    if "@" in text:
        return "the address contains a user or a password (use passwordRef)"
    if not _URL.fullmatch(text):
        return "not an address (expected <host>:<port>, redis://<host>:<port>/<database> or rediss://...)"
    return ""


def parse_store_url(text: str) -> StoreURL:
    """Take an address apart; ValueError (without the text) when it is none."""
    wrong = check_store_url(text)
    if wrong:
        raise ValueError(wrong)
    scheme, found, rest = text.rpartition("://")
    address, _, database = rest.partition("/")
    if found and not re.search(r":[0-9]+\Z", address):
        address = f"{address}:{DEFAULT_PORT}"
    return StoreURL(address=address, tls=scheme == "rediss", database=int(database or 0))


def check_address(text: str) -> str:
    """Return what is wrong with a plain `host:port`, "" when it is one; never shows the text."""
    return "" if _ADDRESS.fullmatch(text) else "not an address (expected <host>:<port>)"
