-- Correlated subqueries as groups that are joined, NOT IN as NOT EXISTS, and EXISTS beside OR as IN: the answers are those of the queries as they are.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE TABLE un_o WITH (autovacuum_enabled = off) AS
	SELECT i AS id, nullif(i % 23, 0) AS k, (i % 17)::bigint AS k8, i % 50 AS x, i % 5 AS y, 't' || i % 9 AS t,
		   ('c' || i % 7)::char(6) AS c, (i / 3.0)::numeric(10, 2) AS n, i / 7.0 AS free, (i % 10) / 2.0::float8 AS f,
		   ((i % 10) / 2.0)::float4 AS f4, date '2020-01-01' + i % 30 AS d, timestamp '2020-01-01' + i % 40 * interval '12 hours' AS ts
	FROM generate_series(1, 300) i;
CREATE TABLE un_i WITH (autovacuum_enabled = off) AS
	SELECT i + 1000 AS id, nullif(i % 19, 3) AS k, (i % 29)::bigint AS k8, i % 40 AS x, nullif(i % 6, 0) AS y, 't' || i % 12 AS t,
		   ('c' || i % 11)::char(6) AS c, (i / 2.0)::numeric(10, 2) AS n, i / 11.0 AS free, (i % 14) / 2.0::float8 AS f,
		   ((i % 14) / 2.0)::float4 AS f4, date '2020-01-10' + i % 30 AS d, timestamp '2020-01-05' + i % 40 * interval '12 hours' AS ts
	FROM generate_series(1, 400) i;
CREATE TABLE un_j WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 12 AS k, i % 9 AS z FROM generate_series(1, 60) i;
CREATE TABLE un_n (a int NOT NULL, b text NOT NULL, z int) WITH (autovacuum_enabled = off);
CREATE TABLE un_m (a int NOT NULL, b text NOT NULL, z int) WITH (autovacuum_enabled = off);
INSERT INTO un_n SELECT i % 31, 't' || i % 5, i % 4 FROM generate_series(1, 90) i;
INSERT INTO un_m SELECT i % 20, 't' || i % 4, i % 3 FROM generate_series(1, 50) i;
CREATE TABLE un_parted (id int, k int NOT NULL, x int) PARTITION BY LIST (k);
CREATE TABLE un_parted_some PARTITION OF un_parted FOR VALUES IN (1, 2, 3, 4, 5);
CREATE TABLE un_parted_others PARTITION OF un_parted DEFAULT;
INSERT INTO un_parted SELECT i, i % 13, i % 10 FROM generate_series(1, 100) i;
CREATE TABLE un_parent (a int NOT NULL);
CREATE TABLE un_child () INHERITS (un_parent);
INSERT INTO un_child SELECT generate_series(3, 9);
VACUUM ANALYZE un_o, un_i, un_j, un_n, un_m, un_parted, un_parent, un_child;

-- Runs a query without gpuhash, and with its subqueries unnested wherever they can be: whether that changes the plan, how
-- many rows there are or which error, and whether it is the same both ways.
CREATE FUNCTION un_check(query text, OUT unnested boolean, OUT result text, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	SELECT a.* INTO result, same FROM compare_answers(query) a;
	PERFORM set_config('gpuhash.enable_unnest', 'off', true);
	plan := plan_xml(query);
	PERFORM set_config('gpuhash.enable_unnest', 'on', true);
	unnested := plan_xml(query) <> plan;
END $$;
-- from 19 on PostgreSQL makes most of these into joins by itself
CREATE FUNCTION un_not_in(query text, OUT joined boolean, OUT result text, OUT same boolean) LANGUAGE sql AS $$
	SELECT unnested OR current_setting('server_version_num')::int >= 190000 AND plan_xml(query) NOT LIKE '%<Subplan-Name>%', result, same FROM un_check(query)
$$;

-- aggregates of no rows, and what is computed from them
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id, (SELECT count(*) FROM un_i i WHERE i.k = o.k) FROM un_o o');
SELECT * FROM un_check('SELECT id, (SELECT coalesce(sum(y), -1) FROM un_i i WHERE i.k = o.k AND i.y > 3) FROM un_o o');
SELECT * FROM un_check('SELECT id, (SELECT CASE WHEN count(*) = 0 THEN ''none'' WHEN max(x) IS NULL THEN ''null'' ELSE ''some'' END FROM un_i i WHERE i.k = o.k) FROM un_o o');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (SELECT sum(y) FROM un_i i WHERE i.k = o.k) IS NULL');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE NOT (x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT count(*) FILTER (WHERE y > 2) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT count(DISTINCT y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (SELECT bool_and(y > 1) FROM un_i i WHERE i.k = o.k) OR (SELECT bool_or(y < 1) FROM un_i i WHERE i.k8 = o.k8)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (SELECT sum(y) FROM un_i i WHERE i.k = o.k) = (SELECT sum(y) FROM un_i i WHERE i.k = o.k8)');
-- keys that are in all arms of an OR
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (SELECT count(*) FROM un_i i WHERE (i.k = o.k AND i.y > 3) OR (i.x < 9 AND i.k = o.k AND (i.y = 1 OR i.t = ''t2''))) > 2');
SELECT * FROM un_check('SELECT id, (SELECT sum(n) FROM un_i i WHERE (i.k = o.k AND i.k8 = o.k8 AND i.y > 3) OR (i.k8 = o.k8 AND i.k = o.k) OR i.k = o.k AND i.k8 = o.k8 AND 1 / nullif(i.x, 0) > 0) FROM un_o o');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.x > 3 AND ((i.k = o.k AND i.y > 3) OR (i.k = o.k AND ((i.x = 30 AND i.y < 2) OR (i.x = 30 AND i.t = ''t1'')))))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x > 40 OR EXISTS (SELECT FROM un_i i WHERE (i.k = o.k AND i.y > 3) OR (i.k = o.k AND i.x = 7))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k) AND y = 1) OR (y = 2 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k))');
-- no key is in all of them
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (SELECT count(*) FROM un_i i WHERE (i.k = o.k AND i.y > 3) OR (i.k8 = o.k8 AND i.y > 3)) > 2');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (SELECT count(*) FROM un_i i WHERE (i.k = o.k AND i.y > 3) OR i.k = o.k8) > 2');

-- an order of the one row
SELECT * FROM un_check('SELECT id FROM un_o o WHERE n < (SELECT sum(n) FROM un_i i WHERE i.k = o.k ORDER BY 1)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE t < (SELECT max(t) FROM un_i i WHERE i.k = o.k ORDER BY max(t) DESC)');

-- arguments and FILTER of aggregates are computed of each row; keys are not taken
SELECT * FROM un_check('SELECT y, sum((SELECT sum(n) FROM un_i i WHERE i.k = o.k)), count(*) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT sum(CASE WHEN x > (SELECT avg(x) FROM un_i i WHERE i.k = o.k) THEN n ELSE 0 END), count((SELECT max(y) FROM un_i i WHERE i.k8 = o.k8)) FROM un_o o');
SELECT * FROM un_check('SELECT t, count(*) FILTER (WHERE x > (SELECT avg(x) FROM un_i i WHERE i.k = o.k)), count(DISTINCT (SELECT count(*) FROM un_i i WHERE i.k = o.k)) FROM un_o o WHERE x < 45 GROUP BY ROLLUP (t)');
SELECT * FROM un_check('SELECT y, max(x) FROM un_o o GROUP BY y HAVING sum((SELECT count(*) FROM un_i i WHERE i.k = o.k)) > 600 ORDER BY sum((SELECT count(*) FROM un_i i WHERE i.k = o.k8))');
SELECT * FROM un_check('SELECT y, string_agg((SELECT max(t) FROM un_i i WHERE i.k = o.k), '','' ORDER BY id) FROM un_o o LEFT JOIN un_j j USING (id) GROUP BY y');
SELECT * FROM un_check('SELECT y, sum(sum((SELECT count(*) FROM un_i i WHERE i.k = o.k))) OVER (ORDER BY y) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT y, (SELECT count(*) FROM un_i i WHERE i.y = o.y) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT (SELECT count(*) FROM un_i i WHERE i.k = o.k) AS c, count(*) FROM un_o o GROUP BY 1');
SELECT * FROM un_check('SELECT y, percentile_disc((SELECT 0.5 * count(*) / count(*) FROM un_i i WHERE i.y = o.y)) WITHIN GROUP (ORDER BY x) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT id, (SELECT sum(o.x) FROM un_i i WHERE i.k = 3 LIMIT 1) FROM un_o o GROUP BY id ORDER BY 1 LIMIT 3');
SELECT * FROM un_check('SELECT y, sum((SELECT sum(n / 0) FROM un_i i WHERE i.k = o.k)) FROM un_o o GROUP BY y');

-- what is computed of groups
SELECT * FROM un_check('SELECT y, sum(x), (SELECT count(*) FROM un_i i WHERE i.y = o.y) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT k % 5 AS r, sum(x), (SELECT max(t) FROM un_i i WHERE i.x = max(o.y) AND i.y > 2), count(*) + (SELECT count(*) FROM un_i i WHERE i.y = min(o.y)) FROM un_o o GROUP BY k % 5 ORDER BY 4 DESC, 1 NULLS FIRST');
SELECT * FROM un_check('SELECT k, y FROM un_o o GROUP BY y, k HAVING sum(x) > (SELECT sum(y) FROM un_i i WHERE i.k = o.k) AND max(n) < 90 AND count(*) > (SELECT count(*) FROM un_i i WHERE i.y = o.y AND i.k = o.k AND i.x < 5)');
SELECT * FROM un_check('SELECT k, count(*) FROM un_o o GROUP BY k HAVING (SELECT count(*) FROM un_i i WHERE i.x = sum(o.x) - 300 AND i.k = o.k) = 0 ORDER BY (SELECT max(z) FROM un_j j WHERE j.k = o.k) NULLS FIRST, 1 LIMIT 5');
SELECT * FROM un_check('SELECT DISTINCT (SELECT count(*) FROM un_j j WHERE j.k = o.k), max(o.x) / 10 FROM un_o o LEFT JOIN un_i i USING (k) GROUP BY o.k');
SELECT * FROM un_check('SELECT i.t, max(o.x), (SELECT sum(z) FROM un_j j WHERE j.z = max(i.y)) FROM un_o o LEFT JOIN un_i i ON i.k8 = o.k8 AND i.x = o.x GROUP BY 1 HAVING bool_or(o.y > 1) OR (SELECT bool_or(z > 3) FROM un_j j WHERE j.k = min(o.k))');
SELECT * FROM un_check('SELECT k, sum((SELECT sum(n) FROM un_i i WHERE i.k = o.k8)), (SELECT count(*) FROM un_i i WHERE i.k = o.k) FROM un_o o WHERE x > (SELECT min(x) FROM un_i i WHERE i.k8 = o.k8) GROUP BY k, k');
SELECT * FROM un_check('SELECT j.id, (SELECT s FROM (SELECT y, sum(x) AS s, (SELECT count(*) FROM un_i i WHERE i.y = o.y) AS c FROM un_o o WHERE o.k = j.k GROUP BY y HAVING max(x) > (SELECT sum(y) FROM un_i i WHERE i.y = o.y AND i.x < 2) ORDER BY 1, 2 LIMIT 1) q) FROM un_j j');
SELECT * FROM un_check('WITH w AS (SELECT k, sum(x) AS s FROM un_o GROUP BY k) SELECT y, count(*), (SELECT sum(s) FROM w WHERE w.k = o.y) FROM un_o o GROUP BY y');
SELECT * FROM un_check('WITH w AS (SELECT k, sum(x) AS s FROM un_o GROUP BY k), v AS (SELECT y, k FROM un_o WHERE k < (SELECT max(s) FROM w)) SELECT y, count(*), (SELECT count(*) FROM un_i i WHERE i.k = v.y), (SELECT max(s) FROM w) FROM v WHERE k IN (SELECT k FROM w WHERE s > 100) AND EXISTS (SELECT FROM (SELECT k FROM w WHERE s > (SELECT min(s) FROM w)) q WHERE q.k = v.k) GROUP BY y');
SELECT * FROM un_check('WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT r.n, count(*), (SELECT count(*) FROM un_i i WHERE i.y = r.n) FROM r JOIN un_o o ON o.y = r.n GROUP BY r.n');
SELECT * FROM un_check('SELECT y, GROUPING(y), (SELECT count(*) FROM un_i i WHERE i.y = o.y) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT y, row_number() OVER (ORDER BY (SELECT count(*) FROM un_i i WHERE i.y = o.y), y) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT y, generate_series(1, (SELECT count(*) FROM un_i i WHERE i.y = o.y) / 20) FROM un_o o GROUP BY y');
SELECT * FROM un_check('SELECT y FROM un_o o GROUP BY y HAVING EXISTS (SELECT FROM un_i i WHERE i.x = o.y) AND y NOT IN (SELECT k FROM un_j WHERE k IS NOT NULL)');
SELECT * FROM un_check('SELECT y, (SELECT max(i.x) FROM un_i i WHERE i.y = o.y AND i.x > (SELECT avg(z) FROM un_j j WHERE j.k = o.y)) FROM un_o o GROUP BY y');
CREATE TABLE un_p (a int PRIMARY KEY, b int, t text);
INSERT INTO un_p SELECT i, i % 4, 't' || i % 3 FROM generate_series(1, 30) i;
ANALYZE un_p;
SELECT * FROM un_check('SELECT a, b, p.t, count(o.id), (SELECT count(*) FROM un_i i WHERE i.y = p.b AND i.t = p.t) FROM un_p p LEFT JOIN un_o o ON o.k = p.a GROUP BY a ORDER BY p.b, a LIMIT 9');

-- CASE within, around and beside them
SELECT * FROM un_check('SELECT k, sum(x) FROM un_o o GROUP BY k HAVING sum(x) > (SELECT sum(CASE WHEN x > 3 THEN x ELSE 0 END) FROM un_j j JOIN un_i i USING (k)) / 100');
SELECT * FROM un_check('SELECT k, CASE WHEN k > 3 THEN (SELECT CASE WHEN count(*) > 3 THEN 1 ELSE 0 END FROM un_i i WHERE i.k = o.k) WHEN sum(x) > 5 THEN 7 END FROM un_o o GROUP BY k');
SELECT * FROM un_check('SELECT k, sum(x) FROM un_o o GROUP BY k HAVING EXISTS (SELECT FROM un_i i WHERE i.k = o.k AND CASE WHEN i.x > 3 THEN true ELSE false END)');
-- nothing is computed of groups that nobody asks for, whatever is around them, nor before what comes first
CREATE TABLE un_zero AS SELECT i AS id, i % 50 AS k, CASE WHEN i % 50 = 45 THEN 0 ELSE 1 + i % 9 END AS x, CASE WHEN i % 50 = 45 THEN '99999999999' ELSE 'a' || i % 50 END AS t FROM generate_series(1, 500) i WHERE i % 50 NOT IN (7, 9);
CREATE TABLE un_asks AS SELECT i AS id, i % 40 AS k FROM generate_series(1, 200) i;
ANALYZE un_zero, un_asks;
SELECT * FROM un_check('SELECT count(*), sum(l.m) FROM un_asks o, LATERAL (SELECT max(i.x) AS m FROM un_zero i WHERE i.k = o.k) l WHERE 50 / l.m >= 0');
SELECT * FROM un_check('SELECT count(*) FROM un_asks o CROSS JOIN LATERAL (SELECT max(x) AS m, min(t) AS t FROM un_zero i WHERE i.k = o.k) l WHERE substr(l.t, 2)::int > 3');
SELECT * FROM un_check('SELECT count(*) FROM (SELECT o.id, l.m FROM un_asks o, LATERAL (SELECT max(x) AS m FROM un_zero i WHERE i.k = o.k) l) s WHERE 50 / s.m >= 0');
SELECT * FROM un_check('SELECT count(*) FROM (SELECT o.k, (SELECT max(x) FROM un_zero i WHERE i.k = o.k) AS m FROM un_asks o GROUP BY k) s WHERE 50 / s.m >= 0');
SELECT * FROM un_check('SELECT count(*) FROM (SELECT 50 / (SELECT max(x) FROM un_zero i WHERE i.k = o.k) AS d FROM un_asks o GROUP BY o.k) s WHERE d > 3');
SELECT * FROM un_check('SELECT count(*) FROM (SELECT o.k, (SELECT max(x) FROM un_zero i WHERE i.k = o.k) AS m FROM un_asks o GROUP BY k) s JOIN (VALUES (5), (6)) v(a) ON v.a = 50 / s.m');
SELECT * FROM un_check('SELECT count(*) FROM (SELECT o.id, (SELECT max(x) FROM un_zero i WHERE i.k = o.k) AS m FROM un_asks o) s WHERE 50 / s.m >= 0');
SELECT * FROM un_check('SELECT o.k FROM un_asks o GROUP BY o.k HAVING (SELECT count(*) FROM un_zero i WHERE i.k = o.k) > 0 AND 10 / (SELECT count(*) FROM un_zero i WHERE i.k = o.k) >= 0');
SELECT * FROM un_check('SELECT o.id FROM un_asks o WHERE (SELECT count(*) FROM un_zero i WHERE i.k = o.k) > 0 AND 10 / (SELECT count(*) FROM un_zero i WHERE i.k = o.k) >= 0');

-- in FROM
SELECT * FROM un_check('SELECT o.id, l.s, l.c FROM un_o o, LATERAL (SELECT sum(n) AS s, count(*) AS c FROM un_i i WHERE i.k = o.k) l');
SELECT * FROM un_check('SELECT o.id, l.c + 1 FROM un_o o LEFT JOIN LATERAL (SELECT count(*) AS c, max(t) AS m FROM un_i i WHERE i.k = o.k AND i.y > 2) l ON true WHERE l.m IS NOT NULL OR o.x < 5 ORDER BY l.m, o.id LIMIT 20');
SELECT * FROM un_check('SELECT y, sum(l.s), max(l.c), count(*) FILTER (WHERE l.s IS NULL) FROM un_o o CROSS JOIN LATERAL (SELECT sum(n) - 1.5 AS s, count(DISTINCT y) AS c FROM un_i i WHERE i.k8 = o.k8 AND i.k = o.k) l WHERE o.x < 40 GROUP BY y HAVING sum(l.c) > 3');
SELECT * FROM un_check('SELECT l.c, count(*) FROM un_o o, LATERAL (SELECT count(*) AS c FROM un_i i WHERE i.k = o.k) l GROUP BY l.c');
SELECT * FROM un_check('SELECT o.id, (SELECT max(z) FROM un_j j WHERE j.k = o.k AND j.id > l.c), l.s FROM un_o o JOIN LATERAL (SELECT count(*) AS c, coalesce(max(x), o.x) AS s FROM un_i i WHERE i.k = o.k) l ON true WHERE EXISTS (SELECT FROM un_j j WHERE j.z = l.c)');
SELECT * FROM un_check('SELECT o.id, l.s, j.z FROM un_o o JOIN un_j j USING (id) CROSS JOIN LATERAL (SELECT sum(y) AS s FROM un_i i WHERE i.k = j.k AND i.y = o.y) l LEFT JOIN un_n ON a = j.z WHERE j.z > 2');
SELECT * FROM un_check('SELECT id, l.s, m.s FROM un_o o, LATERAL (SELECT sum(y) AS s FROM un_i i WHERE i.k = o.k) l, LATERAL (SELECT min(z) AS s FROM un_j j WHERE j.k = o.k) m WHERE l.s > m.s');
SELECT * FROM un_check('SELECT j.id, (SELECT sum(l.s) FROM un_o o, LATERAL (SELECT sum(y) AS s FROM un_i i WHERE i.k = o.k) l WHERE o.y = 1) FROM un_j j');
SELECT * FROM un_check('SELECT o.k, l.* FROM un_o o LEFT JOIN un_j j ON j.id = o.id LEFT JOIN LATERAL (SELECT count(*) AS c, sum(n) AS s FROM un_i i WHERE i.k = j.k) l ON true');
-- beyond an outer join, read by another table or by a join, with a condition in ON, as a row, or more than aggregates
SELECT * FROM un_check('SELECT j.id, l.s FROM un_j j LEFT JOIN (un_o o CROSS JOIN LATERAL (SELECT sum(y) AS s FROM un_i i WHERE i.k = o.k) l) ON o.id = j.id');
SELECT * FROM un_check('SELECT id, m.s FROM un_o o, LATERAL (SELECT count(*) AS s FROM un_i i WHERE i.k = o.k) l, LATERAL (SELECT min(z) AS s FROM un_j j WHERE j.k = l.s) m');
SELECT * FROM un_check('SELECT o.id, j.id FROM un_o o CROSS JOIN LATERAL (SELECT count(*) AS c FROM un_i i WHERE i.k = o.k) l JOIN un_j j ON j.k = l.c');
SELECT * FROM un_check('SELECT id, l.s FROM un_o o LEFT JOIN LATERAL (SELECT sum(y) AS s FROM un_i i WHERE i.k = o.k) l ON o.x > 10');
SELECT * FROM un_check('SELECT id, l::text FROM un_o o, LATERAL (SELECT sum(y) AS s, count(*) AS c FROM un_i i WHERE i.k = o.k) l');
SELECT * FROM un_check('SELECT id, l.s FROM un_o o, LATERAL (SELECT sum(y) AS s FROM un_i i WHERE i.k < o.k) l');
SELECT * FROM un_check('SELECT id, l.s FROM un_o o, LATERAL (SELECT sum(y) AS s FROM un_i i WHERE i.k = o.k HAVING count(*) > 3) l');
SELECT * FROM un_check('SELECT id, l.s FROM un_o o, LATERAL (SELECT sum(y / 0) AS s FROM un_i i WHERE i.k = o.k) l');
SELECT * FROM un_check('SELECT id, l.t FROM un_o o, LATERAL (SELECT t FROM un_i i WHERE i.k = o.k ORDER BY i.id LIMIT 1) l');

-- numerics that are computed from such of a declared precision have room, whatever query computes them; others may not
SELECT * FROM un_check('WITH w AS (SELECT k, t, sum(n) AS s FROM un_i GROUP BY k, t) SELECT a.k, a.t FROM w a WHERE a.s > (SELECT avg(s) * 1.2 FROM w b WHERE b.k = a.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < 0.2 * (SELECT avg(n) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM (SELECT k, sum(n) AS s FROM un_i GROUP BY k UNION ALL SELECT k, max(-n) FROM un_i GROUP BY k) i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM (SELECT k, CASE WHEN y > 2 THEN n * 2 ELSE y::numeric END + coalesce(n - 1, nullif(x, 3)::numeric, 7) AS s FROM un_i) i WHERE i.k = o.k)');
SELECT * FROM un_check('WITH w AS MATERIALIZED (SELECT k, sum(n) OVER (PARTITION BY k ORDER BY y) AS s FROM un_i) SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM w i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM (SELECT k, n AS s FROM un_i UNION SELECT k, free FROM un_i) i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM (SELECT k, (SELECT sum(n) FROM un_i) AS s FROM un_i) i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(free) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('WITH w AS (SELECT k, t, sum(free) AS s FROM un_i GROUP BY k, t) SELECT a.k, a.t FROM w a WHERE a.s > (SELECT avg(s) FROM w b WHERE b.k = a.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM (SELECT k, n / 3.5 AS s FROM un_i) i WHERE i.k = o.k)');
SELECT * FROM un_check('WITH RECURSIVE w AS (SELECT 1 AS k, 2::numeric AS s UNION ALL SELECT k + 1, s * 2 FROM w WHERE k < 9) SELECT a.k FROM w a WHERE a.s > (SELECT sum(s) FROM w b WHERE b.k = a.k)');
-- what fails for keys that nobody asks for: casts of a UNION ALL, a domain's values, and a WITH that is put in its place
CREATE DOMAIN un_big AS numeric;
CREATE TABLE un_far WITH (autovacuum_enabled = off) AS SELECT i % 12 AS k, 1.5::float8 AS f, 2.5::numeric AS n, 3::un_big AS b, i % 5 AS y FROM generate_series(1, 60) i;
INSERT INTO un_far VALUES (99, 1, 1e400, 1e70000, 0);
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x > (SELECT max(u.v) FROM (SELECT k, f AS v FROM un_far UNION ALL SELECT k, n FROM un_far) u WHERE u.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x > (SELECT sum(b * b) FROM un_far u WHERE u.k = o.k)');
SELECT * FROM un_check('WITH w AS (SELECT k, 10 / nullif(y, 0) / (CASE WHEN k = 99 THEN 0 ELSE 1 END) AS v FROM un_far) SELECT id FROM un_o o WHERE x > (SELECT max(v) FROM w WHERE w.k = o.k)');
SELECT * FROM un_check('WITH w AS (SELECT k, y + 1 AS v FROM un_far) SELECT id FROM un_o o WHERE x > (SELECT max(v) FROM w WHERE w.k = o.k)');
SELECT * FROM un_check('WITH w AS (SELECT k, y AS v FROM un_far) SELECT id FROM un_o o WHERE x > (SELECT max(v) FROM w WHERE w.k = o.k)');
DROP TABLE un_far;
DROP DOMAIN un_big;
-- so many digits as come of squares of squares
SELECT depth, c.* FROM (VALUES (3), (5), (20)) v(depth), un_check((SELECT 'WITH w0 AS (SELECT k, n * 0 AS s FROM un_i)' ||
	string_agg(format(', w%s AS MATERIALIZED (SELECT k, s * s AS s FROM w%s)', i, i - 1), '') || format(' SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM w%s w WHERE w.k = o.k)', depth) FROM generate_series(1, depth) i)) c;

-- keys of several types, several keys, system columns, rows
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k8) AND y = 1');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k8 = o.k) AND y = 1');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.f4 = o.f)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.f = o.f4)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.d = o.ts)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.ts = o.d)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.c = o.c)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.t = o.c)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.n * 2 = o.n * 2)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.t = o.t AND i.k = o.k AND i.k = o.k8) AND o.y = 1');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE (i.k, i.y) = (o.k, o.y))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT count(i) FROM un_o i WHERE i.ctid = o.ctid AND i.tableoid = o.tableoid)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.t = o.t AND i.k > o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k IS NOT DISTINCT FROM o.k)');

-- beside and beyond outer joins: a row without one of the table may ask, too
SELECT * FROM un_check('SELECT o.id FROM un_o o LEFT JOIN un_j j ON j.k = o.k AND j.z = 1 WHERE j.z IS NULL AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = coalesce(j.k, 5))');
SELECT * FROM un_check('SELECT o.id FROM un_o o LEFT JOIN un_j j ON j.k = o.k WHERE j.z = 1 AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = j.k)');
SELECT * FROM un_check('SELECT o.id FROM un_j j RIGHT JOIN un_o o ON j.k = o.k WHERE (j.z = 1 OR j.z IS NULL) AND o.x < coalesce((SELECT sum(y) FROM un_i i WHERE i.k = j.k), 30)');
SELECT * FROM un_check('SELECT o.id FROM un_o o FULL JOIN un_j j ON j.k = o.k WHERE (j.z = 1 OR j.z IS NULL) AND o.x < coalesce((SELECT sum(y) FROM un_i i WHERE i.k = coalesce(j.k, 3)), 30)');
SELECT * FROM un_check('SELECT k, (SELECT count(*) FROM un_i i WHERE i.k = s.k) FROM (SELECT * FROM un_o FULL JOIN un_j USING (k)) s');
SELECT * FROM un_check('SELECT o.id, j.id FROM un_o o LEFT JOIN un_j j ON j.k = o.k AND j.z < (SELECT count(*) FROM un_i i WHERE i.k = o.k)');

-- WITH, which conditions of the query may read; UNION, EXCEPT, LATERAL, VALUES, functions, TABLESAMPLE
SELECT * FROM un_check('WITH w AS (SELECT id, k, x FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)) SELECT a.id FROM w a JOIN w b USING (k)');
SELECT * FROM un_check('WITH w AS MATERIALIZED (SELECT * FROM un_i) SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k) AND y IN (SELECT y FROM w WHERE k = 4)');
SELECT * FROM un_check('WITH w AS MATERIALIZED (SELECT * FROM un_i) SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM w WHERE w.k = o.k) AND EXISTS (SELECT FROM w WHERE w.k = o.k AND y = 1)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k) UNION ALL SELECT id FROM un_j o WHERE z < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k) EXCEPT SELECT id FROM un_j o WHERE z < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id, z FROM un_o o, LATERAL (SELECT j.z FROM un_j j WHERE j.k = o.k AND j.z < (SELECT count(*) FROM un_i i WHERE i.k = j.k)) l');
SELECT * FROM un_check('SELECT id, z FROM un_o o, LATERAL (SELECT j.z FROM un_j j WHERE j.k = o.k AND j.z < (SELECT count(*) FROM un_i i WHERE i.k = j.k AND i.y = o.y)) l');
SELECT * FROM un_check('SELECT o.id FROM un_o o, LATERAL (SELECT * FROM un_j j WHERE j.k = o.k OFFSET 0) l WHERE l.z < (SELECT count(*) FROM un_i i WHERE i.k = l.k AND i.y = o.y)');
SELECT * FROM un_check('SELECT id FROM (VALUES (1, 2), (3, 4), (NULL, 4)) o(k, id) WHERE id < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT * FROM generate_series(1, 30) o(k) WHERE k < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o TABLESAMPLE bernoulli (50) REPEATABLE (3) WHERE y = 1 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(s) FROM (SELECT k, t, sum(y) AS s FROM un_i GROUP BY k, t) i WHERE i.k = o.k)');

-- subqueries in subqueries
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.x > (SELECT avg(z) FROM un_j j WHERE j.k = i.k AND j.z < (SELECT count(*) FROM un_m m WHERE m.a = j.k)))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.x > (SELECT avg(z) FROM un_j j WHERE j.k = o.k))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE EXISTS (SELECT FROM un_j j WHERE j.k = o.k AND j.z < (SELECT count(*) FROM un_i i WHERE i.k = j.k AND i.y = 2))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE k NOT IN (SELECT k FROM un_j j WHERE j.z > (SELECT count(*) FROM un_i i WHERE i.k = j.k AND i.y = 2))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.y = ANY (SELECT z FROM un_j))');
SELECT * FROM un_check('SELECT id, (SELECT sum((SELECT max(z) FROM un_j j WHERE j.k = i.k)) FROM un_i i WHERE i.k = o.k) FROM un_o o');

-- what is above: DISTINCT, ORDER BY, LIMIT, windows, grouping sets, sets of rows
SELECT * FROM un_check('SELECT DISTINCT (SELECT sum(y) FROM un_i i WHERE i.k = o.k) FROM un_o o');
SELECT * FROM un_check('SELECT DISTINCT ON (1) (SELECT sum(y) FROM un_i i WHERE i.k = o.k) AS s, id FROM un_o o ORDER BY 1, 2');
SELECT * FROM un_check('SELECT id FROM un_o o ORDER BY (SELECT sum(y) FROM un_i i WHERE i.k = o.k), id LIMIT 7');
SELECT * FROM un_check('SELECT id, row_number() OVER (ORDER BY id) FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT k, sum(x) FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k) GROUP BY ROLLUP (k)');
SELECT * FROM un_check('SELECT k, sum(x), (SELECT sum(y) FROM un_i i WHERE i.k = o.k) FROM un_o o GROUP BY GROUPING SETS ((k), ())');
SELECT * FROM un_check('SELECT k, sum(x) FROM un_o o GROUP BY k HAVING sum(x) > (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT sum((SELECT sum(y) FROM un_i i WHERE i.k = o.k)) FROM un_o o');
SELECT * FROM un_check('SELECT generate_series(1, 2), (SELECT sum(y) FROM un_i i WHERE i.k = o.k) FROM un_o o');
SELECT * FROM un_check('SELECT CASE (SELECT sum(y) FROM un_i i WHERE i.k = o.k) WHEN 3 THEN 1 WHEN id THEN 2 END FROM un_o o');

-- groups for the keys alone that may ask
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 AND t LIKE ''t_'' AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT o.id FROM un_o o, un_j j WHERE o.k = j.k AND j.z = 1 AND o.y = 1 AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT o.id FROM un_o o, un_j j WHERE o.k = j.k AND j.z = 1 AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.y = j.z)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 AND k IN (SELECT k FROM un_j WHERE z = 2) AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_parted p WHERE x = 3 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = p.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 3 AND x < (SELECT sum(x) FROM un_parted p WHERE p.k = o.k)');

-- NOT IN: no NULLs on either side
SELECT * FROM un_not_in('SELECT a FROM un_n WHERE a NOT IN (SELECT a FROM un_m WHERE z = 1)');
SELECT * FROM un_check('SELECT a FROM un_n WHERE a NOT IN (SELECT DISTINCT a FROM un_m WHERE z = 1 ORDER BY a)');
SELECT * FROM un_check('SELECT a FROM un_n WHERE a NOT IN (SELECT z FROM un_m WHERE z = 1)');
SELECT * FROM un_check('SELECT a FROM un_n WHERE z NOT IN (SELECT a FROM un_m WHERE z = 1)');
SELECT * FROM un_check('SELECT a FROM un_n n WHERE a NOT IN (SELECT a FROM un_m WHERE z = n.z)');
SELECT * FROM un_check('SELECT n.a FROM un_o o LEFT JOIN un_n n ON n.a = o.k WHERE n.a NOT IN (SELECT a FROM un_m WHERE z = 1)');
SELECT * FROM un_not_in('SELECT n.a FROM un_n n LEFT JOIN un_o o ON n.a = o.k WHERE n.a NOT IN (SELECT a FROM un_m WHERE z = 1)');
SELECT * FROM un_check('SELECT a FROM un_n WHERE a NOT IN (SELECT m.a FROM un_m LEFT JOIN un_m m ON m.a = un_m.a + 1)');
SELECT * FROM un_check('SELECT a FROM un_n WHERE a NOT IN (SELECT a FROM un_m WHERE z = 1 LIMIT 1)');
SELECT * FROM un_check('SELECT a FROM un_n WHERE a NOT IN (SELECT a FROM un_parent)');
SELECT * FROM un_not_in('SELECT a FROM un_n WHERE a NOT IN (SELECT a FROM ONLY un_parent)');
SELECT * FROM un_not_in('SELECT a FROM un_n WHERE a NOT IN (SELECT k FROM un_parted WHERE x = 3)');
SELECT * FROM un_check('SELECT a FROM un_n n WHERE z < (SELECT count(*) FROM un_i i WHERE i.k = n.a) AND a NOT IN (SELECT a FROM un_m WHERE z = 1)');

-- NOT IN: NULLs on one side or both, or none there; and beside OR, below NOT, and as a result, where NULL is not false
CREATE TABLE un_null AS SELECT CASE WHEN i % 5 > 0 THEN i % 30 END AS k, i % 7 AS z FROM generate_series(1, 200) i;
ANALYZE un_null;
SELECT q, (un_check(q)).* FROM (SELECT format('SELECT %s FROM %s a WHERE a.k NOT IN (SELECT %s FROM %s)', c, o, k, i) AS q
	FROM (VALUES ('a.k'), ('count(*)')) c(c), (VALUES ('un_null'), ('un_o'), ('(SELECT NULL::int AS k)')) o(o),
		(VALUES ('k', 'un_null'), ('k', 'un_null WHERE k IS NOT NULL'), ('k', 'un_null WHERE z > 100'), ('k + 1', 'un_null WHERE z = 3 AND k > 5'), ('NULL::int', 'un_null'), ('b.k', 'un_o b JOIN un_null d ON d.z = b.y AND d.k > 3')) i(k, i)) q;
SELECT * FROM un_check('SELECT id FROM un_o o WHERE NOT (SELECT bool_and(y > 1) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT k, z FROM un_null a WHERE z = 3 OR k NOT IN (SELECT k FROM un_null WHERE z = 3)');
SELECT * FROM un_check('SELECT k, z FROM un_null a WHERE NOT (k NOT IN (SELECT k FROM un_null WHERE z = 3))');
SELECT * FROM un_check('SELECT k, z FROM un_null a WHERE (k NOT IN (SELECT k FROM un_null WHERE z = 3)) IS NULL');
SELECT * FROM un_check('SELECT k, k NOT IN (SELECT k FROM un_null WHERE z = 3) FROM un_null a');
SELECT * FROM un_check('SELECT k, z FROM un_null a WHERE z = 3 AND k NOT IN (SELECT k FROM un_null WHERE z = 4 AND k > 3) AND z NOT IN (SELECT k FROM un_null WHERE z = 2)');
SELECT * FROM un_check('SELECT a.k, b.k FROM un_null a LEFT JOIN un_o b ON b.k = a.k AND b.y = 1 WHERE b.k NOT IN (SELECT k FROM un_null WHERE z = 1 AND k > 20)');
SELECT * FROM un_check('SELECT k, z FROM un_null a WHERE (k, z) NOT IN (SELECT k, z FROM un_null WHERE z = 3)');
SELECT * FROM un_check('SELECT k, z FROM un_null a WHERE k NOT IN (SELECT 10 / (z - 3) FROM un_null)');

-- nothing that may fail is computed for rows that nobody asks for
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND x < (SELECT sum(10 / (i.x - 3)) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND x < (SELECT 1000 / count(*) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.x > (SELECT z FROM un_j j WHERE j.k = i.k))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND (date ''300000-01-01'' + i.y)::timestamp > i.ts)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.t LIKE i.c)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND free < (SELECT sum(free * free) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND f < (SELECT sum(f) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND x < (SELECT count(*) FROM un_o i WHERE i = o)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 77 AND ARRAY[x] < (SELECT max(ARRAY[i.x]) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT a.id FROM un_o o, un_o a WHERE a.id = o.id + 1 AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT a.id FROM un_o o, un_o a WHERE a.id = o.id AND 1 / (o.x - a.x + 1) > 0 AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT o.id FROM un_o o LEFT JOIN un_o a ON a.id = o.id AND 1 / (o.x - a.x + 1) > 0 WHERE o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT o.id FROM un_o o, (SELECT id, 1 / (y - 1) AS q FROM un_o) a WHERE a.id = o.id AND o.y > a.q AND o.y > 1 AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');

-- a user's functions are run as often as PostgreSQL runs them
CREATE SEQUENCE un_calls;
CREATE FUNCTION un_count(i int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM nextval('un_calls'); RETURN i; END $$;
CREATE FUNCTION un_called(query text, OUT calls bigint, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	want bigint;
BEGIN
	PERFORM setval('un_calls', 1), set_config('gpuhash.enabled', 'off', true), answer_of(query);
	want := nextval('un_calls') - 2;
	PERFORM setval('un_calls', 1), set_config('gpuhash.enabled', 'on', true), set_config('gpuhash.force_offload', 'on', true), answer_of(query);
	calls := nextval('un_calls') - 2;
	same := calls = want;
END $$;
SELECT same FROM un_called('SELECT id FROM un_o o WHERE un_count(x) < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT same FROM un_called('SELECT id FROM un_o o WHERE y = 1 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.y < un_count(i.x))');
SELECT same FROM un_called('SELECT id FROM un_o o WHERE y = 77 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.y < un_count(3))');

-- privileges on some columns, and row-level security
CREATE ROLE regress_gpuhash_unnest;
GRANT SELECT (k, x) ON un_o TO regress_gpuhash_unnest;
GRANT SELECT (k, y) ON un_i TO regress_gpuhash_unnest;
GRANT SELECT ON un_n TO regress_gpuhash_unnest;
ALTER TABLE un_n ENABLE ROW LEVEL SECURITY;
CREATE POLICY un_some ON un_n USING (z < (SELECT count(*) FROM un_i i WHERE i.k = un_n.a));
SET ROLE regress_gpuhash_unnest;
SELECT * FROM un_check('SELECT k FROM un_o o WHERE x = 10 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)');
SELECT k FROM un_o o WHERE y = 1 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k);
SELECT * FROM un_check('SELECT a FROM un_n o WHERE b = ''t1'' AND a < (SELECT sum(y) FROM un_i i WHERE i.k = o.a)');
SELECT * FROM un_check('SELECT k FROM un_o o WHERE x < (SELECT sum(a) FROM un_n n WHERE n.a = o.k)');
RESET ROLE;
ALTER TABLE un_n DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON un_o, un_i, un_n FROM regress_gpuhash_unnest;
DROP POLICY un_some ON un_n;
DROP ROLE regress_gpuhash_unnest;

-- prepared statements: of parameters that are not known yet; and a column that may become NULL
SET gpuhash.force_offload = on;
SET plan_cache_mode = force_generic_plan;
PREPARE un_generic(int) AS SELECT count(*) FROM un_o o WHERE y = $1 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.y > $1);
EXECUTE un_generic(1);
EXECUTE un_generic(2);
SET gpuhash.enabled = off;
SET plan_cache_mode = force_custom_plan;
EXECUTE un_generic(1);
EXECUTE un_generic(2);
RESET gpuhash.enabled;
RESET plan_cache_mode;
PREPARE un_not_in AS SELECT count(*) FROM un_n WHERE a NOT IN (SELECT a FROM un_m WHERE z = 1);
EXECUTE un_not_in;
ALTER TABLE un_m ALTER a DROP NOT NULL;
INSERT INTO un_m VALUES (NULL, '', 1);
EXECUTE un_not_in;
DELETE FROM un_m WHERE a IS NULL;

-- EXISTS beside OR: NULLs on either side, several keys, several of them
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2) OR EXISTS (SELECT * FROM un_j j WHERE o.k8 = j.k AND j.z < 2)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE x > 3 AND (y = 1 AND EXISTS (SELECT 1 FROM un_i i WHERE o.k = i.k8 AND i.x = o.x AND i.y > 1) OR EXISTS (SELECT 1 FROM un_j j WHERE j.k = o.k AND j.z = o.y))');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT DISTINCT i.x FROM un_i i, un_j j WHERE i.t = o.t AND i.k = j.k AND j.z > (SELECT min(z) FROM un_j) ORDER BY i.x)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.c = o.c AND i.f = o.f4 AND i.y = 4)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.n = o.n) OR EXISTS (SELECT 1 FROM un_i i WHERE i.d = o.ts)');
SELECT * FROM un_check('WITH w AS (SELECT k, y FROM un_i WHERE x < 20) SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM w WHERE w.k = o.k AND w.y = 2)');
SELECT * FROM un_check('SELECT y, count(*) FROM un_o o LEFT JOIN un_j j ON j.id = o.id WHERE j.z = 3 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = j.k AND i.y = 2) GROUP BY y');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_parted p WHERE p.k = o.k AND p.x = 7)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.k IS NULL)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2)) AND x < (SELECT sum(i.x) FROM un_i i WHERE i.k8 = o.k8)');
-- with a policy that has a subquery
CREATE ROLE regress_un_reader;
CREATE TABLE un_policed WITH (autovacuum_enabled = off) AS SELECT i % 20 AS k, i % 6 AS y FROM generate_series(1, 200) i;
ALTER TABLE un_policed ENABLE ROW LEVEL SECURITY;
CREATE POLICY un_policy ON un_policed FOR SELECT USING (EXISTS (SELECT 1 FROM un_j j WHERE j.k = un_policed.y));
GRANT SELECT ON un_o, un_j, un_policed TO regress_un_reader;
SET ROLE regress_un_reader;
SELECT count(*), sum(id) FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_policed i WHERE i.k = o.k AND i.y = 2);
SET gpuhash.enabled = off;
SELECT count(*), sum(id) FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_policed i WHERE i.k = o.k AND i.y = 2);
RESET gpuhash.enabled;
RESET ROLE;
DROP TABLE un_policed;
REVOKE SELECT ON un_o, un_j FROM regress_un_reader;
DROP ROLE regress_un_reader;
-- where a NULL is not as good as false, with other conditions, or for rows that nobody asks for: they stay
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR NOT EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE (y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2)) IS NULL');
SELECT * FROM un_check('SELECT id, y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2) FROM un_o o');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE CASE WHEN y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2) THEN x > 5 END');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.x < o.x)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND o.x > 30)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i JOIN un_j j ON j.k = i.k AND j.z = o.y WHERE i.k = o.k)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k LIMIT 0)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT sum(i.y) FROM un_i i WHERE i.k = o.k AND i.y = 2)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND 10 / i.y > 2)');
SELECT * FROM un_check('SELECT id FROM un_o o WHERE id % 2 = 1 AND (y = 1 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2 AND random() < 2))');
SELECT * FROM un_check('SELECT y FROM un_o o GROUP BY y, k HAVING sum(x) = 7 OR EXISTS (SELECT 1 FROM un_i i WHERE i.k = o.k AND i.y = 2)');

-- other statements; cursors and locked rows stay as they are
CREATE TABLE un_made AS SELECT id, (SELECT sum(y) FROM un_i i WHERE i.k = o.k) AS s FROM un_o o;
INSERT INTO un_made SELECT id, (SELECT count(*) FROM un_i i WHERE i.k = o.k) FROM un_o o WHERE x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k);
SELECT count(*), sum(s) FROM un_made;
UPDATE un_made SET s = (SELECT sum(y) FROM un_i i WHERE i.k = un_made.id % 20) WHERE id < (SELECT count(*) FROM un_i i WHERE i.k = un_made.id);
DELETE FROM un_made WHERE id < (SELECT sum(y) FROM un_i i WHERE i.k = un_made.id);
SELECT count(*), sum(s) FROM un_made;
BEGIN;
DECLARE un_cursor CURSOR FOR SELECT * FROM un_j j WHERE id > 30 AND z < (SELECT count(*) FROM un_i i WHERE i.k = j.k);
FETCH 1 FROM un_cursor;
UPDATE un_j SET z = 77 WHERE CURRENT OF un_cursor RETURNING *;
ROLLBACK;
SELECT id FROM un_j j WHERE id < 5 AND z < (SELECT count(*) FROM un_i i WHERE i.k = j.k) ORDER BY id FOR UPDATE;

-- plans: groups for some keys, groups for all, an anti join
EXPLAIN (COSTS OFF) SELECT id FROM un_o o WHERE y = 1 AND x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k);
EXPLAIN (COSTS OFF) SELECT id, (SELECT count(*) FROM un_i i WHERE i.k = o.k) FROM un_o o;
EXPLAIN (COSTS OFF) SELECT a FROM un_n WHERE a NOT IN (SELECT k FROM un_parted_some WHERE x = 3);
-- an unsafe function
SELECT plan_lines('SELECT id FROM un_o o WHERE y = 1 AND x < (SELECT sum(10 / y) FROM un_i i WHERE i.k = o.k)', '%SubPlan%') > 0 AS stays;
-- costs tell, unless it is forced: few rows ask an index, whether these are found by another index or not
CREATE TABLE un_big WITH (autovacuum_enabled = off) AS SELECT i % 5000 AS k, i AS y FROM generate_series(1, 20000) i;
CREATE INDEX ON un_big (k);
CREATE TABLE un_large WITH (autovacuum_enabled = off) AS SELECT i AS id, i AS y FROM generate_series(1, 60000) i;
CREATE UNIQUE INDEX ON un_large (id);
VACUUM ANALYZE un_big, un_large, un_o;
RESET gpuhash.force_offload;
SELECT plan_lines('SELECT id FROM un_o o WHERE id = 3 AND x < (SELECT sum(y) FROM un_big i WHERE i.k = o.k)', '%SubPlan%') > 0 AS stays;
SELECT plan_lines('SELECT id FROM un_o o WHERE id > 30 AND x < (SELECT sum(y) FROM un_big i WHERE i.k = o.k)', '%SubPlan%') > 0 AS stays;
-- what WITH has is read whole for each row, so that hardly anything is in doubt, also beside a loop over an index; and so it is with EXISTS, which is asked for each row
SELECT plan_lines('WITH w AS MATERIALIZED (SELECT k, sum(y) AS s FROM un_big WHERE k < 25 GROUP BY k HAVING count(*) > 1) '
				  'SELECT k FROM w a WHERE s > (SELECT avg(s) FROM w WHERE w.k = a.k)', '%SubPlan%') > 0 AS stays;
SELECT plan_lines('WITH w AS MATERIALIZED (SELECT k, sum(y) AS s FROM un_big WHERE k < 40 GROUP BY k HAVING count(*) > 1) '
				  'SELECT b.y FROM w a, un_large b WHERE s > (SELECT avg(s) FROM w WHERE w.k = a.k) AND b.id = a.k', '%SubPlan%') > 0 AS stays;
SELECT plan_lines('SELECT count(*) FROM un_o o WHERE y = 1 OR EXISTS (SELECT 1 FROM un_big b WHERE b.y = o.id AND b.k < 2500)', '%SubPlan 2%') > 0 AS stays;
ALTER TABLE un_o ADD PRIMARY KEY (id);
SELECT plan_lines('SELECT id FROM un_o o WHERE id = 3 AND x < (SELECT sum(y) FROM un_big i WHERE i.k = o.k)', '%SubPlan%') > 0 AS stays;
SELECT plan_lines('SELECT a.id FROM un_o o, un_o a WHERE o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.k8 = a.k8)', '%SubPlan%') > 0 AS stays;
SET gpuhash.enable_unnest = off;
SELECT plan_lines('SELECT a.id FROM un_o o, un_o a WHERE o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k AND i.k8 = a.k8)', '%SubPlan%') > 0 AS stays;
RESET gpuhash.enable_unnest;
-- a scalar subquery that is run once may fail, as other conditions of one table may; not one for each row
SELECT c.*, other FROM unnest(ARRAY[
	'j.z = (SELECT DISTINCT z FROM un_j WHERE id = 7)',
	'o.x > (SELECT DISTINCT z FROM un_j WHERE k = 3)',
	'j.z = (SELECT z FROM un_j h WHERE h.id = j.k)',
	'j.z + (SELECT DISTINCT z FROM un_j WHERE id = 7) = (SELECT min(z) FROM un_j WHERE 4 / z >= j.z)']) other,
	un_check(format('SELECT o.id FROM un_o o JOIN un_j j ON j.id = o.k WHERE %s
		AND o.x < (SELECT sum(y) FROM un_i i WHERE i.k = o.k)', other)) c;
DROP TABLE un_o, un_i, un_j, un_n, un_m, un_parted, un_parent, un_child, un_made, un_big, un_large;
DROP FUNCTION un_check, un_not_in, un_count, un_called;
DROP SEQUENCE un_calls;
