"""Who owns what in the demo: tenants, projects, business lines and their queues. Data only. Rules that the numbers
keep: for each card type the inference quotas together do not exceed the hardware (their peak can be served), nor do the
training quotas (the ebb is lent out once)."""

import msgspec

from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.demo_nodes import A100, A100_MIG_1G, A100_MIG_3G, H200, H800, H800_MPS, L40S

INFERENCE_PRIORITY, TRAINING_PRIORITY = 80_000, 20_000
PLATFORM = ""


class DemoProject(msgspec.Struct, frozen=True):
    slug: str
    name: str


class DemoBusinessLine(msgspec.Struct, frozen=True):
    """A business line, which training quota belongs to; ``tenant`` empty = the platform's own."""

    slug: str
    name: str
    tenant: str


class DemoTenant(msgspec.Struct, frozen=True):
    slug: str
    name: str
    projects: tuple[DemoProject, ...]


class DemoQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue with its owner.

    Attributes:
        tenant: slug; empty for the platform. project: slug, of an inference queue. business_line: slug, of a training
            queue. card_quota: whole cards or slices by card type. cpu: cores. memory_gib: GiB.
        namespaces: whose workloads may use it."""

    name: str
    service_type: str
    tenant: str
    project: str = ""
    business_line: str = ""
    card_quota: dict[str, int]
    cpu: int
    memory_gib: int
    weight: int = 1
    namespaces: tuple[str, ...] = ()

    @property
    def priority(self) -> int:
        return INFERENCE_PRIORITY if self.service_type == "inference" else TRAINING_PRIORITY

    @property
    def reclaimable(self) -> bool:
        return self.service_type == "training"

    def to_model(self) -> Queue:
        return Queue(
            name=self.name,
            weight=self.weight,
            priority=self.priority,
            reclaimable=self.reclaimable,
            cpu_milli=self.cpu * MILLI,
            memory_mib=self.memory_gib * 1024,
            card_quota={card: count * MILLI for card, count in sorted(self.card_quota.items())},
            service_type=self.service_type,
        )


TENANTS = (
    DemoTenant("atlas", "Atlas Search", (DemoProject("web-search", "Web search"), DemoProject("ads", "Ads ranking"))),
    DemoTenant(
        "borealis", "Borealis Assist", (DemoProject("chat", "Chat assistant"), DemoProject("code", "Code assistant"))
    ),
    DemoTenant(
        "cobalt", "Cobalt Vision", (DemoProject("video", "Video understanding"), DemoProject("documents", "Documents"))
    ),
    DemoTenant(
        "delta", "Delta Speech", (DemoProject("speech", "Speech to text"), DemoProject("translation", "Translation"))
    ),
    DemoTenant(
        "ember", "Ember Commerce", (DemoProject("recommend", "Recommendation"), DemoProject("support", "Support bot"))
    ),
    DemoTenant("fjord", "Fjord Research", (DemoProject("evaluation", "Model evaluation"),)),
)

BUSINESS_LINES = (
    DemoBusinessLine("search-models", "Search models", "atlas"),
    DemoBusinessLine("assistant-models", "Assistant models", "borealis"),
    DemoBusinessLine("vision-models", "Vision models", "cobalt"),
    DemoBusinessLine("speech-models", "Speech models", "delta"),
    DemoBusinessLine("commerce-models", "Commerce models", "ember"),
    DemoBusinessLine("foundation-models", "Foundation models", "fjord"),
    DemoBusinessLine("alignment", "Alignment", "fjord"),
    DemoBusinessLine("platform-batch", "Platform batch", PLATFORM),
    DemoBusinessLine("platform-notebooks", "Notebooks", PLATFORM),
)

PRIORITY_CLASSES = tuple(
    PriorityClass(name=name, value=value)
    for name, value in (("pc-high", 80_000), ("pc-low", 20_000), ("pc-medium", 60_000), ("pc-normal", 40_000))
)


def _inference(tenant: str, project: str, **cards: int) -> DemoQueue:
    return _queue(f"{tenant}-{project}", "inference", tenant, project, "", cards, f"{tenant}-{project}")


def _training(line: str, **cards: int) -> DemoQueue:
    tenant = next(item.tenant for item in BUSINESS_LINES if item.slug == line)
    namespace = f"{tenant}-{line}" if tenant else line
    return _queue(f"train-{line}", "training", tenant, "", line, cards, namespace)


_NAMES = {
    "h200": H200, "h800": H800, "h800_mps": H800_MPS, "a100": A100, "mig_1g": A100_MIG_1G, "mig_3g": A100_MIG_3G,
    "l40s": L40S,
}  # fmt: skip


def _queue(
    name: str, service_type: str, tenant: str, project: str, line: str, cards: dict[str, int], namespace: str
) -> DemoQueue:
    count = sum(cards.values())
    return DemoQueue(
        name=name,
        service_type=service_type,
        tenant=tenant,
        project=project,
        business_line=line,
        card_quota={_NAMES[key]: value for key, value in cards.items()},
        cpu=16 * count,
        memory_gib=128 * count,
        namespaces=(namespace,),
    )


QUEUES = (
    _inference("atlas", "web-search", h200=32),
    _inference("atlas", "ads", h800=32, mig_3g=8),
    _inference("borealis", "chat", h200=56),
    _inference("borealis", "code", h200=24, h800=8),
    _inference("cobalt", "video", a100=40, l40s=24),
    _inference("cobalt", "documents", mig_1g=64),
    _inference("delta", "speech", h800_mps=40, mig_3g=16),
    _inference("delta", "translation", h800=16, l40s=24, a100=8),
    _inference("ember", "recommend", h800=32),
    _inference("ember", "support", h200=16, mig_1g=16),
    _inference("fjord", "evaluation", mig_1g=16),
    _training("search-models", h800=40, h200=16),
    _training("assistant-models", h200=40),
    _training("vision-models", a100=48, l40s=24),
    _training("speech-models", l40s=32, h800_mps=24, mig_3g=16),
    _training("commerce-models", h800=32),
    _training("foundation-models", h200=72, h800=24),
    _training("alignment", h200=16, h800=16),
    _training("platform-batch", a100=32, h200=16),
    _training("platform-notebooks", mig_1g=48, h800_mps=16, l40s=8),
)
