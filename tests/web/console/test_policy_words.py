"""The policy page says in words what the sessions under a text do."""

from __future__ import annotations

import html
import re

import pytest
from django.utils import translation

from scheduler_core.actions import ACTIONS
from scheduler_core.plugins import PLUGINS
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import User
from tidesched_web.clusters.models import PolicyRevision
from tidesched_web.console import policy_words
from tidesched_web.engine.demo import FOUNDING_POLICY


@pytest.mark.parametrize(("words", "known"), [(policy_words.ACTIONS, ACTIONS), (policy_words.PLUGINS, PLUGINS)])
def test_each_action_and_plugin_has_words_in_each_language(words: dict, known: dict) -> None:
    assert sorted(words) == sorted(known)
    with translation.override("zh-hans"):
        assert [name for name, text in words.items() if not re.search("[\u4e00-\u9fff]", str(text))] == []


def test_a_policy_in_words_has_its_actions_in_order_its_tiers_and_its_cool_down() -> None:
    said = policy_words.policy_words(FOUNDING_POLICY)
    assert [one.name for one in said.actions] == ["enqueue", "allocate", "backfill", "reclaim"]
    assert [[one.name for one in tier] for tier in said.tiers] == [
        ["priority", "gang", "conformance"], ["predicates", "capacity-card", "nodeorder"],
    ]  # fmt: skip
    assert (said.reclaims, said.as_upstream, said.profiles) == (True, False, [])
    assert said.cool_down
    assert policy_words.policy_words("actions: [") is None
    upstream = policy_words.policy_words(f"compatibility: volcano\n{FOUNDING_POLICY}")
    assert (upstream.as_upstream, upstream.cool_down) == (True, None)


def test_each_action_has_words_for_its_absence() -> None:
    assert sorted(name for names in policy_words.WITHOUT for name in names) == sorted(ACTIONS)
    everything = FOUNDING_POLICY.replace("enqueue, allocate, backfill, reclaim", ", ".join(ACTIONS))
    without = policy_words.left_out(everything, FOUNDING_POLICY)
    assert {one.name for one in without} == ACTIONS.keys() - {"enqueue", "allocate", "backfill", "reclaim"}
    assert {one.name: one.does for one in without}["gangreclaim"] == "reclaim stays for the same"
    assert policy_words.left_out(FOUNDING_POLICY, everything) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "left_out", "said", "nothing"),
    [
        ("en", "Left out: reclaim", "nothing is taken back between queues any more", "Nothing found"),
        ("zh-hans", "已去掉：reclaim", "队列之间不再回收任何卡", "没有问题"),
    ],
)
def test_the_check_names_an_action_that_the_new_text_leaves_out(
    world, language: str, left_out: str, said: str, nothing: str
) -> None:
    """It said that nothing was found."""
    PolicyRevision.objects.filter(cluster=world.cluster).update(text=FOUNDING_POLICY)
    User.objects.filter(pk=world.admin.pk).update(language=language)
    text = FOUNDING_POLICY.replace(", reclaim", "", 1)
    client, form = client_of(world.admin), {"text": text, "version": 1, "act": "check"}
    page = client.post("/clusters/demo/policy/", form).content.decode()
    found = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert left_out in found
    assert said in found
    assert nothing not in found


@pytest.mark.django_db
def test_the_policy_page_says_what_sessions_do(world) -> None:
    """It had the YAML text alone."""
    PolicyRevision.objects.filter(cluster=world.cluster).update(text=FOUNDING_POLICY)
    pages = []
    for language in ("en", "zh-hans"):
        User.objects.filter(pk=world.admin.pk).update(language=language)
        page = client_of(world.admin).get("/clusters/demo/policy/").content.decode()
        pages.append(" ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split()))
    assert "What do sessions do under it?" in pages[0]
    assert re.search("enqueue decides which gangs .* reclaim evicts whole gangs of other queues", pages[0])
    assert "An evicted gang is not evicted again by reclaim for" in pages[0]
    assert "会话" in pages[1].partition("enqueue")[0]
