import enum
from dataclasses import dataclass, field


class Kind(enum.StrEnum):
    """The kinds of damage, as `audit verify`, the page and the single-file verifier name them (docs/audit.md)."""

    BYTES = "bytes"  # the bytes do not give the hash
    COLUMN = "column"  # a column says something else than the bytes
    MISSING = "missing"
    ADDED = "added"  # two entries at one place
    MOVED = "moved"  # the bytes name another place of the chain
    FOREIGN = "foreign"  # the bytes name another chain
    LINK = "link"  # it does not follow the entry before it
    UNSIGNED = "unsigned"
    SIGNATURE = "signature"
    KEY = "key"  # signed with a key that is not trusted
    REWRITTEN = "rewritten"  # a signed head says another hash
    CUT = "cut"  # the chain ends before an end that is known
    HEAD_MISSING = "head_missing"
    HEAD_BACK = "head_back"  # the head is behind the chain
    HEADS_MISSING = "heads_missing"  # signed heads were taken out
    SEGMENT = "segment"  # a segment that is not what was sealed
    NOT_EXPORTED = "not_exported"  # dropped without a signed export
    EMPTIED = "emptied"  # nothing is left of the chain


@dataclass(frozen=True)
class Finding:
    seq: int
    kind: Kind
    text: str


@dataclass(frozen=True)
class ChainReport:
    chain: str
    checked: int
    first_seq: int
    last_hash: str
    signatures: int = 0
    findings: tuple[Finding, ...] = field(default=())

    @property
    def intact(self) -> bool:
        return not self.findings

    @property
    def broken_seq(self) -> int | None:
        return self.findings[0].seq if self.findings else None

    @property
    def kind(self) -> str:
        return self.findings[0].kind if self.findings else ""

    @property
    def problem(self) -> str:
        return "; ".join(found.text for found in self.findings)
