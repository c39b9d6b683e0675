-- What the session's time zone, or a named one, makes of moments: parts, truncated ones, casts, comparisons.
LOAD 'gpuhash';
SET datestyle = iso;
SET max_parallel_workers_per_gather = 0;
-- Moments at which clocks of some zones change, and around these; the far past and future; and what clocks show then.
CREATE TABLE zones (zone text);
INSERT INTO zones VALUES ('UTC'), ('Europe/Berlin'), ('America/New_York'), ('Asia/Kolkata'), ('Australia/Lord_Howe'), ('Africa/Casablanca'),
    ('America/Sao_Paulo'), ('Europe/Dublin'), ('Pacific/Apia'), ('Asia/Kathmandu'), ('EST5EDT'), ('<+0530>-05:30'), ('AAA-1BBB,M3.5.0,M10.5.0/3'), ('ABC-1DEF,0/0,J365/25');
SET timezone = 'UTC';
CREATE TABLE moments (k int, z timestamptz, l timestamp, d date);
WITH days AS (
    SELECT zone, day FROM zones, generate_series(timestamptz '1890-01-01', '2040-01-01', '1 day') day
    WHERE extract(year FROM day) IN (1893, 1910, 1911, 1916, 1918, 1940, 1945, 1947, 1980, 1985, 1995, 2011, 2018, 2024, 2030, 2038)
    AND (day AT TIME ZONE zone) - day::timestamp <> ((day + interval '1 day') AT TIME ZONE zone) - (day + interval '1 day')::timestamp),
changes AS (
    SELECT DISTINCT zone, day + n * interval '30 minutes' AS change FROM days, generate_series(1, 48) n
    WHERE ((day + n * interval '30 minutes') AT TIME ZONE zone) - (day + n * interval '30 minutes')::timestamp <>
        ((day + (n - 1) * interval '30 minutes') AT TIME ZONE zone) - (day + (n - 1) * interval '30 minutes')::timestamp)
INSERT INTO moments
    SELECT row_number() OVER (ORDER BY zone, change, delta), change + delta,
        (change AT TIME ZONE zone) + delta, ((change + delta) AT TIME ZONE zone)::date
    FROM changes, unnest(ARRAY['0', '-1 microsecond', '1 microsecond', '-1 hour', '1 hour', '-30 minutes', '30 minutes', '-1 day', '1 day', '-25 hours', '-90 minutes', '3 days 11:00:00.5']::interval[]) delta;
INSERT INTO moments SELECT 100000 + i, timestamptz '0044-03-15 12:34:56.789 BC' + i * interval '17 years 1 day 1:23:45', timestamp '0044-03-15 BC' + i * interval '17 years', date '0044-03-15 BC' + i * 9999 FROM generate_series(1, 300) i;
INSERT INTO moments VALUES (200001, 'infinity', 'infinity', 'infinity'), (200002, '-infinity', '-infinity', '-infinity'), (200003, NULL, NULL, NULL),
    (200004, '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999', '9999-12-31'), (200005, '10000-01-01', '9999-12-31', '10000-01-01');
ANALYZE moments;
SELECT count(*) > 2000 AS many FROM moments;

-- Queries in each zone: how many there are, how many of them the engine groups, and those whose answer is not PostgreSQL's.
CREATE TABLE queries (query text);
INSERT INTO queries VALUES
    ('SELECT date_trunc(''year'', z), date_trunc(''quarter'', z), count(*), sum(k), max(z::timestamp) FROM moments GROUP BY 1, 2'),
    ('SELECT date_trunc(''month'', z), date_trunc(''week'', z), count(*), sum(k), min(z::timestamp) FROM moments GROUP BY 1, 2'),
    ('SELECT date_trunc(''day'', z), count(*), sum(k), max(date_trunc(''hour'', z)), min(date_trunc(''second'', z)) FROM moments GROUP BY 1'),
    ('SELECT date_trunc(''hour'', z), date_trunc(''minute'', z), count(*), sum(k) FROM moments GROUP BY 1, 2'),
    ('SELECT z::date, z::time, count(*), sum(k) FROM moments GROUP BY 1, 2'),
    ('SELECT extract(year FROM z), extract(month FROM z), extract(day FROM z), count(*), sum(extract(second FROM z)), max(date_part(''second'', z)) FROM moments WHERE z > ''-infinity'' AND z < ''infinity'' GROUP BY 1, 2, 3'),
    ('SELECT date_part(''hour'', z), extract(minute FROM z), extract(dow FROM z), count(*), sum(extract(epoch FROM z)), sum(extract(doy FROM z)) FROM moments WHERE z BETWEEN ''1800-01-01'' AND ''2200-01-01'' GROUP BY 1, 2, 3'),
    ('SELECT extract(isoyear FROM z), extract(week FROM z), count(*), sum(date_part(''isodow'', z)) FROM moments WHERE z BETWEEN ''1800-01-01'' AND ''2200-01-01'' GROUP BY 1, 2'),
    ('SELECT l::timestamptz, count(*), sum(k) FROM moments GROUP BY 1'),
    ('SELECT d::timestamptz, date_trunc(''month'', d), count(*), sum(k) FROM moments GROUP BY 1, 2'),
    ('SELECT z < l, z <= d, z = l, z <> d, z >= l, z > d, l < z, d <= z, d = z, l <> z, d >= z, l > z, count(*), sum(k) FROM moments GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12'),
    ('SELECT count(*), sum(k) FROM moments WHERE z >= date ''1945-05-20'' AND z < timestamp ''2018-10-28 02:30'''),
    ('SELECT count(*), sum(k) FROM moments WHERE z::date BETWEEN ''1918-01-01'' AND ''2018-10-28'' AND extract(hour FROM z) IN (1, 2, 3) AND z::time < ''02:59:59.9999995'''),
    ('SELECT z AT TIME ZONE ''Australia/Lord_Howe'', count(*), sum(k), min(l AT TIME ZONE ''America/Sao_Paulo'') FROM moments GROUP BY 1'),
    ('SELECT (l AT TIME ZONE ''UTC'') AT TIME ZONE ''Europe/Berlin'', count(*), sum(k), max(z AT TIME ZONE ''UTC'') FROM moments GROUP BY 1'),
    ('SELECT date_trunc(''day'', z, ''America/New_York''), date_trunc(''hour'', z, ''Asia/Kathmandu''), count(*), sum(k) FROM moments GROUP BY 1, 2'),
    ('SELECT z + interval ''1 day'', z - interval ''1 month'', count(*), sum(k), max(z + interval ''1 year -3 days 25:30'') FROM moments GROUP BY 1, 2'),
    ('SELECT z AT TIME ZONE ''CET'', count(*), min(z AT TIME ZONE ''EST''), max(l AT TIME ZONE ''utc''), sum(k) FROM moments GROUP BY 1');
CREATE FUNCTION compare_in_zone(zone text, OUT queries bigint, OUT offloaded bigint, OUT others text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('timezone', zone, true);
    SELECT count(*), sum(c.offloaded), string_agg(query || ': ' || c.same, E'\n') FILTER (WHERE c.same <> 'same')
        INTO queries, offloaded, others FROM queries q, compare_aggregate(q.query) c;
END $$;
SELECT zone, c.* FROM zones, compare_in_zone(zone) c;

-- what is no zone, or one whose meaning changes; what has no program
SELECT * FROM compare_aggregate('SELECT z AT TIME ZONE ''Nowhere/Land'', count(*) FROM moments GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT date_trunc(''day'', z, ''''), count(*) FROM moments GROUP BY 1');
SELECT offloaded, same FROM compare_aggregate('SELECT z AT TIME ZONE ''MSK'', count(*) FROM moments GROUP BY 1');
SELECT offloaded, same FROM compare_aggregate('SELECT z AT TIME ZONE interval ''1 hour'', count(*) FROM moments GROUP BY 1');
SELECT offloaded, same FROM compare_aggregate('SELECT z AT TIME ZONE NULL, count(*) FROM moments GROUP BY 1');
SELECT offloaded, same FROM compare_aggregate('SELECT extract(timezone FROM z), count(*) FROM moments WHERE k < 1000 GROUP BY 1');
-- clocks may show what is no timestamp
CREATE TABLE ends (z timestamptz, l timestamp);
INSERT INTO ends SELECT timestamptz '4714-11-24 00:30 BC' + i * interval '1 hour', timestamp '294276-12-31 23:30' - i * interval '1 hour' FROM generate_series(0, 12) i;
ANALYZE ends;
SET timezone = 'America/New_York';
SELECT * FROM compare_aggregate('SELECT z::timestamp, count(*) FROM ends GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT extract(hour FROM z), count(*) FROM ends GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT l::timestamptz, count(*) FROM ends GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT count(*) FROM ends WHERE l > z');
SET timezone = 'Asia/Kolkata';
SELECT * FROM compare_aggregate('SELECT date_trunc(''hour'', z), count(*) FROM ends GROUP BY 1');
-- from 18 on, the session's zone tells what an abbreviation means
SELECT offloaded, same FROM compare_aggregate('SELECT max(z AT TIME ZONE ''IST''), min(l AT TIME ZONE ''ist'') FROM moments');
SELECT * FROM compare_aggregate('SELECT count(*) FROM ends WHERE l > z');
-- a group's key is joined, and is a column of other rows
CREATE TABLE days (d date, name text);
INSERT INTO days SELECT date '2018-01-01' + i, 'day ' || i FROM generate_series(0, 364) i;
ANALYZE days;
SELECT offloaded, same FROM compare_aggregate('SELECT date_trunc(''month'', z), count(*), sum(k) FROM moments JOIN days ON days.d = moments.d WHERE z::date = moments.d GROUP BY 1');
SELECT offloaded, same FROM compare_aggregate('SELECT name, count(*), sum(k) FROM moments JOIN days ON days.d = z::date GROUP BY 1');
SELECT offloaded, same FROM compare_aggregate('SELECT date_trunc(''day'', z), count(*), sum(k) FROM moments GROUP BY 1 HAVING extract(hour FROM date_trunc(''day'', z)) > 0 OR count(*) > 3');

-- A plan that is kept takes the zone of each execution.
SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
PREPARE per_day(date) AS SELECT md5(string_agg(day || ' ' || n, ',' ORDER BY day)) FROM (SELECT z::date AS day, count(*) AS n FROM moments WHERE z >= $1 AND z < timestamptz '2100-01-01 UTC' GROUP BY 1) s;
PREPARE in_zone(text) AS SELECT md5(string_agg(day || ' ' || n, ',' ORDER BY day)) FROM (SELECT date_trunc('day', z, $1)::text AS day, count(*) AS n FROM moments GROUP BY 1) s;
CREATE FUNCTION execute_one(name text, argument text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('EXECUTE %I(%L)', name, argument) INTO answer;
    RETURN answer;
END $$;
CREATE FUNCTION execute_in(zone text, name text, argument text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('timezone', zone, true);
    RETURN execute_one(name, argument);
END $$;
SELECT plan_lines('EXECUTE per_day(''1945-01-01'')', '%Custom Scan (GpuHashAggregate)%');
CREATE TABLE answers AS SELECT zone, execute_in(zone, 'per_day', '1945-05-24') AS per_day, execute_in('UTC', 'in_zone', zone) AS in_zone, execute_in(zone, 'in_zone', 'Europe/Berlin') AS in_berlin FROM zones;
SET gpuhash.enabled = off;
SELECT count(*), count(DISTINCT per_day) > 5 AS differ, count(*) FILTER (WHERE per_day <> execute_in(zone, 'per_day', '1945-05-24')) AS wrong_by_day,
    count(*) FILTER (WHERE in_zone <> execute_in('UTC', 'in_zone', zone)) AS wrong_in_zone, count(*) FILTER (WHERE in_berlin <> execute_in(zone, 'in_zone', 'Europe/Berlin')) AS wrong_in_berlin FROM answers;
SET gpuhash.enabled = on;
RESET ALL;
DROP TABLE moments, zones, queries, ends, days, answers;
DROP FUNCTION compare_in_zone, execute_one, execute_in;
