# SPDX-License-Identifier: Apache-2.0
"""One decision from its first order until it is known what came back."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from seawall.actions.orders import Order, Step, Target
from seawall.guard.judge.cooldown import tenant_of
from seawall.guard.judge.sentences import plain
from seawall.guard.judge.sources import sources_of
from seawall.guard.tick_facts import Group, Node, UserSlice
from seawall.guard.verdict import Trigger

Phase: TypeAlias = Literal["terminating", "frozen", "killed", "clamped", "observed"]

ENOUGH_SHARE = 0.8
LITTLE_SHARE = 0.5
"""Of what was foretold: from the first on it came back; below the second it did not."""
RISING_SHARE = 0.02
EXTENDED = 10.0
"""While it still comes back the deadline moves, up to so many times ``verify_seconds``."""

NO_PARTS: Mapping[str, Group] = {}


class CaseTarget:
    """One group that a decision is against, as it was then; no reference to the group itself."""

    __slots__ = ("hard", "is_failed", "predicted", "sources", "taken", "target", "whole")

    def __init__(self, group: Group, certain: int, part: Group | None = None) -> None:
        """``part``: of the user whom ``group`` is; only that is acted on."""
        self.target = Target(group.path, group.inode, plain(group.name))
        """What the orders are for."""
        self.whole: Target | None = None
        """The user whom it is a part of, and who was judged; None: it is no part."""
        if part is not None:
            self.whole = self.target
            name = f"{self.whole.name} ({plain(part.name)})"
            self.target = Target(part.path, part.inode, name)
            group, certain = part, min(certain, part.outside.certain_bytes)
        self.taken = group.taken_bytes
        self.hard = group.hard_bytes
        self.predicted = self.hard + certain
        self.is_failed = False
        self.sources = sources_of(group) if certain else ()
        """The kinds of evidence of its uncounted memory; none where that is not certain."""

    @property
    def judged(self) -> Target:
        """The workload: a user, where only a part is acted on."""
        return self.whole or self.target

    def group_in(self, groups: Mapping[str, Group]) -> Group | None:
        """What is acted on, if it is there still."""
        group = groups.get(self.judged.path)
        if group is None or group.inode != self.judged.inode or self.whole is None:
            return group
        for part in group.parts if isinstance(group, UserSlice) else ():
            if part.path == self.target.path:
                return part
        return None

    def returned_of_taken(self, groups: Mapping[str, Group]) -> int:
        """Of what only its end gives back: all when it is gone."""
        group = self.group_in(groups)
        if group is None or group.inode != self.target.inode:
            return self.hard
        return max(0, min(self.hard, self.taken - group.taken_bytes))

    def is_emptied(self, groups: Mapping[str, Group]) -> bool:
        """What only its end gives back came back."""
        return not self.is_failed and self.returned_of_taken(groups) >= ENOUGH_SHARE * self.hard

    def has_departed(self, groups: Mapping[str, Group]) -> bool:
        """Its cgroup is gone or another one, or it is empty."""
        group = self.group_in(groups)
        return group is None or group.inode != self.target.inode or group.processes == 0


class DecisionCase:
    """One decision until it is known what came back; bounded, without cycles."""

    __slots__ = (
        "aims", "comparable", "counts_swap", "deadline", "decision", "floor", "headroom",
        "is_asked", "is_left", "most", "most_seconds", "need", "others", "others_then", "phase",
        "possible_then", "relief", "residual", "seconds", "sources", "tenants", "trigger",
        "workloads",
    )  # fmt: skip

    def __init__(
        self, decision: str, trigger: Trigger, node: Node, chosen: Sequence[tuple[Group, int]],
        parts: Mapping[str, Group] = NO_PARTS,
    ) -> None:  # fmt: skip
        """``parts``: by the path of users who are chosen, of whom only that is acted on."""
        self.decision = decision
        self.trigger: Trigger = trigger
        self.phase: Phase = "killed"
        self.aims = tuple(
            CaseTarget(group, certain, parts.get(group.path)) for group, certain in chosen
        )
        self.workloads = len({group.pod or group.path for group, _ in chosen})
        """Containers of one pod go together."""
        self.sources = tuple(dict.fromkeys(s for aim in self.aims for s in aim.sources))
        self.tenants = tuple(dict.fromkeys(tenant_of(group) for group, _ in chosen))
        self.need = 0
        self.floor = 0
        self.relief = 0
        """Who was frozen goes on from here on; over the floor for those who are proved: that they
        stand still lifts the node over the floor, and that they go on takes it back there."""
        self.counts_swap = True
        """Both are meant with what swap gives."""
        self.is_asked = False
        """SIGTERM was enough: nobody was killed."""
        self.is_left = False
        """Processes were still there at the deadline: the memory waits for them, no driver."""
        self.deadline = 0.0
        self.start(node)

    def start(self, node: Node) -> None:
        """What comes back is counted from here."""
        self.others: int | None = None
        """Uncounted memory of all others, by the first claims made since; None: none came yet."""
        self.others_then: int | None = None
        """And by the last ones before; None: not looked at yet."""
        self.possible_then = 0
        """The most that they may have held, by those."""
        self.seconds = node.seconds
        self.headroom = node.headroom_bytes
        self.comparable = node.comparable_bytes
        """Text that is read in again is nobody's gain, and text that is dropped nobody's loss."""
        self.residual = node.residual_bytes
        self.most = 0
        self.most_seconds = node.seconds

    def _taken_by_others(self, node: Node, groups: Mapping[str, Group]) -> tuple[int, int]:
        """Uncounted memory, meanwhile: by claims made since, and at most, if they went on as
        they did; or if they hold by now what he held (a socket that was handed on).
        """
        age, meant = node.claims_seconds, {aim.judged.path for aim in self.aims}
        if age is None:
            return 0, 0
        held, possible, slope, claimed = 0, 0, 0.0, node.seconds - age
        for path, group in groups.items():
            if path not in meant:
                held += group.outside.certain_bytes
                possible += group.outside.most_bytes
                slope += max(0.0, group.outside_slope)
        if self.others_then is None or claimed < self.seconds:
            self.others_then = held - int(slope * max(0.0, claimed - self.seconds))
            self.possible_then = possible
        if claimed >= self.seconds and self.others is None:
            self.others = held
        least = 0 if self.others is None else max(0, held - self.others)
        most = held + int(slope * age) - self.others_then
        return least, max(least, most, possible - self.possible_then)

    @property
    def by_order(self) -> bool:
        """Nobody was proved; of the proved the relief is over the floor."""
        return self.trigger == "node_short" and self.relief <= self.floor

    def is_under(self, mark: int, node: Node) -> bool:
        """Whether less is left than ``mark``, the floor or the relief."""
        return (node.headroom_bytes if self.counts_swap else node.memory_bytes) < mark

    def is_eaten(self, node: Node) -> bool:
        """No more is left than then, although some came back: others take it as it comes."""
        return node.comparable_bytes <= self.comparable

    @property
    def names(self) -> str:
        """All of it, the first by name."""
        rest = len(self.aims) - 1
        return self.aims[0].target.name + (f" and {rest} more" if rest else "")

    @property
    def part_words(self) -> str:
        """Which parts of users it is only; empty: nobody in it is a user."""
        parts = [aim.target.name for aim in self.aims if aim.whole]
        return f" (no more than {', '.join(parts)})" if parts else ""

    @property
    def predicted(self) -> int:
        """Bytes that should come back."""
        return sum(aim.predicted for aim in self.aims if not aim.is_failed)

    def orders(self, step: Step) -> tuple[Order, ...]:
        """The same step for all of it."""
        return tuple(
            Order(self.decision, step, aim.target, self.trigger, aim.predicted)
            for aim in self.aims
            if not aim.is_failed
        )

    def returned(self, node: Node, groups: Mapping[str, Group]) -> int:
        """What came back: of the headroom, or of its charge and uncounted memory.

        The second counts where others take at once what comes back, in their charge or uncounted.
        """
        found = max(node.headroom_bytes - self.headroom, self._own(node, groups)[0], 0)
        if found >= self.most + RISING_SHARE * self.predicted:
            self.most, self.most_seconds = found, node.seconds
        return found

    def returned_at_most(self, node: Node, groups: Mapping[str, Group]) -> int:
        """If others took meanwhile all the uncounted memory that they may have taken."""
        return max(node.headroom_bytes - self.headroom, self._own(node, groups)[1], 0)

    def _own(self, node: Node, groups: Mapping[str, Group]) -> tuple[int, int]:
        """Of its charge and uncounted memory, with what others took of that: least and most."""
        own = sum(aim.returned_of_taken(groups) for aim in self.aims)
        if self.residual is None or node.residual_bytes is None:
            return own, own
        back = self.residual - node.residual_bytes
        least, most = self._taken_by_others(node, groups)
        return own + max(0, back + least), own + max(0, back + most)

    def is_over(self, returned: int, now: float, verify_seconds: float) -> bool:
        """It came back, or the time for it has passed and it does not rise any more."""
        if returned >= ENOUGH_SHARE * self.predicted:
            return True
        if now < self.deadline:
            return False
        is_rising = now - self.most_seconds < verify_seconds / 3
        return not is_rising or now >= self.seconds + EXTENDED * verify_seconds

    def wait_longer(self, seconds: float, verify_seconds: float) -> None:
        """In which nothing could come back."""
        self.deadline = min(self.deadline + seconds, self.seconds + EXTENDED * verify_seconds)

    def is_little(self, returned: int) -> bool:
        """Less than half of what was foretold."""
        return returned < LITTLE_SHARE * self.predicted
