# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the way to a gRPC server.

CallProblem ─┬─ WireProblem: what came is no HTTP/2, no HPACK or no gRPC
             ├─ SilentProblem: the time was over
             └─ StatusProblem: the server's own status, which is not 0
An OSError of the socket stays one.
"""


class CallProblem(Exception):
    """Words about a call that gave no answer."""


class WireProblem(CallProblem):
    """What came is not what the protocols say."""


class SilentProblem(CallProblem):
    """No answer in the time given."""


class StatusProblem(CallProblem):
    """grpc-status and grpc-message (https://grpc.io/docs/guides/status-codes/)."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"gRPC status {code}: {words}" if words else f"gRPC status {code}")
        self.code = code
