"""One run of a container: its root, its process, its log.

In: a `Launch`, all that is decided about it. Out: a `Run` with the exit code once it has ended.
The machine's own root is the image (box.c); what users other than root need to read is made passable in the overlay.
Must never: outlive the agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.world import addresses as at
from cluster.world.node.log_file import LogFile
from cluster.world.node.settings import Settings
from cluster.world.node.volumes import Volume

_CHUNK = 1 << 16
_FRESH = ("/dev/shm/", "/run/", "/tmp/")  # empty in every container (native/box.c)
_START_SECONDS, _START_LOOKS = 10.0, 2000


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What is started and how."""

    folder: Path
    log: Path
    netns: str
    hostname: str
    namespace: str
    address: str
    command: Sequence[str]
    env: dict[str, str]
    cwd: str
    mounts: Sequence[tuple[str, str, bool]]  # source, target, read-only
    uid: int = 0
    gid: int = 0
    groups: Sequence[int] = ()
    flags: str = ""


class Run:
    """A started container process."""

    def __init__(self, launch: Launch, process: asyncio.subprocess.Process) -> None:
        self.launch, self.process = launch, process

    @classmethod
    async def start(cls, launch: Launch, settings: Settings) -> Run:
        """Make the container's root and start its command; return when it has a pid."""
        _make_root(launch, settings)
        process = await asyncio.create_subprocess_exec(
            settings.box,
            str(launch.folder),
            launch.netns,
            launch.hostname,
            launch.cwd,
            str(launch.uid),
            str(launch.gid),
            ",".join(map(str, launch.groups)) or "-",
            launch.flags or "-",
            *launch.command,
            env=launch.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        run = cls(launch, process)
        for _ in range(_START_LOOKS):
            if run.pid() is not None or process.returncode is not None:
                break
            await asyncio.sleep(_START_SECONDS / _START_LOOKS)
        return run

    async def wait(self) -> int:
        """Write the log until the container has ended; return its exit code."""
        log = LogFile(self.launch.log)
        assert self.process.stdout is not None
        try:
            while chunk := await self.process.stdout.read(_CHUNK):
                log.write(chunk)
        finally:
            log.close()
        code = await self.process.wait()
        return code if code >= 0 else 128 - code

    def send(self, number: signal.Signals) -> None:
        """Signal the container's first process."""
        pid = self.pid()
        if pid is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End the container now."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    def pid(self) -> int | None:
        """Return the first process's pid as seen from the node."""
        try:
            return int((self.launch.folder / "pid").read_text())
        except (OSError, ValueError):
            return None

    async def execute(self, command: Sequence[str], seconds: float) -> bool:
        """Run a command inside the container; whether it ended well and in time."""
        pid = self.pid()
        if pid is None:
            return False
        child = await asyncio.create_subprocess_exec(
            *exec_command(pid, self.launch.uid, self.launch.gid, command),
            env=self.launch.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(seconds):
                return await child.wait() == 0
        except TimeoutError:
            return False
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()


def exec_command(pid: int, uid: int, gid: int, command: Sequence[str]) -> list[str]:
    """Return the command that runs another one inside the container of a pid."""
    enter = ["nsenter", f"--target={pid}", "--mount", "--uts", "--ipc", "--net", "--pid"]
    return [*enter, f"--setuid={uid}", f"--setgid={gid}", "--", *command]


def _make_root(launch: Launch, settings: Settings) -> None:
    folder = launch.folder
    shutil.rmtree(folder, ignore_errors=True)
    upper = folder / "upper"
    for part in ("work", "root", "upper/etc"):
        (folder / part).mkdir(parents=True)
    _make_passable(upper, settings.readable)
    search = (
        f"{launch.namespace}.svc.{at.CLUSTER_DOMAIN} svc.{at.CLUSTER_DOMAIN} {at.CLUSTER_DOMAIN}"
    )
    texts = {
        "hosts": f"127.0.0.1 localhost\n{launch.address} {launch.hostname}\n",
        "hostname": f"{launch.hostname}\n",
        "resolv.conf": f"nameserver {at.POD_GATEWAY}\nsearch {search}\noptions ndots:5\n",
    }
    for name, text in texts.items():
        (upper / "etc" / name).write_text(text)
    lines = [
        f"{source}\t{target}\t{'ro' if ro else 'rw'}\n" for source, target, ro in launch.mounts
    ]
    # After the volumes, of which one may be all of /tmp.
    lines += [f"{path}\t{path}\tro\n" for path in _other_mounts(settings.readable)]
    (folder / "mounts").write_text("".join(lines))


def _make_passable(upper: Path, paths: Sequence[str]) -> None:
    """Let every user pass the folders above some paths: a folder of the upper layer lends its mode to the one below."""
    for path in paths:
        for parent in reversed(Path(path).parents):
            mode = parent.stat().st_mode & 0o777
            if not mode & 0o001 and parent != Path("/"):
                (upper / parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
                (upper / parent.relative_to("/")).chmod(mode | 0o055)


def _other_mounts(paths: Sequence[str]) -> list[str]:
    """Return the paths that a root of its own would hide: on other file systems than the overlay's, or where it has fresh ones."""
    root = os.stat("/").st_dev
    return [path for path in paths if os.stat(path).st_dev != root or path.startswith(_FRESH)]


def mounts_of(
    container: dict[str, object], volumes: dict[str, Volume]
) -> list[tuple[str, str, bool]]:
    """Return a container's mounts; sub-paths of writable volumes are made."""
    mounts = []
    listed = container.get("volumeMounts") or []
    assert isinstance(listed, list)
    for mount in listed:
        volume = volumes[mount["name"]]
        source = volume.path
        if sub := mount.get("subPath"):
            source = source / sub
            if not volume.read_only and not source.exists():
                source.mkdir(parents=True)
                source.chmod(0o777)
        read_only = volume.read_only or bool(mount.get("readOnly"))
        mounts.append((str(source), str(mount["mountPath"]), read_only))
    return mounts
