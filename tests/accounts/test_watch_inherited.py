"""What an earlier watcher learned proves something for two minutes, and is told on after that."""

from dataclasses import replace

import pytest
from tests.accounts.watch_film import BOOT, ERROR, GIB, MIB, place, row

from seawall.accounts.watch.tracing_pace import LedgerMoment
from seawall.accounts.watch.watched_claims import merged
from seawall.accounts.watch.watching import INHERITED_SECONDS, MemoryWatch, fitted_to
from seawall.readings.saved_claims import SavedClaims
from seawall.views.memory_watch_lines import claim_words

LEARNED = place(0).unix_seconds


def kept(size: int = GIB, residual: int = 3 * GIB) -> SavedClaims:
    """By a watcher that was killed in the middle of an emergency."""
    watch = MemoryWatch()
    watch.see(LedgerMoment(0.0, residual - size - 200 * MIB, ERROR))
    assert watch.see(LedgerMoment(1.0, residual - size, ERROR)) == ("arm",)
    watch.learn(LedgerMoment(2.0, residual, ERROR), [row("culprit", size)], place())
    file = watch.saved_claims(LedgerMoment(2.0, residual, ERROR), place())
    assert [claim.least_bytes for claim in file.claims] == [size]
    return file


def leasts(watch: MemoryWatch) -> list[int]:
    return [claim.least_bytes for claim in watch.claims]


def see(watch: MemoryWatch, seconds: float, residual: int = 3 * GIB, error: int = ERROR) -> None:
    watch.see(LedgerMoment(seconds, residual, error))


def test_a_guard_that_is_back_within_seconds_has_its_proof_for_two_minutes() -> None:
    watch = MemoryWatch(kept(), now_unix_seconds=LEARNED + 3)
    see(watch, 500.0)
    assert leasts(watch) == [GIB]
    see(watch, 500.0 + INHERITED_SECONDS - 3)
    assert leasts(watch) == [GIB]
    see(watch, 500.0 + INHERITED_SECONDS - 2)
    (claim,) = watch.claims
    assert (claim.least_bytes, claim.bytes, claim.most_bytes) == (0, GIB, GIB)


@pytest.mark.parametrize("now", [LEARNED + 86_400, LEARNED - 30, LEARNED + 121, 0.0])
def test_a_day_later_or_by_a_clock_that_jumped_it_proves_nothing(now: float) -> None:
    watch = MemoryWatch(kept(), now_unix_seconds=now)
    for seconds in (0.0, 31.0, 60.0, 600.0):
        see(watch, seconds)
        assert leasts(watch) == [0]
    assert [claim.bytes for claim in watch.claims] == [GIB]


def test_a_watcher_that_is_not_told_the_time_learns_it_with_the_first_place() -> None:
    watch = MemoryWatch(kept())
    see(watch, 7.0)
    assert leasts(watch) == [0]
    written = watch.saved_claims(LedgerMoment(7.0, 3 * GIB, ERROR), place(5.0))
    assert [claim.least_bytes for claim in written.claims] == leasts(watch) == [GIB]
    late = MemoryWatch(kept())
    see(late, 7.0)
    assert (
        late.saved_claims(LedgerMoment(7.0, 3 * GIB, ERROR), place(500.0)).claims[0].least_bytes
        == 0
    )


def test_from_one_watcher_to_the_next_it_does_not_get_younger() -> None:
    file = kept()
    for number in range(1, 5):
        watch = MemoryWatch(file, now_unix_seconds=LEARNED + 50 * number)
        see(watch, 0.0)
        assert leasts(watch) == [GIB if 50 * number <= INHERITED_SECONDS else 0]
        file = watch.saved_claims(LedgerMoment(1.0, 3 * GIB, ERROR), place(50.0 * number + 1))
        assert file.written_at_unix_seconds == LEARNED + 50 * number + 1


def test_what_is_learned_beside_it_does_not_make_it_younger() -> None:
    (old,) = kept().claims
    new = replace(old, bytes=MIB, least_bytes=MIB, learned_at_unix_seconds=LEARNED + 100)
    assert [c.learned_at_unix_seconds for c in merged([new, old])] == [LEARNED]
    proves_nothing = replace(old, least_bytes=0)
    assert [c.learned_at_unix_seconds for c in merged([new, proves_nothing])] == [LEARNED + 100]


def test_what_a_lost_tracer_told_is_as_old_as_its_last_look() -> None:
    watch = MemoryWatch()
    watch.see(LedgerMoment(0.0, GIB, ERROR))
    watch.see(LedgerMoment(1.0, GIB + 100 * MIB, ERROR))
    rows = [row("culprit", GIB)]
    watch.learn(LedgerMoment(2.0, 2 * GIB + 100 * MIB, ERROR), rows, place(2.0))
    watch.drop_tracer()
    see(watch, 60.0, 2 * GIB + 100 * MIB)
    assert leasts(watch) == [GIB]
    see(watch, 3.0 + INHERITED_SECONDS, 2 * GIB + 100 * MIB)
    assert leasts(watch) == [0]


def test_a_fall_that_is_less_than_the_error_takes_from_what_is_certain() -> None:
    """On a node of 128 CPUs the ledger may be off by more than what was claimed."""
    error, base = 440 * MIB, 3 * GIB - 400 * MIB
    watch = MemoryWatch(kept(400 * MIB), now_unix_seconds=LEARNED + 3)
    see(watch, 0.0, error=error)
    assert leasts(watch) == [400 * MIB]
    see(watch, 10.0, base + 150 * MIB, error)
    assert leasts(watch) == [150 * MIB]
    see(watch, 20.0, base, error)
    assert leasts(watch) in ([], [0])


def test_what_proves_nothing_any_more_is_told_as_long_as_nothing_fell() -> None:
    watch = MemoryWatch(kept(10 * MIB), now_unix_seconds=LEARNED + 600)
    see(watch, 0.0)
    assert [(claim.bytes, claim.least_bytes) for claim in watch.claims] == [(10 * MIB, 0)]
    see(watch, 1.0, 3 * GIB - 2 * MIB)
    assert watch.claims == ()  # within the error: it may be gone


def test_a_reader_says_when_it_reads() -> None:
    file = kept()
    assert file.boot_id == BOOT
    assert [c.least_bytes for c in fitted_to(file, 3 * GIB, ERROR, LEARNED + 3)] == [GIB]
    assert [c.least_bytes for c in fitted_to(file, 3 * GIB, ERROR, LEARNED + 300)] == [GIB]
    assert [c.least_bytes for c in fitted_to(file, 3 * GIB, ERROR, LEARNED + 1000)] == [0]
    assert [c.least_bytes for c in fitted_to(file, 3 * GIB, ERROR)] == [0]


def test_who_sent_data_holds_none_of_it_by_the_file() -> None:
    """Nor after a watcher that comes later has written it again; a ring beside it is held."""
    watch = MemoryWatch()
    watch.see(LedgerMoment(0.0, GIB, ERROR))
    watch.see(LedgerMoment(1.0, 2 * GIB, ERROR))
    rows = [replace(row("server", GIB), kind="socket", what="socket data"), row("rings", GIB)]
    watch.learn(LedgerMoment(2.0, 4 * GIB, ERROR), rows, place())
    file = watch.saved_claims(LedgerMoment(2.0, 4 * GIB, ERROR), place())
    later = MemoryWatch(file, now_unix_seconds=LEARNED + 3)
    see(later, 5.0, 4 * GIB)
    again = later.saved_claims(LedgerMoment(5.0, 4 * GIB, ERROR), place(5.0))
    for written in (file, again):
        told = {claim.workload or claim.holder: claim for claim in written.claims}
        sent, held = told["server"], told["rings"]
        assert (sent.bytes, sent.least_bytes) == (GIB, 0)
        assert sent.source.count("sent, and held by whose queues it lies in: ") == 1
        assert "sent" not in held.source
        assert held.least_bytes > 0
        assert claim_words(sent).startswith(f"{sent.holder} sent 1.0 GiB, and who does not read")
        assert f"{held.holder} holds 1.0 GiB" in claim_words(held)
