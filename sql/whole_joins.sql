-- Groupings that do all of PostgreSQL's joins as one chain, where those are nested loops, or joins of few rows.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE TABLE who_fact WITH (autovacuum_enabled = off) AS
	SELECT i AS id, i / 4 AS part, i * 7919 % 3000 AS d1, (i * 104729::bigint % 500)::int AS d2, i % 40 AS d3, i % 100 AS v FROM generate_series(1, 120000) i;
CREATE TABLE who_d1 WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 300 AS a, i % 7 AS b FROM generate_series(0, 2999) i;
CREATE TABLE who_d2 WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 20 AS a FROM generate_series(0, 499) i;
-- keys that come again, and some that are NULL or of no row
CREATE TABLE who_d3 WITH (autovacuum_enabled = off) AS SELECT CASE WHEN i % 11 <> 0 THEN i % 60 END AS id, i AS a FROM generate_series(0, 119) i;
CREATE TABLE who_part WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 40 AS a, i % 2000 AS whole FROM generate_series(0, 29999) i;
ALTER TABLE who_fact ADD PRIMARY KEY (id);
CREATE INDEX ON who_fact (part);
CREATE INDEX ON who_fact (d2);
ALTER TABLE who_d1 ADD PRIMARY KEY (id);
ALTER TABLE who_d2 ADD PRIMARY KEY (id);
CREATE INDEX ON who_d3 (id);
ALTER TABLE who_part ADD PRIMARY KEY (id);
VACUUM ANALYZE who_fact, who_d1, who_d2, who_d3, who_part;

-- Of each query, whether a GpuHashAggregate does all joins; and whether the answer is PostgreSQL's.
CREATE FUNCTION who_check(queries text[]) RETURNS TABLE (query int, is_whole boolean, is_right boolean) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	others int;				-- joins that are PostgreSQL's
	mine text;
	theirs text;
BEGIN
	FOR i IN 1 .. cardinality(queries) LOOP
		query := i;
		SET LOCAL gpuhash.enabled = on;
		is_whole := false;
		others := 0;
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || queries[i] LOOP
			is_whole := is_whole OR line ~ 'GpuHashAggregate';
			others := others + (line ~ '(Nested Loop|Hash|Merge) .*Join|Nested Loop')::int;
		END LOOP;
		is_whole := is_whole AND others = 0;
		EXECUTE 'SELECT string_agg(x::text, chr(10) ORDER BY x::text) FROM (' || queries[i] || ') x' INTO mine;
		SET LOCAL gpuhash.enabled = off;
		EXECUTE 'SELECT string_agg(x::text, chr(10) ORDER BY x::text) FROM (' || queries[i] || ') x' INTO theirs;
		is_right := mine IS NOT DISTINCT FROM theirs;
		RETURN NEXT;
	END LOOP;
END
$$;

-- few rows after the first join: 1 to 4 over dimensions, 5 over one with keys that come again, 6 an outer join with it, 7 a semijoin, 8 an antijoin
SELECT * FROM who_check(ARRAY[
	'SELECT d1.b, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 JOIN who_d2 d2 ON d2.id = f.d2 WHERE d1.a = 7 AND d2.a < 5 GROUP BY d1.b',
	'SELECT d2.a, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 JOIN who_d2 d2 ON d2.id = f.d2 WHERE d1.a = 7 GROUP BY d2.a',
	'SELECT count(*), sum(f.v + d2.a) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 JOIN who_d2 d2 ON d2.id = f.d2 WHERE d1.a < 30 AND d1.b = d2.a',
	'SELECT d1.a, max(f.v) FROM who_fact f, who_d1 d1, who_d2 d2 WHERE d1.id = f.d1 AND d2.id = f.d2 AND f.v > 90 AND d1.a < 3 AND d2.a = 4 GROUP BY d1.a',
	'SELECT d3.a, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 JOIN who_d3 d3 ON d3.id = f.d3 WHERE d1.a = 7 GROUP BY d3.a',
	'SELECT d3.a, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 LEFT JOIN who_d3 d3 ON d3.id = f.d3 WHERE d1.a = 7 GROUP BY d3.a',
	'SELECT d1.b, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 WHERE d1.a = 7 AND EXISTS (SELECT FROM who_d3 d3 WHERE d3.id = f.d3 AND d3.a > f.v) GROUP BY d1.b',
	'SELECT d1.b, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 WHERE d1.a = 7 AND NOT EXISTS (SELECT FROM who_d3 d3 WHERE d3.id = f.d3 AND d3.a > f.v) GROUP BY d1.b']);

-- nested loops over indexes, turned around: 1 one, 2 above other joins, 3 with a further condition, 4 with three equal columns, 5 for
-- several columns, 6 over rows that are made distinct, whose keys come again, 7 an outer join, 8 over few rows of the table
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT * FROM who_check(ARRAY[
	'SELECT p.a, count(*), sum(f.v) FROM who_part p JOIN who_fact f ON f.part = p.id WHERE p.whole < 700 GROUP BY p.a',
	'SELECT d1.b, count(*), sum(f.v) FROM who_part p JOIN who_fact f ON f.part = p.id JOIN who_d1 d1 ON d1.id = f.d1 WHERE p.whole < 700 GROUP BY d1.b',
	'SELECT p.a, count(*), sum(f.v) FROM who_part p JOIN who_fact f ON f.part = p.id AND f.v > p.a WHERE p.whole < 700 GROUP BY p.a',
	'SELECT p.a, count(*), sum(f.v) FROM who_part p JOIN who_fact f ON f.part = p.id JOIN who_d1 d1 ON d1.id = p.id AND d1.id = f.part GROUP BY p.a',
	'SELECT p.a, count(*), sum(f.v) FROM who_part p JOIN who_fact f ON f.part = p.id AND f.d3 = p.a WHERE p.whole < 700 GROUP BY p.a',
	'SELECT f.d3, count(*), sum(f.v) FROM who_fact f WHERE f.part IN (SELECT p.id / 2 FROM who_part p WHERE p.whole < 300) GROUP BY f.d3',
	'SELECT p.a, count(*), sum(f.v) FROM who_part p LEFT JOIN who_fact f ON f.part = p.id WHERE p.whole < 300 GROUP BY p.a',
	'SELECT f.d2, count(*) FROM who_d2 d2 JOIN who_fact f ON f.d2 = d2.id WHERE d2.a = 3 GROUP BY f.d2']);

RESET enable_hashjoin;
RESET enable_mergejoin;

-- the same by several processes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM who_check(ARRAY[
	'SELECT d1.b, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 JOIN who_d2 d2 ON d2.id = f.d2 WHERE d1.a = 7 AND d2.a < 5 GROUP BY d1.b',
	'SELECT d3.a, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 JOIN who_d3 d3 ON d3.id = f.d3 WHERE d1.a = 7 GROUP BY d3.a',
	'SELECT d1.b, count(*), sum(f.v) FROM who_part p JOIN who_fact f ON f.part = p.id JOIN who_d1 d1 ON d1.id = f.d1 WHERE p.whole < 700 GROUP BY d1.b',
	'SELECT d1.b, count(*), sum(f.v) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 WHERE d1.a = 7 AND NOT EXISTS (SELECT FROM who_d3 d3 WHERE d3.id = f.d3 AND d3.a > f.v) GROUP BY d1.b']);
SET max_parallel_workers_per_gather = 0;

-- few rows of an index stay PostgreSQL's
SELECT * FROM who_check(ARRAY[
	'SELECT p.a, count(*), sum(f.v) FROM who_part p JOIN who_fact f ON f.part = p.id WHERE p.id < 20 GROUP BY p.a',
	'SELECT count(*), sum(f.v) FROM who_d1 d1 JOIN who_part p ON p.id = d1.id JOIN who_fact f ON f.part = p.id WHERE d1.a = 7']);

-- two columns that are a key together: of the rows that refer to it more come than the product of both tells, 1 of few, 2 of very few
-- (a plan of PostgreSQL's), 3 with an outer join above; not where they are no key
CREATE TABLE who_key WITH (autovacuum_enabled = off) AS SELECT i / 4 AS x, i * 37 % 800 AS y, i % 500 AS w FROM generate_series(0, 23999) i;
CREATE TABLE who_line WITH (autovacuum_enabled = off) AS
	SELECT i % 24000 / 4 AS x, i % 24000 * 37 % 800 AS y, i % 3000 AS d1, i % 10 AS v FROM generate_series(0, 239999) i;
ALTER TABLE who_key ADD PRIMARY KEY (x, y);
CREATE INDEX ON who_line (x, y);
VACUUM ANALYZE who_key, who_line;
CREATE TABLE who_asked (id int, query text);
INSERT INTO who_asked VALUES
	(1, 'SELECT d1.b, count(*), sum(l.v) FROM who_key k JOIN who_line l ON l.x = k.x AND l.y = k.y JOIN who_d1 d1 ON d1.id = l.d1 WHERE k.w < 38 GROUP BY d1.b'),
	(2, 'SELECT d1.b, count(*), sum(l.v) FROM who_key k JOIN who_line l ON l.x = k.x AND l.y = k.y JOIN who_d1 d1 ON d1.id = l.d1 WHERE k.w < 1 GROUP BY d1.b'),
	(3, 'SELECT d1.b, count(*), sum(l.v) FROM who_key k JOIN who_line l ON l.x = k.x AND l.y = k.y LEFT JOIN who_d1 d1 ON d1.id = l.d1 WHERE k.w < 38 GROUP BY d1.b');
SELECT c.* FROM who_check((SELECT array_agg(query ORDER BY id) FROM who_asked)) c;
-- nor where most rows refer to nothing: 4, whose values are NULL, nor, as a chain would cost much more, 5, whose pairs are others
CREATE TABLE who_null WITH (autovacuum_enabled = off) AS
	SELECT CASE WHEN i % 60 = 0 THEN i % 24000 / 4 END AS x, CASE WHEN i % 60 = 0 THEN i % 24000 * 37 % 800 END AS y, i % 3000 AS d1, i % 10 AS v FROM generate_series(0, 239999) i;
CREATE TABLE who_other WITH (autovacuum_enabled = off) AS
	SELECT i % 6000 AS x, (i * 7919::bigint % 800)::int AS y, i % 3000 AS d1, i % 10 AS v FROM generate_series(0, 999999) i;
CREATE INDEX ON who_null (x, y);
CREATE INDEX ON who_other (x, y);
VACUUM ANALYZE who_null, who_other;
SELECT c.* FROM who_check(ARRAY[
	'SELECT d1.b, count(*), sum(l.v) FROM who_key k JOIN who_null l ON l.x = k.x AND l.y = k.y JOIN who_d1 d1 ON d1.id = l.d1 WHERE k.w < 38 GROUP BY d1.b',
	'SELECT d1.b, count(*), sum(l.v) FROM who_key k JOIN who_other l ON l.x = k.x AND l.y = k.y JOIN who_d1 d1 ON d1.id = l.d1 WHERE k.w < 38 GROUP BY d1.b']) c;
ALTER TABLE who_key DROP CONSTRAINT who_key_pkey;
CREATE INDEX ON who_key (x, y);
SELECT c.* FROM who_check((SELECT array_agg(query ORDER BY id) FROM who_asked)) c;

-- a full join on the inner side: its rows without a match come once, not once of each process
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = '1MB';
CREATE TABLE who_few WITH (autovacuum_enabled = off) AS SELECT i AS id, 1 AS w FROM generate_series(-900, 900) i;
CREATE TABLE who_many WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 5 AS w FROM generate_series(1, 60000) i;
VACUUM ANALYZE who_few, who_many;
SELECT is_right FROM who_check(ARRAY['SELECT d3, count(*) FROM who_fact f JOIN (who_many a FULL JOIN who_few c USING (id)) j ON j.id = f.d1 GROUP BY d3']);
-- conditions of an index scan over several tables
SET max_parallel_workers_per_gather = 0;
CREATE TABLE who_u1 WITH (autovacuum_enabled = off) AS SELECT i % 9000 AS k, i % 40 AS y FROM generate_series(1, 60000) i;
CREATE TABLE who_u2 WITH (autovacuum_enabled = off) AS SELECT i % 8000 AS k, i % 40 AS y FROM generate_series(1, 60000) i;
CREATE INDEX ON who_u1 (k);
CREATE INDEX ON who_u2 (k);
VACUUM ANALYZE who_u1, who_u2;
SELECT is_right FROM who_check(ARRAY['SELECT f.d3, count(*) FROM who_fact f JOIN who_part p ON p.id = f.part
	JOIN (SELECT k, y FROM who_u1 UNION ALL SELECT k, y FROM who_u2) u ON u.k = f.id AND u.y = p.a WHERE f.v < 3 GROUP BY f.d3']);
-- what may fail for other rows than those that the index finds
UPDATE who_d1 SET b = 0 WHERE id = 2999;
DELETE FROM who_fact WHERE d1 = 2999;
SELECT is_right FROM who_check(ARRAY['SELECT f.d3, count(*) FROM who_fact f JOIN who_d1 d1 ON d1.id = f.d1 WHERE f.part < 400 AND 10 / d1.b > 1 AND d1.b > 1 GROUP BY f.d3']);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- rows of the larger side are made distinct: no scan of its table may stand there
SET max_parallel_workers_per_gather = 0;
CREATE TABLE who_short WITH (autovacuum_enabled = off) AS SELECT i % 40 AS g, i AS k, i % 100 AS v FROM generate_series(1, 20000) i;
CREATE TABLE who_wide WITH (autovacuum_enabled = off) AS SELECT i % 100 AS k, repeat('x', 400) AS fill FROM generate_series(1, 30000) i;
CREATE INDEX ON who_short (k);
VACUUM ANALYZE who_short, who_wide;
SELECT is_right FROM who_check(ARRAY['SELECT g, count(*), sum(v) FROM who_short WHERE k IN (SELECT k FROM who_wide) GROUP BY g']);

-- nor one of which each of several processes reads a part, where one of them makes the distinct rows for all
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET work_mem = '320kB';
SET enable_mergejoin = off;
SET enable_nestloop = off;
CREATE TABLE who_ids WITH (autovacuum_enabled = off) AS SELECT i AS id, CASE WHEN i % 13 <> 0 THEN i * 104729::bigint % 13334 END::int AS n,
	i % 10 AS v, 'text ' || i % 30 AS t FROM generate_series(0, 39999) i;
CREATE TABLE who_twice WITH (autovacuum_enabled = off) AS SELECT (i * 7919::bigint % 3000)::int AS k,
	CASE WHEN i % 13 <> 0 THEN i * 104729::bigint % 1001 END::int AS n FROM generate_series(0, 2999) i;
VACUUM ANALYZE who_ids, who_twice;
SELECT is_right FROM who_check(ARRAY['SELECT v, t, count(*) FROM who_ids WHERE n IS NOT NULL AND id IN (SELECT k / 2 FROM who_twice WHERE n IS NOT NULL) GROUP BY v, t']);
RESET parallel_setup_cost;
RESET min_parallel_table_scan_size;
RESET work_mem;
RESET enable_mergejoin;
RESET enable_nestloop;

DROP FUNCTION who_check(text[]);
DROP TABLE who_ids, who_twice, who_short, who_wide, who_fact, who_d1, who_d2, who_d3, who_part, who_few, who_many, who_u1, who_u2, who_key, who_line, who_asked, who_null, who_other;
