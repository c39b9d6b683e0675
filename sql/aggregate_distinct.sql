-- Aggregates with DISTINCT: groups by the keys and the argument, and of these the groups that come out.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE ad (id int, k int, g int8, x int, i2 int2, i8 int8, n numeric(12, 2), m numeric, w numeric(60, 5), f float8, r real, b bool, t text, c char(6), d date, ts timestamp);
INSERT INTO ad SELECT i, CASE WHEN i % 11 > 0 THEN i % 23 END, (i % 400)::int8 * 10000000000, CASE WHEN i % 7 > 0 THEN i % 301 - 100 END, i % 50, CASE WHEN i % 3 > 0 THEN (i % 90)::int8 * 100000000000000000 END,
    CASE WHEN i % 13 = 0 THEN 'NaN' WHEN i % 5 > 0 THEN (i % 77) * 0.25 END, (ARRAY[1.0, 1.00, 1, 2.50, 2.5])[i % 5 + 1], CASE WHEN i % 50 = 0 THEN 1e45 + i % 100 ELSE i % 40 END, (i % 13) / 4.0, (i % 9) * 0.1, i % 3 = 0,
    CASE WHEN i % 4 > 0 THEN 't' || i % 70 END, 'c' || i % 12, date '2000-01-01' + i % 90, timestamp '2000-01-01' + i % 60 * interval '7 hours' FROM generate_series(1, 30000) i;
CREATE TABLE ad_dim AS SELECT i AS k, i % 4 AS h, 'name ' || i % 6 AS name, (i / 2.0)::numeric(10, 1) AS v FROM generate_series(1, 20) i;
CREATE TABLE ad_empty (LIKE ad);
ANALYZE ad, ad_dim, ad_empty;

-- the plan, and what EXPLAIN ANALYZE says of it
EXPLAIN (COSTS OFF) SELECT k, count(DISTINCT x), sum(DISTINCT x), avg(DISTINCT x), count(*) FROM ad GROUP BY k;
EXPLAIN (COSTS OFF) SELECT count(DISTINCT x) FROM ad;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(DISTINCT x % 9) FILTER (WHERE id > 5) + max(i8) FROM ad GROUP BY k, t HAVING sum(DISTINCT x % 9) > 3;
EXPLAIN (COSTS OFF) SELECT k, min(DISTINCT x), bool_or(DISTINCT b), max(DISTINCT d) FROM ad GROUP BY k;
EXPLAIN (COSTS OFF) SELECT k, count(DISTINCT x) FILTER (WHERE id > 5), sum(DISTINCT x) FILTER (WHERE b) FROM ad GROUP BY k;
CREATE FUNCTION ad_line(query text, pattern text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT lines_of_plan(query, pattern, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF')
$$;
SELECT ad_line('SELECT k, count(DISTINCT x) FROM ad GROUP BY k', 'Values|Groups');

-- answers as PostgreSQL's
CREATE TEMP TABLE ad_queries (position serial, query text);
INSERT INTO ad_queries (query) VALUES
    ('SELECT k, count(DISTINCT x) FROM ad GROUP BY k'),
    ('SELECT k, count(DISTINCT x), sum(DISTINCT x), avg(DISTINCT x), min(DISTINCT x), max(DISTINCT x), variance(DISTINCT x), stddev_pop(DISTINCT x) FROM ad GROUP BY k'),
    ('SELECT count(DISTINCT x) FROM ad'), ('SELECT count(DISTINCT id), sum(DISTINCT id), count(*) FROM ad'), ('SELECT count(DISTINCT x + 1), sum(x) FROM ad WHERE id % 3 = 1'),
    ('SELECT k, sum(DISTINCT i8), avg(DISTINCT i8), stddev(DISTINCT i8), count(i8), sum(i8) FROM ad GROUP BY k'), ('SELECT t, sum(DISTINCT i2), avg(i2) FROM ad GROUP BY t'),
    ('SELECT k, count(DISTINCT n), sum(DISTINCT n), avg(DISTINCT n), max(n), sum(n), avg(n), var_samp(n) FROM ad GROUP BY k'), ('SELECT k, sum(DISTINCT n), var_pop(DISTINCT n) FROM ad WHERE n <> ''NaN'' GROUP BY k'),
    ('SELECT b, sum(DISTINCT w), count(DISTINCT w), avg(DISTINCT w), sum(w), max(w) FROM ad GROUP BY b'), ('SELECT sum(DISTINCT w), var_pop(DISTINCT w), count(w) FROM ad'), ('SELECT k, sum(DISTINCT round(n, 1)) FROM ad WHERE n <> ''NaN'' GROUP BY k'),
    ('SELECT k, count(DISTINCT t), count(t), count(*) FROM ad GROUP BY k'), ('SELECT t, c, count(DISTINCT c), min(d), max(ts) FROM ad GROUP BY t, c'), ('SELECT c, count(DISTINCT left(t, 2)) FROM ad GROUP BY c'),
    ('SELECT b, count(DISTINCT d), min(DISTINCT d), max(DISTINCT d) FROM ad GROUP BY b'), ('SELECT d, count(DISTINCT ts), min(DISTINCT k) FROM ad GROUP BY d'), ('SELECT k, count(DISTINCT b), bool_and(DISTINCT b), bool_or(DISTINCT b), every(DISTINCT b) FROM ad GROUP BY k'),
    ('SELECT k, count(DISTINCT f), min(DISTINCT f), max(DISTINCT f), count(DISTINCT f) FILTER (WHERE b) FROM ad GROUP BY k'), ('SELECT count(DISTINCT r) FROM ad'), ('SELECT k, sum(f), avg(f), count(DISTINCT x) FROM ad GROUP BY k'),
    ('SELECT k, count(DISTINCT k), sum(DISTINCT k), count(*) FROM ad GROUP BY k'), ('SELECT k, x, count(DISTINCT k), count(DISTINCT k) FROM ad GROUP BY k, x'), ('SELECT x, x % 3, count(DISTINCT x % 3), max(x % 3) FROM ad GROUP BY x'), ('SELECT x % 3, count(DISTINCT x) FROM ad GROUP BY x % 3'),
    ('SELECT k, count(DISTINCT 1), sum(DISTINCT 2), count(DISTINCT NULL::int) FROM ad GROUP BY k'), ('SELECT k, count(DISTINCT 1), count(*) FROM ad GROUP BY k'), ('SELECT ''const'' AS one, count(DISTINCT x) FROM ad GROUP BY one'),
    -- FILTER, HAVING, expressions above
    ('SELECT k, count(DISTINCT x) FILTER (WHERE id % 5 = 1), sum(DISTINCT x) FILTER (WHERE b), count(DISTINCT x), count(*) FILTER (WHERE b) FROM ad GROUP BY k'), ('SELECT count(DISTINCT x) FILTER (WHERE id < 0), sum(DISTINCT x) FILTER (WHERE id < 0), count(DISTINCT x) FROM ad'),
    ('SELECT k FROM ad GROUP BY k HAVING count(DISTINCT x) > 250 AND sum(DISTINCT x) < 13000'), ('SELECT k, x FROM ad GROUP BY k, x HAVING count(DISTINCT t) > 3'), ('SELECT count(DISTINCT x) FROM ad HAVING count(DISTINCT x) > 1000'),
    ('SELECT k, sum(CASE WHEN b THEN n ELSE 0 END) FROM ad WHERE n <> ''NaN'' GROUP BY k HAVING sum(CASE WHEN b THEN n ELSE 0 END) / 3 > 400 AND avg(DISTINCT n) > 9.4 AND k > 2'), ('SELECT k, t FROM ad GROUP BY k, t HAVING avg(DISTINCT x) BETWEEN 40 AND 60 OR sum(DISTINCT x) < avg(i2) OR count(DISTINCT x) = count(x)'), ('SELECT k, sum(DISTINCT w) FROM ad GROUP BY k HAVING sum(DISTINCT w) > 1e45 AND sum(w) IS NOT NULL'), ('SELECT k, count(*) FROM ad GROUP BY k HAVING count(DISTINCT x) > (SELECT avg(x) FROM ad)'),
    ('SELECT k * 2 + count(DISTINCT x), sum(DISTINCT x) / count(DISTINCT x)::numeric, CASE WHEN count(DISTINCT x) > 9 THEN bool_or(t = ''t1'') END FROM ad GROUP BY k'),
    ('SELECT k, CASE WHEN count(DISTINCT x) > 270 THEN sum(n) ELSE avg(n) END, (SELECT count(*) FROM ad_dim v WHERE v.k < count(DISTINCT x) / 20) FROM ad a WHERE n <> ''NaN'' GROUP BY k'),
    ('SELECT k, rank() OVER (ORDER BY count(DISTINCT g), k), sum(count(DISTINCT g)) OVER (ORDER BY k NULLS FIRST) FROM ad GROUP BY k'), ('SELECT k, generate_series(1, count(DISTINCT b)) FROM ad GROUP BY k'), ('SELECT c, count(*) FROM (SELECT k, count(DISTINCT t) AS c FROM ad GROUP BY k) s GROUP BY c'),
    -- joins, subqueries, other inputs
    ('SELECT h, count(DISTINCT x), sum(n) FROM ad JOIN ad_dim USING (k) WHERE n <> ''NaN'' GROUP BY h'), ('SELECT name, count(DISTINCT x), count(*) FROM ad LEFT JOIN ad_dim USING (k) GROUP BY name'), ('SELECT x % 5, count(DISTINCT name), sum(v) FROM ad JOIN ad_dim USING (k) GROUP BY 1'),
    ('SELECT g, count(DISTINCT k) FROM ad WHERE k IN (SELECT k FROM ad_dim WHERE h > 1) GROUP BY g'), ('SELECT name, count(DISTINCT x) FROM ad RIGHT JOIN ad_dim USING (k) GROUP BY name'), ('SELECT count(DISTINCT x) FROM ad a JOIN ad_dim b ON a.k < b.k'),
    ('SELECT h, (SELECT count(DISTINCT x) FROM ad WHERE ad.k > h) FROM ad_dim'), ('SELECT v, (SELECT count(DISTINCT x) FROM ad WHERE ad.k = h) FROM ad_dim'), ('SELECT v, (SELECT count(DISTINCT x + ad_dim.k) FROM ad WHERE ad.k = h) FROM ad_dim'), ('SELECT k, count(DISTINCT x) FROM (SELECT k, x FROM ad UNION ALL SELECT k, h FROM ad_dim) s GROUP BY k'), ('SELECT k, count(DISTINCT c) FROM (SELECT k, t, count(*) AS c FROM ad GROUP BY k, t) s GROUP BY k'),
    ('SELECT count(DISTINCT x), sum(DISTINCT x), count(*), min(x) FROM ad_empty'), ('SELECT k, count(DISTINCT x) FROM ad_empty GROUP BY k'), ('SELECT count(DISTINCT x), avg(DISTINCT x) FROM ad WHERE id < 0'), ('SELECT k, count(DISTINCT x) FROM ad WHERE id < 0 GROUP BY k'), ('SELECT count(DISTINCT x) FROM ad WHERE false'),
    -- errors are PostgreSQL's
    ('SELECT k, count(DISTINCT 100 / (id % 1000)) FROM ad GROUP BY k'), ('SELECT k, count(DISTINCT 100 / (id % 1000)) FILTER (WHERE id % 1000 > 0) FROM ad GROUP BY k'), ('SELECT count(DISTINCT x) FILTER (WHERE 100 / (id % 1000) > 3) FROM ad'), ('SELECT b, sum(DISTINCT n) FILTER (WHERE k > 3), count(DISTINCT n) FILTER (WHERE k % 2 = 1) FROM ad GROUP BY b'), ('SELECT count(DISTINCT t) FILTER (WHERE b) FROM ad'),
    ('SELECT k, count(DISTINCT 100 / (id % 1000)) FILTER (WHERE id % 1000 > 0), sum(DISTINCT 100 / (id % 1000)) FILTER (WHERE id % 1000 > 500) FROM ad GROUP BY k'), ('SELECT k, count(DISTINCT 100 / (id % 1000)) FILTER (WHERE id % 1000 > 0), sum(DISTINCT 100 / (id % 1000)) FROM ad GROUP BY k'),
    -- not the node's, and right all the same
    ('SELECT k, count(DISTINCT x), count(DISTINCT t) FROM ad GROUP BY k'), ('SELECT k, sum(DISTINCT f) FROM ad GROUP BY k'), ('SELECT k, count(DISTINCT m) FROM ad GROUP BY k'), ('SELECT k, string_agg(DISTINCT t, '','') FROM ad GROUP BY k'), ('SELECT k, array_agg(DISTINCT x) FROM ad GROUP BY k'),
    ('SELECT k, b, count(DISTINCT x) FROM ad GROUP BY ROLLUP (k, b)'), ('SELECT count(DISTINCT x + (random() * 0)::int) FROM ad'), ('SELECT count(DISTINCT (x, k)) FROM ad'), ('SELECT k, count(DISTINCT CASE WHEN b THEN n ELSE 1 END) FROM ad GROUP BY k'), ('SELECT k, min(DISTINCT t) FROM ad GROUP BY k'), ('SELECT k, sum(DISTINCT x ORDER BY x) FROM ad GROUP BY k');
SELECT q.query, c.offloaded, c.result, c.same FROM ad_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c ORDER BY q.position;

-- several arguments: each row is in a group by each of them
CREATE TEMP TABLE ad_several (position serial, query text);
INSERT INTO ad_several (query) VALUES
    ('SELECT k, count(DISTINCT x), count(DISTINCT t) FROM ad GROUP BY k'), ('SELECT count(DISTINCT x), count(DISTINCT t), sum(DISTINCT i8), count(*), min(d) FROM ad'), ('SELECT k, count(DISTINCT n), sum(DISTINCT n), count(DISTINCT x), sum(DISTINCT x), count(n), sum(n) FROM ad GROUP BY k'),
    ('SELECT b, sum(DISTINCT w), count(DISTINCT n), sum(w), max(w), avg(n) FROM ad WHERE n <> ''NaN'' GROUP BY b'), ('SELECT sum(DISTINCT w), avg(DISTINCT n), count(w), var_pop(w) FROM ad WHERE n <> ''NaN'''), ('SELECT t, c, count(DISTINCT k), count(DISTINCT g), count(DISTINCT b), bool_or(b), max(ts) FROM ad GROUP BY t, c'),
    ('SELECT k, count(DISTINCT x) FILTER (WHERE b), count(DISTINCT t) FILTER (WHERE b), count(*) FILTER (WHERE b), count(*), sum(x) FILTER (WHERE b) FROM ad GROUP BY k'), ('SELECT k, count(DISTINCT x) FILTER (WHERE id % 5 = 1), sum(DISTINCT x), count(DISTINCT d) FILTER (WHERE id % 5 = 1), count(DISTINCT d) FILTER (WHERE b) FROM ad GROUP BY k'),
    ('SELECT k, count(DISTINCT x) FROM ad GROUP BY k HAVING count(DISTINCT t) > 45 AND count(DISTINCT d) = 90 AND sum(i2) > 20000'), ('SELECT k, x, count(DISTINCT k), count(DISTINCT x), count(DISTINCT t) FROM ad GROUP BY k, x'), ('SELECT k, count(DISTINCT 1), count(DISTINCT x), count(DISTINCT NULL::int) FROM ad GROUP BY k'),
    ('SELECT k, sum(CASE WHEN b THEN n ELSE 0 END), avg(DISTINCT n), count(DISTINCT i2) FROM ad WHERE n <> ''NaN'' GROUP BY k'), ('SELECT h, count(DISTINCT x), count(DISTINCT name), sum(v) FROM ad JOIN ad_dim USING (k) GROUP BY h'), ('SELECT name, count(DISTINCT x), count(DISTINCT t), count(*) FROM ad LEFT JOIN ad_dim USING (k) GROUP BY name'),
    ('SELECT count(DISTINCT a.x), count(DISTINCT b.name) FROM ad a JOIN ad_dim b ON a.k = b.k OR a.i2 = b.h'), ('SELECT k, count(DISTINCT x), count(DISTINCT c) FROM (SELECT k, x, t, count(*) AS c FROM ad GROUP BY k, x, t) s GROUP BY k'), ('SELECT count(DISTINCT x), count(DISTINCT k), count(*) FROM ad_empty'), ('SELECT k, count(DISTINCT x), count(DISTINCT t) FROM ad WHERE id < 0 GROUP BY k'),
    ('SELECT k, count(DISTINCT c), count(DISTINCT left(t, 2)), min(t), max(c) FROM ad GROUP BY k'), ('SELECT d, count(DISTINCT k), count(DISTINCT x), count(DISTINCT i2), count(DISTINCT i8), count(DISTINCT n), count(DISTINCT t), count(DISTINCT c), count(DISTINCT ts) FROM ad GROUP BY d'),
    ('SELECT k, count(DISTINCT 100 / (id % 1000)) FILTER (WHERE id % 1000 > 0), count(DISTINCT x) FROM ad GROUP BY k'), ('SELECT k, count(DISTINCT x), count(DISTINCT 100 / (id % 1000)) FROM ad GROUP BY k'),
    -- not the node's
    ('SELECT k, count(DISTINCT x), count(DISTINCT f) FROM ad GROUP BY k'), ('SELECT f, count(DISTINCT x), count(DISTINCT t) FROM ad GROUP BY f'), ('SELECT k, b, count(DISTINCT x), count(DISTINCT t) FROM ad GROUP BY ROLLUP (k, b)'), ('SELECT k, count(DISTINCT x), count(DISTINCT t), avg(f) FROM ad GROUP BY k'),
    ('SELECT d, count(DISTINCT k), count(DISTINCT x), count(DISTINCT i2), count(DISTINCT i8), count(DISTINCT n), count(DISTINCT t), count(DISTINCT c), count(DISTINCT ts), count(DISTINCT b) FROM ad GROUP BY d');
SELECT q.query, c.offloaded, c.result, c.same FROM ad_several q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT k, t, count(DISTINCT x), count(DISTINCT d) FROM ad GROUP BY k, t ORDER BY count(DISTINCT x) DESC, count(DISTINCT d), k, t LIMIT 9', in_order => true);
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM ad_several q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT id / 3, count(DISTINCT id), count(DISTINCT t), sum(w) FROM ad GROUP BY id / 3');
SELECT * FROM compare_aggregate('SELECT count(DISTINCT id), count(DISTINCT id + k), sum(DISTINCT id) FROM ad', workers => 2);
RESET work_mem;
RESET hash_mem_multiplier;
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF, VERBOSE) SELECT k, count(DISTINCT x) FILTER (WHERE b), count(DISTINCT t), count(*) FROM ad GROUP BY k;
RESET gpuhash.force_offload;

-- in order, and the first of them
SELECT * FROM compare_aggregate('SELECT k, count(DISTINCT x) FROM ad GROUP BY k ORDER BY k', in_order => true);
SELECT * FROM compare_aggregate('SELECT k, t, count(DISTINCT x) FROM ad GROUP BY k, t ORDER BY count(DISTINCT x) DESC, k, t LIMIT 9', in_order => true);
SELECT * FROM compare_aggregate('SELECT k, t FROM ad GROUP BY k, t ORDER BY sum(DISTINCT x) DESC NULLS LAST, k, t OFFSET 3 LIMIT 20', in_order => true);
-- equal texts that a collation finds, rather than their bytes
SET client_min_messages = warning;
DO $$
BEGIN
    CREATE COLLATION ad_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
RESET client_min_messages;
SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'ad_loose') THEN
    (SELECT offloaded || ', ' || same FROM compare_aggregate('SELECT k, count(DISTINCT t COLLATE ad_loose) FROM ad GROUP BY k')) ELSE '0, same' END AS loose;

-- prepared statements, with plans for any parameters
SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
PREPARE ad_p(int, text) AS SELECT count(*), sum(c), sum(s) FROM (SELECT k, count(DISTINCT x + $1) FILTER (WHERE t <> $2) AS c, sum(DISTINCT x + $1) AS s FROM ad WHERE id > $1 GROUP BY k) q;
EXPLAIN (COSTS OFF) EXECUTE ad_p(1, 't3');
EXECUTE ad_p(1, 't3');
EXECUTE ad_p(29900, 't4');
EXECUTE ad_p(NULL, NULL);
PREPARE ad_q(numeric) AS SELECT count(DISTINCT $1), count(DISTINCT n > $1) FROM ad;
PREPARE ad_r(numeric) AS SELECT sum(c), sum(s) FROM (SELECT count(DISTINCT n) AS c, sum(DISTINCT n) AS s FROM ad WHERE n <> 'NaN' GROUP BY k HAVING sum(DISTINCT n) > $1) q;
EXECUTE ad_r(500.5);
SET gpuhash.enabled = off;
EXECUTE ad_p(1, 't3');
EXECUTE ad_p(29900, 't4');
EXECUTE ad_p(NULL, NULL);
EXECUTE ad_r(500.5);
RESET gpuhash.enabled;
DEALLOCATE ALL;
RESET plan_cache_mode;

-- cursors, there and back, and rescans
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, count(DISTINCT x) FROM ad GROUP BY k ORDER BY k;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
COMMIT;
SELECT h, c FROM (SELECT DISTINCT h FROM ad_dim) d, LATERAL (SELECT count(DISTINCT x) AS c FROM ad WHERE k > 3 * h GROUP BY b OFFSET 0) s ORDER BY 1, 2;
RESET gpuhash.force_offload;

-- groups that memory does not hold, of either level
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT c.same FROM ad_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT id, count(DISTINCT x), sum(DISTINCT x), sum(w), sum(n) FROM ad GROUP BY id');
SELECT * FROM compare_aggregate('SELECT id / 3, t, count(DISTINCT id), sum(DISTINCT id), sum(w), count(*) FROM ad GROUP BY id / 3, t');
SELECT * FROM compare_aggregate('SELECT k, count(DISTINCT id), sum(w) FROM ad GROUP BY k');
SELECT * FROM compare_aggregate('SELECT id / 3, count(DISTINCT w), sum(DISTINCT w) FROM ad GROUP BY id / 3');
SELECT * FROM compare_aggregate('SELECT count(DISTINCT id), sum(DISTINCT id) FROM ad');
-- one group has most of the values: its partition is parted by these
SELECT * FROM compare_aggregate('SELECT CASE WHEN id % 4 = 0 THEN id ELSE 0 END, count(DISTINCT id), count(*), sum(w) FROM ad GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT CASE WHEN id % 4 = 0 THEN id ELSE 0 END, t, count(DISTINCT id), count(DISTINCT x), sum(DISTINCT w) FROM ad GROUP BY 1, 2');
SET gpuhash.force_offload = on;
SELECT regexp_replace(ad_line('SELECT id / 3, count(DISTINCT id) FROM ad GROUP BY id / 3', 'Disk'), '\d+', 'N');
RESET gpuhash.force_offload;
RESET work_mem;
RESET hash_mem_multiplier;

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT b, count(DISTINCT i2), count(*) FROM ad GROUP BY b;
EXPLAIN (COSTS OFF) SELECT count(DISTINCT x) FROM ad JOIN ad_dim USING (k);
RESET gpuhash.force_offload;
SELECT q.query, c.same FROM ad_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SET parallel_leader_participation = off;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM ad_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT id / 3, count(DISTINCT id), sum(w) FROM ad GROUP BY id / 3', workers => 2);
RESET parallel_leader_participation;

-- EXPLAIN has memory and files of the second level, too: its groups are far larger than those of the first.  The leader
-- is alone, so that its memory does not depend on when workers start.
CREATE TABLE ad_two AS SELECT i % 3000 AS k, 1 AS x FROM generate_series(1, 100000) i;
ANALYZE ad_two;
CREATE FUNCTION ad_usage(workers int, memory text, OUT parallel boolean, OUT kilobytes int, OUT disk int) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    PERFORM set_config('max_parallel_workers_per_gather', workers::text, true), set_config('work_mem', memory, true),
        set_config('gpuhash.force_offload', 'on', true), set_config('cpu_tuple_cost', '1', true),
        set_config('max_parallel_workers', '0', true);
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) SELECT k, count(DISTINCT x), sum(DISTINCT x), avg(DISTINCT x), stddev(DISTINCT x),
        variance(DISTINCT x), stddev_pop(DISTINCT x), var_pop(DISTINCT x) FROM ad_two GROUP BY k' INTO plan;
    plan := plan->0->'Plan';
    IF plan->>'Node Type' = 'Gather' THEN
        plan := plan->'Plans'->0;
    END IF;
    parallel := plan->>'Parallel Aware';
    kilobytes := plan->>'Memory Usage';
    disk := plan->>'Disk Usage';
END $$;
SELECT p.parallel, p.kilobytes > 0.9 * s.kilobytes AS as_much, p.disk, s.disk FROM ad_usage(2, '64MB') p, ad_usage(0, '64MB') s;
SELECT parallel, disk > 0 AS has_files FROM ad_usage(2, '512kB');
RESET work_mem;
RESET hash_mem_multiplier;
SET max_parallel_workers_per_gather = 0;

-- partition by partition
SET enable_partitionwise_aggregate = on;
CREATE TABLE ad_parts (k int, x int, t text) PARTITION BY LIST (k);
CREATE TABLE ad_part1 PARTITION OF ad_parts FOR VALUES IN (1, 2, 3);
CREATE TABLE ad_part2 PARTITION OF ad_parts DEFAULT;
INSERT INTO ad_parts SELECT k, x, t FROM ad;
ANALYZE ad_parts;
SELECT * FROM compare_aggregate('SELECT k, count(DISTINCT x), sum(DISTINCT x) FILTER (WHERE t <> ''t3'') FROM ad_parts GROUP BY k');
SELECT * FROM compare_aggregate('SELECT t, count(DISTINCT x) FROM ad_parts GROUP BY t');
RESET enable_partitionwise_aggregate;

-- what is distinct is chosen by cost
EXPLAIN (COSTS OFF) SELECT k, count(DISTINCT x) FROM ad WHERE id < 100 GROUP BY k;
-- PostgreSQL sorts values that are in order for next to nothing, in a table or in each partition; 15 counts nothing for any sort
CREATE TABLE ad_order (i int, j int, h int) PARTITION BY HASH (i);
CREATE TABLE ad_order1 PARTITION OF ad_order FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE ad_order2 PARTITION OF ad_order FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO ad_order SELECT i, i * 7919 % 100003, i / 1000 FROM generate_series(1, 100000) i;
ANALYZE ad_order;
CREATE TABLE ad_orders (query text, offloads bool);
INSERT INTO ad_orders VALUES ('SELECT count(DISTINCT i) FROM ad_order1', false), ('SELECT count(DISTINCT i), count(*) FROM ad_order', false),
    ('SELECT count(DISTINCT j) FROM ad_order1', true), ('SELECT count(DISTINCT j) FROM ad_order', true), ('SELECT count(DISTINCT h) FROM ad_order1', true),
    ('SELECT h, count(DISTINCT i) FROM ad_order1 GROUP BY h', false), ('SELECT j % 100, count(DISTINCT i) FROM ad_order1 GROUP BY 1', true),
    ('SELECT i, count(DISTINCT j) FROM ad_order1 GROUP BY i', false);
SELECT query, offloads, plan_lines(query, '%GpuHashAggregate%') = offloads::int OR current_setting('server_version_num')::int < 160000 AS chosen FROM ad_orders;
SET work_mem = '64MB';
SELECT query, offloads, plan_lines(query, '%GpuHashAggregate%') = offloads::int OR current_setting('server_version_num')::int < 160000 AS chosen FROM ad_orders;
RESET work_mem;
DROP TABLE ad_order, ad_orders;

-- why not
SET gpuhash.explain_why = on;
SELECT ad_line('SELECT f, count(DISTINCT x), count(DISTINCT t) FROM ad GROUP BY f', 'Not Offloaded');
SELECT ad_line('SELECT k, sum(DISTINCT f) FROM ad GROUP BY k', 'Not Offloaded');
SELECT ad_line('SELECT k, string_agg(DISTINCT t, '','') FROM ad GROUP BY k', 'Not Offloaded');
SELECT ad_line('SELECT k, sum(DISTINCT x ORDER BY x) FROM ad GROUP BY k', 'Not Offloaded');
SELECT ad_line('SELECT k, count(DISTINCT m) FROM ad GROUP BY k', 'Not Offloaded');
RESET gpuhash.explain_why;
DROP FUNCTION ad_line(text, text);
DROP TABLE ad_queries, ad_parts, ad, ad_dim, ad_empty;
SET client_min_messages = warning;
DROP COLLATION IF EXISTS ad_loose;
