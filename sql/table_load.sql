-- gpuhash_load: a query's rows as entries.
SELECT gpuhash_create('t'), gpuhash_create('s', value_size => 0), gpuhash_create('b', value_size => 5);

SELECT gpuhash_load('t', 'SELECT i, i * 2 FROM generate_series(1, 100000) i') AS rows;
SELECT keys FROM gpuhash_table_stats('t');
SELECT sum(v) FROM unnest(gpuhash_find('t', (SELECT array_agg(i::bigint) FROM generate_series(1, 100000) i))) v;
-- the last row of equal keys stays, as with gpuhash_insert
SELECT gpuhash_load('t', 'SELECT i % 10, i FROM generate_series(1, 40000) i ORDER BY i') AS rows;
SELECT gpuhash_find('t', ARRAY[0, 1, 9, 10]);
SELECT gpuhash_load('t', 'SELECT 1, 1 WHERE false') AS rows;

-- integers of every width, domains, VALUES, TABLE, WITH
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TEMP TABLE source (k smallint, v positive);
INSERT INTO source VALUES (-7, 7), (-8, 8);
SELECT gpuhash_load('t', 'TABLE source') AS rows, gpuhash_load('t', 'VALUES (-9::bigint, -9::smallint)') AS one,
    gpuhash_load('t', 'WITH w AS (SELECT -10 AS k, 10 AS v) SELECT * FROM w;') AS with;
SELECT gpuhash_find('t', ARRAY[-7, -8, -9, -10]);
SELECT gpuhash_load('s', 'SELECT k FROM source') AS rows, gpuhash_contains('s', ARRAY[-7, -8, -9]);
SELECT gpuhash_load('b', $$SELECT 1, '\x0102030405'::bytea UNION ALL SELECT 2, 'abcde'$$) AS rows,
    gpuhash_find_bytea('b', ARRAY[1, 2, 3]);
SELECT gpuhash_load('t', 'SELECT 1, int8send(-4)') AS rows, gpuhash_find('t', 1);

-- the query sees what the transaction has done so far
BEGIN;
INSERT INTO source VALUES (-11, 11);
SELECT gpuhash_load('t', 'TABLE source') AS rows;
ROLLBACK;
SELECT gpuhash_find('t', ARRAY[-11]);

-- the query's errors are the query's own; what came before stays stored
SELECT gpuhash_clear('t');
SELECT gpuhash_load('t', 'SELECT i, 100000 / (50000 - i) FROM generate_series(1, 100000) i');
SELECT keys > 0 AS some, keys < 50000 AS not_all FROM gpuhash_table_stats('t');
SELECT gpuhash_load('t', 'SELECT * FROM no_such_table');
SELECT gpuhash_load('t', 'SELEC 1');

-- cancelled, and usable afterwards
SET statement_timeout = '100ms';
SELECT gpuhash_load('t', 'SELECT i, i FROM generate_series(1, 1000000000000) i');
RESET statement_timeout;
SELECT gpuhash_clear('t');
SELECT gpuhash_load('t', 'SELECT i, -i FROM generate_series(1, 1000) i') AS rows;
SELECT keys FROM gpuhash_table_stats('t');

-- the query may use hash tables, this one too
SELECT gpuhash_load('t', $$SELECT i + 1000, gpuhash_find('t', i) FROM generate_series(1, 1000) i$$) AS rows;
SELECT gpuhash_find('t', ARRAY[1, 1001, 2000]);
-- but not take it away
SELECT gpuhash_load('t', $$SELECT i, CASE WHEN i = 30000 THEN length(gpuhash_drop('t')::text) ELSE i END FROM generate_series(1, 100000) i$$);
SELECT gpuhash_create('t');
SELECT gpuhash_load('t', $$SELECT i, CASE WHEN i = 30000 THEN length(gpuhash_drop('t')::text || gpuhash_create('t')::text) ELSE i END FROM generate_series(1, 100000) i$$);
SELECT keys FROM gpuhash_table_stats('t');

-- as the caller: privileges and row security
CREATE ROLE regress_gpuhash_loader;
GRANT EXECUTE ON FUNCTION gpuhash_create, gpuhash_load TO regress_gpuhash_loader;
CREATE TABLE guarded (k int, v int, who text);
INSERT INTO guarded VALUES (1, 1, 'regress_gpuhash_loader'), (2, 2, 'somebody else');
SET ROLE regress_gpuhash_loader;
SELECT gpuhash_create('mine');
SELECT gpuhash_load('mine', 'SELECT k, v FROM guarded');
RESET ROLE;
GRANT SELECT ON guarded TO regress_gpuhash_loader;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON guarded USING (who = current_user);
SET ROLE regress_gpuhash_loader;
SELECT gpuhash_load('mine', 'SELECT k, v FROM guarded') AS rows, gpuhash_find('mine', ARRAY[1, 2]);
RESET ROLE;
SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
DROP TABLE guarded;
DROP DOMAIN positive CASCADE;
REVOKE ALL ON FUNCTION gpuhash_create, gpuhash_load FROM regress_gpuhash_loader;
DROP ROLE regress_gpuhash_loader;
