# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster controller --slurm``: slurmctld is asked, deaths are judged, jobs are held.

Each look is one turn: nodes and jobs as of now, what is new since the last look, what the judge
says, what the policy lets be done.  A look that fails changes nothing but the words of why.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from seawall.cluster.actor.action_brakes import SilenceStorm
from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.slurm.dead_node_jobs import DeadNodeJobs, strata_of
from seawall.cluster.slurm.evidence_folder import EvidenceFolder, slurm_user_id
from seawall.cluster.slurm.hold_plan import (
    HoldStep,
    activation,
    held_targets,
    hold_plan,
    planned_quarantines,
)
from seawall.cluster.slurm.job_levers import JobLevers, rows_of
from seawall.cluster.slurm.job_quarantine import EXPIRED, OPEN_RESULTS, JobHold, JobQuarantine
from seawall.cluster.slurm.silent_nodes import NodeTurn, NodeTurnEvent, SilentNodes
from seawall.cluster.slurm.slurm_death import SlurmDeath
from seawall.cluster.slurm.slurm_ledger import SlurmLedger, death_name
from seawall.cluster.slurm.slurm_policy import SlurmPolicy
from seawall.cluster.slurm.slurm_reader import SlurmReader, SlurmView
from seawall.cluster.slurm.slurm_rows import AccountedJob, SlurmJobRow, slurm_seconds
from seawall.cluster.slurm.slurm_state import SlurmStateFolder
from seawall.cluster.slurm.turn_sink import HoldObstacle, SlurmTurn, TurnSink
from seawall.host.slurm_commands import SlurmCommandProblem, SlurmCommands
from seawall.views.terminal import plain

LOG: Final = logging.getLogger("seawall.slurm")
POLL_SECONDS: Final = 30.0
QUICK_SECONDS: Final = 5.0
"""Between two looks while a node is silent: once slurmctld gives it up, the next task of an array
starts within seconds elsewhere."""
ACCOUNTED_BEFORE_SECONDS: Final = 120.0
STOP_SECONDS: Final = 0.5
"""So late it hears that it is to end."""
OUTAGE_LEAST: Final = 3
"""Nodes that fall silent together."""
GAP_SECONDS: Final = 900.0
"""A time in which nobody watched is no time without deaths."""


class SlurmObserver:
    """``run`` until ``stop``; one process has one."""

    def __init__(
        self, commands: SlurmCommands, folder: SlurmStateFolder, policy: SlurmPolicy,
        poll_seconds: float = POLL_SECONDS, sink: TurnSink | None = None,
    ) -> None:  # fmt: skip
        self._commands, self._folder, self._policy = commands, folder, policy
        self._poll, self._sink = poll_seconds, sink
        self._reader = SlurmReader(commands)
        self._lives = SilentNodes()
        self._on_nodes = DeadNodeJobs()
        self._outage = SilenceStorm(OUTAGE_LEAST, "together")
        self._evidence = EvidenceFolder(policy.evidence)
        self._is_stopped = False
        """A plain flag, for the reason that ``ControllerLoop`` has one."""
        self._said: set[str] = set()
        self._ledger = SlurmLedger()
        self._watched_since = 0.0
        self._is_recalled = False

    def stop(self) -> None:
        """From a signal: ends after the turn."""
        self._is_stopped = True

    def run(self) -> None:
        """UsageProblem: the folder is not to be written."""
        while not self._is_stopped:
            began = time.monotonic()
            self.turn()
            pause = min(self._poll, QUICK_SECONDS) if self._lives.awaits_end else self._poll
            until = max(began + pause, time.monotonic() + 0.2)
            while not self._is_stopped and (rest := until - time.monotonic()) > 0.0:
                time.sleep(min(rest, STOP_SECONDS))

    def turn(self) -> None:
        """One look, and what follows from it."""
        try:
            view = self._reader.view()
        except SlurmCommandProblem as problem:
            self._say(f"no answer of Slurm, nobody is held: {problem}", logging.WARNING)
            with self._folder.change() as state:
                state.message = f"no answer of Slurm: {plain(str(problem))[:200]}"
            if self._sink is not None:
                self._sink.silence()
            return
        self._recall(view)
        deaths = self._see(view)
        self._hear(view)
        obstacle = self._obstacle(view)
        with self._folder.change() as state:
            state.cluster = self._reader.settings.get("ClusterName", "")
            state.watched_since, state.polled_at = self._watched_since, view.at_seconds
            state.is_dry_run = self._policy.dry_run
            state.silent, state.message = self._lives.document(), obstacle.words
            state.evidence = self._evidence.folder
            self._ledger.forget_before(view.at_seconds)
            state.deaths = list(self._ledger.deaths)
            before = dict(state.quarantines)
            state.quarantines = self._judged(before, view)
            for name in [name for name in state.quarantines if name not in before]:
                self._tell_new(state.quarantines[name])
        for death in deaths:
            names = ", ".join(sorted({f"{job.unit} of {job.user}" for job in death.jobs}))
            self._say(
                f"{death.node} died ({death.kind.value}) with {len(death.jobs)} jobs: "
                f"{names[:200] or 'none'}", logging.WARNING, is_once=False,
            )  # fmt: skip
        self._release_expired(view)
        if not obstacle.words:
            self._act(view)
        if self._sink is not None:
            alive = sum(not row.is_over for row in view.jobs.values())
            state = self._folder.read()
            self._sink.look(SlurmTurn(view.at_seconds, obstacle, deaths, alive, state))

    # --- what was seen ---------------------------------------------------------------------

    def _recall(self, view: SlurmView) -> None:
        """At the first look: what stands in the folder."""
        if self._is_recalled:
            return
        state = self._folder.read()
        now, polled = view.at_seconds, state.polled_at
        since = state.watched_since
        if since is None:
            vouched = self._policy.watched_since_seconds
            since = now if vouched is None else min(vouched, now)
        elif polled is not None and now - polled > GAP_SECONDS:
            since += now - polled
        self._watched_since = since
        self._ledger = SlurmLedger(state.deaths)
        self._lives.recall(state.silent, now - polled if polled is not None else float("inf"))
        self._is_recalled = True
        LOG.info("watches %d nodes of %s", len(view.nodes),
                 plain(self._reader.settings.get("ClusterName", "?")))  # fmt: skip

    def _see(self, view: SlurmView) -> list[SlurmDeath]:
        events = self._lives.see(view.nodes, view.at_seconds)
        self._on_nodes.see(view.nodes, view.jobs, self._lives.silent)
        accounted, unseen = self._accounted(events)
        deaths = []
        for event in events:
            name = event.row.name
            if event.turn is NodeTurn.SILENT:
                self._outage.fall(name, event.since_seconds)
            elif event.turn is NodeTurn.DEATH:
                death = self._death(event, view, accounted, unseen)
                self._ledger.add(death)
                self._on_nodes.forget(name)
                deaths.append(death)
            elif event.turn is NodeTurn.RETRACTED:
                if self._ledger.retract(name, event.since_seconds) is not None:
                    LOG.warning("%s answers again without a boot: it did not die", name)
            elif event.turn in (NodeTurn.PLANNED, NodeTurn.UNSEEN):
                LOG.info("%s is gone, and that accuses nobody: %s", name, event.turn.value)
        return deaths

    def _hear(self, view: SlurmView) -> None:
        """What dead nodes left in the shared folder."""
        uid = slurm_user_id(self._reader.settings.get("SlurmUser", ""))
        for death in self._evidence.hear(self._ledger.deaths, view.at_seconds, uid):
            self._ledger.add(death)
            words = death.record_words or "; ".join(
                f"{one.kind.value} {' '.join(one.pods)}".rstrip() for one in death.record or ()
            )
            self._say(f"{death.node}: its record: {words or 'it accuses nobody'}", logging.INFO)

    def _accounted(
        self, events: list[NodeTurnEvent]
    ) -> tuple[tuple[AccountedJob, ...], tuple[str, ...]]:
        """Of slurmdbd, where a node died and there is one."""
        since = [one.since_seconds for one in events if one.turn is NodeTurn.DEATH]
        if not since:
            return (), ()
        try:
            return self._reader.accounted(min(since) - ACCOUNTED_BEFORE_SECONDS), ()
        except SlurmCommandProblem as problem:
            return (), (f"jobs by sacct: {plain(str(problem))[:160]}",)

    def _death(
        self, event: NodeTurnEvent, view: SlurmView, accounted: tuple[AccountedJob, ...],
        unseen: tuple[str, ...],
    ) -> SlurmDeath:  # fmt: skip
        node, since = event.row.name, event.since_seconds
        strata = strata_of(view.nodes)
        stratum = strata[node]
        living = [
            name
            for name, row in view.nodes.items()
            if name != node and strata[name] == stratum and not row.is_down and not row.is_silent
            and not row.is_planned
        ]  # fmt: skip
        rows = self._on_nodes.on_dead(node, since, view.jobs, accounted)
        moment = since
        if event.kind is DeathKind.SILENT:
            moment = self._ledger.moment(since, self._reader.round_seconds(self._poll))
        return SlurmDeath(
            death_name(node, since), node, stratum,
            sum(1 for one in strata.values() if one == stratum), moment, view.at_seconds,
            event.kind, self._reader.switches().get(node, ""),
            self._on_nodes.loads(node, living),
            self._on_nodes.death_jobs(rows, self._reader.digest), unseen,
            slurm_seconds(event.boot),
        )  # fmt: skip

    # --- what follows ----------------------------------------------------------------------

    def _obstacle(self, view: SlurmView) -> HoldObstacle:
        """Why nobody is held just now; empty: the view is whole, and this is the place to act."""
        age = time.time() - view.at_seconds
        most = self._policy.brakes.view_age_seconds
        if age > most or age < -1.0:
            words = f"the look took {age:.0f} s, and {most:.0f} s are allowed"
            return HoldObstacle("view", words)
        if view.unread_jobs:
            return HoldObstacle("view", f"{view.unread_jobs} jobs could not be read")
        round_seconds = self._reader.round_seconds(self._poll)
        if words := self._outage.why(view.at_seconds, len(view.nodes), round_seconds):
            return HoldObstacle("storm", f"{words}: power or network, and no job")
        try:
            words = self._reader.is_beside_controller()
        except SlurmCommandProblem as problem:
            words = f"who is in charge cannot be asked: {plain(str(problem))[:160]}"
            return HoldObstacle("api", words)
        return HoldObstacle("elsewhere" if words else "", words)

    def _judged(
        self, before: Mapping[str, JobQuarantine], view: SlurmView
    ) -> dict[str, JobQuarantine]:
        policy = self._policy
        suspicions = self._ledger.suspicions(
            self._watched_since, policy.false_per_thousand_node_years, policy.protected_users,
            policy.protected_accounts,
        )  # fmt: skip
        after = planned_quarantines(suspicions, self._ledger, before, policy, view.at_seconds)
        return {name: checked_holds(one, view.jobs) for name, one in after.items()}

    def _act(self, view: SlurmView) -> None:
        state = self._folder.read()
        for one in list(state.quarantines.values()):
            if one.state in ("Proposed", "Suspected") and not self._activated(one):
                continue
            if one.state == "Released":
                continue
            self._hold_all(one.name, view)

    def _activated(self, one: JobQuarantine) -> bool:
        """Whether it is Active from now on."""
        with self._folder.change() as state:
            fresh = state.quarantines.get(one.name)
            if fresh is None or fresh.state not in ("Proposed", "Suspected"):
                return False
            why = activation(fresh, state.quarantines.values(), self._policy, time.time())
            if self._policy.dry_run and not why:
                why = "dry run: its jobs would be held now"
            if why:
                if fresh.state == "Proposed":
                    self._say(f"{one.name} is not held: {why}", logging.INFO)
                    state.quarantines[one.name] = replace(fresh, why_not=why)
                return False
            now = time.time()
            state.quarantines[one.name] = replace(
                fresh, state="Active", activated_seconds=now, why_not="",
                expires_seconds=now + self._policy.hold_seconds,
            )  # fmt: skip
        LOG.warning("%s: active, %d nodes died with it", one.name, len(one.nodes))
        return True

    def _hold_all(self, name: str, view: SlurmView) -> None:
        """By what is there now: since the look a job may have ended, or been released."""
        try:
            jobs = self._reader.jobs_now()
        except SlurmCommandProblem as problem:
            self._say(f"{name}: jobs cannot be read: {problem}", logging.WARNING)
            return
        state = self._folder.read()
        one = state.quarantines.get(name)
        if one is None or one.state != "Active":
            return
        if self._policy.approval_of(one.account) == "observe":
            self._say(f"{name} is not held: the policy only observes", logging.WARNING)
            return
        held = held_targets(state.quarantines.values())
        plan = hold_plan(one, jobs, self._policy, held, self._reader.digest)
        for words in plan.refusals:
            self._say(f"{name}: {words}", logging.WARNING)
        levers = self._levers()
        for step in plan.steps:
            if self._is_stopped:
                return
            if time.time() - view.at_seconds > self._policy.brakes.view_age_seconds:
                return  # the next look goes on
            if self._policy.dry_run:
                self._dry(name, step)
                continue
            ended = levers.hold(name, step, rows_of(step.target, jobs))
            if ended is None:
                return
            words = f": {plain(ended.words)}" if ended.words else ""
            LOG.warning("%s: %s of %s %s%s", name, step.lever, step.target, ended.result, words)

    def _dry(self, name: str, step: HoldStep) -> None:
        self._say(f"{name}: dry run: {step.lever} of {step.target}", logging.WARNING)

    def _release_expired(self, view: SlurmView) -> None:
        for name, one in self._folder.read().quarantines.items():
            if one.state == "Active" and view.at_seconds >= one.expires_seconds:
                for hold in release_quarantine(
                    self._folder, self._levers(), name, view.jobs, EXPIRED
                ):
                    LOG.warning("%s: %s %s", name, hold.target, hold.result)

    def _levers(self) -> JobLevers:
        return JobLevers(
            self._commands, self._folder, self._reader.settings.get("PriorityType", "")
        )

    def _tell_new(self, one: JobQuarantine) -> None:
        LOG.warning(
            "%s: %s, score %.1f of %.1f, nodes %s", one.name, one.verdict, one.score_log10,
            one.threshold_log10, ", ".join(map(plain, one.nodes[-4:])),
        )  # fmt: skip

    def _say(self, words: str, level: int, *, is_once: bool = True) -> None:
        """The same words once, until others were said 1,000 times."""
        words = plain(words)
        if is_once and words in self._said:
            return
        if len(self._said) > 1000:
            self._said.clear()
        self._said.add(words)
        LOG.log(level, "%s", words)


def release_quarantine(
    folder: SlurmStateFolder, levers: JobLevers, name: str, jobs: Mapping[int, SlurmJobRow],
    released_by: str,
) -> list[JobHold]:  # fmt: skip
    """End it, then take its holds off, each written down; what became of each."""
    with folder.change() as state:
        one = state.quarantines[name]
        one = replace(one, state="Released", released_by=released_by)
        state.quarantines[name] = one
    ended = []
    for hold in one.open_holds():
        after = levers.release(one, hold, jobs)
        with folder.change() as state:
            if name in state.quarantines:
                state.quarantines[name] = state.quarantines[name].with_hold(after)
        ended.append(after)
    return ended


def checked_holds(one: JobQuarantine, jobs: Mapping[int, SlurmJobRow]) -> JobQuarantine:
    """What became of its holds: who ended, who was released by somebody else, whether a write that
    broke off was made.
    """
    for hold in one.holds:
        if hold.lever != "hold" or hold.result not in OPEN_RESULTS:
            continue
        rows = [row for row in rows_of(hold.target, jobs) if not row.is_over]
        is_held = any(row.priority == 0 for row in rows)
        if not rows:
            now = replace(hold, result="gone", words="it ended")
        elif hold.result == "done" and not is_held:
            now = replace(hold, result="changed", words="somebody released it since")
        elif hold.result == "begun":  # it was free when that was written down
            words = "" if is_held else "it was not done"
            now = replace(hold, result="done" if is_held else "refused", words=words)
        else:
            continue
        one = one.with_hold(now)
    return one
