# SPDX-License-Identifier: Apache-2.0
"""Xids of NVIDIA's driver that are of hardware, in words; what a program causes is not here."""

from typing import Final

HARDWARE_XIDS: Final = {
    48: "a double bit ECC error",
    63: "a memory page or row that is being retired",
    64: "a memory page or row that could not be retired",
    74: "an NVLink error",
    79: "the GPU has fallen off the bus",
    94: "an uncorrectable memory error that was contained",
    95: "an uncorrectable memory error that was not contained",
    119: "the GPU's own processor (GSP) does not answer",
}
"""https://docs.nvidia.com/deploy/xid-errors; in our words."""


def xid_words(xid: int) -> str:
    """``Xid 79 (the GPU has fallen off the bus)``."""
    known = HARDWARE_XIDS.get(xid)
    return f"Xid {xid} ({known})" if known else f"Xid {xid}"
