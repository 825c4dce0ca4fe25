# SPDX-License-Identifier: Apache-2.0
"""``seawall guard replay --json``."""

from typing import Final, NamedTuple

from seawall.actions.orders import Order
from seawall.guard.tell.plain import plain
from seawall.replay.incidents import Incident, WhatIf, in_peace, incidents
from seawall.replay.replay_results import (
    BootReplay,
    BoxReplay,
    DifferentDecision,
    JournalDecision,
    MissingDecision,
    ReplayResult,
    ReplayVictim,
)
from seawall.replay.replay_text import changes, is_after, what_if_words
from seawall.views.documents.document_fields import Document, one_of, shown, spread

_TEXT_MOST: Final = 1000


class BesideJournal(NamedTuple):
    """A boot judged again with the settings of then."""

    boot: BootReplay


class KernelKillLine(NamedTuple):
    """A line of the kernel's log."""

    unix_seconds: float
    line: str


class OtherPolicy(NamedTuple):
    """What another policy makes of an incident."""

    incident: Incident
    what_if: WhatIf


class VictimOfBoth(NamedTuple):
    """Acted on then and with the other settings."""

    victim: ReplayVictim
    earlier_seconds: float
    """Below zero: later."""


class SparedVictim(NamedTuple):
    """Acted on then only."""

    victim: ReplayVictim
    is_after_parting: bool
    """Then it came after the two stories had parted: not known."""


def exact_ticks(boot: BootReplay) -> int:
    """Ticks of stretches without a gap."""
    return sum(stretch.ticks for stretch in boot.stretches)


def changed_settings(boot: BootReplay) -> list[str]:
    """What the other settings change, in words."""
    return [] if boot.other is None else changes(boot.as_live.settings, boot.other.settings)


def as_live(boot: BootReplay) -> BesideJournal:
    """Judged again with the settings of then, beside the journal of the black box."""
    return BesideJournal(boot)


def kernel_kills(incident: Incident) -> list[KernelKillLine]:
    """Whom the kernel's own OOM killer ended meanwhile."""
    return [KernelKillLine(*row) for row in incident.kernel_kills]


def what_if(incident: Incident) -> OtherPolicy | None:
    """Null without --config."""
    return None if incident.what_if is None else OtherPolicy(incident, incident.what_if)


def both(one: OtherPolicy) -> list[VictimOfBoth]:
    """Acted on then and with the other settings."""
    return [
        VictimOfBoth(would, was.unix_seconds - would.unix_seconds)
        for was, would in one.what_if.both
    ]


def spared(one: OtherPolicy) -> list[SparedVictim]:
    """Acted on then only."""
    return [SparedVictim(victim, is_after(victim, one.what_if)) for victim in one.what_if.spared]


def sentences(one: OtherPolicy) -> list[str]:
    """The answer first, then who, then what cannot be known."""
    return list(what_if_words(one.incident, one.what_if))


def _plain(words: str) -> str:
    return plain(words, _TEXT_MOST)


REPLAY: Final = Document(
    name="guard-replay",
    verb="seawall guard replay --json",
    about="A black box judged once more: as then, and with other settings; taken_at is the end of "
    "the record. Additive within the major number.",
    pages=(BoxReplay,),
    shapes={
        BoxReplay: shown("blackbox=path config=config_path:filled notes boots"),
        BootReplay: (
            *shown("boot_id from=first_unix_seconds:time to=last_unix_seconds:time ticks"),
            *shown(exact_ticks, "mode=as_live.settings.mode", changed_settings, as_live),
            *shown(incidents, in_peace, "notes"),
        ),
        BesideJournal: (
            *shown("decisions=boot.live:count same=boot.compared.same:count"),
            *shown(
                "different=differ not_judged=missing not_in_the_journal=extra", of="boot.compared"
            ),
        ),
        DifferentDecision: (*spread("here"), *shown("why then")),
        MissingDecision: (*spread("then"), *shown("why")),
        Incident: (
            *shown("from=first_unix_seconds:time to=last_unix_seconds:time", of="stretch"),
            *shown("first_frame=first last_frame=last ends", of="stretch"),
            *shown("decisions=results", kernel_kills, what_if),
        ),
        KernelKillLine: shown("unix_seconds:3 line"),
        OtherPolicy: (
            *shown("kind=what_if.kind decisions=what_if.results", both, spared),
            *shown("beside parts_unix_seconds:3", of="what_if"),
            *shown(sentences),
        ),
        VictimOfBoth: (*spread("victim"), *shown("earlier_seconds:3")),
        SparedVictim: (*spread("victim"), *shown("is_after_parting")),
        ReplayVictim: (
            *shown("cgroup=path name"),
            *shown("step", turn=one_of("freeze terminate kill clamp")),
            *shown("unix_seconds:3 decision"),
        ),
        ReplayResult: (
            *shown("frame=number unix_seconds:3 mode is_exact"),
            *shown("decision trigger is_report need_bytes", of="verdict"),
            *shown("refused sentence", of="verdict", turn=_plain),
            *shown("orders=verdict.orders"),
        ),
        Order: (
            *shown("step"),
            *shown("name cgroup=path", of="target", turn=_plain),
            *shown("inode=target.inode why predicted_bytes limit_bytes"),
        ),
        JournalDecision: shown("frame=number unix_seconds:3 decision sentence"),
    },
)
