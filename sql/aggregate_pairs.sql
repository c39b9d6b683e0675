-- Joins that an aggregate probes by itself, with conditions beside their keys: on what is a match, and on what comes out.
LOAD 'gpuhash';
SET client_min_messages = warning;
-- (where a device does it, it makes tables of its own)
SET gpuhash.engine = 'cpu';
CREATE TABLE pair_facts (id int, o int, s int, d date, e date, q int, n numeric(10, 2), t text);
INSERT INTO pair_facts SELECT i, i / 4, CASE WHEN i % 13 > 0 THEN i * 7 % 50 END, date '2020-01-01' + i % 90, date '2020-01-01' + i * 11 % 90, i % 9, i % 500 / 4.0, 't' || i % 7
    FROM generate_series(1, 12000) i;
CREATE TABLE pair_orders (o int PRIMARY KEY, c int, st char(1), pri text, tot numeric(12, 2));
INSERT INTO pair_orders SELECT i, i % 300, substr('FOP', i % 3 + 1, 1), CASE WHEN i % 10 > 0 THEN 'pri ' || i % 5 END, i * 1.25 FROM generate_series(1, 2500) i;
-- several rows a key, some with NULLs
CREATE TABLE pair_many (k int, v int, m numeric(8, 2), x text);
INSERT INTO pair_many SELECT i % 60, CASE WHEN i % 7 > 0 THEN i % 11 END, i / 8.0, 'x' || i % 6 FROM generate_series(1, 900) i;
CREATE TABLE pair_none (k int, v int);
-- two columns make a key that is unique, and one of them is no hash key
CREATE TABLE pair_moments (k int, ts timestamp, p int, PRIMARY KEY (k, ts));
INSERT INTO pair_moments SELECT i % 50, timestamp '2020-01-01' + i / 50 * interval '1 day', i FROM generate_series(0, 3999) i;
ANALYZE pair_facts, pair_orders, pair_many, pair_none, pair_moments;

-- What EXPLAIN says of how rows came, and of the joins.
CREATE FUNCTION pair_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    PERFORM set_config('gpuhash.force_offload', 'on', true);
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ '(Gpu|Steps|Rows Handed Back|Pages:|Input Rows|Join Type|Join Filter|Filter|Seq Scan)' THEN
            line := regexp_replace(line, 'Pages: [1-9]\d*', 'Pages: some');
            -- up to 15 some equalities have their sides the other way round
            line := replace(line, '(f.line = b.line)', '(b.line = f.line)');
            RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1');
        END IF;
    END LOOP;
END $$;

-- Each kind of join, and conditions of joins below others.
SELECT pair_lines('SELECT q, count(*) FROM pair_facts f WHERE EXISTS (SELECT FROM pair_facts g WHERE g.o = f.o AND g.s <> f.s) GROUP BY q');
SELECT pair_lines('SELECT q, count(*) FROM pair_facts f WHERE NOT EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.v > f.q) GROUP BY q');
SELECT pair_lines('SELECT x, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q WHERE coalesce(m.m, 0) < 60 GROUP BY x');
SELECT pair_lines('SELECT st, x, count(*), sum(m) FROM pair_facts f JOIN pair_many m ON m.k = f.s AND m.v > f.q JOIN pair_orders r ON r.o = f.o AND r.tot > f.n GROUP BY st, x');
CREATE TEMP TABLE pair_queries (position serial, query text);
INSERT INTO pair_queries (query) VALUES
    -- the suppliers that alone kept an order waiting
    ('SELECT f.s, count(*) FROM pair_facts f JOIN pair_orders r ON r.o = f.o WHERE f.d > f.e AND r.st = ''F''
      AND EXISTS (SELECT FROM pair_facts g WHERE g.o = f.o AND g.s <> f.s)
      AND NOT EXISTS (SELECT FROM pair_facts g WHERE g.o = f.o AND g.s <> f.s AND g.d > g.e) GROUP BY f.s'),
    ('SELECT q, count(*), sum(n) FROM pair_facts f WHERE EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.v > f.q AND m.m < f.n) GROUP BY q'),
    ('SELECT q, count(*), sum(n) FROM pair_facts f WHERE NOT EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.v > f.q AND m.m < f.n) GROUP BY q'),
    ('SELECT q, count(*), sum(n) FROM pair_facts f WHERE NOT EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND (m.v > f.q) IS NOT TRUE) GROUP BY q'),
    ('SELECT q, count(*) FROM pair_facts f WHERE EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.x <> f.t AND (m.x = ''x3'' OR f.t < ''t4'')) GROUP BY q'),
    ('SELECT x, count(*), count(v), sum(f.q) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q GROUP BY x'),
    ('SELECT x, count(*), count(v), sum(f.q) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q AND f.q > 3 GROUP BY x'),
    ('SELECT x, count(*), count(v), sum(f.q) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND f.q > 3 GROUP BY x'),
    ('SELECT x, count(*), sum(f.q) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q WHERE coalesce(m.v, f.q) % 3 <> 1 GROUP BY x'),
    ('SELECT x, count(*), sum(f.q) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s WHERE m.v IS NULL OR m.v > f.q GROUP BY x'),
    -- of a customer, orders, but for some
    ('SELECT c, count(*) FROM (SELECT r.c, count(f.id) FROM pair_orders r LEFT JOIN pair_facts f ON f.o = r.o AND f.t NOT LIKE ''%5%'' GROUP BY r.c) s(k, c) GROUP BY c'),
    -- one OR of conditions on both sides
    ('SELECT sum(n), count(*) FROM pair_facts f, pair_orders r WHERE r.o = f.o AND (r.st = ''F'' AND f.q BETWEEN 1 AND 4 AND f.n < 60 OR r.st IN (''O'', ''P'') AND f.q > 5 AND f.t IN (''t1'', ''t2'') OR r.pri = ''pri 3'' AND f.n > r.tot)'),
    -- conditions in several joins, read and not read behind them
    ('SELECT st, x, count(*), sum(m) FROM pair_facts f JOIN pair_many m ON m.k = f.s AND m.v > f.q JOIN pair_orders r ON r.o = f.o AND r.tot > m.m GROUP BY st, x'),
    ('SELECT st, x, count(*), sum(m) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q LEFT JOIN pair_orders r ON r.o = f.o AND r.tot * 2 > m.m AND r.c > f.q GROUP BY st, x'),
    ('SELECT r.st, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q LEFT JOIN pair_orders r ON r.o = m.v AND r.tot <> f.n WHERE EXISTS (SELECT FROM pair_many z WHERE z.k = f.q AND z.m > f.n) GROUP BY r.st'),
    ('SELECT q, count(*) FROM pair_facts f WHERE EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.v > f.q) AND NOT EXISTS (SELECT FROM pair_many m WHERE m.k = f.q AND m.m > f.n AND m.x <> f.t) GROUP BY q'),
    -- what makes a match a single one is a condition, and no key
    ('SELECT q, count(*), sum(p) FROM pair_facts f JOIN pair_moments m ON m.k = f.s AND m.ts = f.d GROUP BY q'),
    ('SELECT q, count(*), sum(p) FROM pair_facts f LEFT JOIN pair_moments m ON m.k = f.s AND m.ts = f.d GROUP BY q'),
    ('SELECT q, count(*) FROM pair_facts f WHERE NOT EXISTS (SELECT FROM pair_moments m WHERE m.k = f.s AND m.ts = f.d) GROUP BY q'),
    -- nothing inside, and conditions that are never true, or NULL
    ('SELECT q, count(*), count(z.v) FROM pair_facts f LEFT JOIN pair_none z ON z.k = f.s AND z.v > f.q GROUP BY q'),
    ('SELECT q, count(*) FROM pair_facts f WHERE NOT EXISTS (SELECT FROM pair_none z WHERE z.k = f.s AND z.v > f.q) GROUP BY q'),
    ('SELECT q, count(*) FROM pair_facts f JOIN pair_none z ON z.k = f.s AND z.v > f.q GROUP BY q'),
    ('SELECT q, count(*), count(v) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q + 100 GROUP BY q'),
    ('SELECT q, count(*), count(v) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v + NULL::int > f.q GROUP BY q'),
    -- columns of an antijoin's inner side, which are NULL
    ('SELECT m.x, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q WHERE m.k IS NULL GROUP BY m.x'),
    ('SELECT r.st, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q LEFT JOIN pair_orders r ON r.o = m.v WHERE m.k IS NULL GROUP BY r.st'),
    -- conditions that programs have not, and that raise errors
    ('SELECT q, count(*) FROM pair_facts f WHERE EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND md5(m.x) < md5(f.t)) GROUP BY q'),
    ('SELECT x, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > (SELECT count(*) FROM pair_none z WHERE z.k = m.k) + f.q GROUP BY x'),
    ('SELECT x, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND 100 / (m.v - f.q) > 20 GROUP BY x'),
    ('SELECT x, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v <> f.q AND 100 / (m.v - f.q) > 20 GROUP BY x'),
    ('SELECT count(*) FROM pair_facts f JOIN pair_many m ON m.k = f.s AND f.q + 2147483647 > m.v'),
    -- conditions that wait for a subquery
    ('SELECT x, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v + f.q > (SELECT avg(v) FROM pair_many) GROUP BY x'),
    ('SELECT q, count(*) FROM pair_facts f WHERE EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.v + f.q > (SELECT max(v) FROM pair_many)) GROUP BY q'),
    -- runs once more
    ('SELECT o.i, s.* FROM generate_series(1, 4) o(i), LATERAL (SELECT count(*), sum(v), count(x) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > f.q + o.i) s'),
    ('SELECT o.i, s.* FROM generate_series(1, 4) o(i), LATERAL (SELECT count(*) FROM pair_facts f WHERE NOT EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.v > f.q AND m.v < o.i * 3)) s');
SELECT q.position, c.offloaded, c.result, c.same FROM pair_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT count(*), count(*) FILTER (WHERE c.same = 'same') AS same FROM pair_queries q, LATERAL compare_aggregate(q.query, 2) c;
-- rows that are handed back: all of their candidates are asked about by PostgreSQL's expressions
UPDATE pair_facts SET n = 'NaN' WHERE id % 300 = 7;
UPDATE pair_many SET v = 2147483600 WHERE m = 10;
ALTER TABLE pair_facts ALTER t SET STORAGE EXTENDED;
UPDATE pair_facts SET t = repeat('t1', 4000) WHERE id % 500 = 9;
ANALYZE pair_facts, pair_many;
SELECT pair_lines('SELECT q, count(*), sum(n) FROM pair_facts f WHERE NOT EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.m < f.n) GROUP BY q');
INSERT INTO pair_queries (query) VALUES
    ('SELECT st, x, count(*), sum(m), max(n) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.m > f.n LEFT JOIN pair_orders r ON r.o = m.v AND r.tot > f.n GROUP BY st, x'),
    ('SELECT x, count(*) FROM pair_facts f JOIN pair_many m ON m.k = f.s AND m.m < f.n AND m.x <> f.t WHERE EXISTS (SELECT FROM pair_many z WHERE z.k = f.q AND z.m > f.n) GROUP BY x'),
    ('SELECT m.x, z.x, count(*) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.m < f.n LEFT JOIN pair_many z ON z.k = m.v AND z.m < f.n AND z.v > m.v WHERE f.q < 3 GROUP BY m.x, z.x'),
    ('SELECT q, count(*) FROM pair_facts f JOIN pair_orders r ON r.o = f.o WHERE NOT EXISTS (SELECT FROM pair_many m WHERE m.k = f.s AND m.m > f.n) AND r.tot <> f.n GROUP BY q');
SELECT q.position, c.result, c.same FROM pair_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT count(*), count(*) FILTER (WHERE c.same = 'same') AS same FROM pair_queries q, LATERAL compare_aggregate(q.query, 2) c;
-- joins that do not fit in memory return their rows
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM pair_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
RESET work_mem;
RESET hash_mem_multiplier;

-- The lowest one alone does not fit: its rows come in, and conditions of those above it are about columns of these, and
-- others.  (Their inner sides are joins, so that these cost less than an outer row, which then is not asked for first.)
CREATE TABLE pair_large (o int, w text, z int);
INSERT INTO pair_large SELECT i, repeat('w' || i % 10, 40), i % 12 FROM generate_series(0, 30000) i;
CREATE TABLE pair_few (k int, y int);
INSERT INTO pair_few SELECT i, i % 4 FROM generate_series(0, 10) i;
CREATE VIEW pair_some AS SELECT m.*, e.y FROM pair_many m JOIN pair_few e ON e.k = m.v WHERE m.m < 20;
ANALYZE pair_large, pair_few;
SET work_mem = '256kB';
SET hash_mem_multiplier = 1;
SET join_collapse_limit = 1;
CREATE TEMP TABLE pair_partly (position serial, query text);
INSERT INTO pair_partly (query) VALUES
    ('SELECT m.x, count(*), sum(z) FROM pair_facts f JOIN pair_large l USING (o) JOIN pair_some m ON m.k = f.s AND m.v > l.z AND m.x <> f.t GROUP BY m.x'),
    ('SELECT m.x, w, count(*), sum(z) FROM pair_facts f JOIN pair_large l USING (o) JOIN pair_some m ON m.k = f.s AND m.m < f.n AND m.v <> l.z GROUP BY m.x, w'),
    ('SELECT l.z, count(*), sum(f.q) FROM pair_facts f JOIN pair_large l USING (o) WHERE EXISTS (SELECT FROM pair_some m WHERE m.k = l.z AND m.v <> f.q AND m.m * 2 > f.n) GROUP BY l.z'),
    ('SELECT m.x, r.x, count(*), sum(l.z) FROM pair_facts f JOIN pair_large l USING (o) JOIN pair_some m ON m.k = f.s AND m.v < l.z JOIN pair_some r ON r.k = m.v AND r.m * 2 > f.n AND r.v > l.z AND r.y <> m.y WHERE f.q < 3 GROUP BY m.x, r.x');
SELECT pair_lines(query) FROM pair_partly WHERE position IN (1, 3);
SELECT q.position, c.result, c.same FROM pair_partly q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
RESET work_mem;
RESET hash_mem_multiplier;
RESET join_collapse_limit;

-- Keys of more than 64 bits: those columns that nearly tell rows apart are looked up, the others compared.  Where many
-- rows would be looked at, a code of all is; not of right and full joins.
CREATE TABLE pair_wide AS SELECT i AS id, (i / 4)::int8 AS o, CASE WHEN i % 19 > 0 THEN i % 4 END AS line, i % 7 AS g, 't' || i % 3 AS t FROM generate_series(1, 12000) i;
CREATE TABLE pair_back (o int8, line int, w int, t text, PRIMARY KEY (line, o));
INSERT INTO pair_back SELECT i / 4, i % 4, i, 't' || i % 5 FROM generate_series(1, 12000) i WHERE i % 5 < 2;
ANALYZE pair_wide, pair_back;
SELECT pair_lines('SELECT g, count(*), sum(w) FROM pair_wide f JOIN pair_back b ON b.line = f.line AND b.o = f.o GROUP BY g');
SELECT pair_lines('SELECT g, count(*), sum(w) FROM pair_wide f LEFT JOIN pair_back b ON b.o = f.o AND b.t = f.t AND b.line = f.line GROUP BY g');
SELECT pair_lines('SELECT g, count(*) FROM pair_wide f LEFT JOIN pair_back b ON b.line = f.line AND b.o = f.o WHERE b.o IS NULL GROUP BY g');
SELECT pair_lines('SELECT g, count(*) FROM pair_wide f JOIN pair_back b ON b.line = f.line AND b.t = f.t WHERE f.id < 99 GROUP BY g');
-- a value that many rows have on both sides would make pairs of all of them, unique as the inner rows are
CREATE TABLE pair_skewed (a int8, b int, v int, PRIMARY KEY (a, b));
INSERT INTO pair_skewed SELECT CASE WHEN i > 3000 THEN i ELSE 0 END, CASE WHEN i > 3000 THEN i % 3000 ELSE i END, i % 10 FROM generate_series(1, 15000) i;
CREATE TABLE pair_skewed_too AS TABLE pair_skewed;
ANALYZE pair_skewed, pair_skewed_too;
SELECT pair_lines('SELECT f.v, count(*) FROM pair_skewed_too f JOIN pair_skewed b ON b.a = f.a AND b.b = f.b GROUP BY f.v');
DROP TABLE pair_skewed, pair_skewed_too;
CREATE TEMP TABLE pair_long (position serial, query text);
INSERT INTO pair_long (query) VALUES
    ('SELECT g, count(*), sum(w) FROM pair_wide f JOIN pair_back b ON b.line = f.line AND b.o = f.o GROUP BY g'),
    ('SELECT f.t, b.t, count(*), sum(w) FROM pair_wide f LEFT JOIN pair_back b ON b.o = f.o AND b.t = f.t AND b.line = f.line GROUP BY f.t, b.t'),
    ('SELECT g, count(*) FROM pair_wide f LEFT JOIN pair_back b ON b.line = f.line AND b.o = f.o WHERE b.o IS NULL GROUP BY g'),
    ('SELECT g, count(*) FROM pair_wide f WHERE EXISTS (SELECT FROM pair_back b WHERE b.line = f.line AND b.o = f.o AND b.t <> f.t) GROUP BY g'),
    ('SELECT g, count(*) FROM pair_wide f WHERE NOT EXISTS (SELECT FROM pair_back b WHERE b.line = f.line AND b.o = f.o AND b.t = f.t) GROUP BY g'),
    ('SELECT g, count(*), sum(w) FROM pair_wide f RIGHT JOIN pair_back b ON b.line = f.line AND b.o = f.o GROUP BY g'),
    ('SELECT g, count(*), sum(w) FROM pair_wide f FULL JOIN pair_back b ON b.line = f.line AND b.o = f.o AND b.w = f.id GROUP BY g'),
    ('SELECT f.g, count(*), sum(b.w), sum(c.w) FROM pair_wide f JOIN pair_back b ON b.line = f.line AND b.o = f.o JOIN pair_back c ON c.line = f.g AND c.o = b.o AND c.w <> b.w GROUP BY f.g');
SELECT q.position, c.offloaded, c.result, c.same FROM pair_long q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT count(*), count(*) FILTER (WHERE c.same = 'same') AS same FROM pair_long q, LATERAL compare_aggregate(q.query, 2) c;
-- rows that come out of the join itself
SET gpuhash.enable_aggregate = off;
SELECT q.query, c.same FROM pair_long q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same';
RESET gpuhash.enable_aggregate;

-- What the groups below a LIMIT are ordered by may fail: all rows are grouped first, so they are read ahead.
SELECT pair_lines('SELECT f.id % f.q, count(*), sum(b.w) FROM pair_facts f JOIN pair_orders r USING (o) LEFT JOIN pair_back b ON b.o = f.o AND b.line = f.s WHERE f.q > 0 GROUP BY 1 ORDER BY 1 LIMIT 3');
SELECT c.offloaded, c.result, c.same FROM compare_aggregate('SELECT f.id % f.q, count(*), sum(b.w) FROM pair_facts f JOIN pair_orders r USING (o) LEFT JOIN pair_back b ON b.o = f.o AND b.line = f.s WHERE f.q > 0 GROUP BY 1 ORDER BY 1 LIMIT 3') c;
SELECT c.offloaded, c.result, c.same FROM compare_aggregate('SELECT f.id % f.q, count(*), sum(b.w) FROM pair_facts f JOIN pair_orders r USING (o) LEFT JOIN pair_back b ON b.o = f.o AND b.line = f.s GROUP BY 1 ORDER BY 1 LIMIT 3') c;

-- A function of a user's in a condition is called as often as PostgreSQL does it, and keeps the join a node of its own.
CREATE SEQUENCE pair_calls;
CREATE FUNCTION pair_call(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('pair_calls'); RETURN i; END $$;
SET gpuhash.force_offload = on;
SELECT count(*), sum(v) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > pair_call(f.q) WHERE f.id <= 100;
SELECT last_value AS with_calls FROM pair_calls;
SET gpuhash.enabled = off;
SELECT setval('pair_calls', 1, false);
SELECT count(*), sum(v) FROM pair_facts f LEFT JOIN pair_many m ON m.k = f.s AND m.v > pair_call(f.q) WHERE f.id <= 100;
SELECT last_value AS plain_calls FROM pair_calls;
RESET gpuhash.enabled;
RESET gpuhash.force_offload;

RESET gpuhash.engine;
DROP FUNCTION pair_lines, pair_call;
DROP SEQUENCE pair_calls;
DROP VIEW pair_some;
DROP TABLE pair_facts, pair_orders, pair_many, pair_none, pair_moments, pair_large, pair_few, pair_wide, pair_back;
