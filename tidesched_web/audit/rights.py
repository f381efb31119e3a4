from tidesched_web.audit.models import AuditEntry, AuditHead, Segment, SignedHead, SigningKey
from tidesched_web.common.database_roles import Rights, may_change

_APPEND = ("INSERT", "SELECT")
_MARKS = ("drop_signature", "drop_statement", "dropped_at", "dropped_by")
_EXPORT_MARKS = ("export_signature", "export_statement", "exported_at", "exported_by")

RIGHTS = {
    AuditEntry._meta.db_table: Rights(_APPEND),
    SignedHead._meta.db_table: Rights(_APPEND),
    AuditHead._meta.db_table: Rights((*_APPEND, "UPDATE")),
    # A key's private half is encrypted anew when the installation's keys change; its public half stays.
    SigningKey._meta.db_table: Rights(_APPEND, ("encrypted_with", "private_key")),
    # A segment is exported, then dropped: both are signed. Its entries are removed by the owner's function.
    Segment._meta.db_table: Rights(_APPEND, (*_MARKS, *_EXPORT_MARKS)),
    # Which migrations were applied is the owner's.
    "django_migrations": Rights(("SELECT",)),
}
FUNCTIONS = (
    "tidesched_make_partition(regclass, timestamptz, timestamptz)",
    "tidesched_drop_partition(regclass, text)",
    "tidesched_purge_audit()",
)


def role_may_change_entries() -> bool:
    """Whether the database would let this process change or delete entries: no owner of the schema is named then."""
    return may_change(AuditEntry._meta.db_table)
