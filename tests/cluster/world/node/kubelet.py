"""The kubelet's own endpoint, as far as the API server asks for it: logs of containers.

In: GET /containerLogs/{namespace}/{pod}/{container} with the options of `kubectl logs`, client certificate required.
Out: text, followed if asked for.
Must never: serve anybody without a certificate of the cluster's CA.
"""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from cluster.world import addresses as at
from cluster.world.node.log_file import follow, read_lines, stamp_of, unstamped

if TYPE_CHECKING:
    from cluster.world.node.agent import Agent
    from cluster.world.node.container import Container


async def serve(agent: Agent) -> web.AppRunner:
    """Begin to listen on the node's address; the caller cleans the runner up."""
    app = web.Application()

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def logs(request: web.Request) -> web.StreamResponse:
        return await _logs(agent, request)

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", logs)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pki = Path(agent.settings.pki)
    tls.load_cert_chain(pki / "kubelet.crt", pki / "kubelet.key")
    tls.load_verify_locations(pki / "ca.crt")
    tls.verify_mode = ssl.CERT_REQUIRED
    await web.TCPSite(runner, at.NODE_ADDRESS, at.KUBELET_PORT, ssl_context=tls).start()
    return runner


async def _logs(agent: Agent, request: web.Request) -> web.StreamResponse:
    where = request.match_info
    container = _find(agent, where["namespace"], where["pod"], where["container"])
    if container is None:
        return web.Response(status=404, text="no such pod or container\n")
    options = request.query
    number = container.restarts - (options.get("previous") == "true")
    path = container.pod.folder / container.name / f"{number}.log"
    show = bytes if options.get("timestamps") == "true" else unstamped
    size = path.stat().st_size if path.exists() else 0
    lines = list(read_lines(path, _since(options.get("sinceTime"), options.get("sinceSeconds"))))
    if (tail := options.get("tailLines")) is not None:
        lines = lines[-int(tail) :] if int(tail) else []
    text = b"".join(map(show, lines))
    if limit := options.get("limitBytes"):
        text = text[: int(limit)]
    if options.get("follow") != "true" or not path.exists():
        return web.Response(body=text, content_type="text/plain")
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    await response.write(text)
    run = container.run
    async for line in follow(path, size, lambda: container.run is run and run is not None):
        await response.write(show(line))
    return response


def _find(agent: Agent, namespace: str, pod: str, name: str) -> Container | None:
    for one in agent.pods.values():
        if (one.namespace, one.name) == (namespace, pod):
            for container in [*one.containers, *one.inits]:
                if container.name == name:
                    return container
    return None


def _since(time: str | None, seconds: str | None) -> str:
    if time:
        when = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
        return stamp_of(when.astimezone(datetime.UTC))
    if seconds:
        ago = datetime.timedelta(seconds=int(seconds))
        return stamp_of(datetime.datetime.now(datetime.UTC) - ago)
    return ""
