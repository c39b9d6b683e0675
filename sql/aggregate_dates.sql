-- Dates and timestamps that are moved, taken apart, and subtracted from each other, in conditions, keys and arguments.
LOAD 'gpuhash';
SET datestyle = iso;
CREATE TABLE dates (k int, d date, s timestamp, e timestamp, z timestamptz, m time);
INSERT INTO dates SELECT i, date '1999-12-25' + i % 1000, timestamp '1999-12-31 22:30' + i * interval '3:07:01.25',
    timestamp '2000-06-01' + i % 77 * interval '5 days 1:00', timestamptz '2000-01-01 UTC' + i * interval '1 hour', time '00:00' + i % 1440 * interval '1 minute'
    FROM generate_series(1, 3000) i;
INSERT INTO dates VALUES (3001, 'infinity', 'infinity', '-infinity', 'infinity', '24:00'), (3002, '4714-11-24 BC', '4714-11-24 00:00 BC', '294276-12-31 23:59:59.999999', NULL, NULL);
ANALYZE dates;

SELECT * FROM compare_aggregate('SELECT d + interval ''1 month'', count(*), min(d - interval ''1 month''), max(s + interval ''1 day 01:00''), min(s - interval ''29 days'') FROM dates WHERE k <= 3000 GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT s::date, count(*), min(s::time), max(date_trunc(''hour'', s)), max(date_trunc(''second'', s)) FROM dates GROUP BY 1', 2);
SELECT * FROM compare_aggregate('SELECT extract(isoyear FROM d), extract(week FROM d), count(*), sum(extract(hour FROM s)), sum(extract(second FROM s)), max(extract(epoch FROM s)) FROM dates WHERE k <= 3000 GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT date_part(''hour'', s), count(*), sum(extract(epoch FROM s - e)), avg(extract(day FROM s - e)), max(date_part(''second'', s)) FROM dates WHERE k <= 3000 GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT extract(hour FROM m), sum(extract(epoch FROM m)), count(*) FROM dates GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT count(*), sum(k) FROM dates WHERE k <= 3000 AND s - e > interval ''-3 months'' AND s - e <= interval ''5 days 12:00'' AND z - timestamptz ''2000-02-01 UTC'' < interval ''30 days''');
-- what some rows fail at, at the ends of the types
SELECT * FROM compare_aggregate('SELECT count(d + interval ''1 month'') FROM dates WHERE s < timestamp ''2000-01-10''');
SELECT * FROM compare_aggregate('SELECT count(e + interval ''1 microsecond'') FROM dates');
SELECT * FROM compare_aggregate('SELECT count(s - interval ''1 month'') FROM dates');
SELECT * FROM compare_aggregate('SELECT count(s - interval ''1 month''), count(*) FROM dates WHERE s - interval ''1 month'' > timestamp ''2000-01-01'' OR k < 10000 AND s < timestamp ''2000-01-01''');
-- a time zone says what a day later is, but not an hour
SELECT * FROM compare_aggregate('SELECT max(z + interval ''30 minutes'') FROM dates');
SELECT * FROM compare_aggregate('SELECT max(z + interval ''1 day'') FROM dates');

-- an interval that is a parameter
SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
PREPARE moved(interval, interval) AS SELECT count(*), sum(k), max(d - $2) FROM dates WHERE k <= 3000 AND d + $1 < timestamp '2000-06-01' AND s - e > $2;
EXPLAIN (COSTS OFF) EXECUTE moved('1 month', '-1 day');
EXECUTE moved('1 month', '-1 day');
EXECUTE moved(NULL, '-1 day');
EXECUTE moved('-10 years 5 days 00:00:01', '-1000 days 12:00');
EXECUTE moved('-100000 years', '-3 days');
EXECUTE moved('1 day', '-2000000 days');
SET gpuhash.enabled = off;
EXECUTE moved('1 month', '-1 day');
EXECUTE moved(NULL, '-1 day');
EXECUTE moved('-10 years 5 days 00:00:01', '-1000 days 12:00');
EXECUTE moved('-100000 years', '-3 days');
EXECUTE moved('1 day', '-2000000 days');
DROP TABLE dates;
