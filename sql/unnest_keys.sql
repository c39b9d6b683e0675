-- Keys that a subquery may be asked for, as a condition of the subquery (src/plan/unnest_keys.c).
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE uk_o (id int NOT NULL, k int, t text, day int, a int) WITH (autovacuum_enabled = off);
INSERT INTO uk_o SELECT i, nullif(i % 9000, 17), 't' || i % 9000 % 5000, i % 100, i % 7 FROM generate_series(1, 10000) i;
CREATE TABLE uk_i (k int, t text, a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO uk_i SELECT nullif(i * 7 % 12000, 5), 't' || (i * 7 % 12000 + i / 140000) % 5000, i % 11, i % 4 FROM generate_series(1, 150000) i;
CREATE TABLE uk_small (k int, a int) WITH (autovacuum_enabled = off);
INSERT INTO uk_small SELECT i, i % 3 FROM generate_series(1, 9000) i;
VACUUM ANALYZE uk_o, uk_i, uk_small;
-- how often the plan reads the table that asks: once more where keys are told; and whether the answer is the same
CREATE FUNCTION uk_check(query text, OUT reads int, OUT rows int, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	want text[];
BEGIN
	reads := plan_lines(query, '% on uk\_o%');
	want := answer_of(query);
	rows := cardinality(want);
	PERFORM set_config('gpuhash.enabled', 'off', true);
	same := answer_of(query) IS NOT DISTINCT FROM want;
	PERFORM set_config('gpuhash.enabled', 'on', true);
END $$;
CREATE TABLE uk_queries (number int, query text);
INSERT INTO uk_queries VALUES
	(1, 'SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	(2, 'SELECT id FROM uk_o o WHERE day = 3 AND NOT EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8 AND i.k > 3000)'),
	(3, 'SELECT id FROM uk_o o WHERE day < 2 AND o.k IN (SELECT i.k FROM uk_i i WHERE i.a > 8)'),
	(4, 'SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.t = o.t)'),
	(5, 'SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a <> o.a)'),
	(6, 'SELECT id FROM uk_o o WHERE day = 3 AND NOT EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a < o.a)'),
	(7, 'SELECT day, count(*) FROM uk_o o WHERE t LIKE ''t1%'' AND day IN (3, 5) AND EXISTS (SELECT FROM uk_i i WHERE i.t = o.t) GROUP BY 1'),
	(8, 'SELECT o.id, s.a FROM uk_o o JOIN uk_small s ON s.k = o.k WHERE day = 4 AND EXISTS (SELECT FROM uk_i i JOIN uk_small j ON j.k = i.k WHERE i.k = o.k AND j.a = 1)'),
	(9, 'SELECT s.k FROM uk_small s LEFT JOIN uk_o o ON o.id = s.k WHERE s.a = 1 AND s.k < 40 AND EXISTS (SELECT FROM uk_i i WHERE i.k = s.k)'),
	(10, 'SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8) AND NOT EXISTS (SELECT FROM uk_i i WHERE i.t = o.t AND i.b = 2 AND i.a < 4)'),
	(11, 'SELECT id FROM uk_o o WHERE day = 3 AND o.k IN (SELECT i.k FROM uk_i i WHERE i.t = o.t)'),
	-- no condition of the table's own; two tables that ask; a table beyond an outer join; conditions that may fail
	(12, 'SELECT id FROM uk_o o WHERE EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	(13, 'SELECT o.id FROM uk_o o JOIN uk_small s ON s.k = o.k WHERE day = 4 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a = s.a)'),
	(14, 'SELECT s.k, o.id FROM uk_small s LEFT JOIN uk_o o ON o.k = s.k AND o.day = 3 WHERE (o.day = 3 OR o.day IS NULL) AND s.k < 500 AND EXISTS (SELECT FROM uk_i i WHERE i.k = coalesce(o.k, 9))'),
	(15, 'SELECT id FROM uk_o o WHERE day = 3 AND 10 / (a + 1) > 2 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	(16, 'SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND 10 / (i.a + 1) > 5)'),
	(17, 'SELECT id FROM uk_o o WHERE day = 3 AND (EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8) OR a = 2)'),
	(18, 'SELECT id FROM uk_o o WHERE day = 3 AND o.k NOT IN (SELECT i.k FROM uk_i i WHERE i.k > 3000)'),
	(19, 'SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8 LIMIT 1)'),
	(21, 'SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT i.k FROM uk_i i WHERE i.k = o.k AND i.a > 8 GROUP BY i.k)'),
	(22, 'SELECT id FROM uk_o o TABLESAMPLE system (100) WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	(23, 'SELECT s.k FROM uk_small s WHERE s.k < 300 AND EXISTS (SELECT FROM uk_o o WHERE o.day = s.a AND o.a = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8))'),
	-- with groups in the place of another subquery, these alone
	(24, 'SELECT id FROM uk_o o WHERE day = 3 AND o.a < (SELECT max(s.a) + 3 FROM uk_small s WHERE s.k = o.k) AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	(20, 'SELECT id FROM uk_o o WHERE day = (SELECT min(a) FROM uk_small) AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)');
SELECT number, c.rows, c.same FROM uk_queries, uk_check(query) c ORDER BY number;
-- wherever it can be done, whatever it costs
SET gpuhash.force_offload = on;
SELECT number, c.* FROM uk_queries, uk_check(query) c ORDER BY number;
RESET gpuhash.force_offload;
SET gpuhash.engine = cpu;
SELECT plan_lines('SELECT count(*) FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a <> o.a)', '% on uk\_o%') AS "where it costs less";
-- conditions that may fail tell no keys
SET gpuhash.force_offload = on;
SELECT plan_lines('SELECT id FROM uk_o o WHERE day = 3 AND 10 / (a + 1) > 2 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)', '%10 / %') AS "once";
-- nor are those of a table with policies
CREATE POLICY uk_day ON uk_o USING (day < 50);
ALTER TABLE uk_o ENABLE ROW LEVEL SECURITY;
CREATE ROLE gpuhash_uk;
GRANT SELECT ON uk_o, uk_i TO gpuhash_uk;
SET ROLE gpuhash_uk;
SELECT plan_lines('SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)', '% on uk\_o%') AS "once";
RESET ROLE;
RESET gpuhash.force_offload;
-- of few rows, or tables of one size, the query stays as it is
CREATE TABLE uk_o2 WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 9000 AS k, i % 100 AS day FROM generate_series(1, 100000) i;
VACUUM ANALYZE uk_o2;
SELECT plan_lines('SELECT id FROM uk_o2 o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)', '% on uk\_o2%') AS "of one size",
	plan_lines('SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_small i WHERE i.k = o.k AND i.a > 1)', '% on uk\_o%') AS "of few rows";
DROP FUNCTION uk_check(text);
DROP TABLE uk_o, uk_o2, uk_i, uk_small, uk_queries;
DROP ROLE gpuhash_uk;
