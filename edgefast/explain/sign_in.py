"""Sign-in: the redirect that a client gets in place of 401 (SecurityPolicy extAuth.http.signIn).

In: the services of a rule, the head, the client. Out: the answer with its Location. The twin of core/policy/signin.pyx.
Must never: redirect a gRPC call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from edgefast import ir
from edgefast.explain.explanation import Answer
from edgefast.explain.head import Head

__all__ = ["redirect_sign_in"]

_VARIABLE = re.compile(r"\{([A-Za-z]+)\}")
#: What stays, besides letters and digits, as nginx' module set-misc escapes.
_SAFE = "-_.~!*'()@$,|`"


def redirect_sign_in(
    answer: Answer, services: Iterable[ir.ExtAuth], head: Head, client: str, *, https: bool
) -> Answer:
    """Return the answer of a check; 401 becomes a redirect if one of the services has a sign-in page."""
    template = next((one.sign_in for one in services if one.sign_in and not one.grpc), "")
    if answer.status != 401 or not template or head.grpc:
        return answer
    target = original_target(head)
    values = {
        "authority": _text(head.authority),
        "clientAddress": client,
        "escapedTarget": quote(target, safe=_SAFE),
        "host": head.host,
        "scheme": "https" if https else "http",
        "target": _text(target),
    }
    location = _VARIABLE.sub(lambda found: values.get(found[1], found[0]), template)
    return msgspec.structs.replace(answer, kind="redirect", status=302, location=location)


def original_target(head: Head) -> bytes:
    """Return the path as sent, and the query as it is left by earlier checks."""
    path = head.target.partition(b"?")[0] or b"/"
    return path if head.query is None else path + b"?" + head.query


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
