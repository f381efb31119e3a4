"""What a cluster answers when a call cannot be done: one type, with a code that an API server can map to a status."""

import enum


class Refusal(enum.StrEnum):
    NOT_FOUND = "NotFound"
    ALREADY_EXISTS = "AlreadyExists"
    INVALID = "Invalid"
    UID_MISMATCH = "UIDMismatch"
    ALREADY_BOUND = "AlreadyBound"
    TERMINATING = "Terminating"
    NODE_FULL = "NodeFull"


class WorldError(Exception):
    """A call that the cluster refuses; nothing has changed. ``code``: why. ``message``: one sentence with names and
    numbers. ``node``: the node that the pod is bound to already (``ALREADY_BOUND``), else empty."""

    def __init__(self, code: Refusal, message: str, *, node: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.node = code, message, node
