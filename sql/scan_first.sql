-- ORDER BY ... LIMIT above a GpuHashScan: rows that are not wanted do not come out.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET gpuhash.engine = 'cpu';
SET gpuhash.force_offload = on;
CREATE TABLE sf (id int, g int, i int, n numeric(10, 2), free numeric, f float8, d date, t text, c text COLLATE "C", j jsonb)
    WITH (fillfactor = 20);
INSERT INTO sf SELECT i, i % 7, CASE WHEN i % 11 > 0 THEN i * 7919 % 10007 END, CASE WHEN i % 500 = 3 THEN 'NaN' ELSE (i * 7919 % 10007) / 100.0 END,
    i * 7919 % 10007, CASE i % 501 WHEN 4 THEN 'NaN' WHEN 5 THEN '-infinity' ELSE i * 7919 % 10007 / 8.0 END, date '2000-01-01' + i * 7919 % 10007,
    'x' || i * 7919 % 10007, 'x' || i * 7919 % 10007, jsonb_build_object('a', i) FROM generate_series(1, 10000) i;
DELETE FROM sf WHERE id % 17 = 3;
UPDATE sf SET i = i + 1 WHERE id % 19 = 5;
ANALYZE sf;

-- Runs a query without gpuhash and with it: how many rows a scan left out, how many there are or which error, and whether
-- both ways agree on them and their order.
CREATE FUNCTION compare_first(query text, OUT left_out text, OUT result text, OUT same bool) LANGUAGE plpgsql AS $$
DECLARE
    got text[];
    want text[];
    plan jsonb;
    n int;
BEGIN
    FOR enabled IN 0..1 LOOP
        PERFORM set_config('gpuhash.enabled', enabled::text, true);
        want := got;
        BEGIN
            EXECUTE format('SELECT array_agg(s::text) FROM (%s) s', query) INTO got;
            result := coalesce(cardinality(got), 0) || ' rows';
            EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
            n := jsonb_path_query_first(plan, '$.**."Rows Left Out"')::int;
            left_out := CASE WHEN n > 5000 THEN 'most' WHEN n > 0 THEN 'some' WHEN n = 0 THEN 'none' END;
        EXCEPTION WHEN OTHERS THEN
            result := SQLERRM;
            got := ARRAY[SQLSTATE, SQLERRM];
        END;
    END LOOP;
    same := got IS NOT DISTINCT FROM want;
END $$;

-- types and directions; NULLs first and last, NaN
SELECT * FROM compare_first('SELECT * FROM sf ORDER BY i, id LIMIT 10');
SELECT * FROM compare_first('SELECT * FROM sf ORDER BY i DESC, id LIMIT 10');
SELECT * FROM compare_first('SELECT * FROM sf ORDER BY i NULLS FIRST, id LIMIT 10');
SELECT * FROM compare_first('SELECT * FROM sf ORDER BY i DESC NULLS LAST, id LIMIT 10 OFFSET 5');
SELECT * FROM compare_first('SELECT id, n FROM sf ORDER BY n, id LIMIT 10');
SELECT * FROM compare_first('SELECT id, n FROM sf ORDER BY n DESC, id LIMIT 30');
SELECT * FROM compare_first('SELECT id, f FROM sf ORDER BY f, id LIMIT 30');
SELECT * FROM compare_first('SELECT id, f FROM sf ORDER BY f DESC, id LIMIT 30');
SELECT * FROM compare_first('SELECT id, d FROM sf ORDER BY d DESC, id LIMIT 3');
SELECT * FROM compare_first('SELECT id, c FROM sf ORDER BY c, id LIMIT 3');
SELECT * FROM compare_first('SELECT id, free FROM sf ORDER BY free, id LIMIT 10');
-- conditions; one whose result is there when the first page was read
SELECT * FROM compare_first('SELECT id, i FROM sf WHERE g = 3 AND i > 100 ORDER BY i, id LIMIT 3');
SELECT * FROM compare_first('SELECT id, i FROM sf WHERE i > (SELECT avg(i) FROM sf) ORDER BY i, id LIMIT 3');
-- what is computed of rows has a program
SELECT * FROM compare_first('SELECT id, i * 2 AS x, n + 1 FROM sf ORDER BY x DESC NULLS LAST, id LIMIT 10');
SELECT * FROM compare_first('SELECT j, id FROM sf ORDER BY i % 1000, id LIMIT 10');
-- what is equal to the last one comes out
SELECT * FROM compare_first('SELECT id FROM (SELECT id FROM sf ORDER BY i / 10 FETCH FIRST 10 ROWS WITH TIES) s ORDER BY id');
SELECT * FROM compare_first('SELECT id FROM sf ORDER BY i / 100, id DESC LIMIT 10');
SELECT * FROM compare_first('SELECT id, g FROM sf ORDER BY g, id LIMIT 10');
-- scans of one process of several
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT * FROM compare_first('SELECT * FROM sf ORDER BY i, id LIMIT 10');
SELECT * FROM compare_first('SELECT id, i FROM sf WHERE g = 3 ORDER BY i DESC, id LIMIT 3 OFFSET 4');
SET max_parallel_workers_per_gather = 0;

-- all rows come out: no program, or no few rows
SELECT * FROM compare_first('SELECT id, g FROM sf ORDER BY g > 0 DESC, id LIMIT 10');
SELECT * FROM compare_first('SELECT id, t FROM sf ORDER BY upper(t) COLLATE "C", id LIMIT 10');
SELECT * FROM compare_first('SELECT id, i FROM sf ORDER BY i, id LIMIT 5000');
SELECT * FROM compare_first('SELECT id, i FROM sf WHERE id % 1000 = 1 ORDER BY i, id LIMIT 10');
SELECT * FROM compare_first('SELECT id, i FROM sf WHERE c ~ ''1$'' ORDER BY i, id LIMIT 10');
SELECT * FROM compare_first('SELECT id, i FROM sf ORDER BY i, id LIMIT NULL OFFSET 9000');
SELECT * FROM compare_first('SELECT id, i FROM sf ORDER BY i, id LIMIT (SELECT max(g) FROM sf)');
SELECT * FROM compare_first('SELECT id, i FROM sf ORDER BY i, id LIMIT 10 FOR UPDATE');
SELECT * FROM compare_first('SELECT id, generate_series(1, g) FROM sf ORDER BY i, 1, 2 LIMIT 10');

-- errors of rows that are not wanted, and of a user's functions, which are called as ever
SELECT * FROM compare_first('SELECT id, 1 / (id - 5000) FROM sf ORDER BY i, id LIMIT 10');
SELECT * FROM compare_first('SELECT id FROM sf ORDER BY 1 / (id - 5000), id LIMIT 10');
SELECT * FROM compare_first('SELECT id, 2147483647 - 5001 + id FROM sf WHERE id <> 5001 ORDER BY i, id LIMIT 10');
CREATE SEQUENCE sf_calls;
CREATE FUNCTION sf_called(int) RETURNS int LANGUAGE plpgsql IMMUTABLE COST 1 AS $$BEGIN PERFORM nextval('sf_calls'); RETURN $1; END$$;
SELECT id, sf_called(g) FROM sf ORDER BY i, id LIMIT 2;
SELECT last_value = (SELECT count(*) FROM sf) AS all_called FROM sf_calls;

-- parameters, rescans, cursors, EXPLAIN
SET plan_cache_mode = force_generic_plan;
PREPARE first_rows(int) AS SELECT id, i FROM sf WHERE g <> $1 ORDER BY i, id LIMIT $1 OFFSET 1;
EXECUTE first_rows(3);
EXECUTE first_rows(2);
EXECUTE first_rows(NULL);
SELECT * FROM compare_first('SELECT * FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT id, i FROM sf WHERE g = x ORDER BY i, id LIMIT 3) s');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, i FROM sf ORDER BY i DESC NULLS LAST, id LIMIT 5;
FETCH 4 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
COMMIT;
CREATE FUNCTION sf_explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query;
END $$;
SELECT trim(regexp_replace(line, '\d{4,}', 'N')) FROM sf_explained('SELECT id, i FROM sf WHERE id > 100 ORDER BY i, id LIMIT 5') line WHERE line ~ 'Filter|Left Out';

-- at its own cost, the node is for such a scan, too, but not where an index has the order
RESET gpuhash.force_offload;
CREATE TABLE sf_many AS SELECT i AS id, i * 7919 % 100003 AS i FROM generate_series(1, 100000) i;
ANALYZE sf_many;
EXPLAIN (COSTS OFF) SELECT * FROM sf_many ORDER BY i, id LIMIT 10;
EXPLAIN (COSTS OFF) SELECT * FROM sf_many ORDER BY i, id LIMIT 60000;
EXPLAIN (COSTS OFF) SELECT * FROM sf_many ORDER BY i, id;
CREATE INDEX ON sf_many (i, id);
EXPLAIN (COSTS OFF) SELECT * FROM sf_many ORDER BY i, id LIMIT 10;

DROP TABLE sf, sf_many;
DROP SEQUENCE sf_calls;
DROP FUNCTION sf_called, sf_explained, compare_first;
