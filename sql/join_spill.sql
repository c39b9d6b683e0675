-- Inner sides larger than work_mem x hash_mem_multiplier.
LOAD 'gpuhash';
SET work_mem = '64kB';
SET hash_mem_multiplier = 1.0;
CREATE TABLE js_outer AS
    SELECT i AS id, CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 7919::bigint) % 30000 END AS k, 'outer ' || i AS t
    FROM generate_series(1, 20000) i;
CREATE TABLE js_inner AS
    SELECT i AS id, CASE WHEN i % 19 = 0 THEN NULL ELSE (i * 31::bigint) % 15000 END AS k, i % 4 AS g,
           CASE WHEN i % 5 = 0 THEN NULL ELSE 'inner ' || i END AS t
    FROM generate_series(1, 12000) i;
ANALYZE js_outer, js_inner;
SELECT * FROM compare_join('SELECT o.id, o.t, i.id AS iid, i.t AS it FROM js_outer o JOIN js_inner i ON i.k = o.k');
SELECT * FROM compare_join('SELECT o.id, o.t, i.id AS iid, i.t AS it FROM js_outer o LEFT JOIN js_inner i ON i.k = o.k');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM js_outer o LEFT JOIN js_inner i ON i.k = o.k AND i.g = 2 WHERE i.t IS NULL OR o.id > 10000');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM js_outer o JOIN js_inner i ON i.k = o.k AND i.t < o.t');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM js_outer o JOIN js_inner i ON i.t = o.t');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM js_outer o LEFT JOIN js_inner i ON replace(i.t, ''in'', ''out'') = o.t');
-- no outer row, or no inner row, has what the other side has
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM js_outer o JOIN js_inner i ON i.k + 100000 = o.k');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM js_outer o LEFT JOIN js_inner i ON i.k + 100000 = o.k');
-- one key that fills the memory by itself
CREATE TABLE js_skew AS SELECT i AS id, CASE WHEN i % 10 = 0 THEN i ELSE 42 END AS k, repeat('x', 20) AS t FROM generate_series(1, 15000) i;
ANALYZE js_skew;
SELECT * FROM compare_join('SELECT o.k, s.id, s.t FROM (SELECT DISTINCT k FROM js_outer) o JOIN js_skew s ON s.k = o.k');
-- inner sides of many sizes: the partitions double at the first, a middle and the last row
DO $$
DECLARE
    want bigint[];
    got bigint[];
BEGIN
    SET LOCAL max_parallel_workers_per_gather = 0;
    FOR n IN 300..12000 BY 97 LOOP
        FOR enabled IN 0..1 LOOP
            PERFORM set_config('gpuhash.enabled', enabled::text, true);
            PERFORM set_config('gpuhash.force_offload', 'on', true);
            EXECUTE format('SELECT ARRAY[count(*), sum(i.g)] FROM js_outer o JOIN js_inner i ON i.id = o.id %% %s WHERE i.id <= %s', 2 + n % 7, n)
                INTO got;
            IF enabled = 0 THEN
                want := got;
            ELSIF want <> got THEN
                RAISE WARNING '% inner rows: % instead of %', n, got, want;
            END IF;
        END LOOP;
    END LOOP;
END $$;
-- rows that cannot be parted come first: memory stays bounded all the same
CREATE FUNCTION js_memory(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    RETURN plan->0->'Plan'->'Plans'->0->>'Memory Usage';
END $$;
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
SELECT js_memory('SELECT count(o.t), count(b.w) FROM js_outer o LEFT JOIN (SELECT CASE WHEN i <= 500 THEN 5 ELSE i END AS k, repeat(''x'', 100) AS w FROM generate_series(1, 60000) i OFFSET 0) b ON b.k = o.id') < 500 AS bounded;
SELECT js_memory('SELECT count(o.t), count(b.w) FROM js_outer o LEFT JOIN (SELECT i AS k, repeat(''x'', CASE WHEN i = 1 THEN 100000 ELSE 20 END) AS w FROM generate_series(1, 60000) i OFFSET 0) b ON b.k = o.id') < 800 AS bounded;
-- also where the settings make a thin table
-- (here, and where the plan is looked at, the join is not to be below an aggregate that has it done by a device)
SET gpuhash.engine = 'cpu';
SET gpuhash.fill_min = 0.01;
SET gpuhash.fill_max = 0.1;
SELECT js_memory('SELECT count(o.t), count(i.t) FROM js_outer o LEFT JOIN js_inner i ON i.k = o.k') < 500 AS bounded;
RESET gpuhash.fill_min;
RESET gpuhash.fill_max;
RESET gpuhash.engine;
RESET gpuhash.force_offload;
DROP FUNCTION js_memory(text);
-- rescans start from the beginning
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
SELECT * FROM compare_join('SELECT g, (SELECT count(*) FROM js_outer o JOIN js_inner i ON i.k = o.k WHERE o.id % 4 <> x.g) FROM generate_series(0, 3) x(g)');
SELECT count(*) FROM (SELECT 1 FROM js_outer o JOIN js_inner i ON i.k = o.k LIMIT 10) s;
-- what EXPLAIN says of it
CREATE FUNCTION js_partitioned(query text) RETURNS TABLE (partitioned boolean, on_disk boolean, within_memory boolean) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    plan := plan->0->'Plan'->'Plans'->0;
    RETURN QUERY SELECT (plan->>'Partitions')::int > 1, (plan->>'Disk Usage')::int > 0, (plan->>'Memory Usage')::int < 400;
END $$;
SET gpuhash.engine = 'cpu';
SELECT * FROM js_partitioned('SELECT count(*) FROM js_outer o JOIN js_inner i ON i.k = o.k');
RESET work_mem;
SELECT partitioned, on_disk FROM js_partitioned('SELECT count(*) FROM js_outer o JOIN js_inner i ON i.k = o.k');
-- the limit on temporary files holds
SET work_mem = '64kB';
SET temp_file_limit = '100kB';
DO $$
BEGIN
    PERFORM count(*) FROM js_outer o JOIN js_inner i ON i.k = o.k;
    RAISE EXCEPTION 'no limit was met';
EXCEPTION WHEN configuration_limit_exceeded THEN NULL;
END $$;
RESET temp_file_limit;
RESET gpuhash.engine;
SELECT count(*) FROM js_outer o JOIN js_inner i ON i.k = o.k;
-- a key of few rows has most of them: PostgreSQL has the many rows in the table, which would not fit in memory, and ours the few
SET work_mem = '64kB';
SET hash_mem_multiplier = 1.0;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE js_many AS SELECT i AS id, (i % 3000)::numeric AS k FROM generate_series(1, 20000) i;
CREATE TABLE js_few AS SELECT i AS id, (CASE WHEN i % 3 = 0 THEN i WHEN i % 7 <> 0 THEN 42 END)::numeric AS k FROM generate_series(1, 300) i;
ANALYZE js_many, js_few;
EXPLAIN (COSTS OFF) SELECT m.id, f.id FROM js_many m JOIN js_few f ON f.k = m.k;
SELECT count(*), sum(m.id * 7 + f.id) FROM js_many m JOIN js_few f ON f.k = m.k;
SELECT count(*), sum(m.id * 7 + f.id) FROM js_many m JOIN js_few f ON f.k = m.k AND f.id < m.id;
SET gpuhash.enabled = off;
SELECT count(*), sum(m.id * 7 + f.id) FROM js_many m JOIN js_few f ON f.k = m.k;
SELECT count(*), sum(m.id * 7 + f.id) FROM js_many m JOIN js_few f ON f.k = m.k AND f.id < m.id;
RESET gpuhash.enabled;
-- not where each process has a part of one side alone, nor for rows that lack a match
SELECT count(*), sum(m.id * 7 + f.id) FROM js_few f LEFT JOIN js_many m ON f.k = m.k;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), sum(m.id * 7 + f.id) FROM js_many m JOIN js_few f ON f.k = m.k;
SET enable_parallel_hash = off;
SELECT count(*), sum(m.id * 7 + f.id) FROM js_many m JOIN js_few f ON f.k = m.k;
RESET enable_parallel_hash;
RESET min_parallel_table_scan_size;
RESET parallel_tuple_cost;
RESET parallel_setup_cost;
RESET max_parallel_workers_per_gather;
RESET hash_mem_multiplier;
RESET work_mem;
DROP FUNCTION js_partitioned(text);
DROP TABLE js_outer, js_inner, js_skew, js_many, js_few;
