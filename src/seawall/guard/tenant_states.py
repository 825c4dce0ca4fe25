# SPDX-License-Identifier: Apache-2.0
"""Every state of the whole node that a tenant can write, and why it decides over nobody else.

Distrust, pauses, kills a minute, looks at the node, budgets: what one workload does moves them, and
all workloads are judged by them.  So each is kept for a workload (path and inode) or a tenant, or
it is said here what it costs others at the most.  A new slot of a class below, or a new bound of
the modules below, without a row here fails ``tests/guard/test_tenant_table.py``; ``test`` is the
one in which a tenant fills or poisons the state alone while another's workload misbehaves.

A tenant is a pod's namespace, a user below whose manager a cgroup is, else the workload itself
(``judge/cooldown.py``).
"""

from typing import Final, NamedTuple

_DUEL: Final = "tests/guard/test_tenant_states.py::"
_NOBODY: Final = "nobody but the owner"


class TenantState(NamedTuple):
    """One state, or several that are written together."""

    names: tuple[str, ...]
    """Slots of ``owner``."""
    writer: str
    """What a tenant does that moves it."""
    key: str
    """What it is kept for; ``node``: for all."""
    why: str
    """Why another's fate does not hang on it, or what it costs him at the most."""
    test: str = ""
    """Where that is tried; empty: a tenant cannot write it, or it decides nothing."""


STATES: Final[dict[str, tuple[TenantState, ...]]] = {
    "Cooldown": (
        TenantState(
            ("doubts",), "hands its sockets on before it is killed", "workload and kind",
            "whose end gave back too little is not believed again; all others are",
            _DUEL + "test_rings_that_are_handed_on_before_the_kill_make_nobody_else_safe",
        ),
        TenantState(
            ("_kills", "tenants"), "has its own killed one after the other", "node, and tenant",
            "who is proved goes still, if none of its tenant went in this minute",
            _DUEL + "test_kills_spent_on_a_tenants_own_leave_one_for_others",
        ),
        TenantState(
            ("_off_until",), "is killed at its own limit, or ends, again and again", "node",
            "half a second, and not again for three",
            _DUEL + "test_kills_and_exits_without_end_hold_nobody_up",
        ),
        TenantState(
            ("_kept",), "hands its memory on before it is killed", "node",
            "nobody goes by order alone, which spares innocents; who is proved goes",
            _DUEL + "test_what_did_not_come_back_keeps_no_proved_one_safe",
        ),
        TenantState(
            ("done", "emptied", "barred"), "is acted on", "workload",
            "4,096 of each: as many kills have to come before one is forgotten",
        ),
    ),
    "LookHistory": (
        TenantState(
            ("falls", "fell_seconds", "peak"), "takes uncounted memory and gives it back", "node",
            "of what is claimed of others so much is not believed until the next claims, no more;"
            " who swings by more than a culprit holds beyond its limit can delay its proof",
            _DUEL + "test_who_takes_and_gives_back_makes_no_other_claim_void",
        ),
        TenantState(
            ("moved_from", "moved_seconds"), "the same", "node",
            "claims older than 5 s are no evidence; the watcher tells new ones in less",
            _DUEL + "test_who_takes_and_gives_back_makes_no_other_claim_void",
        ),
        TenantState(
            ("looks",), "gives a twentieth of the node back, again and again", "node",
            "the newest look is taken anew, the three older ones stay",
            _DUEL + "test_looks_that_are_taken_again_forgive_nobody",
        ),
        TenantState(
            ("gone",), "lets groups end that held much", "node",
            "a newcomer of the last minute may be excused as the source; at its own limit and"
            " after that minute it is not",
            _DUEL + "test_groups_that_depart_excuse_nobody_who_is_over_its_limit",
        ),
        TenantState(
            ("lately", "late", "claimed_seconds"), "is claimed of", "workload",
            "the claims of one say nothing of another",
        ),
        TenantState(
            ("residual_least",), "holds memory that nobody can see", "node",
            "nobody goes by order for what is nobody's; who is proved goes",
            _DUEL + "test_what_did_not_come_back_keeps_no_proved_one_safe",
        ),
        TenantState(("first_seconds",), _NOBODY, "node", "when the guard began"),
    ),
    "DepartedGroups": (
        TenantState(("_held",), "lets groups end", "workload", "see LookHistory.gone"),
    ),
    "Descent": (
        TenantState(
            ("_least", "_least_before", "_least_seconds", "is_falling", "newer", "older"),
            "makes the headroom fall and rise", "node",
            "accuses one more who took most since then; no other proof needs it",
            _DUEL + "test_who_takes_and_gives_back_makes_no_other_claim_void",
        ),
    ),
    "DescentMoment": (
        TenantState(
            ("headroom", "is_claimed", "residual", "seconds", "unclaimed"), "the same", "node",
            "see Descent",
        ),
        TenantState(("most",), "is claimed of", "workload", "see Descent"),
    ),
    "OverLimitState": (
        TenantState(
            ("entries",), "is over its limit with many workloads", "workload",
            "512, and the smallest makes room for a larger one; who is to be ended comes before"
            " who is only told of, and a tenant that had no kill in this minute before the others",
            _DUEL + "test_many_that_are_over_their_limits_hide_nobody",
        ),
        TenantState(("said",), "is told of", "workload", "when a report is repeated"),
        TenantState(
            ("ranked_seconds",), "is over its limit", "node", "whether a report has a ranking"
        ),
        TenantState(("opted_in",), _NOBODY, "node", "the configuration"),
    ),
    "SuspectRests": (
        TenantState(
            ("cleared", "resting"), "stands still on suspicion", "workload",
            "2 s, and that one not again for 10 s",
            _DUEL + "test_suspects_that_stand_still_in_turn_hold_up_no_proof",
        ),
    ),
    "PolicyState": (
        TenantState(
            ("suspicion",), "may hold what is nobody's", "node",
            "while one stands still nobody goes by order, which that memory forbids anyway; who is"
            " proved goes",
            _DUEL + "test_suspects_that_stand_still_in_turn_hold_up_no_proof",
        ),
        TenantState(
            ("cases",), "gives its memory back slowly after it was killed", "node",
            "another proved one waits for verify_seconds at the most",
            _DUEL + "test_memory_that_comes_back_slowly_holds_up_no_other",
        ),
        TenantState(
            ("low_since", "short_since", "shortage", "is_believed", "rest"),
            "takes and gives back", "node",
            "of this tick, or since when the node is short: who is proved waits for neither",
            _DUEL + "test_who_takes_and_gives_back_makes_no_other_claim_void",
        ),
        TenantState(
            ("refusal", "refusal_said", "refusal_since", "told", "number"), "is decided on", "node",
            "when and under which number something is said; decides nothing",
        ),
        TenantState(
            ("boot", "settings", "own_cgroup", "protection", "hold", "window", "descent",
             "overruns", "rests"),
            _NOBODY, "node", "the configuration, and the states above",
        ),
    ),
    "Protection": (
        TenantState(
            ("own", "protect", "scope", "scope_words", "unprotect"), _NOBODY, "node",
            "the configuration",
        ),
    ),
    "Judge": (
        TenantState(("_mind",), _NOBODY, "node", "the states above"),
        TenantState(
            ("_wanted",), "grows with many groups", "node",
            "32 that grew, the most first, and 16 by size and order: of uncounted memory no detail"
            " is needed",
            _DUEL + "test_many_that_are_over_their_limits_hide_nobody",
        ),
        TenantState(("_state", "_short_seconds"), "makes the node short", "node", "words"),
    ),
}  # fmt: skip
"""By the class that has the slots."""
LOOKS: Final[dict[str, tuple[TenantState, ...]]] = {
    "host/packet_rings/ring_sockets.py": (
        TenantState(
            ("_LOOK_SECONDS",), "has millions of descriptors", "node, in turns of workloads",
            "a process comes after as many descriptors as its own workload has before it; what was"
            " left out comes next, who was found is looked at first, and who has so many is named",
            "tests/host/test_descriptor_turns.py::test_each_workload_has_its_turn_before_a_flood",
        ),
        TenantState(
            ("_SOCKETS_TOLD_MOST", "_TRIVIAL_BYTES"), "has many sockets with rings", "node",
            "the largest are told, and the sum of the others",
        ),
    ),
    "host/packet_rings/socket_search.py": (
        TenantState(
            ("_HOLDERS_TOLD_MOST",), "shares a socket by forks", "socket and cgroup",
            "one is enough to say whose it is",
        ),
        TenantState(("_KNOWN_MOST",), "holds many sockets", "node", "found anew in each look"),
    ),
    "host/socket_queue_probe.py": (
        TenantState(
            ("_LOOK_SECONDS",), "has millions of sockets", "node, in shares of namespaces",
            "a namespace has its share of the time at least, the smallest come first; then as for"
            " packet rings",
            "tests/host/test_socket_queues_live.py::"
            "test_a_namespace_with_many_sockets_hides_no_other",
        ),
        TenantState(
            ("_QUEUES_MOST",), "has many full queues", "node, in shares of namespaces",
            "holders of the largest of each are looked for, the others are a sum of nobody's",
        ),
        TenantState(
            ("_ROWS_MOST", "_PIDS_MOST", "_PIECE_BYTES"), "shares sockets by forks", "node",
            "the largest are told, the others are a sum of nobody's",
        ),
    ),
    "host/packet_rings/maps.py": (
        TenantState(
            ("_LOOK_SECONDS", "_TOLD_MOST"), "has mappings without end", "node",
            "OPEN: asked only of sockets that nobody has open; a trace proves those all the same",
        ),
    ),
    "host/packet_rings/namespaces.py": (
        TenantState(
            ("NAMESPACES_MOST",), "makes network namespaces", "node",
            "OPEN: who is behind 4,096 others is not asked, and it is said; a trace proves his",
        ),
    ),
    "host/packet_rings/diag.py": (
        TenantState(
            ("SOCKETS_MOST", "_BUFFER_BYTES", "_WAIT_SECONDS"), "has many packet sockets",
            "namespace", "of the host's own: said, and a trace proves what is taken",
        ),
        TenantState(("_ERRNO_MOST",), _NOBODY, "node", "the kernel's"),
    ),
    "host/packet_rings/processes.py": (
        TenantState(("_HIDDEN_MOST",), "hides from who may not look", "node", "not from root"),
    ),
    "host/driver_files.py": (
        TenantState(
            ("_BUDGET_SECONDS",), "has millions of descriptors", "node, in turns of workloads",
            "as for packet rings",
            "tests/host/test_descriptor_turns.py::test_each_workload_has_its_turn_before_a_flood",
        ),
        TenantState(
            ("_DESCRIPTORS_KEPT", "_DMABUFS_MOST"), "has a device open often", "process, and node",
            "OPEN: 65,536 dma-bufs are told, whoever has them; 64 descriptors of a device",
        ),
    ),
    "host/driver_mappings.py": (
        TenantState(
            ("_BUDGET_SECONDS", "_BYTES_MOST"), "has mappings without end", "node",
            "small processes are asked first. OPEN: many large ones of one workload",
        ),
    ),
}  # fmt: skip
"""By module below ``src/seawall``: bounds of what is looked at, which a tenant can fill."""
OF_ONE: Final = frozenset(
    {"Look", "Overrun", "DecisionCase", "CaseTarget", "Suspicion"}
)  # fmt: skip
"""Classes of one look, workload or decision: kept in a state above, which says by what key."""
