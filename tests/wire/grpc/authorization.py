"""An authorisation service of gRPC by grpcio, as people write them: `python -m wire.grpc.authorization [PORT]` prints its port.

In: questions of Envoy's protocol. Out: who bears "good-NAME" passes as NAME, all others are denied; "hang" is never answered.
Must never: let anybody else pass.
"""

from __future__ import annotations

import sys
import threading
from concurrent import futures
from typing import Any, Self

import grpc

from core.policy.checkmessages import CheckRequest, CheckResponse, headers_of
from wire.harness.certificates import Pair

_METHOD = "/envoy.service.auth.v3.Authorization/Check"


class AuthorizationServer(grpc.GenericRpcHandler):
    """Use as a context manager."""

    def __init__(self, pair: Pair | None = None, port: int = 0) -> None:
        self.asked: list[Any] = []
        self._server = grpc.server(
            futures.ThreadPoolExecutor(8), [self], options=[("grpc.so_reuseport", 0)]
        )
        where = f"127.0.0.1:{port}"
        if pair is None:
            self.port = self._server.add_insecure_port(where)
        else:
            shown = grpc.ssl_server_credentials([(pair.key, pair.certificate)])
            self.port = self._server.add_secure_port(where, shown)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait(20)

    def wait(self) -> None:
        """Until it is killed."""
        self._server.wait_for_termination()

    def service(self, handler_call_details: Any) -> Any:
        """Find the method, as grpcio wants it (grpc.GenericRpcHandler)."""
        if handler_call_details.method != _METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(
            self._check, CheckRequest.FromString, lambda one: one.SerializeToString()
        )

    def _check(self, asked: Any, context: grpc.ServicerContext) -> Any:
        self.asked.append(asked)
        token = headers_of(asked).get("authorization", "").removeprefix("Bearer ")
        answer = CheckResponse()
        if token == "hang":
            gone = threading.Event()
            context.add_callback(gone.set)
            gone.wait(20)
        if token == "fail":
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        if token.startswith("good-"):
            answer.status.code = 0
            one = answer.ok_response.headers.add()
            one.header.key, one.header.value = "x-user", token.removeprefix("good-")
            answer.ok_response.headers_to_remove.append("authorization")
            one = answer.ok_response.response_headers_to_add.add()
            one.header.key, one.header.value = "x-judged", "yes"
        else:
            answer.status.code = 16
            answer.denied_response.status.code = 401
            one = answer.denied_response.headers.add()
            one.header.key, one.header.value = "www-authenticate", "Bearer"
            answer.denied_response.body = "who are you?"
        return answer


if __name__ == "__main__":
    with AuthorizationServer(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        server.wait()
