# SPDX-License-Identifier: Apache-2.0
"""Makes the writes of one deed in order, and remembers what became of each.

In a dry run each request is sent all the same, marked so that the API server keeps nothing: what
it would refuse, it refuses.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from seawall.cluster.acts.act_events import ActEvent
from seawall.cluster.changes.change_patch import ChangeOutcome, FieldChange
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.object_change import ObjectAddress
from seawall.cluster.kube.kube_client import KubeClient, KubeProblem, KubeRefusal, Object
from seawall.cluster.pages.cluster_act_page import (
    ActName,
    ActOutcome,
    ActStep,
    ClusterActPage,
    StepResult,
    StepWhat,
)
from seawall.findings.blindness import NotSeen

MANAGER: Final = "seawall-cli"
"""Field manager of what people write."""
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_MESSAGE_LETTERS: Final = 200
_RESULTS: Final[dict[ChangeOutcome, StepResult]] = {
    ChangeOutcome.WRITTEN: "done", ChangeOutcome.AS_WANTED: "already",
    ChangeOutcome.CHANGED_SINCE: "left", ChangeOutcome.TAKEN_OVER: "already",
    ChangeOutcome.GONE: "already", ChangeOutcome.REFUSED: "refused",
}  # fmt: skip


_Step = tuple[StepWhat, str, str, str]
"""What is done, to which kind, namespace and name."""


class ActDesk:
    """For one run of one verb."""

    def __init__(self, client: KubeClient, source: str, *, is_dry_run: bool) -> None:
        self.client, self.source, self.is_dry_run = client, source, is_dry_run
        self.now_seconds = client.server_seconds()
        self.writer = ChangeWriter(client, MANAGER, is_dry_run=is_dry_run)
        self.steps: list[ActStep] = []
        self.follow: Callable[[ActStep], None] | None = None
        """Is told of each step as soon as it is made."""
        self.unseen: list[NotSeen] = []
        self._is_broken_off = False

    @property
    def has_trouble(self) -> bool:
        """A step was refused, or a field was left."""
        return any(one.result in ("refused", "left") for one in self.steps)

    @property
    def outcome(self) -> ActOutcome:
        """Of all steps together."""
        if self.has_trouble or self._is_broken_off:
            return "partly"
        return "planned" if self.is_dry_run else "done"

    def person(self) -> str:
        """Whom the API server takes us for; empty: it does not say."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        try:
            answer = self.client.create(_REVIEWS, body)
        except KubeRefusal as refusal:
            self.unseen.append(NotSeen("who you are", short(refusal), ""))
            return ""
        user = (answer.get("status") or {}).get("userInfo") or {}
        return str(user.get("username") or "")[:253]

    def create(self, path: str, body: Object, words: str = "") -> Object | None:
        """None: refused, which stands in the steps."""
        metadata = body.get("metadata") or {}
        step: _Step = ("create", str(body.get("kind")), "", str(metadata.get("name", "")))
        try:
            made = self.client.create(path, body, is_dry_run=self.is_dry_run)
        except KubeRefusal as refusal:
            self._add(step, "refused", short(refusal))
            return None
        self._add(step, self._made, words)
        return made

    def merge(self, path: str, kind: str, name: str, body: Object, *,
              before: Object | None = None, words: str = "") -> bool:  # fmt: skip
        """Each leaf of ``body`` is a step; ``before``: the object as it stands.  False: refused."""
        leaves = [
            (field, value) for field, value in _leaves(body)
            if not field.startswith("/metadata/resourceVersion")
        ]  # fmt: skip
        try:
            self.client.merge(path, body, manager=MANAGER, is_dry_run=self.is_dry_run)
        except KubeRefusal as refusal:
            result: StepResult = "refused"
            words = short(refusal)
        else:
            result = self._made
        for field, value in leaves:
            old = _value_of(before or {}, field)
            if old is None and value is None:
                continue
            self._add(("patch", kind, "", name), result, words, field, old, value)
        return result != "refused"

    def delete(self, path: str, kind: str, name: str, uid: str, words: str) -> bool:
        """False: it was refused, which stands in the steps."""
        step: _Step = ("delete", kind, "", name)
        try:
            self.client.delete(path, uid=uid, is_dry_run=self.is_dry_run)
        except KubeRefusal as refusal:
            if refusal.status == 404:
                self._add(step, "already", "it is not there any more")
                return True
            self._add(step, "refused", short(refusal))
            return False
        self._add(step, self._made, words)
        return True

    def plan(
        self, what: StepWhat, kind: str, name: str, path: str, before: Any, after: Any
    ) -> None:
        """A step of a dry run that cannot be tried: its object is not there yet."""
        self._add((what, kind, "", name), "planned", "", path, before, after)

    def undone(self, target: ObjectAddress, fields: Iterable[FieldChange]) -> None:
        """Steps of an undo."""
        for one in fields:
            record = one.record
            result = _RESULTS[one.outcome]
            if result == "done":
                result = self._made
            where = (target.kind.kind, target.namespace, target.name)
            if record is None:
                self._add(("patch", *where), result, one.words)
            else:
                self._add(("patch", *where), result, one.words, record.path, record.after,
                          record.before)  # fmt: skip

    def tell(self, events: Iterable[ActEvent]) -> None:
        """Events: who may write none is told so once, and nothing else fails of it."""
        refused = ""
        for number, event in enumerate(events):
            body = event.document(self.now_seconds, number)
            try:
                self.client.create(event.path, body, is_dry_run=self.is_dry_run)
            except KubeRefusal as refusal:
                refused = refused or short(refusal)
        if refused:
            self.unseen.append(NotSeen("Events of it", refused, "create events"))

    def broke_off(self, act: ActName, problem: KubeProblem) -> ClusterActPage:
        """The API server went away in the middle: what was written until then."""
        self._is_broken_off = True
        words = f"{short(problem)}; whether the last write was carried out is not known"
        unseen = [NotSeen("the rest of it", words, ""), *self.unseen]
        return ClusterActPage(
            act=act, source=self.source, as_of_unix_seconds=self.now_seconds, subject="",
            headline=f"{act} BROKE OFF: the API server does not answer",
            is_dry_run=self.is_dry_run, outcome=self.outcome, steps=tuple(self.steps),
            effects=("run it again: what is written already is left as it is",),
            unseen=tuple(unseen),
        )  # fmt: skip

    @property
    def _made(self) -> StepResult:
        return "planned" if self.is_dry_run else "done"

    def _add(self, step: "_Step", result: StepResult, words: str, path: str = "",
             before: Any = None, after: Any = None) -> None:  # fmt: skip
        what, kind, namespace, name = step
        made = ActStep(
            what, kind, namespace, name, path, _json(before), _json(after), result, words
        )
        self.steps.append(made)
        if self.follow is not None:
            self.follow(made)


def short(problem: object) -> str:
    """One line of it, at most 200 letters."""
    return " ".join(str(problem).split())[:_MESSAGE_LETTERS]


def _leaves(body: Object, path: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in body.items():
        below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, below)
        else:
            yield below, value


def _value_of(document: Any, path: str) -> Any:
    for word in path.split("/")[1:]:
        name = word.replace("~1", "/").replace("~0", "~")
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)
