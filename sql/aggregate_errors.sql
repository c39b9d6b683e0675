-- Errors are PostgreSQL's: raised where it raises them, and only there.
LOAD 'gpuhash';
CREATE TABLE ae (id int, g int, z int, i2 int2, i4 int4, i8 int8, n numeric(20, 4), f4 float4, f8 float8, t text);
INSERT INTO ae SELECT i, i % 5, i % 10, i, i, i, i, i, i, i::text FROM generate_series(1, 2000) i;
UPDATE ae SET t = 'none' WHERE z = 0;
ANALYZE ae;

-- division by zero: in an argument, a key, a condition, HAVING and the output
SELECT * FROM compare_aggregate('SELECT sum(100 / z) FROM ae');
SELECT * FROM compare_aggregate('SELECT g, sum(100 / z) FROM ae GROUP BY g');
SELECT * FROM compare_aggregate('SELECT sum(100.0 / z), sum(100 % z) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum(f8 / z) FROM ae');
SELECT * FROM compare_aggregate('SELECT 100 / z, count(*) FROM ae GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT g, count(*) FROM ae WHERE 100 / z > 3 GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, count(*) FROM ae GROUP BY g HAVING 100 / (sum(z) - 1600) > 3');
SELECT * FROM compare_aggregate('SELECT g, 100 / min(z) FROM ae GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, 100 / count(*) FILTER (WHERE z > 100) FROM ae GROUP BY g');
-- what protects from it
SELECT * FROM compare_aggregate('SELECT sum(100 / z) FILTER (WHERE z <> 0), count(*) FROM ae');
SELECT * FROM compare_aggregate('SELECT g, sum(100 / z) FILTER (WHERE z <> 0), avg(f8 / z) FILTER (WHERE z > 0) FROM ae GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(100 / z) FROM ae WHERE z <> 0 GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(1) FROM ae WHERE z <> 0 AND 100 / z > 20 GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(CASE WHEN z = 0 THEN 0 ELSE 100 / z END) FROM ae GROUP BY g');
SELECT * FROM compare_aggregate('SELECT CASE WHEN z > 0 THEN 100 / z END, count(*) FROM ae GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT g, sum(100 / nullif(z, 0)) FROM ae GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(coalesce(nullif(z, 0), 100 / z)) FROM ae WHERE z > 0 GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, count(*) FROM ae WHERE z = 0 OR 100 / z > 20 GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, count(*) FILTER (WHERE z = 0 OR 100 / z > 20) FROM ae GROUP BY g');
SELECT * FROM compare_aggregate('SELECT sum(100 / z) FROM ae WHERE id < 0');
SELECT * FROM compare_aggregate('SELECT sum(100 / z) FROM ae WHERE false');
SELECT * FROM compare_aggregate('SELECT sum(1 / 0) FROM ae WHERE id < 0');
SELECT * FROM compare_aggregate('SELECT sum(CASE WHEN id < 0 THEN 1 / (id - id) ELSE 1 END) FROM ae');
-- the order of conditions: cheap ones first, otherwise as written
SELECT * FROM compare_aggregate('SELECT count(*) FROM ae WHERE 100 / z > 0 AND z <> 0');
SELECT * FROM compare_aggregate('SELECT count(*) FROM ae WHERE z <> 0 AND i4 / z > 5 AND t::int > 3');
SELECT * FROM compare_aggregate('SELECT count(*) FROM ae WHERE t::int > 3');
SELECT * FROM compare_aggregate('SELECT count(*) FILTER (WHERE z <> 0 AND t::int > 3) FROM ae');
SELECT * FROM compare_aggregate('SELECT count(*) FROM ae WHERE NOT (z = 0) AND NOT (100 / z = 5)');

-- overflow of integers and of their casts
SELECT * FROM compare_aggregate('SELECT sum(i2 * 100::int2) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum(i4 * 10000000) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum(i8 * 9223372036854775) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum(i8 * 9223372036854775) FILTER (WHERE id <= 1000) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum((i4 * 100)::int2) FROM ae');
SELECT * FROM compare_aggregate('SELECT max((f8 * 1e6)::int4) FROM ae');
SELECT * FROM compare_aggregate('SELECT i4 * 10000000, count(*) FROM ae GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT sum(abs(i4 - 2147483647 - 2)) FROM ae WHERE id <= 1');
-- floats
SELECT * FROM compare_aggregate('SELECT sum(f8 * 1e308) FROM ae WHERE id > 1');
SELECT * FROM compare_aggregate('SELECT sum(f4 * 1e38::float4) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum(f8 * 1e-323 * 1e-5) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum(sqrt(5 - f8)) FROM ae');
SELECT * FROM compare_aggregate('SELECT sum(CASE WHEN f8 < 5 THEN sqrt(5 - f8) END) FROM ae');
CREATE TABLE ae_floats (id int, g int, f8 float8, f4 float4);
INSERT INTO ae_floats VALUES (1, 1, 1e308, 3e38), (2, 1, 1e308, 3e38), (3, 1, -1e308, -3e38), (4, 2, -1e308, 1), (5, 2, 1e308, 1), (6, 2, 1e308, 1),
    (7, 3, 'inf', 'inf'), (8, 3, 1e308, 1), (9, 3, 1e308, 1), (10, 4, 'inf', 'inf'), (11, 4, '-inf', '-inf'), (12, 5, 1e200, 1e30), (13, 5, 2e200, 2e30), (14, 6, 1e154, 1), (15, 6, -1e154, 2),
    (16, 7, -1e308, -3e38), (17, 7, -1e308, -3e38), (18, 7, 1e308, 3e38), (19, 8, 'NaN', 'NaN'), (20, 8, 1e308, 1), (21, 8, 1e308, 1), (22, 9, '-0', '-0'), (23, 10, '-0', '-0'), (24, 10, '-0', '-0');
SELECT g, f.fn, c.result, c.same FROM generate_series(1, 10) g,
    unnest(ARRAY['sum(f8)', 'avg(f8)', 'stddev(f8)', 'var_pop(f8)', 'sum(f4)', 'avg(f4)', 'variance(f4)', 'sum(f8) FILTER (WHERE id % 2 = 0)', 'min(f8)', 'max(f4)']) WITH ORDINALITY f(fn, place),
    LATERAL compare_aggregate(format('SELECT %s, count(*) FROM ae_floats WHERE g = %s', f.fn, g)) c
WHERE c.result <> '1' OR c.same <> 'same' ORDER BY g, f.place;
SELECT * FROM compare_aggregate('SELECT g, sum(f8), avg(f8) FROM ae_floats GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(f8), avg(f8), stddev(f8) FROM ae_floats WHERE g NOT IN (1, 2, 5, 6, 7) GROUP BY g');
SELECT g, sum(f8), avg(f8), stddev(f8) FROM ae_floats WHERE g NOT IN (1, 2, 5, 6, 7) GROUP BY g ORDER BY g;
-- rows on either side of one that PostgreSQL has to do stay in their order
CREATE TABLE ae_order (id int, wide numeric(60, 0), f8 float8, t text);
INSERT INTO ae_order SELECT i, CASE WHEN i % 3 = 0 THEN 1e50 ELSE 1 END, CASE i % 3 WHEN 0 THEN 1e16 WHEN 1 THEN 1 ELSE -1e16 END, NULL FROM generate_series(1, 300) i;
SELECT * FROM compare_aggregate('SELECT sum(f8), avg(f8), stddev(f8), sum(wide), count(*) FROM ae_order');
SELECT * FROM compare_aggregate('SELECT id % 2, sum(f8), avg(f8), stddev(f8), max(wide) FROM ae_order GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT wide, sum(f8), min(f8) FROM ae_order GROUP BY 1');
-- which of two equal values an extreme is
CREATE TABLE ae_equal (id int, wide numeric(60, 0), f8 float8);
INSERT INTO ae_equal SELECT i, CASE WHEN i % 4 = 3 THEN 1e50 ELSE 1 END, CASE WHEN i % 2 = 0 THEN '-0' ELSE '0' END::float8 FROM generate_series(1, 21) i;
SELECT n, c.same FROM generate_series(1, 21) n, LATERAL compare_aggregate(format('SELECT min(f8), max(f8), count(wide), sum(wide) FROM ae_equal WHERE id <= %s', n)) c WHERE c.same <> 'same';
-- a result that its type cannot hold
SELECT * FROM compare_aggregate('SELECT (sum(i4) * 100000)::int4 FROM ae');
SELECT * FROM compare_aggregate('SELECT g, sum(i4)::int2 FROM ae GROUP BY g');
CREATE TABLE ae_wide (i8 int8, n numeric);
INSERT INTO ae_wide SELECT 9223372036854775807, 1e131071 FROM generate_series(1, 20);
SELECT * FROM compare_aggregate('SELECT sum(i8)::int8 FROM ae_wide');
SELECT * FROM compare_aggregate('SELECT sum(n) FROM ae_wide');

-- after an error the session goes on, and so does the transaction behind a savepoint
SET gpuhash.force_offload = on;
BEGIN;
SAVEPOINT s;
SELECT g, sum(100 / z) FROM ae GROUP BY g;
ROLLBACK TO s;
SELECT g, sum(z) FROM ae GROUP BY g ORDER BY g;
COMMIT;
-- and inside of a cursor
BEGIN;
DECLARE c CURSOR FOR SELECT g, 100 / (g - 3) AS q, count(*) FROM ae GROUP BY g ORDER BY g;
FETCH 3 FROM c;
FETCH 2 FROM c;
ROLLBACK;
-- functions of the user's that raise errors, or see what is asked of them
CREATE FUNCTION ae_loud(v int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    IF v % 700 = 0 THEN
        RAISE NOTICE 'asked for %', v;
    END IF;
    RETURN v;
END $$;
SELECT count(*) FROM ae WHERE ae_loud(id) > 100;
SELECT sum(ae_loud(id)) FROM ae;
SELECT sum(id) FILTER (WHERE ae_loud(id) > 10) FROM ae WHERE id % 2 = 0;
RESET gpuhash.force_offload;
DROP FUNCTION ae_loud(int);
DROP TABLE ae, ae_floats, ae_order, ae_equal, ae_wide;
