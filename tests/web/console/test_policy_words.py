"""The policy page says in words what the sessions under a text do."""

from __future__ import annotations

import html
import re

import pytest
from django.utils import translation

from scheduler_core.actions import ACTIONS
from scheduler_core.plugins import PLUGINS
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Membership, TenantRole, User
from tidesched_web.clusters.models import PolicyRevision
from tidesched_web.console import policy_words
from tidesched_web.engine.demo import FOUNDING_POLICY
from tidesched_web.jobs.models import Job


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


def test_each_action_and_plugin_has_words_for_its_absence_and_for_its_coming() -> None:
    assert {name for names in policy_words.WITHOUT for name in names} == {*ACTIONS, "gang"}
    assert policy_words.PLUGINS.keys() == {*PLUGINS}
    everything = FOUNDING_POLICY.replace("enqueue, allocate, backfill, reclaim", ", ".join(ACTIONS))
    (_title, ends), (_title, begins) = policy_words.turned(everything, FOUNDING_POLICY)
    assert {one.name for one in ends} == ACTIONS.keys() - {"enqueue", "allocate", "backfill", "reclaim"}
    assert {one.name: one.does for one in ends}["gangreclaim"] == "reclaim stays for the same"
    assert begins == []
    plain = FOUNDING_POLICY.replace("  - name: gang\n    enableReclaimable: false\n", "")
    (_title, ends), (_title, begins) = policy_words.turned(plain, FOUNDING_POLICY)
    assert (ends, [(one.name, str(one.does)) for one in begins]) == (
        [], [("gang", "runs a gang with its minimum or not at all")],
    )  # fmt: skip
    (_title, ends), _begins = policy_words.turned(FOUNDING_POLICY, plain)
    assert [(one.name, str(one.does)) for one in ends] == [
        ("gang", "gangs are no longer started whole: single pods may start")
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "said", "nothing"),
    [
        ("en", "nothing is taken back between queues any more", "Nothing found"),
        ("zh-hans", "队列之间不再回收任何卡", "没有问题"),
    ],
)
def test_the_check_names_an_action_that_the_new_text_leaves_out(world, language: str, said: str, nothing: str) -> None:
    """It said that nothing was found."""
    PolicyRevision.objects.filter(cluster=world.cluster).update(text=FOUNDING_POLICY)
    User.objects.filter(pk=world.admin.pk).update(language=language)
    text = FOUNDING_POLICY.replace(", reclaim", "", 1)
    client, form = client_of(world.admin), {"text": text, "version": 1, "act": "check"}
    page = client.post("/clusters/demo/policy/", form).content.decode()
    found = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert f"reclaim : {said}" in found
    assert nothing not in found


@pytest.mark.django_db
def test_only_a_platform_admin_checks_a_policy_and_reads_the_answer(world) -> None:
    """Neither an auditor nor who administers a tenant."""
    address = "/clusters/demo/policy/"
    client_of(world.admin).post(address, {"text": FOUNDING_POLICY, "version": 1, "act": "check"})
    job = Job.objects.latest("pk")
    Membership.objects.filter(user=world.member).update(role=TenantRole.ADMIN)
    for who in (world.auditor, world.member):
        client = client_of(who)
        assert client.post(address, {"text": FOUNDING_POLICY, "version": 1, "act": "check"}).status_code == 403
        assert client.get(f"{address}trials/{job.pk}/").status_code == 403
    assert Job.objects.latest("pk") == job
    assert client_of(world.admin).get(f"{address}trials/{job.pk}/").status_code == 200


@pytest.mark.django_db
def test_apply_stands_below_the_answer_and_stays_with_it_where_it_is_refused(world) -> None:
    """Apply without a reason took the answer away."""
    client, form = client_of(world.admin), {"text": FOUNDING_POLICY, "version": 1}
    assert 'value="apply"' not in client.get("/clusters/demo/policy/").content.decode()
    checked = client.post("/clusters/demo/policy/", form | {"act": "check"}).content.decode()
    jobs = Job.objects.count()
    refused = client.post("/clusters/demo/policy/", form | {"act": "apply"}).content.decode()
    for page in (checked, refused):
        assert page.index("trial-title") < page.index("lint-title") < page.index('value="apply"')
    assert "Say why" in refused
    assert Job.objects.count() == jobs


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
