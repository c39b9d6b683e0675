-- Hash joins in place of nested loops that read all of their inner side for each row of a side that is hard to estimate.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
-- x, y and z say the same: a thousandth of a thousandth of a thousandth of the rows is expected, and a thousandth comes
CREATE TABLE nl_f WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 1000 AS x, i % 1000 AS y, i % 1000 AS z, i % 2000 AS k FROM generate_series(1, 60000) i;
CREATE TABLE nl_d WITH (autovacuum_enabled = off) AS SELECT i AS k, i % 7 AS a, repeat('d', i % 3) AS t FROM generate_series(0, 1999) i;
CREATE TABLE nl_e WITH (autovacuum_enabled = off) AS SELECT i AS x, i % 5 AS b FROM generate_series(0, 999) i;
CREATE TABLE nl_small WITH (autovacuum_enabled = off) AS SELECT i AS k FROM generate_series(0, 7) i;
VACUUM ANALYZE nl_f, nl_d, nl_e, nl_small;

-- nested loops with and without gpuhash, and whether the answer is the same
CREATE FUNCTION nl_check(query text, OUT before int, OUT loops int, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	want text[];
BEGIN
	PERFORM set_config('gpuhash.enabled', 'off', true);
	before := plan_lines(query, '%Nested Loop%');
	want := answer_of(query);
	PERFORM set_config('gpuhash.enabled', 'on', true);
	loops := plan_lines(query, '%Nested Loop%');
	same := answer_of(query) IS NOT DISTINCT FROM want;
END $$;
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f, nl_d d WHERE f.x = 3 AND f.y = 3 AND f.z = 3 AND d.k = f.k');
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f LEFT JOIN nl_d d ON d.k = f.k AND d.a > 1 WHERE f.x = 3 AND f.y = 3 AND f.z = 3');
SELECT * FROM nl_check('SELECT f.id FROM nl_f f WHERE f.x = 3 AND f.y = 3 AND f.z = 3 AND EXISTS (SELECT FROM nl_d d WHERE d.k = f.k AND d.a > 1)');
SELECT * FROM nl_check('SELECT f.id FROM nl_f f WHERE f.x = 3 AND f.y = 3 AND f.z = 3 AND NOT EXISTS (SELECT FROM nl_d d WHERE d.k = f.k AND d.a > 1)');
-- a join on one side
SELECT * FROM nl_check('SELECT count(*), sum(d.a + e.b) FROM nl_f f, nl_e e, nl_d d WHERE f.x = e.x AND f.y = e.x AND f.z = e.x AND e.b = 2 AND d.k = f.k');
-- two sides that are hard to estimate, with one row expected of each; and loops that keep an order
SELECT * FROM nl_check('WITH w AS MATERIALIZED (SELECT * FROM nl_f) SELECT p.id, q.id FROM w p, w q WHERE p.x = 3 AND p.y = 3 AND q.x = 3 AND q.y = 3 AND p.k = q.k');
SELECT * FROM nl_check('WITH w AS MATERIALIZED (SELECT * FROM nl_f) SELECT p.k, r.z FROM w p, w q, w r '
					   'WHERE p.x = 3 AND p.y = 3 AND q.x = 3 AND q.y = 3 AND r.x = 3 AND r.z = 3 AND p.k = q.k AND r.k = q.k AND r.id <> p.id ORDER BY p.k LIMIT 100');
-- where very many rows are expected, in the order of a sorted side, the first ones cost little
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SELECT * FROM nl_check('SELECT f.id FROM nl_f f JOIN nl_d d ON d.k % 100 = f.k % 100 WHERE f.y <> 5 AND f.z <> 7 ORDER BY f.id, d.a LIMIT 5');
COMMIT;
-- what goes along an index has its first rows early
CREATE UNIQUE INDEX nl_f_id ON nl_f (id);
SELECT * FROM nl_check('SELECT f.id, d.b FROM nl_f f JOIN nl_e d ON d.x = f.x AND d.b = 2 AND d.x % 2 = 1 WHERE f.y <> 5 AND f.z <> 7 ORDER BY f.id LIMIT 3');
SELECT * FROM nl_check('SELECT f.id, d.c FROM nl_f f JOIN (SELECT x, count(*) AS c FROM nl_e GROUP BY x HAVING count(*) > 0) d ON d.x = f.x ORDER BY f.id LIMIT 3');
DROP INDEX nl_f_id;
-- what a loop begins with is wanted, or little is read, or nothing can be hashed, or the table's own statistics are enough
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f LEFT JOIN nl_d d ON d.k = f.k AND d.a > 1 WHERE f.x = 3 AND f.y = 3 AND f.z = 3 LIMIT 1');
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f LEFT JOIN nl_d d ON d.k = f.k AND d.a > 1 WHERE f.x = 3 AND f.y = 3 AND f.z = 3 ORDER BY f.id LIMIT 1');
SELECT * FROM nl_check('SELECT f.id FROM nl_f f LEFT JOIN nl_small d ON d.k = f.k WHERE f.x = 3 AND f.y = 3 AND f.z = 3');
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f LEFT JOIN nl_d d ON d.k < f.k - 1990 AND d.a > 1 WHERE f.x = 3 AND f.y = 3 AND f.z = 3');
SELECT before = loops AS alike, same FROM nl_check('SELECT f.id FROM nl_f f WHERE f.id = 77 AND EXISTS (SELECT FROM nl_d d WHERE d.k = f.k AND d.a > 1)');
SET enable_hashjoin = off;
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f LEFT JOIN nl_d d ON d.k = f.k AND d.a > 1 WHERE f.x = 3 AND f.y = 3 AND f.z = 3');
RESET enable_hashjoin;
SET gpuhash.enable_join = off;
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f LEFT JOIN nl_d d ON d.k = f.k AND d.a > 1 WHERE f.x = 3 AND f.y = 3 AND f.z = 3');
RESET gpuhash.enable_join;
-- what is chosen above a hash join is chosen as if it was the loop: it says that it costs as much
CREATE FUNCTION nl_cost(query text, enabled text) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuhash.enabled', enabled, true);
	RETURN plan_number(query, 'Total Cost');
END $$;
SELECT nl_cost(query, 'off') = nl_cost(query, 'on') AS same_cost, plan_lines(query, '%Nested Loop%') AS loops FROM (VALUES
	('SELECT f.id, d.t FROM nl_f f, nl_d d WHERE f.x = 3 AND f.y = 3 AND f.z = 3 AND d.k = f.k'),
	('SELECT f.id, d.t, e.b FROM nl_f f, nl_d d, nl_e e WHERE f.x = 3 AND f.y = 3 AND f.z = 3 AND d.k = f.k AND e.x = d.a')) v (query);
-- conditions that cost much may never be asked, where no row comes on the other side; nor is that side read by a hash join
CREATE FUNCTION nl_dear(i int) RETURNS boolean LANGUAGE plpgsql STABLE COST 1000 AS $$ BEGIN RAISE 'asked'; END $$;
SELECT * FROM nl_check('SELECT f.id FROM nl_f f, nl_d d WHERE f.x = 3 AND f.y = 4 AND f.z = 3 AND d.k = f.k AND nl_dear(d.a)');
SELECT * FROM nl_check('SELECT f.id FROM nl_f f, nl_d d WHERE f.x = 3 AND f.y = 4 AND f.z = 3 AND d.k = f.k AND d.a >= (SELECT count(*) FROM nl_small s WHERE s.k / (d.k - 5) < 9)');
SELECT * FROM nl_check('SELECT f.id FROM nl_f f, (SELECT k, sum(a) AS a FROM nl_d WHERE nl_dear(a) GROUP BY k) d WHERE f.x = 3 AND f.y = 4 AND f.z = 3 AND d.k = f.k');
SELECT * FROM nl_check('SELECT f.id FROM nl_f f, nl_d d WHERE f.x = 3 AND f.y = 4 AND f.z = 3 AND d.k = f.k AND 1 / (d.k - 5) < 9');
DROP FUNCTION nl_dear, nl_cost;
-- an index answers for each row
CREATE INDEX ON nl_d (k);
SELECT * FROM nl_check('SELECT f.id, d.t FROM nl_f f LEFT JOIN nl_d d ON d.k = f.k AND d.a > 1 WHERE f.x = 3 AND f.y = 3 AND f.z = 3');
DROP TABLE nl_f, nl_d, nl_e, nl_small;
DROP FUNCTION nl_check;
