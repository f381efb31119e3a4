from tidesched_web.common.live import About
from tidesched_web.quota.models import Queue


def about_queue(queue: Queue, what: str) -> About:
    """A queue, for those who see it: the members of its tenant; a queue of the platform is for who sees everything."""
    return About("queue", queue.name, what, frozenset() if queue.tenant_id is None else frozenset({queue.tenant_id}))
