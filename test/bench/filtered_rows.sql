-- Rows of a filtered scan, GpuHashScan against PostgreSQL's Seq Scan: psql -X -f test/bench/filtered_rows.sql
--
-- 5 M rows of 52 bytes (-v rows=N for others), one process; medians of 5, taken in turns; Execution Time of
-- EXPLAIN (ANALYZE, TIMING OFF), so that nothing is sent to a client.  `chosen`: what the planner takes by itself.
\if :{?rows}
\else
	\set rows 5000000
\endif
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET jit = off;
DROP TABLE IF EXISTS filtered_rows;
CREATE TABLE filtered_rows (k bigint, a int, v int, d bigint);
INSERT INTO filtered_rows SELECT i, i * 7919 % 1000003, i % 1000, i FROM generate_series(1::bigint, :rows) i;
VACUUM ANALYZE filtered_rows;

CREATE FUNCTION pg_temp.run(query text, enabled bool, forced bool, OUT ms float8, OUT plan text, OUT nrows bigint) LANGUAGE plpgsql AS $$
DECLARE
    j json;
BEGIN
    PERFORM set_config('gpuhash.enabled', enabled::text, true), set_config('gpuhash.force_offload', forced::text, true);
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) ' || query INTO j;
    ms := j -> 0 ->> 'Execution Time';
    plan := coalesce(j #>> '{0,Plan,Custom Plan Provider}', j #>> '{0,Plan,Node Type}');
    nrows := (j #>> '{0,Plan,Actual Rows}')::float8;
END $$;
CREATE FUNCTION pg_temp.compare(condition text, OUT rows bigint, OUT postgresql_ms numeric, OUT gpuhash_ms numeric, OUT ratio numeric, OUT chosen text) LANGUAGE plpgsql AS $$
DECLARE
    query text := 'SELECT k, v FROM filtered_rows WHERE ' || condition;
    theirs float8[];
    ours float8[];
BEGIN
    FOR i IN 1..5 LOOP
        theirs := theirs || (pg_temp.run(query, false, false)).ms;
        ours := ours || (pg_temp.run(query, true, true)).ms;
    END LOOP;
    SELECT r.nrows, r.plan INTO rows, chosen FROM pg_temp.run(query, true, false) r;
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) INTO postgresql_ms FROM unnest(theirs) x;
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) INTO gpuhash_ms FROM unnest(ours) x;
    ratio := round(gpuhash_ms / postgresql_ms, 2);
    postgresql_ms := round(postgresql_ms, 1);
    gpuhash_ms := round(gpuhash_ms, 1);
END $$;

SELECT part, conditions, c.*
FROM (VALUES ('0.1 %', 1000), ('1 %', 10000), ('10 %', 100000), ('50 %', 500000), ('90 %', 900000)) p (part, below),
     (VALUES (1, 'a < %s'), (4, 'a >= 0 AND a < %s AND v <> 7 AND d IS NOT NULL')) q (conditions, condition),
     LATERAL pg_temp.compare(format(condition, below)) c
ORDER BY conditions, below;
DROP TABLE filtered_rows;
