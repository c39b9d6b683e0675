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

-- many values for a key: what comes to an empty table is gathered and stored at once, more
-- than maintenance_work_mem in batches; nobody sees a difference
SELECT gpuhash_create('m', multi => true), gpuhash_create('m4', multi => true, key_size => 4), gpuhash_create('w', 20, true), gpuhash_create('batches', multi => true);
CREATE TEMP TABLE rows AS SELECT CASE WHEN i % 3 = 0 THEN i % 7 ELSE i % 20011 END AS k, i AS v, decode(md5(i::text) || '01234567', 'hex') AS b FROM generate_series(1, 100000) i;
SELECT gpuhash_load('m', 'SELECT k, v FROM rows') AS rows, gpuhash_load('m4', 'SELECT k, v FROM rows') AS narrow, gpuhash_load('w', 'SELECT k, b FROM rows') AS wide;
SELECT t, upsizes = 0 AS never_grew FROM unnest('{m,m4,w}'::text[]) t, gpuhash_table_stats(t);
SET maintenance_work_mem = '1MB';
SELECT gpuhash_load('batches', 'SELECT k, v FROM rows') AS rows;
RESET maintenance_work_mem;
CREATE TEMP VIEW missing AS
    WITH keys AS (SELECT array_agg(i::bigint) AS ks FROM generate_series(-1, 20100) i)
    SELECT t, (SELECT count(*) FROM (SELECT k, int8send(v) FROM rows WHERE t <> 'w' UNION ALL SELECT k, b FROM rows WHERE t = 'w'
        EXCEPT ALL SELECT f.* FROM keys, gpuhash_find_all_bytea(t, ks) f) d) AS missing,
        (SELECT count(*) FROM keys, gpuhash_find_all_bytea(t, ks)) AS found, (SELECT keys || '/' || entries FROM gpuhash_table_stats(t)) AS in_it
    FROM unnest('{m,m4,w,batches}'::text[]) t;
SELECT * FROM missing;
-- built, then changed like any other
SELECT gpuhash_delete(t, ARRAY[0, 3, 20010]) AS removed, gpuhash_delete_one(t, ARRAY[1, 1, 2]) AS ones FROM unnest('{m,m4,w,batches}'::text[]) t;
SELECT gpuhash_load('m', 'SELECT k, v FROM rows WHERE k IN (0, 3, 20010)') AS again, gpuhash_load('w', 'SELECT k, b FROM rows WHERE k IN (0, 3, 20010)') AS wide;
SELECT t, missing, found, in_it FROM missing;
-- an error of the query: nothing of what was gathered is there
SELECT gpuhash_clear('m');
SELECT gpuhash_load('m', 'SELECT i, 1 / (60000 - i) FROM generate_series(1, 100000) i');
SELECT keys FROM gpuhash_table_stats('m');
-- somebody else stores meanwhile: the rows are added
SELECT gpuhash_load('m', $$SELECT i, CASE WHEN i = 50000 THEN gpuhash_insert('m', 1, -1)::int ELSE i END FROM generate_series(1, 60000) i$$) AS rows;
SELECT keys, entries FROM gpuhash_table_stats('m');
SELECT * FROM gpuhash_find_all('m', ARRAY[1, 50000, 60000]) ORDER BY key, value;
SELECT gpuhash_load('m', $$SELECT i, CASE WHEN i = 30000 THEN length(gpuhash_drop('m')::text || gpuhash_create('m', multi => true)::text) ELSE i END FROM generate_series(1, 100000) i$$);
SELECT gpuhash_drop('m4'), gpuhash_create('m4', multi => true, key_size => 4), gpuhash_load('m4', 'SELECT i, i FROM generate_series(2147473648, 2147483648) i');
SELECT keys FROM gpuhash_table_stats('m4');
-- an array that comes to an empty table, too
SELECT gpuhash_insert('m4', array_agg((i % 6000)::bigint), array_agg(i::bigint)) AS new FROM generate_series(1, 50000) i;
SELECT count(*), count(DISTINCT value), count(*) FILTER (WHERE value % 6000 <> key) AS wrong FROM gpuhash_find_all('m4', (SELECT array_agg(i::bigint) FROM generate_series(0, 6000) i));
-- one that is empty again, cleared or by deletes, is built anew
SELECT gpuhash_clear('batches'), gpuhash_load('batches', 'SELECT i % 7000, i FROM generate_series(1, 50000) i') AS rows;
SELECT count(*), count(DISTINCT value), count(*) FILTER (WHERE value % 7000 <> key) AS wrong FROM gpuhash_find_all('batches', (SELECT array_agg(i::bigint) FROM generate_series(0, 20100) i));
SELECT gpuhash_delete('batches', (SELECT array_agg(i::bigint) FROM generate_series(0, 7000) i)) AS removed, gpuhash_load('batches', 'SELECT i % 9000, i FROM generate_series(1, 60000) i') AS rows;
SELECT count(*), count(DISTINCT value), count(*) FILTER (WHERE value % 9000 <> key) AS wrong FROM gpuhash_find_all('batches', (SELECT array_agg(i::bigint) FROM generate_series(0, 20100) i));
SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
