"""Passthrough: the TLS mode of listeners of protocol TLS: Terminate or Passthrough.

In: a listener. Out: its mode, and the mistakes of a passthrough listener.
Source: Gateway API TLSModeType, ListenerTLSConfig.
Must never: terminate a connection that was to be passed through.
"""

from __future__ import annotations

from edgefast.api.gateway.listener import Listener
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.report.report import Report

_MODES = ("Terminate", "Passthrough")


def is_terminated(listener: Listener) -> bool:
    """Tell whether handshakes of a listener of protocol TLS are its own."""
    return (
        listener.protocol == "TLS" and listener.tls is not None and listener.tls.mode == "Terminate"
    )


def check_passthrough(listener: Listener, path: str, report: Report) -> None:
    """Refuse a listener of protocol TLS that says neither; warn of certificates that nobody is shown."""
    tls = listener.tls
    if tls is None:
        report.refuse(f"{path}.tls", "Required", "with protocol TLS", condition="UnsupportedValue")
        return
    if tls.mode not in _MODES:  # a word that only a newer API server knows
        report.refuse(f"{path}.tls.mode", "UnsupportedValue", supported_text(tls.mode, _MODES))
    elif tls.certificate_refs:
        message = "have no effect with mode Passthrough"
        report.warn(f"{path}.tls.certificateRefs", "Forbidden", message)
    elif tls.options:
        report.warn(f"{path}.tls.options", "Forbidden", "are ignored with mode Passthrough")
