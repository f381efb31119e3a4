"""Copies of an audit log for the tests of its verification: several chains, hours, segments and keys."""

from __future__ import annotations

import datetime as dt
import io
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from django.core.management import call_command
from django.utils import timezone

from tidesched_web.audit import bundle, head_file, key_services, segment_services, signing_services
from tidesched_web.audit import services as audit
from tidesched_web.audit.models import AuditHead, Segment
from tidesched_web.common.actors import SCHEDULER, Actor, ActorKind

VERIFIER = Path(__file__).parents[2] / "deploy" / "audit" / "verify_audit.py"
START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
FOUND = re.compile(r"^(?P<chain>\S+): broken at entry (?P<seq>\d+) \((?P<kind>\w+)\)", re.MULTILINE)
ANN = Actor("ann", ActorKind.USER, 7)


@dataclass
class Outside:
    """What was kept elsewhere: the public key of the first hour, and the head file."""

    key: str
    heads: Path


class Clock:
    """The time of the copies, which goes on by itself a little at each look."""

    def __init__(self, monkeypatch) -> None:
        self.now = START
        monkeypatch.setattr(timezone, "now", self)
        monkeypatch.setattr(segment_services, "YOUNGEST", dt.timedelta(0))

    def __call__(self) -> dt.datetime:
        self.now += dt.timedelta(seconds=1)
        return self.now


def write(chain: str, number: int, rng: random.Random) -> None:
    """One entry, of a kind that the log has."""
    audit.append(
        chain=chain,
        actor=rng.choice([ANN, SCHEDULER, "somebody of old"]),
        action=rng.choice(["queue.update", "reclaim.decide"]),
        object_type="queue",
        object_id=number,
        object_label=rng.choice(["train", "évaluation", "训练"]),
        tenant_ids=rng.sample(range(1, 6), rng.randrange(3)),
        reason=rng.choice(["", "a reason", "更多卡"]),
        before=None if rng.random() < 0.3 else {"weight": number, "share": rng.choice([0.25, 1.5, 1e-7, 1e21, 3.0])},
        after={"weight": number + 1, "big": 2**60, "victims": [{"gang": "a/b", "cards": {"NVIDIA-H200": 8}}]},
    )


def built(clock: Clock, folder: Path, rng: random.Random, *, chains: tuple[str, ...], hours: int, most: int) -> Outside:
    """Some hours of a log: entries, a head for each hour, segments of which the oldest has left, a second key."""
    outside = Outside(key_services.signing_key().public_key, folder / "heads.ndjson")
    for hour in range(hours):
        for chain in chains:
            for number in range(rng.randrange(1, most + 1)):
                write(chain, number, rng)
        clock.now = START + dt.timedelta(hours=hour + 1, minutes=rng.randrange(5))
        signing_services.sign_heads()
        if hour == hours // 3:
            signing_services.new_signing_key(actor=ANN)
        if hour == hours // 2:
            made = segment_services.seal(before=clock.now - dt.timedelta(minutes=30), actor=ANN)
            left = next(segment for segment in made if segment.chain == chains[0])
            segment_services.mark_exported(segment=left, actor=ANN)
            segment_services.drop(segment=left, actor=ANN, reason="kept elsewhere")
            segment_services.purge()
    signing_services.sign_heads(at_once=True)
    outside.heads.write_bytes(b"".join(head_file.lines()))
    for chain in chains:
        write(chain, 99, rng)
    assert Segment.objects.filter(dropped_at__isnull=False).count() == 1
    assert AuditHead.objects.filter(heads__gt=1).exists()
    return outside


def by_command(outside: Outside) -> tuple[int, str]:
    """What `manage.py audit verify` says."""
    out, status = io.StringIO(), 0
    try:
        call_command("audit", "verify", "--heads", str(outside.heads), "--key", outside.key, stdout=out)
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    return status, out.getvalue()


def by_outsider(outside: Outside, folder: Path) -> tuple[int, str]:
    """What the single file says of the bundle; it runs where nothing of the product can be imported."""
    path = folder / "bundle.ndjson"
    path.write_bytes(b"".join(bundle.pages()))
    done = subprocess.run(
        [sys.executable, "-I", VERIFIER, path, "--heads", outside.heads, "--key", outside.key],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def named(output: str) -> set[tuple[str, int, str]]:
    """Chain, place and kind of all that was found."""
    return {(found["chain"], int(found["seq"]), found["kind"]) for found in FOUND.finditer(output)}
