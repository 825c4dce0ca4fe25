# SPDX-License-Identifier: Apache-2.0
"""One moment of a host: every topic is read or summed at most once.

A topic is a class.  Its own module tells how to get it: ``read(host, ...)`` for a reading,
``account(...)`` for a sum.  The types of the parameters (after ``host``) are the topics that
it needs itself.  There is no second registry.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from seawall.host.host import BREAKS_OFF, Host, Unread
from seawall.readings.own_fault import unread_of

T = TypeVar("T")


class Snapshot:
    """Lazily filled; the same object answers the same question the same way for ever.

    ``known``: values of a moment before, which whoever makes this one takes for good enough.
    """

    def __init__(self, host: Host, known: Mapping[type[Any], Any] | None = None) -> None:
        self.host = host
        self._values: dict[type[Any], Any] = dict(known or {})

    def get(self, topic: type[T]) -> T | Unread:
        """The topic's value at this moment, or the reason why there is none; the snapshot
        itself for ``Snapshot``: for sums over what is found by folder.
        """
        if topic is Snapshot:
            return cast("T", self)
        if topic not in self._values:
            self._values[topic] = self.fetch(topic)
        return cast("T | Unread", self._values[topic])

    def has(self, topic: type[Any]) -> bool:
        """Whether it was asked for already."""
        return topic in self._values

    def values(self) -> list[Any]:
        """Everything that was asked for, Unread ones included."""
        return list(self._values.values())

    def readings(self) -> dict[type[Any], Any]:
        """What was read so far, Unread ones included, without the sums made of it."""
        return {
            topic: value
            for topic, value in self._values.items()
            if hasattr(sys.modules[topic.__module__], "read")
        }

    def lost_below(self, topics: Iterable[type[Any]]) -> Iterator[Unread]:
        """What a bundle that was cut does not hold of these, and of what they are made of."""
        todo, done = list(topics), set[type[Any]]()
        while todo:
            topic = todo.pop()
            if topic in done or topic not in self._values:
                continue
            done.add(topic)
            value = self._values[topic]
            parts = (value,) if isinstance(value, Unread) else getattr(value, "unread", ())
            for part in parts if isinstance(parts, tuple) else ():
                if isinstance(part, Unread) and part.detail.endswith(BREAKS_OFF):
                    yield part
            if any(BREAKS_OFF in words for words in getattr(value, "unseen", ())):
                yield Unread(topic.__name__, "not_captured", BREAKS_OFF)
            module = sys.modules[topic.__module__]
            read = getattr(module, "read", None)
            needs = needs_of(read)[1:] if read else needs_of(module.account)
            todo.extend(need for _, need, _ in needs)

    def fetch(self, topic: type[Any]) -> Any:
        """Asked anew, where ``get`` remembers; a bug of ours is an Unread that says so."""
        module = sys.modules[topic.__module__]
        read: Callable[..., Any] | None = getattr(module, "read", None)
        function: Callable[..., Any] = read or module.account
        needs = needs_of(function)
        arguments: dict[str, Any] = {}
        for name, need, copes in needs[1:] if read else needs:
            value = self.get(need)
            if isinstance(value, Unread) and not copes:
                return value
            arguments[name] = value
        try:
            return function(self.host, **arguments) if read else function(**arguments)
        except Exception as error:  # noqa: BLE001 - one topic's fault is not the others'
            return unread_of(topic.__name__, error)


def needs_of(function: Callable[..., Any]) -> list[tuple[str, Any, bool]]:
    """(parameter, topic, copes with Unread) of every parameter without a default."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    needs = []
    for name in positional:
        kind = function.__annotations__[name]
        copes = False
        origin: Any = get_origin(kind)
        # A generic such as Window[X] makes a Union, a plain class a UnionType.
        if origin is Union or origin is UnionType:
            choices = [choice for choice in get_args(kind) if choice is not Unread]
            copes = len(choices) < len(get_args(kind))
            kind = choices[0]
        needs.append((name, kind, copes))
    return needs
