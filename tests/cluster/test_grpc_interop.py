"""The interop tests of gRPC: grpc-go's client and server, every case that passes without a proxy passes through it, in clear text and in TLS."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from cluster.grpc_site import INSIDE, NAME, GrpcSite, Identity
from cluster.tools.missing import built
from cluster.tools.versions import GRPC_HOME
from wire.harness.ports import free_port

#: All that pass without a proxy. Others need credentials of a cloud, or a server that says its name and its load (orca, the soaks).
CASES = (
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
)


@contextmanager
def serving(*options: str) -> Iterator[int]:
    """A server; the port it listens on."""
    port = free_port()
    command = [built(GRPC_HOME / "interop-server"), f"-port={port}", *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < end, command
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """Options of a client for each way, without a proxy and with it."""
    identity = Identity(tmp_path_factory.mktemp("grpc"))
    secret = ["-use_tls", "-use_test_ca", f"-ca_file={identity.trusted}"]
    shown = ["-use_tls", f"-tls_cert_file={identity.certificate}", f"-tls_key_file={identity.key}"]
    with ExitStack() as stack:
        plain, tls = stack.enter_context(serving()), stack.enter_context(serving(*shown))
        site = stack.enter_context(GrpcSite(identity, plain, tls))
        yield {
            "direct": [f"-server_port={plain}"],
            "direct tls": [f"-server_port={tls}", *secret, f"-server_host_override={INSIDE}"],
            "proxy": [f"-server_port={site.plain}"],
            "proxy tls": [f"-server_port={site.tls}", *secret, f"-server_host_override={NAME}"],
        }


@pytest.mark.parametrize("case", CASES)
def test_interop(ways: dict[str, list[str]], case: str) -> None:
    for way, options in ways.items():
        command = [built(GRPC_HOME / "interop-client"), "-server_host=127.0.0.1", *options]
        command.append(f"-test_case={case}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, f"{way}:\n{done.stdout}{done.stderr}"
