# SPDX-License-Identifier: Apache-2.0
"""Paths and names as numbers: a container's id of 64 digits stands in a box once a key.

``words``: new ones; ``folders``: new ones as parent, word, parent, word ...  Number 0 of the
folders is none at all: ``/proc`` is the word ``proc`` in a folder that is the empty word in none.
A name in a list is the number of its word; of a folder (it ends with ``/``) -1 less the number.
"""

from collections.abc import Iterable
from typing import Final

from seawall.host.host import JSON

WORDS_MOST: Final = 400_000
PATH_MOST: Final = 16_384
CHARACTERS_MOST: Final = 64 << 20


class WordEncoder:
    """What the other end knows, and what it has to be told next."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._folders: dict[str, int] = {}
        self._new_words: list[JSON] = []
        self._new_folders: list[JSON] = []

    def word(self, word: str) -> int:
        """The number of a word; a new one is given the next, and goes into ``news``."""
        number = self._words.get(word)
        if number is None:
            number = self._words[word] = len(self._words)
            self._new_words.append(word)
        return number

    def path(self, path: str) -> tuple[int, int]:
        """A path as two numbers: its folder's (0: none) and its last word's."""
        folder, slash, word = path.rpartition("/")
        return (self._folder(folder) if slash else 0), self.word(word)

    def name(self, name: str) -> int:
        """A name as it stands in a list: its word's number, or for a folder -1 less that."""
        return -1 - self.word(name[:-1]) if name.endswith("/") else self.word(name)

    def news(self) -> dict[str, JSON]:
        """New words and folders since the last call, as the body's fields; empty: none."""
        told: dict[str, JSON] = {}
        if self._new_words:
            told["words"], self._new_words = self._new_words, []
        if self._new_folders:
            told["folders"], self._new_folders = self._new_folders, []
        return told

    def _folder(self, path: str) -> int:
        number = self._folders.get(path)
        if number is None:
            parent, word = self.path(path)
            number = self._folders[path] = len(self._folders) + 1
            self._new_folders += (parent, word)
        return number


class WordDecoder:
    """The other end; ValueError for what cannot be."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._folders = [""]
        self.characters = 0

    def learn(self, words: JSON, folders: JSON) -> None:
        """Take in the new words and folders of one body; ValueError for what no writer writes."""
        for word in listed(words):
            if not isinstance(word, str) or len(word) > PATH_MOST:
                raise ValueError("a word is a short text")
            self._words.append(word)
            self.characters += len(word) + 64
        told = listed(folders)
        if len(told) % 2:
            raise ValueError("a folder has a parent and a word")
        for parent, word in zip(told[::2], told[1::2], strict=True):
            self._folders.append(self.path(parent, word))
            self.characters += len(self._folders[-1]) + 64
            if self.characters > CHARACTERS_MOST:
                break
        if len(self._words) + len(self._folders) > WORDS_MOST or self.characters > CHARACTERS_MOST:
            raise ValueError("more names than any machine has")

    def word(self, number: JSON) -> str:
        """The word that has this number; ValueError for a number that none has."""
        return self._words[_place(number, len(self._words))]

    def path(self, folder: JSON, word: JSON) -> str:
        """Of a folder and a word in it."""
        place = _place(folder, len(self._folders))
        path = f"{self._folders[place]}/{self.word(word)}" if place else self.word(word)
        if len(path) > PATH_MOST:
            raise ValueError("a path is too long")
        return path

    def names(self, numbers: Iterable[JSON]) -> list[str]:
        """The names that these numbers stand for in a list; a folder ends with ``/``."""
        return [
            self.word(-1 - number) + "/" if type(number) is int and number < 0
            else self.word(number)
            for number in numbers
        ]  # fmt: skip


def _place(number: JSON, most: int) -> int:
    if type(number) is not int or not 0 <= number < most:
        raise ValueError("a number that nobody gave")
    return number


def listed(value: JSON) -> list[JSON]:
    """Of a body: nothing is an empty list; ValueError when it is something else."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError("expected a list")  # noqa: TRY004 - of a hostile file, not of a caller
    return value
