"""App: one controller process with all components. `App.run` lists the components in their order.

In: options, an API server.
Out: tables to proxies, fleets, statuses, until a signal. The tasks of all components run in one
TaskGroup. A component that fails ends the process in order, and kubelet starts another one; user
input must never make one fail. The streams of proxies are served only after every fleet was
published once.
Must never: contain logic of its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

import msgspec

from controller.certs.certgen import CertgenError
from controller.certs.policy import CertificatePolicy
from controller.certs.rotate import Rotation
from controller.certs.ticket_secret import TicketSecret
from controller.config import ConfigFile, level_of, structure_of
from controller.dispatch import Dispatch
from controller.event_reports import EventReports
from controller.events import Events
from controller.fleet_provisioner import FleetProvisioner
from controller.fleets.apply import Applier
from controller.fleets.inventory import Inventory
from controller.fleets.observe import Observer
from controller.fleets.ownership import ObjectFacts
from controller.fleets.placement import Placement
from controller.fleets.released import ReleasedObjects
from controller.kube.cache import Cache
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.kube.lease import Lease, LeaseTimes, lease_name
from controller.kube.scope import Scope
from controller.kube.status_author import author_of
from controller.kube.throttle import Backoff
from controller.metrics import Metrics
from controller.options import Options
from controller.pipeline import Pipeline
from controller.source import ClusterSource
from controller.status.api import KubeStatuses, SystemClock
from controller.status.shape import SHAPES
from controller.status.tracker import StatusTracker
from controller.status.writer import Writer
from controller.xds_server.fleets import Fleets
from controller.xds_server.relay import Relay
from controller.xds_server.server import PushServer
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.daemon.logs import set_level
from edgefast.diagnostics.problem import ObjectRef
from edgefast.httpd.address import Address
from edgefast.translate.settings import Settings, settings_from

__all__ = ["App"]

log = logging.getLogger(__name__)

_GRACE = 1.0  # seconds for open streams at the end


class App:
    """Starts the parts of one controller process and connects them."""

    def __init__(self, options: Options, kube: Kube, file: ConfigFile) -> None:
        """`file` is loaded. Raises KeysError."""
        self.options = options
        self.file = file
        config = file.config
        self._started_with = structure_of(config)
        self._logging = config.logging
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._again = False
        self.serving = False  # the config stream, to proxies
        self._led = asyncio.Event()

        namespace, name = options.namespace, options.name
        tokens = config.provider.cluster.deploy.type == "GatewayNamespace"
        self.metrics = Metrics()
        self.lease = Lease(
            kube,
            namespace,
            lease_name(name),
            options.identity,
            LeaseTimes.of(config.leader_election),
            self._on_lease,
        )
        self.events = Events(
            kube.create,
            lambda: self.lease.leading,
            options.identity,
            lambda outcome: self.metrics.events.labels(outcome).inc(),
        )

        # Objects come in ...
        scope = Scope.of(config, namespace)
        place = self._place("")
        author = author_of(place.identity)
        self.cache = Cache(kube, scope, self._on_objects, on_status=self._on_status, author=author)
        self.cache.release(config.provider.cluster.release_kinds)
        self.tidings = EventReports(self.events, self.cache, (namespace, options.config_map))
        self.denials = self.tidings.denials = kube.denials
        certificates = CertificatePolicy(
            lambda: self.file.config.provider.cluster.deploy.certificates, namespace
        )
        self.rotation = Rotation(
            kube,
            namespace,
            policy=certificates,
            name=name,
            domain=options.cluster_domain,
            leading=lambda: self.lease.leading,
        )
        self.tickets = TicketSecret(kube, namespace, name=name, leading=lambda: self.lease.leading)
        self.tickets.on_trouble = self.tidings.on_tickets
        everywhere = None if not scope.namespaces else scope.namespaces
        self.inventory = Inventory(kube, place, everywhere if tokens else (namespace,))
        self.inventory.is_absent = self.cache.is_absent
        self.source = ClusterSource(self.cache, self.inventory, self._settings)
        self._base: tuple[EdgeGateway, Settings] | None = None

        # ... and tables, fleets and statuses go out.
        self.fleets = Fleets(options.identity)
        self.fleets.tickets = self.tickets.given
        self.tickets.on_change = self.fleets.renew_tickets
        self.server = PushServer(
            self.fleets,
            options.certs,
            namespace=namespace,
            name=name,
            domain=options.cluster_domain,
            review=kube.token_review,
            policy=certificates,
        )
        self.server.on_acked = lambda fleet, seconds: self.metrics.ack.observe(seconds)
        self.relay = Relay(
            self.fleets,
            self.server.keys,
            name=name,
            holder=lambda: self.lease.holder,
            leading=lambda: self.lease.leading,
            **({"port": options.relay.port} if options.relay and options.relay.port else {}),
        )
        self.applier = Applier(
            kube,
            self.inventory,
            place.identity,
            lambda: self.lease.leading and self.provision.adopted,
            self._on_fleet_problem,
        )
        self.observer = Observer(self.inventory, self.applier.failure, self._on_fleets_seen)
        self.provision = FleetProvisioner(
            self.inventory,
            self.applier,
            self.observer,
            self.rotation,
            self._place,
            certificates=not tokens,
        )
        self.board = StatusTracker(config.gateway.controller_name)
        statuses = KubeStatuses(kube, self.cache, author)
        self.provision.sight = lambda: ObjectFacts(
            unread=self.cache.refused.keys(),
            unserved=self.cache.missing,
            elsewhere=statuses.is_elsewhere,
            told=lambda gateway: statuses.is_ours(("Gateway", *gateway), held=True),
        )
        self.writer = Writer(
            self.board,
            statuses,
            SystemClock(),
            lambda: self.lease.leading,
            self.tidings.on_written,
            lambda reason: self.metrics.status_failures.labels(reason).inc(),
        )
        self.handover = Dispatch(
            self.fleets,
            self.provision,
            self.board,
            self.writer,
            lambda type_: self.metrics.nacks.labels(type_).inc(),
            lambda: self.lease.leading,
            ReleasedObjects(
                self.board,
                statuses,
                self.tidings.on_claim,
                lambda fleet: bool(self.fleets.version(fleet)),
            ),
        )
        self.pipeline = Pipeline(self.source, self._settings, self.handover, self.metrics.observe)
        self.handover.on_served = self.pipeline.mark
        self.handover.on_trouble = self._on_trouble

    # --- life -----------------------------------------------------------------------------------

    async def run(self, servers: Coroutine[Any, Any, None]) -> bool:
        """Control until `stop`, and run the `servers` of operator_servers.py for as long as anything else runs.

        True when the configuration asks for a new start in this process.
        """
        self.file.on_change = self._on_config
        self.rotation.on_change = self.provision.render_again
        async with asyncio.TaskGroup() as tasks:
            self._start(tasks, "servers", servers)
            self._start(tasks, "lease", self.lease.run())
            self._start(tasks, "config", self.file.run())
            self._start(
                tasks,
                "config-events",
                self.tidings.follow(self.file, lambda: self.pipeline.outcome),
            )
            self._start(tasks, "events", self.events.run())
            self._start(tasks, "cache", self.cache.run())
            self._start(tasks, "holdings", self.inventory.run())
            self._start(tasks, "main", self._main(tasks))
            await self._stop.wait()
            await self._end()
        return self._again

    def stop(self) -> None:
        """End in order, and for good even if a new start was on its way; returns at once."""
        self._again = False
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """Tell whether the end has begun."""
        return self._stop.is_set()

    async def _main(self, tasks: asyncio.TaskGroup) -> None:
        """Start what needs what others have read first."""
        await self._load_authority()
        self._start(tasks, "certs", self.rotation.run())
        self._start(tasks, "tickets", self.tickets.run())
        self._start(tasks, "pipeline", self.pipeline.run())
        await self.handover.first.wait()
        self.writer.mark_all()
        self._start(tasks, "writer", self.writer.run())
        self._start(tasks, "applier", self.applier.run())
        self._start(tasks, "leading", self._follow_lease())
        await self._serve()
        self._start(tasks, "push", self.server.run())
        self._start(tasks, "relay", self.relay.run())

    async def _serve(self) -> None:
        options, server = self.options, self.server
        bound: dict[str, Address] = {}
        tokens = self._started_with[1] == "GatewayNamespace"
        if options.xds is not None:
            serve = server.serve_tokens if tokens else server.serve_certificates
            bound["xds"] = await serve(options.xds)
        if options.xds_token is not None:
            serve = server.serve_tokens if tokens else server.serve_nobody
            bound["xds-token"] = await serve(options.xds_token)
        if options.relay is not None:
            bound["relay"] = await self.server.serve_replicas(options.relay)
        self.serving = True
        log.info("serving %s", " ".join(f"{name}={where}" for name, where in bound.items()))

    async def _load_authority(self) -> None:
        """Read the authority, for as long as it takes: certgen may be at work still."""
        backoff = Backoff(0.5, 15.0)
        message = ""
        while True:
            try:
                await self.rotation.load()
                return
            except (CertgenError, ApiError) as error:
                if str(error) != message:
                    message = str(error)
                    log.warning("%s; retrying", message)
            await asyncio.sleep(backoff.next())

    def _start(self, tasks: asyncio.TaskGroup, name: str, room: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(tasks.create_task(room, name=name))

    async def _end(self) -> None:
        """Stop writing, give the Lease back, let proxies go to another replica; then stop the rest."""
        log.info("stopping")
        self.serving = False
        for task in self._tasks:
            if task.get_name() != "servers":
                task.cancel()
        await self.server.stop(_GRACE)
        for task in self._tasks:
            task.cancel()

    # --- what happens ---------------------------------------------------------------------------

    def _on_objects(self) -> None:
        self.source.mark()
        self.pipeline.mark()

    def _on_status(self, ref: ObjectRef) -> None:
        """Somebody wrote a status, we perhaps, or a controller of our name that was here before."""
        shape = SHAPES.get(ref.kind)
        if shape is None:
            return
        key = (ref.kind, ref.namespace, ref.name)
        if shape.entries:
            present = self.cache.present(ref)
            names = (self.board.controller, *self.board.farewells.former)
            if present and any(name.encode() in present.status for name in names):
                self.board.disown(key)
        elif ref.kind == "Gateway" and self.handover.parting.concerns(key[1:]):
            self.pipeline.mark()
        if self.handover.first.is_set():
            self.writer.see(key)

    def _on_fleets_seen(self) -> None:
        self.handover.look_at_all()
        self.pipeline.mark()

    def _on_lease(self) -> None:
        self._led.set()
        if not self.lease.leading:
            self.provision.adopted = False
        elif self.handover.first.is_set():
            self.writer.mark_all()
            self.handover.report_again()
        if self.lease.leading:
            self.rotation.look()
            self.tickets.look()
        self.relay.look()

    async def _follow_lease(self) -> None:
        """Take fleets over whenever this replica begins to lead."""
        while True:
            self._led.clear()
            if self.lease.leading and not self.provision.adopted:
                await self.provision.adopt()
                if self._led.is_set():
                    # Another replica may have led meanwhile, and made other certificates.
                    self.provision.adopted = False
                    continue
            await self._led.wait()

    def _on_fleet_problem(self, fleet: str, text: str) -> None:
        self.observer.look(fleet)
        if text:
            self._on_trouble(fleet, text)

    def _on_trouble(self, fleet: str, text: str) -> None:
        self.tidings.on_trouble(self.pipeline.outcome, fleet, text)

    def _on_config(self, config: EdgeGateway) -> None:
        if self.stopping:
            return  # whoever comes next reads the file anew
        if config.logging != self._logging:
            self._logging = config.logging
            set_level(level_of(config))
        if structure_of(config) != self._started_with:
            log.warning("configuration change requires a restart; restarting all components")
            self._again = True
            self._stop.set()
            return
        self.cache.rescope(Scope.of(config, self.options.namespace))
        self.cache.release(config.provider.cluster.release_kinds)
        self.rotation.look()  # certificates may be revoked, or need a shorter lifetime
        self.source.mark()
        self.pipeline.mark()

    # --- callbacks of the components ------------------------------------------------------------

    def _settings(self) -> Settings:
        config = self.file.config
        if self._base is None or self._base[0] is not config:
            base = settings_from(config, standalone=False, namespace=self.options.namespace)
            self._base = (config, base)
        return msgspec.structs.replace(
            self._base[1],
            bundle_version=self.cache.bundle_version,
            missing=tuple(sorted(self.cache.missing)),
            retained=tuple(sorted(self.cache.retained)),
            fleets=self.observer.states(),
            now=int(time.time()),
        )

    def _place(self, authorities: str) -> Placement:
        options = self.options
        return Placement(
            image=options.proxy_image,
            ca=authorities,
            namespace=options.namespace,
            name=options.name,
            domain=options.cluster_domain,
            gateway_namespace_mode=(
                self.file.config.provider.cluster.deploy.type == "GatewayNamespace"
            ),
            pull_policy=options.proxy_pull_policy,
            pull_secrets=options.proxy_pull_secrets,
        )
