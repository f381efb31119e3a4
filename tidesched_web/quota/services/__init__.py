"""Write quota intent. Each write locks the cluster's tree, checks the sum rules under the lock and is audited."""

from tidesched_web.quota.services.card_quota import set_card_quota, set_compute_quota
from tidesched_web.quota.services.grants import ensure_grant
from tidesched_web.quota.services.owners import (
    create_business_line,
    create_project,
    create_tenant,
    delete_business_line,
    delete_project,
    delete_tenant,
    ensure_business_line,
    ensure_project,
    ensure_tenant,
    has_quotas,
    update_business_line,
    update_project,
    update_tenant,
)
from tidesched_web.quota.services.priority_classes import (
    DEFAULT_PRIORITY_CLASSES,
    ensure_default_priority_classes,
    ensure_priority_class,
)
from tidesched_web.quota.services.queues import create_queue, ensure_queue

__all__ = [
    "DEFAULT_PRIORITY_CLASSES",
    "create_business_line",
    "create_project",
    "create_queue",
    "create_tenant",
    "delete_business_line",
    "delete_project",
    "delete_tenant",
    "ensure_business_line",
    "ensure_default_priority_classes",
    "ensure_grant",
    "ensure_priority_class",
    "ensure_project",
    "ensure_queue",
    "ensure_tenant",
    "has_quotas",
    "set_card_quota",
    "set_compute_quota",
    "update_business_line",
    "update_project",
    "update_tenant",
]
