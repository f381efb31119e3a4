"""Entries of dropped segments are removed by a function of the schema's owner, and in no other way."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from psycopg import sql

# What leaves: entries of a segment whose export and whose drop are both signed.
PURGE = """
CREATE FUNCTION tidesched_purge_audit() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {schema}, pg_temp SET lock_timeout = '2s' SET timezone = 'UTC' AS $$
DECLARE
    leaving bigint[]; removed bigint := 0; deleted bigint; kept boolean; part record; waiting audit_segment;
BEGIN
    leaving := ARRAY(SELECT id FROM audit_segment WHERE dropped_at IS NOT NULL AND exported_at IS NOT NULL
        AND export_signature <> '' AND drop_signature <> '');
    IF NOT EXISTS (SELECT FROM audit_segment WHERE id = ANY(leaving) AND purged_at IS NULL) THEN
        RETURN 0;
    END IF;
    -- Whole partitions where nothing else is in them; the youngest may still be written to.
    FOR part IN
        SELECT c.oid::regclass AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'audit_auditentry'::regclass AND c.relname ~ '_p[0-9]{{10}}$'
            AND to_timestamp(right(c.relname, 10), 'YYYYMMDDHH24') <= now() - interval '2 days'
        ORDER BY c.relname
    LOOP
        EXECUTE format(
            'SELECT EXISTS (SELECT FROM %s e WHERE NOT EXISTS (SELECT FROM audit_segment s WHERE s.id = ANY($1) '
            'AND s.chain = e.chain AND e.seq BETWEEN s.first_seq AND s.last_seq))', part.name) INTO kept USING leaving;
        IF NOT kept THEN
            EXECUTE format('DROP TABLE %s', part.name);
            removed := removed + 1;
        END IF;
    END LOOP;
    FOR waiting IN SELECT * FROM audit_segment WHERE id = ANY(leaving) AND purged_at IS NULL LOOP
        DELETE FROM audit_auditentry
            WHERE chain = waiting.chain AND seq BETWEEN waiting.first_seq AND waiting.last_seq;
        GET DIAGNOSTICS deleted = ROW_COUNT;
        removed := removed + deleted;
        UPDATE audit_segment SET purged_at = now() WHERE id = waiting.id;
    END LOOP;
    RETURN removed;
END $$;
REVOKE ALL ON FUNCTION tidesched_purge_audit() FROM PUBLIC;
"""


def make(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The function names its schema: a table of the same name elsewhere is not mistaken for the log."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = sql.Identifier(cursor.fetchone()[0])
        cursor.execute(sql.SQL(PURGE).format(schema=schema))


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunPython(make, lambda _apps, schema_editor: schema_editor.execute("DROP FUNCTION tidesched_purge_audit()"))]
