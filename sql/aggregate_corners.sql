-- Aggregations of rare shapes: keys made equal by conditions, subqueries, reruns, columns without programs.
LOAD 'gpuhash';
SET client_min_messages = warning;
CREATE TABLE corner_names (id int PRIMARY KEY, name text);
INSERT INTO corner_names SELECT i, 'n' || i FROM generate_series(1, 3) i;
CREATE TABLE corner_rows (id int, a int, b int, n numeric(10, 2));
INSERT INTO corner_rows SELECT 1 + i % 3, i % 5 - 2, abs(i % 5 - 2), i % 7 FROM generate_series(1, 1000) i;
ANALYZE corner_names, corner_rows;

-- A condition makes one expression that is grouped by equal to another, beside a primary key: its columns are no keys.
SELECT offloaded > 0 AS offloaded, result, same
FROM compare_aggregate('SELECT name, abs(a), count(*) FROM corner_names JOIN corner_rows USING (id)
    WHERE abs(a) = b GROUP BY corner_names.id, b, abs(a)');
SELECT offloaded > 0 AS offloaded, result, same
FROM compare_aggregate('SELECT abs(a) + 1, count(*) FROM corner_rows WHERE abs(a) = b GROUP BY b, abs(a) HAVING abs(a) > 0');
SELECT offloaded > 0 AS offloaded, result, same
FROM compare_aggregate('SELECT abs(a), b, count(*) FROM corner_rows WHERE abs(a) = 2 AND b = 2 GROUP BY abs(a), b');

-- A key of type numeric with a subquery that was not run yet, or with an error that PostgreSQL does not come to.
SELECT * FROM compare_aggregate('SELECT CASE WHEN a > (SELECT min(id) FROM corner_names) THEN n ELSE 0.00 END, count(*)
    FROM corner_rows GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT sum(CASE WHEN a > (SELECT min(id) FROM corner_names) THEN n ELSE 0 END),
    sum(n * (SELECT min(id) + 0.5 FROM corner_names)) FROM corner_rows');
SET plan_cache_mode = force_generic_plan;
SET max_parallel_workers_per_gather = 0;
SET gpuhash.force_offload = on;
PREPARE corner_key (numeric) AS
    SELECT CASE WHEN a > 1 / $1 THEN n ELSE 0.00 END, count(*) FROM corner_rows WHERE a < -10 GROUP BY 1;
EXPLAIN (COSTS OFF) EXECUTE corner_key (0);
EXECUTE corner_key (0);

-- Memory of an aggregation that is run again and again, and of one that waits for a subquery that is never run.
BEGIN;
DECLARE corner_again CURSOR FOR
    SELECT (SELECT sum(n) FROM corner_rows r WHERE r.a = i % 5 - 2) FROM generate_series(1, 3000) i;
MOVE FORWARD ALL IN corner_again;
SELECT sum(total_bytes) < 2000000 AS little FROM pg_backend_memory_contexts
WHERE name ~ 'GpuHashAggregate' OR name = 'ExecutorState';
COMMIT;
CREATE TABLE corner_pages AS SELECT i AS a, repeat('x', 1000) AS filler FROM generate_series(1, 3000) i;
BEGIN;
DECLARE corner_waits CURSOR FOR
    SELECT count(*) FROM corner_pages WHERE a < 0 AND a > (SELECT min(id) FROM corner_names);
MOVE FORWARD 1 IN corner_waits;
SELECT sum(total_bytes) < 2000000 AS little FROM pg_backend_memory_contexts
WHERE name ~ 'GpuHashAggregate' OR name = 'ExecutorState';
COMMIT;

-- A built-in function that runs a query is not evaluated ahead, where its error would be forgotten: it would leave that query open.
CREATE ROLE regress_corner_reader;
CREATE TABLE corner_secret (x int);
GRANT SELECT ON corner_rows TO regress_corner_reader;
PREPARE corner_query (regclass) AS
    SELECT count(*) FROM corner_rows WHERE a < -10 AND a > position('x' in table_to_xml($1, true, false, '')::text);
SET ROLE regress_corner_reader;
EXECUTE corner_query ('corner_secret');
RESET ROLE;
REVOKE SELECT ON corner_rows FROM regress_corner_reader;
DROP ROLE regress_corner_reader;

-- Joins by columns of which no program reads values return their rows, instead of having all of them handed back.
CREATE TYPE corner_color AS ENUM ('red', 'green', 'blue');
CREATE TABLE corner_colored AS SELECT (ARRAY['red', 'green', 'blue'])[1 + i % 3]::corner_color AS color, i AS a FROM generate_series(1, 1000) i;
CREATE TABLE corner_colors AS SELECT color, color::text AS name FROM unnest(enum_range(NULL::corner_color)) color;
ANALYZE corner_colored, corner_colors;
CREATE FUNCTION handed_back(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ '(Rows Handed Back|Pages):' THEN
            RETURN NEXT regexp_replace(trim(line), 'Pages: [1-9]\d*', 'Pages: some');
        END IF;
    END LOOP;
END $$;
SELECT handed_back('SELECT name, sum(a) FROM corner_colored JOIN corner_colors USING (color) GROUP BY name');
SELECT * FROM compare_aggregate('SELECT name, sum(a) FROM corner_colored JOIN corner_colors USING (color) GROUP BY name');

-- Joins to rows that share their key with others are no reason for that: a row becomes several in the pipeline.
CREATE TABLE corner_pairs AS SELECT i % 100 AS a, i AS b FROM generate_series(1, 200) i;
CREATE TABLE corner_few AS SELECT i % 100 AS a, i AS b FROM generate_series(1, 105) i;
ANALYZE corner_pairs, corner_few;
-- (so does a device)
SET gpuhash.engine = 'cpu';
SELECT handed_back('SELECT count(*), sum(b) FROM corner_colored JOIN corner_pairs USING (a)');
SELECT handed_back('SELECT count(*), sum(b) FROM corner_colored JOIN corner_few USING (a)');
RESET gpuhash.engine;
SELECT * FROM compare_aggregate('SELECT a % 3, count(*), sum(b) FROM corner_colored JOIN corner_pairs USING (a) GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT a % 3, count(*), sum(b) FROM corner_colored JOIN corner_few USING (a) GROUP BY 1');
