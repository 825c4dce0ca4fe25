# SPDX-License-Identifier: Apache-2.0
"""What the cluster asks of this node: the brake, a rescue order, the pods in quarantine.

Read on the connection that is there, and brought to the guard as files; the guard judges.  In peace
one small object every 30 s.  Nothing that is not known takes the brake off: an API server that does
not answer, a policy that is gone.
"""

import json
import os
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from seawall.agent import api_connection as api
from seawall.agent.api_connection import ApiAnswer, ApiConnection
from seawall.agent.guard_page import GuardPage, PageRescue
from seawall.agent.node_messages import api_time
from seawall.agent.order_folder import OrderFolder
from seawall.guard.order_files import (
    BRAKE,
    LIST_MOST_SECONDS,
    ORDER_MOST_SECONDS,
    QUARANTINE,
    RESCUE,
)
from seawall.guard.tell.plain import plain

LIST_FILE: Final = "quarantine.json"
"""On the node's disk."""
_NOT_OURS: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
_NOT_OURS_SECONDS: Final = 600.0
_PODS_MOST: Final = 8
_QUARANTINES_MOST: Final = 50
_LISTED_MOST: Final = 256
_STATES: Final = {"waits": "Waiting", "accepted": "Accepted", "done": "Done", "refused": "Refused"}
_FINAL: Final = ("Done", "Refused")
_HOLDS: Final = ("Active", "Canary")
"""States of a quarantine in which its pods may not run here."""


class OrderPace(NamedTuple):
    """Its times, in seconds."""

    brake: float = 30.0
    """Between two looks at the policy; 0: never."""
    order: float = 3.0
    """Between two looks for an order, while the node is in trouble."""
    quarantines: float = 600.0


class _AnsweredOrder(NamedTuple):
    uid: str
    told: PageRescue | None
    """As the API server has it."""


class ClusterOrders:
    """``turn`` in each of the agent's turns; ApiProblem goes to the caller."""

    def __init__(
        self, connection: ApiConnection, run: OrderFolder, state: OrderFolder, boot_id: str,
        say: Callable[[str], None], pace: OrderPace | None = None,
    ) -> None:  # fmt: skip
        self.pace = pace or OrderPace()
        self._connection, self._run, self._state = connection, run, state
        self._boot_id, self._say = boot_id, say
        share = os.urandom(1)[0] / 256  # not all nodes at once
        now = time.monotonic()
        self._due = {api.POLICY: now + share * min(1.0, self.pace.brake), api.ORDER: now,
                     api.QUARANTINES: now + share * self.pace.brake}  # fmt: skip
        self._answered: _AnsweredOrder | None = None
        self._listed: Any = None
        self._said = ""

    def turn(self, now: float, page: GuardPage | None, *, is_busy: bool) -> bool:
        """Whether the API server was asked for anything."""
        if not self.pace.brake:
            return False
        asked = self._is_due(api.POLICY, now, self.pace.brake)
        if asked:
            self._heed_brake(self._connection.send(api.POLICY), now)
        is_open = self._answered is not None
        if (is_busy or is_open) and self._is_due(api.ORDER, now, self.pace.order):
            asked = True
            self._heed_order(self._connection.send(api.ORDER), now)
        if self._answered is not None and page is not None:
            self._tell(self._answered, page.rescue)
        if not is_busy and self._is_due(api.QUARANTINES, now, self.pace.quarantines):
            asked = True
            self._heed_quarantines(self._connection.send(api.QUARANTINES), now)
        return asked

    def _is_due(self, kind: str, now: float, pause: float) -> bool:
        """Before it is asked: a server that is away is not asked again at once."""
        if now < self._due[kind]:
            return False
        self._due[kind] = now + pause
        return True

    # --- the brake ----------------------------------------------------------------------------

    def _heed_brake(self, answer: ApiAnswer, now: float) -> None:
        found = self._object(api.POLICY, answer, now)
        if found is None:
            return
        spec = found.get("spec")
        is_on = isinstance(spec, dict) and spec.get("brake") is True
        if is_on and not self._run.has(BRAKE):
            if self._run.put(BRAKE, {"by": "SeawallPolicy default", "at": api_time(time.time())}):
                self._say("the brake is on: the guard only observes")
        elif not is_on and self._run.has(BRAKE) and self._run.remove(BRAKE):
            self._say("the brake is off: the guard does as its own file says")
        self._complain(self._run.problem)

    # --- rescue -------------------------------------------------------------------------------

    def _heed_order(self, answer: ApiAnswer, now: float) -> None:
        found = self._object(api.ORDER, answer, now)
        if found is None:
            if answer.status == HTTPStatus.NOT_FOUND:  # looked for again: orders come late
                self._due[api.ORDER] = now + self.pace.order
                self._drop_order()
            return
        uid, spec = _text(found.get("metadata"), "uid"), found.get("spec")
        state = _text(found.get("status"), "state")
        if not uid or not isinstance(spec, dict) or state in _FINAL:
            self._drop_order()
            return
        if self._answered is not None and self._answered.uid == uid:
            return
        self._answered = _AnsweredOrder(uid, None)
        until = unix_of(_text(spec, "expiresAt"))
        now_unix = time.time()
        if until is None or until <= now_unix:
            self._refuse("it had expired when this node read it")
            return
        named = spec.get("podUIDs")
        rows = named if isinstance(named, list) else []
        pods = [one for one in rows if isinstance(one, str) and one][:_PODS_MOST]
        if not pods:
            self._refuse("it names no pod")
            return
        self._run.put(RESCUE, {
            "order": uid, "boot_id": _text(spec, "bootID"), "pods": pods,
            "by": plain(_text(spec, "requestedBy"), 100) or "somebody",
            "until_unix_seconds": min(until, now_unix + ORDER_MOST_SECONDS),
        })  # fmt: skip
        self._complain(self._run.problem)
        if self._run.problem:
            self._refuse(f"it cannot be brought to the guard: {self._run.problem}")
        else:
            self._say(f"rescue order {uid} was brought to the guard")

    def _refuse(self, words: str) -> None:
        if self._answered is not None:
            self._tell(self._answered, PageRescue(self._answered.uid, "refused", words, "", None))

    def _tell(self, answered: _AnsweredOrder, result: PageRescue | None) -> None:
        """The guard's answer, each time that it is another one."""
        if result is None or result.order != answered.uid or result == answered.told:
            return
        state = _STATES.get(result.state)
        if state is None:
            return
        status: dict[str, Any] = {
            "state": state, "message": result.words, "decision": result.decision,
            "at": api_time(time.time()),
        }  # fmt: skip
        if result.returned_bytes is not None:
            status["returnedBytes"] = max(0, result.returned_bytes)
        body = {"metadata": {"uid": answered.uid}, "status": status}
        answer = self._connection.send(api.ORDER_STATUS, json.dumps(body).encode("ascii"))
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return  # again in the next turn
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            self._complain(f"{api.ORDER_STATUS}: {answer.status}")
        self._answered = _AnsweredOrder(answered.uid, result)
        if state in _FINAL:
            self._run.remove(RESCUE)
            if answer.status in _NOT_OURS:  # it is gone
                self._answered = None

    def _drop_order(self) -> None:
        if self._answered is not None or self._run.has(RESCUE):
            self._run.remove(RESCUE)
        self._answered = None

    # --- quarantines --------------------------------------------------------------------------

    def _heed_quarantines(self, answer: ApiAnswer, now: float) -> None:
        found = self._object(api.QUARANTINES, answer, now)
        if found is None:
            return
        rows = quarantines_on(self._connection.server.node, found.get("items"), time.time())
        is_there = self._run.has(QUARANTINE) or self._state.has(LIST_FILE)
        if rows == self._listed or not (rows or is_there):
            return
        document = {"at": api_time(time.time()), "quarantines": rows}
        is_kept = self._state.put(LIST_FILE, document, is_kept=True)
        if self._run.put(QUARANTINE, document) and is_kept:
            self._listed = rows
        self._complain(self._state.problem or self._run.problem)

    # --- small things -------------------------------------------------------------------------

    def _object(self, kind: str, answer: ApiAnswer, now: float) -> dict[str, Any] | None:
        """None: it is not there, or was refused, which is asked about seldom."""
        if answer.status == HTTPStatus.OK:
            try:
                found = json.loads(answer.body)
            except (ValueError, RecursionError):
                found = None
            return found if isinstance(found, dict) else None
        if answer.status in _NOT_OURS:
            pause = _NOT_OURS_SECONDS if answer.status == HTTPStatus.FORBIDDEN else 0.0
            self._due[kind] = max(self._due[kind], now + pause)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._connection.forget_token()
        if answer.status != HTTPStatus.NOT_FOUND:
            self._complain(f"{kind}: {answer.status}")
        return None

    def _complain(self, words: str) -> None:
        """Once."""
        if words and words != self._said:
            self._say(words)
        self._said = words or self._said


def quarantines_on(node: str, items: Any, now_unix_seconds: float) -> list[dict[str, Any]]:
    """Of each quarantine in force its pods on this node, bounded."""
    rows: list[dict[str, Any]] = []
    left = _LISTED_MOST
    for item in items if isinstance(items, list) else ():
        if len(rows) == _QUARANTINES_MOST:  # of those in force: suspects hide none of them
            break
        if not isinstance(item, dict):
            continue
        spec, status = item.get("spec"), item.get("status")
        until = unix_of(_text(spec, "expiresAt"))
        pods = status.get("pods") if isinstance(status, dict) else None
        if _text(spec, "state") not in _HOLDS or not isinstance(pods, list):
            continue
        if until is None or until <= now_unix_seconds:
            continue
        uids = [_text(one, "uid")[:64] for one in pods if _text(one, "node") == node]
        uids = sorted({uid for uid in uids if uid})[:left]
        if uids:
            left -= len(uids)
            rows.append({
                "name": plain(_text(item.get("metadata"), "name"), 63), "pods": uids,
                "until_unix_seconds": min(until, now_unix_seconds + LIST_MOST_SECONDS),
            })  # fmt: skip
    return rows


def unix_of(text: str) -> float | None:
    """Of ``2026-11-29T01:02:03Z``, with a fraction or not; None: no such time.  By itself: what the
    library has for it takes half a MiB.
    """
    date, _, clock = text.partition("T")
    clock = clock.partition(".")[0].rstrip("Z")
    try:
        year, month, day = (int(part) for part in date.split("-"))
        hour, minute, second = (int(part) for part in clock.split(":"))
    except ValueError:
        return None
    if not (1970 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= 31 and text.endswith("Z")):
        return None
    year -= month <= 2
    month = (month + 9) % 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    return (days - 719_468) * 86_400.0 + hour * 3600 + minute * 60 + second


def _text(found: Any, key: str) -> str:
    value = found.get(key) if isinstance(found, dict) else None
    return value[:256] if isinstance(value, str) else ""
