"""A refused step waits longer each time, but not for the map of quarantines in force."""

import pytest

from seawall.cluster.actor.step_rest import StepRest

FENCE = (
    "403 Forbidden: pods \"hog-0\" is forbidden: ValidatingAdmissionPolicy 'seawall-actor-in-force'"
    " with binding 'seawall-actor-in-force' denied request: quarantine hog is not in force"
)


@pytest.mark.parametrize(
    ("words", "least", "most"),
    [("403 Forbidden: admission webhook denied the request", 150, 300), (FENCE, 2.5, 5)],
)
def test_how_long_the_twentieth_refusal_rests(words: str, least: float, most: float) -> None:
    rest = StepRest()
    rest.refuse(words, 1000.0)
    assert 1000.5 <= rest.due <= 1001.0, "the first is a matter of a moment"
    for _ in range(19):
        rest.refuse(words, 1000.0)
    assert 1000.0 + least <= rest.due <= 1000.0 + most


def test_a_webhook_after_the_fence_begins_anew() -> None:
    rest = StepRest()
    for _ in range(20):
        rest.refuse(FENCE, 1000.0)
    rest.refuse("a webhook", 1000.0)
    assert rest.due <= 1001.0
