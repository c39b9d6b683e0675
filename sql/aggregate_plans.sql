-- Where in a plan an aggregation may stand, and what makes its input change.
LOAD 'gpuhash';
-- subqueries that run for each row are what some of these test
SET gpuhash.enable_unnest = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE ap (id int, g int, k int, n numeric(10, 2), t text, ts timestamptz);
INSERT INTO ap SELECT i, i % 10, CASE WHEN i % 6 > 0 THEN i % 100 END, i / 4.0, 't' || i % 20, now() + i * interval '1 minute' FROM generate_series(1, 3000) i;
CREATE TABLE ap_small AS SELECT i AS id, i * 100 AS low, CASE WHEN i % 3 > 0 THEN 't' || i END AS t FROM generate_series(1, 12) i;
ANALYZE ap, ap_small;

-- prepared statements: custom plans, then a generic one; parameters in every place; NULL
SET gpuhash.force_offload = on;
PREPARE p(int, numeric, text) AS
    SELECT g + $1 AS g, count(*), sum(k * $1), sum(n + $2), count(*) FILTER (WHERE t = $3), max(CASE WHEN n > $2 THEN n ELSE $2 END) FROM ap WHERE id > $1 * 100 AND (t <> $3 OR $3 IS NULL)
    GROUP BY g + $1 HAVING count(*) > $1 ORDER BY 1 LIMIT 3;
SET plan_cache_mode = force_custom_plan;
EXECUTE p(3, 1.5, 't7');
EXECUTE p(3, 1.500, NULL);
EXECUTE p(NULL, 1, 't7');
SET plan_cache_mode = force_generic_plan;
EXECUTE p(3, 1.5, 't7');
EXECUTE p(3, 1.500, NULL);
EXECUTE p(3, 'NaN', 't7');
EXECUTE p(3, 1e60, 't7');
EXECUTE p(NULL, 1, 't7');
EXECUTE p(4, 2, 't1');
EXPLAIN (COSTS OFF) EXECUTE p(3, 1.5, 't7');
RESET plan_cache_mode;
PREPARE zero(int) AS SELECT g, sum(100 / (id - $1)) FILTER (WHERE id <> $1), count(*) FROM ap WHERE id < 30 OR 1 / $1 > 0 GROUP BY g ORDER BY g LIMIT 2;
EXECUTE zero(0);
EXECUTE zero(1);
SET plan_cache_mode = force_generic_plan;
EXECUTE zero(0);
EXECUTE zero(1);
RESET plan_cache_mode;
-- a plan is made again when a column's scale changes
PREPARE scaled AS SELECT sum(n), min(n), avg(n), max(n * n) FROM ap WHERE id < 10;
EXECUTE scaled;
ALTER TABLE ap ALTER n TYPE numeric(12, 4);
EXECUTE scaled;
ALTER TABLE ap ALTER n TYPE numeric;
EXECUTE scaled;
ALTER TABLE ap ALTER n TYPE numeric(10, 2);
EXECUTE scaled;
DEALLOCATE ALL;
-- in functions
CREATE FUNCTION ap_sum(low int, high int) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    s numeric;
BEGIN
    SELECT sum(n) INTO s FROM ap WHERE id BETWEEN low AND high;
    RETURN s;
END $$;
CREATE FUNCTION ap_group(int) RETURNS TABLE (g int, c bigint) LANGUAGE sql STABLE AS 'SELECT g, count(*) FROM ap WHERE k = $1 GROUP BY g';
SELECT i, ap_sum(i, i * 10) FROM generate_series(1, 9) i;
SELECT x.k, r.* FROM (VALUES (3), (4), (NULL), (5)) x(k), LATERAL ap_group(x.k) r ORDER BY 1, 2;
DROP FUNCTION ap_sum(int, int), ap_group(int);
RESET gpuhash.force_offload;

CREATE TEMP TABLE ap_queries (position serial, query text);
INSERT INTO ap_queries (query) VALUES
    -- subqueries: with other parameters each time, once, and in conditions
    ('SELECT s.id, (SELECT sum(a.n) FROM ap a WHERE a.id > s.low) FROM ap_small s'),
    ('SELECT s.id, (SELECT sum(a.n + s.low) FROM ap a WHERE a.g = s.id) FROM ap_small s'),
    ('SELECT s.id, (SELECT count(*) FILTER (WHERE a.t = s.t) FROM ap a) FROM ap_small s'),
    ('SELECT s.id, (SELECT sum(100 / (a.g - s.id)) FROM ap a WHERE a.g <> s.id) FROM ap_small s'),
    ('SELECT s.id, x.* FROM ap_small s, LATERAL (SELECT a.g + s.id AS gg, count(*), avg(a.n) FROM ap a WHERE a.id > s.low GROUP BY 1) x'),
    ('SELECT s.id, x.* FROM ap_small s LEFT JOIN LATERAL (SELECT a.t, count(*) AS c FROM ap a WHERE a.t = s.t GROUP BY 1 HAVING count(*) > s.id) x ON true'),
    ('SELECT s.id, x.* FROM ap_small s, LATERAL (SELECT count(*) AS c FROM ap WHERE g = 3 OFFSET 0) x'),
    ('SELECT s.id, (SELECT count(*) FROM (SELECT a.k FROM ap a WHERE a.id > s.low GROUP BY a.k HAVING sum(a.n) > s.low) y) FROM ap_small s'),
    ('SELECT g, count(*) FROM ap WHERE id > (SELECT max(low) FROM ap_small) GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE n > (SELECT avg(n) FROM ap) GROUP BY g'),
    ('SELECT g, sum(id + (SELECT min(low) FROM ap_small)) FROM ap GROUP BY g'),
    ('SELECT g + (SELECT min(id) FROM ap_small), count(*) FROM ap GROUP BY 1'),
    ('SELECT g, count(*) FILTER (WHERE id > (SELECT max(low) FROM ap_small)) FROM ap GROUP BY g'),
    ('SELECT g, sum(n + (SELECT 0.12345)) FROM ap GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE n > (SELECT low FROM ap_small WHERE id = 100) GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE false AND n > (SELECT low FROM ap_small) GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE id < 0 AND n > (SELECT low FROM ap_small) GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE n > (SELECT low FROM ap_small) GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE t IN (SELECT t FROM ap_small) OR id < 50 GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE id NOT IN (SELECT id FROM ap_small) GROUP BY g'),
    ('SELECT g, count(*) FROM ap a WHERE (SELECT s.low FROM ap_small s WHERE s.id = a.g) > a.id GROUP BY g'),
    ('SELECT g, sum((SELECT s.low FROM ap_small s WHERE s.id = a.g)) FROM ap a GROUP BY g'),
    ('SELECT g, sum(CASE WHEN g = 2 THEN (SELECT count(*) FROM ap_small) END) FROM ap GROUP BY g'),
    -- stable functions and what is known when the query starts
    ('SELECT g, count(*) FROM ap WHERE ts > now() + interval ''100 minutes'' GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE ts::date >= current_date GROUP BY g'),
    ('SELECT g, min(ts), max(ts) FROM ap WHERE ts > timestamp ''2001-01-01 00:00'' GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE t = current_setting(''work_mem'') OR id = -pg_backend_pid() GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE current_user = session_user GROUP BY g'),
    ('SELECT g, count(*) FROM ap WHERE random() < 2 GROUP BY g'),
    -- CTEs, sets, nests
    ('WITH x AS MATERIALIZED (SELECT g, sum(n) AS s FROM ap GROUP BY g) SELECT a.g, a.s, b.s AS bs FROM x a JOIN x b ON a.g = b.g + 1'),
    ('WITH x AS MATERIALIZED (SELECT * FROM ap WHERE k > 3) SELECT g, count(*), sum(n) FROM x GROUP BY g'),
    ('WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 2000) SELECT i % 5, count(*), sum(i) FROM r GROUP BY 1'),
    ('WITH RECURSIVE r(i, c) AS (SELECT 1, 0::bigint UNION ALL SELECT i + 1, (SELECT count(*) FROM ap WHERE g = i) FROM r WHERE i < 8) SELECT * FROM r'),
    ('SELECT g, count(*) FROM ap GROUP BY g UNION ALL SELECT k, count(*) FROM ap GROUP BY k'),
    ('SELECT count(*), sum(n) FROM ap UNION ALL SELECT count(*), avg(n) FROM ap WHERE g = 1 UNION ALL SELECT 0, NULL'),
    ('SELECT g, count(*) FROM ap GROUP BY g EXCEPT SELECT k, 300 FROM ap GROUP BY k'),
    ('SELECT g, count(*) FROM (SELECT g, n FROM ap UNION ALL SELECT id, low FROM ap_small) u GROUP BY g'),
    ('SELECT x, count(*) FROM generate_series(1, 1000) s(i), LATERAL (SELECT i % 7 AS x) y GROUP BY x'),
    ('SELECT x, count(*) FROM (VALUES (1), (1), (2), (NULL)) v(x) GROUP BY x'),
    ('SELECT a.c, count(*) FROM (SELECT g, count(*) AS c FROM ap WHERE id % 7 < 4 GROUP BY g) a GROUP BY a.c'),
    ('SELECT a.g, a.s, b.k FROM (SELECT g, sum(n) AS s FROM ap GROUP BY g) a JOIN (SELECT k, count(*) FROM ap GROUP BY k) b ON a.g = b.k'),
    ('SELECT count(*) FROM (SELECT * FROM ap ORDER BY id LIMIT 100) s'), ('SELECT g, sum(id) FROM (SELECT * FROM ap ORDER BY id LIMIT 100 OFFSET 5) s GROUP BY g'),
    ('SELECT g, count(*) FROM ap TABLESAMPLE SYSTEM (100) GROUP BY g'), ('SELECT count(*) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relname = ''ap'''),
    ('SELECT g, count(*) FROM ap WHERE ctid > ''(3,1)'' AND tableoid = ''ap''::regclass GROUP BY g'), ('SELECT xmin IS NULL, count(*) FROM ap GROUP BY 1'),
    ('SELECT count(*) FROM ap WHERE id = 5'), ('SELECT min(id), max(id) FROM ap');
SELECT q.query, c.offloaded, c.result, c.same FROM ap_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
-- with an index, which may be the better way to the rows or to a least one
CREATE INDEX ON ap (id);
CREATE INDEX ON ap (g, k);
SELECT count(*) FILTER (WHERE c.same = 'same') AS same, count(*) FROM ap_queries q, LATERAL compare_aggregate(q.query) c;
SELECT c.same, c.result FROM compare_aggregate('SELECT g, k, count(*), sum(n) FROM ap WHERE id < 50 GROUP BY g, k ORDER BY g, k', in_order => true) c;
SET enable_hashagg = off;
SELECT count(*) FILTER (WHERE c.same = 'same') AS same, count(*) FROM ap_queries q, LATERAL compare_aggregate(q.query) c;
RESET enable_hashagg;
DROP TABLE ap_queries;

-- partitions and children
CREATE TABLE ap_parted (k int, g int, v numeric(8, 2), t text) PARTITION BY LIST (g);
CREATE TABLE ap_parted1 PARTITION OF ap_parted FOR VALUES IN (0, 1, 2);
CREATE TABLE ap_parted2 (extra text, t text, v numeric(8, 2), g int, k int);
ALTER TABLE ap_parted2 DROP COLUMN extra;
ALTER TABLE ap_parted ATTACH PARTITION ap_parted2 FOR VALUES IN (3, 4, NULL);
CREATE TABLE ap_parted3 PARTITION OF ap_parted DEFAULT PARTITION BY RANGE (k);
CREATE TABLE ap_parted3a PARTITION OF ap_parted3 FOR VALUES FROM (0) TO (50);
CREATE TABLE ap_parted3b PARTITION OF ap_parted3 DEFAULT;
INSERT INTO ap_parted SELECT i % 100, CASE WHEN i % 8 < 7 THEN i % 8 END, i / 3.0, 't' || i % 9 FROM generate_series(1, 2000) i;
CREATE TABLE ap_parent (k int, n numeric(6, 2), v int);
CREATE TABLE ap_child (more text) INHERITS (ap_parent);
INSERT INTO ap_parent SELECT i % 30, i, i FROM generate_series(1, 500) i;
INSERT INTO ap_child SELECT i % 30, i + 0.5, i, 'more ' || i FROM generate_series(501, 900) i;
ANALYZE ap_parted, ap_parent, ap_child;
CREATE TEMP TABLE ap_queries (position serial, query text);
INSERT INTO ap_queries (query) VALUES ('SELECT g, count(*), sum(v), min(k) FROM ap_parted GROUP BY g'), ('SELECT k, count(*), avg(v) FROM ap_parted GROUP BY k'), ('SELECT g, t, sum(k) FROM ap_parted WHERE v > 100 GROUP BY g, t HAVING count(*) > 3'),
    ('SELECT count(*), sum(v) FROM ap_parted'), ('SELECT g, count(*) FROM ap_parted WHERE g IN (1, 3) GROUP BY g'), ('SELECT g, count(*) FROM ap_parted2 GROUP BY g'), ('SELECT a.g, count(*), sum(b.v) FROM ap_parted a JOIN ap_parted b ON a.g = b.g AND a.k = b.k GROUP BY a.g'),
    ('SELECT k, sum(n), avg(v) FROM ap_parent GROUP BY k'), ('SELECT k, sum(n), avg(v) FROM ONLY ap_parent GROUP BY k'), ('SELECT tableoid::regclass, count(*) FROM ap_parent GROUP BY tableoid'), ('SELECT tableoid::regclass, g, count(*) FROM ap_parted GROUP BY 1, 2'), ('SELECT count(more), max(v) FROM ap_child');
SELECT q.query, c.result, c.same FROM ap_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SET enable_partitionwise_aggregate = on;
SET enable_partitionwise_join = on;
SELECT q.query, c.result, c.same FROM ap_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT c.offloaded FROM compare_aggregate('SELECT g, count(*), sum(v), min(k) FROM ap_parted GROUP BY g') c;
RESET enable_partitionwise_aggregate;
RESET enable_partitionwise_join;
DROP TABLE ap_queries, ap_parted, ap_parent, ap_child;

-- cursors: forth and back, held, and closed early
SET gpuhash.force_offload = on;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT g, count(*), sum(n) FROM ap GROUP BY g ORDER BY g;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH LAST FROM c;
FETCH FIRST FROM c;
MOVE ABSOLUTE 5 IN c;
FETCH 1 FROM c;
DECLARE d CURSOR FOR SELECT g, count(*) FROM ap GROUP BY g;
MOVE 3 IN d;
DECLARE h CURSOR WITH HOLD FOR SELECT g, sum(id) FROM ap WHERE g < 3 GROUP BY g ORDER BY g;
CLOSE d;
COMMIT;
FETCH ALL FROM h;
CLOSE h;
-- rows of one's own, seen as the cursor's snapshot has them
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(id) FROM ap;
DELETE FROM ap WHERE id <= 1000;
FETCH ALL FROM c;
SELECT count(*), sum(id) FROM ap;
ROLLBACK;
-- results as the input of other statements
CREATE TABLE ap_made AS SELECT g, sum(n) AS s FROM ap GROUP BY g;
INSERT INTO ap_made SELECT 100 + g, count(*) FROM ap GROUP BY g;
UPDATE ap_made m SET s = x.c FROM (SELECT g, count(*) AS c FROM ap WHERE k < 5 GROUP BY g) x WHERE x.g = m.g;
DELETE FROM ap_made WHERE s < (SELECT avg(k) / 2 FROM ap);
SELECT * FROM ap_made ORDER BY g;
WITH gone AS (DELETE FROM ap_made WHERE g < 105 RETURNING *) SELECT g % 2, count(*), sum(s) FROM gone GROUP BY 1 ORDER BY 1;
MERGE INTO ap_made m USING (SELECT g + 100 AS g, max(id) AS high FROM ap GROUP BY g) x ON x.g = m.g WHEN MATCHED THEN UPDATE SET s = high WHEN NOT MATCHED THEN INSERT VALUES (x.g, -high);
SELECT * FROM ap_made ORDER BY g;
CREATE MATERIALIZED VIEW ap_view AS SELECT g, avg(n) AS a FROM ap GROUP BY g;
SELECT g % 3, sum(a) FROM ap_view GROUP BY 1 ORDER BY 1;
REFRESH MATERIALIZED VIEW ap_view;
COPY (SELECT g, count(*) FROM ap GROUP BY g ORDER BY g LIMIT 3) TO STDOUT;
SELECT g, count(*) FROM (SELECT g FROM ap FOR UPDATE) s GROUP BY g ORDER BY g LIMIT 2;
DROP MATERIALIZED VIEW ap_view;

-- the switches
EXPLAIN (COSTS OFF) SELECT g, sum(n) FROM ap GROUP BY g HAVING count(*) > 3;
SET gpuhash.enable_aggregate = off;
EXPLAIN (COSTS OFF) SELECT g, sum(n) FROM ap GROUP BY g HAVING count(*) > 3;
RESET gpuhash.enable_aggregate;
SET gpuhash.enabled = off;
EXPLAIN (COSTS OFF) SELECT g, sum(n) FROM ap GROUP BY g HAVING count(*) > 3;
RESET gpuhash.enabled;
SET gpuhash.enable_scan = off;
SELECT * FROM compare_aggregate('SELECT g, sum(n), count(*) FILTER (WHERE k > 4) FROM ap WHERE t <> ''t3'' GROUP BY g');
RESET gpuhash.enable_scan;
RESET gpuhash.force_offload;
DROP TABLE ap, ap_small, ap_made;
