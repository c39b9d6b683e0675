-- Expressions without columns: what is evaluated before PostgreSQL would do it can raise no error, and runs
-- nothing of a user's.
\set VERBOSITY terse
LOAD 'gpuhash';
SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
SET timezone = 'UTC';
CREATE TABLE constants AS
    SELECT i AS k, i % 1000 AS v, 'x' || i % 50 AS t, i::numeric(12, 2) AS n,
           date '2020-01-01' + i % 1000 AS d, timestamp '2020-01-01' + i * interval '1 minute' AS ts,
           timestamptz '2020-01-01' + i * interval '1 minute' AS tz
    FROM generate_series(1, 20000) i;
VACUUM ANALYZE constants;

-- A user's check that writes, fails, and leaves a query open while it does so: it runs when a row needs it, not before.
CREATE TABLE constants_calls (v int);
CREATE FUNCTION constants_check(v int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO constants_calls VALUES (v);
    PERFORM 1 / (v - 5) FROM pg_class;
    RETURN true;
END $$;
CREATE DOMAIN constants_domain AS int CHECK (constants_check(VALUE));
CREATE TYPE constants_type AS (a constants_domain);
CREATE FUNCTION constants_both_ways(query text, params text, args text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
    results text[] = '{}';
    calls bigint;
BEGIN
    FOR way IN 0 .. 1 LOOP
        EXECUTE 'SET LOCAL gpuhash.enabled = ' || (way = 1)::text;
        EXECUTE format('PREPARE constants_query%s AS %s', params, query);
        TRUNCATE constants_calls;
        BEGIN
            EXECUTE format('EXECUTE constants_query%s', args) INTO result;
            SELECT count(*) INTO calls FROM constants_calls;
            result = format('%s, %s calls', result, calls);
        EXCEPTION WHEN OTHERS THEN
            result = SQLSTATE;
        END;
        DEALLOCATE constants_query;
        results = results || result;
    END LOOP;
    RETURN CASE WHEN results[1] = results[2] THEN results[1]
                ELSE format('DIFFERENT: %s; %s', results[1], results[2]) END;
END $$;

SELECT n, constants_both_ways(query, params, args) FROM (VALUES
    (1, 'SELECT count(*) FROM constants WHERE v < 0 AND v = ANY (($1::constants_domain[])::int[])', '(text)', '(''{5}'')'),
    (2, 'SELECT k FROM constants WHERE v < 0 AND v = ANY (($1::constants_domain[])::int[])', '(text)', '(''{5}'')'),
    (3, 'SELECT count(*) FROM constants WHERE v = ANY (($1::constants_domain[])::int[])', '(text)', '(''{5}'')'),
    (4, 'SELECT count(*) FROM constants WHERE k <= 3 AND v = ANY (($1::constants_domain[])::int[])', '(text)', '(''{6}'')'),
    (5, 'SELECT k FROM constants WHERE k = 3 AND v < ($1::constants_domain)::int', '(int)', '(7)'),
    (6, 'SELECT count(*) FROM constants WHERE k < 0 AND v = ($1::constants_type).a', '(text)', '(''(5)'')'),
    (7, 'SELECT count(*) FROM constants WHERE k < 0 AND v = (jsonb_populate_record(NULL::constants_type, $1)).a', '(jsonb)', '(''{"a": 5}'')'),
    (8, 'SELECT count(*) FROM constants WHERE k < 0 AND v = ANY ((array_in($1::cstring, ''constants_domain''::regtype, -1)::text)::int[])', '(text)', '(''{5}'')'),
    (9, 'SELECT sum(v + ($1::constants_domain)::int) FROM constants WHERE k < 0', '(int)', '(5)'),
    (10, 'SELECT sum(v + ($1::constants_domain)::int) FROM constants WHERE k < 4', '(int)', '(6)'),
    (11, 'SELECT count(*) FILTER (WHERE v < ($1::constants_domain)::int) FROM constants WHERE k < 0', '(int)', '(5)'),
    (12, 'SELECT count(*) FROM constants WHERE k < 0 AND v < 100 / $1', '(int)', '(0)'),
    (13, 'SELECT count(*) FROM constants WHERE v < 100 / $1', '(int)', '(0)'),
    (14, 'SELECT count(*) FROM constants WHERE k > 0 AND v < 100 / $1', '(int)', '(3)'),
    (15, 'SELECT count(*) FROM constants WHERE k < 0 AND d < $1::date', '(text)', '(''no date'')'),
    (16, 'SELECT count(*) FROM constants WHERE k > 0 AND d < $1::date', '(text)', '(''no date'')'),
    (17, 'SELECT count(*) FROM constants WHERE k > 0 AND d < $1::date', '(text)', '(''2020-05-05'')')
) AS queries (n, query, params, args) ORDER BY n;

-- the same in a function's variables, which the executor asks for
DO $$
DECLARE
    n bigint;
    list text = '{5}';
    given record;
BEGIN
    SELECT count(*) INTO n FROM constants WHERE v < 0 AND v = ANY ((list::constants_domain[])::int[]);
    RAISE NOTICE '%', n;
    list = '{4, 6}';
    SELECT count(*) INTO n FROM constants WHERE k <= 1000 AND v = ANY (list::int[]);
    RAISE NOTICE '%', n;
    given = ROW (5);
    SELECT count(*) INTO n FROM constants WHERE v = given.f1;
    RAISE NOTICE '%', n;
END $$;
SELECT count(*) FROM constants_calls;

-- What is known to be harmless becomes a constant of the execution: no row is handed back.
CREATE FUNCTION constants_handed_back(query text, params text, args text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    result text;
BEGIN
    EXECUTE format('PREPARE constants_query%s AS %s', params, query);
    FOR line IN EXECUTE format('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE constants_query%s', args) LOOP
        IF line ~ 'Rows Handed Back' AND (result IS NULL OR line !~ ' 0$') THEN
            result = trim(line);
        END IF;
    END LOOP;
    DEALLOCATE constants_query;
    RETURN result;
END $$;
CREATE TABLE constants_values (n serial, condition text, params text, args text);
INSERT INTO constants_values (condition, params, args) VALUES
    ('v = ANY ($1)', '(int[])', '(''{1, 2, NULL}'')'),
    ('t = ANY ($1)', '(varchar[])', '(''{x1, x2}'')'),
    ('v IN ($1, $2, 7)', '(int, int)', '(5, 6)'),
    ('t IN ($1, $2)', '(text, varchar)', '(''x5'', ''x6'')'),
    ('v < $1 + 1', '(int)', '(10)'),
    ('n BETWEEN $1 - 0.5 AND $1 + 0.5', '(numeric)', '(17)'),
    ('n < $1 / 3', '(numeric)', '(100)'),
    ('n < $1::numeric(12, 2)', '(numeric)', '(99.999)'),
    ('n < $1', '(int)', '(70)'),
    ('d < $1 + 30 AND d >= $1 - 30', '(date)', '(''2020-05-01'')'),
    ('d < current_date AND ts < localtimestamp AND tz < now()', '', ''),
    ('tz > now() - interval ''1000 years''', '', ''),
    ('ts >= date_trunc(''month'', $1::timestamp) AND ts < date_trunc(''MONTH'', $1::timestamp) + interval ''1 month''', '(date)', '(''2020-01-15'')'),
    ('tz >= date_trunc(''year'', $1)', '(timestamptz)', '(''2020-01-10 12:00'')'),
    ('ts < now() AT TIME ZONE ''utc''', '', ''),
    ('ts < $1 + $2 * interval ''1 day''', '(timestamp, int)', '(''2020-01-10'', 5)'),
    ('d < $1 + interval ''1 year'' - $2', '(date, interval)', '(''2019-01-01'', ''-20 days'')');
SELECT n, constants_both_ways('SELECT count(*) FROM constants WHERE ' || condition, params, args),
       constants_handed_back('SELECT count(*) FROM constants WHERE ' || condition, params, args)
FROM constants_values ORDER BY n;

-- Values that are out of the bounds of what is evaluated ahead: an error where PostgreSQL has one, and only there.
TRUNCATE constants_values;
INSERT INTO constants_values (condition, params, args)
SELECT format(condition, '$1', '$2'), params, args
FROM (VALUES
    ('d < %s + %s', '(date, int)', '{"(''infinity'', 1)", "(''5874897-12-31'', 1)", "(''2020-01-01'', 2147483647)", "(NULL, 1)"}'::text[]),
    ('d < %s - %s', '(date, interval)', '{"(''-infinity'', ''1 day'')", "(''4714-11-24 BC'', ''1 day'')", "(''2020-01-01'', ''178000000 years'')", "(''2020-01-01'', ''9000 years'')", "(''2020-01-01'', NULL)"}'),
    ('ts < %s + %s', '(timestamp, interval)', '{"(''infinity'', ''1 day'')", "(''294276-12-31'', ''1 day'')", "(''2020-01-01'', ''2147483647 days'')", "(''0900-01-01'', ''1 month'')"}'),
    ('tz < %s - %s', '(timestamptz, interval)', '{"(''-infinity'', ''1 day'')", "(''4714-11-24 BC'', ''1 day'')", "(''2020-01-01'', ''-2147483647 months'')"}'),
    ('ts < date_trunc(%s, %s)', '(text, timestamp)', '{"(''moon'', ''2020-01-05'')", "(''day'', ''infinity'')", "('''', ''2020-01-05'')", "(''century'', ''2020-01-05'')"}'),
    ('ts < timestamp ''2020-01-01'' + %s * %s', '(interval, float8)', '{"(''1 day'', ''NaN'')", "(''1 day'', 1e300)", "(''100000 years'', 3e5)", "(''1 day'', 5000)"}'),
    ('n < %s * %s', '(numeric, numeric)', '{"(1e131071, 1e131071)", "(''NaN'', 0)", "(''Infinity'', 0)", "(1e20, 1e-20)"}'),
    ('n < %s / %s', '(numeric, numeric)', '{"(1, 0)", "(''NaN'', 0)", "(''Infinity'', ''Infinity'')", "(1e131071, 1e-1000)", "(1, 3e-15)"}'),
    ('n < (%s + %s)::numeric(5, 2)', '(numeric, numeric)', '{"(999, 0.994)", "(999, 0.996)", "(''NaN'', 1)", "(-999, -0.996)"}'),
    ('n < (%s + %s)::numeric(2, -3)', '(numeric, numeric)', '{"(99000, 499)", "(99000, 500)", "(99000, 999)", "(100000, 0)"}'),
    ('n < (%s + %s)::numeric(3, 5)', '(numeric, numeric)', '{"(0.001, 0.002)", "(0.01, 0.1)"}'),
    ('tz < %2$s AT TIME ZONE %1$s', '(text, timestamp)', '{"(''utc'', ''2020-01-05'')", "(''nowhere'', ''2020-01-05'')"}'),
    ('ts < %2$s AT TIME ZONE %1$s', '(text, timestamptz)', '{"(''utc'', ''infinity'')", "(''nowhere'', ''2020-01-05'')", "(''gmt'', ''2020-01-05'')"}')
) AS edges (condition, params, lists), unnest(lists) AS args;
SELECT n, args, constants_both_ways('SELECT count(*) FROM constants WHERE ' || condition, params, args) AS rows,
       constants_both_ways('SELECT count(*) FROM constants WHERE k < 0 AND ' || condition, params, args) AS none
FROM constants_values ORDER BY n;

DROP TABLE constants, constants_calls, constants_values;
DROP FUNCTION constants_both_ways, constants_handed_back;
DROP TYPE constants_type;
DROP DOMAIN constants_domain;
DROP FUNCTION constants_check;
