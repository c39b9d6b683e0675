-- star_tables.sql: a star schema in the shape of the Star Schema Benchmark: sales with four dimensions.  At
-- scale 1 it has six million sales.
CREATE TABLE day AS
SELECT to_char(d, 'YYYYMMDD')::int AS d_key, d AS d_date, extract(year FROM d)::int AS d_year, to_char(d, 'YYYYMM')::int AS d_month,
	to_char(d, 'MonYYYY') AS d_month_name, (1 + (extract(doy FROM d)::int - 1) / 7) AS d_week
FROM (SELECT date '1992-01-01' + i AS d FROM generate_series(0, 2556) i) days;

CREATE TABLE buyer AS
SELECT i::int AS b_key, 'buyer ' || i AS b_name, nation || ' ' || draw(i, 1, 10) AS b_city, nation AS b_nation, region AS b_region,
	pick(i, 2, '{automobile,building,furniture,household,machinery}') AS b_segment
FROM (SELECT i, draw(i, 3, 5) AS r, 'nation ' || draw(i, 3, 5) || draw(i, 4, 5) AS nation,
	(ARRAY['Africa', 'America', 'Asia', 'Europe', 'Middle East'])[draw(i, 3, 5) + 1] AS region FROM generate_series(1, (30000 * :scale)::bigint) i) b;

CREATE TABLE seller AS
SELECT i::int AS s_key, 'seller ' || i AS s_name, nation || ' ' || draw(i, 5, 10) AS s_city, nation AS s_nation, region AS s_region
FROM (SELECT i, 'nation ' || draw(i, 6, 5) || draw(i, 7, 5) AS nation,
	(ARRAY['Africa', 'America', 'Asia', 'Europe', 'Middle East'])[draw(i, 6, 5) + 1] AS region FROM generate_series(1, (2000 * :scale)::bigint + 50) i) s;

CREATE TABLE product AS
SELECT i::int AS p_key, 'product ' || i AS p_name, 'maker ' || 1 + maker AS p_maker, 'category ' || 1 + maker || 1 + category AS p_category,
	'brand ' || 1 + maker || 1 + category || '-' || 1 + draw(i, 8, 40) AS p_brand, pick(i, 9, '{red,green,blue,ivory,navy,coral}')::varchar(11) AS p_color,
	(1 + draw(i, 10, 50))::int AS p_size
FROM (SELECT i, draw(i, 11, 5) AS maker, draw(i, 12, 5) AS category FROM generate_series(1, (200000 * :scale)::bigint) i) p;

CREATE TABLE sale AS
SELECT (i / 4)::int AS l_order, (i % 4)::int AS l_line, (1 + draw(i / 4, 13, (30000 * :scale)::bigint))::int AS l_buyer, (1 + draw(i, 14, (200000 * :scale)::bigint))::int AS l_product,
	(1 + draw(i, 15, (2000 * :scale)::bigint + 50))::int AS l_seller, to_char(date '1992-01-01' + draw(i / 4, 16, 2406)::int, 'YYYYMMDD')::int AS l_day,
	pick(i / 4, 17, '{1-urgent,2-high,3-medium,4-low,5-none}')::char(15) AS l_priority, (1 + draw(i, 18, 50))::int AS l_quantity, (90000 + draw(i, 19, 10000000))::int AS l_price,
	draw(i, 20, 11)::int AS l_discount, ((90000 + draw(i, 19, 10000000)) * (100 - draw(i, 20, 11)) / 100)::int AS l_revenue, (54000 + draw(i, 21, 60000))::int AS l_cost,
	pick(i, 22, '{air,fob,mail,rail,reg air,ship,truck}')::char(10) AS l_mode
FROM generate_series(0, (6000000 * :scale)::bigint) i;

ALTER TABLE day ADD PRIMARY KEY (d_key);
ALTER TABLE buyer ADD PRIMARY KEY (b_key);
ALTER TABLE seller ADD PRIMARY KEY (s_key);
ALTER TABLE product ADD PRIMARY KEY (p_key);
ALTER TABLE sale ADD FOREIGN KEY (l_buyer) REFERENCES buyer, ADD FOREIGN KEY (l_day) REFERENCES day;
-- what is committed is to be written: before that VACUUM marks no page as all-visible
SET synchronous_commit = on;
CREATE INDEX ON sale (l_day);
VACUUM (ANALYZE) day, buyer, seller, product, sale;
