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
from seawall.readings.oom_log.records import LogMessage, RecordReader
from seawall.readings.oom_log.shapes import beginning_of, shape_of

TEXT_MOST: Final = 16 << 10
"""Characters of a line that are looked at; printk ends one at about 1,000."""
_LEAD_MOST: Final = 200
_PARTS_MOST: Final = 20_000
"""Lines in one message of a record."""

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
# dmesg -T, and Talos with the node's address before it and its levels padded
_DATED: Final = re.compile(
    r"(?:\s{0,8}(?:[\w.:-]{2,80}: {1,8})?\w{2,9} {0,8}: {0,8}\w{2,9} {0,8}: {0,8})?"
    r"\[([^\[\]]{3,60}:\d\d[^\[\]]{0,40})\]:? ?"
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


# What relays put before the line of another log: Kubernetes, CRI, Compose, syslog by RFC 5424.
_RELAYS: Final = re.compile(
    r"\[(?:pod|container|node)/[^\]\s]{1,250}\] "
    r"|(?P<cri>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) std(?:out|err) [FP] "  # noqa: E501
    r"|[a-z][\w.-]{0,60} {1,20}\| "
    r"|(?:<\d{1,3}>)?1 (?P<at>\d{4}-\d\d-\d\dT\S{8,30}) (?P<host>\S{1,255}) kernel \S{1,48} \S{1,48} "  # noqa: E501
    r"(?:-|\[.{0,400}?\]) ?(?:\ufeff)?",
    re.ASCII,
)
_RELAYS_MOST: Final = 3
# An event's row as kubectl prints it: describe has TYPE REASON AGE, get events LAST-SEEN TYPE.
_AGE: Final = r"(?P<{}>(?:\d{{1,5}}[smhdy]){{1,3}})"
_EVENT_ROW: Final = re.compile(
    r"\s*(?:(?:Warning|Normal)\s+\w{1,60}\s+" + _AGE.format("age")
    + r"|(?:[a-z0-9.-]{1,253}\s+)?" + _AGE.format("seen") + r"\s+(?:Warning|Normal))\s", re.ASCII
)  # fmt: skip
_TAGS: Final = re.compile(
    r"(?:</?(?:p|pre|code|div|span|br|li|td|tr|b|i|font|blockquote)\b[^<>]{0,200}>)+"
)
# The kernel's own words, with so much of its grammar that prose is none of them.
_SIZES: Final = r"total-vm:\d{1,20}kB, ?anon-rss:\d{1,20}kB, ?file-rss:\d{1,20}kB"
_CUT_SIZES: Final = r"total-vm:(?:\d{1,20}kB)?[\w, :-]{0,200}(?:>|\.\.\.|\u2026)\s{0,40}\Z"
_SPOKEN: Final = re.compile(
    r"(?P<head>\S{1,15} invoked oom-killer: gfp_mask=0x[0-9a-f]{1,16}(?:\([^()]{0,1000}\))?,"
    r"[^\"']{0,4200}?\border=-?\d{1,4}(?:, oom(?:_score)?_adj=-?\d{1,6}))"
    r"|(?:(?:Memory cgroup out of memory|[Oo]ut of [Mm]emory(?: \([a-z_]{1,40}\))?): )?"
    r"(?:(?P<killed>Killed process \d{1,10} \(.{1,64}?\),? (?:UID \d{1,10}, )?(?:"
    + _SIZES
    + "|"
    + _CUT_SIZES
    + r"))|(?P<choice>[Kk]ill process \d{1,10} \(.{1,64}?\) score \d{1,10} or sacr))"
    r"|(?P<sum>oom-kill:constraint=CONSTRAINT_[A-Z_]{4,20},)"
    r"|(?P<other>oom_reaper: reaped process \d{1,10} \(.{1,64}?\),? now anon-rss:"
    r"|memory(?:\+swap)?: usage \d{1,20}kB, limit \d{1,20}kB, failcnt \d"
    r"|Task in /.{1,2000}? killed as a result of limit of /"
    r"|Memory cgroup stats for /|Tasks in /\S{1,1000} are going to be killed due)",
    re.ASCII,
)
_SPOKEN_WORDS: Final = (
    "oom-kill", "ill process ", "illed process ", "oom_reaper: ", "memory: usage", "Task in /",
    "Memory cgroup ", "Tasks in /",
)  # fmt: skip
_LEARNED_MOST: Final = 300
_BRACKET_LINE_MOST: Final = 100
# Shapes that are told by words anywhere in a line, or that may be followed by another message.
_WORDY: Final = frozenset({"header", "choice"})
_FLEXIBLE: Final = re.compile(r"(\d+|\s+)", re.ASCII)
_ESCAPED_NEWLINE: Final = re.compile(r"(?:\\r)?\\n")


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
    is_quote: bool = False
    """Another program, which the line names, repeats what the kernel said."""


class LineReader:
    """Knows from the lines before whether an editor numbered them, and whether it is kmsg."""

    def __init__(self) -> None:
        self._last_number = -2
        self._streak = 0
        self._is_kmsg = False
        self._records = RecordReader()
        self._learned: re.Pattern[str] | None = None

    @property
    def late_time(self) -> str | None:
        """The time of a record that the last line gave; its message may stand before it."""
        return self._records.late_time

    @property
    def is_waiting(self) -> bool:
        """Whether a message waits for the rest of its record."""
        return self._records.is_waiting

    def restart(self) -> list[Line]:
        """Lines were passed over; the lines that waited for the end of their record."""
        self._learned = None
        return self._of_record(self._records.restart(), 0)

    def read(self, raw: bytes, number: int) -> list[Line]:
        """The kernel's messages in one line of the log; none for a line of somebody else."""
        plain = _PLAIN.match(raw)
        if plain and b"kernel:" not in raw and not self._is_kmsg:
            stamp = plain[1]
            text = (plain[2] if stamp else raw).decode("ascii")
            if stamp and b"\\n" not in raw:
                at = stamp.decode("ascii")
                return [Line(number, at, text, True, len(raw), float(at), True)]
            is_bare = not stamp and not _SYSLOG.match(text)
            if is_bare and shape_of(text.lstrip()) not in _WORDY and not self._may_hold(raw):
                return [Line(number, None, text, False, len(raw))]
        said = self._records.read(raw, number)
        if said is not None:
            return self._of_record(said, number)
        may_be_json = b'"' in raw or (len(raw) < _BRACKET_LINE_MOST and self._is_bracket(raw))
        text = decode(raw if may_be_json else raw[:TEXT_MOST])
        if may_be_json and self._records.is_json(text):
            said = self._records.read_json(text, number)
            lines = self._of_record(said, number)
            if lines or self._records.is_waiting or self._records.is_inside:
                return lines
        return self._of_text(text[:TEXT_MOST], number)

    def _may_hold(self, raw: bytes) -> bool:
        """Whether a line without a prefix of the kernel's may hold its words all the same."""
        return (
            b'"' in raw or b"ill process" in raw or b"illed process" in raw or b"oom" in raw
            or b"emory" in raw or b"imestamp: " in raw or b"ask" in raw or raw[:1] in b"_MSP"
            or self._learned is not None or self._records.is_inside
        )  # fmt: skip

    @staticmethod
    def _is_bracket(raw: bytes) -> bool:
        return raw.strip()[:1] in (b"{", b"}", b"[", b"]")

    def _of_record(self, said: list[LogMessage], number: int) -> list[Line]:
        lines: list[Line] = []
        for message in said:
            place = message.number or number
            rest = (0, message.seconds, message.is_of_kernel, message.host)
            for index, part in enumerate(message.text.split("\n")[:_PARTS_MOST]):
                text = part[:TEXT_MOST].rstrip("\r")
                if message.is_quote:
                    lines += self._quoted(text, message.at, place)
                elif message.is_line:
                    lines += [
                        line._replace(
                            at=line.at or message.at,
                            is_prefixed=line.is_prefixed or not index,
                            host=line.host or message.host,
                            width=0,
                        )
                        for line in self._of_text(text, place)
                    ]
                else:
                    lines.append(Line(place, message.at, text, not index, *rest))
        return lines

    def _of_text(self, text: str, number: int) -> list[Line]:
        width = len(text)
        if text[:1] in (">", "|"):
            text = _QUOTES.sub("", text, count=1)
        if ("<" in text and text.lstrip()[:1] == "<") or text.rstrip()[-1:] == ">":
            text = _without_tags(text)
        if "\\n" in text:
            text = _ESCAPED_NEWLINE.sub("\n", text)
            first, *more = text.split("\n")
            if more:
                return [
                    line
                    for part in (first, *more[:_PARTS_MOST])
                    for line in self._of_text(part, number)
                ]
        found = self._split(text)
        if found is None:
            return self._quoted(text, None, number)
        at, text, is_prefixed, seconds, is_marked, host = found
        if "#01" in text:
            text = text.replace("#012", "\n").replace("#011", "\t")
        first, *more = text.split("\n")
        lines = [
            Line(number, at, first, is_prefixed, width, seconds, is_marked, host),
            *(Line(number, at, part, is_prefixed=False, width=0) for part in more),
        ]
        return [part for line in lines for part in self._spoken(line)]

    def _spoken(self, line: Line) -> list[Line]:
        """A line that begins with the kernel's words, or with any prefix before them."""
        text = line.text
        has_words = _holds_words(text)
        shape = shape_of(text.lstrip())
        if shape and not (has_words and shape in _WORDY):
            return [line]
        if not has_words:
            learned = self._learned.match(text) if self._learned and not shape else None
            if not learned:
                return [line]
            return [line._replace(text=text[learned.end() :], is_prefixed=True)]
        pieces = list(_SPOKEN.finditer(text))
        if not pieces or (shape and len(pieces) == 1 and not _is_far(text, pieces[0])):
            return [line]
        first = pieces[0]
        lead = text[: first.start()]
        if lead.strip() and len(lead) <= _LEARNED_MOST:
            self._learned = _pattern_of(lead)
        at = line.at or (_date_of(lead) if lead.strip() else None)
        ends = [piece.start() for piece in pieces[1:]] + [len(text)]
        return [
            line._replace(
                at=at,
                text=_unquoted(text[piece.start() : end], lead),
                is_prefixed=line.is_prefixed or bool(lead.strip()) or bool(place),
            )
            for place, (piece, end) in enumerate(zip(pieces, ends))  # noqa: B905
        ]

    def _quoted(self, text: str, at: str | None, number: int) -> list[Line]:
        """What another program repeats of the kernel's kills, word for word."""
        if not _holds_words(text):
            return []
        pieces = [found for found in _SPOKEN.finditer(text) if found.lastgroup != "other"]
        ends = [piece.start() for piece in pieces[1:]] + [len(text)]
        lines = []
        for piece, end in zip(pieces, ends):  # noqa: B905
            lead = text[: piece.start()]
            words = _unquoted(text[piece.start() : end], lead)
            when = at or _lead_of(lead[:_LEAD_MOST]).at
            lines.append(Line(number, when, words, True, 0, is_quote=True))
        return lines

    def _split(self, text: str) -> _Split | None:
        """None where the kernel did not speak."""
        at, host = None, None
        for _ in range(_RELAYS_MOST):
            relay = _RELAYS.match(text)
            if not relay:
                break
            at, host = relay["cri"] or relay["at"] or at, relay["host"] or host
            text = text[relay.end() :]
        found = self._split_relayed(text)
        if found is None or not (at or host):
            return found
        return (found[0] or at, found[1], True, found[3], found[4], found[5] or host)

    def _split_relayed(self, text: str) -> _Split | None:
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


def _pattern_of(lead: str) -> re.Pattern[str] | None:
    """The same prefix on the lines that follow: its digits and blanks may differ."""
    parts = [
        r"\d+" if part[0].isdigit() else r"\s+" if part.isspace() else re.escape(part)
        for part in _FLEXIBLE.split(lead)
        if part
    ]
    return re.compile("".join(parts[:-1] if parts[-1] == r"\s+" else parts) + r"\s?", re.ASCII)


def _holds_words(text: str) -> bool:
    """Whether any of the kernel's own words may be in it."""
    if "oom" in text or "ill" in text or "emory" in text or "in /" in text:
        for words in _SPOKEN_WORDS:
            if words in text:
                return True
    return False


def _is_far(text: str, piece: re.Match[str]) -> bool:
    """Whether more stands before the kernel's words than a name may be."""
    lead = text[: piece.start()].strip()
    if piece.lastgroup != "head" or not lead:
        return bool(lead)
    name = text[: text.find(" invoked", piece.start())].strip()
    return len(name.encode("utf-8", "replace")) > 15 or "\t" in name


def _unquoted(text: str, lead: str) -> str:
    """Without what stands behind the quotation mark that opened before it."""
    mark = lead[-1:]
    if mark in ("'", '"', "`"):
        return text.split(mark, 1)[0]
    return text


def _without_tags(text: str) -> str:
    """Without the tags of a web page at its ends."""
    start = _TAGS.match(text)
    text = text[start.end() :] if start else text
    at = text.rfind("<", max(len(text) - 200, 0))
    for _ in range(4):
        end = _TAGS.match(text, at) if at >= 0 else None
        if end is None or end.end() < len(text.rstrip()):
            break
        text = text[:at]
        at = text.rfind("<", max(len(text) - 200, 0))
    return text


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
        row = _EVENT_ROW.match(lead)
        return f"{row['age'] or row['seen']} ago" if row else None
    date = lead[: clock.end()]
    number = _EDITOR.match(date)
    if number and not date[number.end() :][:1].isdigit():
        date = date[number.end() :]
    return date.strip() or None
