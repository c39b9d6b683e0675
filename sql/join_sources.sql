-- Inputs that are plain heap scans are read by the join itself, page by page.
LOAD 'gpuhash';
-- subqueries that run for each row are what some of these test
SET gpuhash.enable_unnest = off;
SET max_parallel_workers_per_gather = 0;
-- subqueries that are run again
SET gpuhash.enable_unnest = off;
-- The join without gpuhash, with its inputs' rows through the executor, and with pages
-- read by the join: how many rows, and whether all three agree.
CREATE FUNCTION compare_sources(query text, OUT offloaded int, OUT rows bigint, OUT same boolean,
                                OUT same_without_scan boolean) LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL gpuhash.enable_scan = off;
    SELECT c.same INTO same_without_scan FROM compare_join(query) c;
    SET LOCAL gpuhash.enable_scan = on;
    SELECT c.offloaded, c.rows, c.same INTO offloaded, rows, same FROM compare_join(query) c;
END $$;

-- columns of every kind, before and behind the key
CREATE TABLE js_kinds (
    gone1 text, tiny boolean, s2 smallint, name text, gone2 bigint, k int, f8 double precision,
    c1 "char", d numeric, u uuid, span interval, fixed char(7), k8 bigint, wide text, b bytea,
    made int GENERATED ALWAYS AS (s2 * 2) STORED, arr int[], day date);
ALTER TABLE js_kinds ALTER wide SET STORAGE EXTERNAL;
INSERT INTO js_kinds (gone1, tiny, s2, name, gone2, k, f8, c1, d, u, span, fixed, k8, wide, b, arr, day)
SELECT 'gone ' || i, i % 2 = 0, i % 90, CASE WHEN i % 5 = 0 THEN NULL ELSE repeat('n', i % 200) END, i,
       CASE WHEN i % 17 = 0 THEN NULL ELSE i % 300 END, i / 7.0, chr(65 + i % 20), CASE WHEN i % 3 = 0 THEN NULL ELSE i / 9.0 END,
       ('00000000-0000-0000-0000-' || lpad((i % 400)::text, 12, '0'))::uuid, i * interval '1 minute', 'f' || i % 50,
       CASE WHEN i % 19 = 0 THEN NULL ELSE i % 310 END,
       CASE WHEN i % 10 = 0 THEN repeat('wide ' || i, 700) WHEN i % 10 = 1 THEN NULL ELSE 'w' || i END,
       decode(repeat(lpad(to_hex(i % 256), 2, '0'), i % 40), 'hex'), ARRAY[i, NULL, i % 7], date '2020-01-01' + i % 500
FROM generate_series(1, 1500) i;
ALTER TABLE js_kinds DROP COLUMN gone1;
ALTER TABLE js_kinds DROP COLUMN gone2;
ALTER TABLE js_kinds ADD COLUMN added int DEFAULT 77;
ALTER TABLE js_kinds ADD COLUMN added_text text DEFAULT 'there from the start';
ALTER TABLE js_kinds ADD COLUMN added_null bigint;
INSERT INTO js_kinds (tiny, s2, name, k, k8, added, added_text, added_null)
SELECT NULL, i % 90, 'later', i, i, i, NULL, i FROM generate_series(1, 400) i;
-- the key is the first column of one table and follows nothing but fixed widths in another
CREATE TABLE js_plain (k int, k8 bigint, s2 smallint, v bigint, t text);
INSERT INTO js_plain SELECT i % 350, i % 340, i % 100, i, CASE WHEN i % 4 = 0 THEN NULL ELSE 'plain ' || i END FROM generate_series(1, 1200) i;
CREATE TABLE js_nulls (v text, n int, k int, w int);
INSERT INTO js_nulls SELECT CASE WHEN i % 3 = 0 THEN 'v' || i END, CASE WHEN i % 4 = 0 THEN i END, CASE WHEN i % 5 > 0 THEN i % 200 END, CASE WHEN i % 7 = 0 THEN i END FROM generate_series(1, 900) i;
ANALYZE js_kinds, js_plain, js_nulls;

SELECT * FROM compare_sources('SELECT a.*, b.v, b.t FROM js_kinds a JOIN js_plain b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT b.*, a.v, a.t FROM js_plain a JOIN js_kinds b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.*, b.v, b.t FROM js_kinds a LEFT JOIN js_plain b ON a.k8 = b.k8 AND b.s2 < 40');
SELECT * FROM compare_sources('SELECT a AS arow, b AS brow FROM js_kinds a FULL JOIN js_plain b ON a.k = b.k AND a.s2 = b.s2');
SELECT * FROM compare_sources('SELECT a.name, a.wide, b.arr FROM js_kinds a JOIN js_kinds b ON a.added = b.added AND a.k = b.k');
SELECT * FROM compare_sources('SELECT a.s2, a.added_text, b.u FROM js_kinds a JOIN js_kinds b ON a.added_null = b.k');
SELECT * FROM compare_sources('SELECT a.s2, b.s2 AS bs2, a.made FROM js_kinds a JOIN js_kinds b ON a.u = b.u AND a.s2 = b.s2');
SELECT * FROM compare_sources('SELECT a.k, b.k AS bk FROM js_kinds a JOIN js_kinds b ON a.name = b.name WHERE a.s2 < 9');
SELECT * FROM compare_sources('SELECT a.k, b.v FROM js_kinds a JOIN js_plain b ON a.k + 1 = b.k8 - 1');
SELECT * FROM compare_sources('SELECT a.k, b.v FROM js_kinds a JOIN js_plain b ON length(a.added_text) * 10 = b.k');
SELECT * FROM compare_sources('SELECT a.fixed, a.span, b.day, b.f8, b.d FROM js_kinds a JOIN js_kinds b ON a.day = b.day AND a.tiny = b.tiny AND a.c1 = b.c1 WHERE a.s2 < 30');
SELECT * FROM compare_sources('SELECT a.w, a.v, b.n, b.v AS bv FROM js_nulls a LEFT JOIN js_nulls b ON a.k = b.w');
SELECT * FROM compare_sources('SELECT a, b FROM js_nulls a JOIN js_plain b USING (k)');
SELECT * FROM compare_sources('SELECT a.v, b.v AS bv FROM js_nulls a RIGHT JOIN js_plain b ON a.k = b.s2');
SELECT * FROM compare_sources('SELECT a.* FROM js_nulls a WHERE NOT EXISTS (SELECT FROM js_plain b WHERE b.k = a.k)');
SELECT * FROM compare_sources('SELECT a.* FROM js_kinds a WHERE a.k IN (SELECT s2 FROM js_plain)');
-- rows that wait in files
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT * FROM compare_sources('SELECT a.*, b.v, b.t FROM js_kinds a FULL JOIN js_plain b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.k, a.t, b.name, b.d, b.wide FROM js_plain a LEFT JOIN js_kinds b ON a.k = b.k');
RESET work_mem;
RESET hash_mem_multiplier;
SET gpuhash.batch_rows = 256;
SELECT * FROM compare_sources('SELECT a.*, b.v, b.t FROM js_kinds a JOIN js_plain b ON a.k = b.k');
RESET gpuhash.batch_rows;

-- more than eight columns before the key, some of them NULL, in either direction
CREATE TABLE js_many AS SELECT CASE WHEN i % 2 = 0 THEN i END c1, i c2, i c3, i c4, i c5, i c6, i c7, i c8, CASE WHEN i % 3 > 0 THEN i END c9, i % 50 k, i v FROM generate_series(1, 400) i;
SELECT * FROM compare_sources('SELECT a.*, b.c1 AS bc1, b.c8 AS bc8, b.v AS bv FROM js_many a JOIN js_many b ON a.k = b.c9');
SELECT * FROM compare_sources('SELECT a.c1, a.c9, a.v, b.c2, b.c9 AS bc9 FROM js_many a LEFT JOIN js_many b ON a.c8 = b.k');

-- keys below zero: rows with and without NULLs before the key, and rows that come through the executor
CREATE TABLE js_below AS SELECT CASE WHEN i % 2 = 0 THEN i END n, -(i % 60) k, -(i % 60)::bigint k8, (-(i % 60))::smallint k2, i v FROM generate_series(1, 300) i;
SELECT * FROM compare_sources('SELECT a.v, b.v AS bv FROM js_below a JOIN js_below b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.v, b.v AS bv FROM js_below a JOIN (SELECT k, v FROM js_below WHERE v < 100 OFFSET 0) b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.v, b.v AS bv FROM (SELECT k, v FROM js_below WHERE v < 100 OFFSET 0) a LEFT JOIN js_below b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.v, b.v AS bv FROM js_below a JOIN js_below b ON a.k = b.k8 AND a.v < 100');
SELECT * FROM compare_sources('SELECT a.v, b.v AS bv FROM js_below a FULL JOIN js_below b ON a.k8 = b.k2');
SELECT * FROM compare_sources('SELECT a.v, b.v AS bv FROM js_below a RIGHT JOIN js_below b ON a.k2 = b.k AND b.v < 100');

-- quals: their order, what they drop, and what they raise
SET gpuhash.force_offload = on;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT * FROM compare_sources('SELECT a.v, b.k FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE a.t LIKE ''%7%'' AND b.name IS NOT NULL AND a.s2 > 3');
SELECT * FROM compare_sources('SELECT a.v FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE a.ctid >= ''(2,1)'' AND a.tableoid = ''js_plain''::regclass AND a.xmin IS NOT NULL');
SELECT * FROM compare_sources('SELECT a.v FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE a.v = (SELECT max(c.v) FROM js_plain c WHERE c.k = a.k)');
SELECT count(*) FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE 100 / (a.v - 600) >= 0;
SELECT count(*) FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE a.v <> 600 AND 100 / (a.v - 600) > 0;
SELECT a.v FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE 100 / (a.v - 600) > -200 LIMIT 1;
CREATE FUNCTION js_loud(v bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF v % 400 = 0 THEN
        RAISE NOTICE 'asked for %', v;
    END IF;
    RETURN v % 100 = 0;
END $$;
SELECT count(*) FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE js_loud(a.v);
SELECT count(*) FROM js_kinds a LEFT JOIN js_plain b ON a.k = b.k AND js_loud(b.v);

-- what is not a plain heap scan; how far the first batch reads tells which way it came
CREATE FUNCTION outer_rows(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json, TIMING OFF, SUMMARY OFF) ' || query INTO plan;
    plan := plan->0->'Plan'->'Plans'->0->'Plans'->0;
    RETURN NEXT plan->>'Node Type' || ': ' || (plan->>'Actual Rows')::float8;
END $$;
CREATE TABLE js_parted (k int, v int) PARTITION BY RANGE (v);
CREATE TABLE js_parted1 PARTITION OF js_parted FOR VALUES FROM (0) TO (600);
CREATE TABLE js_parted2 (extra text, v int, k int);
ALTER TABLE js_parted2 DROP COLUMN extra;
ALTER TABLE js_parted ATTACH PARTITION js_parted2 FOR VALUES FROM (600) TO (10000);
INSERT INTO js_parted SELECT i % 300, i FROM generate_series(1, 2000) i;
CREATE TABLE js_parent (k int, v int);
CREATE TABLE js_child (more text) INHERITS (js_parent);
INSERT INTO js_parent SELECT i % 300, i FROM generate_series(1, 500) i;
INSERT INTO js_child SELECT i % 300, i, 'more ' || i FROM generate_series(501, 900) i;
CREATE VIEW js_view WITH (security_barrier) AS SELECT k, v, t FROM js_plain WHERE s2 <> 5;
ANALYZE js_parted, js_parent, js_child;
-- (a device has several batches under way)
SET gpuhash.engine = 'cpu';
SELECT outer_rows('SELECT a.v FROM js_plain a JOIN js_nulls b ON a.k = b.k LIMIT 1');
SET gpuhash.enable_scan = off;
SELECT outer_rows('SELECT a.v FROM js_plain a JOIN js_nulls b ON a.k = b.k LIMIT 1');
RESET gpuhash.enable_scan;
SELECT outer_rows('SELECT a.v FROM js_plain a TABLESAMPLE SYSTEM (100) JOIN js_nulls b ON a.k = b.k LIMIT 1');
SELECT outer_rows('SELECT a.v FROM js_parted a JOIN js_nulls b ON a.k = b.k LIMIT 1');
SELECT outer_rows('SELECT a.v, a.ctid FROM js_plain a JOIN js_nulls b ON a.k = b.k LIMIT 1');
SELECT outer_rows('SELECT a.v FROM js_parted2 a JOIN js_nulls b ON a.k = b.k LIMIT 1');
RESET gpuhash.engine;
SELECT * FROM compare_sources('SELECT a.*, b.name FROM js_plain a TABLESAMPLE SYSTEM (100) JOIN js_kinds b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.*, b.name FROM js_parted a JOIN js_kinds b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.*, b.name FROM js_parted2 a JOIN js_kinds b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.*, b.t, a.tableoid::regclass AS tab FROM js_parent a JOIN js_plain b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.*, b.t FROM ONLY js_parent a JOIN js_plain b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.*, b.name FROM js_view a JOIN js_kinds b ON a.k = b.k WHERE a.v > 3');
SELECT * FROM compare_sources('SELECT a.ctid AS actid, a, b.ctid AS bctid FROM js_plain a JOIN js_nulls b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.v, upper(a.t) AS up, b.n + 1 AS n FROM js_plain a JOIN js_nulls b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT r.relname, a.attname FROM pg_attribute a JOIN pg_class r ON a.attrelid = r.oid WHERE r.relname LIKE ''js%''');
SET enable_partitionwise_join = on;
-- a join of each partition, or one of all: before 19 only the former are compared
SELECT offloaded BETWEEN 1 AND 2 AS offloaded, rows, same, same_without_scan FROM compare_sources('SELECT a.*, b.k AS bk FROM js_parted a JOIN js_parted b ON a.v = b.v');
RESET enable_partitionwise_join;

-- rows of the transaction itself, dead ones and new versions
CREATE TABLE js_life (k int, v int, t text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO js_life SELECT i % 100, i, 'first ' || i FROM generate_series(1, 1000) i;
DELETE FROM js_life WHERE v % 3 = 0;
UPDATE js_life SET t = 'second ' || v WHERE v % 2 = 0;
SELECT * FROM compare_sources('SELECT a.*, b.v AS bv FROM js_life a JOIN js_life b USING (k)');
BEGIN;
INSERT INTO js_life SELECT i % 100, i, 'own ' || i FROM generate_series(1001, 1300) i;
UPDATE js_life SET t = 'third ' || v WHERE v % 5 = 0;
SAVEPOINT a;
DELETE FROM js_life WHERE v % 7 = 0;
SELECT * FROM compare_sources('SELECT a.*, b.v AS bv FROM js_life a JOIN js_life b USING (k)');
ROLLBACK TO a;
SELECT * FROM compare_sources('SELECT a.*, b.v AS bv FROM js_life a JOIN js_life b USING (k)');
-- what the statement itself writes is not among its rows
WITH w AS (INSERT INTO js_life SELECT a.k, -a.v, a.t FROM js_life a JOIN js_life b ON a.v = b.v RETURNING v)
SELECT count(*), min(v) FROM w;
ROLLBACK;
UPDATE js_life a SET t = b.t || '!' FROM js_life b WHERE a.v = b.v + 1;
SELECT count(*) FROM js_life WHERE t LIKE '%!';

-- an open cursor sees its own snapshot, whatever happens between fetches
BEGIN;
DECLARE c CURSOR FOR SELECT a.v, b.t FROM js_life a JOIN js_life b ON a.v = b.v;
MOVE 3 FROM c;
DELETE FROM js_life WHERE v > 20;
SAVEPOINT s;
UPDATE js_life SET v = -v;
MOVE 300 FROM c;
ROLLBACK TO s;
MOVE ALL FROM c;
SELECT count(*) FROM js_life;
COMMIT;
CREATE FUNCTION js_walk() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    r record;
    n int := 0;
BEGIN
    FOR r IN SELECT a.k, a.v FROM js_plain a JOIN js_nulls b ON a.k = b.k LOOP
        BEGIN
            n := n + 1 / (r.v % 3);
        EXCEPTION WHEN division_by_zero THEN
            UPDATE js_plain SET t = 'walked' WHERE v = r.v AND r.v < 100;
        END;
    END LOOP;
    RETURN n;
END $$;
SELECT js_walk();

-- rescans: the table kept or made again, the scan from the start, or with new parameters
CREATE TABLE js_outside AS SELECT i AS p FROM generate_series(1, 6) i;
ANALYZE js_outside;
SELECT * FROM compare_sources('SELECT p, x.* FROM js_outside, LATERAL (SELECT count(*), sum(a.v) FROM js_plain a JOIN js_nulls b ON a.k = b.k AND a.s2 > p * 10) x');
SELECT * FROM compare_sources('SELECT p, x.* FROM js_outside, LATERAL (SELECT count(*), sum(a.v) FROM js_plain a JOIN js_nulls b ON a.k = b.k WHERE b.n > p * 100) x');
SELECT * FROM compare_sources('SELECT p, x.* FROM js_outside, LATERAL (SELECT count(*), sum(a.v) FROM js_plain a LEFT JOIN js_nulls b ON a.k + p = b.k OFFSET 0) x');
SELECT * FROM compare_sources('SELECT p, (SELECT a.v FROM js_plain a JOIN js_nulls b ON a.k = b.k WHERE a.s2 = p AND b.w > p ORDER BY 1 LIMIT 1) FROM js_outside');
SELECT * FROM compare_sources('SELECT p, (SELECT count(*) FROM js_plain a JOIN (SELECT * FROM js_nulls WHERE n < p) b ON a.k = b.k) FROM js_outside');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a.v FROM js_plain a JOIN js_nulls b ON a.k = b.k;
MOVE 700 FROM c;
MOVE BACKWARD 699 FROM c;
MOVE ALL FROM c;
COMMIT;

-- tables of other kinds
CREATE TEMP TABLE js_temp AS SELECT * FROM js_plain;
CREATE UNLOGGED TABLE js_unlogged AS SELECT * FROM js_nulls;
CREATE MATERIALIZED VIEW js_matview AS SELECT k, v FROM js_plain WHERE v > 100;
CREATE TABLE js_none (k int, v int);
SELECT * FROM compare_sources('SELECT a.*, b.w FROM js_temp a JOIN js_unlogged b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT a.*, b.t FROM js_matview a JOIN js_temp b ON a.v = b.v');
SELECT * FROM compare_sources('SELECT a.*, b.t FROM js_none a FULL JOIN js_temp b ON a.k = b.k');
SELECT * FROM compare_sources('SELECT b.t, a.* FROM js_temp b LEFT JOIN js_none a ON a.k = b.k');
SELECT * FROM compare_sources('SELECT b.t, a.* FROM js_temp b JOIN js_none a ON a.k = b.k');
CREATE ACCESS METHOD js_heap2 TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE js_other_am (k int, v int) USING js_heap2;
INSERT INTO js_other_am SELECT i % 300, i FROM generate_series(1, 800) i;
SELECT * FROM compare_sources('SELECT a.v, b.t FROM js_other_am a JOIN js_plain b ON a.k = b.k');

-- a join over a join: rows pass between the two
SET join_collapse_limit = 1;
SELECT * FROM compare_sources('SELECT a.v, a.t, b.name, c.v AS cv, d.w FROM js_plain a JOIN js_kinds b ON a.k = b.k JOIN js_nulls c ON c.k = a.s2 JOIN js_nulls d ON d.w = b.s2');
SELECT * FROM compare_sources('SELECT a.v, b.name, b.wide, c.v AS cv FROM js_plain a LEFT JOIN js_kinds b ON a.k = b.k AND b.s2 < 40 LEFT JOIN js_nulls c ON c.k = b.k WHERE b.name IS NULL OR c.n > 3');
SELECT * FROM compare_sources('SELECT a.v, b.name, c.v AS cv FROM js_plain a FULL JOIN js_kinds b ON a.k = b.k FULL JOIN js_nulls c ON c.k = a.k');
SELECT * FROM compare_sources('SELECT a.v, c.v AS cv FROM js_plain a JOIN js_nulls c ON c.k = a.k WHERE EXISTS (SELECT FROM js_kinds b WHERE b.k = a.k) AND NOT EXISTS (SELECT FROM js_many m WHERE m.c9 = c.n)');
SELECT * FROM compare_sources('SELECT a.v, b.d FROM js_plain a JOIN js_kinds b ON a.k = b.k JOIN js_kinds c ON c.name = b.name AND c.k = b.k8 JOIN js_nulls d ON d.k + 1 = a.k');
SELECT * FROM compare_sources('SELECT a.v, s.up, c.v AS cv FROM js_plain a JOIN (SELECT k, upper(name) || k AS up FROM js_kinds) s ON a.k = s.k JOIN js_nulls c ON c.k = length(s.up)');
SELECT * FROM compare_sources('SELECT p, (SELECT count(*) FROM js_plain a JOIN js_nulls b ON a.k = b.k JOIN js_many m ON m.c8 = a.v WHERE b.n > p AND a.s2 > p) FROM js_outside');
SELECT * FROM compare_sources('SELECT a.v, b.k FROM (SELECT * FROM js_plain WHERE v < 0) a JOIN js_kinds b ON a.k = b.k JOIN js_nulls c ON c.k = a.k');
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT * FROM compare_sources('SELECT a.v, a.t, b.name, b.d, c.v AS cv, c.w FROM js_plain a LEFT JOIN js_nulls c ON c.k = a.k LEFT JOIN js_kinds b ON a.k = b.k');
RESET work_mem;
RESET hash_mem_multiplier;
EXPLAIN (COSTS OFF) SELECT a.v, b.d FROM js_plain a JOIN js_kinds b ON a.k = b.k JOIN js_nulls c ON c.k = a.k;
CREATE FUNCTION join_rows(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json, TIMING OFF, SUMMARY OFF) ' || query INTO plan;
    RETURN QUERY SELECT DISTINCT concat_ws(' ', s.j->>'Hash Cond', 'rows', round((s.j->>'Actual Rows')::numeric), 'loops', s.j->>'Actual Loops',
            CASE WHEN (s.j->>'Temp Written Blocks')::int > 0 THEN 'files' END)
        FROM jsonb_path_query(plan, '$.** ? (@."Custom Plan Provider" == "GpuHashJoin")') s (j) ORDER BY 1;
END $$;
SELECT join_rows('SELECT a.v, b.d FROM js_plain a JOIN js_kinds b ON a.k = b.k JOIN js_nulls c ON c.k = a.k');
SELECT join_rows('SELECT p, (SELECT count(*) FROM js_plain a JOIN js_kinds b ON a.k = b.k JOIN js_nulls c ON c.k = a.k WHERE a.s2 > p) FROM js_outside');
SELECT count(*) FROM js_plain a JOIN js_kinds b ON a.k = b.k;
SELECT count(*) FROM js_plain a JOIN js_kinds b ON a.k = b.k JOIN js_nulls c ON c.k = a.k;
-- files of the join above are not the lower one's
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT join_rows('SELECT a.v, a.t, b.* FROM js_plain a JOIN js_many c ON c.k = a.s2 JOIN js_kinds b ON a.k = b.k');
RESET work_mem;
RESET hash_mem_multiplier;
BEGIN;
DO $$
DECLARE
    c CURSOR FOR SELECT a.v FROM js_plain a JOIN js_kinds b ON a.k = b.k JOIN js_nulls c ON c.k = a.k;
    n bigint;
BEGIN
    OPEN c;
    MOVE FORWARD 1000 FROM c;
    DELETE FROM js_kinds;
    DELETE FROM js_plain;
    MOVE FORWARD ALL FROM c;
    GET DIAGNOSTICS n = ROW_COUNT;
    RAISE NOTICE '% rows more', n;
END $$;
ROLLBACK;
RESET join_collapse_limit;

-- locked rows, and rows looked at again
SELECT count(*) FROM (SELECT a.v FROM js_plain a JOIN js_nulls b ON a.k = b.k FOR UPDATE OF a) s;

-- what EXPLAIN and the statistics say of the scans is what they say of a Seq Scan's
VACUUM js_plain, js_kinds, js_nulls, js_life, js_many;
CREATE FUNCTION scan_counts() RETURNS bigint[] LANGUAGE sql VOLATILE AS $$
    SELECT array_agg(n ORDER BY r, f)
    FROM unnest('{js_plain,js_kinds,js_nulls,js_many}'::regclass[]) WITH ORDINALITY AS t (rel, r),
         LATERAL (VALUES (1, pg_stat_get_xact_numscans(rel)), (2, pg_stat_get_xact_tuples_returned(rel)),
                         (3, pg_stat_get_xact_blocks_fetched(rel)), (4, pg_stat_get_xact_blocks_hit(rel))) v (f, n)
$$;
CREATE FUNCTION scan_reports(query text, with_gpuhash boolean) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
    before bigint[];
    now bigint[];
BEGIN
    PERFORM set_config('gpuhash.enabled', with_gpuhash::text, true);
    before := scan_counts();
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json, TIMING OFF, SUMMARY OFF) ' || query INTO plan;
    now := scan_counts();
    RETURN QUERY SELECT DISTINCT concat_ws(' ', s.j->>'Node Type', s.j->>'Alias', 'rows', (s.j->>'Actual Rows')::float8, 'loops', s.j->>'Actual Loops',
                                           'filtered', s.j->>'Rows Removed by Filter', 'hit', s.j->>'Shared Hit Blocks', 'read', s.j->>'Shared Read Blocks')
        FROM jsonb_path_query(plan, '$.** ? (@."Node Type" == "Seq Scan" && @."Relation Name" != "js_outside")') s (j) ORDER BY 1;
    FOR i IN 1..16 BY 4 LOOP
        RETURN NEXT format('%s scans, %s tuples, %s blocks, %s hit', now[i] - before[i], now[i + 1] - before[i + 1], now[i + 2] - before[i + 2], now[i + 3] - before[i + 3]);
    END LOOP;
END $$;
CREATE FUNCTION compare_reports(query text, OUT reports int, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
    want text[];
    got text[];
BEGIN
    SELECT array_agg(report) INTO want FROM scan_reports(query, false) report;
    SELECT array_agg(report) INTO got FROM scan_reports(query, true) report;
    reports := cardinality(got);
    same := want = got;
    IF NOT same THEN
        RAISE NOTICE '% %', want, got;
    END IF;
END $$;
SELECT * FROM compare_reports('SELECT a.v, b.k FROM js_plain a JOIN js_kinds b ON a.k = b.k');
SELECT * FROM compare_reports('SELECT a.v, b.k FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE a.s2 < 10 AND b.name IS NOT NULL');
SELECT * FROM compare_reports('SELECT a.v, b.k FROM js_plain a LEFT JOIN js_many b ON a.k = b.k');
SELECT * FROM compare_reports('SELECT a.v FROM js_plain a JOIN js_nulls b ON a.k = b.k JOIN js_many c ON c.c2 = a.v');
-- (a device reads an inner side to find that keys have several rows there)
SET gpuhash.engine = 'cpu';
SELECT * FROM compare_reports('SELECT p, (SELECT count(*) FROM js_plain a JOIN js_nulls b ON a.k = b.k WHERE a.s2 > p) FROM js_outside');
RESET gpuhash.engine;
SELECT * FROM scan_reports('SELECT a.v, b.k FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE a.s2 < 10', true);

-- Conditions of a table of some pages are run as a program over each page: all of them, or the first ones.  A value that is
-- not in the page hands its row back, and parameters may change.
CREATE FUNCTION js_third(v int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN v % 3 = 0; END $$;
SELECT pg_relation_size('js_kinds') / current_setting('block_size')::int >= 16 AS has_pages;
SELECT * FROM compare_sources('SELECT a.k, b.v FROM js_kinds a JOIN js_plain b ON a.k = b.k WHERE a.s2 BETWEEN 10 AND 60 AND a.day > date ''2020-03-01''');
SELECT * FROM compare_sources('SELECT a.v, b.k FROM js_plain a JOIN js_kinds b ON a.k = b.k WHERE b.tiny AND b.f8 < 150 AND b.d > 7');
SELECT * FROM compare_sources('SELECT a.k, b.v, a.wide FROM js_kinds a JOIN js_plain b ON a.k = b.k WHERE a.wide LIKE ''w%1%'' AND a.s2 < 80');
SELECT * FROM compare_sources('SELECT a.k, b.v FROM js_kinds a JOIN js_plain b ON a.k = b.k WHERE a.s2 < 70 AND js_third(a.s2) AND a.added = 77');
SELECT * FROM compare_sources('SELECT a.k, b.v FROM js_kinds a JOIN js_plain b ON a.k = b.k WHERE a.s2 <> 5 AND 100 / (a.s2 - 5) > 2');
SELECT * FROM compare_sources('SELECT a.k, b.v FROM js_kinds a JOIN js_plain b ON a.k = b.k WHERE a.s2 > (SELECT min(s2) + 20 FROM js_plain) AND a.k8 > 3');
SELECT * FROM compare_sources('SELECT a.k, b.v FROM js_kinds a JOIN js_plain b ON a.k = b.k WHERE a.s2 < 0');
SELECT * FROM compare_sources('SELECT o.i, s.n FROM generate_series(1, 40) o(i), LATERAL (SELECT count(*) AS n FROM js_kinds a JOIN js_plain b ON a.k = b.k
    WHERE a.s2 < o.i AND js_third(a.s2 + o.i) OFFSET 0) s');

DROP VIEW js_view;
DROP MATERIALIZED VIEW js_matview;
DROP TABLE js_kinds, js_plain, js_nulls, js_many, js_below, js_parted, js_child, js_parent, js_life, js_outside, js_temp, js_unlogged, js_none, js_other_am;
DROP ACCESS METHOD js_heap2;
DROP FUNCTION join_rows(text), compare_sources(text), js_loud(bigint), outer_rows(text), js_walk(), scan_reports(text, boolean), scan_counts(), compare_reports(text), js_third(int);
