"""What a person with kubectl would see of the chain, with seconds: one thread that lists."""

import http.client
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API

LOOK_SECONDS = 1.0
HOG, WEB = "ml", "shop"
"""Namespaces of the culprit and of the innocents."""


class ChainWatch:
    """``with ChainWatch(plane) as watch``: ``rows`` grows until it is left."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.rows: list[dict[str, Any]] = []
        self.began = time.monotonic()
        self.known: dict[str, Any] = {}
        self.is_seawall = False
        """Our kinds are there."""
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self) -> "ChainWatch":  # noqa: PYI034 - Self is of 3.11
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def add(self, what: str, subject: str, words: str = "") -> None:
        at = round(time.monotonic() - self.began, 1)
        self.rows.append({"at": at, "what": what, "subject": subject, "words": words})

    def start_again(self) -> None:
        """Seconds count from now, and what was is forgotten."""
        self.began, self.rows = time.monotonic(), []

    def first(self, what: str, subject: str = "", words: str = "") -> float | None:
        """When; None: not yet."""
        return next((row["at"] for row in list(self.rows) if row["what"] == what
                     and subject in row["subject"] and words in row["words"]), None)  # fmt: skip

    def count(self, what: str, subject: str = "", words: str = "") -> int:
        return sum(row["what"] == what and subject in row["subject"] and words in row["words"]
                   for row in list(self.rows))  # fmt: skip

    def wait(self, done: Callable[[], object], seconds: float) -> bool:
        """Whether it came within so many seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if done():
                return True
            time.sleep(0.2)
        return False

    # --- looking -----------------------------------------------------------------------

    def run(self) -> None:
        with self.plane.client() as client:
            while not self.ended.wait(LOOK_SECONDS):
                try:
                    self.look(client)
                except (OSError, http.client.HTTPException, ApiError) as problem:
                    self.add("not seen", "the API server", str(problem)[:200])

    def look(self, client: ApiClient) -> None:
        for node in client.items("/api/v1/nodes"):
            self.changed("node", node["metadata"]["name"], ready_of(node))
        for space in (HOG, WEB):
            alive = client.items(f"/api/v1/namespaces/{space}/pods")
            for pod in alive:
                self.see_pod(pod)
            here = {pod["metadata"]["uid"] for pod in alive}
            for key in [key for key in self.known if key.startswith(f"pod {space} ")]:
                if key.split()[2] not in here:
                    self.add("pod gone", self.known.pop(key))
        if self.is_seawall:
            self.see_seawall(client)

    def changed(self, what: str, subject: str, words: str, part: str = "") -> bool:
        """Adds a row where it is new; of several parts of one subject each is looked at alone."""
        key = f"{what} {subject} {part}"
        if not words or self.known.get(key) == words:
            return False
        self.known[key] = words
        self.add(what, subject, words)
        return True

    def see_pod(self, pod: Object) -> None:
        metadata, status = pod["metadata"], pod.get("status", {})
        name, node = metadata["name"], pod["spec"].get("nodeName")
        if node is None:
            gates = pod["spec"].get("schedulingGates")
            self.changed("pod waits", name, f"at the gate {gates[0]['name']}" if gates else "")
            return
        key = f"pod {metadata['namespace']} {metadata['uid']}"
        if key not in self.known:
            self.known[key] = f"{name} of {node}"
            self.add("pod placed", name, f"on {node}")
        if "deletionTimestamp" in metadata:
            self.changed("pod deleted", name, f"on {node}")
        for one in status.get("containerStatuses", ()):
            if one.get("restartCount"):
                self.changed("restart", name, restart_words(one))
            elif "terminated" in one.get("state", {}):
                self.changed("container ended", name, end_words(one["state"]["terminated"]))
        conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
        if metadata["namespace"] == WEB or conditions.get("Ready") == "True":
            self.changed("pod ready", name, conditions.get("Ready", ""))
        if status.get("reason") == "Evicted":
            self.changed("evicted", name, str(status.get("message"))[:120])

    def see_seawall(self, client: ApiClient) -> None:
        for one in client.items(f"{API}/nodereports"):
            culprits = one.get("report", {}).get("distress", {}).get("culprits", ())
            for culprit in culprits:
                proof = "proved" if culprit.get("isProved") else "possible"
                pod = culprit.get("pod") or culprit.get("podUID", "")
                self.changed("node says", one["metadata"]["name"], f"{proof}: {pod}", pod)
        for one in client.items(f"{API}/nodedeaths"):
            status = one.get("status", {})
            cause = status.get("cause", {})
            self.changed("death", str(one["spec"].get("nodeName") or one["metadata"]["name"]),
                         " ".join(str(word) for word in (status.get("phase"), cause.get("class"),
                                  cause.get("confidence")) if word))  # fmt: skip
        for one in client.items(f"{API}/workloadquarantines"):
            self.see_quarantine(one)
        for one in client.items(f"{API}/rescueorders"):
            status = one.get("status", {})
            self.changed("rescue order", one["metadata"]["name"], status.get("state") or "made")

    def see_quarantine(self, one: Object) -> None:
        spec, status = one["spec"], one.get("status", {})
        workload = spec.get("workload", {})
        name = f"{workload.get('namespace')}/{workload.get('name')}"
        nodes = " ".join(status.get("nodes", ()))
        words = f"{spec.get('state')} {spec.get('mode')}: {status.get('verdict')}, {nodes}"
        self.changed("quarantine", name, words)
        for action in status.get("actions", ()):
            subject = f"{action.get('kind')} {action.get('name')}"
            self.changed(f"action {action.get('lever')}", subject, str(action.get("result")))


def ready_of(node: Object) -> str:
    """``True``, ``False``, ``Unknown``; empty: it has not said."""
    conditions = node.get("status", {}).get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == "Ready"), "")


def restart_words(status: Object) -> str:
    last = status.get("lastState", {}).get("terminated", {})
    return f"number {status['restartCount']}, {end_words(last)}"


def end_words(end: Object) -> str:
    words = " ".join(str(end.get("message") or "").split())
    return f"{end.get('reason')} {end.get('exitCode')} {words}".strip()[:300]
