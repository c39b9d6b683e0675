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
CREATE FUNCTION uk_answer(query text, OUT rows int, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	want text[];
BEGIN
	want := answer_of(query);
	rows := cardinality(want);
	PERFORM set_config('gpuhash.enabled', 'off', true);
	same := answer_of(query) IS NOT DISTINCT FROM want;
	PERFORM set_config('gpuhash.enabled', 'on', true);
END $$;
-- how often the plan reads the table that asks: once more where keys are told; and whether the answer is the same
CREATE FUNCTION uk_check(query text, OUT reads int, OUT rows int, OUT same boolean) LANGUAGE plpgsql AS $$
BEGIN
	reads := plan_lines(query, '% on uk\_o%');
	SELECT * INTO rows, same FROM uk_answer(query);
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
-- conditions that are about keys alone are asked of the subquery's own keys: how many lines of the plan match a pattern, and
-- whether there is a join of the subquery with uk_small
CREATE FUNCTION uk_lines(query text, pattern text, OUT lines int, OUT joined int, OUT rows int, OUT same boolean) LANGUAGE plpgsql AS $$
BEGIN
	lines := plan_lines(query, pattern);
	joined := plan_lines(query, '%(i.k = s.k)%') + plan_lines(query, '%(s.k = i.k)%');
	SELECT * INTO rows, same FROM uk_answer(query);
END $$;
CREATE TABLE uk_few WITH (autovacuum_enabled = off) AS SELECT i AS id, i * 30 AS k, i % 7 AS a FROM generate_series(1, 300) i;
CREATE TABLE uk_types (id int, v varchar(6), w text, c char(6), n numeric(8, 2), n3 numeric(8, 3), any_n numeric, f float8, k8 bigint, e date)
	WITH (autovacuum_enabled = off);
INSERT INTO uk_types SELECT i, 'v' || i % 30 || CASE i % 4 WHEN 0 THEN ' ' ELSE '' END, 'v' || i % 40, 'v' || i % 50, (i % 60) / 4.0, (i % 60) / 4.0,
	CASE i % 3 WHEN 0 THEN (i % 60) / 4.0 ELSE ((i % 60) / 4.0)::numeric(8, 4) END,
	CASE i % 9 WHEN 3 THEN '-0'::float8 WHEN 4 THEN 0 ELSE i % 11 END, i % 70, date '2020-01-01' + i % 80 FROM generate_series(1, 400) i;
CREATE TABLE uk_g WITH (autovacuum_enabled = off) AS SELECT k, t, a, b FROM uk_i LIMIT 20000;
CREATE INDEX ON uk_g (k);
VACUUM ANALYZE uk_few, uk_types, uk_g;
CREATE TABLE uk_conditions (number int, pattern text, query text);
INSERT INTO uk_conditions VALUES
	-- EXISTS and IN
	(1, '%(k < 500)%', 'SELECT id FROM uk_o o WHERE k < 500 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	(2, '%(k < 500)%', 'SELECT id FROM uk_o o WHERE k < 500 AND NOT EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	(3, '%~~ ''t1%', 'SELECT id FROM uk_o o WHERE t LIKE ''t1%'' AND day = 5 AND o.t IN (SELECT i.t FROM uk_i i WHERE i.a > 8)'),
	(4, '%~~ ''t1%', 'SELECT id FROM uk_o o WHERE t LIKE ''t1%'' AND k > 5500 AND o.t IN (SELECT i.t FROM uk_i i WHERE i.a > 2 AND i.k = o.k)'),
	(5, '%k IS NULL%', 'SELECT id FROM uk_o o WHERE (k IS NULL OR k < 30) AND NOT EXISTS (SELECT FROM uk_i i WHERE i.k = o.k)'),
	-- groups; of none the count is 0
	(11, '%(k < 500)%', 'SELECT id FROM uk_o o WHERE k < 500 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(12, '%(k < 500)%', 'SELECT id FROM uk_o o WHERE k < 500 AND 0 = (SELECT count(*) FROM uk_g i WHERE i.k = o.k AND i.b = 2 AND i.a < 9)'),
	(13, '%k IS NULL%', 'SELECT id FROM uk_o o WHERE (k IS NULL OR k < 30) AND 0 = (SELECT count(*) FROM uk_g i WHERE i.k = o.k)'),
	(14, '%(k < 500)%', 'SELECT id, (SELECT sum(i.a) FROM uk_g i WHERE i.k = o.k) FROM uk_o o WHERE k < 500'),
	-- of two columns; of one and of what is no key; of an expression
	(15, '%k > 8000%', 'SELECT id FROM uk_o o WHERE k > 8000 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k AND i.t = o.t)'),
	(16, '% on uk\_o%', 'SELECT id FROM uk_o o WHERE (k < 500 OR day = 3) AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(17, '% on uk\_o%', 'SELECT id FROM uk_o o WHERE k < 500 AND day = 3 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(18, '% on uk\_o%', 'SELECT id FROM uk_o o WHERE k < 500 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = coalesce(o.k, 3))'),
	(19, '%(COALESCE(k, 3) < 90)%', 'SELECT id FROM uk_o o WHERE k < 90 AND a < (SELECT max(i.a) FROM uk_g i WHERE coalesce(i.k, 3) = o.k)'),
	-- a subquery about keys is asked by the groups alone, where nothing comes out without a group
	(21, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1) AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(22, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE EXISTS (SELECT FROM uk_small s WHERE s.a < 1 AND s.k = o.k) AND a < (SELECT max(i.b) FROM uk_g i WHERE i.k = o.k)'),
	(23, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE NOT EXISTS (SELECT FROM uk_small s WHERE s.a < 2 AND s.k = o.k) AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k) AND day > (SELECT min(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(24, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 0 AND EXISTS (SELECT FROM uk_few f WHERE f.k = o.k AND f.a < 5)) AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	-- with one it is read twice
	(26, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1) AND coalesce(a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k), true)'),
	(27, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1) AND 14 > (SELECT count(*) FROM uk_g i WHERE i.k = o.k)'),
	(28, '% on uk\_small%', 'SELECT id, (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k) FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1)'),
	(29, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1) AND (a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k) OR day = 3)'),
	(30, '% on uk\_small%', 'SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1) AND (a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k) OR day < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k AND i.b = 1))'),
	-- the table has few of the keys
	(31, '% on uk\_few%', 'SELECT id FROM uk_few o WHERE k < 6000 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(32, '% on uk\_few%', 'SELECT id FROM uk_few o WHERE k < 6000 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)'),
	-- beyond an outer join; what WITH has; another table's column
	(33, '%(k < 500)%', 'SELECT s.k, o.id FROM uk_small s LEFT JOIN uk_o o ON o.k = s.k WHERE (o.k < 500 OR o.k IS NULL) AND s.k < 600 AND 3 > (SELECT count(*) FROM uk_g i WHERE i.k = o.k AND i.a = 3)'),
	(34, '%CTE Scan%', 'WITH w AS MATERIALIZED (SELECT k FROM uk_small WHERE a = 1) SELECT id FROM uk_o o WHERE k IN (SELECT k FROM w) AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(35, '% on uk\_small%', 'SELECT id FROM uk_o o JOIN uk_few f USING (id) WHERE o.k IN (SELECT s.k FROM uk_small s WHERE s.a = f.a) AND o.a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	-- conditions that may fail, or are never the same
	(36, '%10 / %', 'SELECT id FROM uk_o o WHERE 10 / (k + 1) > 2 AND day = 2 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(37, '%random()%', 'SELECT id FROM uk_o o WHERE k < 40 + random() / 2 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(38, '%no.such%', 'SELECT id FROM uk_few o WHERE coalesce(k, length(current_setting(''no.such''))) < 500 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)'),
	(39, '%no.such%', 'SELECT id, (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k AND CASE WHEN i.k < 9000 THEN true ELSE current_setting(''no.such'') = ''on'' END) FROM uk_few o WHERE k < 9000'),
	-- values that are equal, but not the same, and other types
	(41, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE w LIKE ''%2%'' AND id < (SELECT max(id) FROM uk_types i WHERE i.w = o.w)'),
	(42, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE v LIKE ''%2 '' AND id < (SELECT max(id) FROM uk_types i WHERE i.v = o.v)'),
	(43, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE v LIKE ''%2 '' AND id < (SELECT max(id) FROM uk_types i WHERE i.v::bpchar = o.v::bpchar)'),
	(44, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE v LIKE ''%2'' AND id < (SELECT max(id) FROM uk_types i WHERE i.w = o.v)'),
	(45, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE c LIKE ''%2 %'' AND id < (SELECT max(id) FROM uk_types i WHERE i.c = o.c)'),
	(46, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE n < 7 AND id < (SELECT max(id) FROM uk_types i WHERE i.n = o.n)'),
	(47, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE n3 < 7 AND id < (SELECT max(id) FROM uk_types i WHERE i.n = o.n3)'),
	(48, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE any_n < 7 AND id < (SELECT max(id) FROM uk_types i WHERE i.any_n = o.any_n)'),
	(49, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE f < 7 AND id < (SELECT max(id) FROM uk_types i WHERE i.f = o.f)'),
	(50, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE k8 < 50 AND id > (SELECT max(i.k) FROM uk_small i WHERE i.k = o.k8)'),
	(51, '% on uk\_types%', 'SELECT id FROM uk_types o WHERE e IN (SELECT e FROM uk_types WHERE n < 5) AND id < (SELECT max(id) FROM uk_types i WHERE i.e = o.e)');
SET gpuhash.force_offload = on;
-- before 17, IN of a subquery that knows the row is no join
SELECT number, c.lines, CASE WHEN number <> 24 THEN c.joined END AS joined, c.rows, c.same FROM uk_conditions, uk_lines(query, pattern) c ORDER BY number;
RESET gpuhash.force_offload;
SELECT number, c.rows, c.same FROM uk_conditions, uk_lines(query, pattern) c ORDER BY number;
-- nor is anything asked of rows that policies hide, nor of tables that the user may not read
CREATE ROLE gpuhash_uk;
GRANT SELECT ON uk_o, uk_i, uk_g TO gpuhash_uk;
ALTER TABLE uk_g ENABLE ROW LEVEL SECURITY;
CREATE POLICY uk_b ON uk_g USING (b = 1);
SET gpuhash.force_offload = on;
SET ROLE gpuhash_uk;
SELECT c.* FROM uk_lines('SELECT id FROM uk_o o WHERE k < 500 AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)', '%(k < 500)%') c;
SELECT answer_of('SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1) AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)');
RESET ROLE;
GRANT SELECT (k, a) ON uk_small TO gpuhash_uk;
SET ROLE gpuhash_uk;
SELECT c.* FROM uk_lines('SELECT id FROM uk_o o WHERE k IN (SELECT s.k FROM uk_small s WHERE s.a = 1) AND a < (SELECT max(i.a) FROM uk_g i WHERE i.k = o.k)', '% on uk\_small%') c;
RESET ROLE;
ALTER TABLE uk_g DISABLE ROW LEVEL SECURITY;
DROP POLICY uk_b ON uk_g;
RESET gpuhash.force_offload;
SET gpuhash.engine = cpu;
SELECT plan_lines('SELECT count(*) FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a <> o.a)', '% on uk\_o%') AS "where it costs less";
-- conditions that may fail tell no keys
SET gpuhash.force_offload = on;
SELECT plan_lines('SELECT id FROM uk_o o WHERE day = 3 AND 10 / (a + 1) > 2 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)', '%10 / %') AS "once";
-- nor are those of a table with policies
CREATE POLICY uk_day ON uk_o USING (day < 50);
ALTER TABLE uk_o ENABLE ROW LEVEL SECURITY;
SET ROLE gpuhash_uk;
SELECT plan_lines('SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)', '% on uk\_o%') AS "once";
RESET ROLE;
RESET gpuhash.force_offload;
-- of few rows, or tables of one size, the query stays as it is
CREATE TABLE uk_o2 WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 9000 AS k, i % 100 AS day FROM generate_series(1, 100000) i;
VACUUM ANALYZE uk_o2;
SELECT plan_lines('SELECT id FROM uk_o2 o WHERE day = 3 AND EXISTS (SELECT FROM uk_i i WHERE i.k = o.k AND i.a > 8)', '% on uk\_o2%') AS "of one size",
	plan_lines('SELECT id FROM uk_o o WHERE day = 3 AND EXISTS (SELECT FROM uk_small i WHERE i.k = o.k AND i.a > 1)', '% on uk\_o%') AS "of few rows";
DROP FUNCTION uk_check(text), uk_lines(text, text), uk_answer(text);
DROP TABLE uk_o, uk_o2, uk_i, uk_small, uk_queries, uk_few, uk_types, uk_g, uk_conditions;
DROP ROLE gpuhash_uk;
