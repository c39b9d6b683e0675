-- Groups that do not fit in work_mem x hash_mem_multiplier.
LOAD 'gpuhash';
SET work_mem = '64kB';
SET hash_mem_multiplier = 1.0;
CREATE TABLE asp AS SELECT i AS id, (i * 7919::int8) % 200000 AS k, i % 3000 AS m, CASE WHEN i % 5 > 0 THEN 'text ' || (i * 31) % 20000 END AS t, (i % 1000)::numeric(12, 3) AS n,
    (i % 7)::float8 AS f, CASE WHEN i % 3 = 0 THEN 1e40 ELSE i END::numeric(60, 2) AS w FROM generate_series(1, 250000) i;
ANALYZE asp;
SELECT * FROM compare_aggregate('SELECT k, count(*), sum(id), sum(n), min(f) FROM asp GROUP BY k');
SELECT * FROM compare_aggregate('SELECT t, count(*), max(id), bool_or(m > 5) FROM asp GROUP BY t');
SELECT * FROM compare_aggregate('SELECT t, m % 7, sum(f), avg(n), count(DISTINCT m) FROM asp WHERE id <= 50000 GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT t, m % 7, sum(f), avg(n) FROM asp WHERE id <= 50000 GROUP BY 1, 2 HAVING count(*) > 1');
-- values that 128 bits do not hold, in groups and as keys
SELECT * FROM compare_aggregate('SELECT k % 20000, sum(w), avg(w), min(w), max(w), var_pop(w) FROM asp WHERE id <= 60000 GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT w, count(*), sum(w) FROM asp WHERE id <= 30000 GROUP BY w');
SELECT * FROM compare_aggregate('SELECT w * 1e15, count(*), sum(n) FROM asp WHERE id <= 30000 GROUP BY 1');
-- sums, averages and moments of integers are exact however they are put together
SELECT * FROM compare_aggregate('SELECT k % 30000, sum(id * 1000000007::int8), avg(id), stddev(id), variance(n), sum(n * n) FROM asp GROUP BY 1');
-- keys that are one number, with NULLs beside 0; and more aggregates beside such than a group in a file has place for
SELECT * FROM compare_aggregate('SELECT nullif(k % 20000, 5)::int, nullif(m % 3, 1)::int2, count(*), sum(id), variance(m) FROM asp GROUP BY 1, 2');
SELECT * FROM compare_aggregate((SELECT 'SELECT nullif(k % 20000, 5)::int, ' || string_agg(format('max(id + %s)', i), ', ') || ' FROM asp WHERE id <= 60000 GROUP BY 1' FROM generate_series(1, 60) i));
-- floats whose sums are exact
SELECT * FROM compare_aggregate('SELECT k % 30000, sum(f), avg(f), max(f), min(f) FROM asp GROUP BY 1');
-- long keys; one group that is everything's
CREATE TABLE asp_long AS SELECT i AS id, repeat(md5((i % 3000)::text), 20) AS long, CASE WHEN i % 100 = 0 THEN i ELSE 0 END AS skewed FROM generate_series(1, 12000) i;
ANALYZE asp_long;
SELECT * FROM compare_aggregate('SELECT long, count(*), sum(id) FROM asp_long GROUP BY long');
SELECT * FROM compare_aggregate('SELECT skewed, long, count(*) FROM asp_long GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT skewed, sum(id) FROM asp_long GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT id, count(*) FROM asp_long WHERE id < 0 GROUP BY id');
-- groups of many numbers: memory is full at the first, a middle and the last row
DO $$
DECLARE
    c record;
BEGIN
    FOR n IN 300..9000 BY 1013 LOOP
        SELECT * INTO c FROM compare_aggregate(format('SELECT id %% %s, count(*), sum(m), max(t COLLATE "C") FROM asp WHERE id <= %s GROUP BY 1', n, n + n % 500));
        IF c.same <> 'same' THEN
            RAISE WARNING '% groups: %', n, c.same;
        END IF;
        SELECT * INTO c FROM compare_aggregate(format('SELECT id %% %s, count(*), sum(m), bool_and(f > 1) FROM asp WHERE id <= %s GROUP BY 1', n, n + n % 500));
        IF c.same <> 'same' THEN
            RAISE WARNING '% groups: %', n, c.same;
        END IF;
    END LOOP;
END $$;
-- rescans start from the beginning, and memory stays bounded
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
SELECT g, (SELECT count(*) FROM (SELECT m FROM asp WHERE id % 50 = x.g GROUP BY m, id HAVING sum(n) > g * 10) s) FROM generate_series(0, 3) x(g);
SELECT count(*) FROM (SELECT k FROM asp GROUP BY k LIMIT 10) s;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, count(*) FROM asp GROUP BY k;
MOVE 150000 IN c;
MOVE BACKWARD ALL IN c;
MOVE FORWARD ALL IN c;
CLOSE c;
COMMIT;
CREATE FUNCTION asp_explained(query text) RETURNS TABLE (node text, groups_spilled boolean, within_memory boolean) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    plan := plan->0->'Plan';
    RETURN QUERY SELECT plan->>'Custom Plan Provider', (plan->>'Disk Usage')::int > 0, (plan->>'Memory Usage')::int < 800;
END $$;
SELECT * FROM asp_explained('SELECT k, count(*), sum(n) FROM asp GROUP BY k');
SELECT * FROM asp_explained('SELECT k % 10, count(*), sum(n) FROM asp GROUP BY 1');
SELECT * FROM asp_explained('SELECT long, count(*) FROM asp_long GROUP BY 1');
-- the limit on temporary files holds
SET temp_file_limit = '200kB';
DO $$
BEGIN
    PERFORM k, count(*) FROM asp GROUP BY k;
    RAISE EXCEPTION 'no limit was met';
EXCEPTION WHEN configuration_limit_exceeded THEN NULL;
END $$;
RESET temp_file_limit;
SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM asp GROUP BY k) s;
RESET gpuhash.force_offload;
DROP FUNCTION asp_explained(text);
DROP TABLE asp, asp_long;
