# SPDX-License-Identifier: Apache-2.0
"""Characters of a log: UTF-16 of Windows' tools, mails, web pages, colours, kmsg's escapes."""

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


_QUOTED: Final = re.compile(rb"=([0-9A-F]{2})|=[ \t]*\r?(?=\n)")
_ENCODED: Final = re.compile(
    rb"^(?:Content-Transfer-Encoding:[ \t]*(?P<how>[\w-]{1,40})[^\n]*|From [^\n]*)\n",
    re.MULTILINE | re.IGNORECASE,
)


class _Mail:
    """Undoes quoted-printable, line by line: a line keeps its number."""

    def __init__(self) -> None:
        self._is_quoted = False

    def feed(self, block: bytes) -> bytes:
        """Whole lines, or at least no header cut in two."""
        if not self._is_quoted and b"quoted-printable" not in block:
            if b"gfp_mask=3D0x" not in block:
                return block
            return _unquoted(block)  # a piece of a mail, without its header
        parts, at = [], 0
        for header in _ENCODED.finditer(block):
            parts.append(self._part(block[at : header.start()]) + header[0])
            self._is_quoted = (header["how"] or b"").lower() == b"quoted-printable"
            at = header.end()
        return b"".join([*parts, self._part(block[at:])])

    def _part(self, part: bytes) -> bytes:
        return _unquoted(part) if self._is_quoted else part


def _unquoted(part: bytes) -> bytes:
    def char(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return b""
        code = int(found[1], 16)
        return b" " if code in (10, 13) else bytes((code,))

    return _QUOTED.sub(char, part)


class Recoder:
    """Gives a log in UTF-16 with its byte order mark as UTF-8, one in a mail without its
    quoted-printable, any other as it is.
    """

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._is_known = False
        self._held = b""
        self._mail = _Mail()

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
            return self._mail.feed(block)
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
