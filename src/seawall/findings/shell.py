# SPDX-License-Identifier: Apache-2.0
"""Paths in shell lines that a person may paste, whatever bytes they hold."""

import shlex


def quote(path: str) -> str:
    """One shell word for ``path``.

    Control characters and bytes that are not UTF-8 become ``$'\\x1b'`` (bash, ksh, zsh), for
    raw ones would reach the terminal or be lost on the way to it.

    >>> quote("/sys/fs/cgroup/a b")
    "'/sys/fs/cgroup/a b'"
    >>> print(quote("/x" + chr(27) + "'"))
    $'/x\\x1b\\''
    """
    if path.isprintable():
        return shlex.quote(path)
    raw = path.encode("utf-8", "surrogateescape")
    words = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\"
        else f"\\{chr(byte)}" if byte in b"'\\"
        else f"\\x{byte:02x}"
        for byte in raw
    )  # fmt: skip
    return f"$'{words}'"
