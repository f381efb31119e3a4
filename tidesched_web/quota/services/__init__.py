from tidesched_web.quota.services.owners import (
    create_business_line,
    create_project,
    create_tenant,
    delete_business_line,
    delete_project,
    delete_tenant,
    has_quotas,
    update_business_line,
    update_project,
    update_tenant,
)

__all__ = [
    "create_business_line",
    "create_project",
    "create_tenant",
    "delete_business_line",
    "delete_project",
    "delete_tenant",
    "has_quotas",
    "update_business_line",
    "update_project",
    "update_tenant",
]
