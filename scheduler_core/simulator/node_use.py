"""What is taken on one node: cpu, memory, pods, and each single card in milli-cards."""

from scheduler_core.model.cards import CardRequest
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.errors import Refusal, WorldError

Placement = tuple[str, tuple[int, ...]]


class NodeUse:
    """The books of one node, as its kubelet and device plugins keep them."""

    __slots__ = ("cards", "cpu_milli", "held", "memory_mib", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cpu_milli = self.memory_mib = 0
        self.held: set[str] = set()
        # Taken milli-cards of each card, by card type.
        self.cards: dict[str, list[int]] = {group.card: [0] * group.count for group in node.cards}

    def place(self, pod: Pod, card: str, indices: tuple[int, ...]) -> Placement:
        """Check that ``pod`` fits and say which cards it gets; nothing is taken yet.

        An empty ``card`` or ``indices`` leaves the choice to the node: the first type that the pod names and the node
        has, whole cards by lowest index, a share on the fullest card that still has room.

        Raises:
            WorldError: ``NODE_FULL``, with what is short; ``INVALID`` when the node has no such card."""
        node = self.node
        if len(self.held) >= node.pods:
            raise self._full(pod, f"it holds {len(self.held)} pods of {node.pods}")
        if pod.cpu_milli and self.cpu_milli + pod.cpu_milli > node.cpu_milli:
            raise self._full(pod, f"cpu {pod.cpu_milli}m asked, {node.cpu_milli - self.cpu_milli}m free")
        if pod.memory_mib and self.memory_mib + pod.memory_mib > node.memory_mib:
            raise self._full(pod, f"memory {pod.memory_mib}Mi asked, {node.memory_mib - self.memory_mib}Mi free")
        if pod.card is None:
            return "", ()
        chosen = card or pod.card.type_on(node.cards)
        if chosen not in self.cards or (pod.card.names and chosen not in pod.card.names):
            raise WorldError(Refusal.INVALID, f"node {node.name} has no card {chosen or pod.card.key!r} for {pod.key}")
        return chosen, self._indices(pod, pod.card, chosen, indices)

    def take(self, pod: Pod, card: str, indices: tuple[int, ...]) -> None:
        """Enter ``pod``; the placement comes from :meth:`place`."""
        self.held.add(pod.key)
        self._add(pod, card, indices, 1)

    def release(self, pod: Pod, card: str, indices: tuple[int, ...]) -> None:
        self.held.discard(pod.key)
        self._add(pod, card, indices, -1)

    def _add(self, pod: Pod, card: str, indices: tuple[int, ...], sign: int) -> None:
        self.cpu_milli += sign * pod.cpu_milli
        self.memory_mib += sign * pod.memory_mib
        # A card that was cut away under a running pod has no row left to enter.
        if pod.card is not None and (taken := self.cards.get(card)) is not None:
            for index in (i for i in indices if i < len(taken)):
                taken[index] += sign * (pod.card.milli if pod.card.is_share else MILLI)

    def _indices(self, pod: Pod, request: CardRequest, card: str, wanted: tuple[int, ...]) -> tuple[int, ...]:
        taken = self.cards[card]
        need, count = (request.milli, 1) if request.is_share else (MILLI, request.milli // MILLI)
        if wanted:
            if len(set(wanted)) != count or any(not 0 <= index < len(taken) for index in wanted):
                raise WorldError(Refusal.INVALID, f"{pod.key} asks for {count} cards, not for cards {list(wanted)}")
            if any(taken[index] + need > MILLI for index in wanted):
                raise self._full(pod, f"cards {list(wanted)} of {card} are taken")
            return wanted
        free = [index for index, used in enumerate(taken) if used + need <= MILLI]
        if len(free) < count:
            raise self._full(pod, f"{count} × {need} milli-cards of {card} asked, {len(free)} cards have that room")
        free.sort(key=lambda index: (-taken[index], index))
        return tuple(sorted(free[:count]))

    def _full(self, pod: Pod, detail: str) -> WorldError:
        return WorldError(Refusal.NODE_FULL, f"node {self.node.name} has no room for {pod.key}: {detail}")
