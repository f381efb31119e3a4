"""Written where its figure is sent and never edited, but for the answer: sent again, a refused one is the same step."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tidesched_web.audit.selectors import newest_about
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota import tide
from tidesched_web.quota.models import Queue, TideAnswer, TidePlan, TideStep
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.quota.tide_selectors import beyond_base, plan_documents

# So many of a plan's newest audit entries are looked through for the one that ended a layer.
ENTRIES = 50


@dataclass(frozen=True)
class Turned:
    """A queue (through `with_card_quota`, its ``tide`` as before the push), what it was sent, and the answer."""

    queue: Queue
    effective: Mapping[str, int]
    answer: TideAnswer
    message: str = ""

    def figures(self) -> Iterator[tuple[str, int, int]]:
        base, told = card_quota_of(self.queue), self.queue.tide
        for card in sorted({*told, *beyond_base(base, self.effective)}):
            before, after = told.get(card, base.get(card, 0)), self.effective.get(card, 0)
            if before != after:
                yield card, before, after


def note_steps(cluster: Cluster, turned: Sequence[Turned]) -> None:
    """Write the steps of a push. Nothing is asked of the database where the clock has changed nothing."""
    figures = [(one, *figure) for one in turned for figure in one.figures()]
    if not figures:
        return
    plans, now = tide.enabled_plans(plan_documents(cluster)), cluster.clock()
    base = {one.queue.name: card_quota_of(one.queue) for one in turned}
    wanted = tide.effective_quota(base, plans, now)
    queues = {one.queue.pk for one in turned}
    newest = TideStep.objects.filter(queue__in=queues).order_by("queue_id", "card", "-id").distinct("queue_id", "card")
    known = {(step.queue_id, step.card): step for step in newest}
    open_now, made = tide.open_layers(plans, now), []
    ended = [(plan, one) for plan in plans for one in tide.ended_layers(plan, now)]
    by = cache(lambda plan, layer: _ended_by(cluster, plan, layer))
    for one, card, before, after in figures:
        last = known.get((one.queue.pk, card))
        own = tide.about(plans, one.queue.name, card)
        since = tide.last_change(own, now)
        if last is not None and (last.since, last.before, last.after) == (since, before, after):
            _answer(last, one, now)
            continue
        # A plan that was switched off or deleted is about the step that ends it too.
        earlier = last.plans if last is not None and card in one.queue.tide else ()
        made.append(
            TideStep(
                cluster=cluster,
                queue=one.queue,
                card=card,
                plans=sorted({*(plan.name for plan in own), *earlier}),
                layers=tide.names_of(plans, _about(plans, open_now, one.queue.name, card), "#%(n)s"),
                taken_back=[
                    {
                        "plan": plan.name,
                        "layer": plan.layers[it.layer].name or f"#{it.layer + 1}",
                        "by": by(plan.name, it.layer),
                        "opens_next": it.opens_next.isoformat() if it.opens_next else None,
                    }
                    for plan, it in ended
                    if it.at == since and card in plan.layers[it.layer].quota.get(one.queue.name, {})
                ],
                since=since,
                at=now,
                answered_at=now,
                before=before,
                after=after,
                wanted=wanted[one.queue.name].get(card, 0),
                answer=one.answer,
                message=one.message,
            )
        )
    TideStep.objects.bulk_create(made)


def _about(plans: Sequence[tide.Plan], open_now: tide.Open, queue: str, card: str) -> tide.Open:
    return tuple(place for place in open_now if card in plans[place[0]].layers[place[1]].quota.get(queue, {}))


def _ended_by(cluster: Cluster, plan: str, layer: int) -> str:
    row = TidePlan.objects.filter(cluster=cluster, name=plan).only("pk", "layers").first()
    if row is None or layer >= len(row.layers):
        return ""

    def stands(document: Mapping[str, Any] | None) -> bool:
        layers = (document or {}).get("layers", ())
        return any(one.get("ended_at") == ended_at and one.get("name") == name for one in layers)

    ended_at, name = row.layers[layer].get("ended_at"), row.layers[layer].get("name")
    for entry in newest_about("tide_plan", row.pk, ENTRIES):
        if stands(entry.after) and not stands(entry.before):
            return entry.actor
    return ""


def _answer(step: TideStep, one: Turned, now: dt.datetime) -> None:
    """Another answer to a step that was not taken; an answer that says the same is no news."""
    if step.answer == TideAnswer.TAKEN or (step.answer, step.message) == (one.answer, one.message):
        return
    TideStep.objects.filter(pk=step.pk).update(answer=one.answer, message=one.message, answered_at=now)


def delete_old_steps(*, cluster_id: int, keep: int, limit: int) -> int:
    """Delete what is beyond the newest ``keep`` steps of a cluster, at most ``limit`` at a time."""
    rows = TideStep.objects.filter(cluster=cluster_id).order_by("-id")
    edge = rows.values_list("pk", flat=True)[keep : keep + 1].first()
    if edge is None:
        return 0
    old = list(rows.filter(pk__lte=edge).order_by("id").values_list("pk", flat=True)[:limit])
    return TideStep.objects.filter(pk__in=old).delete()[0]
