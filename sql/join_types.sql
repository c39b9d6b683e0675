-- Join keys of every kind of type: exact encodings, hashes, cross-type equality.
LOAD 'gpuhash';
CREATE TYPE jt_pair AS (x int, y text);
CREATE TYPE jt_mood AS ENUM ('sad', 'fine', 'glad');
CREATE DOMAIN jt_domain AS int CHECK (value > -100000);
CREATE TABLE jt AS SELECT
    i AS id,
    (i % 2 = 0) AS b,
    (i % 300)::int2 AS i2,
    (i % 300 - 150)::int4 AS i4,
    (i % 300 - 150)::int8 AS i8,
    (CASE i % 5 WHEN 0 THEN '-0' WHEN 1 THEN '0' WHEN 2 THEN 'NaN' WHEN 3 THEN '0.1' ELSE '1e10' END)::float4 AS f4,
    (CASE i % 6 WHEN 0 THEN '-0' WHEN 1 THEN '0' WHEN 2 THEN 'NaN' WHEN 3 THEN '0.1' WHEN 4 THEN '1e10' ELSE 'Infinity' END)::float8 AS f8,
    (CASE i % 4 WHEN 0 THEN '1.0' WHEN 1 THEN '1.00' WHEN 2 THEN 'NaN' ELSE (i % 50)::text END)::numeric AS n,
    (i % 100)::text AS t,
    (i % 100)::text::varchar(10) AS v,
    rpad((i % 100)::text, i % 3 + 2)::bpchar AS c,
    ('key ' || i % 100)::name AS nm,
    md5((i % 200)::text)::uuid AS u,
    decode(md5((i % 90)::text), 'hex') AS by,
    DATE '2020-01-01' + i % 400 AS d,
    TIMESTAMP '2020-01-01' + (i % 400) * INTERVAL '1 hour' AS ts,
    TIMESTAMPTZ '2020-01-01 00:00+00' + (i % 400) * INTERVAL '1 hour' AS tz,
    TIME '00:00' + (i % 100) * INTERVAL '1 minute' AS tm,
    (i % 60) * INTERVAL '1 minute' AS iv,
    (ARRAY['sad', 'fine', 'glad'])[i % 3 + 1]::jt_mood AS e,
    (i % 150)::oid AS o,
    ARRAY[i % 20, i % 3] AS a,
    (i % 40 - 20)::jt_domain AS dm,
    ('192.168.0.' || i % 100)::inet AS ip,
    jsonb_build_object('k', i % 30) AS j,
    int4range(i % 50, i % 50 + 10) AS r,
    ROW(i % 20, (i % 7)::text)::jt_pair AS rw
FROM generate_series(1, 600) i;
UPDATE jt SET i4 = NULL, t = NULL, n = NULL, f8 = NULL WHERE id % 37 = 0;
ANALYZE jt;

CREATE TEMP TABLE jt_keys (position int, condition text);
INSERT INTO jt_keys VALUES
    (1, 'x.b = y.b AND x.id < 40 AND y.id < 40'), (2, 'x.i2 = y.i2'), (3, 'x.i4 = y.i4'), (4, 'x.i8 = y.i8'),
    (5, 'x.i2 = y.i4'), (6, 'x.i4 = y.i8'), (7, 'x.i8 = y.i2'),
    (8, 'x.f4 = y.f4 AND x.id < 100'), (9, 'x.f8 = y.f8 AND x.id < 100'), (10, 'x.f4 = y.f8 AND x.id < 100'),
    (11, 'x.n = y.n'), (12, 'x.t = y.t'), (13, 'x.v = y.v'), (14, 'x.c = y.c'), (15, 'x.t = y.v'), (16, 'x.nm = y.nm'),
    (17, 'x.nm = (''key '' || y.t)'), (18, 'x.u = y.u'), (19, 'x.by = y.by'), (20, 'x.d = y.d'), (21, 'x.ts = y.ts'),
    (22, 'x.tz = y.tz'), (23, 'x.tm = y.tm'), (24, 'x.iv = y.iv'), (25, 'x.e = y.e AND x.id < 60 AND y.id < 60'), (26, 'x.o = y.o'),
    (27, 'x.a = y.a'), (28, 'x.dm = y.dm'), (29, 'x.dm = y.i8'), (30, 'x.ip = y.ip'), (31, 'x.j = y.j'), (32, 'x.r = y.r'),
    (33, 'x.i4 = y.i4 AND x.t = y.t'), (34, 'x.i4 = y.i8 AND x.i2 = y.i2'), (35, 'x.i4 = y.i4 AND x.d = y.d'),
    (36, 'x.b = y.b AND x.i2 = y.i2 AND x.e = y.e'), (37, 'x.i8 = y.i8 AND x.tz = y.tz AND x.u = y.u'),
    (38, 'lower(x.t) = upper(y.t)'), (39, 'x.i4::numeric = y.n'), (40, 'x.i4 % 7 = y.i8 % 11'),
    (41, 'x.t = y.t COLLATE "C"'), (42, 'x.rw = y.rw'), (43, 'x.i2 = y.i4 AND x.i4 = y.i2');
SELECT k.position, k.condition, i.offloaded, i.same, i.rows, l.same AS left_same, l.rows AS left_rows
FROM jt_keys k,
     LATERAL compare_join('SELECT x.id, y.id AS yid FROM jt x JOIN jt y ON ' || k.condition) i,
     LATERAL compare_join('SELECT x.id, y.id AS yid, y.t FROM jt x LEFT JOIN jt y ON ' || k.condition) l
ORDER BY k.position;

-- values of every type through the join
SELECT * FROM compare_join('SELECT x AS xx, y AS yy FROM jt x JOIN jt y ON x.i2 = y.id');
SELECT * FROM compare_join('SELECT x AS xx, y AS yy FROM jt x LEFT JOIN jt y ON x.i4 = y.id');
-- and through joins below groups
CREATE TABLE jt_macs AS SELECT i AS id, ('08:00:2b:01:02:0' || i % 9)::macaddr AS m, ('08:00:2b:01:02:03:04:0' || i % 9)::macaddr8 AS m8, ('key ' || i)::name AS nm, md5(i::text)::uuid AS u FROM generate_series(1, 300) i;
ANALYZE jt_macs;
SELECT * FROM compare_aggregate('SELECT y.u, y.nm, count(*), sum(x.i8) FROM jt x JOIN jt_macs y ON x.i2 = y.id GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT y.m, y.m8, count(*), count(y.u) FROM jt x LEFT JOIN jt_macs y ON x.i2 = y.id AND y.u <> x.u GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT count(*), sum(y.id) FROM jt x JOIN jt_macs y ON x.i2 = y.id WHERE x.nm < y.nm AND (x.u > y.u OR y.m = ''08:00:2b:01:02:03'')');
SELECT * FROM compare_aggregate('SELECT x.by, count(*) FROM jt x JOIN jt_macs y ON x.u = y.u GROUP BY 1');
SELECT y.m, y.m8, max(y.id), count(*) FROM jt x JOIN jt_macs y ON x.i2 = y.id WHERE y.nm IN ('key 7', 'key 16', 'key 17') GROUP BY 1, 2 ORDER BY 1;

-- wide and TOASTed values, on both sides
CREATE TABLE jt_wide AS
    SELECT i AS id, i % 20 AS k, repeat(md5(i::text), 200) AS plain,
           (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 300) j) AS toasted
    FROM generate_series(1, 100) i;
SELECT * FROM compare_join('SELECT x.id, y.id AS yid, x.plain, md5(y.toasted) AS m, y.toasted FROM jt_wide x JOIN jt_wide y ON x.k = y.k');
SELECT * FROM compare_join('SELECT x.id, y.id AS yid FROM jt_wide x JOIN jt_wide y ON x.toasted = y.toasted');

-- an operator class of the user's own: equal modulo 10
CREATE FUNCTION jt_mod_eq(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1 % 10 OPERATOR(pg_catalog.=) $2 % 10';
CREATE FUNCTION jt_mod_hash(int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hashint4($1 % 10)';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = jt_mod_eq, COMMUTATOR = ===, HASHES);
CREATE OPERATOR CLASS jt_mod_ops FOR TYPE int USING hash AS OPERATOR 1 ===, FUNCTION 1 jt_mod_hash(int);
SELECT * FROM compare_join('SELECT x.id, y.id AS yid FROM jt x JOIN jt y ON x.id === y.id AND x.id < 100');
DROP OPERATOR CLASS jt_mod_ops USING hash;
DROP OPERATOR FAMILY jt_mod_ops USING hash;
DROP OPERATOR === (int, int);
DROP FUNCTION jt_mod_hash(int), jt_mod_eq(int, int);
DROP TABLE jt, jt_wide, jt_macs;
DROP TYPE jt_mood, jt_pair;
DROP DOMAIN jt_domain;
