-- calibrate.sql: the planner's costs of GpuHashJoin, from measurements.
--
--	psql -f test/bench/calibrate.sql
--
-- Times joins of many sizes by PostgreSQL's hash join and by GpuHashJoin, in one process.  A unit of
-- cost is worth what makes PostgreSQL's own costs fit its own times best; with it the times of
-- GpuHashJoin, less what its scans cost, are fitted by
--
--	setup_cost + build_tuple_cost x inner rows + probe_tuple_cost x outer rows
--
-- Both fits weigh relative errors.  Prints the settings, how well either fits, and where the costs
-- would choose what is slower.  \set engine cpu, cuda or auto before it for another engine.
\if :{?engine}
\else
\set engine auto
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

CREATE FUNCTION pg_temp.measure() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    query text := 'SELECT sum(o.v), sum(i.v) FROM calibrate_outer o JOIN calibrate_inner i ON i.k = o.k';
    row measured;
BEGIN
    FOREACH row.outer_rows IN ARRAY ARRAY[10000, 100000, 1000000, 4000000] LOOP
        FOREACH row.inner_rows IN ARRAY ARRAY[1000, 10000, 100000, 1000000] LOOP
            CONTINUE WHEN row.inner_rows > row.outer_rows;
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

SELECT pg_temp.measure();

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

\echo 'Settings'
SELECT round(setup_cost::numeric, 1) AS "gpuhash.setup_cost", round(build_tuple_cost::numeric, 4) AS "gpuhash.build_tuple_cost",
       round(probe_tuple_cost::numeric, 4) AS "gpuhash.probe_tuple_cost", round((1000 * unit.ms)::numeric, 3) AS "us a unit of cost"
FROM settings, unit;
