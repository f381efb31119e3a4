"""What runs in the demo: inference services that follow the tide, and the kinds of training that fill the ebb."""

import msgspec

from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.demo_nodes import (
    A100,
    A100_MIG_1G,
    A100_MIG_3G,
    GPU,
    H200,
    H800,
    H800_MPS,
    L40S,
    RESOURCES,
)
from scheduler_core.simulator.workload import PodTemplate


class DemoService(msgspec.Struct, frozen=True, kw_only=True):
    """An inference service.

    Attributes:
        queue: its queue, ``tenant-project``, which is its namespace too. cards: card types that will do.
        milli: milli-cards of one pod. peak: pods at the height of the tide. floor: pods at its lowest.
        lead: hours by which its tide runs ahead of the common one."""

    queue: str
    name: str
    cards: tuple[str, ...]
    milli: int = MILLI
    peak: int
    floor: int = 1
    lead: float = 0.0
    priority_class: str = "pc-high"


class DemoTraining(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of training that one queue sees again and again. ``members``: sizes of its gangs, in pods. ``milli``:
    milli-cards of one pod. ``hours``: shortest and longest run. ``weight``: how often it comes, against the others of
    its queue. ``aborts``: an eviction ends it, its owner will hand in another; otherwise it starts again."""

    queue: str
    name: str
    cards: tuple[str, ...]
    milli: int
    members: tuple[int, ...]
    hours: tuple[float, float]
    weight: int = 1
    aborts: bool = False
    priority_class: str = "pc-low"


SERVICES = (
    DemoService(queue="atlas-web-search", name="query-rewriter", cards=(H200,), peak=12, floor=2),
    DemoService(queue="atlas-web-search", name="answer-llm-70b", cards=(H200,), milli=4000, peak=5),
    DemoService(queue="atlas-ads", name="ctr-model", cards=(H800,), peak=18, floor=3, lead=0.5),
    DemoService(queue="atlas-ads", name="creative-llm-13b", cards=(H800,), milli=2000, peak=6),
    DemoService(queue="atlas-ads", name="bid-tuner", cards=(A100_MIG_3G,), peak=7, priority_class="pc-medium"),
    DemoService(queue="borealis-chat", name="chat-llm-235b", cards=(H200,), milli=4000, peak=9),
    DemoService(queue="borealis-chat", name="chat-llm-32b", cards=(H200,), milli=2000, peak=8, floor=1),
    DemoService(queue="borealis-code", name="code-llm-70b", cards=(H200,), milli=4000, peak=5, lead=1.0),
    DemoService(queue="borealis-code", name="code-completion", cards=(H800, H200), peak=9, lead=1.0),
    DemoService(queue="cobalt-video", name="video-captioner", cards=(A100,), milli=2000, peak=14, lead=-1.5),
    DemoService(queue="cobalt-video", name="thumbnailer", cards=(L40S,), milli=500, peak=30, floor=4, lead=-1.5),
    DemoService(queue="cobalt-video", name="scene-search", cards=(A100, L40S), peak=14, lead=-1.0),
    DemoService(queue="cobalt-documents", name="ocr", cards=(A100_MIG_1G,), peak=48, floor=6, lead=1.0),
    DemoService(queue="cobalt-documents", name="layout", cards=(A100_MIG_1G,), peak=14, floor=2, lead=1.0),
    DemoService(queue="delta-speech", name="streaming-asr", cards=(H800_MPS,), peak=38, floor=6),
    DemoService(queue="delta-speech", name="diarization", cards=(A100_MIG_3G,), peak=15, floor=2),
    DemoService(queue="delta-translation", name="translate-7b", cards=(L40S,), milli=250, peak=56, floor=8),
    DemoService(queue="delta-translation", name="translate-34b", cards=(H800,), milli=2000, peak=8),
    DemoService(queue="ember-recommend", name="ranker", cards=(H800,), peak=20, floor=3, lead=-2.0),
    DemoService(queue="ember-recommend", name="embedder", cards=(H800,), milli=4000, peak=3, lead=-2.0),
    DemoService(queue="ember-support", name="support-llm-14b", cards=(H200,), milli=2000, peak=8, lead=0.5),
    DemoService(queue="ember-support", name="intent", cards=(A100_MIG_1G,), peak=15, floor=2, lead=0.5),
    DemoService(queue="fjord-evaluation", name="judge", cards=(A100_MIG_1G,), peak=14, priority_class="pc-normal"),
)

TRAINING = (
    DemoTraining(
        queue="train-search-models", name="ranker", cards=(H800,), milli=4000, members=(2, 4),
        hours=(1.0, 5.0), weight=3
    ),
    DemoTraining(
        queue="train-search-models", name="retriever", cards=(H200,), milli=2000, members=(2, 4), hours=(0.5, 3.0)
    ),
    DemoTraining(
        queue="train-assistant-models", name="sft", cards=(H200,), milli=4000, members=(2, 4),
        hours=(0.5, 4.0), weight=3
    ),
    DemoTraining(
        queue="train-assistant-models", name="rlhf", cards=(H200,), milli=4000, members=(4, 6), hours=(2.0, 6.0),
        aborts=True,
    ),
    DemoTraining(
        queue="train-vision-models", name="detector", cards=(A100,), milli=2000, members=(4, 6),
        hours=(1.0, 5.0), weight=2
    ),
    DemoTraining(
        queue="train-vision-models", name="diffusion", cards=(A100, L40S), milli=4000, members=(2, 3),
        hours=(1.0, 6.0),
        weight=2,
    ),
    DemoTraining(
        queue="train-speech-models", name="acoustic", cards=(L40S,), milli=2000, members=(2, 4),
        hours=(0.5, 4.0), weight=3
    ),
    DemoTraining(
        queue="train-speech-models", name="vocoder", cards=(H800_MPS,), milli=1000, members=(4, 6), hours=(0.5, 3.0),
        weight=2,
    ),
    DemoTraining(
        queue="train-speech-models", name="augment", cards=(A100_MIG_3G,), milli=1000, members=(2, 4),
        hours=(0.3, 2.0),
        aborts=True,
    ),
    DemoTraining(
        queue="train-commerce-models", name="recsys", cards=(H800,), milli=4000, members=(2, 3), hours=(1.0, 5.0)
    ),
    DemoTraining(
        queue="train-foundation-models", name="pretrain", cards=(H200,), milli=4000, members=(4, 8),
        hours=(3.0, 10.0),
        weight=3, priority_class="pc-normal",
    ),
    DemoTraining(
        queue="train-foundation-models", name="ablation", cards=(H200, H800), milli=4000, members=(2, 4),
        hours=(0.5, 3.0),
        weight=2,
    ),
    DemoTraining(
        queue="train-foundation-models", name="mixture", cards=(H800,), milli=4000, members=(4,), hours=(2.0, 6.0)
    ),
    DemoTraining(
        queue="train-alignment", name="reward", cards=(H800,), milli=2000, members=(2, 4), hours=(0.5, 3.0), weight=2
    ),
    DemoTraining(
        queue="train-alignment", name="dpo", cards=(H200,), milli=4000, members=(2,), hours=(1.0, 4.0), aborts=True
    ),
    DemoTraining(
        queue="train-platform-batch", name="embedding-dump", cards=(A100,), milli=1000, members=(4, 8),
        hours=(0.5, 4.0),
        weight=2, aborts=True,
    ),
    DemoTraining(
        queue="train-platform-batch", name="distill", cards=(H200,), milli=2000, members=(2, 4), hours=(1.0, 4.0)
    ),
    DemoTraining(
        queue="train-platform-notebooks", name="notebook", cards=(A100_MIG_1G,), milli=1000, members=(1, 2),
        hours=(0.3, 4.0), weight=4, aborts=True,
    ),
    DemoTraining(
        queue="train-platform-notebooks", name="sandbox", cards=(H800_MPS,), milli=1000, members=(1, 2),
        hours=(0.3, 3.0),
        weight=2, aborts=True,
    ),
    DemoTraining(
        queue="train-platform-notebooks", name="share", cards=(L40S,), milli=500, members=(1, 2), hours=(0.3, 3.0),
        weight=2, aborts=True,
    ),
)  # fmt: skip


# Milli-cores and MiB that go with one whole card, slice or share.
_PER_CARD = {
    GPU: (8000, 98_304),
    RESOURCES[H800_MPS]: (4000, 49_152),
    RESOURCES[A100_MIG_1G]: (2000, 12_288),
    RESOURCES[A100_MIG_3G]: (6000, 49_152),
}


def template(cards: tuple[str, ...], milli: int) -> PodTemplate:
    """One pod that asks for ``milli`` milli-cards, with cpu and memory in step."""
    resource = RESOURCES[cards[0]]
    cpu_milli, memory_mib = _PER_CARD[resource]
    return PodTemplate(
        cpu_milli=cpu_milli * milli // MILLI, memory_mib=memory_mib * milli // MILLI, card_names=cards,
        resource=resource if milli % MILLI == 0 else "", card_milli=milli,
    )  # fmt: skip
