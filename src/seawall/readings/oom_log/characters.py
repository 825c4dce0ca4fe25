# SPDX-License-Identifier: Apache-2.0
"""Characters of a log: UTF-16 of Windows' tools, blanks of web pages, colours, kmsg's escapes."""

import codecs
import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\x([0-9a-fA-F]{2})")
_ANSI: Final = re.compile("\x1b\\[[0-9;]{0,16}[mK]")
_ENTITIES: Final = {
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&#39;": "'",
    "&nbsp;": " ",
    "&amp;": "&",
}
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Recoder:
    """Gives a log in UTF-16 with its byte order mark as UTF-8, any other as it is."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._is_known = False
        self._held = b""

    def feed(self, block: bytes) -> bytes:
        """The next bytes, cut anywhere."""
        if not self._is_known:
            block = self._held + block
            self._held = b""
            if block in (b"\xff", b"\xfe"):  # perhaps half of a mark
                self._held = block
                return b""
            self._is_known = bool(block)
            if block.startswith(_UTF_16):
                self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        if self._decoder is None:
            return block
        return self._decoder.decode(block).encode("utf-8", "replace")


def decode(raw: bytes) -> str:
    """Text in which bytes that are no UTF-8 survive as surrogates; blanks of web pages undone."""
    text = raw.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
    if not text.isascii():
        text = text.replace("\xa0", " ").replace("\udca0", " ").replace("\ufeff", "")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "&" in text:
        for entity, char in _ENTITIES.items():
            text = text.replace(entity, char)
    return text


def unescape(text: str) -> str:
    """/dev/kmsg writes control characters and bytes over 127 as ``\\xNN``."""
    if "\\x" not in text:
        return text
    pieces = _ESCAPE.split(text.encode("utf-8", "surrogateescape").decode("latin-1"))
    pieces[1::2] = [chr(int(code, 16)) for code in pieces[1::2]]
    return "".join(pieces).encode("latin-1").decode("utf-8", "surrogateescape")
