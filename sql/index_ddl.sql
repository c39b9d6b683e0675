-- Making, changing and dropping indexes of the access method gpuhash.
SET client_min_messages = warning;
SET gpuhash.enabled = off;
-- what it can
SELECT property, pg_indexam_has_property(g.oid, property) AS gpuhash
FROM pg_am g, unnest(ARRAY['can_order', 'can_multi_col', 'can_exclude', 'can_include']) property WHERE g.amname = 'gpuhash';
CREATE TABLE item (k int, a int, t text) WITH (autovacuum_enabled = off);
INSERT INTO item SELECT i * 7919 % 3001, i % 100, 't' || i % 1000 FROM generate_series(1, 3000) i;
CREATE INDEX item_k ON item USING gpuhash (k DESC NULLS LAST) INCLUDE (a);
SELECT property, pg_index_column_has_property('item_k', 1, property)
FROM unnest(ARRAY['asc', 'desc', 'nulls_first', 'nulls_last', 'orderable', 'distance_orderable', 'returnable', 'search_array', 'search_nulls']) property;
SELECT property, pg_index_has_property('item_k', property)
FROM unnest(ARRAY['clusterable', 'index_scan', 'bitmap_scan', 'backward_scan']) property;

-- options are a B-tree's
CREATE INDEX item_o ON item USING gpuhash (k) WITH (fillfactor = 60, deduplicate_items = off);
ALTER INDEX item_o SET (fillfactor = 50);
ALTER INDEX item_o SET (fillfactor = 5);
ALTER INDEX item_o SET (buckets = 5);
SELECT reloptions FROM pg_class WHERE relname = 'item_o';
REINDEX INDEX item_o;
SELECT pg_relation_size('item_o') > 1.2 * pg_relation_size('item_k') AS wider;
DROP INDEX item_o;

-- What an index has is what the table has.
CREATE FUNCTION check_index(OUT entries bigint, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
    want text;
    got text;
BEGIN
    SET LOCAL enable_indexscan = off;
    SET LOCAL enable_indexonlyscan = off;
    SET LOCAL enable_bitmapscan = off;
    SELECT count(*), md5(string_agg(ROW(k, a)::text, ',' ORDER BY k, a)) INTO entries, want FROM item WHERE k IS NOT NULL;
    SET LOCAL enable_indexscan = on;
    SET LOCAL enable_indexonlyscan = on;
    SET LOCAL enable_seqscan = off;
    SELECT md5(string_agg(ROW(k, a)::text, ',' ORDER BY k, a)) INTO got FROM item WHERE k IS NOT NULL;
    SET LOCAL enable_seqscan = on;
    same := got IS NOT DISTINCT FROM want;
END $$;
SELECT * FROM check_index();
DROP INDEX item_k;
CREATE INDEX CONCURRENTLY item_k ON item USING gpuhash (k) INCLUDE (a);
SELECT * FROM check_index();
REINDEX INDEX item_k;
REINDEX INDEX CONCURRENTLY item_k;
REINDEX TABLE CONCURRENTLY item;
SELECT relname, amname, indisvalid, indisready FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
WHERE indrelid = 'item'::regclass;
SELECT * FROM check_index();
CLUSTER item USING item_k;
SELECT bool_and(k >= before) FROM (SELECT k, lag(k) OVER (ORDER BY ctid) AS before FROM item) i;
SELECT indisclustered FROM pg_index WHERE indexrelid = 'item_k'::regclass;
SELECT * FROM check_index();
-- deletes, updates, VACUUM of all kinds
DELETE FROM item WHERE k % 3 = 0;
UPDATE item SET a = a + 1 WHERE k % 3 = 1;
UPDATE item SET t = 'u' WHERE k % 5 = 1;
SELECT * FROM check_index();
VACUUM item;
SELECT * FROM check_index();
INSERT INTO item SELECT i, i FROM generate_series(1, 3000, 7) i;
VACUUM (FULL, ANALYZE) item;
SELECT * FROM check_index();
CREATE INDEX item_a ON item USING gpuhash (a);
CREATE INDEX item_t ON item USING gpuhash (t);
DELETE FROM item WHERE k % 2 = 0;
SET min_parallel_index_scan_size = 0;
VACUUM (PARALLEL 2, INDEX_CLEANUP on) item;
RESET min_parallel_index_scan_size;
SELECT * FROM check_index();
DROP INDEX item_a, item_t;
TRUNCATE item;
SELECT * FROM check_index();
INSERT INTO item SELECT i, -i FROM generate_series(1, 500) i;
SELECT * FROM check_index();
-- in one transaction, and rolled back
BEGIN;
TRUNCATE item;
INSERT INTO item SELECT i % 5, i FROM generate_series(1, 50) i;
TRUNCATE item;
INSERT INTO item SELECT i % 7, i FROM generate_series(1, 60) i;
SELECT * FROM check_index();
SAVEPOINT s;
DROP INDEX item_k;
CREATE INDEX item_k ON item USING gpuhash (k, a);
INSERT INTO item VALUES (1000, 1000);
SELECT * FROM check_index();
ROLLBACK TO s;
REINDEX TABLE item;
INSERT INTO item VALUES (2000, 1000);
SELECT * FROM check_index();
ROLLBACK;
SELECT * FROM check_index();
-- rewrites
ALTER TABLE item ALTER k TYPE bigint;
SELECT * FROM check_index();
ALTER TABLE item SET UNLOGGED;
INSERT INTO item VALUES (3000, 3000);
SELECT * FROM check_index();
ALTER TABLE item SET LOGGED;
SELECT * FROM check_index();
ALTER INDEX item_k RENAME TO item_key;
ALTER TABLE item DROP COLUMN t;
SELECT * FROM check_index();
-- an error while it is built leaves nothing
CREATE FUNCTION fails(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / ($1 - 77); END $$;
CREATE INDEX item_f ON item USING gpuhash (fails(k));
-- one index is built while another one is
CREATE FUNCTION make() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass('public.item_made') IS NULL THEN
        CREATE TABLE public.item_made (k int);
        CREATE INDEX ON public.item_made USING gpuhash (k);
    END IF;
END $$;
CREATE FUNCTION makes(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.make(); RETURN $1; END $$;
CREATE INDEX item_m ON item USING gpuhash (makes(k));
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname IN ('item_m', 'item_made_k_idx') ORDER BY relname;
DROP TABLE item, item_made;
DROP FUNCTION check_index(), fails(bigint), makes(bigint), make();

-- large keys: a B-tree's limit
CREATE TABLE wide (t text);
CREATE INDEX wide_t ON wide USING gpuhash (t);
INSERT INTO wide SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100) i;
INSERT INTO wide VALUES (repeat('x', 5000));
SELECT length(t) FROM wide WHERE t > 'a';
DROP TABLE wide;

-- partitions
CREATE TABLE part (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE INDEX part_k ON part USING gpuhash (k) INCLUDE (v);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (100) TO (200);
CREATE TABLE part3 (k int, v int);
CREATE INDEX part3_k ON part3 USING gpuhash (k) INCLUDE (v);
INSERT INTO part3 SELECT i, i FROM generate_series(200, 299) i;
ALTER TABLE part ATTACH PARTITION part3 FOR VALUES FROM (200) TO (300);
-- another access method's is not the same
CREATE TABLE part4 (k int, v int);
CREATE INDEX part4_k ON part4 (k) INCLUDE (v);
ALTER TABLE part ATTACH PARTITION part4 FOR VALUES FROM (300) TO (400);
SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'part_k'::regclass ORDER BY 1;
INSERT INTO part SELECT i, i FROM generate_series(0, 399) i WHERE i NOT BETWEEN 200 AND 299;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT k, v FROM part ORDER BY k LIMIT 1;
SELECT count(*), sum(v), min(k), max(k) FROM part WHERE k BETWEEN 50 AND 333;
RESET enable_seqscan;
DROP TABLE part;

-- exclusion constraints, which make it unique on all versions
CREATE TABLE excluded (k int, v int, EXCLUDE USING gpuhash (k WITH =) INCLUDE (v) WHERE (v > 0));
INSERT INTO excluded VALUES (1, 1), (2, 2), (NULL, 1), (NULL, 1), (3, -3), (3, -3);
INSERT INTO excluded VALUES (2, 1);
INSERT INTO excluded VALUES (2, 1), (5, 5) ON CONFLICT DO NOTHING;
UPDATE excluded SET k = 1 WHERE k = 2;
UPDATE excluded SET v = 9;
ALTER TABLE excluded ADD CONSTRAINT later EXCLUDE USING gpuhash (k WITH =, v WITH =) DEFERRABLE INITIALLY DEFERRED;
UPDATE excluded SET v = k WHERE v > 0;
BEGIN;
INSERT INTO excluded VALUES (7, -7), (7, -7);
COMMIT;
SELECT * FROM excluded ORDER BY k, v;
DROP TABLE excluded;

-- temporary tables, materialized views, replica identity
CREATE TEMP TABLE temporary (k int) ON COMMIT DELETE ROWS;
CREATE INDEX ON temporary USING gpuhash (k);
BEGIN;
INSERT INTO temporary SELECT generate_series(1, 1000);
SET LOCAL enable_seqscan = off;
SELECT count(*) FROM temporary WHERE k > 990;
COMMIT;
SELECT count(*) FROM temporary WHERE k > 990;
DROP TABLE temporary;
CREATE MATERIALIZED VIEW seen AS SELECT i AS k, i % 7 AS v FROM generate_series(1, 100) i;
CREATE INDEX ON seen USING gpuhash (k, v);
REFRESH MATERIALIZED VIEW seen;
SET enable_seqscan = off;
SELECT count(*) FROM seen WHERE k > 50;
RESET enable_seqscan;
DROP MATERIALIZED VIEW seen;

-- what goes with what
CREATE TABLE item (k int);
CREATE INDEX item_k ON item USING gpuhash (k);
SELECT pg_get_indexdef('item_k'::regclass);
-- how indexes become B-trees of PostgreSQL's own, as doc/indexes.md says, and one that has none stays
CREATE TABLE becomes (k int, t text, "odd ON" int);
CREATE INDEX becomes_k ON becomes USING gpuhash (k) WHERE k > 5;
CREATE INDEX "INDEX x ON" ON becomes USING gpuhash (t text_pattern_ops DESC) INCLUDE ("odd ON") WITH (fillfactor = 70);
CREATE INDEX becomes_new ON becomes USING gpuhash ("odd ON");
INSERT INTO becomes SELECT i, 't' || i, i FROM generate_series(1, 100) i;
CREATE TEMP VIEW others AS SELECT c.oid, c.relname, i.indrelid, replace(replace(pg_get_indexdef(c.oid), ' USING gpuhash ', ' USING btree '), format('INDEX %I ON', c.relname), 'INDEX ON') AS definition
FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid WHERE a.amname = 'gpuhash' AND c.relkind = 'i' AND i.indrelid = 'becomes'::regclass;
SELECT replace(definition, 'INDEX ON', 'INDEX CONCURRENTLY ON') || ';' FROM others WHERE relname <> 'becomes_new' ORDER BY relname
\gexec
SELECT format('DROP INDEX CONCURRENTLY %s;', oid::regclass) FROM others o
WHERE EXISTS (SELECT FROM pg_class b JOIN pg_index j ON j.indexrelid = b.oid WHERE j.indrelid = o.indrelid AND j.indisvalid AND j.indisready AND
    replace(pg_get_indexdef(b.oid), format('INDEX %I ON', b.relname), 'INDEX ON') = definition)
ORDER BY relname
\gexec
SELECT indexdef FROM pg_indexes WHERE tablename = 'becomes' ORDER BY indexname;
DROP VIEW others;
DROP TABLE becomes;
BEGIN;
DROP EXTENSION gpuhash;
ROLLBACK;
BEGIN;
SET LOCAL client_min_messages = notice;
DROP EXTENSION gpuhash CASCADE;
SELECT count(*) FROM pg_am WHERE amname = 'gpuhash';
\d item
ROLLBACK;
\d item
DROP TABLE item;
