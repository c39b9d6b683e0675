-- suite_tables.sql: the tables of suite.sh, in the shape of TPC-H's at scale factor :scale, and a
-- star of :star fact rows.  Made anew.
--
-- Values come from hashes of the row's number, so every run has the same rows.  Facts lie in no
-- order of their keys; orders and their lines lie in the order of time, as they do where rows are
-- appended.
SET client_min_messages = warning;
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';

-- A number from 0 to below n for row i; draws with another salt are independent.
CREATE OR REPLACE FUNCTION draw(i bigint, salt bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT (hashint8extended(i, salt) & 9223372036854775807) % n $$;
-- One of the texts.
CREATE OR REPLACE FUNCTION pick(i bigint, salt bigint, texts text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT texts[1 + draw(i, salt, cardinality(texts))] $$;

DROP TABLE IF EXISTS region, nation, supplier, customer, part, partsupp, orders, lineitem, fact, dim_store, dim_product, dim_customer, dim_visit;

CREATE TABLE region AS
SELECT i::int AS r_key, (ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[i + 1] AS r_name FROM generate_series(0, 4) i;

CREATE TABLE nation AS
SELECT i::int AS n_key, 'nation ' || i AS n_name, (i % 5)::int AS n_region FROM generate_series(0, 24) i;

CREATE TABLE supplier AS
SELECT i::int AS s_key, 'supplier ' || i AS s_name, draw(i, 1, 25)::int AS s_nation, (draw(i, 2, 1100000) / 100.0 - 1000)::numeric(12, 2) AS s_balance
FROM generate_series(1, (10000 * :scale)::bigint) i;

CREATE TABLE customer AS
SELECT i::int AS c_key, 'customer ' || i AS c_name, draw(i, 3, 25)::int AS c_nation, (draw(i, 4, 1100000) / 100.0 - 1000)::numeric(12, 2) AS c_balance,
	pick(i, 5, '{AUTOMOBILE,BUILDING,FURNITURE,HOUSEHOLD,MACHINERY}') AS c_segment, (10 + draw(i, 6, 25))::text || '-' || draw(i, 7, 10000000) AS c_phone
FROM generate_series(1, (150000 * :scale)::bigint) i;

CREATE TABLE part AS
SELECT i::int AS p_key, pick(i, 8, '{almond,azure,blue,coral,forest,green,ivory,lemon,navy,red}') || ' ' || pick(i, 9, '{bolt,case,gear,nut,pipe,ring,valve}') AS p_name,
	'Brand#' || 11 + draw(i, 10, 45) AS p_brand, pick(i, 11, '{ECONOMY,LARGE,MEDIUM,PROMO,SMALL,STANDARD}') || ' ' || pick(i, 12, '{BRASS,COPPER,NICKEL,STEEL,TIN}') AS p_type,
	(1 + draw(i, 13, 50))::int AS p_size, pick(i, 14, '{JUMBO BOX,LG CASE,MED BAG,SM PACK,WRAP JAR}') AS p_container
FROM generate_series(1, (200000 * :scale)::bigint) i;

CREATE TABLE partsupp AS
SELECT p_key AS ps_part, (1 + draw(p_key * 4::bigint + j, 15, (10000 * :scale)::bigint))::int AS ps_supplier, (1 + draw(p_key * 4::bigint + j, 16, 9999))::int AS ps_available,
	((1 + draw(p_key * 4::bigint + j, 17, 100000)) / 100.0)::numeric(12, 2) AS ps_cost
FROM part, generate_series(0, 3) j;

CREATE TABLE orders AS
SELECT i AS o_key, (1 + draw(i, 18, (150000 * :scale)::bigint * 2 / 3) * 3 / 2)::int AS o_customer, pick(i, 19, '{F,O,P}') AS o_status, ((draw(i, 20, 50000000)) / 100.0)::numeric(12, 2) AS o_price,
	date '1992-01-01' + (i * 2406 / (1500000 * :scale)::bigint)::int AS o_date, pick(i, 21, '{1-URGENT,2-HIGH,3-MEDIUM,4-LOW,5-NONE}') AS o_priority
FROM generate_series(1, (1500000 * :scale)::bigint) i;

CREATE TABLE lineitem AS
SELECT l_order, l_line, (1 + draw(l_order * 8 + l_line, 23, (200000 * :scale)::bigint))::int AS l_part, (1 + draw(l_order * 8 + l_line, 24, (10000 * :scale)::bigint))::int AS l_supplier,
	(1 + draw(l_order * 8 + l_line, 25, 50))::numeric(12, 2) AS l_quantity, ((draw(l_order * 8 + l_line, 26, 10000000)) / 100.0)::numeric(12, 2) AS l_price,
	(draw(l_order * 8 + l_line, 27, 11) / 100.0)::numeric(12, 2) AS l_discount, pick(l_order * 8 + l_line, 28, '{A,N,R}') AS l_returned,
	o_date + (1 + draw(l_order * 8 + l_line, 29, 121))::int AS l_shipped, o_date + (30 + draw(l_order * 8 + l_line, 30, 61))::int AS l_committed,
	o_date + (2 + draw(l_order * 8 + l_line, 31, 150))::int AS l_received, pick(l_order * 8 + l_line, 32, '{AIR,FOB,MAIL,RAIL,REG AIR,SHIP,TRUCK}') AS l_mode
FROM (SELECT o_key AS l_order, o_date, j AS l_line FROM orders, LATERAL generate_series(1, (1 + draw(o_key, 22, 7))::int) j) l;

ALTER TABLE region ADD PRIMARY KEY (r_key);
ALTER TABLE nation ADD PRIMARY KEY (n_key);
ALTER TABLE supplier ADD PRIMARY KEY (s_key);
ALTER TABLE customer ADD PRIMARY KEY (c_key);
ALTER TABLE part ADD PRIMARY KEY (p_key);
CREATE INDEX ON partsupp (ps_part, ps_supplier);
ALTER TABLE orders ADD PRIMARY KEY (o_key);
CREATE INDEX ON orders (o_customer);
CREATE INDEX ON orders (o_date);
ALTER TABLE lineitem ADD PRIMARY KEY (l_order, l_line);
CREATE INDEX ON lineitem (l_part, l_supplier);
CREATE INDEX ON lineitem (l_shipped);

-- A star: four dimensions, of which the largest is a fifth of the facts.
CREATE TABLE dim_store AS SELECT draw(i, 40, 1::bigint << 62) AS st_key, (i % 40)::int AS st_region, i AS st_weight FROM generate_series(1, 1000) i;
CREATE TABLE dim_product AS SELECT draw(i, 41, 1::bigint << 62) AS pr_key, (i % 100)::int AS pr_category, i AS pr_weight FROM generate_series(1, greatest(:star / 500, 1000)) i;
CREATE TABLE dim_customer AS SELECT draw(i, 42, 1::bigint << 62) AS cu_key, (i % 200)::int AS cu_segment, i AS cu_weight FROM generate_series(1, greatest(:star / 50, 1000)) i;
CREATE TABLE dim_visit AS SELECT draw(i, 43, 1::bigint << 62) AS vi_key, (i % 10)::int AS vi_channel, i AS vi_weight FROM generate_series(1, greatest(:star / 5, 1000)) i;
CREATE TABLE fact AS
SELECT draw(1 + draw(i, 44, 1000), 40, 1::bigint << 62) AS f_store, draw(1 + draw(i, 45, greatest(:star / 500, 1000)), 41, 1::bigint << 62) AS f_product,
	draw(1 + draw(i, 46, greatest(:star / 50, 1000)), 42, 1::bigint << 62) AS f_customer, draw(1 + draw(i, 47, greatest(:star / 5, 1000)), 43, 1::bigint << 62) AS f_visit, draw(i, 48, 1000) AS f_amount
FROM generate_series(1, :star) i;
ALTER TABLE dim_store ADD PRIMARY KEY (st_key);
ALTER TABLE dim_product ADD PRIMARY KEY (pr_key);
ALTER TABLE dim_customer ADD PRIMARY KEY (cu_key);
ALTER TABLE dim_visit ADD PRIMARY KEY (vi_key);

VACUUM (ANALYZE) region, nation, supplier, customer, part, partsupp, orders, lineitem, fact, dim_store, dim_product, dim_customer, dim_visit;
