"""Packet rings as a probe answers, and as a bundle may pretend that it did."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.host import JSON, Unread
from seawall.readings.packet_rings import (
    Inhabitants,
    PacketRings,
    PacketSocket,
    Ring,
    SocketHolder,
    read,
)

POD = "0::/kubepods/podx/c1"
ANSWER: dict[str, Any] = {
    "why_not": "",
    "host": 100,
    "namespaces": 2,
    "namespaces_left_out": 0,
    "processes_left_out": 3,
    "others": [7, 28672],
    "is_looked": True,
    "holders_left_out": 0,
    "sockets": [[11, 200, 0, [1048576, 256], [12288, 4]], [12, 100, None, None, [4096, 512]]],
    "holders": [[11, 42], [11, 43], [99, 42], [11, 44]],
    "processes": [
        [42, 1234, "pod's", 200, 0xA80425FB, [POD]],
        [43, 1235, "x", None, 0, ["4:memory:/a"]],
    ],
    "inhabitants": [[200, True, [[POD]]]],
    "hidden": [["0::/init.scope"]],
}
MAPS: dict[str, Any] = {
    "maps": [[12, 50, 2097152], [12, 51, 4096], [77, 50, 9]],
    "processes": [[50, 9, "mapper", 100, 0, ["0::/b"]]],
    "left_out": 2,
}


class Answering:
    """Answers probes; keeps the questions."""

    def __init__(self, answer: JSON | Unread, maps: JSON | Unread = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers = {"packet_rings": answer, "packet_ring_maps": maps}

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        self.asked.append((probe, argument))
        return self.answers[probe]


def reading(answer: Any, maps: Any = None) -> PacketRings | Unread:
    return read(Answering(answer, maps))  # type: ignore[arg-type]


def test_sockets_their_holders_and_their_namespaces() -> None:
    found = reading(ANSWER, MAPS)
    assert isinstance(found, PacketRings)
    assert found.sockets == (
        # 44 is no process that was told, and 99 no socket.
        PacketSocket(11, 200, 0, Ring(1048576, 256), Ring(12288, 4), (42, 43), 0),
        PacketSocket(12, 100, None, None, Ring(4096, 512), (50,), 2097152),
    )
    assert found.holders[42] == SocketHolder(42, 1234, "pod's", 200, 0xA80425FB, (POD,))
    assert found.holders[50].cgroups == ("0::/b",)
    assert found.inhabitants == {200: Inhabitants(is_whole=True, cgroups=((POD,),))}
    assert found.hidden == (("0::/init.scope",),)
    assert (found.host_namespace, found.others, found.others_bytes) == (100, 7, 28672)
    assert (found.holders_left_out, found.processes_left_out) == (2, 3)


def test_what_inhabitants_can_do_is_told_since_a_later_version() -> None:
    answer = {**ANSWER, "inhabitants": [[200, True, [[POD]], [8192]]]}
    found = reading(answer, MAPS)
    assert isinstance(found, PacketRings)
    assert found.inhabitants == {
        200: Inhabitants(is_whole=True, cgroups=((POD,),), bounding=(8192,))
    }
    answer["inhabitants"] = [[200, True, [[POD]], [8192, 1]]]
    assert isinstance(reading(answer, MAPS), Unread)


def test_mappings_are_asked_only_for_sockets_that_nobody_has_open() -> None:
    host = Answering(ANSWER, MAPS)
    read(host)  # type: ignore[arg-type]
    assert host.asked == [("packet_rings", ""), ("packet_ring_maps", "12:100|")]
    host = Answering({**ANSWER, "is_looked": False}, MAPS)
    read(host)  # type: ignore[arg-type]
    assert host.asked == [("packet_rings", "")]


def test_without_the_module_mappings_tell_sizes() -> None:
    answer = {
        **ANSWER, "why_not": "no module", "sockets": [[11, 200, 0, None, None]],
    }  # fmt: skip
    host = Answering(answer, {"maps": [[11, 43, 8192]], "processes": [], "left_out": 0})
    found = read(host)  # type: ignore[arg-type]
    assert isinstance(found, PacketRings)
    assert host.asked[1] == ("packet_ring_maps", "11:200|42,43")
    assert found.sockets[0].held_bytes(4096) == 8192
    assert found.sockets[0].holders == (42, 43)


def test_no_answer_about_mappings_leaves_holders_out() -> None:
    found = reading(ANSWER, Unread("packet_ring_maps", "no_answer"))
    assert isinstance(found, PacketRings)
    assert found.sockets[1].holders == ()
    assert found.holders_left_out == 1


def test_a_probe_that_is_not_there_stays_unread() -> None:
    unread = Unread("packet_rings", "refused", "no")
    assert reading(unread) is unread


@pytest.mark.parametrize(
    ("ring", "page", "held"),
    [
        (Ring(4096, 8), 4096, 32768),
        (Ring(12288, 4), 4096, 65536),  # 3 pages are taken as 4
        (Ring(1 << 20, 3), 4096, 3 << 20),
        (Ring(65536, 5), 65536, 5 << 16),
        (Ring(196608, 2), 65536, 2 << 18),
    ],
)
def test_what_the_kernel_takes_for_a_ring(ring: Ring, page: int, held: int) -> None:
    assert ring.held_bytes(page) == held


@pytest.mark.parametrize("key", sorted(ANSWER))
@pytest.mark.parametrize("value", [None, -1, 1 << 70, "x", 2.5, [[1]], {}, [None], True])
def test_foreign_values_are_malformed_or_taken_whole(key: str, value: JSON) -> None:
    found = reading({**ANSWER, key: value}, MAPS)
    if isinstance(found, Unread):
        assert found.why == "malformed"
    else:
        assert (key, value) in [("host", None), ("why_not", "x"), ("is_looked", True)]


@pytest.mark.parametrize("key", sorted(ANSWER))
def test_an_answer_with_a_part_missing_is_malformed(key: str) -> None:
    answer = {name: value for name, value in ANSWER.items() if name != key}
    found = reading(answer, MAPS)
    assert isinstance(found, Unread)
    assert found.why == "malformed"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(ANSWER)), st.integers(0, 5), anything, anything)
def test_nothing_escapes(key: str, where: int, value: Any, maps: Any) -> None:
    answer = copy.deepcopy(ANSWER)
    part = answer[key]
    if isinstance(part, list) and part:
        part[where % len(part)] = value
    else:
        answer[key] = value
    for told in (MAPS, maps, {**MAPS, "maps": maps}, {**MAPS, "processes": value}):
        found = reading(json.loads(json.dumps(answer)), told)
        assert isinstance(found, PacketRings) or found.why == "malformed"
