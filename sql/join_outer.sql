-- Right, full, semi and anti joins: which plan, and the same rows as without gpuhash.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE jo_big AS
    SELECT i AS id, CASE WHEN i % 13 = 0 THEN NULL ELSE (i * 7919) % 500 END AS k,
           i % 7 AS g, 'big ' || i AS t
    FROM generate_series(1, 3000) i;
CREATE TABLE jo_small AS
    SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 31) % 600 / 2 + 250 END AS k,
           i / 7 % 5 AS g, 'small ' || i AS t
    FROM generate_series(1, 700) i;
CREATE TABLE jo_unique (k int PRIMARY KEY, t text);
INSERT INTO jo_unique SELECT i, 'unique ' || i FROM generate_series(0, 550) i;
CREATE TABLE jo_empty (id int, k int, g int, t text);
CREATE TABLE jo_nulls AS SELECT i AS id, NULL::int AS k, 1 AS g, 'null ' || i AS t FROM generate_series(1, 20) i;
ANALYZE jo_big, jo_small, jo_unique, jo_empty, jo_nulls;

-- the plans
CREATE FUNCTION jo_plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    SET LOCAL gpuhash.force_offload = on;
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        RETURN NEXT line;
    END LOOP;
END $$;
SELECT jo_plan('SELECT b.id, s.t FROM jo_big b LEFT JOIN jo_small s ON s.k = b.k');
SELECT jo_plan('SELECT b.id, s.t FROM jo_small s LEFT JOIN jo_big b ON s.k = b.k AND s.g < b.g WHERE b.t IS NULL OR s.g > 2');
SELECT jo_plan('SELECT b.id, s.t FROM jo_small s FULL JOIN jo_big b ON s.k = b.k AND s.g < b.g WHERE b.t IS NULL OR s.g > 2');
SELECT jo_plan('SELECT b.id FROM jo_big b WHERE EXISTS (SELECT FROM jo_small s WHERE s.k = b.k AND s.g <> b.g)');
SELECT jo_plan('SELECT b.id FROM jo_big b WHERE NOT EXISTS (SELECT FROM jo_small s WHERE s.k = b.k AND s.g <> b.g)');
SELECT jo_plan('SELECT b.id FROM jo_small b WHERE k IN (SELECT s.k FROM jo_big s)');

-- each type, either side the larger one
CREATE TABLE jo_queries (number int, query text);
INSERT INTO jo_queries VALUES
    (1, 'SELECT a.id, a.t, b.id AS bid, b.t AS bt FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k'),
    (2, 'SELECT a.id, b.id AS bid FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k AND a.g < b.g'),
    (3, 'SELECT a.id, b.id AS bid FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k AND b.g > 3'),
    (4, 'SELECT a.id, b.id AS bid FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k AND a.g > 3'),
    (5, 'SELECT a.id, b.id AS bid, coalesce(b.k, -1) AS c FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k WHERE b.g IS DISTINCT FROM 2'),
    (6, 'SELECT a, b FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k AND a.g <> b.g'),
    (7, 'SELECT a.id, s.x, s.y FROM %1$s a LEFT JOIN (SELECT k, 1 AS x, coalesce(t, ''none'') AS y FROM %2$s) s ON s.k = a.k'),
    (8, 'SELECT a.id, a.t, b.id AS bid, b.t AS bt FROM %1$s a FULL JOIN %2$s b ON a.k = b.k'),
    (9, 'SELECT a.id, b.id AS bid FROM %1$s a FULL JOIN %2$s b ON a.k = b.k AND a.g < b.g'),
    (10, 'SELECT a.id, b.id AS bid FROM %1$s a FULL JOIN %2$s b ON a.k = b.k AND a.g = b.g WHERE coalesce(a.id, b.id) %% 3 <> 1'),
    (11, 'SELECT k, a.id, b.id AS bid FROM %1$s a FULL JOIN %2$s b USING (k)'),
    (12, 'SELECT a.id, b.id AS bid FROM (SELECT * FROM %1$s WHERE id %% 2 = 0) a FULL JOIN (SELECT * FROM %2$s WHERE g = 1) b ON a.k = b.k'),
    (13, 'SELECT a.id FROM %1$s a WHERE EXISTS (SELECT FROM %2$s b WHERE a.k = b.k)'),
    (14, 'SELECT a.id, a.t FROM %1$s a WHERE EXISTS (SELECT FROM %2$s b WHERE a.k = b.k AND a.g < b.g)'),
    (15, 'SELECT a.id FROM %1$s a WHERE k IN (SELECT k FROM %2$s)'),
    (16, 'SELECT a.id, a.t FROM %1$s a WHERE (k, g) IN (SELECT k, g FROM %2$s)'),
    (17, 'SELECT a.id FROM %1$s a WHERE k + 1 IN (SELECT k * 2 FROM %2$s)'),
    (18, 'SELECT a.id FROM %1$s a WHERE NOT EXISTS (SELECT FROM %2$s b WHERE a.k = b.k)'),
    (19, 'SELECT a.id, a.t FROM %1$s a WHERE NOT EXISTS (SELECT FROM %2$s b WHERE a.k = b.k AND a.g < b.g)'),
    (20, 'SELECT a.id, a.k, b.k AS bk, b.t FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k WHERE b.k IS NULL'),
    (21, 'SELECT a.id, c.id AS cid FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k AND b.g > 2 RIGHT JOIN %2$s c ON c.id = a.id AND b.g > 3'),
    (22, 'SELECT count(*), sum(a.id) AS sa, sum(b.id) AS sb FROM %1$s a FULL JOIN %2$s b ON a.k = b.k'),
    (23, 'SELECT a.id, b.id AS bid FROM %1$s a FULL JOIN %2$s b ON a.t = b.t'),
    (24, 'SELECT a.id, u.t FROM %1$s a LEFT JOIN jo_unique u ON u.k = a.k AND u.t <> ''unique 7'''),
    (25, 'SELECT a.id, u.t FROM %1$s a RIGHT JOIN jo_unique u ON u.k = a.k'),
    (26, 'SELECT a.id, u.t FROM %1$s a FULL JOIN jo_unique u ON u.k = a.k AND a.g > 2'),
    (27, 'SELECT u.t FROM jo_unique u WHERE NOT EXISTS (SELECT FROM %1$s a WHERE u.k = a.k AND a.g > 5)'),
    (28, 'SELECT a.id, b.id AS bid FROM %1$s a LEFT JOIN %2$s b ON a.k = b.k WHERE coalesce(b.g, 2) = a.g'),
    (29, 'SELECT a.id, b.id AS bid FROM %1$s a FULL JOIN %2$s b ON a.k = b.k WHERE coalesce(b.g, 2) = coalesce(a.g, 3)'),
    (30, 'SELECT u.t, b.id AS bid FROM jo_unique u LEFT JOIN %2$s b ON u.k = b.id WHERE coalesce(b.k, 7) = u.k');
CREATE FUNCTION jo_compare(tables text[]) RETURNS TABLE (number int, bad text) LANGUAGE sql AS $$
    SELECT q.number, format(q.query, tables[1], tables[2])
    FROM jo_queries q, LATERAL compare_join(format(q.query, tables[1], tables[2])) c
    WHERE NOT c.same OR c.offloaded = 0
$$;
SELECT * FROM jo_compare('{jo_big, jo_small}');
SELECT * FROM jo_compare('{jo_small, jo_big}');
SELECT * FROM jo_compare('{jo_big, jo_empty}');
SELECT * FROM jo_compare('{jo_empty, jo_big}');
SELECT * FROM jo_compare('{jo_big, jo_nulls}');
SELECT * FROM jo_compare('{jo_nulls, jo_big}');
SELECT * FROM jo_compare('{jo_nulls, jo_nulls}');
SELECT * FROM jo_compare('{jo_empty, jo_empty}');
-- with many batches and partitions
SET work_mem = '64kB';
SET hash_mem_multiplier = 1.0;
SET gpuhash.batch_rows = 256;
SELECT * FROM jo_compare('{jo_big, jo_small}');
SELECT * FROM jo_compare('{jo_small, jo_big}');
SELECT * FROM jo_compare('{jo_big, jo_nulls}');
SELECT * FROM jo_compare('{jo_nulls, jo_big}');
RESET work_mem;
RESET hash_mem_multiplier;
RESET gpuhash.batch_rows;

-- NULL keys of the hashed side, more of them than fit into memory
CREATE TABLE jo_wide AS SELECT i AS id, CASE WHEN i % 3 = 0 THEN i % 1000 END AS k, repeat('x', i % 50) AS t FROM generate_series(1, 9000) i;
CREATE TABLE jo_wider AS SELECT i AS id, CASE WHEN i % 5 = 0 THEN i % 2000 END AS k FROM generate_series(1, 9500) i;
ANALYZE jo_wide, jo_wider;
SET work_mem = '64kB';
SELECT jo_plan('SELECT a.id, b.id AS bid, a.t FROM jo_wide a FULL JOIN jo_wider b ON a.k = b.k');
SELECT * FROM compare_join('SELECT a.id, b.id AS bid, a.t FROM jo_wide a FULL JOIN jo_wider b ON a.k = b.k');
SELECT * FROM compare_join('SELECT a.id, b.id AS bid, a.t FROM jo_wide a LEFT JOIN jo_wider b ON a.k = b.k AND b.id > 9000');
SELECT * FROM compare_join('SELECT a.id, a.t FROM jo_wide a WHERE NOT EXISTS (SELECT FROM jo_wider b WHERE a.k = b.k)');
-- no outer row at all, where the planner takes these for many: every partition's inner rows come out
CREATE TABLE jo_index AS SELECT i AS id, i % 900 AS k, i % 40 AS g FROM generate_series(1, 30000) i;
CREATE INDEX ON jo_index (g);
ANALYZE jo_index;
SELECT jo_plan('SELECT a.id, a.t, i.id AS iid FROM jo_wide a LEFT JOIN (SELECT * FROM jo_index WHERE id % 1 > 0) i ON a.k = i.k');
SELECT * FROM compare_join('SELECT a.id, a.t, i.id AS iid FROM jo_wide a LEFT JOIN (SELECT * FROM jo_index WHERE id % 1 > 0) i ON a.k = i.k');
RESET work_mem;

-- rescans: the table is kept, what it says of matches is not
SET enable_material = off;
SET enable_memoize = off;
SELECT * FROM compare_join('SELECT g, (SELECT count(*) FROM jo_small s LEFT JOIN jo_big b ON b.k = s.k AND b.g = x.g WHERE b.id IS NULL OR s.g = 1) FROM generate_series(0, 3) x(g)');
SELECT * FROM compare_join('SELECT g, (SELECT count(b.id) || '' '' || count(s.id) FROM jo_small s FULL JOIN jo_big b ON b.k = s.k AND b.g <> s.g + x.g) FROM generate_series(0, 3) x(g)');
SELECT * FROM compare_join('SELECT g, (SELECT count(*) FROM jo_small s WHERE NOT EXISTS (SELECT FROM jo_big b WHERE b.k = s.k AND b.g = x.g)) FROM generate_series(0, 3) x(g)');
SELECT * FROM compare_join('SELECT g, (SELECT sum(s.id) FROM jo_small s WHERE EXISTS (SELECT FROM jo_big b WHERE b.k = s.k AND b.g = x.g)) FROM generate_series(0, 3) x(g)');
SELECT * FROM compare_join('SELECT v.x, j.* FROM (VALUES (1), (2), (3)) v(x) LEFT JOIN (SELECT s.id, b.id AS bid FROM jo_small s LEFT JOIN jo_big b ON b.k = s.k AND b.g = 3) j ON j.id + v.x > 690');
SELECT * FROM compare_join('SELECT v.x, j.* FROM (VALUES (1), (2), (3)) v(x), LATERAL (SELECT s.id, b.id AS bid FROM jo_small s FULL JOIN jo_big b ON b.k = s.k AND b.g = v.x WHERE s.id < 300 OR b.id < 200 OFFSET 0) j');
RESET enable_material;
RESET enable_memoize;

-- lateral inputs: rows and clauses of an outer query level in the join
SELECT jo_plan('SELECT u.k, j.* FROM jo_unique u, LATERAL (SELECT s.id, b.id AS bid FROM jo_small s LEFT JOIN jo_big b ON b.k = s.k AND b.g < u.k WHERE s.id < u.k OFFSET 0) j WHERE u.k < 20');
SELECT * FROM compare_join('SELECT u.k, j.* FROM jo_unique u, LATERAL (SELECT s.id, b.id AS bid FROM jo_small s LEFT JOIN jo_big b ON b.k = s.k AND b.g < u.k WHERE s.id < u.k OFFSET 0) j WHERE u.k < 20');
SELECT * FROM compare_join('SELECT u.k, j.* FROM jo_unique u LEFT JOIN LATERAL (SELECT s.id, b.id AS bid, u.k + s.g AS x FROM jo_small s LEFT JOIN jo_big b ON b.k = s.k AND b.g < u.k WHERE s.id < u.k) j ON j.x > 7 WHERE u.k < 20');
SELECT * FROM compare_join('SELECT u.k, j.* FROM jo_unique u LEFT JOIN LATERAL (SELECT s.id, b.id AS bid, coalesce(b.g, u.k) AS x FROM jo_small s FULL JOIN jo_big b ON b.k = s.k AND b.g + s.g = u.k WHERE s.id < u.k OR b.id < u.k) j ON j.x > 2 WHERE u.k < 20');
SELECT * FROM compare_join('SELECT u.k, j.* FROM jo_unique u, LATERAL (SELECT s.id, u.t FROM jo_small s WHERE EXISTS (SELECT FROM jo_big b WHERE b.k = s.k AND b.g = u.k) AND s.g < u.k) j WHERE u.k < 20');
-- and of a nested loop that reaches into one input
SELECT * FROM compare_join('SELECT u.k, j.* FROM (SELECT * FROM jo_unique WHERE k < 5) u LEFT JOIN (SELECT i.g, i.id, s.t FROM jo_index i LEFT JOIN jo_small s ON s.k = i.k) j ON j.g = u.k');
SELECT * FROM compare_join('SELECT u.k, j.* FROM (SELECT * FROM jo_unique WHERE k < 5) u LEFT JOIN (SELECT i.g, i.id, s.t FROM jo_index i JOIN jo_small s ON s.k = i.k AND s.g > 2) j ON j.g = u.k AND j.id > u.k * 50');

-- partitions joined one by one
CREATE TABLE jo_parts (id int, k int, t text) PARTITION BY RANGE (k);
CREATE TABLE jo_parts1 PARTITION OF jo_parts FOR VALUES FROM (0) TO (300);
CREATE TABLE jo_parts2 PARTITION OF jo_parts FOR VALUES FROM (300) TO (600);
CREATE TABLE jo_others (k int, id int) PARTITION BY RANGE (k);
CREATE TABLE jo_others1 PARTITION OF jo_others FOR VALUES FROM (0) TO (300);
CREATE TABLE jo_others2 PARTITION OF jo_others FOR VALUES FROM (300) TO (600);
INSERT INTO jo_parts SELECT id, k, t FROM jo_big WHERE k IS NOT NULL;
INSERT INTO jo_others SELECT k, id FROM jo_small WHERE k IS NOT NULL;
ANALYZE jo_parts, jo_others;
SET enable_partitionwise_join = on;
-- a join of each partition, or one of all: before 19 only the former are compared
SELECT offloaded BETWEEN 1 AND 2 AS offloaded, rows, same FROM compare_join('SELECT p.id, o.id AS oid FROM jo_parts p JOIN jo_others o ON o.k = p.k');
SELECT offloaded BETWEEN 1 AND 2 AS offloaded, rows, same FROM compare_join('SELECT p.id, o.id AS oid FROM jo_parts p FULL JOIN jo_others o ON o.k = p.k');
SELECT offloaded BETWEEN 1 AND 2 AS offloaded, rows, same FROM compare_join('SELECT p.id FROM jo_parts p WHERE NOT EXISTS (SELECT FROM jo_others o WHERE o.k = p.k AND o.id < p.id)');
SELECT * FROM compare_join('SELECT p.id, j.oid, j.bid FROM jo_parts p LEFT JOIN LATERAL (SELECT o.id AS oid, b.id AS bid FROM jo_others o LEFT JOIN jo_big b ON b.id = o.id AND b.g < p.id WHERE o.k = p.k OFFSET 0) j ON j.oid > 3 WHERE p.id < 40');
-- with parameters that come from a partition instead of its table
CREATE INDEX ON jo_others (k);
SELECT jo_plan('SELECT p.id, j.* FROM jo_parts p LEFT JOIN LATERAL (SELECT o.k, o.id AS oid, x.id AS xid, least(p.id, o.id, x.id) FROM jo_others o JOIN jo_parts x ON x.k = o.k AND x.id + o.id > p.id) j ON j.k = p.k WHERE p.id < 9');
SELECT * FROM compare_join('SELECT p.id, j.* FROM jo_parts p LEFT JOIN LATERAL (SELECT o.k, o.id AS oid, x.id AS xid, least(p.id, o.id, x.id) FROM jo_others o JOIN jo_parts x ON x.k = o.k AND x.id + o.id > p.id) j ON j.k = p.k WHERE p.id < 40');
RESET enable_partitionwise_join;

-- a semijoin whose right side is made distinct
SELECT * FROM compare_join('SELECT a.id FROM jo_small a WHERE k IN (SELECT k FROM jo_index)');
SELECT * FROM compare_join('SELECT i.id, i.k FROM jo_index i WHERE g IN (SELECT g FROM jo_index WHERE id > 100)');
SELECT * FROM compare_join('SELECT a.id, b.id AS bid FROM jo_small a, jo_big b WHERE (a.k, b.g) IN (SELECT k, g FROM jo_index) AND a.id = b.id');

-- updates and deletes through semi and anti joins
BEGIN;
DELETE FROM jo_big b WHERE NOT EXISTS (SELECT FROM jo_small s WHERE s.k = b.k);
SELECT count(*) FROM jo_big;
UPDATE jo_small s SET g = 99 WHERE EXISTS (SELECT FROM jo_big b WHERE b.k = s.k AND b.g = 6);
SELECT count(*) FROM jo_small WHERE g = 99;
ROLLBACK;

-- a row filter of a security barrier comes before what the user brings
CREATE FUNCTION jo_leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
    RAISE NOTICE 'seen: %', $1;
    RETURN true;
END $$;
CREATE VIEW jo_barrier WITH (security_barrier) AS SELECT s.id, s.t FROM jo_small s FULL JOIN jo_unique u ON u.k = s.id WHERE s.id = 42;
SET gpuhash.force_offload = on;
SELECT * FROM jo_barrier WHERE jo_leak(t);
RESET gpuhash.force_offload;

DROP VIEW jo_barrier;
DROP FUNCTION jo_leak(text), jo_plan(text), jo_compare(text[]);
DROP TABLE jo_big, jo_small, jo_unique, jo_empty, jo_nulls, jo_wide, jo_wider, jo_index, jo_parts, jo_others, jo_queries;
