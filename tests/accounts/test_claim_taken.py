"""A driver's memory that one took and another has mapped: counted once, the taker certain."""

from tests.accounts.test_claim_join import MIB, claim, held, of


def test_whoever_has_it_mapped_may_have_been_handed_it() -> None:
    taken = claim("/taker", 512, "traced", kind="unknown", driver="drv")
    mapped = claim("/mapper", 512, kind="surface", driver="the drv driver")
    claims = of([taken], [mapped], residual=1300)
    assert held(claims) == {
        ("/taker", "unknown"): (512, 512, 512), ("/mapper", "surface"): (0, 0, 512)
    }  # fmt: skip
    assert claims.unexplained_bytes == (1300 - 512) * MIB


def test_the_taker_is_not_cut_where_there_is_no_more() -> None:
    """Handing the file on does not hide him."""
    taken = claim("/taker", 512, "traced", kind="unknown", driver="drv")
    mapped = claim("/mapper", 512, kind="surface", driver="drv")
    assert held(of([taken], [mapped], residual=512))[("/taker", "unknown")] == (512, 512, 512)


def test_the_rest_of_what_is_mapped_stays_certain() -> None:
    taken = claim("/taker", 100, "traced", kind="unknown", driver="drv", most_bytes=150 * MIB)
    mapped = claim("/mapper", 512, kind="surface", driver="drv")
    claims = held(of([taken], [mapped]))
    assert claims["/taker", "unknown"] == (100, 100, 150)
    assert claims["/mapper", "surface"] == (362, 412, 512)


def test_who_has_mapped_what_he_took_takes_nothing_from_others() -> None:
    taken = claim("/a", 512, "traced", kind="unknown", driver="drv")
    own = claim("/a", 512, kind="surface", driver="drv")
    other = claim("/b", 300, kind="surface", driver="drv")
    assert held(of([taken], [own, other])) == {
        ("/a", "surface"): (512, 512, 512), ("/b", "surface"): (300, 300, 300)
    }  # fmt: skip


def test_a_taker_who_still_maps_some_of_it() -> None:
    """Of one kind, so one claim: what is certain of it is what was traced."""
    taken = claim("/a", 512, "traced", kind="surface", driver="drv")
    own = claim("/a", 10, kind="surface", driver="drv")
    other = claim("/b", 512, kind="surface", driver="drv")
    claims = held(of([taken], [own, other]))
    assert claims["/a", "surface"][0] == 512
    assert claims["/b", "surface"][0] == 0


def test_another_driver_or_a_named_buffer_is_not_meant() -> None:
    taken = claim("/taker", 512, "traced", kind="unknown", driver="drv")
    mapped = claim("/mapper", 512, kind="surface", driver="other")
    buffer = claim("/c", 64, kind="surface", driver="drv", things=frozenset({"dmabuf:7"}))
    claims = held(of([taken], [mapped], [buffer]))
    assert claims["/mapper", "surface"] == (512, 512, 512)
    assert claims["/c", "surface"] == (64, 64, 64)
