"""The two roles of the database: its owner changes the schema, the application's role reads and writes rows.

The application's role is the user of ``DATABASE_URL``, the owner that of ``DATABASE_OWNER_URL``. Where no owner is
named the application's role owns what it uses, and nothing in the database keeps it from changing any row.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dj_database_url
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from psycopg import sql

ALL = ("DELETE", "INSERT", "SELECT", "UPDATE")


@dataclass(frozen=True, slots=True)
class Rights:
    """What the application's role may do with a table; ``columns`` may be updated where the table may not."""

    table: tuple[str, ...] = ALL
    columns: tuple[str, ...] = ()


@contextmanager
def as_owner() -> Iterator[None]:
    """Statements of the default connection are the owner's, where an owner is named."""
    owner = _address(settings.DATABASE_OWNER_URL)
    if not owner:
        yield
        return
    kept = connections[DEFAULT_DB_ALIAS]
    if owner.pop("NAME") != _address(settings.DATABASE_URL)["NAME"]:
        raise ImproperlyConfigured("DATABASE_OWNER_URL names another database than DATABASE_URL.")
    kept.close()
    other = kept.copy(DEFAULT_DB_ALIAS)
    other.settings_dict = {**kept.settings_dict, **owner}
    connections[DEFAULT_DB_ALIAS] = other
    try:
        yield
    finally:
        other.close()
        connections[DEFAULT_DB_ALIAS] = kept


def _address(url: str) -> dict[str, Any]:
    if not url:
        return {}
    found = dj_database_url.parse(url)
    return {key: found[key] for key in ("HOST", "PORT", "USER", "PASSWORD", "NAME")}


def grant(restricted: Mapping[str, Rights], functions: tuple[str, ...]) -> bool:
    """False = it had its rights, no more. Refused where the role has rights without bounds."""
    ours = _address(settings.DATABASE_URL)
    if not settings.DATABASE_OWNER_URL or ours["USER"] == _address(settings.DATABASE_OWNER_URL)["USER"]:
        return False
    role = ours["USER"]
    with as_owner(), transaction.atomic():
        made = _make_role(role, ours["PASSWORD"])
        _refuse_unbounded(role)
        wanted = _wanted(restricted)
        changed = [table for table, rights in wanted.items() if _granted(role, table) != rights]
        for table in changed:
            _set(role, table, wanted[table])
        _run("GRANT USAGE ON SCHEMA {schema} TO {role}", role)
        _run("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}", role)
        for function in functions:
            _run("GRANT EXECUTE ON FUNCTION {function} TO {role}", role, function=sql.SQL(function))
    return made or bool(changed)


def may_change(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_table_privilege(%(table)s, 'UPDATE') OR has_table_privilege(%(table)s, 'DELETE')",
            {"table": table},
        )
        return cursor.fetchone() == (True,)


def _make_role(role: str, password: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone():
            return False
    _run("CREATE ROLE {role} LOGIN PASSWORD {password}", role, password=sql.Literal(password or None))
    return True


_UNBOUNDED = (
    "is a superuser",
    "is a member of the owner's role",
    "may make roles and give them rights (CREATEROLE)",
    "owns tables of the schema",
)


def _refuse_unbounded(role: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper, pg_has_role(oid, current_user, 'MEMBER'), rolcreaterole, EXISTS ("
            "SELECT 1 FROM pg_class WHERE relowner = pg_roles.oid AND relkind IN ('r', 'p', 'v', 'm', 'S') "
            "AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())) "
            "FROM pg_roles WHERE rolname = %s",
            [role],
        )
        found = cursor.fetchone()
    why = [word for word, so in zip(_UNBOUNDED, found or (True,) * len(_UNBOUNDED), strict=True) if so]
    if why:
        raise ImproperlyConfigured(
            f"The role {role} of DATABASE_URL {' and '.join(why)}: it could change the audit log. "
            "Name another role there."
        )


def _wanted(restricted: Mapping[str, Rights]) -> dict[str, Rights]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relispartition FROM pg_class WHERE relkind IN ('r', 'p') "
            "AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) ORDER BY relname"
        )
        return {name: Rights(()) if part else restricted.get(name, Rights()) for name, part in cursor.fetchall()}


def _granted(role: str, table: str) -> Rights:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT privilege_type FROM pg_class, aclexplode(relacl) a WHERE pg_class.oid = %s::regclass "
            "AND a.grantee = %s::regrole ORDER BY 1",
            [f'"{table}"', f'"{role}"'],
        )
        rights = tuple(row[0] for row in cursor.fetchall())
        cursor.execute(
            "SELECT attname FROM pg_attribute, aclexplode(attacl) a WHERE attrelid = %s::regclass "
            "AND a.grantee = %s::regrole AND privilege_type = 'UPDATE' ORDER BY 1",
            [f'"{table}"', f'"{role}"'],
        )
        return Rights(rights, tuple(row[0] for row in cursor.fetchall()))


def _set(role: str, table: str, rights: Rights) -> None:
    name = sql.Identifier(table)
    _run("REVOKE ALL ON {table} FROM {role}", role, table=name)
    if rights.table:
        words = sql.SQL(", ".join(rights.table))
        _run("GRANT {words} ON {table} TO {role}", role, table=name, words=words)
    if rights.columns:
        columns = sql.SQL(", ").join(map(sql.Identifier, rights.columns))
        _run("GRANT UPDATE ({columns}) ON {table} TO {role}", role, table=name, columns=columns)


def _run(statement: str, role: str, **parts: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = sql.Identifier(cursor.fetchone()[0])
        cursor.execute(sql.SQL(statement).format(role=sql.Identifier(role), schema=schema, **parts))
