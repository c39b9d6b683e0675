-- How many groups there are where keys are expressions: what these may give at most, by their constants and by the least
-- and the greatest value of a column.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET gpuhash.force_offload = on;
SET timezone = 'UTC';
CREATE TABLE group_bounds AS
SELECT i, i - 50000 AS signed, timestamp '2020-01-01' + i * interval '20 minutes' AS at, timestamptz '2020-01-01' + i * interval '20 minutes' AS at_zone,
	date '2020-01-01' + i / 72 AS day, i % 1000 AS few, CASE WHEN i % 10 > 0 THEN i END AS nulls, 'text ' || i AS t
FROM generate_series(0, 99999) i;
ANALYZE group_bounds;

-- of the first node that groups: how many it expects, and whether its groups are as many, within a few
CREATE FUNCTION groups_expected(keys text) RETURNS TABLE (expected bigint, counted bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT JSON) SELECT %s, count(*) FROM group_bounds GROUP BY %s', keys, keys) INTO plan;
	expected := plan->0->'Plan'->>'Plan Rows';
	EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM group_bounds GROUP BY %s) x', keys) INTO counted;
	RETURN NEXT;
END $$;
SELECT k AS keys, CASE WHEN expected > 2 * counted + 20 THEN 'far more' WHEN expected < 0.95 * counted THEN 'fewer' ELSE 'as many' END AS expected, counted
FROM unnest(ARRAY[
	'date_trunc(''month'', at)', 'date_trunc(''DAY'', at)', 'date_trunc(''hour'', at)', 'date_trunc(''week'', at_zone)',
	'date_trunc(''quarter'', at_zone, ''Asia/Tokyo'')', 'date_trunc(''year'', day)', 'extract(year FROM at)', 'extract(month FROM at)::int',
	'date_part(''hour'', at)', 'extract(dow FROM day)', 'extract(year FROM at), extract(month FROM at)', 'at::date', 'at_zone::date - 1',
	'i % 37', 'signed % 37', 'i / 1000', '(i / 1000) * 1000', 'abs(i % 10)', 'CASE WHEN i > 500 THEN ''a'' WHEN few = 3 THEN ''b'' ELSE ''c'' END',
	'date_trunc(''month'', at), few % 5', 'date_trunc(''month'', at), few', 'nulls % 7',
	-- of these nothing more is known than of their columns
	'date_trunc(''second'', at)', 'extract(epoch FROM at)', 'i + few', 'lower(t)', 'i % nullif(few, 0)', 'extract(second FROM at)']) k,
	groups_expected(k);
-- grouping sets, DISTINCT
EXPLAIN (COSTS OFF) SELECT extract(year FROM at) AS y, i % 3 AS r, count(*) FROM group_bounds GROUP BY ROLLUP (1, 2);
SELECT count(*) FROM (SELECT extract(year FROM at) AS y, i % 3 AS r, count(*) FROM group_bounds GROUP BY ROLLUP (1, 2)) x;
SELECT date_trunc('year', at) AS y, count(DISTINCT few) FROM group_bounds GROUP BY 1 ORDER BY 1;

-- of a table that has grown since it was counted, statistics do not know the least and the greatest value
INSERT INTO group_bounds SELECT i, i, timestamp '2030-01-01' + i * interval '1 day', timestamptz '2030-01-01' + i * interval '1 day',
	date '2030-01-01' + i, 1, NULL, 't' FROM generate_series(1, 60000) i;
SELECT k AS keys, expected >= counted AS enough, counted FROM unnest(ARRAY['date_trunc(''month'', at)', 'at::date', 'extract(month FROM day)']) k,
	groups_expected(k);
DELETE FROM group_bounds WHERE t = 't';
VACUUM ANALYZE group_bounds;

-- a table without statistics, and one of which all values are the same
CREATE TABLE group_bounds_empty (LIKE group_bounds);
SELECT date_trunc('month', at), count(*) FROM group_bounds_empty GROUP BY 1;
INSERT INTO group_bounds_empty SELECT i, i, 'infinity', '-infinity', 'infinity', i, i, 't' FROM generate_series(1, 1000) i;
ANALYZE group_bounds_empty;
SELECT date_trunc('month', at), day, count(*) FROM group_bounds_empty GROUP BY 1, 2;

-- sorting many groups is what makes a grouping by hashing look dear: without force, too
RESET gpuhash.force_offload;
SET gpuhash.setup_cost = 0;
EXPLAIN (COSTS OFF) SELECT date_trunc('month', at) AS m, count(*) FROM group_bounds GROUP BY 1 ORDER BY 1;
DROP FUNCTION groups_expected;
DROP TABLE group_bounds, group_bounds_empty;
