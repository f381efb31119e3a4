"""Partitions are made and dropped by functions of the schema's owner: the application's role changes no table.

They run as the owner and read the table that they are given. Any role may make temporary tables and views, and a view
in the place of the default partition would run its functions as the owner: partitions are made for no table that the
caller owns.
"""

from django.db import migrations

MAKE = """
CREATE FUNCTION tidesched_make_partition(parent regclass, lower timestamptz, upper timestamptz)
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
REVOKE ALL ON FUNCTION tidesched_make_partition(regclass, timestamptz, timestamptz) FROM PUBLIC;
"""

DROP = """
CREATE FUNCTION tidesched_drop_partition(parent regclass, title text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part regclass;
BEGIN
    -- Who may not delete the rows may not drop what holds them.
    IF NOT has_table_privilege(session_user, parent, 'DELETE') THEN
        RAISE EXCEPTION 'rows of % are not deleted by %', parent, session_user USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT c.oid INTO part FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent AND c.relname = title AND title ~ '_p[0-9]{10}$';
    IF part IS NOT NULL THEN
        EXECUTE format('DROP TABLE %s', part);
    END IF;
END $$;
REVOKE ALL ON FUNCTION tidesched_drop_partition(regclass, text) FROM PUBLIC;
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [migrations.RunSQL(MAKE, "DROP FUNCTION tidesched_make_partition(regclass, timestamptz, timestamptz)"), migrations.RunSQL(DROP, "DROP FUNCTION tidesched_drop_partition(regclass, text)")]
