-- Every aggregate over every type: NULLs, no rows, extremes, NaN, infinities, scales.
LOAD 'gpuhash';
CREATE TYPE at_mood AS ENUM ('sad', 'fine', 'glad');
CREATE DOMAIN at_domain AS int CHECK (value > -100000);
CREATE DOMAIN at_price AS numeric(9, 3);
CREATE TABLE at (
    id int, g int, b boolean, b_null boolean, i2 int2, i4 int4, i8 int8, dm at_domain,
    n0 numeric(30, 0), n2 numeric(12, 2), n2_nan numeric(12, 2), n38 numeric(38, 10), n60 numeric(60, 20), n_round numeric(8, -3),
    n_small numeric(3, 6), n_price at_price, n_any numeric,
    f4 float4, f8 float8, f4_odd float4, f8_odd float8, f8_tiny float8,
    o oid, d date, tm time, ts timestamp, tz timestamptz,
    x text, v varchar(40), c char(8), iv interval, u uuid, by bytea, e at_mood, ch "char", nm name, m money, all_null int8);
INSERT INTO at SELECT i, i % 7, i % 3 > 0, CASE WHEN i % 4 > 0 THEN i % 5 = 0 END,
    CASE WHEN i % 5 > 0 THEN CASE i % 11 WHEN 1 THEN -32768 WHEN 2 THEN 32767 ELSE i - 500 END END,
    CASE WHEN i % 6 > 0 THEN CASE i % 13 WHEN 1 THEN -2147483648 WHEN 2 THEN 2147483647 ELSE i * 7919 - 3000000 END END,
    -- sums of some groups leave int8, and those of the squares 128 bits
    CASE WHEN i % 8 > 0 THEN CASE WHEN i % 7 = 3 THEN 9223372036854775807 WHEN i % 7 = 4 THEN -9223372036854775808 ELSE i * 1000000007::int8 END END,
    i % 100,
    CASE WHEN i % 7 = 5 THEN 999999999999999999999999999999 ELSE i * 12345678901234567::numeric - 5e18 END,
    CASE WHEN i % 9 > 0 THEN i * 1.37 - 700 END,
    CASE WHEN i % 50 = 7 THEN 'NaN' ELSE i * 1.37 - 700 END,
    CASE WHEN i % 7 = 2 THEN 9999999999999999999999999999.9999999999 WHEN i % 7 = 6 THEN -9999999999999999999999999999 ELSE i * 1.0000000001 END,
    CASE WHEN i % 10 = 0 THEN 9999999999999999999999999999999999999999.99999999999999999999 ELSE i / 7.0 END,
    i * 4321, i % 1000 / 1e6::numeric, CASE WHEN i % 5 > 0 THEN i * 1.001 END,
    CASE i % 60 WHEN 1 THEN 'NaN' WHEN 2 THEN 1e100 WHEN 3 THEN 0.000000000000000000000000000000000001 WHEN 4 THEN 1.5000 ELSE i * 0.1 END,
    CASE WHEN i % 6 > 0 THEN (i - 500) / 7.0 END, CASE WHEN i % 6 > 0 THEN (i - 500) * 1e10 / 7.0 END,
    (CASE i % 70 WHEN 1 THEN 'NaN' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' WHEN 4 THEN '-0' WHEN 5 THEN '0' ELSE (i / 3.0)::text END)::float4,
    (CASE i % 70 WHEN 1 THEN 'NaN' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' WHEN 4 THEN '-0' WHEN 5 THEN '0' ELSE (i / 3.0)::text END)::float8,
    CASE WHEN i % 2 = 0 THEN 5e-324 ELSE -2e-310 END,
    i * 4000000::int8,
    CASE WHEN i % 7 > 0 THEN (CASE i % 80 WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' WHEN 3 THEN '4713-01-01 BC' ELSE (date '2000-01-01' + i)::text END)::date END,
    CASE i % 90 WHEN 1 THEN time '24:00' ELSE time '00:00' + i % 1440 * interval '1 minute' END,
    CASE WHEN i % 7 > 1 THEN (CASE i % 80 WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' ELSE (timestamp '2000-01-01' + i * interval '7 hours')::text END)::timestamp END,
    timestamptz '1990-01-01 UTC' + i * interval '77 days',
    CASE WHEN i % 5 > 0 THEN repeat('x', i % 40) || i % 90 END, 'v' || i % 90, 'c' || i % 50,
    i * interval '1 hour', md5(i::text)::uuid, decode(md5(i::text), 'hex'), (ARRAY['sad', 'fine', 'glad'])[i % 3 + 1]::at_mood,
    chr(65 + i % 26), 'name ' || i % 20, i, NULL
FROM generate_series(1, 1000) i;
ANALYZE at;

-- For each column: the aggregates that were offloaded, those that were not, and what came out
-- different.  %s in the query are the aggregate and the column.  Floats are added by the CPU engine.
CREATE FUNCTION at_report(query text, OUT "column" name, OUT offloaded text, OUT declined text, OUT different text)
RETURNS SETOF record LANGUAGE sql AS $$
    SELECT a.attname, string_agg(f.name, ' ' ORDER BY f.place) FILTER (WHERE c.offloaded > 0),
           string_agg(f.name, ' ' ORDER BY f.place) FILTER (WHERE c.offloaded = 0),
           string_agg(f.name || ': ' || c.same, '; ' ORDER BY f.place) FILTER (WHERE c.same <> 'same')
    FROM pg_attribute a,
         unnest(ARRAY['count', 'sum', 'avg', 'min', 'max', 'var_pop', 'var_samp', 'variance', 'stddev_pop', 'stddev_samp', 'stddev',
                      'bool_and', 'bool_or', 'every', 'bit_or', 'array_agg']) WITH ORDINALITY f(name, place),
         LATERAL compare_aggregate(format(query, f.name, a.attname),
                                   engine => CASE WHEN a.attname ~ '^f[48]' AND f.name ~ 'sum|avg|var|std' THEN 'cpu' END) c
    WHERE a.attrelid = 'at'::regclass AND a.attnum > 2 AND NOT a.attisdropped AND c.result !~ '^42(883|725|804)'
    GROUP BY a.attnum, a.attname ORDER BY a.attnum
$$;
-- (18 has extremes of bytea)
SELECT * FROM at_report('SELECT %s(%s) FROM at') WHERE "column" <> 'by';
-- one group or several; all NULL; without rows; FILTER
SELECT * FROM at_report('SELECT g, %1$s(%2$s), count(*) FROM at GROUP BY g') WHERE different IS NOT NULL;
SELECT * FROM at_report('SELECT %1$s(%2$s), count(%2$s) FROM at WHERE id = 8') WHERE different IS NOT NULL;
SELECT * FROM at_report('SELECT %1$s(%2$s), count(%2$s) FROM at WHERE %2$s IS NULL') WHERE different IS NOT NULL;
SELECT * FROM at_report('SELECT %1$s(%2$s), count(%2$s) FROM at WHERE id < 0') WHERE different IS NOT NULL;
SELECT * FROM at_report('SELECT g, %1$s(%2$s), count(%2$s) FROM at WHERE id < 0 GROUP BY g') WHERE different IS NOT NULL;
SELECT * FROM at_report('SELECT g, %1$s(%2$s) FILTER (WHERE id %% 5 = 2 AND b), %1$s(%2$s) FILTER (WHERE b_null) FROM at GROUP BY g') WHERE different IS NOT NULL;
-- as a key, and as two
SELECT a.attname, k.offloaded, k.result, k.same, two.offloaded AS two_offloaded, two.result AS two_groups, two.same AS two_same
FROM pg_attribute a,
     LATERAL compare_aggregate(format('SELECT %s, count(*), sum(i8), min(f8) FROM at GROUP BY 1', a.attname)) k,
     LATERAL compare_aggregate(format('SELECT %s, g, count(*), max(n2) FROM at GROUP BY 1, 2', a.attname)) two
WHERE a.attrelid = 'at'::regclass AND a.attnum > 0 ORDER BY a.attnum;
-- as keys together, below DISTINCT, and as what is counted
SELECT * FROM compare_aggregate('SELECT u, nm, count(*) FROM at GROUP BY u, nm');
SELECT * FROM compare_aggregate('SELECT nm, by, g, count(u), sum(i8) FROM at WHERE u > ''40000000-0000-0000-0000-000000000000'' GROUP BY 1, 2, 3');
SELECT * FROM compare_aggregate('SELECT nm, count(DISTINCT u) FROM at GROUP BY nm');
SELECT * FROM compare_aggregate('SELECT coalesce(CASE WHEN g > 3 THEN u END, ''ffffffff-0000-0000-0000-000000000000''), count(*) FROM at GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT DISTINCT nm, g FROM at');
SELECT * FROM compare_aggregate('SELECT nm, g, count(by) FROM at GROUP BY ROLLUP (nm, g)');
SELECT nm, count(*), count(u) FROM at WHERE u < '20000000-0000-0000-0000-000000000000' GROUP BY nm HAVING nm < 'name 13' ORDER BY nm;
-- all at once
SELECT * FROM compare_aggregate('SELECT count(*), count(i4), sum(i2), sum(i4), sum(i8), sum(n2), sum(f8), avg(i2), avg(i4), avg(i8), avg(n2), avg(f4), avg(f8), min(i2), max(i4), min(i8), max(n2), min(f4), max(f8), min(d), max(tm), min(ts), max(tz), bool_and(b), bool_or(b_null), stddev(i4), var_pop(n2), variance(f8) FROM at', engine => 'cpu');
SELECT * FROM compare_aggregate('SELECT g, b, count(*), count(i4), sum(i2), sum(i4), sum(i8), sum(n2), sum(f8), avg(i2), avg(i4), avg(i8), avg(n2), avg(f4), avg(f8), min(i2), max(i4), min(i8), max(n2), min(f4), max(f8), min(d), max(tm), min(ts), max(tz), bool_and(b), bool_or(b_null), stddev(i4), var_pop(n2), variance(f8) FROM at GROUP BY g, b', engine => 'cpu');

-- arguments of every kind of expression
CREATE TEMP TABLE at_arguments (position serial, argument text);
INSERT INTO at_arguments (argument) VALUES ('i4 + i2'), ('i8 - 5'), ('n2 * n2'), ('n2 * i4'), ('n2 * (1 - n_price)'), ('n0 * n38'), ('n38 + n2'), ('-n60'),
    ('f8 * 2'), ('f4 + f8'), ('f8 / 3'), ('i4::numeric'), ('i8::float8'), ('n2::int8'), ('n2::float8'), ('abs(i4)'), ('i4 % 10'), ('i4 / 7'), ('CASE WHEN b THEN i4 ELSE i2 END'),
    ('CASE WHEN i4 > 0 THEN n2 END'), ('coalesce(i4, -1)'), ('coalesce(n2, 0)'), ('nullif(i2, 32767)'), ('CASE g WHEN 1 THEN 1 WHEN 2 THEN 2.50 ELSE 0 END'), ('1'), ('2.50'), ('NULL::int4'),
    ('dm + 1'), ('id::int2'), ('d - date ''2000-01-01'''), ('length(x)'), ('i4::text::int8'), ('sqrt(abs(f8))'), ('(b AND b_null)::int'), ('n2 / 3'), ('round(n38, 2)'), ('extract(year FROM d)'),
    ('greatest(i4, i2)'), ('n2_nan + 1'), ('n2_nan * n2'), ('f8_odd - f8_odd'), ('f4_odd'), ('1e200::float8 * f8_tiny');
SELECT a.argument, s.offloaded, s.result, s.same, m.same AS extremes, v.same AS moments, g.same AS grouped
FROM at_arguments a, LATERAL (SELECT CASE WHEN argument ~ 'f[48]|float' THEN 'cpu' END AS engine) e,
     LATERAL compare_aggregate(format('SELECT sum(%1$s), avg(%1$s), count(%1$s) FROM at', argument), engine => engine) s,
     LATERAL compare_aggregate(format('SELECT min(%1$s), max(%1$s) FROM at', argument)) m,
     LATERAL compare_aggregate(format('SELECT stddev(%1$s), var_pop(%1$s) FROM at', argument), engine => engine) v,
     LATERAL compare_aggregate(format('SELECT g, sum(%1$s), avg(%1$s) FILTER (WHERE b), variance(%1$s), max(%1$s), min(%1$s) FROM at GROUP BY g', argument), engine => engine) g
ORDER BY a.position;
-- FILTER of every kind of condition, and WHERE
CREATE TEMP TABLE at_conditions (position serial, condition text);
INSERT INTO at_conditions (condition) VALUES ('b'), ('NOT b_null'), ('b_null IS NULL'), ('b_null IS NOT TRUE'), ('b OR b_null'), ('i4 > 5 AND i8 < 0'), ('i4 IS NULL'), ('n2 > 3.5'), ('n2_nan = ''NaN'''),
    ('n_any > 5'), ('f8_odd = ''NaN'''), ('f8_odd = 0'), ('f4_odd <> 0.1'), ('x = ''xx82'''), ('x < ''xxx'''), ('x LIKE ''%2'''), ('v IN (''v1'', ''v2'', NULL)'), ('c = ''c3'''), ('c < ''c3'''), ('d = ''infinity'''), ('d < ts'),
    ('tz < now()'), ('ts BETWEEN ''2000-02-01'' AND ''2000-03-01'''), ('tm >= ''12:00'''), ('e = ''sad'''), ('u > ''80000000-0000-0000-0000-000000000000'''), ('u = md5(''7'')::uuid OR u <= ''10000000-0000-0000-0000-000000000000'''),
    ('u IN (md5(''1'')::uuid, md5(''2'')::uuid, NULL)'), ('u NOT IN (md5(''1'')::uuid, md5(''2'')::uuid)'), ('least(u, md5(''500'')::uuid) = u'), ('nm = ''name 7'' OR nm > ''name 9'''), ('nm IN (''name 1'', ''name 2'', NULL)'), ('nm < ''name 3'' COLLATE "POSIX"'), ('nm = ''name 7''::text'),
    ('by >= ''\xf0'''), ('by = decode(md5(''7''), ''hex'')'), ('by IN (''\x'', decode(md5(''7''), ''hex''))'),
    ('i4 IN (4919, -2992081)'), ('g = ANY (ARRAY[1, 3])'), ('g <> ALL (ARRAY[1, 3])'),
    ('i4 IS DISTINCT FROM i2'), ('(g, b) = (1, true)'), ('(g, id) < (3, 100)'), ('random() < 2'), ('true'), ('NULL'), ('false'), ('id = (SELECT max(id) / 2 FROM at)'), ('EXISTS (SELECT FROM at_arguments WHERE position = g)');
SELECT c.condition, f.offloaded, f.same, w.offloaded AS where_offloaded, w.result AS where_result, w.same AS where_same
FROM at_conditions c,
     LATERAL compare_aggregate(format('SELECT g, count(*) FILTER (WHERE %1$s), sum(i8) FILTER (WHERE %1$s), avg(i2::float8 / 8) FILTER (WHERE %1$s AND b) FROM at GROUP BY g', condition)) f,
     LATERAL compare_aggregate(format('SELECT g, count(*), sum(n2) FROM at WHERE %1$s GROUP BY g', condition)) w
ORDER BY c.position;

-- numerics without a declared scale, infinities, many digits
CREATE TABLE at_numeric (g int, n numeric, w numeric(200, 60));
INSERT INTO at_numeric SELECT i % 9, (CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN 'inf' WHEN 2 THEN '-inf' WHEN 3 THEN i || '.0' WHEN 4 THEN i || '.00' ELSE '1e' || i END)::numeric, i * 1e100 FROM generate_series(1, 100) i;
INSERT INTO at_numeric VALUES (10, 'inf', 1), (10, '-inf', -1), (11, 'inf', 1e139), (11, 'NaN', 'NaN'), (12, 0, 0), (12, 0.000, 0), (13, 1.10, 1.1), (13, 1.1000, 1.1);
SELECT * FROM compare_aggregate('SELECT g, sum(n), avg(n), min(n), max(n), stddev(n), count(n) FROM at_numeric GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(w), avg(w), min(w), max(w), stddev(w), var_pop(w), count(w) FROM at_numeric GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(w * w), avg(w + n) FROM at_numeric GROUP BY g');
SELECT * FROM compare_aggregate('SELECT n, count(*) FROM at_numeric GROUP BY n');
SELECT * FROM compare_aggregate('SELECT w, count(*), sum(w), sum(g) FROM at_numeric GROUP BY w');
SELECT * FROM compare_aggregate('SELECT w + 1.50, count(*), max(w) FROM at_numeric GROUP BY w + 1.50');
-- how many digits a result shows
CREATE TABLE at_scales (n1 numeric(10, 1), n5 numeric(10, 5), n9 numeric(12, 9), i int8);
INSERT INTO at_scales VALUES (1, 1, 1, 1), (2.5, 0.00001, 0.000000001, 3);
SELECT * FROM compare_aggregate('SELECT sum(n1), sum(n5), sum(n9), avg(n1), avg(n5), avg(n9), avg(i), sum(n1 * n5), avg(n1 * n5), stddev(n1), stddev(n5), variance(n9), var_pop(i), sum(n1 + n9), min(n1 * n9), avg(n1 + i) FROM at_scales');
SELECT sum(n1), sum(n5), avg(n1), avg(n9), stddev(n1), var_pop(i), sum(n1 * n5), avg(n1 + i) FROM at_scales;
SET gpuhash.force_offload = on;
SELECT sum(n1), sum(n5), avg(n1), avg(n9), stddev(n1), var_pop(i), sum(n1 * n5), avg(n1 + i) FROM at_scales;
RESET gpuhash.force_offload;
-- variance and average near what a float or 64 bits can tell
CREATE TABLE at_near (i8 int8, n numeric(30, 6), f8 float8, f4 float4);
INSERT INTO at_near SELECT 9223372036854775807 - i, 123456789012345678901234 + i * 0.000001, 1e15 + i, 16777216 + i FROM generate_series(0, 99) i;
SELECT * FROM compare_aggregate('SELECT sum(i8), avg(i8), stddev(i8), var_pop(i8), sum(n), avg(n), stddev(n), var_samp(n), sum(f8), avg(f8), stddev(f8), var_pop(f8), avg(f4), stddev_pop(f4) FROM at_near', engine => 'cpu');
SELECT * FROM compare_aggregate('SELECT i8 % 3, sum(i8), avg(i8), stddev(i8), avg(n), stddev(n), avg(f8), stddev(f8), sum(f4) FROM at_near GROUP BY 1', engine => 'cpu');
-- the sums of int2 and int4 are int8, whatever comes in between
SELECT * FROM compare_aggregate('SELECT sum(i4), avg(i4) FROM (SELECT CASE WHEN i <= 5000 THEN 2147483647 ELSE -2147483648 END AS i4 FROM generate_series(1, 10000) i) s');
DROP TABLE at, at_numeric, at_scales, at_near;
DROP FUNCTION at_report(text);
DROP TYPE at_mood;
DROP DOMAIN at_domain, at_price;
