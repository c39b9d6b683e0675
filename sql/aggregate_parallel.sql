-- Participants of a parallel query, each with groups of its own, that one of them merges.
LOAD 'gpuhash';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE apa (id int, g int, k int8, n numeric(12, 2), w numeric(60, 5), f float8, b bool, t text, d date);
INSERT INTO apa SELECT i, CASE WHEN i % 10 > 0 THEN i % 17 END, i % 5000, i * 1.25, CASE WHEN i % 50 = 0 THEN 1e45 ELSE i END, i % 100, i % 3 = 0, CASE WHEN i % 4 > 0 THEN 't' || i % 70 END, date '2000-01-01' + i % 900
FROM generate_series(1, 40000) i;
CREATE TABLE apa_dim AS SELECT i AS g, i % 4 AS h, 'name ' || i % 6 AS name FROM generate_series(1, 15) i;
CREATE TABLE apa_empty (LIKE apa);
CREATE TABLE apa_one AS SELECT 1 AS x;
ANALYZE apa, apa_dim, apa_empty, apa_one;
CREATE TEMP TABLE apa_queries (position serial, query text);
INSERT INTO apa_queries (query) VALUES
    ('SELECT count(*), sum(id), sum(n), avg(n), min(d), max(d), bool_and(b), bool_or(b), stddev(id), sum(f), avg(f) FROM apa'),
    ('SELECT g, count(*), sum(id), sum(k), avg(n), min(d), max(n), bool_and(b), var_pop(id), sum(f) FROM apa GROUP BY g'),
    ('SELECT k, count(*), sum(n) FROM apa GROUP BY k'), ('SELECT t, b, count(*) FILTER (WHERE g > 3), sum(n * 2) FROM apa WHERE id % 3 <> 1 GROUP BY t, b'),
    ('SELECT g, sum(w), avg(w), max(w), min(w), stddev(w) FROM apa GROUP BY g'), ('SELECT w, count(*) FROM apa WHERE id < 3000 GROUP BY w'),
    ('SELECT g, count(*) FROM apa GROUP BY g HAVING count(*) > 2400'), ('SELECT g FROM apa GROUP BY g HAVING sum(n) > (SELECT avg(n) * 2000 FROM apa)'),
    ('SELECT count(*), sum(id) FROM apa WHERE id < 0'), ('SELECT g, count(*) FROM apa WHERE id < 0 GROUP BY g'), ('SELECT count(*), sum(n) FROM apa_empty'), ('SELECT g, count(*) FROM apa_empty GROUP BY g'), ('SELECT x, count(*) FROM apa_one GROUP BY x'),
    ('SELECT count(*) FROM apa HAVING count(*) > 40000'), ('SELECT sum(100 / (id % 1000)) FROM apa'), ('SELECT g, sum(100 / (id % 1000)) FILTER (WHERE id % 1000 > 0) FROM apa GROUP BY g'),
    ('SELECT h, count(*), sum(n) FROM apa JOIN apa_dim USING (g) GROUP BY h'), ('SELECT name, count(*), sum(n) FROM apa LEFT JOIN apa_dim USING (g) WHERE b GROUP BY name'), ('SELECT g, count(*) FROM apa WHERE g IN (SELECT g FROM apa_dim WHERE h > 1) GROUP BY g'),
    ('SELECT g, count(*) FROM apa WHERE id > (SELECT max(id) / 2 FROM apa) GROUP BY g'), ('SELECT g, c FROM (SELECT g, count(*) AS c FROM apa GROUP BY g) s WHERE c > 100'), ('SELECT a.g, a.c, b.c FROM (SELECT g, count(*) AS c FROM apa GROUP BY g) a JOIN (SELECT k AS g, count(*) AS c FROM apa GROUP BY k) b USING (g)'),
    ('SELECT h, (SELECT count(*) FROM apa WHERE apa.g > h) FROM apa_dim'), ('SELECT g, count(*) FROM apa GROUP BY g UNION ALL SELECT 0, count(*) FROM apa'), ('SELECT id, count(*) FROM apa GROUP BY id'), ('SELECT g, t, sum(n) FROM apa GROUP BY g, t ORDER BY g, t LIMIT 10'),
    ('SELECT count(DISTINCT g), count(*) FROM apa'), ('SELECT g, b, count(*) FROM apa GROUP BY ROLLUP (g, b)'), ('SELECT g, string_agg(t, '','' ORDER BY id) FROM apa WHERE id < 500 GROUP BY g');
SELECT q.query, c.offloaded, c.result, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c ORDER BY q.position;
-- without the leader; more workers than there are; more groups than memory holds
SET parallel_leader_participation = off;
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
SET max_parallel_workers = 1;
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 4) c WHERE c.same <> 'same' ORDER BY q.position;
RESET max_parallel_workers;
-- so many groups that each participant merges some of them, and returns them to what is above, which may be parallel, too
CREATE TABLE apa_many WITH (autovacuum_enabled = off) AS SELECT i * 7919 % 12000 AS k, i % 7 AS g, (i % 1000 * 1.25)::numeric(8, 2) AS n, CASE WHEN i % 9 > 0 THEN 't' || i % 15000 END AS t FROM generate_series(1, 40000) i;
ANALYZE apa_many;
CREATE TEMP TABLE apa_more (position serial, query text);
INSERT INTO apa_more (query) VALUES
    ('SELECT k, count(*), sum(n), avg(n) FROM apa_many GROUP BY k'), ('SELECT t, k % 3, count(*), max(n) FROM apa_many GROUP BY t, k % 3'), ('SELECT k, g, sum(n) FROM apa_many WHERE n > 100 GROUP BY k, g HAVING count(*) > 0 AND sum(n) > 1000'),
    ('SELECT c, count(*), sum(s) FROM (SELECT k, count(*) AS c, sum(n) AS s FROM apa_many GROUP BY k) x GROUP BY c'), ('SELECT k, sum(n) FROM apa_many GROUP BY k ORDER BY 2 DESC, 1 LIMIT 7'), ('SELECT count(*) FROM (SELECT k FROM apa_many GROUP BY k LIMIT 10) x'),
    ('SELECT d.name, count(*), sum(x.c) FROM (SELECT k, g, count(*) AS c FROM apa_many GROUP BY k, g) x JOIN apa_dim d USING (g) GROUP BY d.name'), ('SELECT a.k, a.c, b.s FROM (SELECT k, count(*) AS c FROM apa_many GROUP BY k) a JOIN (SELECT k, sum(n) AS s FROM apa_many WHERE g > 2 GROUP BY k) b USING (k)'),
    ('SELECT count(DISTINCT k), count(*) FROM apa_many'), ('SELECT g, count(DISTINCT k), sum(n) FROM apa_many GROUP BY g'), ('SELECT t, count(DISTINCT n), count(*) FROM apa_many GROUP BY t'), ('SELECT n, t::char(12) AS c, count(DISTINCT g) FILTER (WHERE k > 100), max(k) FROM apa_many GROUP BY n, c ORDER BY 3 DESC, 1, 2 LIMIT 20'), ('SELECT t, sum(DISTINCT k) FROM apa_many GROUP BY t HAVING count(DISTINCT k) > 2'), ('SELECT k, g, count(*) FROM apa_many GROUP BY ROLLUP (k, g)'), ('SELECT DISTINCT t, g FROM apa_many'),
    ('SELECT d.h, count(*), sum(x.c) FROM apa_dim d, (SELECT k, count(*) AS c FROM apa_many GROUP BY k OFFSET 0) x WHERE x.k % 17 < d.h GROUP BY d.h'), ('SELECT k, sum(1 / (k - 11999)) FROM apa_many GROUP BY k'), ('SELECT k, count(*) FROM apa_many GROUP BY k UNION ALL SELECT g, count(*) FROM apa_many GROUP BY g, k'),
    -- few groups of a subquery, which one participant has
    ('SELECT count(*), sum(a.n) FROM apa_many a JOIN (SELECT g, avg(n) AS m FROM apa_many GROUP BY g) x ON a.g = x.g AND a.n < x.m'), ('SELECT a.g, count(*), min(c) FROM apa_many a LEFT JOIN (SELECT g, count(DISTINCT k) AS c FROM apa_many WHERE g < 5 GROUP BY g) x USING (g) GROUP BY a.g'),
    ('SELECT count(*) FROM apa_many a WHERE a.k < 20 AND a.n > (SELECT avg(n) FROM apa_many b WHERE b.g = a.g)'), ('SELECT x.g, count(*) FROM apa_many a JOIN (SELECT g, count(*) AS c FROM apa_many GROUP BY ROLLUP (g)) x ON a.g = x.g JOIN (SELECT count(*) AS c FROM apa_many) y ON x.c < y.c GROUP BY x.g'),
    ('SELECT g, count(*) FROM apa_many a WHERE (g, n) IN (SELECT g, max(n) FROM apa_many GROUP BY g) GROUP BY g'), ('SELECT s.g, count(*) FROM (SELECT g, sum(n) AS s FROM apa_many GROUP BY g HAVING sum(n) > 1000 LIMIT 3) s JOIN apa_many m USING (g) GROUP BY s.g HAVING count(*) < 0');
SET enable_material = off;
SELECT q.query, c.offloaded, c.result, c.same FROM apa_more q, LATERAL compare_aggregate(q.query, workers => 2) c ORDER BY q.position;
SET parallel_leader_participation = off;
SELECT q.query, c.same FROM apa_more q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT q.query, c.same FROM apa_more q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
RESET max_parallel_workers;
SET work_mem = '64kB';
SELECT q.query, c.same FROM apa_more q, LATERAL compare_aggregate(q.query, workers => 3) c WHERE query !~ 'ROLLUP|OFFSET' AND c.same <> 'same' ORDER BY q.position;
RESET work_mem;
-- a join of such groups is below one Gather, with all that reads them
SET max_parallel_workers_per_gather = 2;
SET gpuhash.force_offload = on;
SELECT plan_lines(q.query, '%Gather%') AS gathers, plan_lines(q.query, '%Parallel Custom Scan (GpuHashAggregate)%') AS groupings FROM apa_more q WHERE query LIKE '%AS m FROM%' OR query LIKE '%> (SELECT avg(n)%' ORDER BY q.position;
RESET gpuhash.force_offload;
RESET max_parallel_workers_per_gather;
-- where groupings are also done partition by partition
CREATE TABLE apa_parted (k int, n int) PARTITION BY RANGE (k);
CREATE TABLE apa_parted_0 PARTITION OF apa_parted FOR VALUES FROM (0) TO (25000) WITH (autovacuum_enabled = off);
CREATE TABLE apa_parted_1 PARTITION OF apa_parted FOR VALUES FROM (25000) TO (30000) WITH (autovacuum_enabled = off);
INSERT INTO apa_parted SELECT i * 7919 % 30000, i FROM generate_series(1, 60000) i;
ANALYZE apa_parted;
SET enable_partitionwise_aggregate = on;
SELECT c.* FROM unnest(ARRAY['SELECT a.k, a.c, b.c FROM (SELECT k, count(*) AS c FROM apa_parted GROUP BY k) a JOIN (SELECT k, count(*) AS c FROM apa_parted GROUP BY k) b USING (k) ORDER BY k',
    'SELECT k, count(*) FROM apa_parted GROUP BY k ORDER BY k', 'SELECT k, count(*) FROM apa_many GROUP BY k UNION SELECT k, count(*) FROM apa_parted GROUP BY k']) q, LATERAL compare_aggregate(q, workers => 4) c;
SET gpuhash.force_offload = off;
SET max_parallel_workers_per_gather = 4;
SELECT count(*), sum(c), min(k), max(k) FROM (SELECT a.k, a.c FROM (SELECT k, count(*) AS c FROM apa_parted GROUP BY k) a JOIN (SELECT k, count(*) AS c FROM apa_parted GROUP BY k) b USING (k) ORDER BY k) x;
RESET gpuhash.force_offload;
RESET max_parallel_workers_per_gather;
RESET enable_partitionwise_aggregate;
DROP TABLE apa_parted;
RESET enable_material;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
SET parallel_leader_participation = off;
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 1) c WHERE c.same <> 'same' ORDER BY q.position;
RESET parallel_leader_participation;
-- what the plans are, and that participants spill
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 2;
CREATE FUNCTION apa_explained(query text) RETURNS TABLE (node text, spilled boolean, workers text) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    plan := plan->0->'Plan';
    WHILE plan->>'Custom Plan Provider' IS NULL LOOP
        plan := plan->'Plans'->0;
    END LOOP;
    RETURN QUERY SELECT plan->>'Custom Plan Provider', (plan->>'Disk Usage')::int > 0, plan->>'Parallel Aware';
END $$;
SELECT * FROM apa_explained('SELECT id, k, count(*), sum(n) FROM apa GROUP BY id, k');
SELECT * FROM apa_explained('SELECT g, count(*), sum(n) FROM apa GROUP BY g');
EXPLAIN (COSTS OFF) SELECT g, count(*), sum(n) FROM apa GROUP BY g;
EXPLAIN (COSTS OFF) SELECT count(*) FROM apa WHERE k < 30;
EXPLAIN (COSTS OFF) SELECT k, sum(n) FROM apa_many GROUP BY k ORDER BY 2 DESC LIMIT 7;
-- some of it is fetched only, and in cursors
SELECT count(*) FROM (SELECT id FROM apa GROUP BY id LIMIT 10) s;
BEGIN;
DECLARE c CURSOR FOR SELECT g, count(*) FROM apa GROUP BY g;
MOVE 5 IN c;
CLOSE c;
DECLARE c CURSOR FOR SELECT g, count(*) FROM apa GROUP BY g ORDER BY g;
FETCH 3 FROM c;
COMMIT;
-- inner sides that participants read together, straight from the pages; what that cannot have (a value that lies elsewhere,
-- too little memory) is read once more, as rows; nobody sees it, or counts it twice
CREATE TABLE apa_in WITH (autovacuum_enabled = off) AS SELECT i AS k, i % 9 AS h, CASE WHEN i % 5 > 0 THEN 'text ' || i END AS t, (i / 4.0)::numeric(12, 2) AS n, 500 - i AS z FROM generate_series(1, 5000) i;
CREATE TABLE apa_far (LIKE apa_in) WITH (autovacuum_enabled = off);
ALTER TABLE apa_far ALTER t SET STORAGE EXTERNAL;
INSERT INTO apa_far SELECT k, h, CASE WHEN k = 4990 THEN repeat('far', 2000) ELSE t END, CASE WHEN k = 77 THEN 'NaN' ELSE n END, z FROM apa_in;
CREATE TABLE apa_twice WITH (autovacuum_enabled = off) AS SELECT k / 2 AS k, h, t, n, z FROM apa_in;
VACUUM ANALYZE apa_in, apa_far, apa_twice;
RESET work_mem;
RESET hash_mem_multiplier;
INSERT INTO apa_queries (query) SELECT replace(q, 'INNER_', x) FROM unnest(ARRAY['apa_in', 'apa_far', 'apa_twice']) x, unnest(ARRAY[
    'SELECT count(*), sum(INNER_.n), max(INNER_.h) FROM apa JOIN INNER_ USING (k)', 'SELECT INNER_.t, count(*), sum(INNER_.n) FROM apa JOIN INNER_ USING (k) GROUP BY INNER_.t',
    'SELECT h, count(*) FROM apa LEFT JOIN INNER_ ON apa.k = INNER_.k AND INNER_.h > 3 GROUP BY h', 'SELECT count(*), sum(apa.id) FROM apa WHERE k IN (SELECT k FROM INNER_ WHERE h = 2)',
    'SELECT count(*) FROM apa JOIN INNER_ USING (k) WHERE INNER_.t ~ ''7$''', 'SELECT count(*), sum(INNER_.n) FROM apa JOIN INNER_ USING (k) WHERE INNER_.h < 0',
    'SELECT count(*), count(INNER_.k) FROM apa LEFT JOIN INNER_ ON apa.k = INNER_.k AND INNER_.h < 0']) q;
INSERT INTO apa_queries (query) VALUES ('SELECT count(*) FROM apa JOIN apa_in USING (k) WHERE 100 / apa_in.z > 0'), ('SELECT count(*), sum(b.n) FROM apa JOIN apa_in a USING (k) JOIN apa_in b ON b.k = a.h JOIN apa_far c ON c.k = a.k');
SET enable_parallel_hash = on;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT q.query, c.offloaded, c.result, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE query ~ 'apa_(in|far|twice)' ORDER BY q.position;
SET work_mem = '64kB';
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE query ~ 'apa_(in|far|twice)' AND c.same <> 'same' ORDER BY q.position;
RESET work_mem;
SET parallel_leader_participation = off;
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE query ~ 'apa_(in|far|twice)' AND c.same <> 'same' ORDER BY q.position;
SET max_parallel_workers = 0;
SELECT q.query, c.same FROM apa_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE query ~ 'apa_(in|far|twice)' AND c.same <> 'same' ORDER BY q.position;
RESET max_parallel_workers;
-- of the join: its rows, what the scan below it returned, whether rows went into files, and whether the aggregate read its outer side
CREATE FUNCTION apa_inner(query text) RETURNS TABLE (inner_rows int, scanned int, spilled boolean, pages boolean) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
    pages boolean;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, TIMING OFF, FORMAT json) ' || query INTO plan;
    plan := plan->0->'Plan';
    WHILE plan->>'Custom Plan Provider' IS DISTINCT FROM 'GpuHashJoin' LOOP
        pages := plan->>'Custom Plan Provider' = 'GpuHashAggregate' AND coalesce((plan->>'Pages')::int, 0) > 0;
        plan := plan->'Plans'->0;
    END LOOP;
    RETURN QUERY SELECT (plan->>'Inner Rows')::int, round((plan->'Plans'->1->>'Actual Rows')::numeric * (plan->'Plans'->1->>'Actual Loops')::numeric)::int,
        (plan->>'Disk Usage')::int > 0, pages;
END $$;
SET gpuhash.engine = cpu;
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 1;
SELECT x AS inner_side, f.* FROM unnest(ARRAY['apa_in', 'apa_far', 'apa_twice']) x, LATERAL apa_inner(format('SELECT count(*), sum(length(%s.t)) FROM apa JOIN %1$s USING (k)', x)) f;
SET work_mem = '64kB';
SELECT x AS inner_side, f.* FROM unnest(ARRAY['apa_in', 'apa_far', 'apa_twice']) x, LATERAL apa_inner(format('SELECT count(*), sum(length(%s.t)) FROM apa JOIN %1$s USING (k)', x)) f;
RESET parallel_leader_participation;
RESET gpuhash.engine;
SET max_parallel_workers_per_gather = 2;
-- once more for each outer row
SELECT o.h, s.* FROM generate_series(1, 3) o (h), LATERAL (SELECT count(*), sum(apa_in.n) FROM apa JOIN apa_in USING (k) WHERE apa_in.h = o.h OFFSET 0) s;
SET hash_mem_multiplier = 1;
RESET enable_parallel_hash;
RESET enable_nestloop;
RESET enable_mergejoin;
DROP FUNCTION apa_inner(text);
-- an inner side of which no row is left: a participant that comes to that late finds no table of another one that has gone
CREATE TABLE apa_wide WITH (autovacuum_enabled = off) AS SELECT i AS k, i % 9 AS h FROM generate_series(1, 100000) i;
ANALYZE apa_wide;
SET enable_parallel_hash = on;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET gpuhash.engine = cpu;
SET work_mem = '64MB';
DO $$
BEGIN
    FOR i IN 1..60 LOOP
        PERFORM count(*), sum(apa_wide.h) FROM apa JOIN apa_wide USING (k) WHERE apa_wide.h < 0;
    END LOOP;
END $$;
RESET gpuhash.engine;
SET work_mem = '64kB';
RESET enable_parallel_hash;
RESET enable_nestloop;
RESET enable_mergejoin;
DROP TABLE apa_in, apa_far, apa_twice, apa_wide;
-- a participant takes long to read the inner side of a join that is its own, over one that all share; the others
-- are through then, and no page is lost
CREATE FUNCTION apa_slow(x int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE COST 1000 AS $$
BEGIN
    IF pg_backend_pid() = current_setting('apa.slow')::int THEN
        PERFORM pg_sleep(0.5);
    END IF;
    RETURN x;
END $$;
SELECT set_config('apa.slow', pg_backend_pid()::text, false) IS NOT NULL AS leader_is_slow;
SET join_collapse_limit = 1;
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM apa JOIN apa_dim USING (g) JOIN generate_series(1, 1) AS o (h) USING (h) WHERE apa_slow(o.h) = o.h;
SELECT count(*), sum(id) FROM apa JOIN apa_dim USING (g) JOIN generate_series(1, 1) AS o (h) USING (h) WHERE apa_slow(o.h) = o.h;
SELECT h, count(*), sum(id) FROM apa JOIN apa_dim USING (g) JOIN generate_series(1, 1) AS o (h) USING (h) WHERE apa_slow(o.h) = o.h GROUP BY h;
SELECT apa_dim.h, count(*), sum(id) FROM apa JOIN apa_dim USING (g) LEFT JOIN (SELECT * FROM generate_series(1, 1) AS o (h) WHERE apa_slow(o.h) = o.h) o USING (h) GROUP BY 1 ORDER BY 1;
SET gpuhash.enabled = off;
SELECT count(*), sum(id) FROM apa JOIN apa_dim USING (g) JOIN generate_series(1, 1) AS o (h) USING (h);
RESET gpuhash.enabled;
RESET join_collapse_limit;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET gpuhash.force_offload;
DROP FUNCTION apa_explained(text), apa_slow(int);
DROP TABLE apa_queries, apa, apa_dim, apa_empty, apa_one;
