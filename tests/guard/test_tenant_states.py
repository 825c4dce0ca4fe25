"""What one tenant can write never decides for another: one tenant fills or poisons a state alone,
another one's workload misbehaves.  It is ended within twice the time of the undisturbed run, and
nobody else is.
"""

from collections.abc import Callable

import pytest
from tests.guard.tenant_duel import Duel, Holding

RATE = 80.0
"""MiB a second that the culprit takes."""
AT_LIMIT = {"over_limit": "kill", "over_limit_opt_in": ("*",), "over_limit_seconds": 2.0}
Play = Callable[[Duel, float], None]


def grow(duel: Duel, passed: float, rate: float = RATE) -> None:
    if "hog" in duel.holds:
        duel.holds["hog"] = Holding(certain=rate * passed)


def run(duel: Duel, poison: Play, before: Play | None = None, seconds: float = 40.0) -> float:
    """Seconds until the culprit is ended; ``before`` is played for a quarter of a minute."""
    duel.limits |= {"hog": 100, "evil": 50}
    duel.run(5.0)
    if before is not None:
        duel.run(15.0, lambda passed: before(duel, passed))
    duel.holds["hog"] = Holding()
    began = duel.now

    def play(passed: float) -> None:
        grow(duel, passed)
        poison(duel, passed)

    duel.run(seconds, play)
    assert not duel.victims & {"web", "batch"}, duel.ended
    return duel.seconds_of("hog") - began


def nothing(duel: Duel, passed: float) -> None:
    """The undisturbed run."""


def undisturbed(**settings: object) -> float:
    found = run(Duel(**settings), nothing)
    assert found < 30
    return found


@pytest.fixture(params=["the node is short", "at its limit"])
def settings(request: pytest.FixtureRequest) -> dict[str, object]:
    return {} if request.param == "the node is short" else dict(AT_LIMIT)


def test_a_culprit_is_ended_where_nobody_disturbs(settings: dict[str, object]) -> None:
    assert undisturbed(**settings) < 15


# --- Cooldown -------------------------------------------------------------------------------------


def test_rings_that_are_handed_on_before_the_kill_make_nobody_else_safe() -> None:
    """A second workload of the same tenant, or anybody's, with the same kind of evidence."""

    def hand_on(duel: Duel, passed: float) -> None:
        if "evil" in duel.holds:
            duel.hands_on.add("evil")
            duel.holds["evil"] = Holding(certain=min(300.0, 60 * passed))

    duel = Duel(**AT_LIMIT)
    duel.holds["evil"] = Holding()
    after = run(duel, nothing, hand_on)
    assert duel.victims == {"evil", "hog"}
    assert duel.nobodys > 100
    assert after <= 2 * undisturbed(**AT_LIMIT)


def test_kills_spent_on_a_tenants_own_leave_one_for_others(settings: dict[str, object]) -> None:
    def sacrifice(duel: Duel, passed: float) -> None:
        for number in range(8):
            name = f"evil{number}"
            duel.limits[name] = 10
            if passed < 0.05:
                duel.holds[name] = Holding()
            elif name in duel.holds:
                duel.holds[name] = Holding(certain=80.0)

    duel = Duel(kills_per_minute=3, **{**AT_LIMIT, **settings})
    after = run(duel, nothing, sacrifice)
    assert len(duel.victims - {"hog"}) == 3, "the tenant has no more than the node has"
    assert after <= 2 * undisturbed(**{**AT_LIMIT, **settings})


@pytest.mark.parametrize("what", ["kernel_kills", "exits"])
def test_kills_and_exits_without_end_hold_nobody_up(what: str, settings: dict[str, object]) -> None:
    def storm(duel: Duel, passed: float) -> None:
        duel.node_values[what] = 3

    assert run(Duel(**settings), storm, storm) <= 2 * undisturbed(**settings)


def test_what_did_not_come_back_keeps_no_proved_one_safe() -> None:
    """By order nobody goes for a quarter of an hour; who is the source does, whatever it takes."""

    def hand_on(duel: Duel, passed: float) -> None:
        if "evil" in duel.holds:
            duel.hands_on.add("evil")
            duel.holds["evil"] = Holding(certain=min(300.0, 60 * passed))

    def plain(duel: Duel, passed: float) -> None:
        if "hog" in duel.holds:
            duel.holds["hog"] = Holding(charged=5 + RATE * passed)

    duel, alone = Duel(**AT_LIMIT), Duel(**AT_LIMIT)
    duel.holds["evil"] = Holding()
    after = run(duel, plain, hand_on)
    assert duel.judge._mind.hold._kept
    assert after <= 2 * run(alone, plain)


def test_memory_that_comes_back_slowly_holds_up_no_other(settings: dict[str, object]) -> None:
    """An accomplice closes one handed-on socket a second: the decision stays open."""

    def slow(duel: Duel, passed: float) -> None:
        if "evil" in duel.holds:
            duel.hands_on.add("evil")
            duel.holds["evil"] = Holding(certain=min(400.0, 40 * passed))
        duel.nobodys = max(0.0, duel.nobodys - 10 * 0.1)

    duel = Duel(**{**AT_LIMIT, **settings})
    duel.holds["evil"] = Holding()
    after = run(duel, slow, slow)
    assert after <= 2 * undisturbed(**{**AT_LIMIT, **settings})


# --- LookHistory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [50, 150])
def test_who_takes_and_gives_back_makes_no_other_claim_void(
    size: int, settings: dict[str, object]
) -> None:
    def flap(duel: Duel, passed: float) -> None:
        duel.holds["flap"] = Holding(certain=size if int(passed * 10) % 4 < 2 else 0.0)

    assert run(Duel(**settings), flap, flap) <= 2 * undisturbed(**settings)


def test_who_gave_it_all_back_is_not_ended_for_what_is_told_of_before() -> None:
    """The other side of it: told a moment ago, and let go since."""
    duel = Duel()
    duel.limits["hog"] = 100
    duel.holds["flap"] = Holding()
    duel.run(5.0)

    def play(passed: float) -> None:
        duel.holds["hog"] = Holding(certain=min(700.0, 100 * passed) if passed < 9 else 0.0)
        duel.holds["flap"] = Holding(certain=40.0 if int(passed * 10) % 4 < 2 else 0.0)
        if passed >= 9:  # and what it gave back is taken at once, by somebody who is not seen yet
            duel.nobodys = 150 * (passed - 9)
            duel.node_values = {"is_low": True}

    duel.run(9.6, play)
    assert duel.ended == []


def test_looks_that_are_taken_again_forgive_nobody(settings: dict[str, object]) -> None:
    """Who gives a twentieth of the node back, again and again, has the newest look taken anew."""

    def swing(duel: Duel, passed: float) -> None:
        duel.holds["swing"] = Holding(charged=5 + (200.0 if int(passed) % 4 < 2 else 0.0))

    assert run(Duel(**settings), swing, swing) <= 2 * undisturbed(**settings)


def test_groups_that_depart_excuse_nobody_who_is_over_its_limit(
    settings: dict[str, object],
) -> None:
    """What they had might be a newcomer's by now; its own limit knows better."""

    def depart(duel: Duel, passed: float) -> None:
        number = int(passed)
        duel.holds = {name: one for name, one in duel.holds.items() if not name.startswith("gone")}
        duel.holds[f"gone{number}"] = Holding(certain=40.0)

    assert run(Duel(**settings), depart, depart) <= 2 * undisturbed(**settings)


# --- OverLimitState, SuspectRests -----------------------------------------------------------------


def test_many_that_are_over_their_limits_hide_nobody() -> None:
    """More than there are places, each to be told of: one report a tick."""

    def many(duel: Duel, passed: float) -> None:
        for number in range(560):
            name = f"evil{number}"
            duel.limits[name] = 1
            if name not in duel.holds:
                duel.holds[name] = Holding(certain=70.0, charged=1.0)

    settings = {**AT_LIMIT, "over_limit_opt_in": ("ns/hog",)}
    duel = Duel(**settings)
    duel.nobodys = -560 * 71.0  # a node that is so much larger
    after = run(duel, nothing, many)
    assert duel.victims == {"hog"}
    assert after <= 2 * undisturbed(**settings)


def test_suspects_that_stand_still_in_turn_hold_up_no_proof() -> None:
    """Each of them could hold most of what nobody owns; they are held, and the proved one goes."""

    def lure(duel: Duel, passed: float) -> None:
        name = f"evil{int(passed / 3)}"
        duel.holds.setdefault(name, Holding())
        duel.holds[name] = Holding(most=duel.holds[name].most + 3.0)

    duel = Duel()
    after = run(duel, lure)
    assert after <= 2 * undisturbed()
