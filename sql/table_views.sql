-- Views over hash tables, and who may do what.
SELECT gpuhash_create('plain'), gpuhash_create('of_bytes', 100, host_copy => false), gpuhash_create('many', multi => true), gpuhash_create('only_keys', 0);
SELECT gpuhash_insert('plain', ARRAY[1, 2, 3], ARRAY[1, 2, 3]), gpuhash_insert('many', ARRAY[1, 1, 2], ARRAY[1, 2, 3]);
SELECT name, owner = current_user AS mine, status, key_size, value_size, multi, host_copy, keys, entries,
    fill_factor BETWEEN 0 AND 1 AS fill, bytes > 0 AS memory
FROM gpuhash_tables;
SELECT table_name, count(*) AS subtables, sum(entries) AS keys, bool_and(slots > 0) AS slots,
    bool_and(fill_factor BETWEEN 0 AND 1) AS fill
FROM gpuhash_subtables GROUP BY table_name ORDER BY table_name;
SELECT engine, status FROM gpuhash_devices WHERE engine = 'cpu';
SELECT count(*) > 0 AS cuda_row, bool_and(status <> '') AS told FROM gpuhash_devices WHERE engine = 'cuda';
SELECT sum(tables) AS tables FROM gpuhash_devices;
SET gpuhash.engine = cpu;
SELECT bool_and(status LIKE 'not asked for%' OR gpuhash_mode() = 'shared_preload_libraries') AS told FROM gpuhash_devices WHERE engine = 'cuda';
RESET gpuhash.engine;
SELECT gpuhash_mode() IN ('session', 'session_preload_libraries', 'local_preload_libraries', 'shared_preload_libraries') AS mode;

-- every object is described
SELECT p.oid::regprocedure FROM pg_proc p
    JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gpuhash'
WHERE obj_description(p.oid, 'pg_proc') IS NULL;
SELECT c.oid::regclass FROM pg_class c
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gpuhash'
WHERE obj_description(c.oid, 'pg_class') IS NULL;
-- what everybody may call
SELECT p.oid::regprocedure FROM pg_proc p
    JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gpuhash'
WHERE has_function_privilege('public', p.oid, 'EXECUTE') ORDER BY p.oid::regprocedure::text COLLATE "C";

CREATE ROLE regress_gpuhash_user;
CREATE ROLE regress_gpuhash_other;
GRANT EXECUTE ON FUNCTION gpuhash_create, gpuhash_drop, gpuhash_clear TO regress_gpuhash_user;
GRANT EXECUTE ON FUNCTION gpuhash_drop, gpuhash_clear, gpuhash_compact TO regress_gpuhash_other;
SET ROLE regress_gpuhash_other;
SELECT gpuhash_create('x');
SELECT gpuhash_insert('plain', 1, 1);
SELECT name, owner = current_user AS mine FROM gpuhash_tables;
SELECT gpuhash_find('plain', 1);
SET ROLE regress_gpuhash_user;
SELECT gpuhash_create('x');
SELECT gpuhash_insert('x', 1, 1), gpuhash_find('x', 1);
SELECT gpuhash_drop('plain');

-- grants: read, write with it, to a role, to its members, to everybody
SELECT gpuhash_grant('plain', 'public', 'read');
SELECT gpuhash_grant('x', 'regress_gpuhash_other', 'read');
SELECT name, grants FROM gpuhash_tables;
SET ROLE regress_gpuhash_other;
SELECT gpuhash_find('x', 1), gpuhash_contains('x', ARRAY[1, 2]), (SELECT keys FROM gpuhash_table_stats('x'));
SELECT name, owner FROM gpuhash_tables;
SELECT DISTINCT table_name FROM gpuhash_subtables;
SELECT gpuhash_insert('x', 2, 2);
SELECT gpuhash_delete('x', ARRAY[1]);
SELECT gpuhash_load('x', 'SELECT 3, 3');
SELECT gpuhash_clear('x');
SELECT gpuhash_compact('x');
SELECT gpuhash_reserve('x', 1);
SELECT gpuhash_delete_one('x', ARRAY[1]);
SELECT gpuhash_apply('x', '{f}', ARRAY[1], ARRAY[1]);
SELECT gpuhash_count('x', ARRAY[1]);
SELECT gpuhash_drop('x');
SELECT gpuhash_grant('x', 'public', 'read');
SELECT gpuhash_revoke('x', 'public', 'read');
SET ROLE regress_gpuhash_user;
SELECT gpuhash_grant('x', 'regress_gpuhash_other', 'WRITE'), gpuhash_grant('x', 'public', 'read');
SELECT gpuhash_grant('x', 'regress_gpuhash_other', 'read');
SELECT name, grants FROM gpuhash_tables;
SET ROLE regress_gpuhash_other;
SELECT gpuhash_insert('x', 2, 2), gpuhash_load('x', 'SELECT 3, 3'), gpuhash_delete('x', ARRAY[3]), gpuhash_find('x', 2);
SELECT gpuhash_drop('x');
SET ROLE regress_gpuhash_user;
SELECT gpuhash_revoke('x', 'regress_gpuhash_other', 'write');
SELECT name, grants FROM gpuhash_tables;
SELECT gpuhash_revoke('x', 'public', 'read'), gpuhash_revoke('x', 'public', 'read');
SET ROLE regress_gpuhash_other;
SELECT gpuhash_insert('x', 2, 2);
SELECT gpuhash_find('x', 2);
SET ROLE regress_gpuhash_user;
SELECT gpuhash_grant('x', 'regress_gpuhash_other', 'write');
SELECT gpuhash_revoke('x', 'regress_gpuhash_other', 'read');
SELECT name, grants FROM gpuhash_tables;
SET ROLE regress_gpuhash_other;
SELECT gpuhash_find('x', 2);
SET ROLE regress_gpuhash_user;
SELECT gpuhash_grant('x', 'regress_gpuhash_nobody', 'read');
SELECT gpuhash_grant('x', 'regress_gpuhash_other', 'delete');
SELECT gpuhash_grant('x', NULL, 'read');
SELECT gpuhash_revoke('x', 'public', NULL);
SELECT gpuhash_grant('unknown', 'public', 'read');
RESET ROLE;
GRANT regress_gpuhash_user TO regress_gpuhash_other;
SET ROLE regress_gpuhash_other;
SELECT gpuhash_find('x', 1);
RESET ROLE;
REVOKE regress_gpuhash_user FROM regress_gpuhash_other;
-- superusers may
SELECT gpuhash_find('x', 1);
-- members of pg_monitor see all of them
GRANT pg_monitor TO regress_gpuhash_other;
SET ROLE regress_gpuhash_other;
SELECT name, CASE owner WHEN session_user THEN 'the superuser' ELSE owner END AS owner, keys, bytes > 0 AS memory FROM gpuhash_tables;
SELECT gpuhash_find('x', 1);
RESET ROLE;
-- as many grants as there is room for
SELECT gpuhash_grant('plain', 'public', 'write');
DO $$ BEGIN FOR i IN 1 .. 64 LOOP EXECUTE format('CREATE ROLE regress_gpuhash_role%s', i); END LOOP; END $$;
SELECT count(gpuhash_grant('plain', ('regress_gpuhash_role' || i)::name, 'read')) FROM generate_series(1, 63) i;
SELECT gpuhash_grant('plain', 'regress_gpuhash_role64', 'read');
SELECT cardinality(grants) FROM gpuhash_tables WHERE name = 'plain';
-- what a role was granted goes with it, unless its drop is undone
BEGIN;
SAVEPOINT s;
DROP ROLE regress_gpuhash_role1;
ROLLBACK TO s;
COMMIT;
SELECT cardinality(grants) FROM gpuhash_tables WHERE name = 'plain';
DO $$ BEGIN FOR i IN 1 .. 64 LOOP EXECUTE format('DROP ROLE regress_gpuhash_role%s', i); END LOOP; END $$;
SELECT grants FROM gpuhash_tables WHERE name = 'plain';
REVOKE ALL ON FUNCTION gpuhash_create, gpuhash_drop, gpuhash_clear, gpuhash_compact FROM regress_gpuhash_user, regress_gpuhash_other;
DROP ROLE regress_gpuhash_user, regress_gpuhash_other;
SELECT name, owner LIKE 'unknown%' AS owner_dropped FROM gpuhash_tables WHERE name = 'x';

SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
