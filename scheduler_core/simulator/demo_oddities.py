"""Gangs that wait for a reason of their own each day, beside the healthy ones that wait for room."""

import msgspec

from scheduler_core.simulator.demo_nodes import A100, GPU, H200, H800
from scheduler_core.simulator.demo_workloads import template
from scheduler_core.simulator.workload import OwnerKind, PodTemplate, Workload

# On the workload: which mistake it shows; such a gang does not count as the backlog of its queue.
ODDITY_LABEL = "tidesched.io/demo-oddity"


class Oddity(msgspec.Struct, frozen=True, kw_only=True):
    """A gang that cannot run as it was written, there from hour ``begin`` to hour ``end`` of each day."""

    namespace: str
    name: str
    queue: str
    shows: str
    template: PodTemplate
    members: int
    begin: float
    end: float

    def workload(self, lap: int) -> Workload:
        """As it is submitted on day ``lap``."""
        return Workload(
            namespace=self.namespace, name=f"{self.name}-lap{lap}", queue=self.queue, service_type="training",
            owner_kind=OwnerKind.JOB, template=self.template, replicas=self.members, min_member=self.members,
            priority_class="pc-low", duration=3600.0, labels={ODDITY_LABEL: self.shows},
        )  # fmt: skip


ODDITIES = (
    Oddity(
        namespace="borealis-assistant-models", name="pretrain-xxl", queue="train-assistant-models",
        shows="more-than-its-quota", template=template((H200,), 8000), members=8, begin=6.5, end=15.0,
    ),
    Oddity(
        namespace="ember-commerce-models", name="borrowed-model", queue="train-commerce-models",
        shows="no-quota-for-this-card", template=template((H200,), 4000), members=2, begin=8.0, end=13.0,
    ),
    Oddity(
        namespace="atlas-search-models", name="forgot-the-card", queue="train-search-models", shows="no-card-name",
        template=PodTemplate(cpu_milli=16_000, memory_mib=65_536, resource=GPU, card_milli=2000), members=2,
        begin=6.5, end=11.0,
    ),
    Oddity(
        namespace="fjord-alignment", name="next-generation", queue="train-alignment", shows="unknown-card",
        template=PodTemplate(
            cpu_milli=32_000, memory_mib=131_072, card_names=("NVIDIA-B300",), resource=GPU, card_milli=8000
        ),
        members=2, begin=9.0, end=18.0,
    ),
    Oddity(
        namespace="platform-batch", name="old-queue", queue="train-retired", shows="unknown-queue",
        template=template((A100,), 1000), members=4, begin=7.0, end=17.0,
    ),
    Oddity(
        namespace="fjord-foundation-models", name="whole-host", queue="train-foundation-models", shows="no-such-node",
        template=PodTemplate(
            cpu_milli=256_000, memory_mib=524_288, card_names=(H800,), resource=GPU, card_milli=8000
        ),
        members=1, begin=10.0, end=14.0,
    ),
)  # fmt: skip
