-- Groups by keys of many kinds, and what is made of keys and aggregates.
LOAD 'gpuhash';
CREATE DOMAIN ak_code AS text;
CREATE TABLE ak (
    id int, k int, i8 int8, i2 int2, b bool, t text, v varchar(300), c char(10), code ak_code, long text, packed text,
    n numeric(10, 2), f4 float4, f8 float8, d date, ts timestamp, o oid, nul int);
ALTER TABLE ak ALTER long SET STORAGE EXTERNAL;
INSERT INTO ak SELECT i, CASE WHEN i % 10 > 0 THEN i % 50 END, CASE i % 9 WHEN 0 THEN -9223372036854775808 WHEN 1 THEN 9223372036854775807 ELSE i % 20 END, i % 4, CASE WHEN i % 3 > 0 THEN i % 2 = 0 END,
    CASE i % 12 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN ' ' WHEN 3 THEN 'a' WHEN 4 THEN 'a ' WHEN 5 THEN 'ä' ELSE repeat('t', i % 30) END,
    CASE i % 12 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'a' WHEN 3 THEN 'a ' ELSE repeat('v', i % 300) END,
    CASE i % 12 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'a' WHEN 3 THEN 'a ' ELSE repeat('c', i % 10) END, 'code' || i % 6,
    CASE WHEN i % 40 = 0 THEN repeat(md5((i % 80)::text), 200) ELSE 'l' || i % 7 END, CASE WHEN i % 30 = 0 THEN repeat('packed ' || i % 90, 1000) ELSE 'p' || i % 7 END,
    (ARRAY[1, 1.0, 1.50, -1, 0, NULL, 'NaN'])[i % 7 + 1],
    (ARRAY['0', '-0', 'NaN', 'inf', '-inf', '1.5', '1e-40'])[i % 7 + 1]::float4, (ARRAY['-0', '0', 'NaN', '-NaN', '-inf', '1.5', '5e-324'])[i % 7 + 1]::float8,
    date '2000-01-01' + i % 30, CASE i % 8 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE timestamp '2000-01-01' + i % 5 * interval '1 day' END, 4294967295 - i % 5, NULL
FROM generate_series(1, 3000) i;
ANALYZE ak;
CREATE TEMP TABLE ak_keys (position serial, keys text);
INSERT INTO ak_keys (keys) VALUES ('k'), ('i8'), ('i2'), ('b'), ('t'), ('v'), ('c'), ('code'), ('long'), ('packed'), ('n'), ('f4'), ('f8'), ('d'), ('ts'), ('o'), ('nul'),
    ('k, b'), ('t, c'), ('f8, f4, n'), ('v, long, packed'), ('nul, k'), ('k, i8, i2, b, t'), ('id'), ('id, t'), ('c, c, c'),
    ('k + 1'), ('k % 3'), ('-i8 / 2'), ('abs(k - 25)'), ('k > 20'), ('b IS NULL'), ('n * 2'), ('n + 0.001'), ('-n'), ('n::float8'), ('f8 * 2'), ('-f8'), ('f8 + 0'), ('f4::float8'),
    ('CASE WHEN k > 30 THEN ''high'' WHEN k > 10 THEN ''low'' END'), ('coalesce(t, ''none'')'), ('coalesce(k, -1)'), ('nullif(i2, 3)'), ('t = v'), ('c = ''a'''), ('c::text'), ('t::char(5)'), ('v::text'),
    ('d + 1'), ('d - date ''1999-01-01'''), ('date_trunc(''month'', d)'), ('extract(month FROM d)'), ('upper(t)'), ('length(long)'), ('t || v'), ('k::text'), ('k::numeric'), ('id % 7, id % 11, k'),
    ('ROW(k, b)'), ('ARRAY[k]'), ('t COLLATE "C"'), ('1 + 1, k'), ('''const''::text, b');
SELECT k.keys, c.offloaded, c.result AS groups, c.same, f.same AS filtered
FROM ak_keys k, LATERAL compare_aggregate(format('SELECT %1$s, count(*), sum(id), min(n), avg(k) FROM ak GROUP BY %1$s', keys)) c,
     LATERAL compare_aggregate(format('SELECT count(t), max(i8), sum(n), bool_or(b) FILTER (WHERE id %% 3 = 0) FROM ak WHERE i2 <> 1 GROUP BY %1$s', keys)) f
WHERE keys NOT LIKE '1 +%' AND keys NOT LIKE '''const%' ORDER BY k.position;
-- a few rows of each batch, whose keys are brought together: of few groups and of many; sorted, PostgreSQL shows any of two zeros
SET enable_sort = off;
SELECT k.keys, c.offloaded, c.result AS groups, c.same
FROM ak_keys k, LATERAL compare_aggregate(format('SELECT %1$s, count(*), sum(id), min(n), avg(k) FROM ak WHERE id %% 67 IN (5, 6) GROUP BY %1$s', keys)) c
WHERE keys NOT LIKE '1 +%' AND keys NOT LIKE '''const%' ORDER BY k.position;
CREATE TABLE ak_many AS SELECT i AS a, nullif(i % 7, 3) AS b, 't' || i % 5 AS t FROM generate_series(1, 200000) i;
SELECT * FROM compare_aggregate('SELECT a, b, count(*) FROM ak_many WHERE a % 30 = 3 GROUP BY a, b');
SELECT * FROM compare_aggregate('SELECT t, a, count(*) FROM ak_many WHERE a % 30 = 3 OR a < 3000 GROUP BY t, a');
DROP TABLE ak_many;
RESET enable_sort;
SELECT * FROM compare_aggregate('SELECT 1 + 1 AS one, k, count(*) FROM ak GROUP BY one, k');
SELECT * FROM compare_aggregate('SELECT ''const''::text AS one, count(*) FROM ak GROUP BY one');
SELECT * FROM compare_aggregate('SELECT count(*) FROM ak GROUP BY ()');
-- which of equal keys is shown: the first one
SELECT * FROM compare_aggregate('SELECT f8::text, count(*) FROM (SELECT f8 FROM ak WHERE f8 = 0) s GROUP BY f8');
-- numerics that are equal and look different
CREATE TABLE ak_scales (n numeric, m numeric(20, 4));
INSERT INTO ak_scales SELECT (ARRAY[1.0, 1.00, 1, 1e0, 100, 1e2, 0, 0.000])[i % 8 + 1], i % 3 FROM generate_series(1, 80) i;
SELECT * FROM compare_aggregate('SELECT n, count(*) FROM ak_scales GROUP BY n');
SELECT * FROM compare_aggregate('SELECT m, m + 0.5, count(*) FROM ak_scales GROUP BY m, m + 0.5');

-- expressions over keys and aggregates; keys not shown; HAVING
CREATE TEMP TABLE ak_queries (position serial, query text);
INSERT INTO ak_queries (query) VALUES
    ('SELECT k * 2 + count(*), sum(id) / count(*)::numeric FROM ak GROUP BY k'),
    ('SELECT count(*) FROM ak GROUP BY k'),
    ('SELECT k FROM ak GROUP BY k'),
    ('SELECT DISTINCT k, b FROM ak'),
    ('SELECT k + 1 AS x, k + 2 AS y, count(*) FROM ak GROUP BY k'),
    ('SELECT k % 5 AS x, (k % 5) * 10 AS y, sum(k % 5) FROM ak GROUP BY k % 5'),
    ('SELECT coalesce(t, ''null'') || '':'' || count(*), upper(max(n)::text) FROM ak GROUP BY t'),
    ('SELECT k, count(*), count(*) + 1, sum(id), sum(id) FROM ak GROUP BY k'),
    ('SELECT k, sum(id) FROM ak GROUP BY k HAVING sum(id) > 80000'),
    ('SELECT k, sum(id) FROM ak GROUP BY k HAVING k > 20'),
    ('SELECT k, sum(id) FROM ak GROUP BY k HAVING k > 20 OR count(*) > 100'),
    ('SELECT k FROM ak GROUP BY k HAVING min(n) IS NULL OR max(b::int) = 1'),
    ('SELECT k, sum(id) FROM ak GROUP BY k HAVING sum(id) > (SELECT avg(id) * 55 FROM ak)'),
    ('SELECT k, sum(id) FROM ak a GROUP BY k HAVING sum(id) > (SELECT max(b.id) FROM ak b WHERE b.k = a.k)'),
    ('SELECT k, sum(id) FROM ak a GROUP BY k HAVING EXISTS (SELECT FROM ak b WHERE b.id = sum(a.i2) AND b.k = a.k)'),
    ('SELECT k, (SELECT max(b.i8) FROM ak b WHERE b.k = a.k AND b.i2 = 1) FROM ak a GROUP BY k'),
    ('SELECT k, (SELECT count(*) FROM ak b WHERE b.id < sum(a.i2)) FROM ak a GROUP BY k'),
    ('SELECT k, ARRAY(SELECT count(*) FROM ak b WHERE b.k = a.k GROUP BY b.b ORDER BY 1) FROM ak a GROUP BY k'),
    ('SELECT k, rank() OVER (ORDER BY sum(id)), sum(sum(id)) OVER (ORDER BY k NULLS FIRST) FROM ak GROUP BY k'),
    ('SELECT k, CASE WHEN count(*) > 50 THEN sum(n) ELSE avg(n) END FROM ak WHERE n <> ''NaN'' GROUP BY k'),
    ('SELECT count(*) FROM ak HAVING count(*) > 5'), ('SELECT count(*) FROM ak HAVING count(*) < 5'), ('SELECT 1 FROM ak HAVING true'), ('SELECT 1 FROM ak HAVING false'), ('SELECT count(*) FROM ak WHERE false HAVING count(*) = 0'),
    ('SELECT generate_series(1, k % 3), count(*) FROM ak GROUP BY k'), ('SELECT k, generate_series(1, count(*) % 7) FROM ak GROUP BY k'),
    ('SELECT max(k), a FROM (SELECT k, count(*) AS a FROM ak GROUP BY k) s GROUP BY a'),
    ('SELECT avg(c) FROM (SELECT count(*) AS c FROM ak GROUP BY t, b) s'),
    ('SELECT s FROM (SELECT k, sum(n) AS s, count(*) FROM ak WHERE n < 5 GROUP BY k) x WHERE s > 3'),
    ('SELECT id, t, n, sum(k) FROM (SELECT * FROM ak WHERE id < 500) s GROUP BY id, t, n'),
    ('SELECT k, random() >= 0, count(*) FROM ak GROUP BY k'), ('SELECT k, now() = now(), count(*) FROM ak GROUP BY k'),
    ('SELECT (k, count(*))::text FROM ak GROUP BY k'), ('SELECT ROW(k, sum(id)) FROM ak GROUP BY k'), ('SELECT ak_keys.keys FROM ak_keys GROUP BY position, keys'),
    ('SELECT count(*), tableoid::regclass FROM ak GROUP BY tableoid'), ('SELECT max(ctid), count(ctid) FROM ak'), ('SELECT count(ak) FROM ak'), ('SELECT count(ak.*) FROM ak GROUP BY k'),
    -- not the node's, and right all the same
    ('SELECT k, b, count(*) FROM ak GROUP BY GROUPING SETS ((k), (b), ())'), ('SELECT k, b, sum(id), grouping(k) FROM ak GROUP BY ROLLUP (k, b)'), ('SELECT i2, b, c, sum(id) FROM ak GROUP BY CUBE (i2, b, c)'),
    ('SELECT k, count(DISTINCT t) FROM ak GROUP BY k'), ('SELECT count(DISTINCT k), count(k), sum(DISTINCT i2) FROM ak'), ('SELECT k, string_agg(t, '','' ORDER BY id) FROM ak GROUP BY k'),
    ('SELECT k, array_agg(id ORDER BY id DESC), count(*) FROM ak GROUP BY k'), ('SELECT b, percentile_cont(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM ak GROUP BY b'), ('SELECT b, mode() WITHIN GROUP (ORDER BY k) FROM ak GROUP BY b'),
    ('SELECT k, sum(i2 ORDER BY id) FROM ak GROUP BY k'), ('SELECT min(t), max(c), count(*) FROM ak'), ('SELECT k, corr(id, i2), regr_count(id, i2), count(*) FROM ak GROUP BY k');
SELECT q.query, c.offloaded, c.result, c.same FROM ak_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
DROP TABLE ak_keys, ak_queries;

-- in order, and the first of them
SELECT * FROM compare_aggregate('SELECT k, count(*) FROM ak GROUP BY k ORDER BY k', in_order => true);
SELECT * FROM compare_aggregate('SELECT k, sum(id) FROM ak GROUP BY k ORDER BY sum(id) DESC, k NULLS FIRST LIMIT 7', in_order => true);
SELECT * FROM compare_aggregate('SELECT t, c, sum(id) FROM ak GROUP BY t, c ORDER BY c COLLATE "C" DESC, t COLLATE "C", 3 OFFSET 3 LIMIT 20', in_order => true);
SELECT * FROM compare_aggregate('SELECT k % 7, b, count(*) FROM ak GROUP BY 1, 2 ORDER BY 2, 1', in_order => true);
SELECT * FROM compare_aggregate('SELECT count(*) FROM (SELECT k FROM ak GROUP BY k LIMIT 5) s');
SELECT * FROM compare_aggregate('SELECT count(*) FROM (SELECT k FROM ak GROUP BY k LIMIT 0) s');

-- keys that only a collation finds equal
SET client_min_messages = warning;
DO $$
BEGIN
    CREATE COLLATION ak_folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE ak_names (name text COLLATE ak_folded);
EXCEPTION WHEN OTHERS THEN
    CREATE TABLE ak_names (name text);
END $$;
RESET client_min_messages;
INSERT INTO ak_names SELECT (ARRAY['Ann', 'ann', 'ANN', 'Bob', 'bob '])[i % 5 + 1] FROM generate_series(1, 50) i;
SELECT same FROM compare_aggregate('SELECT min(lower(name::text COLLATE "C")), count(*) FROM ak_names GROUP BY name');
SELECT same FROM compare_aggregate('SELECT count(*) FROM ak_names WHERE name = ''ann''');
SELECT same FROM compare_aggregate('SELECT count(*) FILTER (WHERE name IN (''ann'', ''bob'')), count(name) FROM ak_names');
DROP TABLE ak_names;
SET client_min_messages = warning;
DROP COLLATION IF EXISTS ak_folded;
DROP TABLE ak, ak_scales;
DROP DOMAIN ak_code;

-- enums are equal where their values are; their order is PostgreSQL's
CREATE TYPE key_color AS ENUM ('red', 'green', 'blue');
ALTER TYPE key_color ADD VALUE 'amber' BEFORE 'green';
CREATE DOMAIN key_shade AS key_color;
CREATE TABLE key_enums AS SELECT i, i % 7 AS g, c, CASE WHEN i % 5 > 0 THEN d END AS d, c::key_shade AS s FROM generate_series(1, 5000) i,
    LATERAL (SELECT (ARRAY['red', 'amber', 'green', 'blue'])[1 + i % 4]::key_color AS c, (ARRAY['amber', 'blue', 'red'])[1 + i / 3 % 3]::key_color AS d) e;
ANALYZE key_enums;
CREATE TEMP TABLE enum_queries (position serial, query text);
INSERT INTO enum_queries (query) VALUES
    ('SELECT c, count(*), count(d), count(DISTINCT d) FROM key_enums GROUP BY c'), ('SELECT s, d, sum(i) FROM key_enums WHERE c <> ''blue'' GROUP BY s, d'), ('SELECT DISTINCT d, s FROM key_enums'), ('SELECT g, count(DISTINCT c), count(DISTINCT d), count(DISTINCT s) FROM key_enums GROUP BY g'),
    ('SELECT g, count(*) FROM key_enums WHERE d IN (''red'', ''amber'', NULL) AND c NOT IN (''green'') GROUP BY g'), ('SELECT g, count(*) FROM key_enums WHERE c = d OR d IS DISTINCT FROM ''blue'' GROUP BY g'), ('SELECT coalesce(d, c), nullif(c, d), CASE WHEN c = d THEN c END, count(*) FROM key_enums GROUP BY 1, 2, 3'), ('SELECT c, count(*) FROM key_enums GROUP BY c HAVING c <> ''red'''),
    ('SELECT a.c, b.d, count(*) FROM key_enums a JOIN key_enums b ON a.i = b.i + 1 AND a.c <> b.d GROUP BY a.c, b.d'), ('SELECT a.d, count(*) FROM key_enums a JOIN key_enums b ON a.c = b.d AND b.i < 20 GROUP BY a.d'), ('SELECT c, d, count(*) FROM key_enums GROUP BY CUBE (c, d)'), ('SELECT c, count(*) FROM key_enums GROUP BY c HAVING c > ''amber'''),
    ('SELECT g, count(*) FROM key_enums WHERE c >= ''amber'' GROUP BY g'),
    -- PostgreSQL's own
    ('SELECT g, min(c), max(d) FROM key_enums GROUP BY g'), ('SELECT greatest(c, d), least(c, d), count(*) FROM key_enums GROUP BY 1, 2'), ('SELECT c::text, count(*) FROM key_enums GROUP BY 1');
SELECT q.query, c.offloaded, c.result, c.same FROM enum_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT q.query, c.same FROM enum_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT c, d, count(*) FROM key_enums GROUP BY c, d ORDER BY d DESC, c LIMIT 5', in_order => true);
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT i FROM key_enums WHERE c = 'amber';
SELECT i, c, d FROM key_enums WHERE c = 'amber' ORDER BY d DESC NULLS LAST, i LIMIT 4;
SELECT i, c FROM key_enums ORDER BY c DESC, i LIMIT 3;
RESET gpuhash.force_offload;
DROP TABLE key_enums;
DROP DOMAIN key_shade;
DROP TYPE key_color;
