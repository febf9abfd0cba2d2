"""A pod's volumes: folders that containers mount, kept up to date with the objects they show.

In: the pod object. Out: a folder per volume. Secrets, ConfigMaps, downward fields and tokens are written as the kubelet
does it: into a new folder, to which the link `..data` is moved, so that a reader sees all of one version.
Must never: write when nothing changed; a program that follows the folder would be woken for nothing.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.world.node.environment import field_of
from cluster.world.node.objects import MissingObject, Objects

_PLURAL = {"secret": "secrets", "configMap": "configmaps"}
_SHOWN = ("secret", "configMap", "downwardAPI", "projected", "serviceAccountToken")
_MODE = 0o644


@dataclass(frozen=True)
class Volume:
    """A volume as containers mount it."""

    path: Path
    read_only: bool


class Volumes:
    """The volumes of one pod."""

    def __init__(self, folder: Path, objects: Objects) -> None:
        self._folder, self._objects = folder, objects
        self._written: dict[str, dict[str, tuple[bytes, int]]] = {}
        self._lock = asyncio.Lock()
        self.ready: dict[str, Volume] = {}

    async def prepare(self, pod: Mapping[str, Any], address: str) -> None:
        """Make the volumes that are not there yet; MissingObject when one needs what is not there."""
        for volume in pod["spec"].get("volumes") or []:
            name = volume["name"]
            if name in self.ready:
                continue
            path = self._folder / name
            if "hostPath" in volume:
                self.ready[name] = Volume(Path(volume["hostPath"]["path"]), False)
            elif "emptyDir" in volume:
                _make_empty(path, _group(pod))
                self.ready[name] = Volume(path, False)
            elif any(kind in volume for kind in _SHOWN):
                path.mkdir(parents=True, exist_ok=True)
                await self._write(pod, address, volume)
                self.ready[name] = Volume(path, True)
            else:
                kind = next((key for key in volume if key != "name"), "none")
                raise MissingObject(f'volume "{name}": kind {kind} does not exist here')

    async def refresh(self, pod: Mapping[str, Any], address: str) -> None:
        """Write again what has changed; tokens stay until `refresh_tokens`."""
        for volume in self._shown(pod):
            await self._write(pod, address, volume, keep_tokens=True)

    async def refresh_tokens(self, pod: Mapping[str, Any], address: str) -> None:
        """Write new tokens."""
        for volume in self._shown(pod):
            if _tokens(volume):
                await self._write(pod, address, volume)

    def _shown(self, pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        volumes = pod["spec"].get("volumes") or []
        return [
            one for one in volumes if one["name"] in self.ready and one["name"] in self._written
        ]

    async def _write(
        self,
        pod: Mapping[str, Any],
        address: str,
        volume: Mapping[str, Any],
        *,
        keep_tokens: bool = False,
    ) -> None:
        name = volume["name"]
        # One at a time: what was asked for later must not be overwritten by what was asked for before.
        async with self._lock:
            before = self._written.get(name, {})
            files: dict[str, tuple[bytes, int]] = {}
            kept = before if keep_tokens else {}
            async for path, text, mode in self._files(pod, address, volume, kept):
                files[path] = (text, mode)
            if files != before or name not in self._written:
                _show(self._folder / name, files, _group(pod))
                self._written[name] = files

    async def _files(
        self,
        pod: Mapping[str, Any],
        address: str,
        volume: Mapping[str, Any],
        kept: Mapping[str, tuple[bytes, int]],
        default: int = _MODE,
    ) -> AsyncIterator[tuple[str, bytes, int]]:
        if "projected" in volume:
            projected = volume["projected"]
            default = projected.get("defaultMode", _MODE)
            for source in projected.get("sources") or []:
                async for found in self._files(pod, address, source, kept, default):
                    yield found
            return
        if "serviceAccountToken" in volume:
            wanted = volume["serviceAccountToken"]
            path = wanted["path"]
            if path in kept:
                yield path, *kept[path]
                return
            seconds = int(wanted.get("expirationSeconds", 3600))
            yield path, await self._objects.token(pod, wanted.get("audience"), seconds), default
            return
        if "downwardAPI" in volume:
            source = volume["downwardAPI"]
            mode = source.get("defaultMode", default)
            for item in source.get("items") or []:
                path = item.get("fieldRef", {}).get("fieldPath", "")
                text = field_of(pod, path, address).encode()
                yield item["path"], text, item.get("mode", mode)
            return
        for kind, plural in _PLURAL.items():
            if kind not in volume:
                continue
            source = volume[kind]
            mode = source.get("defaultMode", default)
            data = await self._objects.data(plural, pod["metadata"]["namespace"], source)
            items = source.get("items") or [{"key": key, "path": key} for key in data]
            for item in items:
                if item["key"] in data:
                    yield item["path"], data[item["key"]], item.get("mode", mode)
                elif not source.get("optional"):
                    raise MissingObject(f"{plural}: no key {item['key']}")


def uses(pod: Mapping[str, Any], plural: str, name: str) -> bool:
    """Whether a volume of a pod shows a Secret or ConfigMap."""
    for volume in pod["spec"].get("volumes") or []:
        for source in [volume, *(volume.get("projected", {}).get("sources") or [])]:
            for kind, kinds in _PLURAL.items():
                found = source.get(kind)
                if (
                    found
                    and kinds == plural
                    and name in (found.get("secretName"), found.get("name"))
                ):
                    return True
    return False


def token_seconds(pod: Mapping[str, Any]) -> int | None:
    """Return the lifetime of a pod's shortest-lived token, None when it has none."""
    volumes = pod["spec"].get("volumes") or []
    return min((seconds for one in volumes for seconds in _tokens(one)), default=None)


def _tokens(volume: Mapping[str, Any]) -> list[int]:
    sources = volume.get("projected", {}).get("sources") or []
    tokens = [one["serviceAccountToken"] for one in sources if "serviceAccountToken" in one]
    return [int(one.get("expirationSeconds", 3600)) for one in tokens]


def _group(pod: Mapping[str, Any]) -> int | None:
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    return None if group is None else int(group)


def _make_empty(path: Path, group: int | None) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    if group is not None:
        os.chown(path, -1, group)
        path.chmod(0o2777)


def _show(folder: Path, files: Mapping[str, tuple[bytes, int]], group: int | None) -> None:
    """Write files into a new folder and move `..data` to it."""
    version = folder / f"..{secrets.token_hex(6)}"
    version.mkdir(mode=0o755)
    for name, (text, mode) in files.items():
        path = version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        path.chmod(mode)
        if group is not None:
            os.chown(path, -1, group)
            path.chmod(mode | 0o040)
    link = folder / "..data"
    old = folder / os.readlink(link) if link.is_symlink() else None
    part = folder / "..data_tmp"
    part.symlink_to(version.name)
    part.replace(link)
    tops = {name.split("/", 1)[0] for name in files}
    for top in tops:
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(f"..data/{top}")
    for present in folder.iterdir():
        if not present.name.startswith("..") and present.name not in tops:
            present.unlink()
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
