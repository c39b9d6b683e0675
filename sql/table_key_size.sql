-- Tables whose keys take 4 bytes, beside some of 8 that everything else is done to alike.
SELECT gpuhash_create('t', key_size => 4), gpuhash_create('s', 0, key_size => 4), gpuhash_create('b', 5, key_size => 4), gpuhash_create('m', multi => true, key_size => 4),
    gpuhash_create('w', 20, multi => true, key_size => 4);
SELECT name, key_size FROM gpuhash_tables;
-- the ends of what fits, and the bit patterns of empty slots
SELECT gpuhash_insert('t', ARRAY[0, -1, 1, 2147483647, -2147483648], ARRAY[10, -11, 11, 12, 13]) AS new, gpuhash_insert('t', 5, 50), gpuhash_insert('t', -1, -10);
SELECT gpuhash_find('t', ARRAY[0, -1, 1, 2147483647, -2147483648, 5, NULL]), gpuhash_find('t', -1) AS one;
-- what does not fit is not there, also where the lower half of it is
SELECT gpuhash_find('t', ARRAY[4294967296, 4294967295, 2147483648, -2147483649, 4294967301, 5, NULL]), gpuhash_find('t', 4294967301) AS one, gpuhash_contains('t', 4294967301);
SELECT gpuhash_contains('t', ARRAY[4294967296, 5, NULL]), gpuhash_count('t', ARRAY[4294967296, 5, NULL]), gpuhash_delete('t', ARRAY[4294967296, 4294967301, 1]);
SELECT * FROM gpuhash_apply('t', '{f,d,f,d,f}', ARRAY[4294967301, 4294967301, 5, 2147483647, 2147483647], ARRAY[NULL, NULL, NULL, NULL, NULL]::bigint[]);
SELECT * FROM gpuhash_find_all('t', ARRAY[4294967301, 5, 4294967296, 0, NULL]);
-- nor can it be stored, and nothing else of the call is
SELECT gpuhash_insert('t', 2147483648, 1);
SELECT gpuhash_insert('t', ARRAY[6, -2147483649], ARRAY[60, 70]);
SELECT gpuhash_insert('b', ARRAY[6, 4294967302], ARRAY['abcde', 'abcde']::bytea[]);
SELECT gpuhash_insert('s', 4294967296);
SELECT gpuhash_insert('s', ARRAY[6, 4294967296]);
SELECT gpuhash_apply('t', '{u,f,i}', ARRAY[6, 4294967302, 4294967303], ARRAY[60, NULL, 70]);
SELECT gpuhash_load('t', 'SELECT 2147483648, 1');
SELECT gpuhash_contains('t', ARRAY[6, 7, 0]), gpuhash_contains('b', 6), gpuhash_contains('s', ARRAY[6, 0]);
SELECT gpuhash_load('t', 'VALUES (7::smallint, 70::bigint), (-2147483648, 1)') AS rows, gpuhash_find('t', ARRAY[7, -2147483648]);

-- the same done to both kinds
SELECT gpuhash_create(t || '8', size, multi) FROM (VALUES ('m', 8, true), ('w', 20, true), ('b', 5, false), ('s', 0, false), ('t', 8, false)) v (t, size, multi);
SELECT gpuhash_clear(name) FROM gpuhash_tables;
CREATE TEMP TABLE pairs AS SELECT i, ((i * 7919 % 40009) - 20000) * 50000 % 2147483647 AS k, decode(md5(i::text) || md5('+' || i), 'hex') AS v FROM generate_series(1::bigint, 60000) i;
SELECT n, gpuhash_load('t' || n, 'SELECT k, i FROM pairs') AS t, gpuhash_load('m' || n, 'SELECT k % 100000000, i FROM pairs') AS m, gpuhash_load('s' || n, 'SELECT k FROM pairs') AS s
FROM (VALUES (''), ('8')) v (n);
SELECT n, gpuhash_insert('b' || n, ks, ARRAY(SELECT substr(v, 1, 5) FROM pairs ORDER BY i)) AS b, gpuhash_insert('w' || n, ks, ARRAY(SELECT substr(v, 1, 20) FROM pairs ORDER BY i)) AS w,
    gpuhash_delete('t' || n, ks[1:20000]) AS less, gpuhash_delete('m' || n, ks[1:20000]) AS fewer, gpuhash_delete('w' || n, ks[100:101]) AS wide
FROM (VALUES (''), ('8')) v (n), (SELECT array_agg(k ORDER BY i) AS ks FROM pairs) p;
CREATE TEMP TABLE wanted AS SELECT array_agg(DISTINCT k) || array_agg(DISTINCT k + 1) || array_agg(DISTINCT k % 100000000) AS ks FROM pairs;
SELECT gpuhash_find('t', ks) = gpuhash_find('t8', ks) AS t, gpuhash_find_bytea('b', ks) = gpuhash_find_bytea('b8', ks) AS b, gpuhash_contains('s', ks) = gpuhash_contains('s8', ks) AS s,
    gpuhash_count('m', ks) = gpuhash_count('m8', ks) AS m, gpuhash_count('w', ks) = gpuhash_count('w8', ks) AS w FROM wanted;
SELECT a.name, a.keys = b.keys AS keys, a.entries = b.entries AS entries, a.keys > 0 AS some FROM gpuhash_tables a JOIN gpuhash_tables b ON b.name = a.name || '8';
SELECT count(*) AS differ FROM ((SELECT f.* FROM wanted, gpuhash_find_all('m', ks) f EXCEPT ALL SELECT f.* FROM wanted, gpuhash_find_all('m8', ks) f) UNION ALL
    (SELECT f.* FROM wanted, gpuhash_find_all('m8', ks) f EXCEPT ALL SELECT f.* FROM wanted, gpuhash_find_all('m', ks) f)) d;
SELECT count(*) AS differ FROM ((SELECT f.* FROM wanted, gpuhash_find_all_bytea('w', ks) f EXCEPT ALL SELECT f.* FROM wanted, gpuhash_find_all_bytea('w8', ks) f) UNION ALL
    (SELECT f.* FROM wanted, gpuhash_find_all_bytea('w8', ks) f EXCEPT ALL SELECT f.* FROM wanted, gpuhash_find_all_bytea('w', ks) f)) d;
SELECT gpuhash_reserve(name, 100000), gpuhash_compact(name) FROM gpuhash_tables;
SELECT a.bytes < b.bytes AS smaller FROM gpuhash_table_stats('s') a, gpuhash_table_stats('s8') b;
SELECT gpuhash_find('t', ks) = gpuhash_find('t8', ks) AS t, gpuhash_count('m', ks) = gpuhash_count('m8', ks) AS m FROM wanted;

SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
