-- Joins that an aggregate probes by itself: their tables, rows that become many, and joins that return their rows after all.
LOAD 'gpuhash';
SET client_min_messages = warning;
-- (where a device does it, it makes tables of its own)
SET gpuhash.engine = 'cpu';
CREATE TABLE probe_facts (id int, a int, b int, n numeric(10, 2), t text, v int);
INSERT INTO probe_facts SELECT i, i % 1000, CASE WHEN i % 17 > 0 THEN i % 100 END, i % 500 / 4.0, 't' || i % 7, i
    FROM generate_series(1, 20000) i;
CREATE TABLE probe_small (b int, x int, m numeric(8, 3), t text, y bool, d date, r real, o oid, s int2);
INSERT INTO probe_small SELECT i, i % 6, CASE WHEN i % 5 > 0 THEN i / 8.0 END, 'small ' || i % 9, i % 3 = 0, date '2020-01-01' + i,
    i / 4.0, i, i % 10 FROM generate_series(1, 80) i;
CREATE TABLE probe_large (a int, w text, z int);
INSERT INTO probe_large SELECT i, repeat('w' || i % 10, 40), i % 12 FROM generate_series(1, 30000) i;
CREATE TABLE probe_many (b int, z int);
INSERT INTO probe_many SELECT 3, i % 4 FROM generate_series(1, 5000) i;
INSERT INTO probe_many SELECT i, 7 FROM generate_series(1, 10) i;
CREATE TABLE probe_none (b int, z int);
CREATE TABLE probe_odd (b int, m numeric(8, 3), z int);
INSERT INTO probe_odd SELECT i, CASE WHEN i = 40 THEN 'NaN'::numeric ELSE i END, i FROM generate_series(1, 60) i;
CREATE TABLE probe_packed (b int, t text);
ALTER TABLE probe_packed ALTER t SET STORAGE EXTENDED;
INSERT INTO probe_packed SELECT i, repeat('packed ' || i % 4, 2000) FROM generate_series(1, 40) i;
CREATE TABLE probe_added (b int);
INSERT INTO probe_added SELECT i FROM generate_series(1, 30) i;
ALTER TABLE probe_added ADD z int DEFAULT 5;
INSERT INTO probe_added SELECT i, 6 FROM generate_series(31, 60) i;
ANALYZE probe_facts, probe_small, probe_large, probe_many, probe_none, probe_odd, probe_packed, probe_added;

-- What EXPLAIN says of how rows came, and what of the joins.
CREATE FUNCTION probe_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    PERFORM set_config('gpuhash.force_offload', 'on', true);
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ '(Gpu|Steps|Rows Handed Back|Pages:|Input Rows|Inner Rows|Table Values|Partitions|Seq Scan)' THEN
            line := regexp_replace(replace(line, 'public.', ''), 'Pages: [1-9]\d*', 'Pages: some');
            line := regexp_replace(line, '(rows=\d+)\.00', '\1');
            RETURN NEXT regexp_replace(line, 'Partitions: ([2-9]|\d\d+)', 'Partitions: some');
        END IF;
    END LOOP;
END $$;

-- Every type of column, of a match and without one.
SELECT * FROM compare_aggregate('SELECT x, count(*), sum(m), min(d), max(r), bool_or(y), max(o), sum(s), count(small.t)
    FROM probe_facts LEFT JOIN probe_small small USING (b) GROUP BY x');
SELECT * FROM compare_aggregate('SELECT small.t, y, d, count(*), sum(v) FROM probe_facts JOIN probe_small small USING (b) GROUP BY small.t, y, d');

-- A row that becomes thousands, in the pipeline and, where it is handed back, by itself.
SELECT probe_lines('SELECT z, count(*), sum(v) FROM probe_facts JOIN probe_many USING (b) GROUP BY z');
SELECT * FROM compare_aggregate('SELECT z, count(*), sum(v) FROM probe_facts JOIN probe_many USING (b) GROUP BY z');
SELECT * FROM compare_aggregate('SELECT z, x, count(*), sum(v) FROM probe_facts JOIN probe_many USING (b) JOIN probe_small USING (b) GROUP BY z, x');
UPDATE probe_facts SET n = 'NaN' WHERE id IN (3, 103, 8000);
SELECT * FROM compare_aggregate('SELECT z, count(*), sum(v), max(n) FROM probe_facts JOIN probe_many USING (b) GROUP BY z');
SELECT * FROM compare_aggregate('SELECT z, n, count(*) FROM probe_facts LEFT JOIN probe_many USING (b) WHERE id < 4000 GROUP BY z, n');

-- Nothing inside: nothing comes out, or all does.
SELECT probe_lines('SELECT z, count(*), sum(v) FROM probe_facts LEFT JOIN probe_none USING (b) GROUP BY z');
SELECT * FROM compare_aggregate('SELECT z, count(*), sum(v) FROM probe_facts LEFT JOIN probe_none USING (b) GROUP BY z');
SELECT * FROM compare_aggregate('SELECT z, count(*), sum(v) FROM probe_facts JOIN probe_none USING (b) GROUP BY z');
SELECT * FROM compare_aggregate('SELECT count(*), sum(v) FROM probe_facts f WHERE NOT EXISTS (SELECT FROM probe_none WHERE b = f.b)');

-- A value inside that no engine holds: the join returns its rows.  Compressed ones, and such as old tuples lack, are held.
SELECT probe_lines('SELECT m, count(*), sum(v) FROM probe_facts JOIN probe_odd USING (b) GROUP BY m');
SELECT * FROM compare_aggregate('SELECT m, count(*), sum(v) FROM probe_facts JOIN probe_odd USING (b) GROUP BY m');
SELECT probe_lines('SELECT length(upper(p.t)), count(*), sum(v) FROM probe_facts JOIN probe_packed p USING (b) GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT length(p.t), count(*), sum(v) FROM probe_facts JOIN probe_packed p USING (b) GROUP BY 1');
SELECT probe_lines('SELECT p.t, count(*), sum(v) FROM probe_facts JOIN probe_packed p USING (b) GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT p.t, count(*), sum(v) FROM probe_facts JOIN probe_packed p USING (b) GROUP BY 1');
SELECT probe_lines('SELECT z, count(*), sum(v) FROM probe_facts JOIN probe_added USING (b) GROUP BY z');
SELECT * FROM compare_aggregate('SELECT z, count(*), sum(v) FROM probe_facts JOIN probe_added USING (b) GROUP BY z');

-- A join that does not fit in memory returns its rows, which go through those above it that do.
SET work_mem = '256kB';
SET hash_mem_multiplier = 1;
SET join_collapse_limit = 1;
SELECT probe_lines('SELECT x, count(*), sum(z) FROM probe_facts JOIN probe_large l USING (a) JOIN probe_small USING (b) GROUP BY x');
SELECT * FROM compare_aggregate('SELECT x, count(*), sum(z) FROM probe_facts JOIN probe_large l USING (a) JOIN probe_small USING (b) GROUP BY x');
SELECT * FROM compare_aggregate('SELECT x, w, count(*), sum(z) FROM probe_facts JOIN probe_large l USING (a) LEFT JOIN probe_small USING (b) GROUP BY x, w');
SELECT * FROM compare_aggregate('SELECT x, n, count(*), sum(z) FROM probe_facts JOIN probe_large l USING (a) LEFT JOIN probe_small USING (b) GROUP BY x, n');
SELECT * FROM compare_aggregate('SELECT x, z, count(*) FROM probe_facts JOIN probe_small USING (b) LEFT JOIN probe_large l USING (a) GROUP BY x, z');
RESET work_mem;
RESET hash_mem_multiplier;
RESET join_collapse_limit;

-- In parallel: tables of all participants.
SELECT * FROM compare_aggregate('SELECT x, count(*), sum(m), min(d), max(r) FROM probe_facts LEFT JOIN probe_small USING (b) GROUP BY x', 2);
SELECT * FROM compare_aggregate('SELECT z, count(*), sum(v), max(n) FROM probe_facts JOIN probe_many USING (b) GROUP BY z', 2);
SELECT * FROM compare_aggregate('SELECT m, count(*), sum(v) FROM probe_facts JOIN probe_odd USING (b) GROUP BY m', 2);
SELECT * FROM compare_aggregate('SELECT p.t, count(*), sum(v) FROM probe_facts JOIN probe_packed p USING (b) GROUP BY 1', 2);
SELECT * FROM compare_aggregate('SELECT z, count(*), sum(v) FROM probe_facts LEFT JOIN probe_none USING (b) GROUP BY z', 2);
SELECT * FROM compare_aggregate('SELECT z, x, w, count(*) FROM probe_facts JOIN probe_large l USING (a) LEFT JOIN probe_small USING (b) GROUP BY z, x, w', 2);
SET work_mem = '256kB';
SET hash_mem_multiplier = 1;
SET join_collapse_limit = 1;
SELECT * FROM compare_aggregate('SELECT x, count(*), sum(z) FROM probe_facts JOIN probe_large l USING (a) JOIN probe_small USING (b) GROUP BY x', 2);
SELECT * FROM compare_aggregate('SELECT x, z, count(*) FROM probe_facts JOIN probe_small USING (b) LEFT JOIN probe_large l USING (a) GROUP BY x, z', 2);
RESET work_mem;
RESET hash_mem_multiplier;

-- Runs once more: with the same rows inside, with others, and with a value inside that ends it.
SELECT * FROM compare_aggregate('SELECT o.i, s.* FROM generate_series(1, 4) o(i), LATERAL (SELECT count(*), sum(x), sum(v)
    FROM probe_facts JOIN probe_small USING (b) WHERE a % 5 = o.i) s');
SELECT * FROM compare_aggregate('SELECT o.i, s.* FROM generate_series(1, 4) o(i), LATERAL (SELECT count(*), sum(x), sum(v)
    FROM probe_facts LEFT JOIN probe_small ON probe_facts.b = probe_small.b AND x > o.i) s');
SELECT * FROM compare_aggregate('SELECT o.i, s.* FROM unnest(ARRAY[10, 50, 20]) o(i), LATERAL (SELECT count(*), max(m), sum(v)
    FROM probe_facts JOIN probe_odd USING (b) WHERE z < o.i) s');
SET work_mem = '256kB';
SET hash_mem_multiplier = 1;
SELECT * FROM compare_aggregate('SELECT o.i, s.* FROM unnest(ARRAY[10, 30000, 20]) o(i), LATERAL (SELECT count(*), sum(x), sum(l.z)
    FROM probe_facts JOIN probe_small USING (b) JOIN (SELECT a, z FROM probe_large WHERE a < o.i) l USING (a)) s');
SELECT * FROM compare_aggregate('SELECT o.i, s.* FROM unnest(ARRAY[10, 30000, 20]) o(i), LATERAL (SELECT count(*), sum(x), sum(l.z)
    FROM probe_facts JOIN (SELECT a, z FROM probe_large WHERE a < o.i) l USING (a) JOIN probe_small USING (b)) s');
RESET work_mem;
RESET hash_mem_multiplier;
RESET join_collapse_limit;

-- A run that comes to nothing because no row is outside leaves tables to one that has no program.
SET enable_seqscan = off;
SELECT * FROM compare_aggregate($$SELECT o.i, s.* FROM (VALUES (0, 1.0), (1, 'NaN'::numeric), (2, 2.0)) o(i, p), LATERAL (SELECT x, count(*), sum(n + o.p)
    FROM probe_facts f JOIN generate_series(1, 80) g(b) ON g.b = f.b LEFT JOIN probe_small small ON small.b = f.a WHERE id < o.i * 1000 GROUP BY x) s$$);
RESET enable_seqscan;
-- What is inside is read as often as PostgreSQL does it.
CREATE SEQUENCE probe_calls;
CREATE FUNCTION probe_call(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('probe_calls'); RETURN i; END $$;
SET gpuhash.force_offload = on;
SELECT count(*) FROM (VALUES (1, 1.0), (2, 'NaN'::numeric), (3, 2.0), (4, 'NaN')) o(i, p), LATERAL (SELECT x, count(*), sum(n + o.p)
    FROM probe_facts f JOIN (SELECT probe_call(b) AS b, x FROM probe_small OFFSET 0) s USING (b) WHERE id < o.i * 1000 GROUP BY x) s;
RESET gpuhash.force_offload;
SELECT last_value FROM probe_calls;

-- Columns of the inner side of an antijoin are NULL.
SELECT * FROM compare_aggregate('SELECT x, count(*), sum(v) FROM probe_facts f LEFT JOIN probe_small s ON f.b = s.b WHERE s.b IS NULL GROUP BY x');
SELECT * FROM compare_aggregate('SELECT count(*), sum(v + x), count(v) FROM probe_facts f LEFT JOIN probe_small s ON f.b = s.b WHERE s.b IS NULL');
SELECT * FROM compare_aggregate('SELECT x, l.z, count(*) FROM probe_facts f LEFT JOIN probe_small s ON f.b = s.b LEFT JOIN probe_large l ON l.a = s.x
    WHERE s.b IS NULL GROUP BY x, l.z');

-- Texts inside that do not fit in memory, though what leads to them does; and such as lie elsewhere.
CREATE TABLE probe_texts (b int, t text);
INSERT INTO probe_texts SELECT i, repeat('A', 100000 + i) FROM generate_series(1, 60) i;
INSERT INTO probe_texts SELECT i, (SELECT string_agg(md5(j::text), '') FROM generate_series(1, 100) j) FROM generate_series(61, 70) i;
ANALYZE probe_texts;
SET work_mem = '1MB';
SET hash_mem_multiplier = 1;
SELECT probe_lines('SELECT count(p.t), count(*), sum(v) FROM probe_facts JOIN probe_texts p USING (b)');
SELECT * FROM compare_aggregate('SELECT count(p.t), count(*), sum(v) FROM probe_facts JOIN probe_texts p USING (b)');
SELECT * FROM compare_aggregate('SELECT count(p.t), count(*), sum(v) FROM probe_facts JOIN (SELECT * FROM probe_texts WHERE b < 61 OFFSET 0) p USING (b)');
SELECT * FROM compare_aggregate('SELECT count(p.t), count(*), sum(v) FROM probe_facts JOIN probe_texts p USING (b)', 2);
RESET work_mem;
RESET hash_mem_multiplier;

-- A condition that waits for a subquery, and one that an empty side keeps from being evaluated.
SELECT * FROM compare_aggregate('SELECT x, count(*), sum(v) FROM probe_facts JOIN probe_small USING (b) WHERE v > (SELECT max(b) FROM probe_small) GROUP BY x');
SELECT * FROM compare_aggregate('SELECT x, count(*), sum(CASE WHEN x > (SELECT min(z) FROM probe_many) THEN v END) FROM probe_facts JOIN probe_small USING (b) GROUP BY x');
SELECT * FROM compare_aggregate('SELECT count(*), sum(1 / z) FROM probe_facts JOIN probe_none USING (b) WHERE v > 0');
SELECT * FROM compare_aggregate('SELECT count(*), sum(z) FROM (SELECT * FROM probe_facts WHERE v < 0) f JOIN (SELECT b, z / (b - 3) AS z FROM probe_many) m USING (b)');

RESET gpuhash.engine;
DROP FUNCTION probe_lines, probe_call;
DROP SEQUENCE probe_calls;
DROP TABLE probe_facts, probe_small, probe_large, probe_many, probe_none, probe_odd, probe_packed, probe_added, probe_texts;
