"""Who owns what in the medium demo: the demo's owners and as many again that the tree has 500 queues. The second hall's
queues keep the rule of the demo: for each card type neither the inference quotas together nor the training quotas
together exceed the hardware."""

import random
from collections import Counter
from functools import cache

from scheduler_core.simulator.demo_tenancy import PLATFORM, DemoBusinessLine, DemoProject, DemoQueue, DemoTenant
from scheduler_core.simulator.medium_nodes import hall_cards

_NAMES = (
    "alder", "aspen", "basalt", "birch", "cedar", "cliff", "comet", "coral", "dune", "falcon", "fern", "garnet",
    "glacier", "harbor", "heron", "indigo", "iris", "jade", "juniper", "lagoon", "larch", "lumen", "maple", "meadow",
    "nimbus", "onyx", "opal", "orchid", "pebble", "quartz", "raven", "sable", "tundra", "willow",
)  # fmt: skip
_FIELDS = ("Search", "Media", "Finance", "Health", "Mobility", "Games")
_PROJECTS = (
    DemoProject("search", "Search"), DemoProject("chat", "Chat"), DemoProject("vision", "Vision"),
    DemoProject("speech", "Speech"), DemoProject("ranking", "Ranking"), DemoProject("safety", "Safety"),
    DemoProject("embedding", "Embedding"), DemoProject("agents", "Agents"), DemoProject("forecast", "Forecast"),
)  # fmt: skip
_LINES = (("pretrain", "Pretraining"), ("finetune", "Fine-tuning"), ("eval", "Evaluation"), ("data", "Data"),
          ("research", "Research"))  # fmt: skip
_PLATFORM_LINES = (("platform-quality", "Quality"), ("platform-tools", "Tools"), ("platform-benchmarks", "Benchmarks"),
                   ("platform-training", "Courses"))  # fmt: skip
CARDS_OF_QUEUE = 2
# Of its hardware a card type's queues of one kind are promised so much.
_PROMISED_PERCENT = 90

TENANTS = tuple(
    DemoTenant(name, f"{name.title()} {_FIELDS[number % len(_FIELDS)]}", _PROJECTS)
    for number, name in enumerate(_NAMES)
)
BUSINESS_LINES = (
    *(DemoBusinessLine(f"{tenant}-{slug}", name, tenant) for tenant in _NAMES for slug, name in _LINES),
    *(DemoBusinessLine(slug, name, PLATFORM) for slug, name in _PLATFORM_LINES),
)


@cache
def queues() -> tuple[DemoQueue, ...]:
    """The queues of the second hall; the same for every seed, since both sides of the demo have to know them."""
    inference = [(tenant.slug, project.slug) for tenant in TENANTS for project in tenant.projects]
    lent = _shared_out(len(inference), "inference")
    made = [
        _queue(f"{tenant}-{project}", "inference", tenant, cards, f"{tenant}-{project}", project=project)
        for (tenant, project), cards in zip(inference, lent, strict=True)
    ]
    lent = _shared_out(len(BUSINESS_LINES), "training")
    made += [
        _queue(f"train-{line.slug}", "training", line.tenant, cards, line.slug, line=line.slug)
        for line, cards in zip(BUSINESS_LINES, lent, strict=True)
    ]
    return tuple(made)


def _shared_out(count: int, kind: str) -> list[dict[str, int]]:
    """A card quota for each of ``count`` queues of one kind."""
    cards = hall_cards()
    hands, total = count * CARDS_OF_QUEUE, sum(cards.values())
    deck = [card for card, units in cards.items() for _ in range(max(4, round(hands * units / total)))]
    random.Random(kind).shuffle(deck)
    drawn = [deck[number % len(deck)] for number in range(hands)]
    dealt = Counter(drawn)
    parts = {card: max(1, cards[card] * _PROMISED_PERCENT // 100 // times) for card, times in dealt.items()}
    result: list[dict[str, int]] = []
    for number in range(count):
        quota: Counter[str] = Counter()
        for card in drawn[number * CARDS_OF_QUEUE : (number + 1) * CARDS_OF_QUEUE]:
            quota[card] += parts[card]
        result.append(dict(sorted(quota.items())))
    return result


def _queue(
    name: str, kind: str, tenant: str, cards: dict[str, int], namespace: str, *, project: str = "", line: str = ""
) -> DemoQueue:
    count = sum(cards.values())
    return DemoQueue(
        name=name, service_type=kind, tenant=tenant, project=project, business_line=line, card_quota=cards,
        cpu=16 * count, memory_gib=128 * count, namespaces=(namespace,),
    )  # fmt: skip
