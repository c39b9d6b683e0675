-- Groups of a UNION ALL as groups of its queries' groups (src/plan/arm_groups.c).
LOAD 'gpuhash';
SET client_min_messages = warning;
CREATE TABLE ug_shop WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 90 AS k, i % 40 AS d, CASE WHEN i % 7 > 0 THEN 's' || i % 11 END AS t, (i % 997)::numeric(8, 2) / 4 AS n,
    ((i % 997) / 4.0)::numeric(8, 2) AS p, i % 100::int2 AS q, (i::int8 * 1000003) AS b, i / 8.0::float8 AS f, i % 3 = 0 AS o FROM generate_series(1, 30000) i;
CREATE TABLE ug_mail WITH (autovacuum_enabled = off) AS SELECT 'odd' AS more, i AS id, i % 70 AS k, i % 45 AS d, CASE WHEN i % 5 > 0 THEN 's' || i % 13 END AS t, (i % 991)::numeric(8, 2) / 4 AS n,
    ((i % 991) / 8.0)::numeric(8, 2) AS p, i % 90::int2 AS q, (i::int8 * 1000033) AS b, i / 4.0::float8 AS f, i % 4 = 0 AS o FROM generate_series(1, 20000) i;
CREATE TABLE ug_days WITH (autovacuum_enabled = off) AS SELECT i AS d, 2000 + i / 10 AS y, 'm' || i % 6 AS m FROM generate_series(0, 49) i;
CREATE TABLE ug_none (LIKE ug_shop) WITH (autovacuum_enabled = off);
ANALYZE ug_shop, ug_mail, ug_days, ug_none;
-- all of this has to be planned both ways
CREATE VIEW ug_all AS SELECT 'shop' AS way, id, k, d, t, n, p, q, b, f, o FROM ug_shop UNION ALL SELECT 'mail', id, k, d, t, n, p, q, b, f, o FROM ug_mail;
CREATE TEMP TABLE ug_queries (position serial, query text);
INSERT INTO ug_queries (query) VALUES
    ('SELECT way, count(*) FROM ug_all GROUP BY way'),
    ('SELECT k, count(*), count(t), sum(q), sum(d), sum(b), sum(p), min(p), max(id), bool_and(o), bool_or(o), every(o) FROM ug_all GROUP BY k'),
    ('SELECT t, avg(q), avg(d), avg(b), avg(p), avg(p) FILTER (WHERE d > 20), count(*) FILTER (WHERE o) FROM ug_all GROUP BY t'),
    ('SELECT count(*), sum(p), avg(q), min(d), max(d) FROM ug_all WHERE k = 5'),
    ('SELECT count(*), sum(p), avg(q), min(d) FROM ug_all WHERE k < 0'),
    ('SELECT y, m, way, sum(p * q) AS s FROM ug_all JOIN ug_days USING (d) WHERE y > 2000 GROUP BY y, m, way HAVING count(*) > 100 ORDER BY s DESC, y, m, way LIMIT 7'),
    ('SELECT u.k % 7 + 1, sum(u.q), max(x.y) FROM ug_all u LEFT JOIN ug_days x ON x.d = u.d AND x.m = ''m1'' GROUP BY u.k % 7'),
    ('SELECT u.k, count(*) FROM ug_all u WHERE EXISTS (SELECT FROM ug_days x WHERE x.d = u.d AND x.y = 2002) GROUP BY u.k'),
    ('SELECT way, m, grouping(way, m), count(*), sum(p) FROM ug_all JOIN ug_days USING (d) GROUP BY ROLLUP (way, m)'),
    ('SELECT k, d, count(*) FROM ug_all WHERE k < 0 GROUP BY GROUPING SETS ((k), (d), ())'),
    ('SELECT k, sum(q), rank() OVER (ORDER BY sum(q) DESC, k) FROM ug_all GROUP BY k'),
    ('SELECT DISTINCT count(*) > 500 FROM ug_all GROUP BY k'),
    ('SELECT k, (SELECT max(y) FROM ug_days) FROM ug_all GROUP BY k HAVING avg(p) > (SELECT 60)'),
    ('SELECT k, (SELECT max(y) FROM ug_days x WHERE x.d = u.k) FROM ug_all u GROUP BY k'),
    ('SELECT a.k, a.s, x.y FROM (SELECT k, sum(q) AS s FROM ug_all GROUP BY k) a JOIN ug_days x ON x.d = a.k'),
    ('SELECT x.d, (SELECT sum(u.q) FROM ug_all u WHERE u.d = x.d GROUP BY u.d) FROM ug_days x'),
    ('SELECT x.d, s.* FROM ug_days x, LATERAL (SELECT k % 3, count(*) FROM (SELECT k, d FROM ug_shop WHERE d = x.d UNION ALL SELECT k, d FROM ug_mail WHERE q = x.y - 2000) u GROUP BY 1) s WHERE x.m = ''m2'''),
    ('WITH w AS MATERIALIZED (SELECT d, y FROM ug_days WHERE y < 2003) SELECT y, count(*), sum(u.p) FROM (SELECT d, p FROM ug_shop UNION ALL SELECT d, p FROM ug_mail WHERE d IN (SELECT d FROM w)) u JOIN w USING (d) GROUP BY y'),
    ('WITH w AS (SELECT d, y FROM ug_days WHERE y < 2003) SELECT y, count(*) FROM (SELECT d FROM ug_shop UNION ALL SELECT d FROM ug_mail) u JOIN w USING (d) GROUP BY y'),
    ('WITH w AS (SELECT way, k, sum(p) AS s FROM ug_all GROUP BY way, k) SELECT a.k, a.s, b.s AS other FROM w a JOIN w b ON a.k = b.k AND a.way > b.way'),
    ('SELECT k, count(*) FROM (SELECT k, d FROM ug_shop UNION ALL (SELECT k, d FROM ug_mail UNION ALL SELECT d, k FROM ug_shop WHERE o)) u GROUP BY k'),
    ('SELECT k, count(*), sum(c) FROM (SELECT k, count(*) AS c FROM ug_shop GROUP BY k, d UNION ALL SELECT k, q FROM ug_none) u GROUP BY k'),
    ('SELECT k, count(*) FROM (SELECT k FROM (SELECT k FROM ug_shop UNION ALL SELECT k FROM ug_mail) i GROUP BY k UNION ALL SELECT d FROM ug_mail) u GROUP BY k'),
    -- what parts do not give, keys that look different where they are equal, a nullable side, other operations, functions
    ('SELECT k, sum(f) FROM ug_all GROUP BY k'),
    ('SELECT k, count(DISTINCT d) FROM ug_all GROUP BY k'),
    ('SELECT k, string_agg(t, '','' ORDER BY id) FROM ug_all WHERE id < 300 GROUP BY k'),
    ('SELECT n, count(*) FROM ug_all GROUP BY n'),
    ('SELECT x.y, count(u.k) FROM ug_days x LEFT JOIN ug_all u ON u.d = x.d GROUP BY x.y'),
    ('SELECT k, count(*) FROM (SELECT k, d FROM ug_shop UNION SELECT k, d FROM ug_mail) u GROUP BY k'),
    ('SELECT k, count(*) FROM (SELECT k, d FROM ug_shop UNION ALL SELECT k, d FROM ug_mail ORDER BY 1, 2 LIMIT 1000) u GROUP BY k'),
    ('SELECT k, count(*) FROM (SELECT k, b FROM ug_shop UNION ALL SELECT k, q FROM ug_mail) u GROUP BY k'),
    ('SELECT k, count(*) FROM ug_all WHERE random() >= 0 GROUP BY k'),
    ('WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL (SELECT max(i) + 1 FROM (SELECT i FROM r UNION ALL SELECT k FROM ug_none) u HAVING max(i) < 3)) SELECT i FROM r'),
    ('SELECT k, sum(10 / (k - 5)) FROM ug_all GROUP BY k'),
    -- what is joined and may not be the same each time, or be computed for what nobody asks for
    ('WITH w AS (SELECT d, y, 10 / (d - 5) AS z FROM ug_days) SELECT y, count(*) FROM ug_all JOIN w USING (d) GROUP BY y'),
    ('SELECT s.d, count(*) FROM ug_all JOIN (SELECT d FROM ug_days ORDER BY d LIMIT 20) s USING (d) GROUP BY s.d'),
    ('SELECT s.d, count(*) > 0 FROM ug_all JOIN ug_days s TABLESAMPLE BERNOULLI (100) USING (d) GROUP BY s.d'),
    ('WITH RECURSIVE r AS (SELECT 1 AS i, 0::int8 AS c UNION ALL SELECT s.i, s.c FROM (SELECT (z.i + 1)::int AS i, count(*) AS c FROM (SELECT k FROM ug_shop UNION ALL SELECT k FROM ug_mail) uu JOIN (SELECT i FROM r) z ON z.i = uu.k GROUP BY (z.i + 1)::int HAVING (z.i + 1)::int < 8) s) SELECT * FROM r');
-- forced: how many groupings are ours: of those that are made of others, three
SELECT position, c.* FROM ug_queries, compare_aggregate(query) c ORDER BY position;
-- in parallel
SELECT position, c.result, c.same FROM ug_queries, compare_aggregate(query, 2) c WHERE position <= 12 ORDER BY position;
-- left to costs, and switched off
CREATE FUNCTION ug_plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
SET max_parallel_workers_per_gather = 0;
SELECT * FROM ug_plan((SELECT query FROM ug_queries WHERE position = 6)) p WHERE p ~ 'Append|Aggregate|Join\)|Scan on';
SET gpuhash.enable_unnest = off;
SELECT * FROM ug_plan((SELECT query FROM ug_queries WHERE position = 6)) p WHERE p ~ 'Aggregate';
RESET gpuhash.enable_unnest;
-- privileges are those of the tables that are read
CREATE ROLE ug_reader;
GRANT SELECT ON ug_shop, ug_days TO ug_reader;
SET ROLE ug_reader;
SELECT k, count(*) FROM (SELECT k FROM ug_shop UNION ALL SELECT k FROM ug_mail) u GROUP BY k;
SELECT count(*) FROM (SELECT k, d FROM ug_shop UNION ALL SELECT d, k FROM ug_shop) u JOIN ug_days USING (d);
-- and of views, in a plan that is kept, too
RESET ROLE;
GRANT SELECT ON ug_mail TO ug_reader;
SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
PREPARE ug_kept AS SELECT k, count(*) FROM ug_all GROUP BY k ORDER BY k LIMIT 2;
EXECUTE ug_kept;
SET ROLE ug_reader;
EXECUTE ug_kept;
RESET ROLE;
GRANT SELECT ON ug_all TO ug_reader;
SET ROLE ug_reader;
EXECUTE ug_kept;
RESET ROLE;
DROP VIEW ug_all;
DROP TABLE ug_shop, ug_mail, ug_days, ug_none;
DROP ROLE ug_reader;
