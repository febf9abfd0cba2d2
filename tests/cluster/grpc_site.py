"""A proxy between clients and servers of gRPC that others wrote: one way in clear text, one in TLS on both sides."""

from __future__ import annotations

from pathlib import Path

from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

NAME, INSIDE = "grpc.test", "inside.test"


class Identity:
    """An authority and a server's pair of it, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.outside = self.authority.issue([NAME])
        inside = self.authority.issue([INSIDE])
        self.trusted, self.certificate, self.key = (
            folder / name for name in ("ca.pem", "cert.pem", "key.pem")
        )
        self.trusted.write_bytes(self.authority.pem)
        self.certificate.write_bytes(inside.certificate)
        self.key.write_bytes(inside.key)


class GrpcSite(Gateway):
    """A proxy between gRPC clients and servers of another implementation."""

    def __init__(
        self, identity: Identity, plain: int, tls: int, requests: int = 0, workers: int = 1
    ) -> None:
        self.plain, self.tls = free_port(), free_port()
        http2 = {"maxRequestsPerConnection": requests} if requests else {"enabled": True}
        pair = identity.outside
        super().__init__(
            [
                make.edge_proxy("edge", http2=http2),
                make.gateway("plain", [make.listener(self.plain)], "edge"),
                make.gateway("tls", [make.listener(self.tls, "tls", "", ["pair"])], "edge"),
                make.tls_secret("pair", pair.certificate, pair.key),
                make.config_map("ca", {"ca.crt": identity.authority.pem.decode()}),
                make.tls_policy("tls", INSIDE),
                make.grpc_route("plain", [make.rule("plain")], parent="plain"),
                make.grpc_route("tls", [make.rule("tls")], parent="tls"),
                *make.service("plain", [("127.0.0.1", plain)]),
                *make.service("tls", [("127.0.0.1", tls)]),
            ],
            workers=workers,
        )
