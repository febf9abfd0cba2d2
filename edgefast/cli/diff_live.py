"""`edgefast diff --live`: changes for requests when files are applied to a cluster.

In: a cluster, files.
Out: two translations: of the present objects, and of the same objects with those of the files added
or replaced by name. A replaced object keeps what an API server keeps: age, generation, labels of
other managers. New Services have no endpoints yet; the diff assumes that they get some.
Must never: remove an object that the files do not contain, or predict facts that only a controller
knows: addresses and proxies stay as they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.service import Service
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.kinds import Object
from edgefast.api.loaded import Loaded
from edgefast.api.model.fail_closed import is_closed
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.snapshot import Snapshot
from edgefast.cli.live import Cluster, Objects
from edgefast.cli.omitted_objects import refuse_unparsed, report_omitted
from edgefast.cli.output import escape_control
from edgefast.providers.added_backends import make_slice
from edgefast.providers.files import FileSource
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import FleetState, Settings
from edgefast.translate.translation import Translation

#: Of endpoints and load balancers that are not there yet (RFC 5737).
_SOME_ADDRESS = "192.0.2.1"


def translate_live(
    cluster: Cluster, paths: Sequence[Path], namespace: str | None
) -> tuple[Translation, Translation]:
    """Return the cluster before and after; `namespace` is of objects that name none, None the kubeconfig's."""
    objects = cluster.read_objects()
    source = FileSource(paths, namespace or objects.namespace)
    reading = source.read()
    refuse_unparsed(source.unparsed)
    report_omitted("files and cluster", (*reading.problems, *objects.problems))
    # What has a mistake a server refuses, and keeps what it has.
    items = [one for one in reading.snapshot.loaded.values() if not is_closed(one.obj)]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    wanted = lay_over(objects.snapshot, items, now)
    wanted = wanted.replace(changed=list(_promise_endpoints(wanted, objects.snapshot)))
    whole = cluster.complete(objects, wanted)
    for message in whole.unread:
        click.echo(escape_control(message), err=True)
    return _translate_both(objects, whole)


def lay_over(present: Snapshot, items: Iterable[Loaded], now: str) -> Snapshot:
    """Return a snapshot with the files' objects applied; `now` is the time as RFC 3339 text."""
    return present.replace(changed=[_apply(present, item, now) for item in items])


def _apply(present: Snapshot, item: Loaded, now: str) -> Loaded:
    """Return a file's object with what the server keeps or gives."""
    old = present.get(item.ref)
    given = item.obj.metadata
    kept = old.metadata if old is not None else ObjectMeta(name=given.name, creation_timestamp=now)
    meta = msgspec.structs.replace(
        given,
        labels={**kept.labels, **given.labels},
        annotations={**kept.annotations, **given.annotations},
        uid=kept.uid,
        generation=kept.generation,
        creation_timestamp=kept.creation_timestamp,
        resource_version=kept.resource_version,
    )
    obj: Object = msgspec.structs.replace(item.obj, metadata=meta)
    if isinstance(obj, Service) and isinstance(old, Service):
        # What load balancers gave, and the server: files have neither.
        spec = msgspec.structs.replace(
            obj.spec,
            cluster_ip=obj.spec.cluster_ip or old.spec.cluster_ip,
            cluster_ips=obj.spec.cluster_ips or old.spec.cluster_ips,
        )
        obj = msgspec.structs.replace(obj, spec=spec, status=old.status)
    return Loaded(obj=obj, file=item.file, marks=item.marks)


def _promise_endpoints(wanted: Snapshot, present: Snapshot) -> Iterator[EndpointSlice]:
    """Give an endpoint to each Service that is new and will be given some by the cluster."""
    for key, service in wanted.services.items():
        new = key not in present.services and key not in wanted.slices_by_service
        if not new or not service.spec.selector or service.spec.type == "ExternalName":
            continue
        namespace, name = key
        message = (
            f"Service {namespace}/{name} is new; the comparison assumes that it gets endpoints"
        )
        click.echo(message, err=True)
        yield make_slice(service, _SOME_ADDRESS)


def _translate_both(objects: Objects, whole: Objects) -> tuple[Translation, Translation]:
    before = translate(objects.snapshot, objects.settings)
    after = translate(whole.snapshot, whole.settings, before)
    # Fleets that are new will get proxies and addresses: their want of them is no change of the objects'.
    states = _imagine_fleets((before, after), objects)
    settings = msgspec.structs.replace(objects.settings, fleets=states)
    return _again(before, objects.snapshot, settings), _again(after, whole.snapshot, settings)


def _again(one: Translation, snapshot: Snapshot, settings: Settings) -> Translation:
    return translate(snapshot, settings, one)


def _imagine_fleets(both: Iterable[Translation], objects: Objects) -> tuple[FleetState, ...]:
    """Return every fleet as one with a ready proxy, at the addresses that it has, or that are asked for, or at some."""
    found: dict[str, FleetState] = {}
    for translation in both:
        gateways = translation.memo.world.snapshot.gateways
        for infra in translation.infra:
            addresses: dict[str, None] = {}
            for one in infra.gateways:
                namespace, _, name = one.partition("/")
                addresses.update(dict.fromkeys(objects.addresses.get((namespace, name), ())))
                addresses.update(dict.fromkeys(_requested(gateways.get((namespace, name)))))
            found[infra.name] = FleetState(
                name=infra.name,
                addresses=tuple(addresses) or (_SOME_ADDRESS,),
                replicas=1,
                ready=("proxy",),
            )
    return tuple(found[name] for name in sorted(found))


def _requested(gateway: Gateway | None) -> Iterator[str]:
    for one in gateway.spec.addresses if gateway is not None else ():
        if one.value:
            yield one.value
