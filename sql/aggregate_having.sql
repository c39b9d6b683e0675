-- HAVING: conditions that are asked of some hundred groups at once, and those that PostgreSQL's expressions are.
LOAD 'gpuhash';
CREATE TABLE ah (id int, g int, k int8, i2 int2, i4 int4, i8 int8, n numeric(12, 2), m numeric(20, 4), w numeric(60, 0), any_n numeric, f4 float4, f8 float8, d date, ts timestamp, tz timestamptz, o oid, b bool, t text, c char(8));
INSERT INTO ah SELECT i, CASE WHEN i % 17 > 0 THEN i % 1500 END, i % 1300 - 650, i % 4 - 1, CASE WHEN i % 5 > 0 THEN i % 900 - 300 END, CASE i % 1200 WHEN 7 THEN 9223372036854775807 WHEN 8 THEN -9223372036854775808 ELSE i % 50 END,
    CASE i % 700 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' ELSE (i % 100) / 8.0 END, CASE WHEN i % 3 > 0 THEN i % 333 / 7.0 END, CASE i % 400 WHEN 3 THEN 1e50 WHEN 4 THEN -1e50 ELSE i % 20 END, i % 10,
    (ARRAY['0', '-0', 'NaN', 'inf', '-inf', '1.5', '-2', NULL])[i % 8 + 1]::float4, CASE i % 1000 WHEN 1 THEN 'NaN' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' WHEN 4 THEN NULL ELSE i % 70 / 8.0 END,
    CASE i % 90 WHEN 0 THEN 'infinity' WHEN 1 THEN NULL ELSE date '2000-01-01' + i % 400 END, timestamp '2000-01-01' + i % 400 * interval '1 hour', timestamptz '2000-01-01 00:00+0' + i % 40 * interval '1 day', 4294967295 - i % 1400, CASE WHEN i % 7 > 0 THEN i % 3 = 0 END,
    CASE i % 12 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 't' || i % 450 END, CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN 'a ' ELSE 'c' || i % 350 END
FROM generate_series(1, 9000) i;
ANALYZE ah;
CREATE TEMP TABLE ah_having (position serial, keys text, condition text);
-- aggregates of all types: equal and not, in order, both ways, NULLs
INSERT INTO ah_having (keys, condition) VALUES
    ('g', 'count(*) > 5'), ('g', 'count(*) = 6'), ('g', 'count(*) <> 6'), ('g', '5 >= count(*)'), ('g', 'count(i4) BETWEEN 4 AND 5'), ('g', 'count(i4) < 5::int2'), ('g', 'count(*) > 5.5'), ('g', 'count(*) > 1e30'), ('g', 'count(b) > ''6''::float8'),
    ('g', 'sum(i2) > 3'), ('g', 'sum(i4) > 600'), ('g', 'sum(i4) IS NULL'), ('g', 'sum(i4) IS NOT NULL AND sum(i4) < 0'), ('g', 'sum(i8) > 100'), ('g', 'sum(i8) >= 9223372036854775807'), ('g', 'sum(i8) < -9223372036854775808 + 100.5'),
    ('g', 'sum(n) > 35'), ('g', 'sum(n) > 35.125'), ('g', 'sum(n) = 37.50'), ('g', 'sum(n) <> ''NaN'''), ('g', 'sum(n) = ''NaN'''), ('g', 'sum(n) < ''Infinity'''), ('g', 'sum(n) IS NULL'), ('g', 'sum(m) > 50.00001'), ('g', 'sum(w) > 100'), ('g', 'sum(w) < 0'), ('g', 'sum(w) >= 1e50'),
    ('g', 'min(n) = 0'), ('g', 'max(n) > 12'), ('g', 'max(n) = ''NaN'''), ('g', 'min(w) < -5'), ('g', 'max(w) IN (17, 18.0)'), ('g', 'min(i2) = -1'), ('g', 'max(i4) IN (1, 2, 599, NULL)'), ('g', 'max(i4) NOT IN (598, 599)'), ('g', 'min(i8) = -9223372036854775808'),
    ('g', 'sum(f8) > 20'), ('g', 'sum(f8) = ''NaN'''), ('g', 'sum(f8) < ''inf'''), ('g', 'sum(f8) > ''NaN'''), ('g', 'max(f4) >= ''inf'''), ('g', 'min(f4) = 0'), ('g', 'max(f8) > 8.5'), ('g', 'max(f8) IS NULL'), ('g', 'min(f8) < 0.5::float4'),
    ('g', 'max(d) = ''infinity'''), ('g', 'min(d) > ''2000-02-01'''), ('g', 'min(d) < timestamp ''2000-01-10 12:00'''), ('g', 'max(ts) BETWEEN ''2000-01-10'' AND ''2000-01-14 12:00'''), ('g', 'max(tz) > ''2000-02-08 00:00+0'''), ('g', 'max(o) > 4294967290'), ('g', 'max(ts) - min(ts) > interval ''15 days'''),
    ('g', 'bool_or(b)'), ('g', 'bool_and(b)'), ('g', 'NOT bool_and(b)'), ('g', 'bool_and(b) IS NULL'), ('g', 'bool_or(b) IS NOT FALSE'), ('g', 'every(b) = false'),
    ('g', 'avg(i4) > 250'), ('g', 'avg(i4) = 147.5'), ('g', 'avg(i2) > 0.5'), ('g', 'avg(i8) > 1e17'), ('g', 'avg(n) > 7'), ('g', 'avg(n) > 6.3333333333333333'), ('g', 'avg(m) BETWEEN 20 AND 25'), ('g', 'avg(w) < 0'), ('g', 'avg(f8) > 5'), ('g', 'avg(f8) = ''NaN'''), ('g', 'avg(f4) IS NOT NULL'), ('g', 'avg(any_n) > 4'),
    ('g', 'stddev(i4) > 100'), ('g', 'var_pop(f8) > 5'), ('g', 'stddev_samp(f8) < 2'), ('id', 'variance(f8) IS NULL'), ('k', 'stddev(f8) IS NOT NULL'), ('g', 'sum(any_n) > 30'),
    ('g', 'sum(n) FILTER (WHERE i2 > 0) > 20'), ('g', 'count(*) FILTER (WHERE b) = 2'), ('g', 'sum(n * 2 + m) > 150'), ('g', 'sum(CASE WHEN b THEN n ELSE 0 END) > 5'), ('g', 'avg(CASE WHEN b THEN n ELSE 0 END) > 1.2'), ('g', 'sum(n / m) > 3'),
-- keys
    ('g', 'g IS NULL'), ('g, b', 'g > 700 AND b'), ('k', 'k < -600 OR count(*) > 100'), ('n', 'n > 5 OR count(*) > 1000'), ('n', 'n = ''NaN'' OR n IS NULL OR count(*) < 0'), ('w', 'w > 1e20 OR count(*) < 0'), ('m', 'm * 2 + count(*) > 100'), ('f8', 'f8 = ''NaN'' OR f8 > 8 OR count(*) = 0'), ('f4, g', 'f4 = 0 OR count(*) > 99'),
    ('t', 't = ''t7'' OR t = '''' OR count(*) > 300'), ('t', 't LIKE ''t1%'' AND count(*) > 1'), ('t', 't IS NULL OR length(t) < 3 AND count(*) > 0'), ('c', 'c = ''a'' OR c = ''c7'' OR count(*) > 10000'), ('d', 'd > ''2000-12-31'' AND count(*) > 1'), ('o', 'o = 4294967295 OR count(*) < 0'), ('g % 300', 'g % 300 > 290 OR count(*) > 999'), ('g, t', 'g = 7 OR t = ''t7'' OR count(*) > 9'),
-- several aggregates; arithmetic; what may fail; what no program has
    ('g', 'sum(i4) > count(*) * 100'), ('g', 'sum(i4) / count(*) > 100'), ('g', 'sum(n) / count(n) > 7'), ('g', 'sum(n) / sum(m) > 1'), ('g', 'max(i4) - min(i4) > 500 AND sum(n) > 20'), ('g', 'max(i8) + 1 > 100'), ('g', 'count(*) > 5 AND max(i8) + 1 > 40'), ('g', 'max(i8) < 1000 AND max(i8) + 1 > 49'), ('g', '100 / sum(i2) > 30'), ('g', 'sum(i2) > 0 AND 100 / sum(i2) > 30'), ('g', 'CASE WHEN sum(i2) > 0 THEN 100 / sum(i2) > 30 END'),
    ('g', 'sum(n)::text LIKE ''3%'''), ('g', 'count(*) > 5 AND sum(n)::text LIKE ''3%'''), ('g', 'sum(n)::text LIKE ''3%'' AND count(*) > 5'), ('g', 'sum(n) > 20 AND sum(n)::text LIKE ''3%'' AND max(n) < 12'), ('g', 'true'), ('g', 'false'), ('g', 'NULL'), ('g', 'count(*) > NULL'), ('g', 'coalesce(sum(i4), 0) = 0'), ('g', 'sum(i4) IS DISTINCT FROM 0'), ('g', 'nullif(count(*), 6) IS NULL'),
    ('g', 'sum(n) > (SELECT avg(n) * 3 FROM ah WHERE n < 10)'), ('g', 'sum(n) > (SELECT n FROM ah WHERE false)'), ('g', 'count(*) > (SELECT 1 / min(i2 + 1) FROM ah)'), ('g', 'count(*) > 5 AND sum(i4) > (SELECT 500)'), ('g', 'EXISTS (SELECT FROM ah x WHERE x.id = sum(ah.i4))'), ('g', 'random() < 2 AND count(*) > 5'), ('g', 'max(ts) > now() OR count(*) = 6');
SELECT h.keys, h.condition, c.offloaded, c.result AS groups, c.same, p.same AS parallel
FROM ah_having h, LATERAL compare_aggregate(format('SELECT %1$s, count(*), sum(n), sum(i4) FROM ah GROUP BY %1$s HAVING %2$s', keys, condition)) c,
     LATERAL compare_aggregate(format('SELECT %1$s, min(n) FROM ah GROUP BY %1$s HAVING %2$s', keys, condition), 2) p
WHERE condition NOT LIKE '%f8%' AND condition NOT LIKE '%f4%' ORDER BY h.position;
-- floats are added in their order
SELECT h.keys, h.condition, c.offloaded, c.result AS groups, c.same
FROM ah_having h, LATERAL compare_aggregate(format('SELECT %1$s, count(*), sum(f8) FROM ah GROUP BY %1$s HAVING %2$s', keys, condition), 0, false, 'cpu') c
WHERE condition LIKE '%f8%' OR condition LIKE '%f4%' ORDER BY h.position;
-- groups that are read back from files
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT count(*), sum(c.offloaded), count(*) FILTER (WHERE c.same = 'same') AS same, string_agg(condition || ': ' || c.same, '; ') FILTER (WHERE c.same <> 'same') AS differ
FROM ah_having h, LATERAL compare_aggregate(format('SELECT %1$s, id %% 4, count(*), sum(n), count(t) FROM ah GROUP BY %1$s, id %% 4 HAVING %2$s', keys, replace(condition, 'count(*) > 5', 'count(*) > 2')), 0, false, 'cpu') c
WHERE keys <> 'g, t';
SELECT * FROM compare_aggregate('SELECT k, g, t, id, sum(n) FROM ah GROUP BY k, g, t, id HAVING sum(n) > 12');
SELECT * FROM compare_aggregate('SELECT k, g, t, id, sum(n) FROM ah GROUP BY k, g, t, id HAVING sum(n) > 12', 2);
RESET work_mem;
RESET hash_mem_multiplier;

-- one group, or none
SELECT h.condition, c.result AS rows, c.same, e.result AS of_nothing, e.same
FROM (VALUES ('count(*) > 0'), ('count(*) = 0'), ('sum(n) IS NULL'), ('sum(i4) > 5'), ('avg(i4) > 5'), ('max(t) IS NULL'), ('1 / count(*) = 0')) h(condition),
     LATERAL compare_aggregate('SELECT count(*), sum(i4) FROM ah HAVING ' || condition) c, LATERAL compare_aggregate('SELECT count(*), sum(i4) FROM ah WHERE id < 0 HAVING ' || condition) e;
SELECT * FROM compare_aggregate('SELECT g, count(*) FROM ah WHERE id < 0 GROUP BY g HAVING count(*) > 5');

-- what a user's function sees is what it would see: conditions that cost less are asked before, and none is asked in vain
CREATE SEQUENCE ah_calls;
CREATE FUNCTION ah_asked(x numeric) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('ah_calls'); RETURN x > 20; END $$;
CREATE FUNCTION ah_count_calls(condition text, OUT offloaded int, OUT with_gpuhash bigint, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
    query text := 'SELECT g FROM ah GROUP BY g HAVING ' || condition;
    without bigint;
BEGIN
    SET LOCAL max_parallel_workers_per_gather = 0;
    FOR enabled IN 0..1 LOOP
        PERFORM set_config('gpuhash.enabled', enabled::text, true), set_config('gpuhash.force_offload', enabled::text, true);
        PERFORM setval('ah_calls', 1);
        EXECUTE format('SELECT count(*) FROM (%s OFFSET 0) s', query);
        without := coalesce(with_gpuhash, 0);
        SELECT last_value INTO with_gpuhash FROM ah_calls;
    END LOOP;
    offloaded := plan_lines(query, '%Custom Scan (GpuHashAggregate)%');
    same := with_gpuhash = without;
END $$;
SELECT h.condition, c.* FROM (VALUES ('ah_asked(sum(n))'), ('ah_asked(sum(n)) AND count(*) > 5'), ('count(*) > 5 AND ah_asked(sum(n)) AND sum(n) > 25'), ('count(*) > 5 OR ah_asked(sum(n))'), ('ah_asked(g) AND g > 1300 AND count(*) > 5')) h(condition), LATERAL ah_count_calls(condition) c;

-- parameters
SET max_parallel_workers_per_gather = 0;
SET gpuhash.force_offload = on;
SET plan_cache_mode = force_generic_plan;
PREPARE ah_q(numeric, bigint, text) AS SELECT count(*), sum(s), min(s) FROM (SELECT g, sum(n) AS s FROM ah GROUP BY g HAVING sum(n) > $1 AND count(*) <> $2 AND (count(*) > 0 OR bool_or(t = $3))) x;
EXPLAIN (COSTS OFF) EXECUTE ah_q(20, 5, 'x');
EXECUTE ah_q(20, 5, 'x');
EXECUTE ah_q(20.001, 6, 'x');
EXECUTE ah_q('NaN', 6, 'x');
EXECUTE ah_q('-Infinity', 6, NULL);
EXECUTE ah_q(NULL, 5, 'x');
EXECUTE ah_q(1e300, 5, 'x');
SET gpuhash.enabled = off;
EXECUTE ah_q(20, 5, 'x');
EXECUTE ah_q(20.001, 6, 'x');
EXECUTE ah_q('NaN', 6, 'x');
EXECUTE ah_q('-Infinity', 6, NULL);
EXECUTE ah_q(NULL, 5, 'x');
EXECUTE ah_q(1e300, 5, 'x');
DEALLOCATE ah_q;
RESET ALL;
-- another one each time that the groups come out
SELECT * FROM compare_aggregate('SELECT v.x, s.* FROM (VALUES (3), (20), (NULL), (35)) v(x), LATERAL (SELECT g, sum(n), count(*) FROM ah GROUP BY g HAVING sum(n) > v.x) s');
SELECT * FROM compare_aggregate('SELECT v.x, s.* FROM (VALUES (3), (20), (35)) v(x), LATERAL (SELECT g, sum(n) FROM ah WHERE i2 < 2 GROUP BY g HAVING sum(n) > (SELECT max(n) * v.x / 10 FROM ah WHERE n < 10)) s');

-- what EXPLAIN counts
SET gpuhash.force_offload = on;
SET gpuhash.engine = cpu;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION ah_removed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ 'Custom Scan|Filter|Groups' THEN RETURN NEXT regexp_replace(trim(line), '\(actual rows=(\d+)(\.00)? loops', '(actual rows=\1 loops'); END IF;
    END LOOP;
END $$;
SELECT ah_removed('SELECT g, sum(n) FROM ah GROUP BY g HAVING sum(n) > 35');
SELECT ah_removed('SELECT g, sum(n) FROM ah GROUP BY g HAVING sum(n) > 35 AND sum(n)::text LIKE ''4%''');
SELECT ah_removed('SELECT g, sum(n) FROM ah GROUP BY g HAVING sum(n)::text LIKE ''4%''');
SELECT ah_removed('SELECT g, sum(n) FROM ah GROUP BY g');
DROP FUNCTION ah_removed;
DROP FUNCTION ah_count_calls;
DROP TABLE ah;
DROP SEQUENCE ah_calls CASCADE;
DROP FUNCTION ah_asked;
