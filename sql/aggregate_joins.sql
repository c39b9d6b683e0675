-- Aggregation of joins.
LOAD 'gpuhash';
CREATE TABLE aj (id int, a int, b int8, c text, g int, v numeric(10, 2), f float8);
INSERT INTO aj SELECT i, CASE WHEN i % 11 > 0 THEN i % 60 END, CASE WHEN i % 13 > 0 THEN i % 40 END, CASE WHEN i % 7 > 0 THEN 'c' || i % 30 END, i % 8, i / 8.0, i / 8.0 FROM generate_series(1, 4000) i;
-- dimensions: unique keys, some NULL, some that no row has; duplicates; wide rows; text keys
CREATE TABLE aj_a (a int, n int, t text, w int8);
INSERT INTO aj_a SELECT CASE WHEN i = 7 THEN NULL ELSE i END, i % 5, 'name ' || i % 9, i * 10000000000 FROM generate_series(1, 80) i;
CREATE TABLE aj_b (x text, b int8, d date, m numeric(6, 3), y bool);
INSERT INTO aj_b SELECT repeat('x', i), CASE WHEN i > 5 THEN i END, date '2000-01-01' + i % 3, CASE WHEN i % 4 > 0 THEN i / 7.0 END, i % 2 = 0 FROM generate_series(1, 30) i;
CREATE TABLE aj_c (c text, z varchar(20), k char(6));
INSERT INTO aj_c SELECT 'c' || i, CASE WHEN i % 3 > 0 THEN 'z' || i % 4 END, 'k' || i % 5 FROM generate_series(1, 25) i;
CREATE TABLE aj_many AS SELECT i AS id, i % 50 AS a, i % 6 AS n, 'many ' || i % 12 AS t FROM generate_series(1, 400) i;
CREATE TABLE aj_wide AS SELECT i AS a, repeat('wide ' || i, i * 20) AS long, repeat(md5(i::text), 100) AS packed, i::int2 AS s FROM generate_series(1, 70) i;
ALTER TABLE aj_wide ALTER long SET STORAGE EXTERNAL;
UPDATE aj_wide SET long = long || '.';
CREATE TABLE aj_none (a int, n int);
ANALYZE aj, aj_a, aj_b, aj_c, aj_many, aj_wide, aj_none;
CREATE TEMP TABLE aj_queries (position serial, query text);
INSERT INTO aj_queries (query) VALUES
    ('SELECT count(*) FROM aj JOIN aj_a USING (a)'),
    ('SELECT n, count(*), sum(v), avg(f), sum(w), min(t COLLATE "C") FROM aj JOIN aj_a USING (a) GROUP BY n'),
    ('SELECT n, count(*), sum(v), avg(f), sum(w) FROM aj JOIN aj_a USING (a) GROUP BY n'),
    ('SELECT t, sum(w * g), max(v * n) FROM aj JOIN aj_a USING (a) WHERE f > 50 GROUP BY t'),
    ('SELECT t, count(*) FROM aj JOIN aj_a USING (a) WHERE n > 1 AND g + n <> 4 GROUP BY t'),
    ('SELECT t, count(*) FROM aj JOIN aj_a ON aj.a = aj_a.a AND g <> n GROUP BY t'),
    ('SELECT count(*) FROM aj JOIN aj_a ON aj.a + 1 = aj_a.a'),
    ('SELECT n, count(*), count(w) FROM aj LEFT JOIN aj_a USING (a) GROUP BY n'),
    ('SELECT n, count(*), count(w) FROM aj LEFT JOIN aj_a ON aj.a = aj_a.a AND n > 2 GROUP BY n'),
    ('SELECT n, count(*) FROM aj LEFT JOIN aj_a ON aj.a = aj_a.a AND g < 3 GROUP BY n'),
    ('SELECT count(*) FROM aj LEFT JOIN aj_a USING (a) WHERE w IS NULL'),
    ('SELECT n, count(aj.id), sum(v) FROM aj RIGHT JOIN aj_a USING (a) GROUP BY n'),
    ('SELECT n, count(aj.id), count(w), sum(v) FROM aj FULL JOIN aj_a USING (a) GROUP BY n'),
    ('SELECT n, count(aj.id), sum(v) FROM aj_a LEFT JOIN aj USING (a) WHERE n > 1 GROUP BY n'),
    ('SELECT t, g, count(*), max(v), sum(w) FROM aj_a LEFT JOIN aj ON aj.a = aj_a.a AND g < 3 GROUP BY t, g'),
    ('SELECT n, count(*) FROM aj RIGHT JOIN aj_a USING (a) WHERE g IS DISTINCT FROM 3 GROUP BY n'),
    ('SELECT count(*), count(id), count(w) FROM aj FULL JOIN aj_a USING (a)'),
    ('SELECT coalesce(n, -1), g IS NULL, count(*), sum(w) FROM (SELECT * FROM aj WHERE f > 100) s FULL JOIN aj_a USING (a) GROUP BY 1, 2'),
    ('SELECT m.n, count(aj.id), sum(v) FROM aj_many m LEFT JOIN aj USING (a) GROUP BY m.n'),
    ('SELECT n, y, count(*), sum(v) FROM (aj LEFT JOIN aj_b USING (b)) FULL JOIN aj_a USING (a) GROUP BY n, y'),
    ('SELECT aj_a.n, count(*), count(aj_none.a) FROM aj_none FULL JOIN aj_a USING (a) GROUP BY aj_a.n'),
    ('SELECT g, count(*), sum(n) FROM aj FULL JOIN aj_none USING (a) GROUP BY g'),
    ('SELECT g, count(*), sum(v) FROM aj WHERE EXISTS (SELECT FROM aj_a WHERE aj_a.a = aj.a) GROUP BY g'),
    ('SELECT g, count(*), sum(v) FROM aj WHERE NOT EXISTS (SELECT FROM aj_a WHERE aj_a.a = aj.a) GROUP BY g'),
    ('SELECT g, count(*), sum(v) FROM aj WHERE EXISTS (SELECT FROM aj_many m WHERE m.a = aj.a AND m.n > aj.g) GROUP BY g'),
    ('SELECT g, count(*), sum(v) FROM aj WHERE NOT EXISTS (SELECT FROM aj_many m WHERE m.a = aj.a AND m.n > 2) GROUP BY g'),
    ('SELECT g, count(*) FROM aj WHERE a IN (SELECT a FROM aj_many) GROUP BY g'),
    ('SELECT g, count(*) FROM aj WHERE a NOT IN (SELECT a FROM aj_a WHERE a IS NOT NULL) GROUP BY g'),
    ('SELECT g, count(*) FROM aj WHERE c IN (SELECT c FROM aj_c WHERE z IS NOT NULL) GROUP BY g'),
    -- stars
    ('SELECT count(*), sum(v), sum(n), sum(m) FROM aj JOIN aj_a USING (a) JOIN aj_b USING (b) JOIN aj_c USING (c)'),
    ('SELECT aj_a.t, d, z, count(*), sum(v * n), avg(m) FROM aj JOIN aj_a USING (a) JOIN aj_b USING (b) JOIN aj_c USING (c) GROUP BY aj_a.t, d, z'),
    ('SELECT n, y, k, count(*), sum(v), max(m) FROM aj LEFT JOIN aj_a USING (a) LEFT JOIN aj_b USING (b) LEFT JOIN aj_c USING (c) GROUP BY n, y, k'),
    ('SELECT n, y, k, count(*), sum(v) FROM aj JOIN aj_a USING (a) LEFT JOIN aj_b USING (b) JOIN aj_c USING (c) WHERE coalesce(m, 0) < 3 GROUP BY n, y, k'),
    ('SELECT n, count(*), sum(v) FROM aj JOIN aj_a USING (a) JOIN aj_b USING (b) WHERE EXISTS (SELECT FROM aj_c WHERE aj_c.c = aj.c) GROUP BY n'),
    ('SELECT d, count(*), sum(v) FILTER (WHERE n > 2 AND y) FROM aj JOIN aj_a USING (a) LEFT JOIN aj_b USING (b) WHERE NOT EXISTS (SELECT FROM aj_c WHERE aj_c.c = aj.c) GROUP BY d'),
    ('SELECT aj_a.n, count(*) FROM aj JOIN aj_a USING (a) JOIN aj_many m ON m.n = aj_a.n GROUP BY aj_a.n'),
    ('SELECT aj_b.d, count(*), sum(w) FROM aj JOIN aj_a USING (a) JOIN aj_b ON aj_b.b = aj_a.n + 6 GROUP BY aj_b.d'),
    ('SELECT x.n, y.t, count(*) FROM aj JOIN aj_a x USING (a) JOIN aj_a y ON y.a = aj.b GROUP BY x.n, y.t'),
    -- several matches, several keys, text keys, wide inner rows, nothing inside
    ('SELECT n, count(*), sum(v), min(m.id) FROM aj JOIN aj_many m USING (a) GROUP BY n'),
    ('SELECT t, count(*), sum(v) FROM aj LEFT JOIN aj_many m ON m.a = aj.a AND m.n = aj.g GROUP BY t'),
    ('SELECT m.t, aj_b.d, count(*), avg(v) FROM aj JOIN aj_many m USING (a) JOIN aj_b USING (b) GROUP BY m.t, aj_b.d'),
    ('SELECT z, k, count(*), sum(v) FROM aj JOIN aj_c USING (c) GROUP BY z, k'),
    ('SELECT s, count(long), count(packed), sum(v) FROM aj JOIN aj_wide USING (a) GROUP BY s'),
    ('SELECT long, count(*), sum(s) FROM aj JOIN aj_wide USING (a) GROUP BY long'),
    ('SELECT packed = repeat(md5(a::text), 100), count(*) FROM aj JOIN aj_wide USING (a) GROUP BY 1'),
    ('SELECT count(*), sum(n) FROM aj JOIN aj_none USING (a)'), ('SELECT g, count(*), sum(n) FROM aj LEFT JOIN aj_none USING (a) GROUP BY g'), ('SELECT g, count(*) FROM aj WHERE NOT EXISTS (SELECT FROM aj_none WHERE aj_none.a = aj.a) GROUP BY g'),
    ('SELECT count(*), sum(n), min(t) FROM aj_none JOIN aj_a USING (a, n)'),
    ('SELECT x.g, count(*) FROM aj x JOIN aj y ON x.id = y.a GROUP BY x.g'), ('SELECT x.g, count(*) FROM aj x JOIN aj y USING (id, g) GROUP BY x.g'),
    -- what is no hash join, and joins with expressions and errors
    ('SELECT count(*) FROM aj JOIN aj_a ON aj.a < aj_a.n'), ('SELECT n, count(*) FROM aj_a CROSS JOIN aj_c GROUP BY n'), ('SELECT count(*) FROM aj JOIN aj_b ON aj.a = aj_b.b'), ('SELECT count(*) FROM aj JOIN aj_b ON aj.f = aj_b.b'), ('SELECT count(*) FROM aj JOIN aj_b ON aj.v = aj_b.m'),
    ('SELECT n, sum(100 / (n - g)) FROM aj JOIN aj_a USING (a) GROUP BY n'), ('SELECT n, sum(100 / (n - g)) FROM aj JOIN aj_a USING (a) WHERE n <> g GROUP BY n'), ('SELECT n, sum(100 / n) FILTER (WHERE n > 0) FROM aj JOIN aj_a USING (a) GROUP BY n'), ('SELECT n, count(*) FROM aj JOIN aj_a ON aj.a = aj_a.a AND 100 / n > 30 GROUP BY n'),
    ('SELECT n, sum(w * 922337203) FROM aj JOIN aj_a USING (a) GROUP BY n'), ('SELECT n, sum(w * 92233720) FROM aj JOIN aj_a USING (a) GROUP BY n'),
    ('SELECT n, sum(v) AS s FROM aj JOIN aj_a USING (a) GROUP BY n HAVING sum(v) > (SELECT avg(v) FROM aj)'),
    ('SELECT s.a, (SELECT count(*) FROM aj JOIN aj_b USING (b) WHERE aj.a = s.a AND y) FROM aj_a s'),
    ('SELECT s.a, (SELECT sum(v) FROM aj JOIN aj_c USING (c) WHERE aj.g > s.n) FROM aj_a s WHERE a < 10'),
    ('SELECT q.n, count(*), sum(s) FROM (SELECT a, sum(v) AS s FROM aj GROUP BY a) p JOIN aj_a q USING (a) GROUP BY q.n');
SELECT q.query, c.offloaded, c.result, c.same FROM aj_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
-- the join's inner sides do not fit in memory; other batches; without joins or pages of the node's own
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM aj_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
RESET work_mem;
RESET hash_mem_multiplier;
LOAD 'gpuhash';
SET gpuhash.batch_rows = 256;
SELECT q.query, c.same FROM aj_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
RESET gpuhash.batch_rows;
SET gpuhash.enable_join = off;
SELECT q.query, c.same FROM aj_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
RESET gpuhash.enable_join;
SET gpuhash.enable_scan = off;
SELECT q.query, c.same FROM aj_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
RESET gpuhash.enable_scan;
-- as many columns as a table can have, and those of the join behind them
DO $$ BEGIN EXECUTE 'CREATE TABLE aj_1600 (id int, a int, ' || (SELECT string_agg('c' || i || ' int', ', ') FROM generate_series(1, 1598) i) || ')'; END $$;
INSERT INTO aj_1600 (id, a, c1598) SELECT i, i % 30, i FROM generate_series(1, 500) i;
SELECT c.offloaded, c.result, c.same FROM compare_aggregate('SELECT n, count(*), sum(c1598), max(n + c1598) FROM aj_1600 JOIN aj_a USING (a) GROUP BY n') c;
DROP TABLE aj_1600;
DROP TABLE aj_queries, aj, aj_a, aj_b, aj_c, aj_many, aj_wide, aj_none;
