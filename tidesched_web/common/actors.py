"""Who acts: a name for people to read, with the kind and the number that no other actor can take.

An `Actor` is its name, so that it can be stored and shown wherever a name is; the audit log hashes kind and id too.
"""

import enum
from typing import Self


class ActorKind(enum.StrEnum):
    """What an actor is. The id is the account's number for the first three, empty for the others."""

    USER = "user"
    TOKEN = "token"  # noqa: S105 - a kind of actor: a token of the account
    ACCOUNT = "account"  # an account that was named but has not proved to be present, as in a failed sign-in
    ANONYMOUS = "anonymous"
    PROCESS = "process"
    OPERATOR = "operator"  # a command on the machine itself
    UNKNOWN = "unknown"


class Actor(str):
    __slots__ = ("id", "issuer", "kind", "subject")
    kind: ActorKind
    id: str
    issuer: str
    subject: str

    def __new__(
        cls,
        name: str,
        kind: ActorKind,
        id: object = "",  # noqa: A002 - the word of the recipe
        *,
        issuer: str = "",
        subject: str = "",
    ) -> Self:
        """``issuer`` and ``subject``: whom a provider vouches for; "" where the account has a password."""
        made = super().__new__(cls, name)
        made.kind, made.id, made.issuer, made.subject = kind, str(id), issuer, subject
        return made


SCHEDULER = Actor("scheduler", ActorKind.PROCESS)
OBSERVER = Actor("observer", ActorKind.PROCESS)
SYSTEM = Actor("system", ActorKind.PROCESS)
ANONYMOUS = Actor("anonymous", ActorKind.ANONYMOUS)
# Who acts when an operator runs a command on the machine itself.
OPERATOR = Actor("operator (command line)", ActorKind.OPERATOR)

_OURS = {str(actor): actor for actor in (SCHEDULER, OBSERVER, SYSTEM, ANONYMOUS, OPERATOR)}
# No account may have such a name, in whatever case.
RESERVED = frozenset({
    "scheduler", "observer", "system", "anonymous", "operator", "process", "unknown", "tidesched", "volcano",
    "kubernetes", "kube-scheduler", "kube-system",
})  # fmt: skip


def actor_of(given: str) -> Actor:
    """``given`` as an actor: a bare name is one of our own processes, or unknown. It is never an account."""
    return given if isinstance(given, Actor) else _OURS.get(given) or Actor(given, ActorKind.UNKNOWN)
