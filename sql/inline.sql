-- Queries in WITH that are read more than once, inlined: the answers are those of the queries as they are.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE TABLE il_f WITH (autovacuum_enabled = off) AS
	SELECT i AS id, i % 40 AS k, nullif(i % 7, 0) AS y, i % 3 AS z, 't' || i % 9 AS t, ('c' || i % 5)::char(6) AS c,
		   (i / 3.0)::numeric(10, 2) AS n, (i % 40)::numeric / 8 AS free, i / 7.0::float8 AS f, date '2020-01-01' + i % 90 AS d
	FROM generate_series(1, 2000) i;
CREATE TABLE il_d WITH (autovacuum_enabled = off) AS SELECT i AS k, 'name ' || i % 11 AS name, i % 4 AS region FROM generate_series(0, 39) i;
VACUUM ANALYZE il_f, il_d;

-- Runs a query without gpuhash, and with what may be inlined in its place: whether any is read as WITH in the plan, how many rows
-- there are or which error, and whether it is the same both ways.
CREATE FUNCTION il_plan(query text) RETURNS text LANGUAGE sql SET gpuhash.force_offload = on AS $$ SELECT plan_xml(query) $$;
CREATE FUNCTION il_check(query text, OUT inlined boolean, OUT result text, OUT same boolean) LANGUAGE plpgsql AS $$
BEGIN
	SELECT a.* INTO result, same FROM compare_answers(query) a;
	inlined := plan_xml(query) !~ '<CTE-Name>';
END $$;

-- groups, and the same of another year; a total and its largest; sets of groups; one in another
SELECT * FROM il_check('WITH w AS (SELECT k, z, sum(n) AS s, count(*) AS c FROM il_f GROUP BY k, z) SELECT a.k, a.s, b.s, a.c + b.c FROM w a JOIN w b USING (k) WHERE a.z = 1 AND b.z = 2');
SELECT * FROM il_check('WITH w AS (SELECT k, sum(n * (1 - n)) AS s FROM il_f WHERE d >= date ''2020-01-15'' AND d < date ''2020-01-15'' + interval ''1 month'' GROUP BY k) SELECT name, s FROM il_d JOIN w USING (k) WHERE s = (SELECT max(s) FROM w)');
SELECT * FROM il_check('WITH w AS (SELECT t, ''f'' AS kind, sum(n) AS s FROM il_f GROUP BY t UNION ALL SELECT name, ''d'', sum(region) FROM il_d GROUP BY name) SELECT a.t, a.s, b.s FROM w a, w b WHERE a.kind = ''f'' AND b.kind = ''d'' AND b.s > 0 AND CASE WHEN b.s > 0 THEN a.s / b.s ELSE 0 END > 2');
SELECT * FROM il_check('WITH v AS (SELECT k, z, sum(n) AS s FROM il_f GROUP BY k, z), w AS (SELECT k, max(s) AS m FROM v WHERE z < 2 GROUP BY k) SELECT k, s, a.m FROM v JOIN w a USING (k) WHERE s = a.m AND k IN (SELECT k FROM w WHERE m > 500)');
SELECT * FROM il_check('WITH w AS (SELECT DISTINCT y, z FROM (SELECT y, z, count(*) FROM il_f GROUP BY y, z) s GROUP BY y, z) SELECT * FROM w a FULL JOIN w b ON a.y = b.z');
SELECT * FROM il_check('WITH w AS (SELECT k, z, grouping(z) AS g, avg(y) AS a, stddev(y) AS sd FROM il_f GROUP BY ROLLUP (k, z)) SELECT a.k, a.a, a.sd, b.a FROM w a LEFT JOIN w b ON b.k = a.k AND b.g = 1 WHERE a.g = 0');
SELECT * FROM il_check('WITH w AS (SELECT count(DISTINCT k) AS c, min(t) AS lo, max(c) AS hi, bool_and(y > 0) AS b FROM il_f) SELECT * FROM w a, w b');
SELECT * FROM il_check('SELECT (WITH w AS (SELECT z, count(*) AS c FROM il_f WHERE k = il_d.k GROUP BY z) SELECT a.c * b.c FROM w a, w b WHERE a.z = 1 AND b.z = 2) FROM il_d');
SELECT * FROM il_check('SELECT * FROM (WITH w AS (SELECT k, count(*) AS c FROM il_f GROUP BY k) SELECT a.k, b.c FROM w a JOIN w b ON a.k > b.k + 30) s');

-- rows that may not be the same each time: sums of floats, the representative of what is equal, order, chance
SELECT * FROM il_check('WITH w AS (SELECT k, sum(f) AS s FROM il_f GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT free, count(*) AS c FROM il_f GROUP BY free) SELECT a.free FROM w a JOIN w b USING (free)');
SELECT * FROM il_check('WITH w AS (SELECT k, max(free) AS m FROM il_f GROUP BY k) SELECT a.m FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, sum(DISTINCT free) AS m FROM il_f GROUP BY k) SELECT a.m FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT f, count(*) AS c FROM il_f GROUP BY f) SELECT count(*) FROM w a JOIN w b USING (f)');
SELECT * FROM il_check('WITH w AS (SELECT k, array_agg(id) AS a FROM il_f GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c, ARRAY(SELECT name FROM il_d WHERE region = f.k) AS a FROM il_f f GROUP BY k) SELECT a.a FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, string_agg(t, '','' ORDER BY id) AS a FROM il_f GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c FROM il_f GROUP BY k ORDER BY k LIMIT 5) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c, rank() OVER (ORDER BY count(*)) AS r FROM il_f GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c FROM (SELECT DISTINCT ON (k, y) k, z FROM il_f ORDER BY k, y, z) s GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c FROM il_f TABLESAMPLE SYSTEM (100) GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) FILTER (WHERE random() < 2) AS c FROM il_f GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT to_char(d, ''MM'') AS m, count(*) AS c FROM il_f GROUP BY 1) SELECT a.m FROM w a JOIN w b USING (m)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c FROM il_f, generate_series(1, 2) GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT ctid, count(*) AS c FROM il_f GROUP BY ctid) SELECT count(*) FROM w a JOIN w b USING (ctid)');

-- what is read there alone comes along; what is read elsewhere, too, or is to be stored, does not
SELECT * FROM il_check('WITH v AS (SELECT k FROM il_f LIMIT 100), w AS (SELECT k, count(*) AS c FROM v GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH v AS (SELECT k, sum(f) AS s FROM il_f GROUP BY k), u AS (SELECT k FROM (SELECT * FROM v) s), w AS (SELECT k, count(*) AS c FROM u GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT il_plan ~ 'CTE-Name>v<', il_plan ~ 'CTE-Name>w<' FROM il_plan('WITH v AS MATERIALIZED (SELECT k FROM il_f LIMIT 100), w AS (SELECT k, count(*) AS c FROM v GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');

SET client_min_messages = warning;
DO $$
BEGIN
	CREATE COLLATION il_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;
RESET client_min_messages;
SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'il_loose') THEN
	(SELECT inlined || ', ' || same FROM il_check('WITH w AS (SELECT t COLLATE il_loose AS t, count(*) AS c FROM il_f GROUP BY 1) SELECT a.t FROM w a JOIN w b ON a.c = b.c')) ELSE 'false, true' END AS loose;

-- what the user decides; rows that are no groups; what reads itself
SELECT * FROM il_check('WITH w AS MATERIALIZED (SELECT k, count(*) AS c FROM il_f GROUP BY k) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT id, k FROM il_f WHERE y = 2) SELECT a.k FROM w a JOIN w b USING (id)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c FROM il_f GROUP BY k UNION ALL SELECT k, region FROM il_d) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH RECURSIVE w AS (SELECT k, count(*) AS c FROM il_f GROUP BY k UNION ALL SELECT k + 100, c FROM w WHERE k < 50) SELECT a.k FROM w a JOIN w b USING (k)');

-- each level of WITH may double those below it: not more than a few levels
SELECT n, il_plan ~ 'CTE-Name>' AS stored FROM unnest(ARRAY[3, 12]) n, LATERAL il_plan((SELECT 'WITH w1 AS (SELECT k, count(*) AS c FROM il_f GROUP BY k)' || string_agg(format(', w%s AS (SELECT a.k, count(*) AS c FROM w%s a, w%2$s b GROUP BY a.k)', i, i - 1), '' ORDER BY i) ||
	format(' SELECT count(*) FROM w%s a, w%1$s b', n) FROM generate_series(2, n) i));

-- conditions that fail for groups which the query leaves out, on its columns or on what they are computed by
SELECT * FROM il_check('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING z > 0) SELECT a.z FROM w a JOIN w b USING (z) WHERE 10 / a.z > 4');
SELECT * FROM il_check('WITH w AS (SELECT z, 10 / z AS q, count(*) AS c FROM il_f WHERE z > 0 GROUP BY z) SELECT a.z FROM w a JOIN w b USING (z) WHERE a.q > 4');
SELECT * FROM il_check('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING z > 0) SELECT a.z FROM w a JOIN w b USING (z) JOIN il_d ON il_d.k = 10 / a.z WHERE il_d.k = 5');
SELECT * FROM il_check('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING z > 0) SELECT * FROM (SELECT 10 / z AS q, z FROM w) a JOIN w b USING (z) WHERE q > 4');
SELECT * FROM il_check('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING z > 0) SELECT a.z, sum(10 / a.z) FROM w a JOIN w b USING (z) GROUP BY a.z HAVING 10 / a.z > 4');
-- on columns of several tables, of which a part is one on a single table, or becomes one; of a table around, or in, a subquery
SELECT q.condition, c.inlined, c.result, c.same FROM unnest(ARRAY['(a.c = 1 AND 10 / b.z > 4) OR (a.c = 667 AND 10 / b.z > 5)', 'NOT (a.c = 1 OR 10 / b.z > 7)', '(a.c = 1 OR 10 / b.z > 7) <> true', 'CASE WHEN true THEN 10 / b.z > 4 ELSE a.c = 1 END', '10 / b.z > coalesce(4, a.c)',
	'10 / a.z > p.lim', 'EXISTS (SELECT FROM il_d d WHERE d.k = a.z AND d.region = b.z AND 10 / a.z > 4)', 's.q > 4', 'v.q > 4', 'd.k = 5 AND d.k IN (SELECT 10 / z FROM w)']) WITH ORDINALITY q (condition, i),
	LATERAL il_check(format('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING count(*) > 666) SELECT a.z, b.c FROM w a, w b, il_d d, (SELECT 4 AS lim) p, LATERAL (SELECT 10 / a.z AS q) s, LATERAL (VALUES (10 / a.z)) v (q) WHERE d.k < 9 AND %s', q.condition)) c ORDER BY q.i;
SELECT * FROM il_check('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING count(*) > 666) SELECT a.z FROM w a JOIN w b USING (z), LATERAL (SELECT k FROM il_d WHERE 10 / a.z > 4) s');
-- sums of quotients, which cannot fail where the divisor is a number other than 0
SELECT * FROM il_check('WITH w AS (SELECT k, z, sum((n - n * n) / 2) AS s FROM il_f GROUP BY k, z) SELECT a.k FROM w a JOIN w b USING (k) WHERE a.z = 1 AND b.z = 2 AND a.s < 0 AND b.s < 0 AND CASE WHEN a.s < 0 THEN b.s / a.s END > 1');
SELECT * FROM il_check('WITH w AS (SELECT k, z, sum(n / 0) AS s FROM il_f WHERE id < 0 GROUP BY k, z) SELECT a.k FROM w a JOIN w b USING (k) WHERE a.s < 0');
SELECT * FROM il_check('WITH w AS (SELECT k, z, sum(n / id) AS s FROM il_f GROUP BY k, z) SELECT a.k FROM w a JOIN w b USING (k) WHERE a.s < 0');
-- on several tables for good, it stays above
SELECT * FROM il_check('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING count(*) > 666) SELECT a.z FROM w a, w b WHERE 10 / a.z > b.c - 660');
-- among the results such an expression stays above
SELECT * FROM il_check('WITH w AS (SELECT z, count(*) AS c FROM il_f GROUP BY z HAVING z > 0) SELECT 10 / a.z, a.c FROM w a JOIN w b USING (z)');

-- a user's functions, in it or elsewhere in the query
CREATE FUNCTION il_plus(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN $1 + 1; END$$;
SELECT * FROM il_check('WITH w AS (SELECT il_plus(k) AS k, count(*) AS c FROM il_f GROUP BY 1) SELECT a.k FROM w a JOIN w b USING (k)');
SELECT * FROM il_check('WITH w AS (SELECT k, count(*) AS c FROM il_f GROUP BY k) SELECT il_plus(a.k) FROM w a JOIN w b USING (k)');

-- parameters, INSERT, views, cursors, the switch
PREPARE il_p(int) AS WITH w AS (SELECT k, z, count(*) AS c FROM il_f WHERE y < $1 GROUP BY k, z) SELECT sum(a.c), sum(b.c) FROM w a JOIN w b USING (k) WHERE a.z = 0 AND b.z = 1;
SET gpuhash.force_offload = on;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE il_p(3);
EXECUTE il_p(3);
EXECUTE il_p(5);
SET gpuhash.enable_inline = off;
EXECUTE il_p(3);
EXECUTE il_p(5);
RESET gpuhash.enable_inline;
RESET plan_cache_mode;
CREATE TABLE il_into (k int, c bigint);
INSERT INTO il_into WITH w AS (SELECT k, count(*) AS c FROM il_f GROUP BY k) SELECT a.k, b.c FROM w a JOIN w b USING (k);
SELECT count(*), sum(c) FROM il_into;
CREATE VIEW il_v AS WITH w AS (SELECT k, z, count(*) AS c FROM il_f GROUP BY k, z) SELECT a.k, a.c AS c0, b.c AS c1 FROM w a JOIN w b USING (k) WHERE a.z = 0 AND b.z = 1;
SELECT * FROM il_check('SELECT * FROM il_v');
WITH w AS (SELECT k, count(*) AS c FROM il_f GROUP BY k) UPDATE il_into SET c = a.c + b.c FROM w a JOIN w b USING (k) WHERE il_into.k = a.k AND a.k < 3 RETURNING il_into.*;
EXPLAIN (COSTS OFF) WITH w AS (SELECT k, z, count(*) AS c FROM il_f GROUP BY k, z) SELECT a.k FROM w a JOIN w b USING (k) WHERE a.z = 0 AND b.z = 1;
RESET gpuhash.force_offload;

-- left to costs: a plan of small tables is not made twice, one that saves nothing is not taken, one that saves is
CREATE TABLE il_big WITH (autovacuum_enabled = off) AS SELECT i % 20000 AS k, i % 50000 AS z, i % 50 AS y, i AS v FROM generate_series(1, 200000) i;
CREATE INDEX ON il_big (z);
VACUUM ANALYZE il_big;
CREATE FUNCTION il_inlines(query text) RETURNS boolean LANGUAGE sql AS $$ SELECT plan_xml(query) !~ '<CTE-Name>' $$;
SELECT il_inlines('WITH w AS (SELECT k, z, count(*) AS c FROM il_f GROUP BY k, z) SELECT a.k FROM w a JOIN w b USING (k) WHERE a.z = 0 AND b.z = 1') AS small,
	il_inlines('WITH w AS (SELECT y, sum(v) AS s FROM il_big GROUP BY y) SELECT (SELECT max(s) FROM w), (SELECT min(s) FROM w)') AS all_rows,
	il_inlines('WITH w AS (SELECT k, z, sum(v) AS s FROM il_big GROUP BY k, z) SELECT count(*) FROM w a JOIN w b USING (k) WHERE a.z = 0 AND b.z = 1') AS few_rows;
DROP TABLE il_f, il_d, il_into, il_big CASCADE;
DROP FUNCTION il_check, il_plan, il_plus, il_inlines;
SET client_min_messages = error;
DROP COLLATION IF EXISTS il_loose;
