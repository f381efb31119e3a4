from tidesched_web.quota.services.owners import (
    create_business_line,
    create_project,
    create_tenant,
    delete_owner,
    has_quotas,
    update_owner,
)

__all__ = ["create_business_line", "create_project", "create_tenant", "delete_owner", "has_quotas", "update_owner"]
