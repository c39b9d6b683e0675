-- channels_queries.sql: questions in the shapes of TPC-DS's, about channels_tables.sql.  Each orders what it returns
-- by all that tells rows apart, or returns few.

-- returners_above_average
WITH total AS (SELECT sr_shopper AS shopper, sr_shop AS shop, sum(sr_amount) AS amount FROM shop_returns, days WHERE sr_day = d_key AND d_year = 2000 GROUP BY sr_shopper, sr_shop)
SELECT s_id FROM total t1, shops, shoppers WHERE t1.amount > (SELECT avg(amount) * 1.2 FROM total t2 WHERE t1.shop = t2.shop) AND h_key = t1.shop AND h_state = 'TN' AND t1.shopper = s_key ORDER BY s_id LIMIT 100;
-- weekdays_of_two_years
WITH sold AS (SELECT ws_day AS day, ws_price AS price FROM web_sales UNION ALL SELECT ms_day, ms_price FROM mail_sales),
	week AS (SELECT d_week_seq, sum(CASE WHEN d_day_name = 'Sunday' THEN price ELSE NULL END) AS sun, sum(CASE WHEN d_day_name = 'Monday' THEN price ELSE NULL END) AS mon, sum(CASE WHEN d_day_name = 'Friday' THEN price ELSE NULL END) AS fri,
		sum(CASE WHEN d_day_name = 'Saturday' THEN price ELSE NULL END) AS sat FROM sold, days WHERE d_key = day GROUP BY d_week_seq)
SELECT a.d_week_seq, round(a.sun / b.sun, 2), round(a.mon / b.mon, 2), round(a.fri / b.fri, 2), round(a.sat / b.sat, 2)
FROM (SELECT w.* FROM week w, (SELECT DISTINCT d_week_seq FROM days WHERE d_year = 1999) d WHERE d.d_week_seq = w.d_week_seq) a, (SELECT w.* FROM week w, (SELECT DISTINCT d_week_seq FROM days WHERE d_year = 2000) d WHERE d.d_week_seq = w.d_week_seq) b
WHERE a.d_week_seq = b.d_week_seq - 52 ORDER BY a.d_week_seq;
-- brands_of_november
SELECT d_year, i_brand_id, i_brand, sum(ss_paid) AS amount FROM days, shop_sales, items WHERE d_key = ss_day AND ss_item = i_key AND i_maker_id < 128 AND d_month = 11 GROUP BY d_year, i_brand, i_brand_id ORDER BY d_year, amount DESC, i_brand_id LIMIT 100;
-- growth_by_channel
WITH year_total AS (
	SELECT s_id, s_first, s_last, d_year, sum((ss_list - ss_cost - ss_coupon + ss_price) / 2) AS total, 's' AS kind FROM shoppers, shop_sales, days WHERE s_key = ss_shopper AND ss_day = d_key GROUP BY s_id, s_first, s_last, d_year
	UNION ALL SELECT s_id, s_first, s_last, d_year, sum((ws_list - ws_cost - ws_discount + ws_price) / 2), 'w' FROM shoppers, web_sales, days WHERE s_key = ws_shopper AND ws_day = d_key GROUP BY s_id, s_first, s_last, d_year)
SELECT b.s_id, b.s_first, b.s_last FROM year_total a, year_total b, year_total c, year_total d
WHERE a.s_id = b.s_id AND a.s_id = c.s_id AND a.s_id = d.s_id AND a.kind = 's' AND c.kind = 'w' AND b.kind = 's' AND d.kind = 'w' AND a.d_year = 1999 AND b.d_year = 2000 AND c.d_year = 1999 AND d.d_year = 2000 AND a.total > 0 AND c.total > 0
	AND CASE WHEN c.total > 0 THEN d.total / c.total END > CASE WHEN a.total > 0 THEN b.total / a.total END ORDER BY 1, 2, 3 LIMIT 100;
-- channels_rolled_up
WITH s AS (SELECT shop, sum(price) AS sales, sum(profit) AS profit, sum(returned) AS returned, sum(loss) AS loss FROM (
		SELECT ss_shop AS shop, ss_day AS day, ss_price AS price, ss_profit AS profit, 0::numeric(7, 2) AS returned, 0::numeric(7, 2) AS loss FROM shop_sales
		UNION ALL SELECT sr_shop, sr_day, 0::numeric(7, 2), 0::numeric(7, 2), sr_amount, sr_loss FROM shop_returns) x, days WHERE day = d_key AND d_date BETWEEN date '2000-08-23' AND date '2000-08-23' + 30 GROUP BY shop),
	w AS (SELECT site, sum(price) AS sales, sum(profit) AS profit, sum(returned) AS returned, sum(loss) AS loss FROM (
		SELECT ws_site AS site, ws_day AS day, ws_price AS price, ws_profit AS profit, 0::numeric(7, 2) AS returned, 0::numeric(7, 2) AS loss FROM web_sales
		UNION ALL SELECT ws_site, wr_day, 0::numeric(7, 2), 0::numeric(7, 2), wr_amount, wr_loss FROM web_returns LEFT JOIN web_sales ON wr_item = ws_item AND wr_order = ws_order) x, days WHERE day = d_key AND d_date BETWEEN date '2000-08-23' AND date '2000-08-23' + 30 GROUP BY site)
SELECT channel, id, sum(sales), sum(returned), sum(profit) FROM (SELECT 'shop' AS channel, 'shop ' || shop AS id, sales, returned, profit - loss AS profit FROM s UNION ALL SELECT 'web', 'site ' || site, sales, returned, profit - loss FROM w) x
GROUP BY ROLLUP (channel, id) ORDER BY channel NULLS LAST, id NULLS LAST, 3 LIMIT 100;
-- dear_items_by_state
SELECT a_state, count(*) AS n FROM addresses a, shoppers c, shop_sales s, days d, items i
WHERE a.a_key = c.s_address AND c.s_key = s.ss_shopper AND s.ss_day = d.d_key AND s.ss_item = i.i_key AND d.d_month_seq = (SELECT DISTINCT d_month_seq FROM days WHERE d_year = 2000 AND d_month = 1)
	AND i.i_price > 1.2 * (SELECT avg(j.i_price) FROM items j WHERE j.i_category = i.i_category) GROUP BY a_state HAVING count(*) >= 10 ORDER BY n, a_state LIMIT 100;
-- means_by_item
SELECT i_id, avg(ss_quantity), avg(ss_list), avg(ss_coupon), avg(ss_price) FROM shop_sales, classes, days, items, campaigns
WHERE ss_day = d_key AND ss_item = i_key AND ss_class = c_key AND ss_campaign = p_key AND c_gender = 'M' AND c_marital = 'S' AND c_education = 'College' AND (p_email = 'N' OR p_event = 'N') AND d_year = 2000 GROUP BY i_id ORDER BY i_id LIMIT 100;
-- zips_of_shops
SELECT h_name, sum(ss_profit) FROM shop_sales, days, shops, (SELECT a_zip FROM (SELECT substr(a_zip, 1, 3) AS a_zip FROM addresses WHERE substr(a_zip, 1, 1) IN ('2', '4', '6')
	INTERSECT SELECT a_zip FROM (SELECT substr(a_zip, 1, 3) AS a_zip, count(*) AS n FROM addresses, shoppers WHERE a_key = s_address AND s_preferred = 'Y' GROUP BY substr(a_zip, 1, 3) HAVING count(*) > 10) x) y) z
WHERE ss_shop = h_key AND ss_day = d_key AND d_quarter = 2 AND d_year = 1998 AND substr(h_county, 1, 1) <> substr(z.a_zip, 1, 1) GROUP BY h_name ORDER BY h_name LIMIT 100;
-- buckets
SELECT CASE WHEN (SELECT count(*) FROM shop_sales WHERE ss_quantity BETWEEN 1 AND 20) > 7000 THEN (SELECT avg(ss_coupon) FROM shop_sales WHERE ss_quantity BETWEEN 1 AND 20) ELSE (SELECT avg(ss_paid) FROM shop_sales WHERE ss_quantity BETWEEN 1 AND 20) END,
	CASE WHEN (SELECT count(*) FROM shop_sales WHERE ss_quantity BETWEEN 21 AND 40) > 900000 THEN (SELECT avg(ss_coupon) FROM shop_sales WHERE ss_quantity BETWEEN 21 AND 40) ELSE (SELECT avg(ss_paid) FROM shop_sales WHERE ss_quantity BETWEEN 21 AND 40) END FROM campaigns WHERE p_key = 1;
-- classes_of_active
SELECT c_gender, c_marital, c_education, count(*) AS n, c_dependents FROM shoppers s, addresses, classes WHERE s.s_address = a_key AND a_county IN ('Williamson County', 'Walker County') AND c_key = s.s_class
	AND EXISTS (SELECT FROM shop_sales, days WHERE s.s_key = ss_shopper AND ss_day = d_key AND d_year = 2001 AND d_month BETWEEN 1 AND 4)
	AND (EXISTS (SELECT FROM web_sales, days WHERE s.s_key = ws_shopper AND ws_day = d_key AND d_year = 2001 AND d_month BETWEEN 1 AND 4) OR EXISTS (SELECT FROM mail_sales, days WHERE s.s_key = ms_shopper AND ms_day = d_key AND d_year = 2001 AND d_month BETWEEN 1 AND 4))
GROUP BY c_gender, c_marital, c_education, c_dependents ORDER BY 1, 2, 3, 5 LIMIT 100;
-- not_by_mail_nor_web
SELECT c_gender, c_marital, c_education, count(*) FROM shoppers s, addresses, classes WHERE s.s_address = a_key AND a_state IN ('TN', 'GA', 'TX') AND c_key = s.s_class
	AND EXISTS (SELECT FROM shop_sales, days WHERE s.s_key = ss_shopper AND ss_day = d_key AND d_year = 1999) AND NOT EXISTS (SELECT FROM web_sales, days WHERE s.s_key = ws_shopper AND ws_day = d_key AND d_year = 1999)
	AND NOT EXISTS (SELECT FROM mail_sales, days WHERE s.s_key = ms_shopper AND ms_day = d_key AND d_year = 1999) GROUP BY c_gender, c_marital, c_education ORDER BY 1, 2, 3 LIMIT 100;
-- shares_of_class
SELECT i_id, i_category, i_class, i_price, sum(ms_paid) AS revenue, sum(ms_paid) * 100 / sum(sum(ms_paid)) OVER (PARTITION BY i_class) AS share FROM mail_sales, items, days
WHERE ms_item = i_key AND i_category IN ('Books', 'Home', 'Sports') AND ms_day = d_key AND d_date BETWEEN date '1999-02-22' AND date '1999-02-22' + 30 GROUP BY i_id, i_category, i_class, i_price ORDER BY i_category, i_class, i_id, i_price, share LIMIT 100;
-- either_condition
SELECT avg(ss_quantity), avg(ss_list), avg(ss_cost), sum(ss_cost) FROM shop_sales, shops, classes, households h, addresses, days
WHERE shops.h_key = ss_shop AND ss_day = d_key AND d_year = 2001 AND ((ss_household = h.h_key AND c_key = ss_class AND c_marital = 'M' AND c_education = 'College' AND ss_price BETWEEN 100 AND 150 AND h_dependents = 3)
	OR (ss_household = h.h_key AND c_key = ss_class AND c_marital = 'S' AND c_education = 'Primary' AND ss_price BETWEEN 50 AND 100 AND h_dependents = 1))
	AND ((ss_address = a_key AND a_country = 'United States' AND a_state IN ('TX', 'OH') AND ss_profit BETWEEN 100 AND 2000) OR (ss_address = a_key AND a_country = 'United States' AND a_state IN ('VA', 'KY', 'TN') AND ss_profit BETWEEN 150 AND 3000));
-- sold_in_all_channels
WITH common AS (SELECT i_key AS item FROM items, (SELECT i_brand_id, i_class FROM shop_sales, items, days WHERE ss_item = i_key AND ss_day = d_key AND d_year BETWEEN 1999 AND 2001
	INTERSECT SELECT i_brand_id, i_class FROM mail_sales, items, days WHERE ms_item = i_key AND ms_day = d_key AND d_year BETWEEN 1999 AND 2001
	INTERSECT SELECT i_brand_id, i_class FROM web_sales, items, days WHERE ws_item = i_key AND ws_day = d_key AND d_year BETWEEN 1999 AND 2001) x WHERE items.i_brand_id = x.i_brand_id AND items.i_class = x.i_class),
	mean AS (SELECT avg(q * p) AS mean FROM (SELECT ss_quantity AS q, ss_list AS p FROM shop_sales, days WHERE ss_day = d_key AND d_year BETWEEN 1999 AND 2001 UNION ALL SELECT ms_quantity, ms_list FROM mail_sales, days WHERE ms_day = d_key AND d_year BETWEEN 1999 AND 2001) x)
SELECT channel, i_brand_id, i_class, sum(sales), sum(n) FROM (
	SELECT 'shop' AS channel, i_brand_id, i_class, sum(ss_quantity * ss_list) AS sales, count(*) AS n FROM shop_sales, items, days WHERE ss_item IN (SELECT item FROM common) AND ss_item = i_key AND ss_day = d_key AND d_year = 2001 AND d_month = 11 GROUP BY i_brand_id, i_class HAVING sum(ss_quantity * ss_list) > (SELECT mean FROM mean)
	UNION ALL SELECT 'mail', i_brand_id, i_class, sum(ms_quantity * ms_list), count(*) FROM mail_sales, items, days WHERE ms_item IN (SELECT item FROM common) AND ms_item = i_key AND ms_day = d_key AND d_year = 2001 AND d_month = 11 GROUP BY i_brand_id, i_class HAVING sum(ms_quantity * ms_list) > (SELECT mean FROM mean)) y
GROUP BY ROLLUP (channel, i_brand_id, i_class) ORDER BY 1, 2, 3 LIMIT 100;
-- shipped_from_one_center
SELECT count(DISTINCT ms_order), sum(ms_paid), sum(ms_profit) FROM mail_sales m1, days, addresses WHERE d_date BETWEEN date '2000-02-01' AND date '2000-02-01' + 60 AND m1.ms_ship_day = d_key AND m1.ms_address = a_key AND a_state = 'GA'
	AND EXISTS (SELECT FROM mail_sales m2 WHERE m1.ms_order = m2.ms_order AND m1.ms_mode <> m2.ms_mode) AND NOT EXISTS (SELECT FROM mail_returns r WHERE m1.ms_order = r.mr_order);
-- sold_returned_sold_again
SELECT i_id, i_text, h_state, count(ss_quantity), avg(ss_quantity), stddev_samp(ss_quantity), stddev_samp(ss_quantity) / avg(ss_quantity), count(sr_quantity), avg(sr_quantity), stddev_samp(sr_quantity), count(ms_quantity), avg(ms_quantity)
FROM shop_sales, shop_returns, mail_sales, days d1, days d2, shops, items
WHERE d1.d_year = 2000 AND d1.d_key = ss_day AND i_key = ss_item AND h_key = ss_shop AND ss_shopper = sr_shopper AND ss_item = sr_item AND ss_ticket = sr_ticket AND sr_day = d2.d_key AND d2.d_year IN (2000, 2001) AND sr_shopper = ms_shopper
GROUP BY i_id, i_text, h_state ORDER BY i_id, i_text, h_state LIMIT 100;
-- stock_before_and_after
SELECT w_name, i_id, before, after FROM (SELECT w_name, i_id, sum(CASE WHEN d_date < date '1998-05-15' THEN st_quantity ELSE 0 END) AS before, sum(CASE WHEN d_date >= date '1998-05-15' THEN st_quantity ELSE 0 END) AS after
	FROM stock, centers, items, days WHERE i_price BETWEEN 10 AND 40 AND i_key = st_item AND st_center = w_key AND st_day = d_key AND d_date BETWEEN date '1998-04-15' AND date '1998-06-15' GROUP BY w_name, i_id) x
WHERE CASE WHEN before > 0 THEN after::numeric / before ELSE NULL END BETWEEN 2.0 / 3 AND 3.0 / 2 ORDER BY w_name, i_id LIMIT 100;
-- stock_rolled_up
SELECT i_category, i_class, i_brand, avg(st_quantity) AS mean FROM stock, days, items WHERE st_day = d_key AND st_item = i_key AND d_month_seq BETWEEN 1170 AND 1181 GROUP BY ROLLUP (i_category, i_class, i_brand) ORDER BY mean, i_category, i_class, i_brand LIMIT 100;
-- frequent_items
WITH frequent AS (SELECT ss_item AS item, d_date, count(*) AS n FROM shop_sales, days WHERE ss_day = d_key AND d_year = 1999 GROUP BY ss_item, d_date HAVING count(*) > 1),
	most AS (SELECT max(sales) AS most FROM (SELECT ss_shopper, sum(ss_quantity * ss_price) AS sales FROM shop_sales, days WHERE ss_day = d_key AND d_year = 1999 GROUP BY ss_shopper) x),
	best AS (SELECT ss_shopper AS shopper FROM shop_sales GROUP BY ss_shopper HAVING sum(ss_quantity * ss_price) > 0.5 * (SELECT most FROM most))
SELECT sum(sales) FROM (SELECT ms_quantity * ms_list AS sales FROM mail_sales, days WHERE d_year = 2000 AND ms_day = d_key AND ms_item IN (SELECT item FROM frequent) AND ms_shopper IN (SELECT shopper FROM best)
	UNION ALL SELECT ws_quantity * ws_list FROM web_sales, days WHERE d_year = 2000 AND ws_day = d_key AND ws_item IN (SELECT item FROM frequent) AND ws_shopper IN (SELECT shopper FROM best)) y;
-- paid_above_mean_of_shop
WITH paid AS (SELECT s_last, s_first, h_name, a_state, i_color, sum(ss_paid) AS paid FROM shop_sales, shop_returns, shops, items, shoppers, addresses
	WHERE ss_ticket = sr_ticket AND ss_item = sr_item AND ss_shopper = s_key AND ss_item = i_key AND ss_shop = h_key AND s_address = a_key AND a_state <> h_state GROUP BY s_last, s_first, h_name, a_state, i_color)
SELECT s_last, s_first, h_name, sum(paid) FROM paid WHERE i_color = 'peru' GROUP BY s_last, s_first, h_name HAVING sum(paid) > (SELECT 0.05 * avg(paid) FROM paid) ORDER BY 1, 2, 3 LIMIT 100;
-- means_rolled_up
SELECT i_id, h_state, grouping(h_state), avg(ss_quantity), avg(ss_list), avg(ss_coupon), avg(ss_price) FROM shop_sales, classes, days, shops, items
WHERE ss_day = d_key AND ss_item = i_key AND ss_shop = h_key AND ss_class = c_key AND c_gender = 'F' AND c_marital = 'W' AND d_year = 1998 AND h_state IN ('TN', 'GA') GROUP BY ROLLUP (i_id, h_state) ORDER BY i_id, h_state LIMIT 100;
-- prices_in_buckets
SELECT * FROM (SELECT avg(ss_list) AS a1, count(ss_list) AS n1, count(DISTINCT ss_list) AS d1 FROM shop_sales WHERE ss_quantity BETWEEN 0 AND 5 AND (ss_list BETWEEN 8 AND 18 OR ss_coupon BETWEEN 459 AND 1459 OR ss_cost BETWEEN 57 AND 77)) b1,
	(SELECT avg(ss_list) AS a2, count(ss_list) AS n2, count(DISTINCT ss_list) AS d2 FROM shop_sales WHERE ss_quantity BETWEEN 6 AND 10 AND (ss_list BETWEEN 90 AND 100 OR ss_coupon BETWEEN 2323 AND 3323 OR ss_cost BETWEEN 31 AND 51)) b2;
-- makers_by_channel
WITH s AS (SELECT i_maker_id, sum(ss_price) AS total FROM shop_sales, days, addresses, items WHERE i_maker_id IN (SELECT i_maker_id FROM items WHERE i_category IN ('Books')) AND ss_item = i_key AND ss_day = d_key AND d_year = 1999 AND d_month = 3 AND ss_address = a_key AND a_offset = -5 GROUP BY i_maker_id),
	m AS (SELECT i_maker_id, sum(ms_price) AS total FROM mail_sales, days, addresses, items WHERE i_maker_id IN (SELECT i_maker_id FROM items WHERE i_category IN ('Books')) AND ms_item = i_key AND ms_day = d_key AND d_year = 1999 AND d_month = 3 AND ms_address = a_key AND a_offset = -5 GROUP BY i_maker_id),
	w AS (SELECT i_maker_id, sum(ws_price) AS total FROM web_sales, days, addresses, items WHERE i_maker_id IN (SELECT i_maker_id FROM items WHERE i_category IN ('Books')) AND ws_item = i_key AND ws_day = d_key AND d_year = 1999 AND d_month = 3 AND ws_address = a_key AND a_offset = -5 GROUP BY i_maker_id)
SELECT i_maker_id, sum(total) AS total FROM (SELECT * FROM s UNION ALL SELECT * FROM m UNION ALL SELECT * FROM w) x GROUP BY i_maker_id ORDER BY total, i_maker_id LIMIT 100;
-- tickets_of_many_items
SELECT s_last, s_first, s_salutation, s_preferred, ss_ticket, n FROM (SELECT ss_ticket, ss_shopper, count(*) AS n FROM shop_sales, days, shops, households
	WHERE ss_day = d_key AND ss_shop = shops.h_key AND ss_household = households.h_key AND (d_dom BETWEEN 1 AND 3 OR d_dom BETWEEN 25 AND 28) AND (h_potential = '>10000' OR h_potential = 'Unknown') AND h_vehicles > 0
		AND CASE WHEN h_vehicles > 0 THEN h_dependents::numeric / h_vehicles ELSE NULL END > 1.2 AND d_year IN (1998, 1999, 2000) GROUP BY ss_ticket, ss_shopper) x, shoppers WHERE ss_shopper = s_key AND n BETWEEN 8 AND 20 ORDER BY s_last, s_first, s_salutation, s_preferred DESC, ss_ticket LIMIT 100;
-- margins_ranked
SELECT sum(ss_profit) / sum(ss_price) AS margin, i_category, i_class, grouping(i_category) + grouping(i_class) AS lochierarchy, rank() OVER (PARTITION BY grouping(i_category) + grouping(i_class), CASE WHEN grouping(i_class) = 0 THEN i_category END ORDER BY sum(ss_profit) / sum(ss_price)) AS place
FROM shop_sales, days, items, shops WHERE d_year = 2000 AND d_key = ss_day AND i_key = ss_item AND h_key = ss_shop AND h_state = 'TN' GROUP BY ROLLUP (i_category, i_class)
ORDER BY lochierarchy DESC, CASE WHEN grouping(i_category) + grouping(i_class) = 0 THEN i_category END, place, i_class LIMIT 100;
-- buyers_of_all_channels
SELECT count(*) FROM (SELECT DISTINCT s_last, s_first, d_date FROM shop_sales, days, shoppers WHERE ss_day = d_key AND ss_shopper = s_key AND d_month_seq BETWEEN 1200 AND 1211
	INTERSECT SELECT DISTINCT s_last, s_first, d_date FROM mail_sales, days, shoppers WHERE ms_day = d_key AND ms_shopper = s_key AND d_month_seq BETWEEN 1200 AND 1211) x;
-- buyers_of_shops_only
SELECT count(*) FROM ((SELECT DISTINCT s_last, s_first, d_date FROM shop_sales, days, shoppers WHERE ss_day = d_key AND ss_shopper = s_key AND d_month_seq BETWEEN 1200 AND 1211)
	EXCEPT (SELECT DISTINCT s_last, s_first, d_date FROM web_sales, days, shoppers WHERE ws_day = d_key AND ws_shopper = s_key AND d_month_seq BETWEEN 1200 AND 1211)) x;
-- stock_that_varies
WITH inv AS (SELECT w_name, w_key, i_key, d_month, dev, mean, CASE mean WHEN 0 THEN NULL ELSE dev / mean END AS cov FROM (SELECT w_name, w_key, i_key, d_month, stddev_samp(st_quantity) AS dev, avg(st_quantity) AS mean FROM stock, items, centers, days
	WHERE st_item = i_key AND st_center = w_key AND st_day = d_key AND d_year = 1998 GROUP BY w_name, w_key, i_key, d_month) x WHERE CASE mean WHEN 0 THEN 0 ELSE dev / mean END > 1)
SELECT a.w_key, a.i_key, a.d_month, a.mean, a.cov, b.d_month, b.mean, b.cov FROM inv a, inv b WHERE a.i_key = b.i_key AND a.w_key = b.w_key AND a.d_month = 3 AND b.d_month = 4 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8;
-- best_and_worst
SELECT a.place, i1.i_text, i2.i_text FROM (SELECT * FROM (SELECT item, rank() OVER (ORDER BY mean ASC) AS place FROM (SELECT ss_item AS item, avg(ss_profit) AS mean FROM shop_sales WHERE ss_shop = 4 GROUP BY ss_item HAVING avg(ss_profit) > 0.9 * (SELECT avg(ss_profit) FROM shop_sales WHERE ss_shop = 4 AND ss_address IS NULL GROUP BY ss_shop)) v) w WHERE place < 11) a,
	(SELECT * FROM (SELECT item, rank() OVER (ORDER BY mean DESC) AS place FROM (SELECT ss_item AS item, avg(ss_profit) AS mean FROM shop_sales WHERE ss_shop = 4 GROUP BY ss_item) v) w WHERE place < 11) b, items i1, items i2 WHERE a.place = b.place AND i1.i_key = a.item AND i2.i_key = b.item ORDER BY a.place, 2, 3;
-- other_city_than_home
SELECT s_last, s_first, a_city, bought, ss_ticket, amount, profit FROM (SELECT ss_ticket, ss_shopper, a_city AS bought, sum(ss_coupon) AS amount, sum(ss_profit) AS profit FROM shop_sales, days, shops, households, addresses
	WHERE ss_day = d_key AND ss_shop = shops.h_key AND ss_household = households.h_key AND ss_address = a_key AND (h_dependents = 5 OR h_vehicles = 3) AND d_day_name IN ('Saturday', 'Sunday') AND d_year IN (1999, 2000, 2001) AND h_city IN ('Fairview', 'Midway') GROUP BY ss_ticket, ss_shopper, ss_address, a_city) x, shoppers, addresses now
WHERE ss_shopper = s_key AND s_address = now.a_key AND now.a_city <> bought ORDER BY s_last, s_first, a_city, bought, ss_ticket LIMIT 100;
-- months_before_and_after
WITH v AS (SELECT i_category, i_brand, h_name, d_year, d_month, sum(ss_price) AS total, avg(sum(ss_price)) OVER (PARTITION BY i_category, i_brand, h_name, d_year) AS mean, rank() OVER (PARTITION BY i_category, i_brand, h_name ORDER BY d_year, d_month) AS rn
	FROM items, shop_sales, days, shops WHERE ss_item = i_key AND ss_day = d_key AND ss_shop = h_key AND d_year IN (1999, 2000) AND i_category IN ('Books', 'Music') GROUP BY i_category, i_brand, h_name, d_year, d_month)
SELECT v.i_category, v.i_brand, v.h_name, v.d_year, v.d_month, v.mean, v.total, p.total, n.total FROM v, v p, v n WHERE v.i_category = p.i_category AND v.i_category = n.i_category AND v.i_brand = p.i_brand AND v.i_brand = n.i_brand AND v.h_name = p.h_name AND v.h_name = n.h_name AND v.rn = p.rn + 1 AND v.rn = n.rn - 1
	AND v.d_year = 2000 AND v.mean > 0 AND CASE WHEN v.mean > 0 THEN abs(v.total - v.mean) / v.mean END > 0.1 ORDER BY v.total - v.mean, 1, 2, 3, 4, 5 LIMIT 100;
-- running_totals
WITH w AS (SELECT ws_item AS item, d_date, sum(sum(ws_price)) OVER (PARTITION BY ws_item ORDER BY d_date ROWS UNBOUNDED PRECEDING) AS total FROM web_sales, days WHERE ws_day = d_key AND d_month_seq BETWEEN 1200 AND 1203 GROUP BY ws_item, d_date),
	s AS (SELECT ss_item AS item, d_date, sum(sum(ss_price)) OVER (PARTITION BY ss_item ORDER BY d_date ROWS UNBOUNDED PRECEDING) AS total FROM shop_sales, days WHERE ss_day = d_key AND d_month_seq BETWEEN 1200 AND 1203 GROUP BY ss_item, d_date)
SELECT * FROM (SELECT item, d_date, max(web) OVER (PARTITION BY item ORDER BY d_date ROWS UNBOUNDED PRECEDING) AS web_most, max(shop) OVER (PARTITION BY item ORDER BY d_date ROWS UNBOUNDED PRECEDING) AS shop_most
	FROM (SELECT coalesce(w.item, s.item) AS item, coalesce(w.d_date, s.d_date) AS d_date, w.total AS web, s.total AS shop FROM w FULL JOIN s ON w.item = s.item AND w.d_date = s.d_date) x) y WHERE web_most > shop_most ORDER BY item, d_date LIMIT 100;
-- never_sold_on_the_web
SELECT i_category, count(*), sum(i_price) FROM items LEFT JOIN web_sales ON ws_item = i_key AND ws_quantity > 95 WHERE ws_item IS NULL GROUP BY i_category ORDER BY i_category;
-- sold_not_returned
SELECT d_year, ss_item % 100, sum(ss_quantity), sum(ss_cost), sum(ss_price) FROM shop_sales LEFT JOIN shop_returns ON sr_ticket = ss_ticket AND ss_item = sr_item JOIN days ON ss_day = d_key WHERE sr_ticket IS NULL GROUP BY d_year, ss_item % 100 ORDER BY 1, 2 LIMIT 100;
-- channels_matched
WITH a AS (SELECT ss_shopper AS shopper, ss_item AS item FROM shop_sales, days WHERE ss_day = d_key AND d_month_seq BETWEEN 1188 AND 1199 GROUP BY ss_shopper, ss_item), b AS (SELECT ms_shopper AS shopper, ms_item AS item FROM mail_sales, days WHERE ms_day = d_key AND d_month_seq BETWEEN 1188 AND 1199 GROUP BY ms_shopper, ms_item)
SELECT sum(CASE WHEN a.shopper IS NOT NULL AND b.shopper IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN a.shopper IS NULL AND b.shopper IS NOT NULL THEN 1 ELSE 0 END), sum(CASE WHEN a.shopper IS NOT NULL AND b.shopper IS NOT NULL THEN 1 ELSE 0 END) FROM a FULL JOIN b ON a.shopper = b.shopper AND a.item = b.item;
-- days_until_shipped
SELECT substr(w_name, 1, 20), m_type, sum(CASE WHEN ms_ship_day - ms_day <= 30 THEN 1 ELSE 0 END), sum(CASE WHEN ms_ship_day - ms_day > 30 AND ms_ship_day - ms_day <= 60 THEN 1 ELSE 0 END), sum(CASE WHEN ms_ship_day - ms_day > 60 AND ms_ship_day - ms_day <= 90 THEN 1 ELSE 0 END), sum(CASE WHEN ms_ship_day - ms_day > 90 THEN 1 ELSE 0 END)
FROM mail_sales, centers, modes, days WHERE d_month_seq BETWEEN 1188 AND 1199 AND ms_ship_day = d_key AND ms_center = w_key AND ms_mode = m_key GROUP BY substr(w_name, 1, 20), m_type ORDER BY 1, 2 LIMIT 100;
-- half_hours
SELECT * FROM (SELECT count(*) AS n1 FROM shop_sales, households, times, shops WHERE ss_time = t_key AND ss_household = households.h_key AND ss_shop = shops.h_key AND t_hour = 8 AND t_minute >= 30 AND ((h_dependents = 4 AND h_vehicles <= 6) OR (h_dependents = 2 AND h_vehicles <= 4)) AND h_name = 'shop 1') a,
	(SELECT count(*) AS n2 FROM shop_sales, households, times, shops WHERE ss_time = t_key AND ss_household = households.h_key AND ss_shop = shops.h_key AND t_hour = 9 AND t_minute < 30 AND ((h_dependents = 4 AND h_vehicles <= 6) OR (h_dependents = 2 AND h_vehicles <= 4)) AND h_name = 'shop 1') b;
-- discounts_far_above_mean
SELECT sum(ws_discount) FROM web_sales, items, days WHERE i_maker_id < 350 AND i_key = ws_item AND d_date BETWEEN date '2000-01-27' AND date '2000-01-27' + 90 AND d_key = ws_day
	AND ws_discount > (SELECT 1.3 * avg(ws_discount) FROM web_sales, days WHERE ws_item = i_key AND d_date BETWEEN date '2000-01-27' AND date '2000-01-27' + 90 AND d_key = ws_day);
-- scalars_of_each_shop
SELECT h_key, h_name, (SELECT count(*) FROM shop_returns WHERE sr_shop = h_key) AS returns, (SELECT max(ss_paid) FROM shop_sales WHERE ss_shop = h_key AND ss_quantity > 50) AS most FROM shops ORDER BY h_key;
-- profit_of_states
SELECT sum(ss_profit) AS total, h_state, h_county, grouping(h_state) + grouping(h_county) AS level, rank() OVER (PARTITION BY grouping(h_state) + grouping(h_county), CASE WHEN grouping(h_county) = 0 THEN h_state END ORDER BY sum(ss_profit) DESC) AS place FROM shop_sales, days, shops
WHERE d_month_seq BETWEEN 1188 AND 1199 AND d_key = ss_day AND h_key = ss_shop AND h_state IN (SELECT h_state FROM (SELECT h_state, rank() OVER (PARTITION BY h_state ORDER BY sum(ss_profit) DESC) AS r FROM shop_sales, shops, days WHERE d_month_seq BETWEEN 1188 AND 1199 AND d_key = ss_day AND h_key = ss_shop GROUP BY h_state) t WHERE r <= 5)
GROUP BY ROLLUP (h_state, h_county) ORDER BY level DESC, CASE WHEN grouping(h_state) + grouping(h_county) = 0 THEN h_state END, place LIMIT 100;
