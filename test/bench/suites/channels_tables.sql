-- channels_tables.sql: a retailer with three channels (shops, mail, web) in the shape of TPC-DS: sales and returns of
-- each, stock, and dimensions that they share; keys that may be NULL, more sales towards the end of a year.  At scale 1
-- the shops have 2.9 million sales.
CREATE TABLE days AS
SELECT (2450000 + i)::int AS d_key, d AS d_date, extract(year FROM d)::int AS d_year, extract(month FROM d)::int AS d_month, extract(quarter FROM d)::int AS d_quarter, extract(day FROM d)::int AS d_dom,
	trim(to_char(d, 'Day'))::char(9) AS d_day_name, (i / 7)::int AS d_week_seq, ((extract(year FROM d) - 1900) * 12 + extract(month FROM d) - 1)::int AS d_month_seq, CASE WHEN hit(i, 1, 30) THEN 'Y' ELSE 'N' END::char(1) AS d_holiday
FROM (SELECT i, date '1995-01-01' + i AS d FROM generate_series(0, 4000) i) days;
CREATE TABLE times AS SELECT i::int AS t_key, (i / 3600)::int AS t_hour, (i / 60 % 60)::int AS t_minute, CASE WHEN i / 3600 BETWEEN 6 AND 8 THEN 'breakfast' WHEN i / 3600 BETWEEN 17 AND 20 THEN 'dinner' END AS t_meal FROM generate_series(0, 86399) i;
CREATE TABLE addresses AS
SELECT i::int AS a_key, pick(i, 2, '{Fairview,Midway,Oak Grove,Pleasant Hill,Five Points,Riverside,Union,Salem}') AS a_city, pick(i, 3, '{Williamson County,Ziebach County,Walker County,Daviess County,Barrow County}') AS a_county,
	CASE WHEN hit(i, 4, 40) THEN NULL ELSE pick_skewed(i, 5, '{TN,GA,TX,OH,KY,VA,IN,MN,SD,LA,IL,NE}') END::char(2) AS a_state, lpad(draw(i, 6, 100000)::text, 5, '0') AS a_zip, (-5 - draw(i, 7, 4))::numeric(5, 2) AS a_offset, 'United States'::varchar(20) AS a_country
FROM generate_series(1, (50000 * :scale)::bigint + 100) i;
CREATE TABLE classes AS
SELECT i::int AS c_key, pick(i, 8, '{M,F}')::char(1) AS c_gender, pick(i, 9, '{M,S,D,W,U}')::char(1) AS c_marital, pick(i, 10, '{Primary,Secondary,College,2 yr Degree,4 yr Degree,Advanced Degree,Unknown}')::char(20) AS c_education, draw(i, 11, 7)::int AS c_dependents
FROM generate_series(1, (200000 * :scale)::bigint + 100) i;
CREATE TABLE households AS
SELECT i::int AS h_key, (1 + draw(i, 12, 20))::int AS h_income, pick(i, 13, '{0-500,501-1000,1001-5000,>10000,Unknown}')::char(15) AS h_potential, draw(i, 14, 10)::int AS h_dependents, (draw(i, 15, 6) - 1)::int AS h_vehicles FROM generate_series(1, 7200) i;
CREATE TABLE shoppers AS
SELECT i::int AS s_key, 'AAAA' || lpad(i::text, 12, 'A') AS s_id, CASE WHEN hit(i, 16, 30) THEN NULL ELSE 1 + draw(i, 17, (200000 * :scale)::bigint + 100) END::int AS s_class, CASE WHEN hit(i, 18, 30) THEN NULL ELSE 1 + draw(i, 19, 7200) END::int AS s_household,
	(1 + draw(i, 20, (50000 * :scale)::bigint + 100))::int AS s_address, pick(i, 21, '{Dr.,Miss,Mr.,Mrs.,Ms.,Sir}')::char(10) AS s_salutation, CASE WHEN hit(i, 22, 30) THEN NULL ELSE pick(i, 23, '{James,Mary,John,Linda,Karen,Donald}') || draw(i, 24, 90) END AS s_first,
	CASE WHEN hit(i, 25, 30) THEN NULL ELSE pick(i, 26, '{Smith,Jones,Brown,Lewis,White}') || draw(i, 27, 200) END AS s_last, (1920 + draw(i, 28, 70))::int AS s_birth_year, (1 + draw(i, 29, 12))::int AS s_birth_month, pick(i, 30, '{Y,N}')::char(1) AS s_preferred
FROM generate_series(1, (100000 * :scale)::bigint) i;
CREATE TABLE items AS
SELECT i::int AS i_key, 'AAAA' || lpad((i / 2)::text, 12, 'A') AS i_id, 'item ' || draw(i, 31, 1000000) AS i_text, (draw(i, 32, 10000) / 100.0)::numeric(7, 2) AS i_price, (draw(i, 33, 6000) / 100.0)::numeric(7, 2) AS i_cost,
	1001001 + draw(i, 34, 900)::int AS i_brand_id, 'brand ' || draw(i, 34, 900) AS i_brand, pick(i, 35, '{Books,Home,Electronics,Jewelry,Men,Women,Music,Shoes,Sports,Children}')::char(50) AS i_category,
	'class ' || draw(i, 36, 16) AS i_class, (1 + draw(i, 37, 1000))::int AS i_maker_id, 'maker ' || draw(i, 37, 1000) AS i_maker, pick(i, 38, '{red,blue,green,navajo,peru,tan,ghost,slate}')::char(20) AS i_color, pick(i, 39, '{small,medium,large,extra large,N/A}')::char(20) AS i_size
FROM generate_series(1, (18000 * :scale)::bigint + 100) i;
CREATE TABLE shops AS
SELECT i::int AS h_key, 'AAAA' || (i / 2) AS h_id, 'shop ' || draw(i, 40, 8) AS h_name, pick(i, 41, '{TN,TN,GA,OH}')::char(2) AS h_state, pick(i, 42, '{Williamson County,Ziebach County}') AS h_county, pick(i, 43, '{Midway,Fairview}') AS h_city, (200 + draw(i, 44, 100))::int AS h_staff, 8.0::numeric(5, 2) AS h_tax FROM generate_series(1, 12) i;
CREATE TABLE centers AS SELECT i::int AS w_key, 'center ' || i AS w_name, pick(i, 45, '{TN,GA}')::char(2) AS w_state, CASE WHEN i = 3 THEN NULL ELSE (50000 + draw(i, 46, 900000))::int END AS w_size FROM generate_series(1, 6) i;
CREATE TABLE modes AS SELECT i::int AS m_key, pick(i, 47, '{EXPRESS,OVERNIGHT,REGULAR,LIBRARY,TWO DAY}')::char(30) AS m_type, 'carrier ' || i AS m_carrier FROM generate_series(1, 20) i;
CREATE TABLE campaigns AS SELECT i::int AS p_key, pick(i, 48, '{Y,N}')::char(1) AS p_email, pick(i, 49, '{Y,N}')::char(1) AS p_event, pick(i, 50, '{Y,N}')::char(1) AS p_tv FROM generate_series(1, 300) i;

-- Of each channel: what is sold, in orders of some lines, and what comes back of it.
CREATE TABLE shop_sales AS
SELECT i AS n, CASE WHEN hit(i / 8, 51, 40) THEN NULL ELSE 2450000 + 1000 + draw(i / 8, 52, 1800) + CASE WHEN hit(i / 8, 53, 3) THEN draw(i / 8, 54, 20) ELSE 0 END END::int AS ss_day, CASE WHEN hit(i / 8, 55, 40) THEN NULL ELSE 28800 + draw(i / 8, 56, 46800) END::int AS ss_time,
	(1 + draw(i, 57, (18000 * :scale)::bigint + 100))::int AS ss_item, CASE WHEN hit(i / 8, 58, 40) THEN NULL ELSE 1 + draw(i / 8, 59, (100000 * :scale)::bigint) END::int AS ss_shopper, CASE WHEN hit(i / 8, 60, 40) THEN NULL ELSE 1 + draw(i / 8, 61, (200000 * :scale)::bigint + 100) END::int AS ss_class,
	CASE WHEN hit(i / 8, 62, 40) THEN NULL ELSE 1 + draw(i / 8, 63, 7200) END::int AS ss_household, CASE WHEN hit(i / 8, 64, 40) THEN NULL ELSE 1 + draw(i / 8, 65, (50000 * :scale)::bigint + 100) END::int AS ss_address, CASE WHEN hit(i / 8, 66, 40) THEN NULL ELSE 1 + skewed(i / 8, 67, 12) END::int AS ss_shop,
	CASE WHEN hit(i, 68, 40) THEN NULL ELSE 1 + draw(i, 69, 300) END::int AS ss_campaign, (i / 8)::bigint AS ss_ticket, CASE WHEN hit(i, 70, 40) THEN NULL ELSE 1 + draw(i, 71, 100) END::int AS ss_quantity, (1 + draw(i, 72, 10000) / 100.0)::numeric(7, 2) AS ss_cost,
	(1 + draw(i, 73, 20000) / 100.0)::numeric(7, 2) AS ss_list, CASE WHEN hit(i, 74, 40) THEN NULL ELSE draw(i, 75, 15000) / 100.0 END::numeric(7, 2) AS ss_price, (draw(i, 76, 100) * draw(i, 75, 15000) / 100.0)::numeric(7, 2) AS ss_paid, CASE WHEN hit(i, 77, 5) THEN draw(i, 78, 100000) / 100.0 ELSE 0 END::numeric(7, 2) AS ss_coupon,
	((draw(i, 79, 1200000) - 800000) / 100.0)::numeric(7, 2) AS ss_profit
FROM generate_series(0, (2880000 * :scale)::bigint) i;
CREATE TABLE shop_returns AS
SELECT (ss_day + 1 + draw(n, 80, 90))::int AS sr_day, ss_item AS sr_item, CASE WHEN hit(n, 81, 10) THEN NULL ELSE ss_shopper END AS sr_shopper, ss_class AS sr_class, ss_address AS sr_address, ss_shop AS sr_shop, ss_ticket AS sr_ticket, (1 + draw(n, 82, 1 + ss_quantity))::int AS sr_quantity,
	(draw(n, 83, 100000) / 100.0)::numeric(7, 2) AS sr_amount, (draw(n, 84, 50000) / 100.0)::numeric(7, 2) AS sr_loss, (1 + draw(n, 85, 35))::int AS sr_reason
FROM shop_sales WHERE hit(n, 86, 10);
CREATE TABLE mail_sales AS
SELECT i AS n, CASE WHEN hit(i / 9, 87, 200) THEN NULL ELSE 2450000 + 1000 + draw(i / 9, 88, 1800) END::int AS ms_day, CASE WHEN hit(i / 9, 89, 200) THEN NULL ELSE 2450000 + 1002 + draw(i / 9, 88, 1800) + draw(i, 90, 120) END::int AS ms_ship_day, (1 + draw(i, 91, (18000 * :scale)::bigint + 100))::int AS ms_item,
	CASE WHEN hit(i / 9, 92, 200) THEN NULL ELSE 1 + draw(i / 9, 93, (100000 * :scale)::bigint) END::int AS ms_shopper, CASE WHEN hit(i / 9, 94, 200) THEN NULL ELSE 1 + draw(i / 9, 95, (200000 * :scale)::bigint + 100) END::int AS ms_class, CASE WHEN hit(i / 9, 96, 200) THEN NULL ELSE 1 + draw(i / 9, 97, (50000 * :scale)::bigint + 100) END::int AS ms_address,
	(1 + draw(i / 9, 98, 6))::int AS ms_center, (1 + draw(i, 99, 20))::int AS ms_mode, CASE WHEN hit(i, 100, 200) THEN NULL ELSE 1 + draw(i, 101, 300) END::int AS ms_campaign, (i / 9)::bigint AS ms_order, CASE WHEN hit(i, 102, 200) THEN NULL ELSE 1 + draw(i, 103, 100) END::int AS ms_quantity, (1 + draw(i, 104, 10000) / 100.0)::numeric(7, 2) AS ms_cost,
	(1 + draw(i, 105, 20000) / 100.0)::numeric(7, 2) AS ms_list, (draw(i, 106, 15000) / 100.0)::numeric(7, 2) AS ms_price, (draw(i, 107, 100) * draw(i, 106, 15000) / 100.0)::numeric(7, 2) AS ms_paid, (draw(i, 108, 30000) / 100.0)::numeric(7, 2) AS ms_discount, ((draw(i, 109, 1200000) - 800000) / 100.0)::numeric(7, 2) AS ms_profit
FROM generate_series(0, (1440000 * :scale)::bigint) i;
CREATE TABLE mail_returns AS
SELECT (ms_ship_day + 1 + draw(n, 110, 90))::int AS mr_day, ms_item AS mr_item, ms_shopper AS mr_shopper, ms_address AS mr_address, ms_order AS mr_order, (1 + draw(n, 111, 1 + ms_quantity))::int AS mr_quantity, (draw(n, 112, 100000) / 100.0)::numeric(7, 2) AS mr_amount, (draw(n, 113, 50000) / 100.0)::numeric(7, 2) AS mr_loss
FROM mail_sales WHERE hit(n, 114, 10);
CREATE TABLE web_sales AS
SELECT i AS n, CASE WHEN hit(i / 12, 115, 400) THEN NULL ELSE 2450000 + 1000 + draw(i / 12, 116, 1800) END::int AS ws_day, (2450000 + 1002 + draw(i / 12, 116, 1800) + draw(i, 117, 120))::int AS ws_ship_day, (1 + draw(i, 118, (18000 * :scale)::bigint + 100))::int AS ws_item, CASE WHEN hit(i / 12, 119, 400) THEN NULL ELSE 1 + draw(i / 12, 120, (100000 * :scale)::bigint) END::int AS ws_shopper,
	CASE WHEN hit(i / 12, 121, 400) THEN NULL ELSE 1 + draw(i / 12, 122, (50000 * :scale)::bigint + 100) END::int AS ws_address, (1 + draw(i, 123, 30))::int AS ws_site, (1 + draw(i, 124, 6))::int AS ws_center, (1 + draw(i, 125, 20))::int AS ws_mode, CASE WHEN hit(i, 126, 200) THEN NULL ELSE 1 + draw(i, 127, 300) END::int AS ws_campaign, (i / 12)::bigint AS ws_order, (1 + draw(i, 128, 100))::int AS ws_quantity,
	(1 + draw(i, 129, 10000) / 100.0)::numeric(7, 2) AS ws_cost, (1 + draw(i, 130, 20000) / 100.0)::numeric(7, 2) AS ws_list, (draw(i, 131, 15000) / 100.0)::numeric(7, 2) AS ws_price, (draw(i, 132, 100) * draw(i, 131, 15000) / 100.0)::numeric(7, 2) AS ws_paid, (draw(i, 133, 30000) / 100.0)::numeric(7, 2) AS ws_discount, ((draw(i, 134, 1200000) - 800000) / 100.0)::numeric(7, 2) AS ws_profit
FROM generate_series(0, (720000 * :scale)::bigint) i;
CREATE TABLE web_returns AS
SELECT (ws_ship_day + 1 + draw(n, 135, 90))::int AS wr_day, ws_item AS wr_item, ws_shopper AS wr_shopper, ws_address AS wr_address, ws_order AS wr_order, (1 + draw(n, 136, ws_quantity))::int AS wr_quantity, (draw(n, 137, 100000) / 100.0)::numeric(7, 2) AS wr_amount, (draw(n, 138, 50000) / 100.0)::numeric(7, 2) AS wr_loss
FROM web_sales WHERE hit(n, 139, 10);
CREATE TABLE stock AS
SELECT (2450000 + 1000 + week * 7)::int AS st_day, i_key AS st_item, w_key AS st_center, CASE WHEN hit(week * 1000003::bigint + i_key * 8 + w_key, 140, 20) THEN NULL ELSE draw(week * 1000003::bigint + i_key * 8 + w_key, 141, 1000) END::int AS st_quantity
FROM generate_series(0, 51) week, items, centers WHERE hit(week * 1000003::bigint + i_key * 8 + w_key, 142, 2);

ALTER TABLE days ADD PRIMARY KEY (d_key);
ALTER TABLE times ADD PRIMARY KEY (t_key);
ALTER TABLE addresses ADD PRIMARY KEY (a_key);
ALTER TABLE classes ADD PRIMARY KEY (c_key);
ALTER TABLE households ADD PRIMARY KEY (h_key);
ALTER TABLE shoppers ADD PRIMARY KEY (s_key);
ALTER TABLE items ADD PRIMARY KEY (i_key);
ALTER TABLE shops ADD PRIMARY KEY (h_key);
ALTER TABLE shop_sales ADD FOREIGN KEY (ss_item) REFERENCES items, ADD FOREIGN KEY (ss_shopper) REFERENCES shoppers;
ALTER TABLE mail_sales ADD FOREIGN KEY (ms_item) REFERENCES items;
CREATE INDEX ON shop_sales (ss_item, ss_ticket);
CREATE INDEX ON shop_sales (ss_shopper);
CREATE INDEX ON shop_returns (sr_item, sr_ticket);
CREATE INDEX ON mail_sales (ms_item, ms_order);
CREATE INDEX ON mail_returns (mr_item, mr_order);
CREATE INDEX ON web_sales (ws_item, ws_order);
CREATE INDEX ON web_sales (ws_order);
-- what is committed is to be written: before that VACUUM marks no page as all-visible
SET synchronous_commit = on;
CREATE INDEX ON stock (st_item);
VACUUM (ANALYZE) days, times, addresses, classes, households, shoppers, items, shops, centers, modes, campaigns, shop_sales, shop_returns, mail_sales, mail_returns, web_sales, web_returns, stock;
