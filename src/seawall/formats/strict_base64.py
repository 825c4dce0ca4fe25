# SPDX-License-Identifier: Apache-2.0
"""Base64 (RFC 4648, section 4) that is whole, alike on every Python that Seawall supports.

``binascii.a2b_base64`` has ``strict_mode`` since Python 3.11; in 3.10 ``validate`` of
``base64.b64decode`` lets padding alone pass.
"""

import base64


def strict_base64(text: str) -> bytes:
    """The bytes; ValueError: another character, characters after the padding, a part missing."""
    if len(text) % 4:
        raise ValueError("base64: a part is missing")
    return base64.b64decode(text.encode("ascii"), validate=True)
