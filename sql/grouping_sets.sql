-- Grouping sets: groups by the keys of all of them, and of these those of each.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE gs (id int, k int, g int8, x int, i2 int2, n numeric(12, 2), m numeric, w numeric(40, 2), f float8, b bool, t text, c char(6), d date);
-- texts of some rows are compressed; some numerics are NaN, or too wide for a vector
INSERT INTO gs SELECT i, CASE WHEN i % 11 > 0 THEN i % 5 END, (i % 40)::int8 * 10000000000, CASE WHEN i % 7 > 0 THEN i % 30 - 10 END, i % 50, CASE WHEN i % 13 = 0 THEN 'NaN' WHEN i % 5 > 0 THEN (i % 17) * 0.25 END,
    (ARRAY[1.0, 1.00, 1, 2.50, 2.5])[i % 5 + 1], CASE WHEN i % 83 = 0 THEN -12345678901234567890123456789012345.67 WHEN i % 70 = 0 THEN 'NaN' ELSE i % 4 END, (i % 13) / 4.0, CASE WHEN i % 5 > 0 THEN i % 3 = 0 END,
    CASE WHEN i % 100 = 0 THEN repeat('long ' || i % 7, 700) WHEN i % 4 > 0 THEN 't' || i % 9 END, 'c' || i % 12, date '2000-01-01' + i % 20 FROM generate_series(1, 12000) i;
CREATE TABLE gs_dim AS SELECT i AS k, i % 2 AS h, 'name ' || i % 3 AS name FROM generate_series(0, 3) i;
CREATE TABLE gs_empty (LIKE gs);
CREATE TABLE gs_key (id int PRIMARY KEY, v int);
INSERT INTO gs_key SELECT i, i % 3 FROM generate_series(1, 50) i;
CREATE TABLE gs_parts (k int, x int, t text) PARTITION BY LIST (k);
CREATE TABLE gs_part1 PARTITION OF gs_parts FOR VALUES IN (1, 2, 3);
CREATE TABLE gs_part2 PARTITION OF gs_parts DEFAULT;
INSERT INTO gs_parts SELECT k, x, t FROM gs;
ANALYZE gs, gs_dim, gs_empty, gs_key, gs_parts;

-- plans
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT k, b, count(*) FROM gs WHERE id > 3 GROUP BY ROLLUP (k, b) ORDER BY k, b;
EXPLAIN (COSTS OFF) SELECT name, x % 5, GROUPING(name, x % 5), sum(x) FROM gs JOIN gs_dim USING (k) GROUP BY CUBE (name, x % 5) HAVING GROUPING(name) = 1 OR sum(x) > 9;
SELECT lines_of_plan('SELECT k, count(*) FROM gs GROUP BY ROLLUP (k)', 'Rows|Groups', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
SELECT substring(lines_of_plan('SELECT k, b, count(*) FROM gs GROUP BY GROUPING SETS ((k), (b, k), ())', 'Grouping', 'COSTS OFF, FORMAT JSON') FROM '"Grouping Sets": \[[^]]*\]');
RESET gpuhash.force_offload;
SELECT k, b, GROUPING(k, b), GROUPING(b), count(*), sum(x), min(d) FROM gs GROUP BY GROUPING SETS ((k, b), (b), (), (b)) HAVING GROUPING(k) = 1 OR k > 2 ORDER BY 3, 1, 2;

-- answers as PostgreSQL's
CREATE TEMP TABLE gs_queries (position serial, query text);
INSERT INTO gs_queries (query) VALUES
    ('SELECT k, count(*) FROM gs GROUP BY ROLLUP (k)'), ('SELECT k, b, t, count(*), sum(x), min(x), max(d), avg(x), stddev(x) FROM gs GROUP BY CUBE (k, b, t)'), ('SELECT k, b, GROUPING(k), GROUPING(b), GROUPING(b, k), GROUPING(k, b) + 1, count(t) FROM gs GROUP BY GROUPING SETS ((k), (b), (b, k), (k), ())'),
    ('SELECT k, b, x, count(*) FROM gs GROUP BY k, ROLLUP (b, x)'), ('SELECT k, b, x, count(*) FROM gs GROUP BY ROLLUP (k), ROLLUP (b, x)'), ('SELECT k, b, count(*) FROM gs GROUP BY DISTINCT ROLLUP (k, b), ROLLUP (k, b)'), ('SELECT k, b, count(*) FROM gs GROUP BY ROLLUP (k, b), ROLLUP (k, b)'),
    ('SELECT n, w, count(*), sum(n), max(w) FROM gs GROUP BY CUBE (n, w)'), ('SELECT k, sum(n), avg(n), sum(w), avg(w), min(w), var_pop(n) FROM gs GROUP BY ROLLUP (k)'), ('SELECT k, sum(CASE WHEN b THEN n ELSE 0 END), avg(CASE WHEN b THEN n ELSE 1.5 END) FROM gs WHERE n <> ''NaN'' GROUP BY ROLLUP (k, b)'), ('SELECT t, c, count(*), sum(g) FROM gs GROUP BY ROLLUP (t, c)'),
    ('SELECT k, b, count(*) FILTER (WHERE x > 3), sum(x) FILTER (WHERE b), bool_or(b), bool_and(b), count(f) FROM gs GROUP BY CUBE (k, b)'), ('SELECT k, min(DISTINCT x), bool_or(DISTINCT b) FROM gs GROUP BY ROLLUP (k)'), ('SELECT k, sum(k), count(k), max(k + x) FROM gs GROUP BY ROLLUP (k)'), ('SELECT d, f, count(*) FROM gs GROUP BY CUBE (d, f)'),
    -- expressions of keys, and above them
    ('SELECT k + 1, k, count(*) FROM gs GROUP BY ROLLUP (k)'), ('SELECT k + 1, k, count(*) FROM gs GROUP BY CUBE (k, k + 1)'), ('SELECT k + x, (k + x) * 2, count(*), sum(k) FROM gs GROUP BY ROLLUP (k + x)'), ('SELECT x % 3 AS r, k IS NULL AS i, count(*) FROM gs GROUP BY CUBE (r, i)'), ('SELECT CASE WHEN GROUPING(k) = 1 THEN ''all'' ELSE coalesce(k::text, ''none'') END, count(*) FROM gs GROUP BY ROLLUP (k)'),
    ('SELECT coalesce(k, -1), count(*) FROM gs GROUP BY ROLLUP (k)'), ('SELECT left(t, 2), date_trunc(''month'', d), count(*) FROM gs GROUP BY CUBE (1, 2)'), ('SELECT upper(t), count(*) FROM gs GROUP BY ROLLUP (upper(t))'), ('SELECT k, b, count(*), 7, ''x'' FROM gs GROUP BY ROLLUP (k, b)'), ('SELECT count(*) FROM gs GROUP BY CUBE (k, b)'), ('SELECT k, 1 FROM gs GROUP BY ROLLUP (k, b)'), ('SELECT k, b FROM gs GROUP BY GROUPING SETS ((k), (b))'),
    -- HAVING
    ('SELECT k, b, count(*) FROM gs GROUP BY CUBE (k, b) HAVING count(*) > 500'), ('SELECT k, b, count(*) FROM gs GROUP BY CUBE (k, b) HAVING k > 2'), ('SELECT k, b, count(*) FROM gs GROUP BY CUBE (k, b) HAVING k IS NULL'), ('SELECT k, b FROM gs GROUP BY CUBE (k, b) HAVING GROUPING(k, b) IN (1, 2) AND sum(x) > 100'), ('SELECT k, b FROM gs GROUP BY CUBE (k, b) HAVING sum(x) > 100 AND GROUPING(k) = 0'), ('SELECT k, sum(n) FROM gs GROUP BY ROLLUP (k, t) HAVING sum(n) > 100 OR k IS NULL'),
    ('SELECT k, b FROM gs GROUP BY ROLLUP (k, b) HAVING b'), ('SELECT count(*) FROM gs GROUP BY GROUPING SETS ((k), ()) HAVING GROUPING(k) > 0'), ('SELECT k, count(*) FROM gs GROUP BY ROLLUP (k) HAVING count(*) > (SELECT avg(x) + 1000 FROM gs)'), ('SELECT k FROM gs WHERE k = 3 GROUP BY ROLLUP (k)'), ('SELECT k, x, count(*) FROM gs WHERE k = x GROUP BY CUBE (k, x)'),
    -- no rows
    ('SELECT k, count(*), sum(x) FROM gs_empty GROUP BY ROLLUP (k)'), ('SELECT k, count(*), GROUPING(k) FROM gs_empty GROUP BY GROUPING SETS ((), (k), ())'), ('SELECT k, b, count(*) FROM gs WHERE id < 0 GROUP BY CUBE (k, b)'), ('SELECT k, count(*) FROM gs_empty GROUP BY GROUPING SETS ((k))'), ('SELECT k, count(*) FROM gs WHERE id < 0 GROUP BY GROUPING SETS ((k), (b))'), ('SELECT k, count(*) FROM gs WHERE false GROUP BY ROLLUP (k)'), ('SELECT count(*), min(n), avg(w) FROM gs WHERE id < 0 GROUP BY ROLLUP (k) HAVING count(*) = 0'),
    -- joins, other inputs, and what stands above
    ('SELECT name, x, count(*), sum(n) FROM gs JOIN gs_dim USING (k) WHERE n <> ''NaN'' GROUP BY ROLLUP (name, x)'), ('SELECT name, h, k, count(*), GROUPING(name, h) FROM gs LEFT JOIN gs_dim USING (k) GROUP BY CUBE (name, h, k)'), ('SELECT h, b, count(*) FROM gs RIGHT JOIN gs_dim USING (k) GROUP BY CUBE (h, b)'), ('SELECT a.k, b.h, count(*) FROM gs a JOIN gs_dim b ON a.k < b.k GROUP BY ROLLUP (1, 2)'),
    ('SELECT y, z, count(*), sum(y) FROM (SELECT k + 1 AS y, b AS z FROM gs) s GROUP BY ROLLUP (y, z)'), ('SELECT y, sum(y + y), max(x) FILTER (WHERE y > 2) FROM (SELECT k + 1 AS y, x * 2 AS x FROM gs) s WHERE y <> 4 GROUP BY ROLLUP (y) HAVING sum(y) > 3'), ('SELECT y, z, count(*) FROM (SELECT k AS y, k AS z FROM gs) s GROUP BY ROLLUP (y, z)'), ('SELECT y, count(*) FROM (SELECT 5 AS y, k FROM gs) s GROUP BY ROLLUP (y, k)'),
    ('SELECT k, b, count(*) FROM (SELECT * FROM gs ORDER BY id LIMIT 9000) s GROUP BY ROLLUP (k, b)'), ('SELECT k, x, count(*) FROM gs_parts GROUP BY CUBE (k, x)'), ('SELECT k, count(*) FROM (SELECT k, x FROM gs UNION ALL SELECT k, h FROM gs_dim) s GROUP BY ROLLUP (k)'), ('SELECT y, count(*), sum(y + 1) FROM (SELECT k + 1 AS y FROM gs OFFSET 0) s GROUP BY ROLLUP (y)'), ('SELECT y, sum(y), count(*) FROM (SELECT k + 1 AS y FROM gs UNION ALL SELECT h FROM gs_dim) s GROUP BY ROLLUP (y)'),
    ('SELECT k, b, rank() OVER (PARTITION BY GROUPING(k, b) ORDER BY count(*) DESC, k, b) FROM gs GROUP BY CUBE (k, b)'), ('SELECT DISTINCT k, b FROM gs GROUP BY CUBE (k, b)'), ('SELECT generate_series(1, 2), k, count(*) FROM gs GROUP BY ROLLUP (k)'), ('SELECT k, (SELECT max(h) FROM gs_dim d WHERE d.k = gs.k) FROM gs GROUP BY ROLLUP (k)'), ('SELECT * FROM gs_dim JOIN (SELECT k, b, count(*) FROM gs GROUP BY ROLLUP (k, b)) s USING (k)'), ('SELECT h, s.* FROM gs_dim, LATERAL (SELECT x, count(*), GROUPING(x) FROM gs WHERE gs.k > gs_dim.k GROUP BY ROLLUP (x)) s'), ('SELECT k, (SELECT max(c) FROM (SELECT count(*) AS c FROM gs WHERE gs.k = d.k GROUP BY ROLLUP (b)) s) FROM gs_dim d'),
    -- errors are PostgreSQL's
    ('SELECT 100 / (id % 1000), count(*) FROM gs GROUP BY ROLLUP (1)'), ('SELECT k, sum(100 / (id % 1000)) FILTER (WHERE id % 1000 > 0) FROM gs GROUP BY ROLLUP (k)'), ('SELECT k, 10 / GROUPING(k) FROM gs GROUP BY ROLLUP (k)'),
    -- not the node's, and right all the same
    ('SELECT k, sum(f) FROM gs GROUP BY ROLLUP (k)'), ('SELECT k, count(DISTINCT x) FROM gs GROUP BY ROLLUP (k)'), ('SELECT m, count(*) FROM gs GROUP BY GROUPING SETS ((m), ()) HAVING GROUPING(m) = 1'), ('SELECT count(*) FROM gs GROUP BY GROUPING SETS ((), ())'), ('SELECT id, v, count(*) FROM gs_key GROUP BY GROUPING SETS ((id), (id, v))'), ('SELECT id, v, count(*) FROM gs_key GROUP BY id, ROLLUP (id)'), ('SELECT k, string_agg(t, '','' ORDER BY t) FROM gs WHERE id < 200 GROUP BY ROLLUP (k)'), ('SELECT ''a''::text AS y, count(*) FROM gs GROUP BY ROLLUP (y)'), ('SELECT k, random() < 2 AS r, count(*) FROM gs GROUP BY ROLLUP (k, r)');
SELECT q.query, c.offloaded, c.result, c.same FROM gs_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c ORDER BY q.position;
SELECT same FROM compare_aggregate('SELECT k FROM gs GROUP BY ROLLUP (k) HAVING false');
-- expressions below joins, which are offloaded from 18 on, where no join makes them NULL
SELECT q AS query, c.result, c.same
FROM unnest(ARRAY['SELECT y, count(*) FROM gs JOIN (SELECT k, length(name) AS y FROM gs_dim) s USING (k) GROUP BY ROLLUP (y)',
    'SELECT y, h, count(*), sum(y) FROM gs LEFT JOIN (SELECT k, h, k + 1 AS y FROM gs_dim) s USING (k) GROUP BY CUBE (y, h)',
    'SELECT y, h, sum(y) FROM gs JOIN (SELECT k, h, coalesce(h, 0) AS y FROM gs_dim) s USING (k) GROUP BY CUBE (y, h)',
    'SELECT y, h, count(*) FROM gs_dim RIGHT JOIN (SELECT k, coalesce(k, 0) AS y FROM gs) s USING (k) GROUP BY CUBE (y, h)']) q, LATERAL compare_aggregate(q, engine => 'cpu') c;

-- in order, and the first of them
SELECT * FROM compare_aggregate('SELECT k, b, count(*) FROM gs GROUP BY ROLLUP (k, b) ORDER BY GROUPING(k, b), k DESC, b NULLS FIRST', in_order => true);
SELECT * FROM compare_aggregate('SELECT k, t, sum(x) FROM gs GROUP BY CUBE (k, t) ORDER BY sum(x) DESC, GROUPING(k, t), k, t LIMIT 9', in_order => true);

-- prepared statements, cursors
SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
PREPARE gs_p(int, text) AS SELECT count(*), sum(c), sum(s), sum(g) FROM (SELECT k + $1 AS q, count(*) AS c, sum(x + $1) AS s, GROUPING(b, k + $1) AS g FROM gs WHERE id > $1 AND t <> $2 GROUP BY CUBE (k + $1, b) HAVING count(*) > $1) s;
EXECUTE gs_p(1, 't3');
EXECUTE gs_p(11900, 't4');
EXECUTE gs_p(NULL, NULL);
SET gpuhash.enabled = off;
EXECUTE gs_p(1, 't3');
EXECUTE gs_p(11900, 't4');
EXECUTE gs_p(NULL, NULL);
RESET gpuhash.enabled;
DEALLOCATE ALL;
RESET plan_cache_mode;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, b, count(*) FROM gs GROUP BY ROLLUP (k, b) ORDER BY k, b;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
COMMIT;
RESET gpuhash.force_offload;

-- the first ones of an order: a sample of the groups by all keys, which come out as they are, or of those of other sets
SET gpuhash.batch_rows = 256;
SELECT q.query, c.result, c.same FROM unnest(ARRAY['SELECT k, x, count(*) FROM gs GROUP BY CUBE (k, x) ORDER BY 3 DESC, 1, 2 LIMIT 5', 'SELECT id / 16, max(x) FROM gs GROUP BY GROUPING SETS ((id / 16), (id / 16), (id / 16), ()) ORDER BY 2 NULLS FIRST, 1 LIMIT 3', 'SELECT id / 30, k, count(*) FROM gs GROUP BY CUBE (id / 30, k) HAVING sum(id) > 5 ORDER BY 3 DESC, 1, 2 LIMIT 5', 'SELECT id / 30, k, sum(x) FROM gs GROUP BY GROUPING SETS ((id / 30), (id / 30, k), (id / 30), (id / 30)) ORDER BY 3, 1, 2 LIMIT 5',
    'SELECT k, b, min(x) + 1 FROM gs GROUP BY CUBE (k, b) ORDER BY 3 NULLS FIRST, 1, 2 LIMIT 4', 'SELECT k, i2, sum(x) FROM gs GROUP BY GROUPING SETS ((k, i2), (i2)) ORDER BY 3, 1, 2 LIMIT 7', 'SELECT id, i2, count(*) FROM gs GROUP BY CUBE (id, i2) ORDER BY 2 DESC, 1, 3 LIMIT 9', 'SELECT id, k, sum(x) FROM gs GROUP BY GROUPING SETS ((id, k), (id)) ORDER BY 3 DESC NULLS LAST, 1, 2 LIMIT 9',
    'SELECT k, i2, sum(x) FROM gs GROUP BY CUBE (k, i2) ORDER BY abs(sum(x) - (SELECT avg(x) FROM gs)), 1, 2 LIMIT 7', 'SELECT id, i2, sum(x) FROM gs GROUP BY ROLLUP (id, i2) ORDER BY abs(sum(x) - (SELECT avg(x) FROM gs)), 1, 2 LIMIT 7']) q (query), LATERAL compare_aggregate(q.query, engine => 'cpu') c;
RESET gpuhash.batch_rows;

-- groups that memory does not hold, of either level
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM gs_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT id / 2, t, w, count(*), sum(n), GROUPING(t) FROM gs GROUP BY CUBE (id / 2, t, w)');
SET gpuhash.force_offload = on;
SELECT regexp_replace(lines_of_plan('SELECT id, t, sum(w) FROM gs GROUP BY ROLLUP (id, t)', 'Disk', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF'), '\d+', 'N');
RESET gpuhash.force_offload;
-- parts of files: sets whose groups are of one part each, others, and keys of so many rows that their part is parted by all keys
CREATE TABLE gs_many AS SELECT CASE WHEN i % 3 = 0 THEN 0 WHEN i % 1000 = 1 THEN NULL ELSE i * 7919::int8 % 20000 END AS k, i % 701 AS g, i % 3 AS f, 't' || i % 5003 AS t, i AS id,
    CASE WHEN i % 83 = 0 THEN -12345678901234567890123456789012345.67 ELSE i % 4 END::numeric(40, 2) AS w FROM generate_series(1, 60000) i;
ANALYZE gs_many;
CREATE TEMP TABLE gs_parted (position serial, query text);
INSERT INTO gs_parted (query) VALUES ('SELECT k, g, count(*), sum(id) FROM gs_many GROUP BY ROLLUP (k, g)'), ('SELECT f, k, g, count(*), sum(w) FROM gs_many GROUP BY ROLLUP (f, k, g)'), ('SELECT k, t, GROUPING(k, t), count(*), avg(id) FROM gs_many GROUP BY CUBE (k, t)'),
    ('SELECT k, t, count(*) FROM gs_many GROUP BY GROUPING SETS ((k), (t))'), ('SELECT k, g, min(t), max(t) FROM gs_many GROUP BY GROUPING SETS ((k, g), (k), (k, g), (g))'), ('SELECT id, count(*), sum(w) FROM gs_many GROUP BY ROLLUP (id)'), ('SELECT k, id, f, sum(w) FROM gs_many GROUP BY CUBE (k, id, f)'),
    ('SELECT k, g, count(*) FROM gs_many GROUP BY ROLLUP (k, g) HAVING count(*) > 20 OR GROUPING(k) = 1'), ('SELECT k, id, sum(id) FROM gs_many GROUP BY ROLLUP (k, id) HAVING GROUPING(id) = 1'), ('SELECT k, t, sum(id) FROM gs_many GROUP BY ROLLUP (k, t) ORDER BY 3 DESC, 1, 2 LIMIT 12'),
    ('SELECT count(*), sum(c), count(k), count(t) FROM (SELECT k, t, count(*) AS c FROM gs_many GROUP BY CUBE (k, t)) s'), ('SELECT k, count(DISTINCT id), count(DISTINCT t) FROM gs_many GROUP BY k'), ('SELECT t, count(DISTINCT id), sum(DISTINCT k) FROM gs_many GROUP BY t HAVING count(DISTINCT id) > 23'),
    ('SELECT x, s.* FROM generate_series(1, 2) x, LATERAL (SELECT k, g, count(*) AS c FROM gs_many WHERE f <> x GROUP BY ROLLUP (k, g) LIMIT 30000) s');
SELECT q.query, c.offloaded, c.result, c.same FROM gs_parted q, LATERAL compare_aggregate(q.query, engine => 'cpu') c WHERE query !~ 'LIMIT 30000' ORDER BY q.position;
SELECT c.result, c.same FROM gs_parted q, LATERAL compare_aggregate('SELECT x, count(*) FROM (' || q.query || ') r GROUP BY x', engine => 'cpu') c WHERE query ~ 'LIMIT 30000';
RESET work_mem;
RESET hash_mem_multiplier;
-- read once, come out several times
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT c.offloaded, c.same FROM compare_aggregate('SELECT x, s.* FROM generate_series(1, 3) x LEFT JOIN (SELECT k, b, count(*) AS c FROM gs GROUP BY ROLLUP (k, b)) s ON s.c > x * 100', engine => 'cpu') c;
SELECT c.offloaded, c.same FROM compare_aggregate('SELECT x, s.* FROM generate_series(1, 3) x LEFT JOIN (SELECT k, count(DISTINCT x) AS c FROM gs GROUP BY k) s ON s.c > x * 100', engine => 'cpu') c;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT k, b, count(*) FROM gs GROUP BY CUBE (k, b);
RESET gpuhash.force_offload;
SELECT q.query, c.same FROM gs_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SET parallel_leader_participation = off;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM gs_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT id / 2, t, w, count(*), sum(n), GROUPING(t) FROM gs GROUP BY CUBE (id / 2, t, w)', workers => 2);
SELECT q.query, c.same FROM gs_parted q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE query !~ 'LIMIT 30000' AND c.same <> 'same' ORDER BY q.position;
RESET work_mem;
RESET hash_mem_multiplier;
RESET parallel_leader_participation;
SET max_parallel_workers_per_gather = 0;

-- what costs less
EXPLAIN (COSTS OFF) SELECT k, b, count(*) FROM gs GROUP BY ROLLUP (k, b);
-- why not
SET gpuhash.explain_why = on;
SELECT lines_of_plan('SELECT k, sum(f) FROM gs GROUP BY ROLLUP (k)', 'Not Offloaded');
SELECT lines_of_plan('SELECT k, count(DISTINCT x) FROM gs GROUP BY ROLLUP (k)', 'Not Offloaded');
SELECT lines_of_plan('SELECT y, z, count(*) FROM (SELECT k AS y, k AS z FROM gs) s GROUP BY ROLLUP (y, z)', 'Not Offloaded');
SELECT lines_of_plan('SELECT ''a''::text AS y, count(*) FROM gs GROUP BY ROLLUP (y)', 'Not Offloaded');
SELECT lines_of_plan('SELECT k, count(*) FROM gs GROUP BY CUBE (k, x, b, t, d, c, n)', 'Not Offloaded');
SELECT lines_of_plan('SELECT k FROM gs_dim GROUP BY ROLLUP (k)', 'Not Offloaded');
RESET gpuhash.explain_why;
DROP TABLE gs_queries, gs, gs_dim, gs_empty, gs_key, gs_parts, gs_many, gs_parted;
