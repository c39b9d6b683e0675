-- What an index of the access method gpuhash is used for: whatever a B-tree is.  Queries give what a Seq Scan gives.
SET client_min_messages = warning;
SET gpuhash.enabled = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE item (k int, a int, t text, c text COLLATE "C", d numeric, filler text DEFAULT repeat('x', 60)) WITH (autovacuum_enabled = off);
INSERT INTO item SELECT i * 7919 % 10007, CASE WHEN i % 10 <> 0 THEN i % 100 END, 't' || i % 1000, 'c' || i % 1000, i / 7.0 FROM generate_series(1, 10000) i;
CREATE INDEX item_k ON item USING gpuhash (k) INCLUDE (a);
CREATE INDEX item_a ON item USING gpuhash (a DESC NULLS LAST, k);
CREATE INDEX item_t ON item USING gpuhash (t);
CREATE INDEX item_c ON item USING gpuhash (c) WITH (fillfactor = 70, deduplicate_items = off);
CREATE INDEX item_p ON item USING gpuhash (t text_pattern_ops);
CREATE INDEX item_x ON item USING gpuhash (((d * 7)::int % 1000)) WHERE a > 50;
VACUUM ANALYZE item;
-- also where a snapshot of another session's kept VACUUM from it
UPDATE pg_class SET relallvisible = relpages WHERE oid = 'item'::regclass;
\d item

-- Whether a query gives the same with and without the index, in its order, and how many rows.
CREATE FUNCTION same(query text, OUT rows bigint, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
    want text[];
    got text[];
BEGIN
    SET LOCAL enable_seqscan = off;
    SET LOCAL enable_sort = off;
    EXECUTE 'SELECT array_agg(q::text) FROM (' || query || ') q' INTO got;
    SET LOCAL enable_seqscan = on;
    SET LOCAL enable_sort = on;
    SET LOCAL enable_indexscan = off;
    SET LOCAL enable_indexonlyscan = off;
    SET LOCAL enable_bitmapscan = off;
    EXECUTE 'SELECT array_agg(q::text) FROM (' || query || ') q' INTO want;
    SET LOCAL enable_indexscan = on;
    SET LOCAL enable_indexonlyscan = on;
    SET LOCAL enable_bitmapscan = on;
    rows := cardinality(got);
    same := got IS NOT DISTINCT FROM want;
END $$;

-- one key
EXPLAIN (COSTS OFF) SELECT * FROM item WHERE k = 5;
EXPLAIN (COSTS OFF) SELECT k, a FROM item WHERE k = 5::int2;
EXPLAIN (COSTS OFF) SELECT k, a FROM item WHERE k = 5::int8 AND a > 3;
SELECT * FROM same('SELECT * FROM item WHERE k = 5');
SELECT * FROM same('SELECT * FROM item WHERE k = 5::int8');
SELECT * FROM same('SELECT * FROM item WHERE k = 50000');
SELECT * FROM same('SELECT * FROM item WHERE k = NULL');
-- many
EXPLAIN (COSTS OFF) SELECT k, a FROM item WHERE k = ANY ('{5, 6, 7, 6, NULL}');
SELECT * FROM same('SELECT k, a FROM item WHERE k = ANY (''{5, 6, 7, 6, NULL}'') ORDER BY k');
SELECT * FROM same('SELECT k, a FROM item WHERE a IN (1, 2, 77) AND k IN (SELECT g FROM generate_series(1, 5000) g) ORDER BY 2, 1');
-- ranges, both ways
EXPLAIN (COSTS OFF) SELECT k FROM item WHERE k BETWEEN 5 AND 100 ORDER BY k;
EXPLAIN (COSTS OFF) SELECT k FROM item WHERE k > 9000 ORDER BY k DESC;
SELECT * FROM same('SELECT k FROM item WHERE k BETWEEN 5 AND 100 ORDER BY k');
SELECT * FROM same('SELECT k, a FROM item WHERE k > 9000 ORDER BY k DESC');
SELECT * FROM same('SELECT a, k FROM item WHERE a < 3 ORDER BY a DESC NULLS LAST, k');
SELECT * FROM same('SELECT a, k FROM item WHERE a >= 98 AND k > 100 ORDER BY a NULLS FIRST, k DESC');
-- NULLs
SELECT * FROM same('SELECT a, k FROM item WHERE a IS NULL ORDER BY k');
SELECT * FROM same('SELECT a, k FROM item WHERE a IS NOT NULL ORDER BY a DESC NULLS LAST, k LIMIT 100');
-- order, its ends, what is distinct
EXPLAIN (COSTS OFF) SELECT * FROM item ORDER BY a DESC NULLS LAST, k LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM item ORDER BY t USING ~>~ LIMIT 3;
SELECT * FROM same('SELECT a, k FROM item ORDER BY a DESC NULLS LAST, k');
SELECT * FROM same('SELECT k, a FROM item ORDER BY k OFFSET 100 LIMIT 5');
SELECT * FROM same('SELECT min(k), max(k), min(t), max(c), max(a) FROM item');
SELECT * FROM same('SELECT DISTINCT a FROM item ORDER BY a DESC NULLS LAST');
SELECT * FROM same('SELECT t, count(*) FROM item GROUP BY t ORDER BY t');
-- bitmaps
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM item WHERE k < 300 OR a = 7;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SELECT * FROM same('SELECT count(*), sum(k), min(filler) FROM item WHERE k < 300 OR a = 7');
SELECT * FROM same('SELECT count(*), sum(k), min(filler) FROM item WHERE k < 3000 AND a IN (7, 8) AND t < ''t5''');
-- texts, patterns
EXPLAIN (COSTS OFF) SELECT * FROM item WHERE c LIKE 'c12%';
SELECT * FROM same('SELECT c, k FROM item WHERE c LIKE ''c12%'' ORDER BY c, k');
SELECT * FROM same('SELECT t, k FROM item WHERE t LIKE ''t12%'' ORDER BY t, k');
SELECT * FROM same('SELECT t, k FROM item WHERE t = ''t12'' ORDER BY k');
SELECT * FROM same('SELECT t, k FROM item WHERE t ~<~ ''t12'' ORDER BY k');
-- expressions, and parts of a table
EXPLAIN (COSTS OFF) SELECT * FROM item WHERE a > 60 AND (d * 7)::int % 1000 = 5;
EXPLAIN (COSTS OFF) SELECT count(*) FROM item WHERE a > 40 AND (d * 7)::int % 1000 = 5;
SELECT * FROM same('SELECT k, a FROM item WHERE a > 60 AND (d * 7)::int % 1000 BETWEEN 5 AND 90 ORDER BY k');
-- joins
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 10) g JOIN item ON k = g;
RESET enable_mergejoin;
SET enable_nestloop = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM item x JOIN item y ON x.k = y.k;
SELECT count(*), sum(y.a) FROM item x JOIN item y ON x.k = y.k;
RESET enable_nestloop;
RESET enable_sort;
RESET enable_hashjoin;
SELECT * FROM same('SELECT x.k, y.a FROM item x JOIN item y ON x.k = y.k + 1 WHERE x.k < 100 ORDER BY 1');
-- several processes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT sum(k), count(*) FROM item WHERE k > 100;
SELECT sum(k), count(*) FROM item WHERE k > 100;
EXPLAIN (COSTS OFF) SELECT count(filler) FROM item WHERE k > 100;
SELECT count(filler) FROM item WHERE k > 100;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT count(filler) FROM item WHERE k > 100;
SELECT count(filler) FROM item WHERE k > 100;
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET enable_seqscan;
RESET max_parallel_workers_per_gather;
SET max_parallel_workers_per_gather = 0;
-- cursors, forth and back
BEGIN;
SET LOCAL enable_seqscan = off;
DECLARE x SCROLL CURSOR FOR SELECT k FROM item WHERE k >= 9990 ORDER BY k;
FETCH 3 FROM x;
FETCH BACKWARD 2 FROM x;
MOVE LAST FROM x;
FETCH PRIOR FROM x;
DELETE FROM item WHERE k = 9992;
FETCH ABSOLUTE 3 FROM x;
UPDATE item SET a = -1 WHERE CURRENT OF x;
ROLLBACK;

-- It costs what a B-tree does.
CREATE TABLE cost (k int) WITH (autovacuum_enabled = off);
INSERT INTO cost SELECT generate_series(1, 30000);
CREATE TABLE costs (method text, query text, cost numeric);
CREATE PROCEDURE note_costs(method text) LANGUAGE plpgsql AS $$
DECLARE
    query text;
BEGIN
    EXECUTE format('CREATE INDEX cost_k ON cost USING %s (k)', method);
    ANALYZE cost;
    FOREACH query IN ARRAY ARRAY['k = 5', 'k = ANY (''{1, 2, 3, 4}'')', 'k < 100', 'k BETWEEN 100 AND 20000', 'k IS NULL'] LOOP
        query := 'SELECT * FROM cost WHERE ' || query;
        INSERT INTO costs VALUES (method, query, plan_number(query, 'Total Cost'));
    END LOOP;
    query := 'SELECT * FROM generate_series(1, 1000) g, cost WHERE k = g';
    INSERT INTO costs VALUES (method, query, plan_number(query, 'Total Cost'));
    query := 'SELECT * FROM cost ORDER BY k LIMIT 10';
    INSERT INTO costs VALUES (method, query, plan_number(query, 'Total Cost'));
    DROP INDEX cost_k;
END $$;
SET enable_seqscan = off;
CALL note_costs('btree');
CALL note_costs('gpuhash');
SELECT count(*) FROM costs;
SELECT query, b.cost, g.cost FROM costs b JOIN costs g USING (query) WHERE b.method = 'btree' AND g.method = 'gpuhash' AND b.cost <> g.cost;
DROP TABLE item, cost, costs;
DROP FUNCTION same(text);
DROP PROCEDURE note_costs(text);
