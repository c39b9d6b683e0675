-- calibrate.sql: the planner's costs of GpuHashJoin, and of scans by a GPU, from measurements.
--
--	psql -f test/bench/calibrate.sql
--
-- Times joins of many sizes by PostgreSQL's hash join and by GpuHashJoin, in one process.  A unit of
-- cost is worth what makes PostgreSQL's own costs fit its own times best; with it the times of
-- GpuHashJoin, less what its scans cost, are fitted by
--
--	setup_cost + build_tuple_cost x inner rows + probe_tuple_cost x outer rows
--
-- Both fits weigh relative errors.  Prints how well either fits, and where the costs would choose what is slower.
--
-- Then sums over plain tables of several sizes, in schema gpuhash_calibrate, which goes in the end, are timed where
-- a GPU reads them: gpuhash is in shared_preload_libraries then.  In one process their times are
-- device_start_cost + device_page_cost x pages; with as many processes as there may be, device_bus_cost is what
-- a page adds.
--
-- Prints ALTER SYSTEM commands for the settings; of a GPU only where one was measured.
--
-- -v engine=cpu, cuda or auto: the engine (default: auto); -v largest=ROWS: of the largest table (default: 4000000)
\if :{?engine}
\else
\set engine auto
\endif
\if :{?largest}
\else
\set largest 4000000
\endif
\set QUIET on
LOAD 'gpuhash';
SET client_min_messages = warning;
SET gpuhash.engine = :'engine';
-- the joins alone
SET gpuhash.enable_aggregate = off;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '1GB';
SET jit = off;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET gpuhash.setup_cost = 0;
SET gpuhash.build_tuple_cost = 0;
SET gpuhash.probe_tuple_cost = 0;

CREATE TEMP TABLE measured (outer_rows float8, inner_rows float8, native_ms float8, native_cost float8, gpuhash_ms float8, other_cost float8);

-- What the planner thinks that the query costs, and whether it would use GpuHashJoin.
CREATE FUNCTION pg_temp.cost_of(query text, OUT cost float8, OUT offloaded boolean) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    cost := (plan -> 0 -> 'Plan' ->> 'Total Cost')::float8;
    offloaded := plan::text LIKE '%GpuHashJoin%';
END $$;

-- Milliseconds of the query: the least of several runs, which others on the machine disturb least.
CREATE FUNCTION pg_temp.time_of(query text, runs int) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz;
    ms float8;
    least_ms float8;
BEGIN
    FOR run IN 0 .. runs LOOP
        start := clock_timestamp();
        EXECUTE query;
        ms := 1000 * extract(epoch FROM clock_timestamp() - start);
        -- the first reads the tables
        IF run > 0 THEN
            least_ms := least(least_ms, ms);
        END IF;
    END LOOP;
    RETURN least_ms;
END $$;

CREATE FUNCTION pg_temp.measure(largest float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    query text := 'SELECT sum(o.v), sum(i.v) FROM calibrate_outer o JOIN calibrate_inner i ON i.k = o.k';
    row measured;
BEGIN
    FOREACH row.outer_rows IN ARRAY ARRAY[10000, 100000, 1000000, 4000000] LOOP
        FOREACH row.inner_rows IN ARRAY ARRAY[1000, 10000, 100000, 1000000] LOOP
            CONTINUE WHEN row.inner_rows > row.outer_rows OR row.outer_rows > largest;
            DROP TABLE IF EXISTS calibrate_outer, calibrate_inner;
            EXECUTE format('CREATE TEMP TABLE calibrate_outer AS SELECT hashint8extended(1 + (hashint8extended(i, 5) & 9223372036854775807) %% %s, 7) AS k, i AS v FROM generate_series(1, %s::bigint) i', row.inner_rows, row.outer_rows);
            EXECUTE format('CREATE TEMP TABLE calibrate_inner AS SELECT hashint8extended(i, 7) AS k, i AS v FROM generate_series(1, %s::bigint) i', row.inner_rows);
            ANALYZE calibrate_outer, calibrate_inner;
            PERFORM set_config('gpuhash.enabled', 'off', true);
            row.native_ms := pg_temp.time_of(query, 3);
            row.native_cost := (pg_temp.cost_of(query)).cost;
            PERFORM set_config('gpuhash.enabled', 'on', true);
            -- the settings are 0: what is left are the scans, the rows that come out, the aggregate
            row.other_cost := (pg_temp.cost_of(query)).cost;
            PERFORM set_config('gpuhash.force_offload', 'on', true);
            row.gpuhash_ms := pg_temp.time_of(query, 3);
            PERFORM set_config('gpuhash.force_offload', 'off', true);
            INSERT INTO measured VALUES (row.*);
        END LOOP;
    END LOOP;
END $$;

-- x of the three normal equations a x = b, by Cramer's rule.
CREATE FUNCTION pg_temp.determinant(a float8[]) RETURNS float8 LANGUAGE sql AS $$
    SELECT a[1] * (a[5] * a[9] - a[6] * a[8]) - a[2] * (a[4] * a[9] - a[6] * a[7]) + a[3] * (a[4] * a[8] - a[5] * a[7]) $$;
CREATE FUNCTION pg_temp.solve(a float8[], b float8[]) RETURNS float8[] LANGUAGE sql AS $$
    SELECT ARRAY[pg_temp.determinant(ARRAY[b[1], a[2], a[3], b[2], a[5], a[6], b[3], a[8], a[9]]),
                 pg_temp.determinant(ARRAY[a[1], b[1], a[3], a[4], b[2], a[6], a[7], b[3], a[9]]),
                 pg_temp.determinant(ARRAY[a[1], a[2], b[1], a[4], a[5], b[2], a[7], a[8], b[3]])] $$;

SELECT pg_temp.measure(:largest) \g /dev/null

-- milliseconds of a unit of cost
CREATE TEMP TABLE unit AS SELECT sum(native_cost / native_ms) / sum((native_cost / native_ms) ^ 2) AS ms FROM measured;

-- of the rest, weighed by the whole time
CREATE TEMP TABLE fitted AS
SELECT pg_temp.solve(ARRAY[sum(w), sum(w * inner_rows), sum(w * outer_rows),
                           sum(w * inner_rows), sum(w * inner_rows ^ 2), sum(w * inner_rows * outer_rows),
                           sum(w * outer_rows), sum(w * inner_rows * outer_rows), sum(w * outer_rows ^ 2)],
                     ARRAY[sum(w * y), sum(w * y * inner_rows), sum(w * y * outer_rows)]) AS numerators,
       pg_temp.determinant(ARRAY[sum(w), sum(w * inner_rows), sum(w * outer_rows),
                                 sum(w * inner_rows), sum(w * inner_rows ^ 2), sum(w * inner_rows * outer_rows),
                                 sum(w * outer_rows), sum(w * inner_rows * outer_rows), sum(w * outer_rows ^ 2)]) AS denominator
FROM (SELECT *, (unit.ms / gpuhash_ms) ^ 2 AS w, gpuhash_ms / unit.ms - other_cost AS y FROM measured, unit) m;

CREATE TEMP TABLE settings AS
SELECT greatest(numerators[1] / denominator, 0) AS setup_cost, greatest(numerators[2] / denominator, 0) AS build_tuple_cost,
       numerators[3] / denominator AS probe_tuple_cost
FROM fitted;

\echo
\echo 'Sizes: times, and what the costs say with the settings below'
SELECT outer_rows, inner_rows, round(native_ms::numeric, 1) AS native_ms, round(gpuhash_ms::numeric, 1) AS gpuhash_ms,
       round((gpuhash_ms / native_ms)::numeric, 2) AS ratio, round((native_cost * unit.ms / native_ms)::numeric, 2) AS native_fit,
       round(((other_cost + setup_cost + build_tuple_cost * inner_rows + probe_tuple_cost * outer_rows) * unit.ms / gpuhash_ms)::numeric, 2) AS gpuhash_fit,
       other_cost + setup_cost + build_tuple_cost * inner_rows + probe_tuple_cost * outer_rows < native_cost AS chosen,
       CASE WHEN (other_cost + setup_cost + build_tuple_cost * inner_rows + probe_tuple_cost * outer_rows < native_cost) <> (gpuhash_ms < native_ms)
            THEN 'wrong by ' || round(abs(gpuhash_ms / native_ms - 1)::numeric * 100) || ' %' ELSE '' END AS choice
FROM measured, unit, settings ORDER BY 1, 2;

-- ------------------------------------------------------- scans by a GPU

RESET gpuhash.setup_cost;
SET gpuhash.enable_aggregate = on;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
DROP SCHEMA IF EXISTS gpuhash_calibrate CASCADE;
CREATE SCHEMA gpuhash_calibrate;
SELECT format('CREATE UNLOGGED TABLE gpuhash_calibrate.pages_%s AS SELECT hashint8(i) AS k, i AS v, i %% 1000 AS g FROM generate_series(1, %s::bigint) i', part, :largest / part)
FROM unnest(ARRAY[1, 2, 4, 8]) part \gexec
-- pages that are not all-visible are looked at row by row
VACUUM ANALYZE gpuhash_calibrate.pages_1, gpuhash_calibrate.pages_2, gpuhash_calibrate.pages_4, gpuhash_calibrate.pages_8;

CREATE TEMP TABLE measured_pages (pages float8, workers int, ms float8);

-- The sum over a table where a GPU does all of it; nothing is measured elsewhere.
CREATE FUNCTION pg_temp.measure_pages(workers int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part int;
    plan json;
BEGIN
    PERFORM set_config('gpuhash.force_offload', 'on', true), set_config('max_parallel_workers_per_gather', workers::text, true);
    FOREACH part IN ARRAY ARRAY[1, 2, 4, 8] LOOP
        EXECUTE format('ALTER TABLE gpuhash_calibrate.pages_%s SET (parallel_workers = %s)', part, workers);
        EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) SELECT sum(v) FROM gpuhash_calibrate.pages_%s', part) INTO plan;
        CONTINUE WHEN plan::text !~ '"Node Type": "Custom Scan"' OR plan::text !~ '"Engine": "cuda"' OR plan::text ~ '"Fallback Reason"';
        INSERT INTO measured_pages
        SELECT pg_relation_size(format('gpuhash_calibrate.pages_%s', part)) / current_setting('block_size')::float8, workers,
               pg_temp.time_of(format('SELECT sum(v) FROM gpuhash_calibrate.pages_%s', part), 5);
    END LOOP;
END $$;

SELECT pg_temp.measure_pages(0) \g /dev/null
SELECT pg_temp.measure_pages(least(8, current_setting('max_parallel_workers')::int, current_setting('max_worker_processes')::int))
WHERE EXISTS (SELECT FROM measured_pages) \g /dev/null
DROP SCHEMA gpuhash_calibrate CASCADE;

-- A line through the times of one process, and of all: milliseconds of a start, of a page.
CREATE TEMP TABLE pages_fitted AS
SELECT regr_intercept(ms, pages) FILTER (WHERE workers = 0) AS start_ms,
       regr_slope(ms, pages) FILTER (WHERE workers = 0) AS page_ms,
       regr_slope(ms, pages) FILTER (WHERE workers > 0) AS bus_ms
FROM measured_pages;

SELECT count(*) > 0 AS has_pages FROM measured_pages \gset
\if :has_pages
\echo
\echo 'Sums by a GPU over plain tables, and what the settings below make of them'
SELECT pages, workers, round(ms::numeric, 2) AS ms,
       round((CASE WHEN workers = 0 THEN start_ms + page_ms * pages END / ms)::numeric, 2) AS fit
FROM measured_pages, pages_fitted ORDER BY workers, pages;
\else
\echo
\echo 'No GPU has read a table here: nothing was measured of it, and gpuhash.device_page_cost, device_bus_cost and device_start_cost stay as they are.'
\echo 'That takes a GPU, gpuhash in shared_preload_libraries, and engine = auto or cuda.'
\endif

-- settings are not below 0
\echo
\echo 'Settings'
\pset tuples_only on
\pset format unaligned
SELECT '-- ' || round((1000 * unit.ms)::numeric, 3) || ' us a unit of cost; probe_tuple_cost as fitted: ' || round(probe_tuple_cost::numeric, 4)
FROM settings, unit;
SELECT format('ALTER SYSTEM SET gpuhash.%s = %s;', name, round(greatest(value, 0)::numeric, digits))
FROM settings, unit, pages_fitted,
     LATERAL (VALUES ('setup_cost', setup_cost, 1), ('build_tuple_cost', build_tuple_cost, 4), ('probe_tuple_cost', probe_tuple_cost, 4),
                     ('device_start_cost', start_ms / unit.ms, 1), ('device_page_cost', page_ms / unit.ms, 4),
                     ('device_bus_cost', bus_ms / unit.ms, 4)) v(name, value, digits)
WHERE value IS NOT NULL;
