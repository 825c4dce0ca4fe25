# SPDX-License-Identifier: Apache-2.0
"""How many requests one death may cost: a storm must not be the API server's death as well."""


class NoRequestLeft(Exception):
    """What was to be asked stays unseen."""


class RequestBudget:
    """Counts down; ``take`` stands before each request."""

    __slots__ = ("left", "used")

    def __init__(self, requests: int) -> None:
        self.left = requests
        self.used = 0

    def take(self) -> None:
        """One request.  NoRequestLeft."""
        if self.left <= 0:
            raise NoRequestLeft
        self.left -= 1
        self.used += 1
