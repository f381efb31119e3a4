"""Stored inputs of sessions, loaded to try edits out on them; never in the web or the session process."""

import datetime as dt
import gc
import time
from collections import OrderedDict

from django.core.cache import cache
from django.utils import timezone

from tidesched_web.engine import bridge
from tidesched_web.engine.following import Follower
from tidesched_web.engine.model import BadInput, Policy
from tidesched_web.engine.what_if import Picture
from tidesched_web.scheduling.input_selectors import StoredInput, input_bytes, newest_input, policy_text

# Clusters that a process keeps loaded; the one that was not asked about for the longest time goes first.
MOST_LOADED = 2
# Pictures that a person may ask about soon are renewed so often.
FOLLOW_SECONDS = 8
# One of a large cluster that was renewed so short a time ago is used as it is.
FRESH_SECONDS = 15.0
# In a smaller cluster taking in what changed costs next to nothing: there it is always done first, so that a gang which
# the pages show is never missing in an impact.
MANY_PODS = 30_000
# From here on the collector leaves alone what was loaded.
FREEZE_PODS = 10_000
# So long after the last question the snapshot of a cluster is kept up to date.
INTEREST_SECONDS = 300


class Loaded:
    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self.at: StoredInput | None = None
        self.picture: Picture | None = None
        self.read_at = float("-inf")
        self._follower, self._workspace = Follower(), bridge.Workspace()
        self._policies: dict[int | None, Policy] = {}

    def read(self, stored: StoredInput) -> Picture:
        if self.picture is not None and self.at == stored:
            self.read_at = time.monotonic()
            return self.picture
        policy = self._policy(stored)
        found = input_bytes(stored.id)
        if found is None:
            raise _gone(stored)
        format_, payload, memory = found
        if stored.base_id is None:
            snapshot = self._follower.read_full(stored.id, format_, payload)
        else:
            if self._follower.needs_base(stored.base_id):
                base = input_bytes(stored.base_id)
                if base is None:
                    raise _gone(stored)
                self._follower.read_full(stored.base_id, base[0], base[1])
            snapshot = self._follower.read_difference(payload)
        self.picture = Picture(
            snapshot,
            policy,
            now=stored.now.timestamp(),
            memory=bridge.decode_memory(memory) if memory else None,
            workspace=self._workspace,
        )
        self.at, self.read_at = stored, time.monotonic()
        return self.picture

    def _policy(self, stored: StoredInput) -> Policy:
        if stored.policy_id not in self._policies:
            text = policy_text(stored.policy_id)
            if text is None:
                raise BadInput("no_policy", f"the policy of session {stored.number} is not kept any more")
            self._policies = {stored.policy_id: bridge.read_policy(text)}
        return self._policies[stored.policy_id]


_loaded: OrderedDict[int, Loaded] = OrderedDict()


def latest(cluster_id: int) -> tuple[StoredInput, Picture] | None:
    """The newest session's input; of a large cluster perhaps one that is some seconds older. None = no session."""
    found = _loaded.get(cluster_id)
    if found is None or found.at is None or found.picture is None:
        return renew(cluster_id)
    if len(found.picture.snapshot.pods) <= MANY_PODS or time.monotonic() - found.read_at >= FRESH_SECONDS:
        return renew(cluster_id)
    _loaded.move_to_end(cluster_id)
    return found.at, found.picture


def renew(cluster_id: int) -> tuple[StoredInput, Picture] | None:
    stored = newest_input(cluster_id)
    if stored is None:
        return None
    found = _loaded.pop(cluster_id, None) or Loaded(cluster_id)
    first = found.picture is None
    picture = found.read(stored)  # what could not be read is not kept
    _loaded[cluster_id] = found
    while len(_loaded) > MOST_LOADED:
        _loaded.popitem(last=False)
    picture.before  # noqa: B018 - found once; the next question has it
    if first and len(picture.snapshot.pods) > FREEZE_PODS:
        # Nothing of what was loaded will be garbage soon; a collection would walk through all of it each time.
        gc.collect()
        gc.freeze()
    return stored, picture


def forget() -> None:
    _loaded.clear()
    gc.unfreeze()


def age_seconds(stored: StoredInput, now: dt.datetime | None = None) -> float:
    return max(0.0, ((now or timezone.now()) - stored.started_at).total_seconds())


# -- who is interested -------------------------------------------------------------------------------------------------


def note_interest(cluster_id: int) -> bool:
    known = cache.get(_key(cluster_id)) is not None
    cache.set(_key(cluster_id), 1, INTEREST_SECONDS)
    return not known


def of_interest(cluster_ids: list[int]) -> list[int]:
    keys = {_key(cluster_id): cluster_id for cluster_id in cluster_ids}
    return [keys[key] for key in cache.get_many(keys)]


def _key(cluster_id: int) -> str:
    return f"what-if:{cluster_id}"


def _gone(stored: StoredInput) -> BadInput:
    return BadInput("no_session_input", f"the input of session {stored.number} is not kept any more")
