"""A policy is checked on recorded sessions: what it would have ended and begun, in words and in gangs by tenant."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.test import Client

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import quota_writes
from tests.api.page_forms import post_opened
from tests.web.pipeline.stage import Stage
from tidesched_web.accounts import services as accounts
from tidesched_web.changes.policy_trial import MOST_SESSIONS, PolicyTrial
from tidesched_web.common import alive
from tidesched_web.jobs import running, services
from tidesched_web.jobs.models import Job, JobState
from tidesched_web.scheduling.models import Reclaim, Session

ADDRESS = "/clusters/stage/policy/"
WITHOUT_RECLAIM = FOUNDING_POLICY.replace(", reclaim", "", 1)
ENDS = "What ends reclaim : nothing is taken back between queues any more"
NOTHING = "Nothing found"
NONE = "No recorded session of the last day that decided something can be replayed"


@pytest.fixture
def client() -> Client:
    cache.clear()
    made = Client()
    made.force_login(accounts.create_user(username="root", password=None, actor="test", platform_role="admin"))
    return made


@pytest.fixture(autouse=True)
def _worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(alive, "silent_roles", list)
    return


def text_of(page: bytes) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.decode())).split())


def checked(client: Client, text: str) -> str:
    """What the page says at once: the trial is asked for, and its progress is looked up until it is over."""
    page = post_opened(client, ADDRESS, {"text": text, "act": "check"}).content
    job = Job.objects.latest("pk")
    assert f'hx-get="{ADDRESS}trials/{job.pk}/" hx-trigger="load' in page.decode()
    return text_of(page)


def tried(client: Client) -> str:
    job = Job.objects.latest("pk")
    assert running.run(job.pk) == JobState.DONE
    page = client.get(f"{ADDRESS}trials/{job.pk}/").content
    assert b"hx-get" not in page, "it is over"
    return text_of(page)


def inference_takes_back(stage: Stage) -> None:
    """Inference of another tenant takes a gang of acme back."""
    bank = quota_writes.ensure_tenant(slug="bank", actor="test")
    stage.cluster.queues.filter(name="serve").update(tenant=bank)
    stage.train("one", pods=8)
    stage.train("two", pods=8)
    stage.sessions_until(lambda: stage.running("one") + stage.running("two") == 16)
    stage.serve("web", replicas=3)
    stage.sessions_until(lambda: stage.running("web") == 3)


def test_a_policy_without_reclaim_says_so_in_words_and_in_gangs_by_tenant(stage: Stage, client: Client) -> None:
    """It said that nothing was found, since the one newest session took nothing back."""
    inference_takes_back(stage)
    for _ in range(2):
        stage.session()
    said = checked(client, WITHOUT_RECLAIM)
    assert ENDS in said
    assert "Sessions are decided again: 0 %" in said
    assert NOTHING not in said
    assert said.index(ENDS) < said.index("Sessions are decided again") < said.index("What the check says")
    assert said.index("What the check says") < said.index("Apply it?")
    answer, (reclaim,) = tried(client), Reclaim.objects.all()
    cell = r"\d+ (?:→ \d+ \([+−]\d+\) )?"
    assert re.search(rf"acme {cell}0 {cell}1 → 0 \(−1\) 0 bank {cell}\d+ → \d+ \(−1\) ", answer), answer
    assert f"{reclaim.victims.get().gang} : Reclaimed → Left as it is (in 1 session)" in answer
    sessions = Job.objects.latest("pk").result["sessions"]
    decided = [one for one in Session.objects.all() if one.counts["evictions"] or one.counts["binds"]]
    assert len(decided) <= sessions["recorded"] < Session.objects.count()
    assert sessions["tried"] == sessions["chosen"] == min(sessions["recorded"], MOST_SESSIONS)
    assert "All tenants" in text_of(client.get(f"/jobs/{Job.objects.latest('pk').pk}/").content)


def test_where_no_session_is_recorded_the_words_stand_alone(stage: Stage, client: Client) -> None:
    said, answer = checked(client, WITHOUT_RECLAIM), tried(client)
    assert ENDS in said
    assert NOTHING not in said
    assert answer.startswith(NONE)


def test_where_no_recorded_session_can_be_replayed_it_says_so(stage: Stage, client: Client) -> None:
    """The policies that they ran with are not kept any more."""
    stage.train("one", pods=8)
    stage.sessions_until(lambda: stage.running("one") == 8)
    Session.objects.update(policy=None)
    checked(client, WITHOUT_RECLAIM)
    assert tried(client).startswith(NONE)
    assert Job.objects.latest("pk").result["unavailable"] == "no_sessions"


def test_a_trial_ends_at_its_limit_with_the_sessions_done_so_far(stage: Stage, client: Client) -> None:
    inference_takes_back(stage)
    checked(client, WITHOUT_RECLAIM)
    job = services.claim(Job.objects.latest("pk").pk)
    result = PolicyTrial(running.Running(job), WITHOUT_RECLAIM, clock=itertools.count(0.0, 25.0).__next__).run()
    assert (result["sessions"]["tried"], result["sessions"]["chosen"] > 2) == (2, True)
    Job.objects.update(state=JobState.DONE, result=result)
    answer = text_of(client.get(f"{ADDRESS}trials/{job.pk}/").content)
    assert f"2 of {result['sessions']['chosen']} sessions were tried: a trial ends after 60 seconds" in answer
