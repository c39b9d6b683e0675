-- Aggregation of more joins than one pipeline has probes or steps for: the lowest ones return their rows.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET join_collapse_limit = 1;
SET geqo = off;
SET jit = off;
SET gpuhash.engine = 'cpu';
DO $$
DECLARE
    keys text := '';
BEGIN
    FOR i IN 1 .. 20 LOOP
        keys := keys || format(', CASE WHEN (x + %1$s) %% 97 > 0 THEN x * (%1$s * 7 + 1) %% 90 END AS k%1$s', i);
        -- one key that no row has; the seventh table has two rows a key
        EXECUTE format('CREATE TABLE ac%s AS SELECT x %% 89 AS k, x * %s AS w, ''w'' || x AS t FROM generate_series(1, %s) x', i, i, CASE i WHEN 7 THEN 178 ELSE 89 END);
        EXECUTE format('ANALYZE ac%s', i);
    END LOOP;
    EXECUTE 'CREATE TABLE ac AS SELECT x AS v, x % 5 AS g' || keys || ' FROM generate_series(1, 3000) x';
    ANALYZE ac;
END $$;
-- Joins of n tables; further: a condition on each joined row.
CREATE FUNCTION pg_temp.chain(n int, type text, further text) RETURNS text LANGUAGE sql AS $$
    SELECT 'SELECT g, count(*), sum(v), ' || string_agg(format('sum(ac%1$s.w) AS w%1$s, count(ac%1$s.t) AS t%1$s', i), ', ' ORDER BY i) || ' FROM ac' ||
        string_agg(format(' %s ac%2$s ON ac%2$s.k = ac.k%2$s', type, i), '' ORDER BY i) ||
        coalesce(' WHERE ' || string_agg(format(further, i), ' AND ' ORDER BY i), '') || ' GROUP BY g'
    FROM generate_series(1, n) i
$$;
CREATE FUNCTION pg_temp.steps(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line LIKE '%Steps:%' THEN
            RETURN regexp_replace(trim(line), ' \(rows=[^)]*\)', '', 'g');
        END IF;
    END LOOP;
    RETURN 'no steps';
END $$;
CREATE FUNCTION pg_temp.differences(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    DROP TABLE IF EXISTS ac_found, ac_expected;
    SET LOCAL gpuhash.force_offload = on;
    EXECUTE 'CREATE TEMP TABLE ac_found AS ' || query;
    SET LOCAL gpuhash.enabled = off;
    EXECUTE 'CREATE TEMP TABLE ac_expected AS ' || query;
    IF NOT EXISTS (TABLE ac_found) THEN
        RETURN -1;
    END IF;
    SELECT count(*) INTO n FROM ((TABLE ac_found EXCEPT ALL TABLE ac_expected) UNION ALL (TABLE ac_expected EXCEPT ALL TABLE ac_found)) d;
    SET LOCAL gpuhash.enabled = on;
    RETURN n;
END $$;
SET client_min_messages = warning;
CREATE TEMP TABLE ac_queries AS
    SELECT n, type, further, pg_temp.chain(n, type, further) AS query FROM (VALUES
        (16, 'JOIN', NULL), (17, 'JOIN', NULL), (20, 'JOIN', NULL), (17, 'LEFT JOIN', NULL),
        (15, 'LEFT JOIN', 'ac%1$s.w IS DISTINCT FROM v'), (16, 'LEFT JOIN', 'ac%1$s.w IS DISTINCT FROM v'), (20, 'LEFT JOIN', 'ac%1$s.w IS DISTINCT FROM v')) q(n, type, further);
SET gpuhash.force_offload = on;
SELECT n, type, further IS NOT NULL AS further, pg_temp.steps(query) FROM ac_queries ORDER BY further NULLS FIRST, type, n;
SELECT count(*), sum(pg_temp.differences(query)) AS differences FROM ac_queries;
-- by participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), sum(pg_temp.differences(query)) AS differences FROM ac_queries;
RESET gpuhash.force_offload;
DROP TABLE ac_queries;
DO $$
BEGIN
    FOR i IN 1 .. 20 LOOP
        EXECUTE format('DROP TABLE ac%s', i);
    END LOOP;
    DROP TABLE ac;
END $$;
