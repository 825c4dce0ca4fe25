"""As whom a device is tried: by the status of the container's process."""

import pytest

from seawall.host.device_access.trying import ROOT, Credentials, owner_of

USER = b"""Uid:	1000	0	0	0
Gid:	50	0	0	0
Groups:	44 109
CapEff:	00000000a80425f9
"""


def test_real_ids_and_groups() -> None:
    assert owner_of(USER) == Credentials(1000, 50, (44, 109))


def test_whom_no_mode_holds_is_asked_for_as_root() -> None:
    assert owner_of(USER.replace(b"25f9", b"25fb")) == ROOT


@pytest.mark.parametrize(
    "status", [b"", b"Uid:\t\n", USER.replace(b"1000", b"x"), b"CapEff:\tzz\n"]
)
def test_what_cannot_be_understood_blames_nobody(status: bytes) -> None:
    assert owner_of(status) == ROOT
