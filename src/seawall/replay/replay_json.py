# SPDX-License-Identifier: Apache-2.0
"""``seawall guard replay --json``: ``seawall.guard-replay/1`` (``schemas/guard-replay.json``)."""

import json
from typing import Any

from seawall.guard.tell import decision_lines
from seawall.replay.incidents import Incident, WhatIf, in_peace, incidents
from seawall.replay.replay_results import (
    BootReplay,
    BoxReplay,
    JournalDecision,
    ReplayResult,
    ReplayVictim,
)
from seawall.replay.replay_text import changes, is_after, what_if_words
from seawall.views.document import taken_at


def document(head: dict[str, Any], replayed: BoxReplay) -> dict[str, Any]:
    """As the schema has it."""
    return {
        **head,
        "blackbox": replayed.path,
        "config": replayed.config_path or None,
        "notes": replayed.notes,
        "boots": [_boot(replayed, boot) for boot in replayed.boots],
    }


def _boot(replayed: BoxReplay, boot: BootReplay) -> dict[str, Any]:
    found, policy = boot.compared, replayed.policy
    return {
        "boot_id": boot.boot_id,
        "from": taken_at(boot.first_unix_seconds),
        "to": taken_at(boot.last_unix_seconds),
        "ticks": boot.ticks,
        "exact_ticks": sum(stretch.ticks for stretch in boot.stretches),
        "mode": boot.as_live.settings.mode,
        "changed_settings": [] if policy is None else changes(boot.as_live.settings, policy),
        "as_live": {
            "decisions": len(boot.live),
            "same": len(found.same),
            "different": [
                {**_decision(one), "why": differs, "then": _then(live)}
                for live, one, differs in found.differ
            ],
            "not_judged": [{**_then(live), "why": why} for live, why in found.missing],
            "not_in_the_journal": [_decision(one) for one in found.extra],
        },
        "incidents": [_incident(one) for one in incidents(boot)],
        "in_peace": [_decision(one) for one in in_peace(boot)],
        "notes": boot.notes,
    }


def _incident(incident: Incident) -> dict[str, Any]:
    stretch = incident.stretch
    return {
        "from": taken_at(stretch.first_unix_seconds),
        "to": taken_at(stretch.last_unix_seconds),
        "first_frame": stretch.first,
        "last_frame": stretch.last,
        "ends": stretch.ends,
        "decisions": [_decision(one) for one in incident.found],
        "kernel_kills": [
            {"unix_seconds": round(unix, 3), "line": text} for unix, text in incident.kernel_kills
        ],
        "what_if": None if incident.what_if is None else _what_if(incident, incident.what_if),
    }


def _what_if(incident: Incident, found: WhatIf) -> dict[str, Any]:
    parts = found.parts_unix_seconds
    return {
        "kind": found.kind,
        "decisions": [_decision(one) for one in found.found],
        "both": [
            {**_victim(would), "earlier_seconds": round(was.unix_seconds - would.unix_seconds, 3)}
            for was, would in found.both
        ],
        "spared": [
            {**_victim(victim), "is_after_parting": is_after(victim, found)}
            for victim in found.spared
        ],
        "beside": [_victim(victim) for victim in found.beside],
        "parts_unix_seconds": None if parts is None else round(parts, 3),
        "sentences": list(what_if_words(incident, found)),
    }


def _decision(one: ReplayResult) -> dict[str, Any]:
    """As in the journal, without the ranking."""
    stamp = decision_lines.Stamp(0.0, "", one.mode)
    line = json.loads(decision_lines.verdict_line(one.verdict, stamp))
    kept = ("decision", "trigger", "is_report", "need_bytes", "refused", "sentence", "orders")
    return {
        "frame": one.number,
        "unix_seconds": round(one.unix_seconds, 3),
        "mode": one.mode,
        "is_exact": one.is_exact,
        **{name: line[name] for name in kept},
    }


def _then(live: JournalDecision) -> dict[str, Any]:
    return {
        "frame": live.number,
        "unix_seconds": round(live.unix_seconds, 3),
        "decision": live.decision,
        "sentence": live.sentence,
    }


def _victim(victim: ReplayVictim) -> dict[str, Any]:
    return {
        "cgroup": victim.path,
        "name": victim.name,
        "step": victim.step,
        "unix_seconds": round(victim.unix_seconds, 3),
        "decision": victim.decision,
    }
