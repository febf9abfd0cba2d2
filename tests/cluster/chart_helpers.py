"""Stands in for the controllers that the `apiserver` fixture lacks: ends Jobs and reports Deployments as available.

In: an `ApiServer` and a namespace. Out: while it is open, every Job there is Complete (or Failed) and every Deployment rolled out,
as kube-controller-manager would say it. What is tested with it is how an installation waits, not what its pods do.
Must never: be used where pods matter; the `world` fixture has real ones.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from cluster.world.api import Api, ApiError
from cluster.world.apiserver import ApiServer


class Hands:
    """A thread at work in one namespace; `jobs` counts the Jobs that it has ended."""

    def __init__(self, apiserver: ApiServer, namespace: str, *, fail_jobs: bool = False) -> None:
        self._api: Api = apiserver.admin
        self._namespace = namespace
        self._fail = fail_jobs
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.jobs = 0

    def __enter__(self) -> Hands:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._over.wait(0.05):
            for group, plural, work in (
                ("batch", "jobs", self._end_job),
                ("apps", "deployments", self._roll_out),
            ):
                path = f"/apis/{group}/v1/namespaces/{self._namespace}/{plural}"
                for found in self._api.items(path):
                    try:
                        work(f"{path}/{found['metadata']['name']}", found)
                    except ApiError as error:
                        assert error.status in (404, 409), error

    def _end_job(self, path: str, job: Any) -> None:
        if "deletionTimestamp" in job["metadata"]:
            self._api.patch(path, {"metadata": {"finalizers": None}})
        if job.get("status", {}).get("conditions"):
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        names = ("FailureTarget", "Failed") if self._fail else ("SuccessCriteriaMet", "Complete")
        status: dict[str, Any] = {
            "startTime": now,
            "conditions": [
                {"type": name, "status": "True", "reason": "ByHand", "lastTransitionTime": now}
                for name in names
            ],
        }
        if not self._fail:
            status |= {"completionTime": now, "succeeded": 1}
        self._api.patch(f"{path}/status", {"status": status})
        self.jobs += 1

    def _roll_out(self, path: str, deployment: Any) -> None:
        generation = deployment["metadata"]["generation"]
        count = deployment["spec"].get("replicas", 1)
        if deployment.get("status", {}).get("observedGeneration") != generation:
            counts = dict.fromkeys(
                ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count
            )
            self._api.patch(
                f"{path}/status", {"status": {"observedGeneration": generation, **counts}}
            )
