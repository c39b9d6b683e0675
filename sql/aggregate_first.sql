-- ORDER BY ... LIMIT above groups: those that cannot be among the first ones do not come out.
LOAD 'gpuhash';
SET gpuhash.engine = 'cpu';
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE af (id int, k int, up int, i int, big int8, n numeric(10, 2), free numeric, f float8, d date, t text, c text COLLATE "C", b bool);
INSERT INTO af SELECT i, i * 7919 % 10007, i / 2, CASE WHEN i % 11 > 0 THEN i * 7907 % 10007 END, CASE i % 5000 WHEN 17 THEN 9223372036854775807 ELSE i * 31 % 9973 END,
    CASE WHEN i % 3000 = 7 THEN 'NaN' ELSE i * 7901 % 10007 / 100.0 END, CASE i % 4001 WHEN 1 THEN 1e50 WHEN 2 THEN 'NaN' WHEN 3 THEN -1e50 ELSE i * 7883 % 10007 / 8.0 END,
    CASE i % 4501 WHEN 4 THEN 'NaN' WHEN 5 THEN '-infinity' ELSE i * 7879 % 10007 / 8.0 END, date '2000-01-01' + i * 7877 % 10007,
    'x' || i * 7919 % 10007, CASE WHEN i % 10 > 0 THEN 'x' || i * 7873 % 10007 END, i % 3 = 0 FROM generate_series(1, 20000) i;
ANALYZE af;
-- Runs a query without gpuhash and with it: how many groups were left out, how many rows there are or which error, and whether
-- both ways agree on them and their order.
CREATE FUNCTION compare_first(query text, OUT left_out text, OUT result text, OUT same bool) LANGUAGE plpgsql AS $$
DECLARE
    got text[];
    want text[];
    plan jsonb;
    share numeric;
BEGIN
    FOR enabled IN 0..1 LOOP
        PERFORM set_config('gpuhash.enabled', enabled::text, true);
        want := got;
        BEGIN
            EXECUTE format('SELECT array_agg(s::text) FROM (%s) s', query) INTO got;
            result := coalesce(cardinality(got), 0) || ' rows';
            CONTINUE WHEN enabled = 0;
            EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
            SELECT jsonb_path_query_first(plan, '$.**.Steps[*] ? (@."Step Type" == "First").Rows')::numeric / max(rows::numeric)
            INTO share FROM jsonb_path_query(plan, '$.**.Steps[*] ? (@."Step Type" == "Group").Rows') rows;
            left_out := CASE WHEN share < 0.3 THEN 'most' WHEN share < 1 THEN 'some' WHEN plan @? '$.**.Steps' THEN 'none' END;
        EXCEPTION WHEN OTHERS THEN
            result := SQLERRM;
            got := ARRAY[SQLSTATE, SQLERRM];
        END;
    END LOOP;
    same := got IS NOT DISTINCT FROM want;
END $$;
CREATE TABLE af_queries (position serial, query text);
INSERT INTO af_queries (query) VALUES
-- types and directions; NULLs first and last, NaN, what 128 bits do not hold; groups in the order of the key
    ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'),
    ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2 NULLS FIRST, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 10 OFFSET 20'),
    ('SELECT k, min(n) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'), ('SELECT k, sum(n) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(big) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'), ('SELECT k, max(big) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'),
    ('SELECT k, max(f) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'), ('SELECT k, min(f) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, max(d) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 7'), ('SELECT k, max(free) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 7'), ('SELECT k, sum(free) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 7'),
    ('SELECT c, count(*) FROM af GROUP BY c ORDER BY 1 LIMIT 10'), ('SELECT c, count(*) FROM af GROUP BY c ORDER BY 1 DESC NULLS FIRST LIMIT 10'), ('SELECT t, count(*) FROM af GROUP BY t ORDER BY t COLLATE "C" LIMIT 10'), ('SELECT t, sum(i) FROM af GROUP BY t ORDER BY 2, 1 LIMIT 10'),
    ('SELECT up, sum(i) FROM af GROUP BY up ORDER BY 1 LIMIT 10'), ('SELECT up, sum(i) FROM af GROUP BY up ORDER BY 1 DESC LIMIT 10'), ('SELECT n, count(*) FROM af GROUP BY n ORDER BY 1 DESC LIMIT 4'), ('SELECT d, count(*) FROM af GROUP BY d ORDER BY 1 DESC LIMIT 4'), ('SELECT f, count(*) FROM af GROUP BY f ORDER BY 1 DESC LIMIT 4'),
-- means; ties, which come out
    ('SELECT k, avg(i) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, avg(n) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 30'), ('SELECT k, avg(big) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, avg(f) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'),
    ('SELECT k FROM (SELECT k FROM af GROUP BY k ORDER BY sum(i) / 100 FETCH FIRST 10 ROWS WITH TIES) s ORDER BY k'), ('SELECT k, sum(i) / 100 FROM af GROUP BY k ORDER BY 2, k DESC LIMIT 10'), ('SELECT k, count(*) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT id % 9000, count(*) FROM af GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10'), ('SELECT k, bool_or(b) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'),
-- HAVING: all of it a program, a part, nothing, and what is left out by both
    ('SELECT k, sum(i) FROM af GROUP BY k HAVING count(*) > 1 ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k HAVING sum(i) > 15000 ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k HAVING sum(i) > 19900 ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k HAVING count(*) > 1 AND sum(n)::text > ''2'' ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k HAVING sum(i) > (SELECT avg(i) FROM af) ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k HAVING count(*) > 5 ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(n) FROM af GROUP BY k HAVING sum(n) <> ''NaN'' ORDER BY 2 DESC, 1 LIMIT 10'),
-- what is computed of groups has a program; with a subquery's result
    ('SELECT k + 1, sum(i) * 2 + 1, max(d) - 1 FROM af GROUP BY k ORDER BY sum(i) - k, 1 LIMIT 10'), ('SELECT k, 100.0 * sum(i) / (SELECT sum(i) FROM af) FROM af GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 10'), ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY abs(sum(i) - (SELECT avg(i) FROM af)), 1 LIMIT 10'), ('SELECT k, CASE WHEN sum(i) > 5000 THEN sum(n) ELSE 0 END FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'),
-- aggregates with DISTINCT, grouping sets, no aggregates; several keys; joins; groupings over groupings
    ('SELECT k, count(DISTINCT i), sum(i) FROM af GROUP BY k ORDER BY 3, 1 LIMIT 10'), ('SELECT k, sum(DISTINCT i), sum(DISTINCT big) FROM af GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'), ('SELECT k, b, sum(i), grouping(k) FROM af GROUP BY GROUPING SETS ((k, b), (k), ()) ORDER BY 3 DESC, 1, 2, 4 LIMIT 10'), ('SELECT k, up, sum(i) FROM af GROUP BY ROLLUP (k, up) ORDER BY 1 DESC, 2, 3 LIMIT 10'), ('SELECT k, b, grouping(b), sum(i) FROM af GROUP BY CUBE (k, b) ORDER BY 3 DESC, 4, 1, 2 LIMIT 10'),
    ('SELECT DISTINCT k, up FROM af ORDER BY 2 DESC, 1 LIMIT 10'), ('SELECT DISTINCT i + k FROM af ORDER BY 1 LIMIT 10'), ('SELECT k, up, b, sum(i) FROM af GROUP BY k, up, b ORDER BY 4 DESC NULLS LAST, 1, 2 LIMIT 10'), ('SELECT a.k, sum(z.i) FROM af a JOIN af z ON z.id = a.up GROUP BY a.k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 10'),
    ('SELECT s, count(*) FROM (SELECT k, sum(i) AS s FROM af GROUP BY k) q GROUP BY s ORDER BY 1 DESC NULLS LAST LIMIT 10'), ('SELECT count(*), sum(s) FROM (SELECT k, sum(i) AS s FROM af GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 10) q'), ('SELECT * FROM (SELECT k, sum(i) AS s FROM af GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 20) q WHERE s % 2 = 0 ORDER BY 1 LIMIT 3'),
    ('SELECT * FROM generate_series(1, 2) x CROSS JOIN LATERAL (SELECT k, sum(i + x) AS s FROM af WHERE id % 50 <> x GROUP BY k ORDER BY 2, 1 LIMIT 3) s'), ('SELECT * FROM generate_series(1, 2) x LEFT JOIN LATERAL (SELECT k, sum(i) AS s FROM af GROUP BY k ORDER BY 2, 1 LIMIT 3) s ON s.k <> x'), ('SELECT x, (SELECT k FROM af GROUP BY k HAVING sum(i) > x ORDER BY sum(i), 1 LIMIT 1) FROM generate_series(1, 5001, 2500) x'), ('SELECT x, (SELECT k FROM af GROUP BY k ORDER BY sum(i) % x, 1 LIMIT 1) FROM generate_series(20, 24) x'),
-- no few first ones are wanted, or it is not known how many
    ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 3000'), ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2, 1 LIMIT NULL OFFSET 9900'), ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2, 1 LIMIT (SELECT 7)'), ('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 0'), ('SELECT k % 900, sum(i) FROM af GROUP BY 1 ORDER BY 2, 1 LIMIT 5'), ('SELECT x, (SELECT max(s) FROM (SELECT sum(i) AS s FROM af GROUP BY k ORDER BY 1 LIMIT x) q) FROM generate_series(1, 3) x'),
-- no program: the key's order, what is computed
    ('SELECT t, count(*) FROM af GROUP BY t ORDER BY upper(t) COLLATE "C" LIMIT 10'), ('SELECT k, stddev(i) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, sum(i), md5(k::text) FROM af GROUP BY k ORDER BY 3 LIMIT 10'), ('SELECT k, sum(i), random() < 2 FROM af GROUP BY k ORDER BY 2, 3, 1 LIMIT 10'), ('SELECT k, generate_series(1, count(*)) FROM af GROUP BY k ORDER BY sum(i), 1, 2 LIMIT 10'),
-- errors of groups that are not wanted, and of those that HAVING leaves out
    ('SELECT k, sum(i), 1 / (k - 5000) FROM af GROUP BY k ORDER BY 2, 1, 3 LIMIT 10'), ('SELECT k, 1 / (k - 5000) FROM af GROUP BY k HAVING k <> 5000 ORDER BY sum(i), 1, 2 LIMIT 10'), ('SELECT k FROM af GROUP BY k ORDER BY 1 / (k - 5000), 1 LIMIT 10'), ('SELECT k FROM af GROUP BY k HAVING 1 / (k - 5000) < 5 ORDER BY sum(i), 1 LIMIT 10'), ('SELECT k FROM af GROUP BY k ORDER BY max(big) + 1, 1 LIMIT 10'), ('SELECT k, max(big) + 1 FROM af WHERE big < 10000 GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k FROM af GROUP BY k ORDER BY sum(i), 1 LIMIT -1'), ('SELECT k, sum(i) / (SELECT count(*) FROM af WHERE id < 0) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, 1.0 / nullif(k, 0) + (SELECT 1 / (min(id) - 1) FROM af) FROM af GROUP BY k ORDER BY 2, 1 LIMIT 10'), ('SELECT k, k + (SELECT 1 / (min(id) - 1) FROM af) FROM af GROUP BY k HAVING count(*) > 1000 ORDER BY 2, 1 LIMIT 10');
SELECT c.*, query FROM af_queries, LATERAL compare_first(query) c ORDER BY position;
-- groups in files
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT c.*, query FROM af_queries, LATERAL compare_first(query) c WHERE left_out = 'most' OR NOT same ORDER BY position;
-- participants, with groups in shared memory and in files; PostgreSQL runs some subqueries ahead then, and its Gather Merge has the
-- LIMIT of the first run in all runs
RESET work_mem;
SET max_parallel_workers_per_gather = 2;
DELETE FROM af_queries WHERE query ~ 'LIMIT x|min\(id\)|avg\(f\)';
SELECT c.*, query FROM af_queries, LATERAL compare_first(query) c WHERE position % 2 = 0 AND NOT same;
SET work_mem = '64kB';
SELECT c.*, query FROM af_queries, LATERAL compare_first(query) c WHERE position % 2 = 1 AND NOT same;
RESET work_mem;
RESET hash_mem_multiplier;
SELECT * FROM compare_first('SELECT up, sum(i) FROM af GROUP BY up ORDER BY 1 DESC LIMIT 10');
SELECT * FROM compare_first('SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 10 OFFSET 3');
SET max_parallel_workers_per_gather = 0;

-- a user's function is called as ever
CREATE SEQUENCE af_calls;
CREATE FUNCTION af_called(int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE COST 1 AS $$BEGIN PERFORM nextval('af_calls'); RETURN $1; END$$;
SELECT k, af_called(sum(i)) FROM af GROUP BY k ORDER BY sum(i), 1 LIMIT 2;
SELECT last_value = (SELECT count(DISTINCT k) FROM af) AS all_called FROM af_calls;
SELECT setval('af_calls', 1, false);
SELECT k, af_called(sum(i)) + (SELECT min(id) FROM af) AS x FROM af GROUP BY k ORDER BY sum(i), 1 LIMIT 2;
SELECT last_value = (SELECT count(DISTINCT k) FROM af) AS all_called FROM af_calls;

-- parameters, cursors, rows that are locked, EXPLAIN
SET plan_cache_mode = force_generic_plan;
PREPARE first_groups(int) AS SELECT k, sum(i) FROM af WHERE id <> $1 GROUP BY k HAVING count(*) < $1 ORDER BY 2, 1 LIMIT $1 OFFSET 1;
EXECUTE first_groups(3);
EXECUTE first_groups(2);
EXECUTE first_groups(NULL);
EXECUTE first_groups(0);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, sum(i) FROM af GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 5;
FETCH 4 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
MOVE FORWARD ALL IN c;
FETCH ABSOLUTE 2 FROM c;
COMMIT;
SELECT a.id, s.* FROM af a JOIN (SELECT k, sum(i) AS s FROM af GROUP BY k ORDER BY 2, 1 LIMIT 3) s ON s.k = a.k ORDER BY 1 FOR UPDATE OF a;
SELECT regexp_replace(line, 'First .rows=\d{2,3}\M', 'First (rows=N') AS line
FROM lines_of_plan('SELECT k, sum(i) FROM af WHERE id > 100 GROUP BY k HAVING k > 5000 AND count(*) > 1 ORDER BY 2, 1 LIMIT 5', 'Filter|Steps|Groups', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') line;
DROP TABLE af, af_queries;
DROP SEQUENCE af_calls;
DROP FUNCTION af_called, compare_first;
