"""Partitions are made for no table that the caller owns: what it made itself would run with the owner's rights.

The function runs as the schema's owner and reads the table that it is given. Any role may make temporary tables and
views, and a view in the place of the default partition would run its functions as the owner.
"""

from django.db import migrations

MAKE = """
CREATE OR REPLACE FUNCTION tidesched_make_partition(parent regclass, lower timestamptz, upper timestamptz)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    place text; title text; key text; fresh text; rest text; span text; caught boolean; holder oid;
BEGIN
    SELECT n.nspname, c.relname, c.relowner INTO STRICT place, title, holder
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = parent;
    IF pg_has_role(session_user, holder, 'MEMBER') AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
        RAISE EXCEPTION '% is a table of %', parent, session_user USING ERRCODE = 'insufficient_privilege';
    END IF;
    key := substring(pg_get_partkeydef(parent) FROM '^RANGE \\(([a-z_]+)\\)$');
    IF key IS NULL THEN
        RAISE EXCEPTION '% is not partitioned by a column', parent USING ERRCODE = 'wrong_object_type';
    END IF;
    fresh := format('%I.%I', place, title || '_p' || to_char(lower AT TIME ZONE 'UTC', 'YYYYMMDDHH24'));
    rest := format('%I.%I', place, title || '_rest');
    -- Two makers at once: the second waits here and then finds the partition there.
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rest);
    IF to_regclass(fresh) IS NOT NULL THEN
        RETURN false;
    END IF;
    -- Rows of the span that the default partition caught meanwhile move into the new one.
    span := format('%1$I >= %2$L AND %1$I < %3$L', key, lower, upper);
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %s)', rest, span) INTO caught;
    IF caught THEN
        EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, rest);
    END IF;
    EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%L) TO (%L)', fresh, parent, lower, upper);
    IF caught THEN
        EXECUTE format('INSERT INTO %s SELECT * FROM %s WHERE %s', parent, rest, span);
        EXECUTE format('DELETE FROM %s WHERE %s', rest, span);
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s DEFAULT', parent, rest);
    END IF;
    RETURN true;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("common", "0001_partition_functions")]

    operations = [migrations.RunSQL(MAKE, migrations.RunSQL.noop)]
