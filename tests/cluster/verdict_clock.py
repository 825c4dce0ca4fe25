"""When things became visible in the API, by one clock, seen by a watch and not by asking often."""

import contextlib
import http.client
import threading
import time
from collections.abc import Callable

from tests.cluster.api_client import ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import condition

from seawall.cluster.actor.pod_hold import HoldStage, hold_stage
from seawall.cluster.objects.api_group import CHANGED_BY_LABEL, WORKLOAD_QUARANTINE, path_of

WATCH_SECONDS = 900


class VerdictClock:
    """``with VerdictClock(plane) as clock``: monotonic seconds of what came since."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.silent: dict[str, float] = {}
        """Of each node that the core says to be silent, since when."""
        self.ever_silent: set[str] = set()
        self.verdicts: dict[tuple[str, str], dict[str, float]] = {}
        """By namespace and name of the workload: each verdict, the first time."""
        self.standing: dict[tuple[str, str], str] = {}
        """What stands now."""
        self.held: dict[tuple[str, str], tuple[str, float]] = {}
        """By namespace and name of each pod that was kept on its silent node: the node, and when
        the core's deletion of it was first put off.
        """
        self.ended = threading.Event()

    def __enter__(self) -> "VerdictClock":  # noqa: PYI034 - Self is of 3.11
        for path, take, query in (
            ("/api/v1/nodes", self.take_node, {}),
            (path_of(WORKLOAD_QUARANTINE), self.take_verdict, {}),
            ("/api/v1/pods", self.take_changed_pod, {"labelSelector": CHANGED_BY_LABEL}),
        ):  # fmt: skip
            threading.Thread(target=self.follow, args=(path, take, query), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()

    def follow(
        self, path: str, take: Callable[[str, Object, float], None], query: dict[str, str]
    ) -> None:
        """An API server that was away is watched again: its first events tell all there is."""
        while not self.ended.wait(0.2):
            with (
                contextlib.suppress(OSError, ValueError, http.client.HTTPException, ApiError),
                self.plane.client() as client,
            ):
                for event in client.watch(path, WATCH_SECONDS, **query):
                    if self.ended.is_set():
                        return
                    take(event["type"], event["object"], time.monotonic())

    def take_node(self, kind: str, node: Object, at: float) -> None:
        name = node["metadata"]["name"]
        if kind != "DELETED" and condition(node) == "Unknown":
            self.silent.setdefault(name, at)
            self.ever_silent.add(name)
        elif condition(node) == "True":
            self.silent.pop(name, None)

    def take_changed_pod(self, kind: str, pod: Object, at: float) -> None:
        if kind != "DELETED" and hold_stage(pod["spec"]["tolerations"]) is not HoldStage.NONE:
            metadata = pod["metadata"]
            place = (metadata["namespace"], metadata["name"])
            self.held.setdefault(place, (pod["spec"].get("nodeName", ""), at))

    def take_verdict(self, kind: str, quarantine: Object, at: float) -> None:
        workload = quarantine["spec"]["workload"]
        place = (workload["namespace"], workload["name"])
        verdict = (quarantine.get("status") or {}).get("verdict", "")
        if kind == "DELETED":
            self.standing.pop(place, None)
        elif verdict:
            self.standing[place] = verdict
            self.verdicts.setdefault(place, {}).setdefault(verdict, at)
