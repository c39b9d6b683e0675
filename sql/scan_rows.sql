-- GpuHashScan: the rows of a filtered scan, in the order and with the effects of a Seq Scan.
LOAD 'gpuhash';
-- subqueries that run for each row are what some of these test
SET gpuhash.enable_unnest = off;
SET max_parallel_workers_per_gather = 0;
-- subqueries that are run again
SET gpuhash.enable_unnest = off;
SET gpuhash.engine = 'cpu';
-- the order of rows is told here: so is how much of a page they take
SET default_toast_compression = 'pglz';
CREATE TABLE sro (id int, g int2, n numeric(10, 2), t text, f float8, gone int, b bool);
INSERT INTO sro SELECT i, i % 7, i / 100.0, CASE WHEN i % 90 = 0 THEN repeat('long ' || i, 900) WHEN i % 11 > 0 THEN 't' || i % 13 END,
    i / 8.0, i, i % 3 = 0 FROM generate_series(1, 3000) i;
ALTER TABLE sro DROP COLUMN gone;
DELETE FROM sro WHERE id % 17 = 3;
UPDATE sro SET n = n + 1 WHERE id % 19 = 5;
ALTER TABLE sro ADD COLUMN late int DEFAULT 7;
INSERT INTO sro SELECT i, i % 7, 'NaN', 'late', 'NaN', NULL, i FROM generate_series(5001, 5100) i;
VACUUM ANALYZE sro;
UPDATE sro SET f = f + 1 WHERE id % 23 = 1;

-- Runs a query without gpuhash and with its scans offloaded: whether they were, how many rows there are or which
-- error, and whether both ways agree on them and their order.
CREATE FUNCTION compare_scan(query text, OUT offloaded int, OUT result text, OUT same bool) LANGUAGE plpgsql AS $$
DECLARE
    got text[];
    want text[];
BEGIN
    FOR enabled IN 0..1 LOOP
        PERFORM set_config('gpuhash.enabled', enabled::text, true);
        PERFORM set_config('gpuhash.force_offload', enabled::text, true);
        want := got;
        BEGIN
            offloaded := plan_lines(query, '%Custom Scan (GpuHashScan)%');
            EXECUTE format('SELECT array_agg(s::text) FROM (%s) s', query) INTO got;
            result := coalesce(cardinality(got), 0) || ' rows';
        EXCEPTION WHEN OTHERS THEN
            result := SQLERRM;
            got := ARRAY[SQLSTATE, SQLERRM];
        END;
    END LOOP;
    same := got IS NOT DISTINCT FROM want;
END $$;

-- conditions of all types, and rows that are handed back
SELECT * FROM compare_scan('SELECT * FROM sro WHERE id < 100');
SELECT * FROM compare_scan('SELECT id, t FROM sro WHERE g IN (1, 5) AND NOT b');
SELECT * FROM compare_scan('SELECT n, id FROM sro WHERE n > 25.5');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE t = ''t3''');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE t <> ''t3'' OR t IS NULL');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE late = 7');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE late IS DISTINCT FROM 7');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE f > 300 AND f < 10000');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE b');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE CASE WHEN g = 0 THEN id > 100 ELSE coalesce(late, 0) = 5050 END');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE id > 100000');
SELECT * FROM compare_scan('SELECT FROM sro WHERE g = 3');
-- bytes of a fixed length, and of any
CREATE TABLE sro_bytes AS SELECT i AS id, CASE WHEN i % 10 > 0 THEN md5((i % 500)::text)::uuid END AS u, ('name ' || i % 90)::name AS nm, decode(repeat(md5(i::text), i % 4), 'hex') AS b FROM generate_series(1, 2000) i;
ANALYZE sro_bytes;
SELECT * FROM compare_scan('SELECT id, u FROM sro_bytes WHERE u >= ''f0000000-0000-0000-0000-000000000000'' AND u <> md5(''99'')::uuid');
SELECT * FROM compare_scan('SELECT id, nm FROM sro_bytes WHERE nm IN (''name 1'', ''name 89'') OR u IS NULL');
SELECT * FROM compare_scan('SELECT b, id FROM sro_bytes WHERE b < ''\x10'' AND b > ''\x''');
SELECT * FROM compare_scan('SELECT id FROM sro_bytes WHERE greatest(u, ''80000000-0000-0000-0000-000000000000'') < ''88000000-0000-0000-0000-000000000000'' AND nm > ''name 5''');
SELECT id, u, nm FROM sro_bytes WHERE u = md5('7')::uuid AND nm >= 'name 37' ORDER BY id;
DROP TABLE sro_bytes;
-- what comes out: expressions, whole rows, system columns
SELECT * FROM compare_scan('SELECT id + 1, upper(t), n * 2 FROM sro WHERE g = 3');
SELECT * FROM compare_scan('SELECT sro, sro.ctid, sro.tableoid::regclass, cmin, xmin <> ''0'' FROM sro WHERE g = 3');
SELECT * FROM compare_scan('SELECT id, (SELECT max(x.id) FROM sro x WHERE x.id < sro.g) FROM sro WHERE id < 20');
-- errors are those of a Seq Scan, when their row's turn comes
SELECT * FROM compare_scan('SELECT id FROM sro WHERE 10 / g > 1');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE g <> 0 AND 10 / g > 1');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE id * 1000000 > 5');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE 10 / g > 1 LIMIT 3');
SELECT * FROM compare_scan('SELECT 1 / (id - 50) FROM sro WHERE id > 40');
-- conditions some of which have no program: the first ones, and those that may be first
SELECT * FROM compare_scan('SELECT id FROM sro WHERE t ~ ''1$'' AND g = 3');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE g > 2 AND t ~ ''1$'' AND id < 900');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE t ~ ''1$''');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE random() < 2 AND g = 3');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE g = (SELECT 3)');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE g = (SELECT 3) AND id < (SELECT max(id) FROM sro) / 2');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE g = 1 AND id < (SELECT max(s.id) FROM sro s WHERE s.g = sro.g)');
-- several scans, partitions, repeated scans
CREATE TABLE sro_parts (id int, g int) PARTITION BY HASH (id);
CREATE TABLE sro_parts0 PARTITION OF sro_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE sro_parts1 (g int, id int);
ALTER TABLE sro_parts ATTACH PARTITION sro_parts1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO sro_parts SELECT i, i % 7 FROM generate_series(1, 2000) i;
ANALYZE sro_parts;
SELECT * FROM compare_scan('SELECT * FROM sro_parts WHERE g = 3');
SELECT * FROM compare_scan('SELECT x, (SELECT count(*) FILTER (WHERE t ~ ''^t'') FROM sro WHERE id < x AND t < ''zzz'') FROM generate_series(1, 5) x');
SELECT * FROM compare_scan('SELECT * FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT id FROM sro WHERE g = x LIMIT 4) s');
SELECT * FROM compare_scan('SELECT a.id, b.id FROM sro a, sro b WHERE a.id < 8 AND b.id < 8 AND a.g < b.g');

-- the plan, and what EXPLAIN ANALYZE shows
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT id FROM sro WHERE t ~ '1$' AND g = 3;
CREATE FUNCTION sro_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE query LOOP
        IF line ~ 'Scan|Filter|Engine|Handed|Reason' THEN
            RETURN NEXT regexp_replace(line, 'rows=(\d+)(\.00)? loops', 'rows=\1 loops');
        END IF;
    END LOOP;
END $$;
SELECT sro_lines('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM sro WHERE t ~ ''1$'' AND g = 3 LIMIT 4');
SELECT sro_lines('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM sro WHERE late = 7 AND id < 50');
-- of a page, until the subquery was run
SELECT l FROM sro_lines('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM sro WHERE id < 1 + (SELECT length(string_agg(''1'', '''')) FROM sro WHERE g = 3)') l WHERE l ~ 'Removed|Handed';
-- joins and aggregates read the table's pages themselves
EXPLAIN (COSTS OFF) SELECT count(*) FROM sro WHERE g = 3;
EXPLAIN (COSTS OFF) SELECT a.t FROM sro a JOIN sro b USING (id) WHERE a.g = 3 AND b.f > 10;
-- but not where the aggregate is PostgreSQL's
EXPLAIN (COSTS OFF) SELECT string_agg(t, ',') FROM sro WHERE g = 3;
-- switched off
SET gpuhash.enable_scan = off;
EXPLAIN (COSTS OFF) SELECT id FROM sro WHERE g = 3;
RESET gpuhash.enable_scan;
SET enable_seqscan = off;
SELECT plan_lines('SELECT id FROM sro WHERE g = 3', '%Custom Scan (GpuHashScan)%');
RESET enable_seqscan;
-- a plan that was made before it was switched off
SET plan_cache_mode = force_generic_plan;
PREPARE cached(int) AS SELECT id FROM sro WHERE g = 3 AND id < $1;
EXPLAIN (COSTS OFF) EXECUTE cached(30);
EXECUTE cached(30);
SET gpuhash.enable_scan = off;
EXECUTE cached(40);
RESET gpuhash.enable_scan;
EXECUTE cached(NULL);
RESET plan_cache_mode;
DEALLOCATE ALL;

-- cursors, backward too, and what they point at
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM sro WHERE g = 3;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD ALL FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 3 FROM c;
FETCH NEXT FROM c;
CLOSE c;
-- there and back on one page, and on to the others
DECLARE c SCROLL CURSOR FOR SELECT id FROM sro WHERE g = 3;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
MOVE FORWARD 200 IN c;
FETCH 2 FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 1 FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT id FROM sro WHERE g = 3;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
FETCH ABSOLUTE 150 FROM c;
FETCH RELATIVE -120 FROM c;
CLOSE c;
DECLARE c CURSOR FOR SELECT id, n FROM sro WHERE g = 3;
FETCH 2 FROM c;
UPDATE sro SET n = -1 WHERE CURRENT OF c RETURNING id, n;
FETCH 1 FROM c;
DELETE FROM sro WHERE CURRENT OF c RETURNING id;
FETCH 1 FROM c;
ROLLBACK;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM sro WHERE g = 3 FOR UPDATE;
FETCH 2 FROM c;
UPDATE sro SET n = -1 WHERE CURRENT OF c RETURNING id, n;
ROLLBACK;

-- rows that are changed, while they are read
BEGIN;
EXPLAIN (COSTS OFF) UPDATE sro SET g = 3, id = id + 10000 WHERE g = 2;
UPDATE sro SET g = 3, id = id + 10000 WHERE g = 2;
DELETE FROM sro WHERE g = 3 AND id < 1000;
SELECT count(*), sum(id) FROM sro;
INSERT INTO sro SELECT id + 20000, g FROM sro WHERE g = 3;
SELECT count(*), sum(id) FROM sro;
UPDATE sro_parts SET id = id + 1 WHERE g = 4;
SELECT count(*), sum(id) FROM sro_parts;
UPDATE sro SET n = p.g FROM sro_parts p WHERE p.id = sro.id AND p.g = 5 AND sro.g = 5;
SELECT sum(n) FROM sro WHERE g = 5;
ROLLBACK;

-- a view with a security barrier: a user's function sees no row that it hides
CREATE FUNCTION sro_leak(int) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN
    RAISE NOTICE 'sees %', $1;
    RETURN true;
END $$;
CREATE VIEW sro_hidden WITH (security_barrier) AS SELECT * FROM sro WHERE g = 3 AND id < 40;
EXPLAIN (COSTS OFF) SELECT id FROM sro_hidden WHERE sro_leak(id) AND id > 20;
SELECT id FROM sro_hidden WHERE sro_leak(id) AND id > 20;
EXPLAIN (COSTS OFF) SELECT id FROM sro WHERE sro_leak(id) AND id < 3;

-- parallel: each row once
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
RESET gpuhash.force_offload;
SET gpuhash.setup_cost = 0;
CREATE TABLE sro_many AS SELECT i AS id, i % 100 AS g, 't' || i AS t FROM generate_series(1, 30000) i;
ANALYZE sro_many;
EXPLAIN (COSTS OFF) SELECT id FROM sro_many WHERE g = 3 AND id % 7 = 1;
SELECT count(*), sum(id), count(DISTINCT id) FROM (SELECT id FROM sro_many WHERE g = 3 AND id % 7 = 1 OFFSET 0) s;
SELECT sro_lines('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM sro_many WHERE g = 3 AND id % 7 = 1');
RESET parallel_leader_participation;
SELECT count(*), sum(id), count(DISTINCT id) FROM (SELECT id FROM sro_many WHERE g = 3 AND t ~ '3$' OFFSET 0) s;
RESET max_parallel_workers_per_gather;
RESET gpuhash.setup_cost;
SET max_parallel_workers_per_gather = 0;

-- where it pays, and where it does not
EXPLAIN (COSTS OFF) SELECT id FROM sro_many WHERE g = 3;
EXPLAIN (COSTS OFF) SELECT id FROM sro_many WHERE g = 3 LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM sro_many WHERE id > 5;
EXPLAIN (COSTS OFF) SELECT id FROM sro WHERE g = 3;
CREATE INDEX ON sro_many (id);
EXPLAIN (COSTS OFF) SELECT id FROM sro_many WHERE id = 77;
SET gpuhash.explain_why = on;
EXPLAIN (COSTS OFF) SELECT id FROM sro WHERE g = 3;
EXPLAIN (COSTS OFF) SELECT id FROM sro_many WHERE t ~ '7$';
EXPLAIN (COSTS OFF) SELECT id FROM sro_many WHERE g = 3 LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM sro_many;
RESET gpuhash.explain_why;

-- what is done for a whole batch is asked first, then numbers of no fixed width, texts and patterns; what may fail stays where it is
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT id FROM sro WHERE t LIKE 't1%' AND t IN ('t1', 't12') AND n > 3.5 AND 3000 / id > 1 AND g < 6;
EXPLAIN (COSTS OFF) SELECT count(*) FROM sro WHERE t LIKE 't1%' AND t IN ('t1', 't12') AND n > 3.5 AND 3000 / id > 1 AND g < 6;
RESET gpuhash.force_offload;
SELECT * FROM compare_scan('SELECT id FROM sro WHERE t LIKE ''t1%'' AND t IN (''t1'', ''t12'') AND n > 3.5 AND 3000 / id > 1 AND g < 6');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE t IN (''t1'', NULL, ''t12'') AND g IN (1, NULL, 3)');
SELECT * FROM compare_scan('SELECT id FROM sro WHERE t NOT IN (''t1'', ''t12'') AND g NOT IN (1, 3) AND id < 500');
-- a comparison that lacks a collation fails when it is asked
CREATE TABLE sro_collated (t text, a text COLLATE "C", b text COLLATE "POSIX");
INSERT INTO sro_collated SELECT 't' || i, 'a' || i % 7, 'a' || i % 5 FROM generate_series(1, 2000) i;
ANALYZE sro_collated;
SELECT * FROM compare_scan('SELECT t FROM sro_collated WHERE t LIKE ''zz%'' AND a = b');
-- (this one is a grouping, which reads the pages itself)
SELECT * FROM compare_scan('SELECT count(*) FROM sro_collated WHERE t LIKE ''zz%'' AND a = b');
SELECT * FROM compare_scan('SELECT t FROM sro_collated WHERE t LIKE ''t1%'' AND a = b');
DROP TABLE sro_collated;
-- many executions of one plan take no more memory than one
SET gpuhash.force_offload = on;
BEGIN;
DECLARE many CURSOR FOR SELECT (SELECT string_agg(t, '') FROM sro WHERE id > 2990 + x % 20) FROM generate_series(1, 500) x;
MOVE 500 IN many;
SELECT sum(total_bytes) < 10000000 AS little FROM pg_backend_memory_contexts WHERE name IN ('ExecutorState', 'GpuHashScan program');
CLOSE many;
COMMIT;
RESET gpuhash.force_offload;

-- Pages of temporary tables lie at other addresses than those of others.
CREATE TEMP TABLE sro_temp AS SELECT i AS id, i % 100 AS v, 't' || i % 13 AS t FROM generate_series(1, 3000) i;
DELETE FROM sro_temp WHERE id % 17 = 3;
SELECT * FROM compare_scan('SELECT * FROM sro_temp WHERE v = 50');
SELECT * FROM compare_scan($$SELECT ctid, id FROM sro_temp WHERE t < 't3' AND id % 7 > 2$$);
DROP TABLE sro_temp;
DROP FUNCTION compare_scan(text), sro_lines(text);
DROP VIEW sro_hidden;
DROP FUNCTION sro_leak(int);
DROP TABLE sro, sro_parts, sro_many;
