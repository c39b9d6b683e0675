-- SELECT DISTINCT: groups without aggregates.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE sd (id int, k int, g int8, x int, n numeric(12, 2), m numeric, w numeric(40, 2), f float8, r real, b bool, t text, c char(6), d date, a int[], p point);
-- texts of some rows are compressed; some numerics are NaN, or too wide for a vector
INSERT INTO sd SELECT i, CASE WHEN i % 11 > 0 THEN i % 23 END, (i % 400)::int8 * 10000000000, CASE WHEN i % 7 > 0 THEN i % 301 - 100 END, CASE WHEN i % 13 = 0 THEN 'NaN' WHEN i % 5 > 0 THEN (i % 77) * 0.25 END,
    (ARRAY[1.0, 1.00, 1, 2.50, 2.5])[i % 5 + 1], CASE WHEN i % 83 = 0 THEN -12345678901234567890123456789012345.67 WHEN i % 70 = 0 THEN 'NaN' ELSE i % 40 END, (i % 13) / 4.0 * (i % 2 - 0.5), (i % 9) * 0.1, i % 3 = 0,
    CASE WHEN i % 100 = 0 THEN repeat('long ' || i % 7, 700) WHEN i % 4 > 0 THEN 't' || i % 70 END, 'c' || i % 12, date '2000-01-01' + i % 90, ARRAY[i % 10], point(i, 1) FROM generate_series(1, 12000) i;
CREATE TABLE sd_dim AS SELECT i AS k, i % 4 AS h, 'name ' || i % 6 AS name FROM generate_series(1, 20) i;
CREATE TABLE sd_empty (LIKE sd);
CREATE TABLE sd_parts (k int, x int, t text) PARTITION BY LIST (k);
CREATE TABLE sd_part1 PARTITION OF sd_parts FOR VALUES IN (1, 2, 3);
CREATE TABLE sd_part2 PARTITION OF sd_parts DEFAULT;
INSERT INTO sd_parts SELECT k, x, t FROM sd;
ANALYZE sd, sd_dim, sd_empty, sd_parts;

-- plans
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT DISTINCT k, t FROM sd WHERE id > 3 ORDER BY t, k LIMIT 3;
EXPLAIN (COSTS OFF, VERBOSE) SELECT DISTINCT name, x % 5 AS five FROM sd JOIN sd_dim USING (k);
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (k, x) x, k + 1 FROM sd;
EXPLAIN (COSTS OFF) SELECT k, count(*) FROM (SELECT DISTINCT k, x FROM sd) s GROUP BY k;
SELECT lines_of_plan('SELECT DISTINCT k FROM sd', 'Rows|Groups', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
RESET gpuhash.force_offload;

-- answers as PostgreSQL's
CREATE SEQUENCE sd_seq;
CREATE FUNCTION sd_volatile(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
CREATE TEMP TABLE sd_queries (position serial, query text);
INSERT INTO sd_queries (query) VALUES
    ('SELECT DISTINCT k FROM sd'), ('SELECT DISTINCT k, x FROM sd'), ('SELECT DISTINCT x, k, x, k + x FROM sd WHERE id % 3 = 1'), ('SELECT DISTINCT id FROM sd'), ('SELECT DISTINCT g, d, b FROM sd'),
    ('SELECT DISTINCT n FROM sd'), ('SELECT DISTINCT n, w, k FROM sd'), ('SELECT DISTINCT round(w, 1) + n FROM sd WHERE n <> ''NaN'' AND w <> ''NaN'''), ('SELECT DISTINCT t FROM sd'), ('SELECT DISTINCT c, left(t, 2) FROM sd'), ('SELECT DISTINCT t, w FROM sd WHERE t > ''t2'''),
    ('SELECT DISTINCT f FROM sd WHERE f <> 0'), ('SELECT DISTINCT r, b FROM sd'), ('SELECT DISTINCT extract(year FROM d), date_trunc(''month'', d) FROM sd'), ('SELECT DISTINCT CASE WHEN b THEN k END, coalesce(x, 0) FROM sd'), ('SELECT DISTINCT k IS NULL, x > 3 FROM sd'),
    ('SELECT DISTINCT 1, k FROM sd'), ('SELECT DISTINCT NULL::int, k, ''one''::text FROM sd'), ('SELECT DISTINCT k, x FROM sd WHERE k = 3'), ('SELECT DISTINCT k, x, k + x FROM sd WHERE k + x = 30'), ('SELECT DISTINCT k, x FROM sd WHERE k = x'), ('SELECT DISTINCT current_date, k FROM sd'),
    ('SELECT DISTINCT upper(t), k FROM sd'), ('SELECT DISTINCT a FROM sd'), ('SELECT DISTINCT sd_volatile(k) FROM sd'), ('SELECT DISTINCT (k, x) FROM sd'),
    -- DISTINCT ON of plain groups, and others
    ('SELECT DISTINCT ON (k) k FROM sd'), ('SELECT DISTINCT ON (k, x) x, k + 1, 5 FROM sd'), ('SELECT DISTINCT ON (k % 5) k % 5 FROM sd WHERE k > 0'), ('SELECT DISTINCT ON (k) k, min(x) FROM sd GROUP BY k'), ('SELECT DISTINCT ON (k) k, generate_series(1, 2) > 0 FROM sd'), ('SELECT DISTINCT ON (k) k, nextval(''sd_seq'') > 0 FROM sd'),
    ('SELECT DISTINCT ON (k) k, (SELECT max(h) FROM sd_dim WHERE sd_dim.k = sd.k) FROM sd'), ('SELECT DISTINCT ON (k) k, (SELECT max(h) FROM sd_dim) FROM sd'), ('SELECT DISTINCT ON (k) k, x FROM (SELECT k, k + 1 AS x FROM sd OFFSET 0) s'),
    -- joins, other inputs
    ('SELECT DISTINCT name, x FROM sd JOIN sd_dim USING (k)'), ('SELECT DISTINCT k, name FROM sd LEFT JOIN sd_dim USING (k)'), ('SELECT DISTINCT name, b FROM sd RIGHT JOIN sd_dim USING (k)'), ('SELECT DISTINCT coalesce(name, ''none''), h FROM sd FULL JOIN sd_dim USING (k)'), ('SELECT DISTINCT x FROM sd WHERE k IN (SELECT k FROM sd_dim WHERE h > 1)'),
    ('SELECT DISTINCT x FROM sd WHERE NOT EXISTS (SELECT FROM sd_dim WHERE sd_dim.k = sd.k)'), ('SELECT DISTINCT a.k, b.h FROM sd a JOIN sd_dim b ON a.k < b.k'), ('SELECT DISTINCT a.x, b.name FROM sd a JOIN sd_dim b USING (k) JOIN sd_dim c ON c.k = a.x'), ('SELECT DISTINCT k, (SELECT max(h) FROM sd_dim) FROM sd'), ('SELECT DISTINCT (SELECT max(h) FROM sd_dim WHERE sd_dim.k = sd.k), x FROM sd'),
    ('SELECT DISTINCT k FROM (SELECT k, x FROM sd UNION ALL SELECT k, h FROM sd_dim) s'), ('SELECT DISTINCT k, t FROM sd_parts'), ('SELECT DISTINCT k FROM (SELECT * FROM sd ORDER BY id LIMIT 9000) s'), ('SELECT DISTINCT generate_series(1, k), b FROM sd'), ('SELECT DISTINCT generate_series(1, 3) + k FROM sd'), ('SELECT DISTINCT x % 7 FROM sd TABLESAMPLE SYSTEM (100)'),
    ('SELECT k, (SELECT count(*) FROM (SELECT DISTINCT x FROM sd WHERE sd.k = sd_dim.k) s) FROM sd_dim WHERE h < 2'), ('SELECT h, s.* FROM sd_dim, LATERAL (SELECT DISTINCT x FROM sd WHERE sd.k > sd_dim.k AND b OFFSET 0) s WHERE h = 1'), ('SELECT k, count(*), sum(x) FROM (SELECT DISTINCT k, x FROM sd) s GROUP BY k'), ('SELECT * FROM sd_dim JOIN (SELECT DISTINCT k, x FROM sd) s USING (k)'),
    ('SELECT DISTINCT k FROM sd_empty'), ('SELECT DISTINCT k FROM sd WHERE id < 0'), ('SELECT DISTINCT k FROM sd WHERE false'), ('SELECT DISTINCT k, t FROM sd EXCEPT SELECT DISTINCT k, t FROM sd WHERE b'), ('SELECT DISTINCT k, x FROM sd UNION SELECT DISTINCT k, h FROM sd_dim'),
    -- above groups and windows
    ('SELECT DISTINCT count(*) FROM sd GROUP BY x'), ('SELECT DISTINCT k % 3 FROM sd GROUP BY k'), ('SELECT DISTINCT k, count(*) FROM sd GROUP BY k, x HAVING count(*) > 2'), ('SELECT DISTINCT rank() OVER (ORDER BY k) FROM sd'), ('SELECT DISTINCT k, b FROM sd GROUP BY ROLLUP (k, b)'),
    -- errors are PostgreSQL's
    ('SELECT DISTINCT 100 / (id % 1000) FROM sd'), ('SELECT DISTINCT 100 / (id % 1000) FROM sd WHERE id % 1000 > 0'), ('SELECT DISTINCT k, p FROM sd');
SELECT q.query, c.offloaded, c.result, c.same FROM sd_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c ORDER BY q.position;
-- what is the same in all rows, beside a key that is computed
SELECT q.query, c.offloaded, c.same FROM (VALUES ('SELECT DISTINCT k, current_date, t || ''x'' FROM sd'), ('SELECT DISTINCT k, (SELECT max(h) FROM sd_dim), k::text FROM sd'),
    ('SELECT upper(t), (SELECT max(h) FROM sd_dim), count(*) FROM sd GROUP BY 1, 2'), ('SELECT k::text, current_date, sum(x) FROM sd GROUP BY 1, 2 HAVING current_date > ''2001-01-01'''),
    ('SELECT k::text, (SELECT max(h) FROM sd_dim), sum(x + (SELECT max(h) FROM sd_dim)) FROM sd GROUP BY 1, 2')) q(query), LATERAL compare_aggregate(q.query, engine => 'cpu') c;
-- one row is enough, from 16 on
SELECT same FROM compare_aggregate('SELECT DISTINCT k FROM sd WHERE k = 3');
SELECT same FROM compare_aggregate('SELECT DISTINCT 1, ''a'' FROM sd');
SELECT same FROM compare_aggregate('SELECT DISTINCT 1, ''a'' FROM sd_empty');
-- equal numerics that look different are PostgreSQL's
SELECT * FROM compare_aggregate('SELECT DISTINCT m, k FROM sd');

-- in order, and the first of them
SELECT * FROM compare_aggregate('SELECT DISTINCT k, x FROM sd ORDER BY x DESC NULLS LAST, k', in_order => true);
SELECT * FROM compare_aggregate('SELECT DISTINCT k, t FROM sd ORDER BY t, k OFFSET 3 LIMIT 20', in_order => true);
-- of equal values the first row's comes out
CREATE TABLE sd_equal (c bpchar, f float4, g float8);
INSERT INTO sd_equal VALUES ('a ', 0, '-0'), ('a', '-0', 0), ('b', 1, 1), ('b  ', 1, 1);
ANALYZE sd_equal;
SET enable_sort = off;
SELECT q AS query, c.offloaded, c.result, c.same
FROM unnest(ARRAY['SELECT DISTINCT f, g FROM sd_equal', 'SELECT octet_length(c) FROM (SELECT DISTINCT c FROM sd_equal) s', 'SELECT DISTINCT f FROM (SELECT * FROM sd_equal OFFSET 0) s', 'SELECT DISTINCT f, g FROM sd_equal WHERE g = 0']) q, LATERAL compare_aggregate(q, engine => 'cpu') c;
RESET enable_sort;
-- equal texts that a collation finds, rather than their bytes
SET client_min_messages = warning;
DO $$
BEGIN
    CREATE COLLATION sd_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
RESET client_min_messages;
SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'sd_loose') THEN
    (SELECT offloaded || ', ' || same FROM compare_aggregate('SELECT DISTINCT t COLLATE sd_loose FROM sd')) ELSE '0, same' END AS loose;

-- prepared statements, cursors
SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
PREPARE sd_p(int, text) AS SELECT count(*), sum(k), min(q) FROM (SELECT DISTINCT k, x + $1 AS q FROM sd WHERE id > $1 AND t <> $2) s;
EXPLAIN (COSTS OFF) EXECUTE sd_p(1, 't3');
EXECUTE sd_p(1, 't3');
EXECUTE sd_p(11900, 't4');
EXECUTE sd_p(NULL, NULL);
PREPARE sd_q(int) AS SELECT count(*), min(parameter), sum(k) FROM (SELECT DISTINCT $1 AS parameter, k FROM sd) s;
EXECUTE sd_q(7);
SET gpuhash.enabled = off;
EXECUTE sd_p(1, 't3');
EXECUTE sd_p(11900, 't4');
RESET gpuhash.enabled;
DEALLOCATE ALL;
RESET plan_cache_mode;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT DISTINCT k, b FROM sd WHERE k < 5 ORDER BY k, b;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
COMMIT;
RESET gpuhash.force_offload;

-- groups that memory does not hold
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM sd_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT DISTINCT id / 2, t, w FROM sd');
SET gpuhash.force_offload = on;
SELECT regexp_replace(lines_of_plan('SELECT DISTINCT id, t FROM sd', 'Disk', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF'), '\d+', 'N');
RESET gpuhash.force_offload;
RESET work_mem;
RESET hash_mem_multiplier;

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT DISTINCT k, b FROM sd;
EXPLAIN (COSTS OFF) SELECT DISTINCT name, x FROM sd JOIN sd_dim USING (k);
RESET gpuhash.force_offload;
SELECT q.query, c.same FROM sd_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
SET parallel_leader_participation = off;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM sd_queries q, LATERAL compare_aggregate(q.query, workers => 2, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
RESET work_mem;
RESET hash_mem_multiplier;
RESET parallel_leader_participation;
RESET max_parallel_workers_per_gather;

-- why not
SET max_parallel_workers_per_gather = 0;
SET gpuhash.explain_why = on;
SELECT lines_of_plan('SELECT DISTINCT m FROM sd', 'Not Offloaded');
SELECT lines_of_plan('SELECT DISTINCT k FROM sd_dim', 'Not Offloaded');
SELECT lines_of_plan('SELECT DISTINCT ON (k) k, x FROM sd', 'Not Offloaded');
SELECT lines_of_plan('SELECT DISTINCT ON (k) k, nextval(''sd_seq'') FROM sd', 'Not Offloaded');
SELECT lines_of_plan('SELECT DISTINCT sd_volatile(k) FROM sd', 'Not Offloaded');
SELECT lines_of_plan('SELECT DISTINCT rank() OVER (ORDER BY k) FROM sd', 'Not Offloaded');
SELECT lines_of_plan('SELECT k, m FROM sd UNION SELECT k, m FROM sd', 'Not Offloaded: Distinct');
SET gpuhash.enable_aggregate = off;
SELECT lines_of_plan('SELECT DISTINCT k, x FROM sd', 'Not Offloaded');
RESET gpuhash.enable_aggregate;
SET gpuhash.explain_why = off;
-- a subquery that is the same in all rows runs once
CREATE FUNCTION sd_once(int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM nextval('sd_seq'); RETURN $1; END $$;
SELECT setval('sd_seq', 1);
SELECT count(*) FROM sd_dim;
SET gpuhash.force_offload = on;
SELECT count(*) FROM (SELECT DISTINCT k::text, 1 IN (SELECT sd_once(k) FROM sd_dim) FROM sd) d;
SELECT last_value - 1 AS runs FROM sd_seq;
RESET gpuhash.force_offload;
DROP FUNCTION sd_once(int);
DROP TABLE sd_queries, sd_parts, sd, sd_dim, sd_empty, sd_equal;
DROP FUNCTION sd_volatile(int);
DROP SEQUENCE sd_seq;
SET client_min_messages = warning;
DROP COLLATION IF EXISTS sd_loose;
