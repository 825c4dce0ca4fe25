# SPDX-License-Identifier: Apache-2.0
"""The loop: looks at the guard's page, decides what is to be told, tells it.

One thread, one connection.  In peace it looks twice a second (a stat(2)) and writes nothing.  A
request may take five seconds; while the API server is away, reports wait in the outbox.
"""

import json
import os
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seawall.agent import api_connection as api
from seawall.agent.api_connection import ApiAnswer, ApiConnection, ApiProblem
from seawall.agent.cluster_orders import ClusterOrders
from seawall.agent.culprits import Culprit, culprits_of
from seawall.agent.guard_page import GuardPage
from seawall.agent.node_conditions import (
    BUSY,
    GUARD_IMPAIRED,
    MEMORY_SHORT,
    OF_MEMORY,
    TYPES,
    NodeCondition,
    guard_problem,
    healthy,
    is_running_out,
    not_known,
    problems_of,
    silent_guard,
)
from seawall.agent.node_messages import (
    api_time,
    conditions_body,
    distress_part,
    event_body,
    event_name,
    guard_part,
    report_body,
)
from seawall.agent.outbox import Outbox
from seawall.agent.page_watch import PageWatch
from seawall.guard.tell.plain import plain

if TYPE_CHECKING:
    from seawall.agent.evidence_writer import EvidenceWriter


class AgentPace(NamedTuple):
    """Its times, in seconds."""

    look: float = 0.5
    busy_look: float = 0.25
    silent: float = 120.0
    """So long after its start or the guard's last page it says that the guard is silent."""
    impaired: float = 30.0
    """So long the guard has to be blind, or to be unable to kill: a self-test may fail once."""
    calm: float = 15.0
    """So long nothing has to run out before the conditions are False again."""
    conditions: float = 10.0
    """Between two patches of the node's status."""
    report: float = 10.0
    urgent: float = 2.0
    """Between two reports where somebody was proved meanwhile."""
    slow_after: float = 600.0
    """A shortage that lasts is told as seldom as ``slow``."""
    slow: float = 60.0
    event: float = 60.0
    """Between two Events of one reason."""
    warm: float = 45.0
    """An idle connection is closed by the API server after 90."""
    near: float = 600.0
    """So long a node that is merely near its limit keeps its connection."""
    retry_most: float = 5.0
    refused: float = 60.0
    """So long nothing is sent of a kind that was refused."""
    hello: float = 30.0
    """Between two attempts to ask the API server what an earlier agent has left."""


_REFUSED: Final = frozenset((
    HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE, HTTPStatus.UNPROCESSABLE_ENTITY,
))  # fmt: skip
_RETRY_MOST_SECONDS: Final = 30.0
_PEACE: Final = "False  []"
"""Of which nothing is told."""
RESULTS: Final = ("delivered", "refused", "failed")
COUNTED: Final = (api.REPORT, api.CONDITIONS, api.EVENT)
Say = Callable[[str], None]


class NodeAgent:
    """``turn`` again and again; it returns how long to wait."""

    def __init__(
        self, watch: PageWatch, connection: "ApiConnection | EvidenceWriter", say: Say,
        pace: AgentPace | None = None, orders: ClusterOrders | None = None,
    ) -> None:  # fmt: skip
        self.orders = orders
        """None: it brings the guard nothing."""
        self.pace = pace or AgentPace()
        self.watch, self.connection, self.outbox = watch, connection, Outbox()
        self.node = connection.node
        self.counts = {(kind, result): 0 for kind in COUNTED for result in RESULTS}
        self.turned_at = self._began = time.monotonic()
        self.last_death: dict[str, Any] | None = None
        """What the black box says of the boot before; told with each report."""
        self._say = say
        self._said = ""
        self._is_death_due = False
        self._is_hello_due = True
        self._latched: dict[str, NodeCondition] = {}
        self._guard: NodeCondition | None = None
        self._wrong_since: float | None = None
        self._trouble_since: float | None = None
        self._calm_since: float | None = None
        self._peace_since: float | None = None
        self._near_since: float | None = None
        self._culprits: list[Culprit] = []
        self._trouble_page: GuardPage | None = None
        self._told, self._guard_told = _PEACE, ""
        self._due = dict.fromkeys(("report", "urgent", "conditions", "event", "hello"), 0.0)
        self._retry_at, self._failures = 0.0, 0
        self._refused_until: dict[str, float] = {}
        self._sequence = 0
        self._events = 0

    # --- one turn -----------------------------------------------------------------------------

    def turn(self, now: float) -> float:
        """Seconds to wait until the next."""
        self.turned_at = now
        self.watch.look(now)
        page = self.watch.current(now)
        self._judge_guard(page, now)
        if page is not None:
            self._judge_memory(page, now)
        self._state_conditions(page)
        self._report(now)
        if now >= self._retry_at:
            self._talk(page, now)
        return self.pace.busy_look if self._is_busy else self.pace.look

    @property
    def _is_busy(self) -> bool:
        return self._trouble_since is not None or self._near_since is not None

    def died_before(self, last_death: dict[str, Any]) -> None:
        """What the black box says of the boot before this one."""
        self.last_death, self._is_death_due = last_death, True
        self._is_hello_due, self._due["hello"] = True, 0.0

    # --- what is wrong ------------------------------------------------------------------------

    def _judge_guard(self, page: GuardPage | None, now: float) -> None:
        problem = None if page is None else guard_problem(page)
        if page is None and min(now - self._began, self.watch.age(now)) >= self.pace.silent:
            self._guard = silent_guard(self.watch.silence(now))
            return
        if page is None:
            return
        if problem is None:
            self._guard, self._wrong_since = None, None
            return
        self._wrong_since = now if self._wrong_since is None else self._wrong_since
        is_lasting = now - self._wrong_since >= self.pace.impaired
        if is_lasting or self._trouble_since is not None or self._guard is not None:
            self._guard = problem

    def _judge_memory(self, page: GuardPage, now: float) -> None:
        is_near = page.state in BUSY
        if is_near:
            self._near_since = now if self._near_since is None else self._near_since
            self._peace_since = None
        else:
            self._near_since = None
            self._peace_since = now if self._peace_since is None else self._peace_since
            if page.is_seen and now - self._peace_since >= self.pace.calm:
                self.watch.forget_proof()
        if is_running_out(page):
            self._calm_since = None
            self._trouble_since = now if self._trouble_since is None else self._trouble_since
            self._trouble_page = page
            self._culprits = culprits_of(page, self.watch.proved(now))
            for one in problems_of(page, self._culprits):
                self._latched[one.type] = one
        elif self._trouble_since is not None and page.is_seen:
            self._calm_since = now if self._calm_since is None else self._calm_since
            if now - self._calm_since >= self.pace.calm:
                self._trouble_since = self._calm_since = None
                self._latched, self._culprits = {}, []

    def _state_conditions(self, page: GuardPage | None) -> None:
        """All that ever were a problem, as they are now."""
        wanted: dict[str, NodeCondition] = {}
        known = self.outbox.sent.keys() | self._latched.keys()
        for kind in OF_MEMORY:
            if kind not in known:
                continue
            if page is None and self._guard is not None:
                wanted[kind] = not_known(kind, self._guard.message)
            elif kind in self._latched:
                wanted[kind] = self._latched[kind]
            elif page is not None and page.is_seen:
                wanted[kind] = healthy(kind)
        if self._guard is not None:
            wanted[GUARD_IMPAIRED] = self._guard
        elif GUARD_IMPAIRED in self.outbox.sent and page is not None:
            wanted[GUARD_IMPAIRED] = healthy(GUARD_IMPAIRED)
        self.outbox.want(wanted, time.time())

    # --- what is told -------------------------------------------------------------------------

    def _report(self, now: float) -> None:
        """At once what is new, again while memory runs out, once when all is well."""
        guard = self._guard.reason if self._guard else ""
        is_trouble = self._trouble_since is not None
        proved = sorted(one.pod_uid for one in self._culprits if one.is_proved)
        page = self.watch.current(now)
        braked = " braked" if page is not None and page.is_braked else ""
        state = f"{is_trouble} {guard} {proved}{braked}"
        is_new = state != self._told
        if page is None and self._told.endswith(" braked") and not guard:
            is_new = False  # it may only be late
        if not is_new and (not is_trouble or self._calm_since is not None):
            return
        if now < self._due["urgent" if is_new else "report"]:
            return
        self._told = state
        is_slow = is_trouble and now - (self._trouble_since or now) > self.pace.slow_after
        self._due["report"] = now + (self.pace.slow if is_slow else self.pace.report)
        self._due["urgent"] = now + self.pace.urgent
        self.outbox.is_refresh_due = self.outbox.is_refresh_due or is_trouble
        self.outbox.add_report(self._report_now())
        self._note_events(now)

    def _report_now(self) -> bytes:
        self._sequence = max(self._sequence + 1, int(time.monotonic() * 10))
        report: dict[str, Any] = {
            "at": api_time(time.time()), "sequence": self._sequence, "bootID": self.watch.boot_id,
            "bootedAt": api_time(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)),
            "guard": guard_part(self.watch.current(time.monotonic())),
        }  # fmt: skip
        if self._trouble_since is not None and self._trouble_page is not None:
            report["distress"] = distress_part(self._trouble_page, self._culprits)
        if self.last_death is not None:
            report["lastDeath"] = self.last_death
        return report_body(self.node, report)

    def _note_events(self, now: float) -> None:
        """Of memory one a minute at most, of the guard one each time that it is another problem."""
        memory, guard = self._latched.get(MEMORY_SHORT), self._guard
        if memory is not None and now >= self._due["event"]:
            self._due["event"] = now + self.pace.event
            self._add_event(memory)
        if guard is not None and guard.reason != self._guard_told:
            self._add_event(guard)
        self._guard_told = guard.reason if guard is not None else ""

    def _add_event(self, condition: NodeCondition) -> None:
        self._events += 1
        now = time.time()
        name = event_name(self.node, now, self._events)
        self.outbox.add_event(event_body(self.node, name, condition, now, self.node))

    # --- talking ------------------------------------------------------------------------------

    def _talk(self, page: GuardPage | None, now: float) -> None:
        try:
            self._deliver(now)
            if self._is_hello_due and now >= self._due["hello"]:
                self._say_hello(now)
            is_asking = self.orders is not None
            if self.orders is not None and self.orders.turn(now, page, is_busy=self._is_busy):
                self._well()
            self._keep_warm(page, now, is_asking=is_asking)
        except ApiProblem as problem:
            self._failed(str(problem))

    def _deliver(self, now: float) -> None:
        """Reports first: they name the culprit."""
        box = self.outbox
        while box.reports and self._may_send(api.REPORT, now):
            if not self._send(api.REPORT, box.reports[0]):
                break
            box.reports.popleft()
        conditions = box.conditions()
        if conditions and now >= self._due["conditions"] and self._may_send(api.CONDITIONS, now):
            body = conditions_body(conditions, box.since, time.time())
            if self._send(api.CONDITIONS, body):
                self._due["conditions"] = time.monotonic() + self.pace.conditions
                box.took_conditions(conditions)
        while box.events and self._may_send(api.EVENT, now):
            if not self._send(api.EVENT, box.events[0]):
                break
            box.events.popleft()

    def _keep_warm(self, page: GuardPage | None, now: float, *, is_asking: bool) -> None:
        """Open from when headroom leaves peace; closed when all is told, where nobody asks for
        orders every now and then: to open it anew each time would take more.
        """
        near = self._near_since is not None and now - self._near_since < self.pace.near
        is_wanted = self._trouble_since is not None or near
        if not is_wanted:
            is_idle = now - self.connection.used_at >= self.pace.report
            if self.connection.is_open and not is_asking and (self.outbox.is_empty or is_idle):
                self.connection.close()
            return
        if page is not None and not self.connection.is_open:
            self.connection.prepare()
        elif now - self.connection.used_at >= self.pace.warm:
            self.connection.send(api.WARM)

    def _may_send(self, kind: str, now: float) -> bool:
        return now >= self._retry_at and now >= self._refused_until.get(kind, 0.0)

    def _send(self, kind: str, body: bytes) -> bool:
        """Whether it need not be sent again."""
        answer = self.connection.send(kind, body)
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            self.counts[kind, "delivered"] += 1
            self._well()
            return True
        if answer.status == HTTPStatus.CONFLICT and kind == api.EVENT:
            return True  # sent before, and its answer was lost
        words = f"{kind}: {_refusal(answer)}"
        if answer.status in _REFUSED:
            self.counts[kind, "refused"] += 1
            self._refused_until[kind] = time.monotonic() + self.pace.refused
            self._tell(f"refused for {self.pace.refused:.0f} s: {words}")
            return kind == api.EVENT
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self.connection.forget_token()
        self.counts[kind, "failed"] += 1
        self._failed(words, answer.retry_after_seconds)
        return False

    def _failed(self, words: str, after: float = 0.0) -> None:
        """Later again: after 1, 2, 4, 5 s, or when the server says."""
        self._failures += 1
        pause = min(self.pace.retry_most, 2.0 ** min(self._failures - 1, 8))
        pause = min(_RETRY_MOST_SECONDS, max(after, pause))
        share = 0.8 + os.urandom(1)[0] / 640  # not all nodes at once
        self._retry_at = time.monotonic() + pause * share
        self._tell(f"{self.connection.where} was not reached: {words}")

    def _well(self) -> None:
        self._failures = 0
        if self._said:
            self._tell("")
            self._say(f"{self.connection.where} takes what is told again")

    def _tell(self, words: str) -> None:
        """In the log, once."""
        if words != self._said:
            self._said = words
            if words:
                self._say(words)

    # --- what an earlier agent has left -------------------------------------------------------

    def _say_hello(self, now: float) -> None:
        """Reads, and writes nothing: which of our conditions are True, which death was told."""
        self._due["hello"] = now + self.pace.hello
        answer = self.connection.send(api.NODE)
        if answer.status != HTTPStatus.OK:
            self._tell(f"node {self.node}: {_refusal(answer)}")
            return
        for kind, one in _conditions_in(answer.body).items():
            if one.status != "False":
                self.outbox.sent.setdefault(kind, one)
        if self._is_death_due and self.last_death is not None:
            told = self.connection.send(api.OLD_REPORT)
            if told.status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
                self._tell(f"report of {self.node}: {_refusal(told)}")
                return
            if _death_in(told.body) != self.last_death.get("bootID"):
                self.outbox.add_report(self._report_now())
            self._is_death_due = False
        self._is_hello_due = False
        self._well()


def _conditions_in(body: bytes) -> dict[str, NodeCondition]:
    """Ours, of a node."""
    found = _object(body).get("status")
    rows = found.get("conditions") if isinstance(found, dict) else None
    made = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("type") in TYPES:
            status, reason = str(row.get("status")), str(row.get("reason"))
            made[str(row["type"])] = NodeCondition(str(row["type"]), status, reason, "")
    return made


def _death_in(body: bytes) -> str:
    """Boot id of the death that a NodeReport tells of; empty: none."""
    report = _object(body).get("report")
    last = report.get("lastDeath") if isinstance(report, dict) else None
    return str(last.get("bootID", "")) if isinstance(last, dict) else ""


def _refusal(answer: ApiAnswer) -> str:
    """The server's words, on one line."""
    message = _object(answer.body).get("message")
    return f"{answer.status} {plain(str(message), 300) if message else ''}".rstrip()


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
