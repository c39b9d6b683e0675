-- What a LIMIT, an EXISTS, a cursor or a node above leaves unread is not evaluated: no
-- error for a row that PostgreSQL does not reach (src/join/ahead.c).
LOAD 'gpuhash';
SET gpuhash.enable_aggregate = off;
SET max_parallel_workers_per_gather = 0;
-- these read the whole of what they keep
SET enable_material = off;
SET enable_mergejoin = off;
SET gpuhash.setup_cost = 0;
SET gpuhash.build_tuple_cost = 0;
SET gpuhash.probe_tuple_cost = 0;

-- The first batch, of 256 rows, has the row by whose x nothing can be divided.  Every row
-- matches.  The view's condition hides nothing, but is one that could fail: its rows are
-- not the outer side either, so that forced plans have no way round.
CREATE TABLE na AS SELECT i AS id, i % 7 AS g, CASE WHEN i = 150 THEN 0 ELSE i END AS x FROM generate_series(1, 20000) i;
CREATE TABLE keys AS SELECT k FROM generate_series(0, 100) k;
CREATE VIEW ng AS SELECT k FROM keys WHERE k + 0 > -100;
CREATE TABLE kx AS SELECT k::text::xid AS k FROM keys;
CREATE VIEW nx AS SELECT k FROM kx WHERE length(k::text) > 0;
CREATE TABLE n3 AS SELECT i AS id, i % 7 AS g FROM generate_series(1, 1000) i;
CREATE INDEX ON n3 (id);
ANALYZE na, keys, kx, n3;

-- The answer of PostgreSQL alone, with every join offloaded that can be, and with such
-- joins for nothing; and how many are offloaded when forced.  A cursor's first row.
CREATE FUNCTION ahead_answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    IF query LIKE 'DECLARE%' THEN
        EXECUTE query;
        EXECUTE 'FETCH 1 FROM c' INTO answer;
        EXECUTE 'CLOSE c';
    ELSE
        EXECUTE query INTO answer;
    END IF;
    RETURN answer;
EXCEPTION WHEN division_by_zero THEN
    RETURN 'division by zero';
END $$;
CREATE FUNCTION ahead(query text, OUT offloaded int, OUT plain text, OUT forced text, OUT cheap text)
LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL gpuhash.enabled = off;
    plain := ahead_answer(query);
    SET LOCAL gpuhash.enabled = on;
    cheap := ahead_answer(query);
    SET LOCAL gpuhash.force_offload = on;
    forced := ahead_answer(query);
    offloaded := plan_lines(query, '%Custom Scan (GpuHashJoin)%');
END $$;

-- all rows are read: offloaded, errors included
SELECT * FROM ahead('SELECT count(*) FROM na JOIN ng ON 100 / (na.id + 1) = ng.k');
SELECT * FROM ahead('SELECT count(*) FROM na JOIN ng ON 100 / na.x = ng.k');
SELECT * FROM ahead('SELECT na.id FROM na JOIN ng ON 100 / (na.id + 1) = ng.k ORDER BY na.id LIMIT 1');
SELECT * FROM ahead('SELECT na.g FROM na JOIN ng ON 100 / (na.id + 1) = ng.k GROUP BY na.g ORDER BY na.g LIMIT 1');
SELECT * FROM ahead('WITH i AS (INSERT INTO n3 SELECT na.id, 1 FROM na JOIN ng ON 100 / (na.id + 1) = ng.k WHERE na.id > 20000 - 3 RETURNING id) SELECT count(*) FROM i');
-- nothing can fail: offloaded, and what comes out is evaluated row by row
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 100 / na.x FROM na JOIN keys ON na.g = keys.k LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM na JOIN keys ON na.g = keys.k AND 100 / na.x >= keys.k LIMIT 1) s');
-- what the result is sorted by is computed above the joins
SELECT * FROM ahead('SELECT n3.id FROM na JOIN ng ON na.g = ng.k JOIN n3 ON n3.id = na.id GROUP BY n3.id ORDER BY sum(100 / (na.id + 1)), n3.id LIMIT 1');

-- LIKE with a pattern cannot fail, unless that ends within an escape
CREATE TABLE names AS SELECT id, g, 'n' || id AS name, ('n' || id)::char(8) AS fixed FROM na;
ANALYZE names;
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM names JOIN ng ON names.g = ng.k WHERE name LIKE ''n1%'' AND fixed NOT LIKE ''%x'' LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM keys WHERE EXISTS (SELECT FROM names JOIN n3 ON n3.id = names.id WHERE name LIKE ''n1%'' AND names.g = keys.k)');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM names JOIN ng ON names.g = ng.k WHERE name LIKE ''n1\'' OR names.id > 0 LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM names JOIN ng ON names.g = ng.k WHERE (100 / (names.id - 150))::text LIKE ''%'' LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM names JOIN ng ON names.g = ng.k WHERE ''n1'' LIKE name LIMIT 1) s');
DROP TABLE names;
-- nor can comparisons of built-in types, which PostgreSQL does not all call leakproof; their arguments, arrays and rows can
CREATE TABLE days AS SELECT id, g, x, date '2024-01-01' + id AS day, id::numeric / 4 AS amount, ARRAY[id] AS ids FROM na;
ANALYZE days;
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM days JOIN ng ON days.g = ng.k WHERE day < timestamp ''2024-12-01'' AND amount >= 2.5 LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM days JOIN ng ON days.g = ng.k WHERE amount = ANY (ARRAY[2.5, 3.5]) OR day > timestamptz ''2024-12-01'' LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM days JOIN ng ON days.g = ng.k WHERE amount > 100.0 / x LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM days JOIN ng ON days.g = ng.k WHERE amount = ANY (ARRAY[2.5, 100.0 / x]) LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM days JOIN ng ON days.g = ng.k WHERE ids > ARRAY[10] LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT 1 FROM days JOIN ng ON days.g = ng.k WHERE (days.id, amount) IS DISTINCT FROM ROW(3, 0.75) LIMIT 1) s');
DROP TABLE days;

-- LIMIT: the key; a qual of the scan; a join below; equalities that the planner keeps in classes
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na JOIN ng ON 100 / na.x = ng.k LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na LEFT JOIN nx ON (100 / na.x)::text::xid = nx.k LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na JOIN ng ON na.g = ng.k WHERE 100 / na.x >= 0 LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na LEFT JOIN ng ON na.g = ng.k WHERE 100 / na.x >= 0 LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na JOIN keys ON 100 / na.x >= keys.k JOIN ng ON ng.k = CASE WHEN na.g > keys.k THEN na.g ELSE keys.k END LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na LEFT JOIN ng ON ng.k = 100 / na.x LEFT JOIN ng n2 ON n2.k = ng.k LIMIT 1) s');
SET enable_nestloop = off;
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na JOIN ng ON ng.k = 100 / na.x JOIN ng n2 ON n2.k = ng.k LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT na.id FROM na JOIN ng ON ng.k = na.g JOIN ng n2 ON n2.k = 100 / na.x AND n2.k = 100 / (na.x + 0 * ng.k) LIMIT 1) s');
RESET enable_nestloop;
SELECT * FROM ahead('SELECT count(*) FROM (SELECT s.id FROM (SELECT id, g, 100 / x AS q FROM na OFFSET 0) s LEFT JOIN ng ON s.g = ng.k LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT s.id FROM ng RIGHT JOIN (SELECT id, g, 100 / x AS q FROM na) s ON s.q = ng.k LIMIT 1) s');
-- set operations pass it on
SELECT * FROM ahead('SELECT count(*) FROM ((SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k) UNION ALL SELECT id FROM n3 LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT FROM (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k UNION ALL SELECT id FROM n3) u JOIN n3 ON u.id < n3.id + 10 LIMIT 1) s');
-- a query that is read by one with a LIMIT
SELECT * FROM ahead('SELECT count(*) FROM (SELECT FROM (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k OFFSET 0) a LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT FROM (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k OFFSET 0) a JOIN n3 ON n3.id < a.id + 10 LIMIT 1) s');
SELECT * FROM ahead('WITH c AS MATERIALIZED (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k) SELECT id FROM c LIMIT 1');
SELECT * FROM ahead('WITH c AS MATERIALIZED (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k) SELECT (SELECT id FROM c LIMIT 1)');
SELECT * FROM ahead('SELECT count(*) FROM n3, LATERAL (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k WHERE na.id > n3.id LIMIT 1) s WHERE n3.id < 4');
-- cursors
SELECT * FROM ahead('DECLARE c CURSOR FOR SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k');
SELECT * FROM ahead('DECLARE c CURSOR FOR SELECT a.id FROM (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k OFFSET 0) a LEFT JOIN ng ON ng.k = a.id');
SELECT * FROM ahead('DECLARE c CURSOR FOR WITH c AS MATERIALIZED (SELECT na.id FROM na LEFT JOIN ng ON 100 / na.x = ng.k) SELECT id FROM c');
-- EXISTS and ANY that stay subplans
SELECT * FROM ahead('SELECT EXISTS (SELECT FROM na JOIN ng ON 100 / na.x = ng.k)');
SELECT * FROM ahead('SELECT count(*) FROM n3 WHERE n3.id < 4 AND (n3.g < 0 OR EXISTS (SELECT FROM na JOIN ng ON 100 / na.x = ng.k WHERE na.id > n3.id))');
SELECT * FROM ahead('SELECT count(*) FROM n3 WHERE n3.id < 4 AND (n3.g < 0 OR n3.id = ANY (SELECT na.id + 0 * n3.g FROM na JOIN ng ON 100 / na.x = ng.k))');
-- semi and anti joins above, next to it and around a subquery
SELECT * FROM ahead('SELECT count(*) FROM n3 WHERE n3.id < 4 AND EXISTS (SELECT FROM na JOIN ng ON 100 / na.x = ng.k WHERE na.id > n3.id)');
SELECT * FROM ahead('SELECT count(*) FROM n3 WHERE n3.id < 4 AND NOT EXISTS (SELECT FROM na JOIN ng ON 100 / na.x = ng.k WHERE na.id > n3.id)');
SELECT * FROM ahead('SELECT count(*) FROM n3 WHERE n3.id < 4 AND EXISTS (SELECT FROM (SELECT na.id FROM na JOIN ng ON 100 / na.x = ng.k OFFSET 0) s WHERE s.id > n3.id)');
SELECT * FROM ahead('SELECT count(*) FROM n3 WHERE n3.id < 4 AND NOT EXISTS (SELECT FROM (SELECT na.id FROM na JOIN ng ON 100 / na.x = ng.k OFFSET 0) s WHERE s.id > n3.id)');
-- such joins themselves
SELECT * FROM ahead('SELECT count(*) FROM (SELECT FROM na WHERE EXISTS (SELECT FROM ng WHERE ng.k = 100 / na.x AND ng.k <> na.id) LIMIT 1) s');
SELECT * FROM ahead('SELECT count(*) FROM (SELECT FROM na WHERE NOT EXISTS (SELECT FROM ng WHERE ng.k = 100 / na.x AND ng.k = na.id) LIMIT 1) s');
-- an order from a nested loop above, that a LIMIT or a group uses
SELECT * FROM ahead('SELECT n3.id FROM n3 JOIN na ON na.id > n3.id JOIN ng ON 100 / na.x = ng.k ORDER BY n3.id LIMIT 1');
SELECT * FROM ahead('SELECT n3.id FROM n3 JOIN na ON na.id > n3.id JOIN ng ON 100 / na.x = ng.k GROUP BY n3.id LIMIT 1');
SELECT * FROM ahead('SELECT DISTINCT n3.id FROM n3 JOIN na ON na.id > n3.id JOIN ng ON 100 / na.x = ng.k ORDER BY n3.id LIMIT 1');
-- distinct rows, of which a nested loop reads one; forced, they are hashed: all are read
SET enable_hashjoin = off;
SET enable_hashagg = off;
SET enable_sort = off;
SELECT * FROM ahead('SELECT count(*) FROM n3 JOIN (SELECT DISTINCT b.id FROM n3 b JOIN na ON na.id > b.id JOIN ng ON 100 / na.x = ng.k) s ON s.id = n3.id WHERE n3.id < 2');
RESET enable_hashjoin;
RESET enable_hashagg;
RESET enable_sort;
-- a window's condition
SELECT * FROM ahead('SELECT count(*) FROM (SELECT row_number() OVER () AS n FROM na LEFT JOIN ng ON 100 / na.x = ng.k) s WHERE n <= 1');

-- an empty side: the other one is left unread, but for one row, also where the join's rows are aggregated
SET gpuhash.enable_aggregate = on;
SELECT * FROM ahead('SELECT count(*) FROM na JOIN ng ON 100 / na.x = ng.k WHERE ng.k + 0 < -100');
SELECT * FROM ahead('SELECT count(*) FROM na JOIN (SELECT 100 / x AS q FROM na OFFSET 0) s ON s.q = na.g WHERE na.id + 0 < -100');
SET gpuhash.enable_aggregate = off;
-- side effects: a function that is called for each row read, and row locks
CREATE SEQUENCE reads;
SET gpuhash.enabled = off;
SELECT count(*) FROM (SELECT FROM na LEFT JOIN ng ON na.g = ng.k WHERE nextval('reads') >= na.id LIMIT 1) s;
SELECT last_value FROM reads;
SET gpuhash.enabled = on;
SET gpuhash.force_offload = on;
SELECT count(*) FROM (SELECT FROM na LEFT JOIN ng ON na.g = ng.k WHERE nextval('reads') >= na.id LIMIT 1) s;
SELECT last_value FROM reads;
BEGIN;
SELECT count(*) FROM (SELECT FROM (SELECT * FROM na FOR UPDATE) a LEFT JOIN ng ON a.g = ng.k LIMIT 1) s;
SELECT count(*) FROM na WHERE xmax::text <> '0';
ROLLBACK;

DROP SEQUENCE reads;
DROP VIEW ng, nx;
DROP TABLE na, keys, kx, n3;
DROP FUNCTION ahead(text), ahead_answer(text);
