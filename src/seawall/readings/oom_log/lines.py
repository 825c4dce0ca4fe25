# SPDX-License-Identifier: Apache-2.0
"""From a line of a log to what the kernel said in it: prefixes of every kind taken off.

``dmesg`` raw, ``-T`` in any language, ``-H`` and ``-x``; ``/dev/kmsg``; printk's own level and
caller (``<4>[   12.3][ T17]``); syslog by date or ISO, with rsyslog's ``#012``; journald's short
forms and its records (records.py); consoles of hypervisors; editors' line numbers; quoting in
mails.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from seawall.readings.oom_log.characters import decode, unescape
from seawall.readings.oom_log.records import RecordReader, Said
from seawall.readings.oom_log.shapes import beginning_of, shape_of

TEXT_MOST: Final = 16 << 10
"""Characters of a line that are looked at; printk ends one at about 1,000."""
_LEAD_MOST: Final = 200

_STAMP: Final = re.compile(
    r"\[([ <+]{0,12}\d{1,12}\.\d{1,9}>?)(?: <[ ]{0,12}\d{1,12}\.\d{1,9}>)?\]"
    r"(?:\[ {0,12}[TC]\d{1,10}\])? ?",
    re.ASCII,
)
_LEVEL: Final = re.compile(r"[ \t]{0,80}(?:<\d{1,3}>)? {0,4}", re.ASCII)
# Most lines: dmesg's own prefix or none, and nothing that could mean some other form.
_PLAIN: Final = re.compile(
    rb"(?:\[ {0,12}(\d{1,12}\.\d{1,9})\](?:\[ {0,12}[TC]\d{1,10}\])? ?| {0,2}(?=[A-Za-z]))"
    rb"([ !\"$%'-Z\\-~]{0,4000})\Z"
)
_CLOCK: Final = re.compile(
    r"\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d| (?:UTC|[A-Z]{1,4}T)\b)?"
)
_DATED: Final = re.compile(
    r"(?:\w{2,9} {0,3}: {0,3}\w{2,9} {0,3}: {0,3})?\[([^\[\]]{3,60}:\d\d[^\[\]]{0,40})\]:? ?"
)
_EDITOR: Final = re.compile(r"[ \t]{0,12}(\d{1,9})(?:[:|] ?|\t| {1,12}(?=\S))", re.ASCII)
_QUOTES: Final = re.compile(r"(?:> ?|\| ){1,12}")
_KMSG: Final = re.compile(r"\d{1,5},\d{1,20},(\d{1,17}),[^;]{0,200};", re.ASCII)
_KMSG_DICTIONARY: Final = re.compile(r" [A-Z_]{2,30}=")
_SHORT_HOST: Final = re.compile(r"\S{1,80} kernel: ?")
# May 30 14:08:25 HOST ..., 2023-05-30T14:08:25.1+02:00 HOST ..., and ISO without a host
_SYSLOG: Final = re.compile(
    r"(?P<date>[^\W\d]{2,9}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)[ :]{1,3}"
)
_HOST_WORD: Final = re.compile(r"\S{1,255}(?<!:) ")
_HOST: Final = re.compile(r"(?=[\d.:]*[A-Za-z]|(?:\d{1,3}\.){3})([A-Za-z0-9][\w.:-]{0,254})(?<!:) ")
_TAG: Final = re.compile(r"\S{1,255} (?!kernel\b)[\w./@-]{1,64}(?:\[\d{1,10}\])?:(?: |$)", re.ASCII)


_Split: TypeAlias = tuple[str | None, str, bool, float | None, bool, str | None]
"""(time, text, has a prefix, the kernel's seconds, the prefix is the kernel's, host)."""


class Line(NamedTuple):
    """One message of the kernel, or a part of one that stands on a line of its own."""

    number: int
    """In the log, from 1."""
    at: str | None
    """The time as the log writes it; journald's JSON, which has microseconds, as ISO in UTC."""
    text: str
    is_prefixed: bool
    """It carries a prefix of its own, so a message begins here."""
    width: int
    """Characters of the whole line in the log."""
    seconds: float | None = None
    """Of the kernel's clock, where the line has that."""
    is_marked: bool = False
    """The prefix is one of the kernel's messages alone, not only a date or a number."""
    host: str | None = None
    """As syslog or journald writes it; None where it is not known."""


class LineReader:
    """Knows from the lines before whether an editor numbered them, and whether it is kmsg."""

    def __init__(self) -> None:
        self._last_number = -2
        self._streak = 0
        self._is_kmsg = False
        self._records = RecordReader()

    def restart(self) -> None:
        """Lines were passed over."""
        self._records.restart()

    def read(self, raw: bytes, number: int) -> list[Line]:
        """The kernel's messages in one line of the log; none for a line of somebody else."""
        plain = _PLAIN.match(raw)
        if plain and b"kernel:" not in raw and not self._is_kmsg:
            stamp = plain[1]
            text = (plain[2] if stamp else raw).decode("ascii")
            if stamp:
                at = stamp.decode("ascii")
                return [Line(number, at, text, True, len(raw), float(at), True)]
            if not _SYSLOG.match(text):
                said = self._records.read(raw)
                if said is None:
                    return [Line(number, None, text, False, len(raw))]
                return self._of_record(said, number)
        elif not plain:
            said = self._records.read(raw)
            if said is not None:
                return self._of_record(said, number)
        return self._of_text(decode(raw[:TEXT_MOST]), number)

    def _of_record(self, said: list[Said], number: int) -> list[Line]:
        lines: list[Line] = []
        for message in said:
            text = message.text[:TEXT_MOST]
            if message.is_line:
                lines += self._of_text(text, number)
                continue
            rest = (0, message.seconds, message.is_of_kernel, message.host)
            for place, part in enumerate(text.split("\n")):
                lines.append(Line(number, message.at, part, not place, *rest))
        return lines

    def _of_text(self, text: str, number: int) -> list[Line]:
        width = len(text)
        if text[:1] in (">", "|"):
            text = _QUOTES.sub("", text, count=1)
        found = self._split(text)
        if found is None:
            return []
        at, text, is_prefixed, seconds, is_marked, host = found
        if "#01" in text:
            text = text.replace("#012", "\n").replace("#011", "\t")
        first, *more = text.split("\n")
        return [
            Line(number, at, first, is_prefixed, width, seconds, is_marked, host),
            *(Line(number, at, part, is_prefixed=False, width=0) for part in more),
        ]

    def _split(self, text: str) -> _Split | None:
        """None where the kernel did not speak."""
        record = _KMSG.match(text) if text[:1].isdigit() else None
        if record:
            self._is_kmsg = True
            micro = int(record[1])
            at = f"{micro // 10**6}.{micro % 10**6:06}"
            return at, unescape(text[record.end() :]), True, micro / 10**6, True, None
        if self._is_kmsg and _KMSG_DICTIONARY.match(text):
            return None
        if "[" in text:
            dated = _DATED.match(text)
            if dated:
                return dated[1].split(" <")[0], text[dated.end() :], True, None, True, None
            level = _LEVEL.match(text)
            stamp = _STAMP.match(text, level.end() if level else 0)
            if stamp:
                return _after_stamp(text, stamp)
        text, is_numbered = self._without_number(text)
        return _split_lead(text, is_numbered=is_numbered)

    def _without_number(self, text: str) -> tuple[str, bool]:
        """An editor's number is taken off when the lines count up, or a message follows it."""
        number = _EDITOR.match(text)
        if not number:
            return text, False
        value = int(number[1])
        self._streak = self._streak + 1 if value == self._last_number + 1 else 0
        self._last_number = value
        rest = text[number.end() :]
        if (
            self._streak > 1
            or _SYSLOG.match(rest)
            or (self._streak and shape_of(rest.lstrip()) and not shape_of(text.lstrip()))
            or (text[number.end(1)] in ":|\t" and shape_of(rest.lstrip()))
        ):
            return rest, True
        return text, False


def _split_lead(text: str, *, is_numbered: bool) -> _Split | None:
    """Syslog's prefixes, and printk's stamp after anything."""
    place = text.find("kernel:", 0, _LEAD_MOST)
    if place >= 0 and (place == 0 or text[place - 1] in " \t"):
        lead = _lead_of(text[:place])
        if lead.is_foreign:
            return None
        if lead.at or not beginning_of(text.lstrip()):
            return _after_tag(text[place + 7 :], lead)
    if "[" in text and not beginning_of(text.lstrip()):
        stamp = _find_stamp(text)
        if stamp:
            return _after_stamp(text, stamp)
    syslog = _SYSLOG.match(text) if ":" in text else None
    if syslog:
        return _after_date(text, syslog)
    return None, text, is_numbered, None, False, None


def _find_stamp(text: str) -> re.Match[str] | None:
    """Printk's ``[  123.456789]``, wherever in the first characters it stands."""
    at = text.find("[", 0, _LEAD_MOST)
    while at >= 0:
        stamp = _STAMP.match(text, at)
        if stamp:
            return stamp
        at = text.find("[", at + 1, _LEAD_MOST)
    return None


def _after_stamp(text: str, stamp: re.Match[str]) -> _Split | None:
    rest = text[stamp.end() :]
    lead = _lead_of(text[: stamp.start()])
    if lead.is_foreign:
        return None
    host = _SHORT_HOST.match(rest)  # journalctl -o short-monotonic
    if host:
        rest = rest[host.end() :]
    at, seconds = _clock_of(stamp)
    return lead.at or at, rest, True, seconds, True, None


def _clock_of(stamp: re.Match[str]) -> tuple[str, float | None]:
    at = stamp[1].strip(" <>")
    return at, float(at) if at[:1] != "+" and "<" not in stamp[1] else None  # dmesg -H, -d: a step


def _after_tag(rest: str, lead: "_Lead") -> _Split:
    """What follows ``kernel:``, with printk's own stamp or without."""
    if rest[:3].lstrip()[:1] in ("[", "<"):
        level = _LEVEL.match(rest)
        stamp = _STAMP.match(rest, level.end() if level else 0)
        if stamp:
            at, seconds = _clock_of(stamp)
            return lead.at or at, rest[stamp.end() :], True, seconds, True, lead.host
    return lead.at, rest[rest[:1] == " " :], True, None, True, lead.host


def _after_date(text: str, syslog: re.Match[str]) -> _Split | None:
    """A date without ``kernel:``; what follows it must be something that the kernel says."""
    rest = text[syslog.end() :]
    if beginning_of(rest.lstrip()):
        return syslog["date"], rest, True, None, False, None
    if _TAG.match(rest):
        return None
    if shape_of(rest.lstrip()):
        return syslog["date"], rest, True, None, False, None
    host = _HOST_WORD.match(rest)
    if host and shape_of(rest[host.end() :].lstrip()):
        return syslog["date"], rest[host.end() :], True, None, False, None
    return None


class _Lead(NamedTuple):
    """What stands before the kernel's message."""

    at: str | None
    is_foreign: bool
    """It names a program that is not the kernel: that quotes, it does not say."""
    host: str | None


@lru_cache(maxsize=256)
def _lead_of(lead: str) -> _Lead:
    syslog = _SYSLOG.match(lead) or _SYSLOG.search(lead)
    if not syslog:
        return _Lead(_date_of(lead), is_foreign=False, host=None)
    host = _HOST.match(lead, syslog.end())
    is_foreign = _TAG.match(lead, syslog.end()) is not None
    return _Lead(_date_of(lead), is_foreign, host[1] if host else None)


def _date_of(lead: str) -> str | None:
    clock = _CLOCK.search(lead)
    if not clock:
        return None
    date = lead[: clock.end()]
    number = _EDITOR.match(date)
    if number and not date[number.end() :][:1].isdigit():
        date = date[number.end() :]
    return date.strip() or None
