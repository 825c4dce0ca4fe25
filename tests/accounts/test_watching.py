"""Films of the watcher: what it keeps, what it lets fall, what a restart leaves of it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.accounts.watch_film import ERROR, GIB, MIB, Film, place, row, sizes

from seawall.accounts.watch.tracing_pace import LedgerMoment
from seawall.accounts.watch.watching import MemoryWatch, fitted_to


def grown(*, base: int = 2 * GIB) -> Film:
    """A culprit that takes 64 MiB at every look, 640 MiB of it before eyes."""
    film = Film(base)
    film.tick(3)
    for _ in range(12):
        film.take("culprit", 64 * MIB)
        film.tick()
    film.tick(6)
    return film


def test_in_peace_it_does_nothing() -> None:
    film = Film()
    for number in range(600):
        film.noise = 15 * MIB * (number % 2)
        film.tick()
    assert film.steps == []
    assert film.watch.claims == ()


def test_it_arms_on_growth_and_claims_what_it_saw_being_taken() -> None:
    film = grown()
    assert film.steps[0][1] == "arm"
    # 768 MiB were taken, 64 MiB of them before it was armed: these stay unexplained.
    assert sizes(film.watch.claims) == {"culprit": 704}
    (claim,) = film.watch.claims
    assert claim.least_bytes == claim.bytes == claim.most_bytes == 704 * MIB


def test_when_it_is_over_it_disarms_and_keeps_the_claim() -> None:
    film = grown()
    film.tick(300)
    assert film.count("arm") == film.count("disarm") == 1
    assert not film.watch.is_armed
    (claim,) = film.watch.claims
    # The tracer is certain of nothing while it is paused; nothing fell, so we are.
    assert (claim.bytes, claim.least_bytes) == (704 * MIB, 704 * MIB)


def test_after_a_pause_what_ended_processes_took_is_not_certain() -> None:
    """Asked again the frames are as they were, and may be somebody else's by now."""
    film = grown()
    film.tick(100)
    film.ended.add("culprit")
    film.tick(200)
    (claim,) = film.watch.claims
    assert (claim.bytes, claim.least_bytes, claim.most_bytes) == (704 * MIB, 0, 704 * MIB)


def test_claims_fall_when_the_memory_comes_back() -> None:
    film = grown()
    film.tick(300)
    film.take("culprit", -500 * MIB)
    film.tick()
    # 768 were held, 268 are; the tracer knows at most all of them.
    assert sizes(film.watch.claims) == {"culprit": 268}
    film.take("culprit", -268 * MIB)
    film.tick()
    assert film.watch.claims == ()
    assert film.watch.base_bytes is None


def test_the_fall_of_another_holder_takes_certainty_and_not_the_claim() -> None:
    film = Film()
    film.take("driver", GIB)
    film.tick(3)
    for _ in range(8):
        film.take("culprit", 64 * MIB)
        film.tick()
    film.tick(300)
    film.take("driver", -200 * MIB)
    film.tick()
    (claim,) = film.watch.claims
    assert (claim.holder, claim.bytes // MIB, claim.least_bytes // MIB) == ("culprit", 448, 248)


def test_one_who_gives_back_meanwhile_does_not_hide_the_culprit() -> None:
    film = Film()
    film.take("driver", GIB)
    film.tick(3)
    film.take("culprit", 64 * MIB)
    film.tick()
    film.take("driver", -GIB)  # armed, and nothing is claimed yet
    film.tick()
    for _ in range(8):
        film.take("culprit", 64 * MIB)
        film.tick()
    film.tick(5)
    assert sizes(film.watch.claims) == {"culprit": 512}


def test_an_innocent_that_the_tracer_errs_about_gets_no_more_than_the_error() -> None:
    film = grown()
    film.churn["innocent"] = 4 * GIB
    film.tick(6)
    # The residual grew by the culprit's 704 MiB, and that is certain of the culprit.
    found = sizes(film.watch.claims)
    assert found["culprit"] == 704
    assert found.get("innocent", 0) <= ERROR // MIB
    film.tick(300)
    for _ in range(3):  # three more bursts do not add three more errors
        for _ in range(4):
            film.take("culprit", 64 * MIB)
            film.tick()
        film.tick(200)
    assert sizes(film.watch.claims).get("innocent", 0) <= ERROR // MIB


def test_a_restart_keeps_the_claims() -> None:
    film = grown()
    film.restart()
    film.tick(5)
    assert sizes(film.watch.claims) == {"culprit": 704}
    assert film.watch.claims[0].least_bytes == 704 * MIB


def test_after_a_restart_the_residual_caps_them() -> None:
    film = grown()
    film.tick(100)
    film.restart()
    film.take("culprit", -400 * MIB)
    film.tick()
    (claim,) = film.watch.claims
    # Of 768 MiB over the base 64 were there when it was armed, and 304 are left; and the error.
    assert claim.bytes == (304 + 16) * MIB
    assert claim.least_bytes == 304 * MIB
    film.take("culprit", -368 * MIB)
    film.tick()
    # What remains is within the error, and nothing of it is certain: it is forgotten.
    assert film.watch.claims == ()


def test_what_fell_after_a_restart_does_not_come_back_with_somebody_elses_growth() -> None:
    film = grown()
    film.restart()
    film.take("culprit", -768 * MIB)
    film.tick()
    film.take("slow driver", 10 * MIB)
    for _ in range(100):
        film.take("slow driver", MIB // 4)
        film.tick()
    assert sum(sizes(film.watch.claims).values()) <= ERROR // MIB


def test_after_a_restart_more_is_claimed_beside_what_was_kept() -> None:
    film = grown()
    film.restart()
    film.tick(3)
    for _ in range(10):
        film.take("second", 64 * MIB)
        film.take("culprit", 32 * MIB)
        film.tick()
    film.tick(6)
    # 96 MiB of the first look came before it was armed.
    assert sizes(film.watch.claims) == {"culprit": 704 + 288, "second": 576}
    film.restart()
    film.tick()
    assert sizes(film.watch.claims) == {"culprit": 992, "second": 576}


def test_following_fewer_frames_takes_neither_bytes_nor_certainty() -> None:
    """After WHOLE_SECONDS a sampled row is off by its error; nothing fell, so what was certain
    is; what the sample says is impossible is not claimed.
    """
    film = grown()
    for size, most in ((650, 760), (720, 830), (500, 610)):
        sampled = replace(row("culprit", size * MIB, least=0), most_bytes=most * MIB)
        film.watch.learn(film.moment, [sampled], place(film.seconds))
        (claim,) = film.watch.claims
        held = min(720 if size == 720 else 704, most)
        assert (claim.least_bytes, claim.bytes, claim.most_bytes) == (
            min(704, most) * MIB, held * MIB, most * MIB,
        )  # fmt: skip


def test_the_tracer_is_lost_and_what_it_told_stays() -> None:
    film = grown()
    film.watch.drop_tracer()
    film.traced.clear()
    film.tick()
    assert sizes(film.watch.claims) == {"culprit": 704}
    assert film.watch.live == ()


def test_small_change_is_not_kept() -> None:
    watch = MemoryWatch()
    watch.see(LedgerMoment(0.0, 0, ERROR))
    watch.see(LedgerMoment(1.0, GIB, ERROR))
    rows = [row("small", MIB - 1), row("large", 500 * MIB)]
    watch.learn(LedgerMoment(2.0, 2 * GIB, ERROR), rows, place())
    assert sizes(watch.claims) == {"large": 500}


def test_a_reader_holds_the_file_against_the_residual_of_its_own_moment() -> None:
    film = grown()
    kept = film.file()
    residual = film.moment.residual_bytes
    assert sizes(fitted_to(kept, residual, ERROR)) == {"culprit": 704}
    assert sizes(fitted_to(kept, residual + GIB, ERROR)) == {"culprit": 704}
    assert sizes(fitted_to(kept, residual - 404 * MIB, ERROR)) == {"culprit": 300 + 16}
    assert sizes(fitted_to(kept, 0, 0)) == {}


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["take", "give", "noise", "wait", "restart", "churn"]),
        st.sampled_from(["a", "b", "unclaimed"]),
        st.integers(1, 200),
    ),
    max_size=60,
)


@given(MOVES)
def test_claims_never_exceed_what_the_residual_grew_by(
    moves: list[tuple[str, str, int]],
) -> None:
    film = Film()
    lowest = film.moment.residual_bytes
    restarts = 0
    for move, who, size in moves:
        if move == "take":
            film.take(who, size * MIB)
        elif move == "give":
            film.take(who, -min(film.held[who], size * MIB))
        elif move == "noise":
            film.noise = (size % 16) * MIB
        elif move == "churn":
            film.churn["innocent"] = size * MIB
        elif move == "restart":
            film.restart()
            restarts += 1
        film.tick(size if move == "wait" else 1)
        lowest = min(lowest, film.base)
        claimed = sum(claim.bytes for claim in film.watch.claims)
        grown_by = film.moment.residual_bytes - lowest
        # The error is granted once, and a fall within it is not seen before the next look.
        assert claimed <= max(0, grown_by) + ERROR * (2 + restarts)
        for claim in film.watch.claims:
            assert 0 <= claim.least_bytes <= claim.bytes <= claim.most_bytes


@given(MOVES)
def test_with_a_tracer_that_does_not_err_nobody_is_charged_with_more_than_he_holds(
    moves: list[tuple[str, str, int]],
) -> None:
    film = Film()
    for move, who, size in moves:
        if move == "take":
            film.take(who, size * MIB)
        elif move == "give":
            film.take(who, -min(film.held[who], size * MIB))
        elif move == "noise":
            film.noise = (size % 16) * MIB
        film.tick(size if move == "wait" else 1)
        # A look is due when the residual falls, or every few minutes: until then it is of then.
        film.look()
        for holder, claimed in sizes(film.watch.claims).items():
            assert claimed * MIB <= film.held[holder]
