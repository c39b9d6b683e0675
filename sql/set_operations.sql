-- INTERSECT, EXCEPT and UNION of rows that are made distinct before (src/plan/arms.c).
LOAD 'gpuhash';
SET client_min_messages = warning;
CREATE TABLE so_a WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 90 AS k, CASE WHEN i % 7 > 0 THEN 't' || i % 11 END AS t, date '2020-01-01' + i % 5 AS d, (i % 40)::numeric(8, 2) AS p,
    (i % 40 / 2.0)::numeric AS n, (i % 20)::float8 AS f, ('c' || i % 3)::char(5) AS c, 100 / (1 + i % 3) AS x FROM generate_series(1, 30000) i;
CREATE TABLE so_b WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 70 AS k, CASE WHEN i % 5 > 0 THEN 't' || i % 17 END AS t, date '2020-01-01' + i % 6 AS d, (i % 30)::numeric(8, 2) AS p,
    (i % 30 / 2.0)::numeric(8, 3)::numeric AS n, (i % 15)::float8 AS f, ('c' || i % 2)::char(5) AS c, i % 7 AS x FROM generate_series(1, 30000) i;
ANALYZE so_a, so_b;
CREATE TEMP TABLE so_queries (position serial, query text);
INSERT INTO so_queries (query) VALUES
    ('SELECT k, d FROM so_a INTERSECT SELECT k, d FROM so_b'),
    ('SELECT k, t FROM so_a EXCEPT SELECT k, t FROM so_b'),
    ('SELECT p, c FROM so_a INTERSECT SELECT p, c FROM so_b'),
    ('SELECT k FROM so_a WHERE t IS NULL INTERSECT SELECT k FROM so_b INTERSECT SELECT x FROM so_b'),
    ('SELECT count(*) FROM (SELECT k, d FROM so_a EXCEPT SELECT k, d FROM so_b WHERE x = 3) s'),
    ('WITH w AS (SELECT k FROM so_a INTERSECT SELECT k FROM so_b) SELECT d, count(*) FROM so_a WHERE k IN (SELECT k FROM w) GROUP BY d'),
    ('(SELECT k, t FROM so_a INTERSECT SELECT k, t FROM so_b) UNION ALL SELECT k, t FROM so_b WHERE id < 5'),
    ('(SELECT k FROM so_a UNION ALL SELECT k FROM so_b) EXCEPT SELECT k FROM so_b'),
    ('SELECT DISTINCT k FROM so_a INTERSECT SELECT k FROM so_b GROUP BY k'),
    -- how often there is a row counts; equal values that look different; other types than what is compared; a part of rows
    ('SELECT k, t FROM so_a INTERSECT ALL SELECT k, t FROM so_b'),
    ('SELECT k FROM so_a EXCEPT ALL SELECT k FROM so_b'),
    ('SELECT n FROM so_a INTERSECT SELECT n FROM so_b'),
    ('SELECT f FROM so_a EXCEPT SELECT f FROM so_b'),
    ('SELECT k FROM so_a INTERSECT SELECT p FROM so_b'),
    ('SELECT p FROM so_a INTERSECT SELECT p::numeric(8, 3) FROM so_b'),
    ('SELECT c FROM so_a EXCEPT SELECT c::char(9) FROM so_b'),
    ('(SELECT k FROM so_a ORDER BY id LIMIT 50) INTERSECT SELECT k FROM so_b'),
    ('SELECT 100 / (k - 5) FROM so_a INTERSECT SELECT k FROM so_b'),
    -- UNION, whose sides each are distinct, and all together
    ('SELECT k, d FROM so_a UNION SELECT k, d FROM so_b'),
    ('SELECT t, k FROM so_a UNION SELECT t, k FROM so_b UNION SELECT t, x FROM so_b'),
    ('SELECT k, sum(x) FROM (SELECT k, x FROM so_a UNION SELECT k, x FROM so_b) u GROUP BY k'),
    ('(SELECT k FROM so_a UNION ALL SELECT k FROM so_b) UNION SELECT x FROM so_b'),
    ('(SELECT k FROM so_a UNION SELECT k FROM so_b) UNION ALL SELECT x FROM so_b'),
    ('SELECT a.k, b.t FROM so_a a JOIN so_b b ON b.id = a.id UNION SELECT k, t FROM so_b'),
    ('SELECT c, p FROM so_a UNION SELECT c, p FROM so_b EXCEPT SELECT c, p FROM so_b WHERE p < 10'),
    ('WITH RECURSIVE r AS (SELECT k FROM so_a UNION SELECT k + 1 FROM r WHERE k < 100) SELECT k FROM r'),
    ('WITH RECURSIVE r AS (SELECT 1 AS k UNION SELECT b.k FROM r JOIN so_b b ON b.x = r.k % 7) SELECT k FROM r'),
    ('SELECT n FROM so_a UNION SELECT n FROM so_b'),
    ('SELECT f FROM so_a UNION SELECT f FROM so_b'),
    ('SELECT c FROM so_a UNION SELECT c::char(9) FROM so_b'),
    ('SELECT k FROM so_a UNION SELECT p FROM so_b'),
    ('SELECT 100 / (k - 5) FROM so_a UNION SELECT k FROM so_b');
-- forced: how many of the arms are groups
SELECT q.position, c.offloaded, c.result, c.same FROM so_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT q.position, c.result, c.same FROM so_queries q, LATERAL compare_aggregate(q.query, 2) c WHERE c.same <> 'same' ORDER BY q.position;
-- not all of them need be read
SELECT * FROM compare_answers('SELECT count(*) FROM so_a WHERE id < 9 AND EXISTS (SELECT 1 / (so_a.x - 33) UNION SELECT x FROM so_b)');
SELECT * FROM compare_answers('SELECT count(*) FROM (SELECT k FROM so_a UNION SELECT k FROM so_b LIMIT 7) x');
-- by costs
SELECT plan_lines(query, '%Custom Scan (GpuHashAggregate)%') AS groups FROM so_queries WHERE position IN (1, 19) ORDER BY position;
SET gpuhash.enable_aggregate = off;
SELECT plan_lines(query, '%(Unique|HashAggregate)%') AS groups FROM so_queries WHERE position = 1;
RESET gpuhash.enable_aggregate;
-- of several columns the planner takes few values for granted: where they may make nearly as many as there are rows, only statistics of them together say that these are few
SELECT query, plan_lines(query, '%Custom Scan (GpuHashAggregate)%') AS groups FROM (VALUES ('SELECT k, p, x, d FROM so_a EXCEPT SELECT k, p, x, d FROM so_b'), ('SELECT k, id FROM so_a UNION SELECT k, d - date ''2020-01-01'' FROM so_b'),
    ('SELECT * FROM (SELECT s.k, s.p FROM (SELECT * FROM so_a) s JOIN so_b b USING (id) INTERSECT SELECT k, p FROM so_b) x'),
    ('SELECT * FROM (SELECT s.k, s.p, s.x, s.d FROM (SELECT * FROM so_a) s JOIN so_b b USING (id) INTERSECT SELECT k, p, x, d FROM so_b) x')) v (query);
CREATE STATISTICS so_together (ndistinct) ON k, p, x, d FROM so_a;
ANALYZE so_a;
SELECT plan_lines('SELECT k, p, x, d FROM so_a EXCEPT SELECT k, p, x, d FROM so_a WHERE id > 100', '%Custom Scan (GpuHashAggregate)%') AS groups;
DROP STATISTICS so_together;
-- where PostgreSQL would make the groups, the query stays as it is
CREATE TABLE so_e WITH (autovacuum_enabled = off) AS SELECT i / 6 AS k, repeat('x', 100) AS t FROM generate_series(1, 100000) i;
CREATE INDEX ON so_e (k);
VACUUM ANALYZE so_e;
SELECT plan_lines(query, '%Unique%') + plan_lines(query, '%HashAggregate%') - plan_lines(query, '%GpuHashAggregate%') AS groups FROM (VALUES ('SELECT k FROM so_e UNION SELECT k FROM so_e')) v (query);
DROP TABLE so_e;
-- a user's functions are called as PostgreSQL does it
CREATE FUNCTION so_call(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN i; END $$;
SET gpuhash.force_offload = on;
SELECT plan_lines('SELECT so_call(k) FROM so_a INTERSECT SELECT k FROM so_b', '%Custom Scan (GpuHashAggregate)%') AS groups;
RESET gpuhash.force_offload;
DROP FUNCTION so_call;
-- values that are equal and the same: of further types, and of domains over them; others in domains
CREATE TYPE so_color AS ENUM ('red', 'green', 'blue');
CREATE DOMAIN so_cents AS numeric(8, 2);
CREATE DOMAIN so_any AS numeric;
CREATE TABLE so_c WITH (autovacuum_enabled = off) AS SELECT time '10:00' + i % 50 * interval '1 min' AS m, md5((i % 60)::text)::uuid AS u, decode(md5((i % 60)::text), 'hex') AS b,
    (enum_range(NULL::so_color))[i % 3 + 1] AS e, (i % 70)::text::name AS s, chr(65 + i % 20)::"char" AS h, (i % 90 / 4.0)::so_cents AS w, round(i % 90 / 4.0, i % 3)::so_any AS a,
    CASE WHEN i % 2 = 0 THEN '0' ELSE '-0' END::float8 AS z FROM generate_series(1, 20000) i;
CREATE TABLE so_d WITH (autovacuum_enabled = off) AS SELECT * FROM so_c WHERE h < 'N' AND e <> 'blue';
ANALYZE so_c, so_d;
TRUNCATE so_queries RESTART IDENTITY;
INSERT INTO so_queries (query) SELECT format('SELECT %1$s FROM so_c %2$s SELECT %1$s FROM so_d', columns, op)
    FROM (VALUES ('m'), ('u'), ('b'), ('e'), ('s'), ('h'), ('w'), ('m, e, w'), ('a'), ('z')) v (columns), (VALUES ('INTERSECT'), ('EXCEPT'), ('UNION')) o (op);
SELECT q.position, substring(q.query FROM 'SELECT (.*?) FROM') AS columns, c.offloaded, c.result, c.same FROM so_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
DROP TABLE so_a, so_b, so_c, so_d, so_queries;
DROP TYPE so_color;
DROP DOMAIN so_cents, so_any;
