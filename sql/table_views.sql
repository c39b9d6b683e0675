-- Views over hash tables, and who may do what.
SELECT gpuhash_create('plain'), gpuhash_create('of_bytes', 100, host_copy => false), gpuhash_create('many', multi => true), gpuhash_create('only_keys', 0);
SELECT gpuhash_insert('plain', ARRAY[1, 2, 3], ARRAY[1, 2, 3]), gpuhash_insert('many', ARRAY[1, 1, 2], ARRAY[1, 2, 3]);
SELECT name, owner = current_user AS mine, status, value_size, multi, host_copy, keys, entries,
    fill_factor BETWEEN 0 AND 1 AS fill, bytes > 0 AS memory
FROM gpuhash_tables;
SELECT table_name, count(*) AS subtables, sum(entries) AS keys, bool_and(slots > 0) AS slots,
    bool_and(fill_factor BETWEEN 0 AND 1) AS fill
FROM gpuhash_subtables GROUP BY table_name ORDER BY table_name;
SELECT engine, status FROM gpuhash_devices WHERE engine = 'cpu';
SELECT count(*) > 0 AS cuda_row, bool_and(status <> '') AS told FROM gpuhash_devices WHERE engine = 'cuda';
SELECT sum(tables) AS tables FROM gpuhash_devices;
SET gpuhash.engine = cpu;
SELECT engine, device, status FROM gpuhash_devices;
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
GRANT EXECUTE ON FUNCTION gpuhash_create, gpuhash_drop, gpuhash_insert(text, bigint, bigint) TO regress_gpuhash_user;
SET ROLE regress_gpuhash_other;
SELECT gpuhash_create('x');
SELECT gpuhash_insert('plain', 1, 1);
SELECT name, owner = current_user AS mine FROM gpuhash_tables;
SELECT gpuhash_find('plain', 1);
SET ROLE regress_gpuhash_user;
SELECT gpuhash_create('x');
SELECT gpuhash_insert('x', 1, 1), gpuhash_find('x', 1);
SELECT gpuhash_drop('plain');
SET ROLE regress_gpuhash_other;
SELECT gpuhash_find('x', 1);
RESET ROLE;
GRANT regress_gpuhash_user TO regress_gpuhash_other;
SET ROLE regress_gpuhash_other;
SELECT gpuhash_find('x', 1);
RESET ROLE;
-- superusers may
SELECT gpuhash_find('x', 1);

SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
REVOKE ALL ON FUNCTION gpuhash_create, gpuhash_drop, gpuhash_insert(text, bigint, bigint) FROM regress_gpuhash_user;
DROP ROLE regress_gpuhash_user, regress_gpuhash_other;
