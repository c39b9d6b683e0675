-- shapes_tables.sql: plain tables for one operation at a time, with what makes an engine's work uneven: values that are
-- drawn far more often than others, keys with many rows, NULLs, texts of different lengths, and columns whose number of
-- values the planner takes to be 100.  At scale 1 the largest has ten million rows.
CREATE TABLE event AS
SELECT i AS e_id, (1 + draw(i, 1, (1000000 * :scale)::bigint))::int AS e_item, (1 + skewed(i, 2, (1000000 * :scale)::bigint))::int AS e_skewed,
	CASE WHEN hit(i, 3, 2) THEN 1 ELSE 1 + draw(i, 4, (500000 * :scale)::bigint) END::int AS e_hot, draw(i, 5, 1000)::int AS e_few,
	CASE WHEN hit(i, 6, 3) THEN NULL ELSE draw(i, 7, 10000)::int END AS e_nulls, 'name ' || draw(i, 8, 5000) AS e_name,
	'key ' || repeat('x', draw(i, 9, 30)::int) || draw(i, 10, (2000000 * :scale)::bigint) AS e_text, date '2010-01-01' + draw(i, 11, 5000)::int AS e_day,
	timestamp '2015-01-01' + draw(i, 12, 100000000) * interval '1 second' AS e_at, (draw(i, 13, 10000000) / 100.0)::numeric(12, 2) AS e_price,
	draw(i, 14, 1000000) / 1e4::numeric AS e_loose, draw(i, 15, 1000000) / 7.0::float8 AS e_float, hit(i, 16, 10) AS e_flag,
	(1 + draw(i, 17, (3000000 * :scale)::bigint))::int AS e_underrated
FROM generate_series(1, (10000000 * :scale)::bigint) i;
ALTER TABLE event ALTER e_underrated SET (n_distinct = 100);

-- a row a key
CREATE TABLE item AS
SELECT i::int AS i_key, (i % 977)::int AS i_kind, 'item ' || i AS i_name, 'name ' || draw(i, 21, 5000) AS i_label, draw(i, 22, 1000)::int AS i_size,
	(draw(i, 23, 100000) / 100.0)::numeric(10, 2) AS i_price, date '2010-01-01' + draw(i, 24, 5000)::int AS i_since
FROM generate_series(1, (1000000 * :scale)::bigint) i;
-- ten rows a key
CREATE TABLE part AS
SELECT (1 + draw(i, 31, (100000 * :scale)::bigint))::int AS p_item, draw(i, 32, 1000)::int AS p_value, pick(i, 33, '{red,green,blue}') AS p_color
FROM generate_series(1, (1000000 * :scale)::bigint) i;
-- few keys with most of the rows
CREATE TABLE note AS
SELECT (1 + skewed(i, 41, (200000 * :scale)::bigint))::int AS n_item, draw(i, 42, 100)::int AS n_value FROM generate_series(1, (200000 * :scale)::bigint) i;
-- a key that the planner takes to have 100 values
CREATE TABLE tag AS
SELECT i::int AS t_key, draw(i, 51, 1000)::int AS t_value FROM generate_series(1, (3000000 * :scale)::bigint) i;
ALTER TABLE tag ALTER t_key SET (n_distinct = 100);
-- what is committed is to be written: before that VACUUM marks no page as all-visible
SET synchronous_commit = on;
CREATE TABLE kind AS SELECT i AS k_key, 'kind ' || i AS k_name, i % 10 AS k_class FROM generate_series(0, 976) i;
VACUUM (ANALYZE) event, item, part, note, tag, kind;
