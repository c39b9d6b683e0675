-- Hash tables with many values for a key.
SELECT gpuhash_create('m', multi => true);
SELECT gpuhash_insert('m', 1, 10) AS new, gpuhash_insert('m', 1, 11) AS added, gpuhash_insert('m', 1, 10) AS again;
SELECT gpuhash_insert('m', ARRAY[2, 1, 2, 0, -1]::bigint[], ARRAY[20, 12, 21, 1, 2]::bigint[]) AS new_keys;
SELECT * FROM gpuhash_find_all('m', ARRAY[1, 2, 3, 0, -1, NULL]::bigint[]) ORDER BY key, value;
-- a key asked for twice is told twice
SELECT key, count(*), sum(value) FROM gpuhash_find_all('m', ARRAY[2, 2]::bigint[]) GROUP BY key;
SELECT gpuhash_contains('m', ARRAY[1, 3, NULL]::bigint[]);
SELECT keys, entries FROM gpuhash_table_stats('m');
SELECT gpuhash_delete('m', ARRAY[1, 3, 1]::bigint[]) AS removed;
SELECT * FROM gpuhash_find_all('m', ARRAY[1, 2]::bigint[]) ORDER BY key, value;
SELECT * FROM gpuhash_find_all('m', '{}');

-- one key with very many values, and many keys with some
SELECT gpuhash_load('m', 'SELECT 42, i FROM generate_series(1, 1500000) i') AS rows;
SELECT gpuhash_load('m', 'SELECT 1000 + i % 30000, i FROM generate_series(1, 200000) i') AS rows;
SELECT count(*), min(value), max(value), sum(value) FROM gpuhash_find_all('m', ARRAY[42]::bigint[]);
SELECT count(*), count(DISTINCT key) AS keys, sum(value),
    count(*) FILTER (WHERE (value - key + 1000) % 30000 <> 0 AND key >= 1000) AS wrong
FROM gpuhash_find_all('m', (SELECT array_agg(i::bigint) || 42::bigint FROM generate_series(1, 40000) i));
SELECT gpuhash_delete('m', (SELECT array_agg(i::bigint) FROM generate_series(1000, 40000) i)) AS removed;
SELECT gpuhash_delete('m', ARRAY[42]::bigint[]) AS removed;
SELECT keys, entries FROM gpuhash_table_stats('m');
SELECT gpuhash_clear('m');
SELECT gpuhash_insert('m', 1, 1), count(*) FROM gpuhash_find_all('m', ARRAY[1, 2]::bigint[]);

-- values of bytes: narrow ones and wide ones
SELECT gpuhash_create('m4', 4, multi => true), gpuhash_create('m20', 20, multi => true);
CREATE TEMP TABLE pairs AS
    SELECT i % 100 AS k, i, substr(decode(md5(i::text) || md5('+' || i), 'hex'), 1, 20) AS v FROM generate_series(1, 20000) i;
SELECT gpuhash_insert('m4', array_agg(k::bigint), array_agg(substr(v, 1, 4))) AS new_keys,
    gpuhash_insert('m20', array_agg(k::bigint), array_agg(v)) AS new_keys FROM pairs;
SELECT keys, entries FROM gpuhash_table_stats('m4');
SELECT keys, entries FROM gpuhash_table_stats('m20');
CREATE TEMP VIEW differences AS
    WITH all_keys AS (SELECT array_agg(i::bigint) AS keys FROM generate_series(0, 199) i),
        found AS (SELECT f.key, f.value FROM all_keys, gpuhash_find_all_bytea('m20', keys) f)
    SELECT (SELECT count(*) FROM (SELECT key, value FROM found EXCEPT ALL SELECT k, v FROM pairs) a) AS too_many,
        (SELECT count(*) FROM (SELECT k, v FROM pairs EXCEPT ALL SELECT key, value FROM found) b) AS missing;
SELECT * FROM differences;
SELECT count(*), count(DISTINCT value) > 19000 AS differ FROM gpuhash_find_all_bytea('m4', (SELECT array_agg(DISTINCT k::bigint) FROM pairs));
SELECT gpuhash_delete('m20', ARRAY[1, 2, 3, 4, 5, 1, 999]::bigint[]) AS removed;
DELETE FROM pairs WHERE k BETWEEN 1 AND 5;
SELECT * FROM differences;
INSERT INTO pairs SELECT 1 + i % 5, i, decode(md5('x' || i) || '00000000', 'hex') FROM generate_series(1, 1000) i;
SELECT gpuhash_load('m20', 'SELECT k, v FROM pairs WHERE k BETWEEN 1 AND 5') AS rows;
SELECT * FROM differences;
-- the slots of what was removed are used again
SELECT bytes AS bytes_before FROM gpuhash_table_stats('m20') \gset
SELECT sum(gpuhash_delete('m20', ARRAY[n, 1, 2, 3, 4, 5])) AS removed,
    sum(gpuhash_load('m20', 'SELECT k, v FROM pairs WHERE k BETWEEN 1 AND 5')) AS rows
FROM generate_series(1, 50) n;
SELECT * FROM differences;
SELECT bytes <= :bytes_before AS no_more_memory FROM gpuhash_table_stats('m20');

SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
