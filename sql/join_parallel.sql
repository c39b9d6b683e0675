-- Joins of the participants of a parallel query.
LOAD 'gpuhash';
SET gpuhash.enable_aggregate = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET hash_mem_multiplier = 1.0;
-- Runs a query without gpuhash and without workers, and with every join offloaded: how many
-- of these have a table that all participants share, and how many one each, or the leader's alone.
CREATE FUNCTION compare_parallel(query text, OUT common int, OUT own int, OUT rows bigint, OUT same boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL client_min_messages = warning;
    DROP TABLE IF EXISTS want, got;
    SET LOCAL gpuhash.enabled = off;
    PERFORM set_config('compare.workers', current_setting('max_parallel_workers_per_gather'), true);
    SET LOCAL max_parallel_workers_per_gather = 0;
    EXECUTE 'CREATE TEMP TABLE want AS ' || query;
    PERFORM set_config('max_parallel_workers_per_gather', current_setting('compare.workers'), true);
    SET LOCAL gpuhash.enabled = on;
    SET LOCAL gpuhash.force_offload = on;
    common := plan_lines(query, '%Parallel Custom Scan (GpuHashJoin)%');
    own := plan_lines(query, '%Custom Scan (GpuHashJoin)%') - common;
    EXECUTE 'CREATE TEMP TABLE got AS ' || query;
    SELECT count(*) INTO rows FROM got;
    same := got_what_is_wanted();
END $$;
CREATE TABLE jp_outer AS
    SELECT i AS id, CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 7919::bigint) % 30000 END AS k, 'outer ' || i AS t
    FROM generate_series(1, 20000) i;
CREATE TABLE jp_inner AS
    SELECT i AS id, CASE WHEN i % 19 = 0 THEN NULL ELSE (i * 31::bigint) % 15000 END AS k, i % 4 AS g,
           CASE WHEN i % 5 = 0 THEN NULL ELSE 'inner ' || i END AS t
    FROM generate_series(1, 12000) i;
CREATE TABLE jp_empty (id int, k bigint, g int, t text);
CREATE TABLE jp_nulls AS SELECT i AS id, NULL::bigint AS k, 1 AS g, 'null ' || i AS t FROM generate_series(1, 3000) i;
ANALYZE jp_outer, jp_inner, jp_empty, jp_nulls;
EXPLAIN (COSTS OFF) SELECT count(*) FROM jp_outer o JOIN jp_inner i ON i.k = o.k;
SET gpuhash.force_offload = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM jp_outer o JOIN jp_inner i ON i.k = o.k;
RESET gpuhash.force_offload;
-- every join type
CREATE VIEW jp_queries AS
    SELECT n, text, kind FROM (VALUES
        (1, 'inner', 'SELECT o.id, o.t, i.id AS iid, i.t AS it FROM jp_outer o JOIN %1$s i ON i.k = o.k'),
        (2, 'inner, join filter', 'SELECT o.id, i.id AS iid FROM jp_outer o JOIN %1$s i ON i.k = o.k AND i.t < o.t'),
        (3, 'inner, text', 'SELECT o.id, i.id AS iid FROM jp_outer o JOIN %1$s i ON replace(i.t, ''inner'', ''outer'') = o.t'),
        (4, 'left', 'SELECT o.id, o.t, i.id AS iid, i.t AS it FROM jp_outer o LEFT JOIN %1$s i ON i.k = o.k'),
        (5, 'left, filter', 'SELECT o.id, i.id AS iid FROM jp_outer o LEFT JOIN %1$s i ON i.k = o.k AND i.g = 2 WHERE i.t IS NULL OR o.id > 10000'),
        (6, 'right', 'SELECT o.id, i.id AS iid, i.t FROM jp_outer o RIGHT JOIN %1$s i ON i.k = o.k'),
        (7, 'full', 'SELECT o.id, o.t, i.id AS iid, i.t AS it FROM jp_outer o FULL JOIN %1$s i ON i.k = o.k'),
        (8, 'full, join filter', 'SELECT o.id, i.id AS iid FROM jp_outer o FULL JOIN %1$s i ON i.k = o.k AND i.t < o.t'),
        (9, 'semi', 'SELECT o.id, o.t FROM jp_outer o WHERE EXISTS (SELECT 1 FROM %1$s i WHERE i.k = o.k AND i.id > o.id)'),
        (10, 'anti', 'SELECT o.id, o.t FROM jp_outer o WHERE NOT EXISTS (SELECT 1 FROM %1$s i WHERE i.k = o.k)'),
        (11, 'anti, join filter', 'SELECT o.id FROM jp_outer o WHERE NOT EXISTS (SELECT 1 FROM %1$s i WHERE i.k = o.k AND i.t < o.t)'),
        (12, 'right anti', 'SELECT i.id, i.t FROM %1$s i WHERE NOT EXISTS (SELECT 1 FROM jp_outer o WHERE i.k = o.k AND i.t < o.t)')
    ) v(n, kind, text);
SELECT n, kind, common = 1 OR (kind ~ 'full|right' AND current_setting('server_version_num')::int < 160000) AS common, rows, same
FROM jp_queries, compare_parallel(format(text, 'jp_inner')) ORDER BY n;
SELECT n, kind, common = 1 OR (kind ~ 'full|right' AND current_setting('server_version_num')::int < 160000) AS common, rows, same
FROM jp_queries, compare_parallel(format(text, 'jp_empty')) ORDER BY n;
SELECT n, kind, common = 1 OR (kind ~ 'full|right' AND current_setting('server_version_num')::int < 160000) AS common, rows, same
FROM jp_queries, compare_parallel(format(text, 'jp_nulls')) ORDER BY n;
-- both sides do not fit
SET work_mem = '64kB';
SELECT n, kind, common = 1 OR (kind ~ 'full|right' AND current_setting('server_version_num')::int < 160000) AS common, rows, same
FROM jp_queries, compare_parallel(format(text, 'jp_inner')) ORDER BY n;
-- one key that fills the memory of all, and rows that are larger than a chunk
CREATE TABLE jp_skew AS SELECT i AS id, CASE WHEN i % 10 = 0 THEN i ELSE 42 END AS k, repeat('x', 20) AS t FROM generate_series(1, 15000) i;
CREATE TABLE jp_wide AS SELECT i AS id, i AS k, repeat(md5(i::text), CASE WHEN i % 100 = 0 THEN 4000 ELSE 1 END) AS t FROM generate_series(1, 3000) i;
ANALYZE jp_skew, jp_wide;
SELECT rows, same FROM compare_parallel('SELECT o.k, s.id, s.t FROM (SELECT DISTINCT k FROM jp_outer) o JOIN jp_skew s ON s.k = o.k');
SELECT rows, same FROM compare_parallel('SELECT o.id, s.id AS sid, s.t FROM jp_outer o JOIN jp_skew s ON s.k = o.id AND s.id % 50 = o.id % 50');
SELECT rows, same FROM compare_parallel('SELECT o.id, w.id AS wid, md5(w.t || '''') AS t FROM jp_outer o LEFT JOIN (SELECT id, k, t || ''!'' AS t FROM jp_wide) w ON w.k = o.k');
RESET work_mem;
SELECT rows, same FROM compare_parallel('SELECT o.id, w.id AS wid, md5(w.t || '''') AS t FROM jp_outer o LEFT JOIN (SELECT id, k, t || ''!'' AS t FROM jp_wide) w ON w.k = o.k');
-- a table for each process
SET enable_parallel_hash = off;
SELECT common, own, rows, same FROM compare_parallel('SELECT o.id, o.t, i.id AS iid, i.t AS it FROM jp_outer o JOIN jp_inner i ON i.k = o.k');
SELECT common, own, rows, same FROM compare_parallel('SELECT o.id, o.t FROM jp_outer o WHERE NOT EXISTS (SELECT 1 FROM jp_inner i WHERE i.k = o.k)');
SELECT common, rows, same FROM compare_parallel('SELECT o.id, o.t, i.id AS iid, i.t AS it FROM jp_outer o FULL JOIN jp_inner i ON i.k = o.k');
RESET enable_parallel_hash;
-- one join above another, in memory and not
SELECT * FROM compare_parallel('SELECT o.id, i.id AS iid, o2.t FROM jp_outer o JOIN jp_inner i ON i.k = o.k LEFT JOIN jp_outer o2 ON o2.id = i.id');
SET work_mem = '64kB';
SELECT * FROM compare_parallel('SELECT o.id, i.id AS iid, o2.t FROM jp_outer o JOIN jp_inner i ON i.k = o.k LEFT JOIN jp_outer o2 ON o2.id = i.id');
RESET work_mem;
-- without the leader, without workers, with few rows asked for
SET parallel_leader_participation = off;
SELECT n, rows, same FROM jp_queries, compare_parallel(format(text, 'jp_inner')) WHERE n IN (1, 7, 10) ORDER BY n;
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT n, rows, same FROM jp_queries, compare_parallel(format(text, 'jp_inner')) WHERE n IN (1, 7, 10) ORDER BY n;
RESET max_parallel_workers;
SET gpuhash.force_offload = on;
SELECT o.id, i.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k ORDER BY 1, 2 LIMIT 5;
SELECT count(*) FROM (SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k LIMIT 10) s;
SELECT count(*) FROM (SELECT o.id FROM jp_outer o LEFT JOIN jp_inner i ON i.k = o.k LIMIT 19000) s;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT o.id, i.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k;
MOVE 7000 FROM c;
\echo :ROW_COUNT
MOVE 7000 FROM c;
\echo :ROW_COUNT
COMMIT;
-- a rescan runs all of it again
SET enable_material = off;
SET enable_memoize = off;
SELECT v.x, s.c, s.d FROM (VALUES (1), (2), (3)) v(x) LEFT JOIN
    (SELECT count(*) AS c, sum(i.id) AS d FROM jp_outer o LEFT JOIN jp_inner i ON i.k = o.k OFFSET 0) s ON s.c > v.x ORDER BY 1;
SET work_mem = '64kB';
SELECT v.x, s.c, s.d FROM (VALUES (1), (2), (3)) v(x) LEFT JOIN
    (SELECT count(*) AS c, sum(i.id) AS d FROM jp_outer o LEFT JOIN jp_inner i ON i.k = o.k OFFSET 0) s ON s.c > v.x ORDER BY 1;
RESET work_mem;
SELECT v.x, count(s.id) > 0 AS found FROM (VALUES (1), (2), (3)) v(x) LEFT JOIN
    (SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k LIMIT 100) s ON s.id > v.x GROUP BY 1 ORDER BY 1;
RESET enable_material;
RESET enable_memoize;
-- EXPLAIN ANALYZE tells what all of them did together
CREATE FUNCTION jp_explain(query text, OUT node text, OUT engine text, OUT inner_rows bigint, OUT removed bigint, OUT in_files boolean, OUT bounded boolean)
LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    WITH RECURSIVE nodes(n) AS (
        SELECT plan->0->'Plan'
        UNION ALL
        SELECT json_array_elements(n->'Plans') FROM nodes)
    SELECT CASE WHEN (n->>'Parallel Aware')::boolean THEN 'parallel' ELSE 'alone' END, n->>'Engine', n->>'Inner Rows', n->>'Rows Removed by Join Filter',
        (n->>'Partitions')::int > 1 AND (n->>'Disk Usage')::int > 0, (n->>'Memory Usage')::int BETWEEN 1 AND 4000
    FROM nodes WHERE n->>'Custom Plan Provider' = 'GpuHashJoin'
    INTO node, engine, inner_rows, removed, in_files, bounded;
END $$;
SELECT * FROM jp_explain('SELECT count(*) FROM jp_outer o JOIN jp_inner i ON i.k = o.k AND i.t < o.t');
SET work_mem = '64kB';
SELECT * FROM jp_explain('SELECT count(*) FROM jp_outer o JOIN jp_inner i ON i.k = o.k AND i.t < o.t');
RESET work_mem;
SELECT * FROM jp_explain('SELECT count(*) FROM jp_outer o JOIN jp_nulls i ON i.k = o.k');
SET parallel_leader_participation = off;
SELECT * FROM jp_explain('SELECT count(*) FROM jp_outer o JOIN jp_inner i ON i.k = o.k AND i.t < o.t');
RESET parallel_leader_participation;
-- of several runs, the last one's rows
SET enable_material = off;
SET work_mem = '64kB';
SELECT * FROM jp_explain('SELECT count(*) FROM (VALUES (1), (2), (3)) v(x) LEFT JOIN (SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k LIMIT 100) s ON s.id > v.x');
SELECT * FROM jp_explain('SELECT count(s.id) FROM (VALUES (1), (2), (3)) v(x) LEFT JOIN (SELECT count(*) AS id FROM jp_outer o JOIN jp_inner i ON i.k = o.k) s ON s.id > v.x');
RESET work_mem;
RESET enable_material;
-- an error in any phase, in whichever process, ends the query and nothing more
CREATE FUNCTION jp_error(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE query;
    RETURN 'none';
EXCEPTION WHEN division_by_zero OR configuration_limit_exceeded THEN
    RETURN SQLSTATE;
END $$;
SELECT jp_error('CREATE TEMP TABLE e AS SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k WHERE 1 / (i.id - 5000) < 2');
SELECT jp_error('CREATE TEMP TABLE e AS SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k / (i.id - 5000) = o.k');
SELECT jp_error('CREATE TEMP TABLE e AS SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k / (o.id - 5000)');
SELECT jp_error('CREATE TEMP TABLE e AS SELECT 1 / (i.id - 592) AS x FROM jp_outer o JOIN jp_inner i ON i.k = o.k');
SET work_mem = '64kB';
SELECT jp_error('CREATE TEMP TABLE e AS SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k WHERE 1 / (i.id - 5000) < 2');
SELECT jp_error('CREATE TEMP TABLE e AS SELECT o.id FROM jp_outer o JOIN jp_inner i ON i.k = o.k / (o.id - 5000)');
SELECT jp_error('CREATE TEMP TABLE e AS SELECT 1 / (i.id - 592) AS x FROM jp_outer o JOIN jp_inner i ON i.k = o.k');
SET temp_file_limit = '64kB';
SELECT jp_error('CREATE TEMP TABLE e AS SELECT o.t, i.t AS it FROM jp_outer o JOIN jp_inner i ON i.k = o.k');
RESET temp_file_limit;
RESET work_mem;
SELECT rows, same FROM compare_parallel('SELECT o.id, o.t, i.id AS iid, i.t AS it FROM jp_outer o JOIN jp_inner i ON i.k = o.k');
SELECT count(*) FROM pg_ls_tmpdir();
-- an inner side that is planned for fewer workers than the outer one costs no files that it does not need
CREATE FUNCTION jp_cost(memory text, query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    PERFORM set_config('work_mem', memory, true);
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN (WITH RECURSIVE nodes(n) AS (
        SELECT plan->0->'Plan'
        UNION ALL
        SELECT json_array_elements(n->'Plans') FROM nodes)
    SELECT n->>'Total Cost' FROM nodes WHERE n->>'Custom Plan Provider' = 'GpuHashJoin' AND (n->>'Parallel Aware')::boolean);
END $$;
RESET gpuhash.force_offload;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET max_parallel_workers_per_gather = 4;
ALTER TABLE jp_outer SET (parallel_workers = 4);
ALTER TABLE jp_inner SET (parallel_workers = 1);
SELECT jp_cost('256kB', q) = jp_cost('64MB', q) AS fits, jp_cost('64kB', q) > jp_cost('64MB', q) AS does_not
FROM (VALUES ('SELECT o.id, i.k FROM jp_outer o JOIN jp_inner i ON i.k = o.k')) v(q);
-- an inner side that is not divided among processes is made by one of them for all
CREATE TABLE jp_once (k int, g int, v int);
INSERT INTO jp_once SELECT i, i % 9000, i % 97 FROM generate_series(1, 60000) i;
ANALYZE jp_once;
RESET ALL;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE FUNCTION jp_has(node text, query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
        IF strpos(line, node) > 0 THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT jp_has('Parallel Append', q) = (current_setting('server_version_num')::int >= 160000) AS once FROM (VALUES ('SELECT count(*), sum(o.v) FROM jp_once o JOIN (SELECT g, max(v) AS most FROM jp_once GROUP BY g HAVING count(*) > 6) s ON s.g = o.k WHERE o.v < s.most')) v(q);
SELECT count(*), sum(o.v) FROM jp_once o JOIN (SELECT g, max(v) AS most FROM jp_once GROUP BY g HAVING count(*) > 6) s ON s.g = o.k WHERE o.v < s.most;
SET gpuhash.enabled = off;
SELECT count(*), sum(o.v) FROM jp_once o JOIN (SELECT g, max(v) AS most FROM jp_once GROUP BY g HAVING count(*) > 6) s ON s.g = o.k WHERE o.v < s.most;
RESET gpuhash.enabled;
DROP TABLE jp_once;
DROP FUNCTION jp_has(text, text);
