"""What lists of rules allow: v1 lists, OCI specs, systemd's units."""

import pytest
from tests.accounts.device_worlds import nodes, rules

from seawall.accounts.devices.kernel_rules.device_rules import (
    Believer,
    RuledDevice,
    configured,
    listed,
)
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.scope_devices import UnitDevices

UVM = RuledDevice("c", 237, 0)
CTL = RuledDevice("c", 195, 255)
# Published: seed of a node whose containers computed on the CPU.
LIST = rules(
    "c 1:5 rwm", "c 1:3 rwm", "c 1:9 rwm", "c 1:8 rwm", "c 5:0 rwm", "c 5:1 rwm", "c 195:255 rw",
    "c 195:1 rw", "c *:* m", "b *:* m", "c 1:7 rwm", "c 136:* rwm", "c 5:2 rwm", "c 10:200 rwm",
)  # fmt: skip


@pytest.mark.parametrize(
    ("device", "access", "says"),
    [
        (CTL, "rw", "yes"),
        (CTL, "rwm", "no"),  # mknod is allowed by another rule: no single one covers all
        (CTL, "m", "yes"),
        (UVM, "rw", "no"),
        (UVM, "m", "yes"),
        (RuledDevice("b", 195, 255), "rw", "no"),
        (RuledDevice("c", 136, 7), "rw", "yes"),
        (RuledDevice("c", 195, 0), "rw", "no"),
    ],
)
def test_a_list_of_v1(device: RuledDevice, access: str, says: str) -> None:
    assert listed(LIST, device, access).says == says


def test_allow_all_hides_its_exceptions() -> None:
    answer = listed(rules("a *:* rwm"), UVM)
    assert answer.says == "unread"
    assert "hides its exceptions" in answer.why


def test_an_empty_list_allows_nothing() -> None:
    assert listed((), RuledDevice("c", 1, 3)).says == "no"


def test_what_the_nearest_rule_is() -> None:
    assert "the nearest is c 237:* r" in listed(rules("c 237:* r"), UVM).why


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((), "no"),
        (("!a *:* rwm", "c 237:0 rw"), "yes"),
        (("c 237:0 rw", "!a *:* rwm"), "no"),  # the last decides
        (("!a *:* rwm", "c 237:0 r", "c 237:0 w"), "yes"),  # runtimes merge them
        (("!a *:* rwm", "c 237:* r", "c 237:0 w"), "no"),  # and these not
        (("!a *:* rwm", "c 237:0 r", "c 237:0 rw"), "yes"),
        (("!a *:* rwm", "c 237:0 r"), "no"),
        (("a *:* rwm",), "yes"),
        (("a *:* rwm", "!c 237:0 w"), "no"),
        (("a *:* rwm", "!c 237:0 m"), "yes"),
    ],
)
def test_the_rules_of_a_config(lines: tuple[str, ...], says: str) -> None:
    assert configured(rules(*lines), UVM).says == says


def test_runtimes_allow_the_usual_pseudo_devices_whatever_the_config_says() -> None:
    deny = rules("!a *:* rwm")
    for minor in (3, 5, 7, 8, 9):
        assert configured(deny, RuledDevice("c", 1, minor)).says == "yes"
    assert configured(deny, RuledDevice("c", 136, 4)).says == "yes"
    assert configured(deny, RuledDevice("b", 1, 3)).says == "no"
    assert configured(deny, RuledDevice("c", 1, 1)).says == "no"  # /dev/mem


# --- systemd ----------------------------------------------------------------------------

BELIEVER = Believer(
    CharDevices(
        {195: "nvidia", 237: "nvidia-uvm", 508: "nvidia-caps"}, {8: "sd"}, {195: ("nvidiactl",)}
    ),
    DeviceNodes(nodes({"/dev/fuse": ("c", 10, 229)}), {}, 0),
)


def believed(device: RuledDevice, *allow: tuple[str, str], policy: str = "strict") -> str:
    return BELIEVER.believed(UnitDevices(policy, allow, ()), device).says


@pytest.mark.parametrize(
    ("what", "device", "says"),
    [
        ("/dev/char/195:255", CTL, "yes"),
        ("/dev/char/195:254", CTL, "no"),
        ("/dev/block/195:255", CTL, "no"),
        ("/dev/block/8:0", RuledDevice("b", 8, 0), "yes"),
        ("char-nvidia-uvm", UVM, "yes"),
        ("char-nvidia*", UVM, "yes"),
        ("char-nvidia", UVM, "no"),
        ("char-nvidiactl", CTL, "yes"),  # 195 has two names
        ("char-*", UVM, "yes"),
        ("block-*", UVM, "no"),
        ("char-237", UVM, "yes"),
        ("block-sd", RuledDevice("b", 8, 16), "yes"),
        ("/dev/fuse", RuledDevice("c", 10, 229), "yes"),
        ("/dev/fuse", UVM, "no"),
        ("/dev/gone", UVM, "no"),
    ],
)
def test_device_allow(what: str, device: RuledDevice, says: str) -> None:
    assert believed(device, (what, "rw")) == says


def test_policies() -> None:
    null = RuledDevice("c", 1, 3)
    assert believed(UVM, policy="auto") == "yes"
    assert believed(UVM, ("/dev/char/195:255", "rw"), policy="auto") == "no"
    assert believed(UVM, policy="strict") == "no"
    assert believed(null, policy="closed") == "yes"
    assert believed(null, ("/dev/char/195:255", "rw"), policy="auto") == "yes"
    assert believed(null, policy="strict") == "no"
    assert believed(RuledDevice("c", 137, 0), policy="closed") == "yes"


def test_one_line_has_to_cover_all_of_it() -> None:
    assert believed(UVM, ("/dev/char/237:0", "r"), ("char-nvidia-uvm", "w")) == "no"


def test_what_cannot_be_looked_up_is_no_answer() -> None:
    blind = Believer(None, None)
    for what in ("/dev/fuse", "char-nvidia*"):
        unit = UnitDevices("strict", ((what, "rw"),), ())
        assert blind.believed(unit, UVM).says == "unread"
    sure = UnitDevices("strict", (("/dev/fuse", "rw"), ("/dev/char/237:0", "rw")), ())
    assert blind.believed(sure, UVM).says == "yes"
