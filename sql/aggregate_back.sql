-- Rows that the engine hands back, and that enter its groups again with what PostgreSQL has computed for them: in their order, and with
-- values that no vector holds beside them.
LOAD 'gpuhash';
CREATE TABLE ab (id int, g int, n numeric, n2 numeric(40, 2), t text, f float8, b bool);
-- texts of every tenth row are compressed; of others some numerics are NaN, or too wide, or NULL
INSERT INTO ab
SELECT i, CASE WHEN i % 9 > 0 THEN i % 7 END, CASE WHEN i % 50 = 0 THEN 'NaN' WHEN i % 61 = 0 THEN 1e60 + i % 3 ELSE i % 11 + 0.5 END,
    CASE WHEN i % 70 = 0 THEN 'NaN' WHEN i % 83 = 0 THEN -12345678901234567890123456789012345.67 WHEN i % 13 = 0 THEN NULL ELSE i / 4.0 END,
    CASE WHEN i % 10 = 0 THEN repeat('long' || i % 3, 700) WHEN i % 17 = 0 THEN NULL ELSE 't' || i % 5 END,
    (i % 100) * 0.1 + CASE WHEN i % 3 = 0 THEN 1e10 ELSE 0 END, CASE WHEN i % 6 > 0 THEN i % 2 = 0 END
FROM generate_series(1, 6000) i;
ANALYZE ab;
CREATE TEMP TABLE ab_queries (position serial, query text);
INSERT INTO ab_queries (query) VALUES
    ('SELECT t, count(*), count(t), sum(id), sum(f), avg(f), stddev(f) FROM ab GROUP BY t'), ('SELECT length(t), sum(f), min(f), max(n2) FROM ab GROUP BY 1'),
    ('SELECT n2, count(*), sum(id), sum(f) FROM ab GROUP BY n2'), ('SELECT n, t, count(*), sum(f) FROM ab GROUP BY n, t'),
    ('SELECT g, sum(n2), avg(n2), count(n2), max(n2), min(n2), stddev(n2), sum(f), count(*) FROM ab GROUP BY g'), ('SELECT g, sum(n2), sum(f), count(t) FROM ab WHERE t <> ''t1'' GROUP BY g'),
    ('SELECT b, count(*) FILTER (WHERE b), sum(f) FILTER (WHERE b), sum(id) FILTER (WHERE NOT b), bool_and(b), bool_or(b) FROM ab WHERE t > '''' GROUP BY b'),
    ('SELECT sum(n2), count(n2), sum(f), sum(f) FILTER (WHERE n2 > 5), avg(id) FROM ab WHERE t LIKE ''%'' OR t IS NULL'),
    ('SELECT g, count(*), sum(2), sum(1.5), max(true::int), count(NULL::int), sum(n2) FILTER (WHERE true), sum(f) FILTER (WHERE false) FROM ab WHERE t <> ''t1'' GROUP BY g'),
    ('SELECT g, sum(CASE WHEN b THEN n2 ELSE 0 END), avg(CASE WHEN b THEN n2 ELSE 1.5 END), sum(coalesce(n2, 0.125)) FROM ab WHERE t <> ''t1'' GROUP BY g'),
    ('SELECT g, f, count(*) FROM ab WHERE t <> ''t1'' GROUP BY g, f'), ('SELECT -f * 0 AS z, count(*), sum(f) FROM ab WHERE t <> ''t1'' GROUP BY 1'),
    ('SELECT g, sum(f * 1e300) FROM ab WHERE t <> ''t1'' GROUP BY g'), ('SELECT sum(f * 1e297), sum(n2) FROM ab WHERE t <> ''t1'' AND id < 900'),
    ('SELECT g, sum(f) FROM ab WHERE id > (SELECT min(id) + 3 FROM ab) AND t <> ''t1'' GROUP BY g'),
    ('SELECT g, sum(f), avg(n2) FROM ab WHERE (id < 100 OR id > (SELECT min(id) + 3 FROM ab)) AND t <> ''t1'' GROUP BY g'), ('SELECT g, sum(f), count(*) FROM ab WHERE (id < 900 OR id > (SELECT min(id) + 3 FROM ab)) GROUP BY g'),
    ('SELECT g, 10 / (id % 100), count(*) FROM ab WHERE t <> ''t1'' GROUP BY 1, 2'), ('SELECT g, sum(10 / (id % 100)) FILTER (WHERE id % 100 > 0) FROM ab WHERE t <> ''t1'' GROUP BY g'),
    -- rows of the executor
    ('SELECT t, count(*), sum(f), sum(n2) FROM (SELECT * FROM ab ORDER BY id LIMIT 5000) s GROUP BY t'), ('SELECT n2, sum(f) FROM (SELECT * FROM ab ORDER BY id LIMIT 5000) s GROUP BY n2'),
    ('SELECT sum(f), sum(n), count(n2) FROM (SELECT * FROM ab ORDER BY id DESC LIMIT 5000) s'), ('SELECT g, sum(f * 1e300) FROM (SELECT * FROM ab ORDER BY id LIMIT 5000) s GROUP BY g');
SELECT q.query, c.offloaded, c.result, c.same FROM ab_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c ORDER BY q.position;
-- by many keys, of which not all are a word's together
SELECT n, c.offloaded, c.result, c.same
FROM unnest(ARRAY[32, 33, 64, 65]) n, LATERAL (SELECT format('SELECT count(*), sum(id), %s FROM ab GROUP BY %s', string_agg(x, ', '), string_agg(x, ', ')) AS query
     FROM (SELECT format('id %% 40 > %s', i) AS x FROM generate_series(1, n) i) s) q, LATERAL compare_aggregate(q.query, engine => 'cpu') c ORDER BY n;
-- in little memory: all groups go to files meanwhile, and one may be too large for the sink
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM ab_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c WHERE c.same <> 'same' AND q.query NOT LIKE '%(f%' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT id, t, count(*), sum(n2), max(n2) FROM ab GROUP BY id, t', engine => 'cpu');
CREATE TABLE ab_large AS SELECT i AS id, repeat(md5((i % 40)::text), 20000) AS t FROM generate_series(1, 120) i;
ANALYZE ab_large;
SELECT * FROM compare_aggregate('SELECT md5(t), c, s FROM (SELECT t, count(*) AS c, sum(id) AS s FROM ab_large GROUP BY t) s', engine => 'cpu');
SELECT * FROM compare_aggregate('SELECT md5(t), c FROM (SELECT t, count(*) AS c FROM (SELECT * FROM ab_large ORDER BY id LIMIT 100) l GROUP BY t) s', engine => 'cpu');
CREATE TABLE ab_one (k text, f float8, i int);
ALTER TABLE ab_one ALTER k SET STORAGE EXTERNAL;
INSERT INTO ab_one SELECT CASE WHEN i = 3 THEN repeat(md5(i::text), 16000) ELSE 'k' || i % 5 END, i, i FROM generate_series(1, 50) i;
SET statement_timeout = '20s';
SELECT q AS query, c.result, c.same
FROM unnest(ARRAY['SELECT length(k), md5(k), sum(f) FROM ab_one GROUP BY k', 'SELECT length(k), f, count(*) FROM ab_one WHERE i < 6 GROUP BY k, f', 'SELECT length(k), sum(i) FROM ab_one GROUP BY k']) q, LATERAL compare_aggregate(q, engine => 'cpu') c;
RESET statement_timeout;
RESET work_mem;
RESET hash_mem_multiplier;
-- of equal keys the first row's comes out; a new server's memory is enough for some ten thousand groups
CREATE TABLE ab_equal (c bpchar, n numeric(20, 2), f float4, g float8);
INSERT INTO ab_equal VALUES ('a ', 1, 0, 0), ('a', 'NaN', '-0', '-0'), ('b', 3, 1, 1), ('b  ', 'NaN', 1, 1);
ANALYZE ab_equal;
SET enable_sort = off;
SELECT q AS query, c.result, c.same
FROM unnest(ARRAY['SELECT f, g, sum(n) FROM ab_equal GROUP BY f, g', 'SELECT octet_length(c), sum(n) FROM ab_equal GROUP BY c', 'SELECT f, octet_length(c), sum(n) FROM (SELECT * FROM ab_equal OFFSET 0) s GROUP BY f, c']) q, LATERAL compare_aggregate(q, engine => 'cpu') c;
RESET enable_sort;
CREATE FUNCTION ab_spilled(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    RETURN (plan->0->'Plan'->>'Disk Usage')::int > 0;
END $$;
SET gpuhash.force_offload = on;
SET gpuhash.engine = 'cpu';
SET work_mem = '4MB';
SET hash_mem_multiplier = 2;
SET max_parallel_workers_per_gather = 0;
SELECT n AS groups, ab_spilled(format('SELECT i %% %s, sum(i), count(*) FROM generate_series(1, 200000) i GROUP BY 1', n)) FROM unnest(ARRAY[30000, 50000, 120000]) n;
RESET gpuhash.force_offload;
RESET gpuhash.engine;
RESET work_mem;
RESET hash_mem_multiplier;
RESET max_parallel_workers_per_gather;
-- by several participants
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT q.query, c.same FROM ab_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' AND q.query NOT LIKE '%(f%' ORDER BY q.position;
SET work_mem = '64kB';
SELECT q.query, c.same FROM ab_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' AND q.query NOT LIKE '%(f%' ORDER BY q.position;
RESET work_mem;
-- once more, with the same groups and with others, before and after all have come out
SET max_parallel_workers_per_gather = 0;
SET gpuhash.force_offload = on;
SET enable_material = off;
SELECT l.x, s.* FROM (VALUES (1), (2)) l (x), LATERAL (SELECT n2, count(*) AS c FROM ab WHERE id < 300 GROUP BY n2 ORDER BY n2 DESC NULLS LAST, c LIMIT 2) s;
SELECT l.x, s.* FROM (VALUES (70), (84), (2)) l (x), LATERAL (SELECT n2, count(*) AS c FROM ab WHERE id < l.x + 1 GROUP BY n2 OFFSET 0) s WHERE s.n2 = 'NaN' OR s.n2 < 0 ORDER BY 1, 2;
BEGIN;
DECLARE ab_cursor CURSOR WITH HOLD FOR SELECT n2, count(*) FROM ab WHERE id % 70 = 0 OR id < 5 GROUP BY n2;
MOVE 1 FROM ab_cursor;
COMMIT;
MOVE 1000 FROM ab_cursor;
CLOSE ab_cursor;
DROP FUNCTION ab_spilled;
DROP TABLE ab, ab_large, ab_one, ab_equal;
-- wide rows, whose pages enter some at a time: a row here and there is handed back, some are deleted, and memory is short in between
CREATE TABLE ab_wide AS SELECT i AS id, i % 7 AS g, CASE WHEN i % 701 = 0 THEN 'NaN' ELSE i / 4.0 END::numeric(12, 2) AS n, i * 0.1::float8 AS f,
    repeat('wide', 40) || CASE WHEN i % 1409 = 0 THEN repeat('r', 5000) ELSE '' END AS pad FROM generate_series(1, 6000) i;
DELETE FROM ab_wide WHERE id % 13 = 5 OR id BETWEEN 2000 AND 2200;
ANALYZE ab_wide;
CREATE TEMP TABLE ab_wide_queries (position serial, query text);
INSERT INTO ab_wide_queries (query) VALUES
    ('SELECT count(*), sum(id), sum(n), sum(f) FROM ab_wide'), ('SELECT g, count(*), sum(n), sum(f), max(length(pad)) FROM ab_wide GROUP BY g'),
    ('SELECT g, sum(n), sum(f) FROM ab_wide WHERE id % 3 > 0 AND n < 1000 GROUP BY g'), ('SELECT count(*), sum(f) FROM ab_wide WHERE pad LIKE ''%r'''),
    ('SELECT id, count(*), sum(n) FROM ab_wide GROUP BY id'), ('SELECT n, length(pad), count(*), sum(id) FROM ab_wide GROUP BY 1, 2'),
    ('SELECT w.g, count(*), sum(w.n), sum(a.id) FROM ab_wide a JOIN ab_wide w ON w.id = a.id GROUP BY w.g'),
    ('SELECT w.g, count(*), sum(w.n), min(w.pad) FROM ab_wide w LEFT JOIN ab_wide a ON w.id = a.id + 1 AND a.n < w.n GROUP BY w.g');
SELECT q.query, c.offloaded, c.same FROM ab_wide_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c ORDER BY q.position;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM ab_wide_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c WHERE q.query NOT LIKE '%(f%' ORDER BY q.position;
RESET work_mem;
RESET hash_mem_multiplier;
DROP TABLE ab_wide, ab_wide_queries;
