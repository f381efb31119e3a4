"""Card types, the cards of a node, and what a pod asks of them."""

import enum
from collections.abc import Iterable

import msgspec

from scheduler_core.model.resources import MILLI

# A set of cards of one node is kept as bits, so many in a word: without the sign bit of an int64 shifts need no care.
WORD_BITS = 63


class CardKind(enum.StrEnum):
    WHOLE = "whole"
    MIG = "mig"
    MPS = "mps"


class CardType(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One kind of accelerator, or of slice of one, under its canonical name.

    Attributes:
        name: ``NVIDIA-H200``, ``NVIDIA-H200/mig-1g.18gb-mixed``, ``NVIDIA-H800/mps-80g*1/2``.
        resource: the Kubernetes extended resource that counts it, e.g. ``nvidia.com/gpu``.
        kind: whole card, MIG slice or MPS share.
        parent: name of the whole card that it is cut from; None for a whole card."""

    name: str
    resource: str
    kind: CardKind = CardKind.WHOLE
    parent: str | None = None


class NodeCards(msgspec.Struct, frozen=True, gc=False):
    """The cards of one type on one node; each of the ``count`` is a row of the card table (1000 milli-cards)."""

    card: str
    resource: str
    count: int


class CardRequest(msgspec.Struct, frozen=True, gc=False):
    """What one pod asks of cards.

    Attributes:
        names: card types that will do, the preferred one first (``A|B``); empty when the pod names none
            and simply takes ``resource`` from whatever node has it.
        resource: the extended resource in the pod's limits or requests; empty for a share by annotation.
        milli: milli-cards in all: 2000 for two whole cards, 460 for a share of one.
        written: False where the names follow from the nodes that the pod may use, or from there being one card alone.
    """

    names: tuple[str, ...]
    resource: str
    milli: int
    written: bool = True

    @property
    def key(self) -> str:
        """The name as written, ``A|B`` for a choice; empty when no card is named."""
        return "|".join(self.names)

    @property
    def is_share(self) -> bool:
        """True when it needs room on a single card rather than whole cards."""
        return self.milli % MILLI != 0

    def type_on(self, cards: Iterable[NodeCards]) -> str:
        """The card type that the pod takes on a node: the first of its names that is there; without names by resource.
        ``cards``: of the node, in its order. Returns: Name of a card type; empty where the node has none that will
        do."""
        if self.names:
            have = {group.card for group in cards}
            return next((name for name in self.names if name in have), "")
        return next((group.card for group in cards if group.resource == self.resource), "")
