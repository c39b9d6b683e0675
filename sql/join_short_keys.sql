-- Keys of 32 bits at most, for which the table's keys and values have 4 bytes (src/join/carry.c): that they do where
-- they can, and that the rows are the same.
LOAD 'gpuhash';
SET client_min_messages = warning;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET hash_mem_multiplier = 1.0;

CREATE TYPE mood AS ENUM ('bad', 'fair', 'good');
-- every key once, but for NULLs, and those at the ends of each type; p8 and t are too wide for 4 bytes, n and s have NULLs
CREATE FUNCTION short_keys(first int, step int, rows int)
RETURNS TABLE (id int, i4 int, d date, o oid, i2 int2, c "char", i8 bigint, f4 float4, m mood, yes boolean, p2 int2, p8 bigint, t text, n int, s int2)
LANGUAGE SQL AS $$
SELECT i, v.i4, CASE v.i4 WHEN 2147483647 THEN 'infinity' WHEN -2147483648 THEN '-infinity' ELSE date '2000-01-01' + v.i4 % 1000000 END,
    v.i4::bit(32)::bigint::oid, CASE i WHEN 1 THEN -32768 WHEN 2 THEN 32767 ELSE v.i4 % 30000 END::int2, (v.i4 % 128)::"char", v.i4::bigint * CASE WHEN i % 10 = 0 THEN 4294967296 ELSE 1 END,
    (v.i4 % 5000 / 4.0)::float4, (ARRAY['bad', 'fair', 'good', NULL])[1 + i % 4]::mood, i % 3 = 0, (i % 30000 - 15000)::int2, i * 1000003::bigint * 1000003, 'row ' || i,
    CASE WHEN i % 4000 > 5 THEN i END, CASE WHEN i % 5 > 0 THEN i % 30000 END::int2
FROM generate_series(1, rows) i, LATERAL (SELECT CASE WHEN i % 23 = 0 THEN NULL WHEN i <= 8 THEN
    (ARRAY[-2147483648, 2147483647, 0, -1, -2, -3, 1, -2147483647])[i] ELSE (i * step + first) * CASE WHEN i % 2 = 0 THEN -1 ELSE 1 END END AS i4) v $$;
CREATE TABLE so AS SELECT * FROM short_keys(0, 2, 9000);
CREATE TABLE si AS SELECT * FROM short_keys(0, 3, 6000);
-- keys that come again
CREATE TABLE sd AS SELECT id, i4 % 1000 AS i4, i4::bigint % 1000 AS i8, p2, n, t FROM si;
ANALYZE so, si, sd;

-- The answer alone, with workers, and in partitions, against PostgreSQL's.
CREATE FUNCTION compare_short(query text, OUT offloaded int, OUT rows bigint, OUT same boolean) LANGUAGE plpgsql AS $$
BEGIN
    SELECT c.offloaded, c.rows, c.same INTO offloaded, rows, same FROM compare_join(query) c;
    FOR part IN 1..2 LOOP
        DROP TABLE got;
        SET LOCAL gpuhash.force_offload = on;
        PERFORM set_config('max_parallel_workers_per_gather', (part % 2 * 3)::text, true), set_config('work_mem', CASE part WHEN 2 THEN '64kB' ELSE '4MB' END, true);
        EXECUTE 'CREATE TEMP TABLE got AS ' || query;
        same := same AND got_what_is_wanted();
    END LOOP;
    DROP TABLE got;
    SET LOCAL max_parallel_workers_per_gather = 3;
    EXECUTE 'CREATE TEMP TABLE got AS ' || query;
    same := same AND got_what_is_wanted();
END $$;

-- types, of both sides or of one
SELECT c.*, q AS condition FROM (VALUES ('si.i4 = so.i4'), ('si.d = so.d'), ('si.o = so.o'), ('si.i2 = so.i2 AND si.id = so.id'), ('si.c = so.c AND si.p2 = so.p2'),
    ('si.m = so.m AND si.id = so.id'), ('si.i2 = so.i4'), ('si.i4 = so.i2'), ('si.i2 = so.i2 AND si.p2 = so.p2'), ('si.yes = so.yes AND si.c = so.c AND si.p2 = so.p2'),
    ('si.i4 = so.i8'), ('si.i8 = so.i4'), ('si.i8 = so.i8'), ('si.i2 = so.i8'), ('si.f4 = so.f4 AND si.id = so.id'), ('si.i4 = so.i4 AND si.c = so.c'), ('si.i4 / 2 = so.i4 / 2'),
    ('si.t = so.t AND si.i4 = so.i4'), ('si.i4 = so.i4 AND si.n > so.p2')) v(q),
    compare_short('SELECT so.id, so.i4, si.id AS other FROM so JOIN si ON ' || q) c;

-- what of the inner row comes out: nothing, up to 4 bytes, with NULLs and without, and more
SELECT c.*, q AS query FROM (VALUES ('SELECT so.id FROM so JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.p2 FROM so JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.s FROM so JOIN si ON si.i4 = so.i4'),
    ('SELECT so.id, si.s, si.yes FROM so JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.s, si.p2 FROM so JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.n FROM so JOIN si ON si.i4 = so.i4'),
    ('SELECT so.id, si.n FROM so JOIN (SELECT * FROM si WHERE n IS NOT NULL OFFSET 0) si ON si.i4 = so.i4'), ('SELECT so.id, si.i4 FROM so JOIN si ON si.i4 = so.i4'),
    ('SELECT so.id, si.f4 FROM so JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.p8 FROM so JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.n, si.s FROM so JOIN si ON si.i4 = so.i4'),
    ('SELECT so.id, si.t FROM so JOIN si ON si.i4 = so.i4')) v(q), compare_short(q) c;

-- join types, each with keys that come once and again
SELECT c.*, q AS query FROM (VALUES ('SELECT so.id, si.id AS other FROM so LEFT JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.n FROM so LEFT JOIN si ON si.i4 = so.i4 AND si.n % 3 = 0'),
    ('SELECT so.id, si.id AS other FROM so RIGHT JOIN si ON si.i4 = so.i4'), ('SELECT so.id, si.t FROM so FULL JOIN si ON si.i4 = so.i4'),
    ('SELECT so.id FROM so WHERE EXISTS (SELECT FROM si WHERE si.i4 = so.i4)'), ('SELECT so.id FROM so WHERE NOT EXISTS (SELECT FROM si WHERE si.i4 = so.i4)'),
    ('SELECT so.id, sd.id AS other FROM so JOIN sd ON sd.i4 = so.i2'), ('SELECT so.id, sd.id AS other FROM so JOIN sd ON sd.i4 = so.i4'), ('SELECT so.id, sd.t FROM so LEFT JOIN sd ON sd.i4 = so.i4 AND sd.id > so.id'),
    ('SELECT so.id, sd.n FROM so FULL JOIN sd ON sd.i4 = so.i4'), ('SELECT so.id FROM so WHERE EXISTS (SELECT FROM sd WHERE sd.i4 = so.i4 AND sd.id > so.id)'),
    ('SELECT so.id FROM so WHERE NOT EXISTS (SELECT FROM sd WHERE sd.i4 = so.i4)')) v(q), compare_short(q) c;

-- nobody knows of this table whether its keys come again; and a table that is kept over rescans
CREATE TABLE sn (LIKE sd) WITH (autovacuum_enabled = off);
INSERT INTO sn SELECT * FROM sd;
SELECT c.*, q AS query FROM (VALUES ('SELECT so.id, sn.id AS other FROM so JOIN sn ON sn.i4 = so.i4'), ('SELECT so.id, sn.n FROM so LEFT JOIN sn ON sn.i4 = so.i4'),
    ('SELECT v.x, s.* FROM (VALUES (1), (2), (3)) v(x), LATERAL (SELECT so.id, si.n FROM so LEFT JOIN si ON si.i4 = so.i4 WHERE so.id % 4 < v.x OFFSET 0) s'),
    ('SELECT v.x, s.* FROM (VALUES (1), (2), (3)) v(x), LATERAL (SELECT so.id, d.n FROM so JOIN (SELECT i4, n FROM si WHERE id % 4 < v.x OFFSET 0) d ON d.i4 = so.i4 OFFSET 0) s')) v(q), compare_short(q) c;

-- The table takes half of the memory that it takes with keys of 8 bytes, where the values are narrow, too.
CREATE FUNCTION join_memory(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
    SET LOCAL gpuhash.force_offload = on;
    SET LOCAL max_parallel_workers_per_gather = 0;
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    RETURN (regexp_match(plan, '"Memory Usage": (\d+)'))[1];
END $$;
SET gpuhash.engine = cpu;
SET work_mem = '64MB';
CREATE TABLE mi AS SELECT i AS k, i::bigint AS k8, i AS v, i::bigint AS v8, NULLIF(i, 77) AS vn, 'v' || i AS vt FROM generate_series(1, 8000) i;
ANALYZE mi;
SELECT v, join_memory(format('SELECT so.id, mi.%s FROM so JOIN mi ON mi.k = so.id', v)) * 1.0 / join_memory(format('SELECT so.id, mi.%s FROM so JOIN mi ON mi.k8 = so.id', v)) < 0.95 AS smaller
    FROM (VALUES ('v'), ('v8'), ('vn'), ('vt')) v(v);
-- a node above that looks rows up in the table has keys of 8 bytes
SELECT offloaded, result, same FROM compare_aggregate('SELECT sum(so.id), sum(mi.v), count(*) FROM so JOIN mi ON mi.k = so.id');
SELECT offloaded, result, same FROM compare_aggregate('SELECT so.yes, sum(si.id), count(*) FROM so JOIN si ON si.i4 = so.i4 GROUP BY so.yes');

-- a key that is a boolean alone is none that pipelines look up
CREATE TABLE sb AS SELECT true AS yes, 1 AS n UNION ALL SELECT false, 2;
ANALYZE sb;
SET gpuhash.force_offload = on;
SELECT result, same FROM compare_aggregate('SELECT count(*), sum(so.id), sum(sb.n) FROM so JOIN sb ON sb.yes = so.yes');
SELECT result, same FROM compare_aggregate('SELECT sb.n, count(*) FROM so JOIN sb ON sb.yes = so.yes GROUP BY 1');
RESET gpuhash.force_offload;
DROP TABLE sb;

-- more chunks of rows than 4 bytes can refer to: one key, which cannot be parted
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 0;
SET gpuhash.force_offload = on;
SELECT count(*), count(DISTINCT w.n), sum(length(w.t)) FROM (SELECT CASE WHEN id > 2 THEN id + 10 ELSE id END AS k FROM so) o
    JOIN (SELECT 1 + n / 1000000 AS k, n, repeat(chr(97 + n % 26), 66000) AS t FROM generate_series(1, 1100) n OFFSET 0) w ON w.k = o.k;
SELECT join_memory('SELECT so.id, w.* FROM so JOIN (SELECT 1 + n / 1000000 AS k, repeat(chr(97 + n % 26), 66000) AS t FROM generate_series(1, 1100) n OFFSET 0) w ON w.k = so.i4') > 1024 * 64 AS many;
RESET work_mem;
DROP FUNCTION compare_short(text), join_memory(text), short_keys(int, int, int);
DROP TABLE so, si, sd, sn, mi;
DROP TYPE mood;
