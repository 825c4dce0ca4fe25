"""What the API server's audit log says: who wrote which object, by which request, in order."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@dataclass(frozen=True, slots=True)
class Request:
    """One line.  ``body`` is what was sent, with writes only."""

    user: str
    verb: str
    resource: str
    """``pods``, ``nodes/status``, ``leases.coordination.k8s.io``."""
    namespace: str
    name: str
    status: int
    time: str
    body: Any

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES


class AuditLog:
    """Of one control plane; ``mark`` and ``since`` read what came after a moment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        return self.path.stat().st_size

    def since(self, mark: int = 0) -> list[Request]:
        """Whole lines only: the last one may still be on its way."""
        with open(self.path, "rb") as file:
            file.seek(mark)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        return list(requests(whole))

    def writers(self, mark: int = 0) -> dict[str, set[tuple[str, str]]]:
        """Of each user the verbs and resources with which it changed something."""
        found: dict[str, set[tuple[str, str]]] = {}
        for one in self.since(mark):
            if one.is_write and one.status < 300:
                found.setdefault(one.user, set()).add((one.verb, one.resource))
        return found


def requests(data: bytes) -> Iterator[Request]:
    for line in data.splitlines():
        entry = json.loads(line)
        target = entry.get("objectRef") or {}
        parts = [target.get("resource", ""), target.get("subresource")]
        resource = "/".join(part for part in parts if part)
        if group := target.get("apiGroup"):
            resource += f".{group}"
        yield Request(
            entry["user"]["username"], entry["verb"], resource,
            target.get("namespace", ""), target.get("name", ""),
            (entry.get("responseStatus") or {}).get("code", 0),
            entry["stageTimestamp"], entry.get("requestObject"),
        )  # fmt: skip
