-- Counts of values, and what they are worth as a check of other operations.
SELECT gpuhash_create('t'), gpuhash_create('s', 0), gpuhash_create('b', 5), gpuhash_create('m', multi => true), gpuhash_create('w', 20, multi => true);
SELECT gpuhash_insert('t', ARRAY[1, 2], ARRAY[10, 20]), gpuhash_insert('s', ARRAY[1, 2]), gpuhash_insert('b', ARRAY[1, 2], ARRAY['abcde', 'fghij']::bytea[]);
SELECT gpuhash_insert('m', ARRAY[1, 1, 2, 0, 1], ARRAY[10, 11, 20, 0, 10]), gpuhash_insert('w', ARRAY[3, 3], ARRAY[repeat('x', 20), repeat('y', 20)]::bytea[]);
SELECT gpuhash_count(name, ARRAY[1, 3, 2, NULL, 0, 1, 3]) FROM gpuhash_tables;
SELECT gpuhash_count('m', '{}'), gpuhash_count('m', ARRAY[NULL, NULL]::bigint[]), gpuhash_count('m', ARRAY[9223372036854775807, -9223372036854775808]);
-- many keys, each with some values
SELECT gpuhash_create('many', multi => true), gpuhash_load('many', 'SELECT i % 30000, i FROM generate_series(1, 200000) i');
SELECT count(*), sum(n), count(*) FILTER (WHERE n <> CASE WHEN k < 30000 THEN 6 + (k BETWEEN 1 AND 20000)::int ELSE 0 END) AS wrong
FROM (SELECT array_agg(i::bigint) AS keys FROM generate_series(0, 39999) i) a, unnest(keys, gpuhash_count('many', keys)) c (k, n);

-- one value of each key goes, a key given twice loses two, a key without values goes
SELECT gpuhash_delete_one('m', ARRAY[1, 2, 3, 1]) AS removed, gpuhash_count('m', ARRAY[0, 1, 2, 3]);
SELECT key, value IN (10, 11) AS one_of_them FROM gpuhash_find_all('m', ARRAY[1]);
SELECT gpuhash_delete_one('m', ARRAY[1, 1, 1, 0]) AS removed, gpuhash_contains('m', ARRAY[0, 1, 2]);
SELECT keys, entries FROM gpuhash_table_stats('m');
SELECT gpuhash_delete_one('m', '{}') AS removed, gpuhash_delete_one('w', ARRAY[3]) AS wide;
SELECT count(*) FROM gpuhash_find_all_bytea('w', ARRAY[3]) WHERE value IN (repeat('x', 20)::bytea, repeat('y', 20)::bytea);
CREATE TEMP TABLE bag AS SELECT key, value FROM gpuhash_find_all('many', (SELECT array_agg(i::bigint) FROM generate_series(0, 29999) i));
SELECT gpuhash_delete_one('many', (SELECT array_agg((i % 25000)::bigint) FROM generate_series(1, 60000) i)) AS removed;
SELECT count(*), sum(value) <> (SELECT sum(value) FROM bag) AS other_sum, count(*) FILTER (WHERE n <> 6 + (key BETWEEN 1 AND 20000)::int - CASE WHEN key BETWEEN 1 AND 10000 THEN 3 WHEN key < 25000 THEN 2 ELSE 0 END) AS wrong
FROM (SELECT key, value, count(*) OVER (PARTITION BY key) AS n FROM gpuhash_find_all('many', (SELECT array_agg(i::bigint) FROM generate_series(0, 29999) i))) f;
SELECT count(*) AS made_up FROM (SELECT * FROM gpuhash_find_all('many', (SELECT array_agg(i::bigint) FROM generate_series(0, 29999) i)) EXCEPT ALL TABLE bag) d;

-- interrupts that raise no error do not have a static build begin anew for ever
SET client_connection_check_interval = '2ms';
SET statement_timeout = '60s';
SELECT gpuhash_create('interrupted', multi => true), gpuhash_load('interrupted', 'SELECT i % 100000, i FROM generate_series(1::bigint, 1000000) i');
SELECT sum(n) FROM gpuhash_count('interrupted', (SELECT array_agg(i::bigint) FROM generate_series(0, 99999) i)) c, unnest(c) n;
SELECT gpuhash_drop('interrupted');
RESET statement_timeout;
RESET client_connection_check_interval;

-- mixed batches: a position sees what those before it did
SELECT * FROM gpuhash_apply('t', '{f,i,u,f,d,f,i,f,d}', ARRAY[1, 1, 1, 1, 1, 1, 1, 1, 7], ARRAY[NULL, 11, 12, 0, NULL, 0, 13, NULL, 0]);
SELECT * FROM gpuhash_apply('t', '{u,i,f,f}', ARRAY[3, 3, 3, 2], ARRAY[30, 31, NULL, NULL]);
SELECT gpuhash_find('t', ARRAY[1, 2, 3]);
SELECT gpuhash_apply('s', '{f,i,i,d,d,u}', ARRAY[1, 1, 3, 3, 3, 2]);
SELECT gpuhash_contains('s', ARRAY[1, 2, 3]);
SELECT * FROM gpuhash_apply('b', '{u,f,d,f,i,f}', ARRAY[1, 1, 2, 2, 3, 3], ARRAY['vwxyz', 'not looked at', NULL, NULL, '12345', NULL]::bytea[]);
SELECT * FROM gpuhash_apply('t', '{f,u}', ARRAY[2, 2], ARRAY[NULL, int8send(5)]), gpuhash_apply('t', '{}', '{}', '{}'::bigint[]) AS nothing (no_flags, no_values);
SELECT * FROM gpuhash_apply('t', '{f,d}', ARRAY[2, 3], ARRAY[NULL, NULL]::bigint[]);
SELECT keys FROM gpuhash_table_stats('t');
-- a large one against a model: the state of each key after its last change
SELECT gpuhash_create('large'), gpuhash_create('large_b', 20);
CREATE TEMP TABLE steps AS
SELECT n, (n * 7919 + n / 3) % 20000 AS k, (ARRAY['i', 'u', 'f', 'd', 'u', 'f'])[1 + (n * 31 + n / 7) % 6] AS op, n AS v FROM generate_series(1::bigint, 150000) n;
CREATE TEMP TABLE told AS
SELECT t.* FROM (SELECT array_agg(op::"char" ORDER BY n) AS ops, array_agg(k ORDER BY n) AS ks, array_agg(v ORDER BY n) AS vs FROM steps) s,
    gpuhash_apply('large', ops, ks, vs) a, unnest(ops, ks, vs, a.done, a.found) WITH ORDINALITY AS t (op, k, v, done, found, n);
CREATE TEMP TABLE told_b AS
SELECT t.* FROM (SELECT array_agg(op::"char" ORDER BY n) AS ops, array_agg(k ORDER BY n) AS ks, array_agg(int8send(v) || 'twelve bytes' ORDER BY n) AS vs FROM steps) s,
    gpuhash_apply('large_b', ops, ks, vs) a, unnest(ops, ks, a.done, a.found) WITH ORDINALITY AS t (op, k, done, found, n);
CREATE FUNCTION model_of(INOUT state bigint, op "char", v bigint) LANGUAGE sql IMMUTABLE AS
    $$ SELECT CASE op WHEN 'i' THEN coalesce(state, v) WHEN 'u' THEN v WHEN 'd' THEN NULL ELSE state END $$;
CREATE AGGREGATE state_of("char", bigint) (SFUNC = model_of, STYPE = bigint);
CREATE TEMP TABLE model AS
SELECT n, k, op, v, state_of(op::"char", v) OVER (PARTITION BY k ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM steps;
SELECT count(*) AS positions, count(*) FILTER (WHERE done) AS done, count(found) AS found,
    count(*) FILTER (WHERE done <> CASE WHEN t.op IN ('i', 'u') THEN before IS NULL ELSE before IS NOT NULL END) AS wrong_flags,
    count(*) FILTER (WHERE found IS DISTINCT FROM CASE WHEN t.op = 'f' THEN before END) AS wrong_values
FROM told t JOIN model m USING (n);
SELECT count(*) AS differ FROM told a JOIN told_b b USING (n) WHERE a.done <> b.done OR int8send(a.found) || 'twelve bytes' IS DISTINCT FROM b.found;
SELECT count(*) AS keys, count(*) FILTER (WHERE state IS DISTINCT FROM found) AS differ
FROM (SELECT array_agg(k) AS ks, array_agg(state) AS states FROM (SELECT k, state_of(op::"char", v ORDER BY n) AS state FROM steps GROUP BY k) s) a, unnest(ks, states, gpuhash_find('large', ks)) f (k, state, found);
DROP AGGREGATE state_of("char", bigint);
DROP FUNCTION model_of;

-- room for keys to come: the table does not grow on the way, nor shrink before it is cleared
SELECT gpuhash_drop('large'), gpuhash_create('large'), gpuhash_reserve('large', 100000), gpuhash_reserve('large', 0);
SELECT upsizes AS upsizes_before, sizes AS sizes_before FROM gpuhash_table_stats('large') \gset
SELECT gpuhash_load('large', 'SELECT i, -i FROM generate_series(1, 100000) i') AS rows, gpuhash_reserve('large', 50000);
SELECT upsizes = :upsizes_before AS no_growth, sizes = :'sizes_before' AS same_size FROM gpuhash_table_stats('large');
SELECT gpuhash_delete('large', (SELECT array_agg(i::bigint) FROM generate_series(11, 100000) i)) AS removed, gpuhash_compact('large');
SELECT sizes = :'sizes_before' AS room_kept FROM gpuhash_table_stats('large');
SELECT gpuhash_find('large', ARRAY[1, 10, 11]), gpuhash_clear('large');
SELECT (SELECT sum(x) FROM unnest(sizes) x) < 100000 AS room_given_back FROM gpuhash_table_stats('large');
-- a table with content is spread over more room
SELECT gpuhash_insert('large', array_agg(i::bigint), array_agg(-i::bigint)) AS new, gpuhash_reserve('large', 200000) FROM generate_series(1, 1000) i;
SELECT (SELECT sum(x) FROM unnest(sizes) x) >= 200000 AS room, keys FROM gpuhash_table_stats('large');
SELECT count(*) FILTER (WHERE v = -k) AS found FROM (SELECT array_agg(i::bigint) AS ks FROM generate_series(1, 1000) i) a, unnest(ks, gpuhash_find('large', ks)) f (k, v);
SELECT gpuhash_reserve('s', 1000), gpuhash_reserve('b', 1000), gpuhash_reserve('m', 1000), gpuhash_reserve('w', 1000);
-- what deletes left is given back, and nothing else
SELECT gpuhash_drop('many'), gpuhash_create('many', multi => true), gpuhash_load('many', 'SELECT i % 30000, i FROM generate_series(1, 200000) i') AS rows;
SELECT gpuhash_delete_one('many', array_agg((i % 30000)::bigint)) AS removed FROM generate_series(0, 149999) i;
SELECT bytes AS bytes_before FROM gpuhash_table_stats('many') \gset
SELECT gpuhash_compact('many'), gpuhash_compact('many');
SELECT keys, entries, bytes < :bytes_before AS less FROM gpuhash_table_stats('many');
SELECT count(*), count(*) FILTER (WHERE value % 30000 <> key) AS wrong FROM gpuhash_find_all('many', (SELECT array_agg(i::bigint) FROM generate_series(0, 29999) i));
SELECT gpuhash_compact(name) FROM gpuhash_tables;

SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
