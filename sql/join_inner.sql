-- Inner and left joins: keys, NULLs, duplicates, quals, empty sides.
LOAD 'gpuhash';
CREATE TABLE ji_outer AS
    SELECT i AS id, CASE WHEN i % 13 = 0 THEN NULL ELSE (i * 7919) % 500 END AS k,
           i % 7 AS g, 'outer ' || i AS t
    FROM generate_series(1, 3000) i;
CREATE TABLE ji_inner AS
    SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 31) % 400 END AS k,
           i % 5 AS g, 'inner ' || i AS t
    FROM generate_series(1, 900) i;
CREATE TABLE ji_empty (id int, k int, g int, t text);
ANALYZE ji_outer, ji_inner, ji_empty;

-- the plan
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT o.id, i.t FROM ji_outer o JOIN ji_inner i ON i.k = o.k;
EXPLAIN (COSTS OFF) SELECT o.id, i.t FROM ji_outer o JOIN ji_inner i ON i.k = o.k AND i.g < o.g;
EXPLAIN (COSTS OFF) SELECT o.id, i.t FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k AND i.g < o.g WHERE i.t IS NULL OR o.g > 2;
EXPLAIN (COSTS OFF) SELECT o.id, i.t FROM ji_outer o JOIN ji_inner i ON i.k = o.k AND i.g = o.g;
EXPLAIN (COSTS OFF) SELECT o.id, i.t FROM ji_outer o JOIN ji_inner i ON i.k + 1 = o.k * 2;
RESET gpuhash.force_offload;

-- inner
SELECT * FROM compare_join('SELECT o.id, o.t, i.id AS iid, i.t AS it FROM ji_outer o JOIN ji_inner i ON i.k = o.k');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o JOIN ji_inner i ON i.k = o.k AND i.g = o.g');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o JOIN ji_inner i ON i.k = o.k AND i.g < o.g');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o JOIN ji_inner i ON i.k = o.k AND i.id + o.id < 1000 WHERE o.g <> i.g');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o JOIN ji_inner i ON i.k + 1 = o.k * 2');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o JOIN ji_inner i ON i.k = o.k AND i.t < o.t');
SELECT * FROM compare_join('SELECT count(*) FROM ji_outer o JOIN ji_inner i ON i.k = o.k');
SELECT * FROM compare_join('SELECT o, i FROM ji_outer o JOIN ji_inner i ON i.k = o.k');
SELECT * FROM compare_join('SELECT o.ctid AS oc, i.ctid AS ic, o.tableoid::regclass AS tab FROM ji_outer o JOIN ji_inner i ON i.k = o.k');
SELECT * FROM compare_join('SELECT i.g, sum(o.id), count(*) FROM ji_outer o JOIN ji_inner i USING (k) GROUP BY i.g');
SELECT * FROM compare_join('SELECT a.id, b.id AS bid, c.id AS cid FROM ji_inner a JOIN ji_inner b ON a.k = b.k JOIN ji_inner c ON c.id = b.id');
SELECT * FROM compare_join('SELECT DISTINCT o.k FROM ji_outer o JOIN ji_inner i ON i.k = o.k ORDER BY 1');

-- left
SELECT * FROM compare_join('SELECT o.id, i.id AS iid, i.t FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k AND i.g < o.g');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k AND o.g > 3');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k WHERE i.g IS DISTINCT FROM 2');
SELECT * FROM compare_join('SELECT o.id, i.k AS ik, i.k + 1 AS e, coalesce(i.k, -1) AS c FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k WHERE coalesce(i.k, 5) < 100');
SELECT * FROM compare_join('SELECT o.id, s.x, s.y FROM ji_outer o LEFT JOIN (SELECT k, 1 AS x, coalesce(t, ''none'') AS y FROM ji_inner) s ON s.k = o.k');
SELECT * FROM compare_join('SELECT o.id, i, i2.id AS i2id FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k LEFT JOIN ji_inner i2 ON i2.id = i.id AND i2.g = 3');
SELECT * FROM compare_join('SELECT o.id, x.a, x.b FROM ji_outer o LEFT JOIN (SELECT a.k, a.id AS a, b.id AS b FROM ji_inner a LEFT JOIN ji_inner b ON a.id = b.k) x ON x.k = o.k');
-- the inner side is unique: one match at most
CREATE TABLE ji_unique (k int PRIMARY KEY, t text);
INSERT INTO ji_unique SELECT i, 'unique ' || i FROM generate_series(0, 350) i;
ANALYZE ji_unique;
SELECT * FROM compare_join('SELECT o.id, u.t FROM ji_outer o JOIN ji_unique u ON u.k = o.k');
SELECT * FROM compare_join('SELECT o.id, u.t FROM ji_outer o LEFT JOIN ji_unique u ON u.k = o.k AND u.t <> ''unique 7''');

-- empty sides, all NULL, all the same key
SELECT * FROM compare_join('SELECT o.id, e.id AS eid FROM ji_outer o JOIN ji_empty e ON e.k = o.k');
SELECT * FROM compare_join('SELECT o.id, e.id AS eid FROM ji_empty e JOIN ji_outer o ON e.k = o.k');
SELECT * FROM compare_join('SELECT o.id, e.id AS eid FROM ji_outer o LEFT JOIN ji_empty e ON e.k = o.k');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o LEFT JOIN (SELECT * FROM ji_inner WHERE k IS NULL) i ON i.k = o.k');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM (SELECT id, 5 * (id / id) AS k FROM ji_outer WHERE id <= 300) o JOIN (SELECT id, 5 * (id / id) AS k FROM ji_inner) i ON i.k = o.k');

-- other conditions are left to PostgreSQL
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o JOIN ji_inner i ON i.k > o.k AND o.id < 50');
SELECT * FROM compare_join('SELECT o.id, l.id AS lid FROM ji_outer o, LATERAL (SELECT i.id FROM ji_inner i WHERE i.k = o.k OFFSET 0) l');

-- a constant condition stays one (PostgreSQL 15 and 16 keep such joins)
SELECT rows, same FROM compare_join('SELECT o.id FROM ji_outer o JOIN ji_inner i ON i.k = o.k AND now() < ''1999-01-01''');
SELECT * FROM compare_join('SELECT o.id, i.id AS iid FROM ji_outer o LEFT JOIN ji_inner i ON i.k = o.k AND now() < ''1999-01-01''');
DROP TABLE ji_outer, ji_inner, ji_empty, ji_unique;
