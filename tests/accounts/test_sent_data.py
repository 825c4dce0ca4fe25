"""Who sent data holds none of it: it lies in the queue of who does not read.

A server answered 6,000 sockets of a client that never read, and looked like a hog of 2 GiB.
"""

from dataclasses import replace

import pytest
from tests.views.test_memory_who_views import KEPT, MIB, ROW

from seawall.accounts.claim import Claim
from seawall.accounts.claim_sources.traced_claims import claims
from seawall.accounts.claims.shadow_charge import overrun_of, sum_of
from seawall.accounts.tracing.page_kinds import kind_of_stack
from seawall.accounts.tracing.trace_rows import TraceSum
from seawall.accounts.tracing.traced_memory import Traced
from seawall.accounts.watch.claims_file_words import claim_of
from seawall.watcher.claim_rows import explained_by

UDP = ("skb_page_frag_refill", "__ip_append_data", "ip_make_skb", "udp_sendmsg", "__sys_sendto")
TCP = ("skb_page_frag_refill", "sk_page_frag_refill", "tcp_sendmsg_locked", "tcp_sendmsg")
RING = ("alloc_one_pg_vec_page", "packet_set_ring", "packet_setsockopt")


def traced(frames: tuple[str, ...]) -> Claim:
    """What ``memory --who`` and ``pods`` say of a GiB that was taken in that way."""
    kind = kind_of_stack(frames, ())
    row = replace(ROW, kind=kind.kind, what=kind.what, stack=frames)
    (claim,) = claims(Traced(TraceSum(has_trace=True, rows=(row,), counted={}))).claims
    return claim


def kept(frames: tuple[str, ...]) -> Claim:
    """And of what the watcher has learned, for the guard and in its file."""
    kind = kind_of_stack(frames, ())
    return claim_of(replace(KEPT, kind=kind.kind, what=kind.what, stack=frames), 2.0)


@pytest.mark.parametrize("claim_from", [traced, kept])
@pytest.mark.parametrize("frames", [UDP, TCP])
def test_who_sent_it_is_charged_with_none_of_it(claim_from: object, frames: object) -> None:
    claim = claim_from(frames)  # type: ignore[operator]
    assert (claim.confidence, claim.bytes, claim.least_bytes) == ("bound", 0, 0)
    assert claim.most_bytes >= 512 * MIB
    assert "in whose queues the data lies" in claim.missing
    outside = sum_of([claim])
    assert (outside.bytes, outside.certain_bytes) == (0, 0)
    assert overrun_of(200 * MIB, 256 * MIB, outside) is None
    assert explained_by([claim]) == 0


@pytest.mark.parametrize("claim_from", [traced, kept])
def test_a_ring_stays_with_whom_it_was_traced_to(claim_from: object) -> None:
    """Its sockets may be in flight by now: no second source shows another holder."""
    claim = claim_from(RING)  # type: ignore[operator]
    assert claim.confidence == "traced"
    assert claim.least_bytes >= 500 * MIB
    assert sum_of([claim]).certain_bytes >= 500 * MIB


@pytest.mark.parametrize("frames", [UDP, TCP])
def test_what_is_sent_is_certain_of_nobody(frames: tuple[str, ...]) -> None:
    kind = kind_of_stack(frames, ())
    assert (kind.kind, kind.is_certain) == ("socket", False)
    assert kind.what == "data sent into sockets"
