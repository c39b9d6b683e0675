-- small_joins.sql: where GpuHashJoin begins to pay.
--
--	psql -f test/bench/small_joins.sql
--
-- For outer and inner sides of growing size: the median time of a join by
-- PostgreSQL's hash join and by GpuHashJoin, in turn, their ratio, and whether the
-- planner takes GpuHashJoin by itself.  In one process, on the CPU engine.
LOAD 'gpuhash';
SET client_min_messages = warning;
SET gpuhash.engine = 'cpu';
SET gpuhash.enable_aggregate = off;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '256MB';
SET jit = off;
SET enable_nestloop = off;
SET enable_mergejoin = off;

CREATE FUNCTION pg_temp.time_of(query text, setting text, value text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz;
BEGIN
    PERFORM set_config('gpuhash.enabled', 'on', true), set_config('gpuhash.force_offload', 'off', true);
    PERFORM set_config(setting, value, true);
    start := clock_timestamp();
    EXECUTE query;
    RETURN 1000 * extract(epoch FROM clock_timestamp() - start);
END $$;

CREATE FUNCTION pg_temp.small_joins() RETURNS TABLE (outer_rows int, inner_rows int, native_ms numeric, gpuhash_ms numeric, ratio numeric, chosen boolean)
LANGUAGE plpgsql AS $$
DECLARE
    query text := 'SELECT sum(o.v), sum(i.v) FROM small_outer o JOIN small_inner i ON i.k = o.k';
    native float8[];
    offloaded float8[];
    line text;
BEGIN
    FOREACH outer_rows IN ARRAY ARRAY[1000, 10000, 50000, 100000, 300000, 1000000] LOOP
        FOREACH inner_rows IN ARRAY ARRAY[100, 1000, 10000, 100000, 300000] LOOP
            DROP TABLE IF EXISTS small_outer, small_inner;
            EXECUTE format('CREATE TEMP TABLE small_outer AS SELECT i * 7919::bigint %% %s AS k, i AS v FROM generate_series(1, %s) i', inner_rows, outer_rows);
            EXECUTE format('CREATE TEMP TABLE small_inner AS SELECT i::bigint AS k, i AS v FROM generate_series(1, %s) i', inner_rows);
            ANALYZE small_outer, small_inner;
            native := '{}';
            offloaded := '{}';
            FOR repetition IN 1 .. CASE WHEN outer_rows < 300000 THEN 15 ELSE 5 END LOOP
                native := native || pg_temp.time_of(query, 'gpuhash.enabled', 'off');
                offloaded := offloaded || pg_temp.time_of(query, 'gpuhash.force_offload', 'on');
            END LOOP;
            SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) INTO native_ms FROM unnest(native) t;
            SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) INTO gpuhash_ms FROM unnest(offloaded) t;
            ratio := round(gpuhash_ms / native_ms, 2);
            native_ms := round(native_ms, 2);
            gpuhash_ms := round(gpuhash_ms, 2);
            PERFORM set_config('gpuhash.force_offload', 'off', true), set_config('gpuhash.enabled', 'on', true);
            chosen := false;
            FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
                chosen := chosen OR line LIKE '%GpuHashJoin%';
            END LOOP;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END $$;

SELECT * FROM pg_temp.small_joins();
