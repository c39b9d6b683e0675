-- suite_queries.sql: the queries of suite.sh, each after a line "-- group name".  The answers do not
-- depend on the order of rows.

-- big pricing
SELECT n_name, sum(l_price * (1 - l_discount)) FROM customer JOIN orders ON c_key = o_customer JOIN lineitem ON l_order = o_key JOIN nation ON c_nation = n_key GROUP BY n_name ORDER BY 1;
-- big shipping_priority
SELECT l_order, sum(l_price * (1 - l_discount)) AS revenue, o_date FROM customer JOIN orders ON c_key = o_customer JOIN lineitem ON l_order = o_key WHERE c_segment = 'BUILDING' AND o_date < '1995-03-15' AND l_shipped > '1995-03-15' GROUP BY l_order, o_date ORDER BY revenue DESC, l_order LIMIT 10;
-- big order_priority
SELECT o_priority, count(*) FROM orders WHERE EXISTS (SELECT FROM lineitem WHERE l_order = o_key AND l_committed < l_received) GROUP BY 1 ORDER BY 1;
-- big local_supplier
SELECT n_name, sum(l_price * (1 - l_discount)) FROM customer JOIN orders ON c_key = o_customer JOIN lineitem ON l_order = o_key JOIN supplier ON l_supplier = s_key AND c_nation = s_nation JOIN nation ON s_nation = n_key JOIN region ON n_region = r_key WHERE r_name = 'ASIA' GROUP BY n_name ORDER BY 1;
-- big product_profit
SELECT n_name, extract(year FROM o_date), sum(l_price * (1 - l_discount) - ps_cost * l_quantity) FROM part JOIN lineitem ON p_key = l_part JOIN partsupp ON ps_part = l_part AND ps_supplier = l_supplier JOIN orders ON o_key = l_order JOIN supplier ON s_key = l_supplier JOIN nation ON s_nation = n_key WHERE p_name LIKE '%green%' GROUP BY 1, 2 ORDER BY 1, 2;
-- big returned_items
SELECT c_key, c_name, sum(l_price * (1 - l_discount)) AS revenue FROM customer JOIN orders ON c_key = o_customer JOIN lineitem ON l_order = o_key WHERE o_date >= '1993-10-01' AND o_date < '1994-01-01' AND l_returned = 'R' GROUP BY c_key, c_name ORDER BY revenue DESC, c_key LIMIT 20;
-- big shipping_modes
SELECT l_mode, count(*) FILTER (WHERE o_priority IN ('1-URGENT', '2-HIGH')), count(*) FROM orders JOIN lineitem ON o_key = l_order WHERE l_mode IN ('MAIL', 'SHIP') AND l_committed < l_received GROUP BY l_mode ORDER BY 1;
-- big customer_orders
SELECT n, count(*) FROM (SELECT c_key, count(o_key) AS n FROM customer LEFT JOIN orders ON c_key = o_customer AND o_priority <> '5-NONE' GROUP BY c_key) c GROUP BY n ORDER BY 1;
-- big promotion
SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_price * (1 - l_discount) ELSE 0 END), sum(l_price) FROM lineitem JOIN part ON l_part = p_key;
-- big parts_suppliers
SELECT p_brand, p_size, count(DISTINCT ps_supplier) FROM partsupp JOIN part ON p_key = ps_part WHERE p_brand <> 'Brand#45' AND p_size IN (3, 9, 14, 19, 23, 36, 45, 49) GROUP BY 1, 2 ORDER BY 1, 2;
-- big no_orders
SELECT substr(c_phone, 1, 2), count(*), sum(c_balance) FROM customer WHERE NOT EXISTS (SELECT FROM orders WHERE o_customer = c_key) GROUP BY 1 ORDER BY 1;
-- big large_orders
SELECT count(*), sum(o_price) FROM orders WHERE o_key IN (SELECT l_order FROM lineitem GROUP BY l_order HAVING sum(l_quantity) > 250);
-- big full_outer
SELECT count(*), count(s_key), count(c_key) FROM supplier FULL JOIN customer ON s_nation = c_nation AND s_balance = c_balance;
-- big by_text
SELECT count(*) FROM customer JOIN (SELECT 'customer ' || o_customer AS name FROM orders) o ON c_name = o.name;

-- star all
SELECT count(*), sum(f_amount), sum(st_weight), sum(pr_weight), sum(cu_weight), sum(vi_weight) FROM fact JOIN dim_store ON f_store = st_key JOIN dim_product ON f_product = pr_key JOIN dim_customer ON f_customer = cu_key JOIN dim_visit ON f_visit = vi_key;
-- star grouped
SELECT st_region, pr_category, sum(f_amount) FROM fact JOIN dim_store ON f_store = st_key JOIN dim_product ON f_product = pr_key JOIN dim_customer ON f_customer = cu_key WHERE cu_segment < 100 GROUP BY 1, 2 ORDER BY 1, 2;
-- star filtered
SELECT vi_channel, sum(f_amount) FROM fact JOIN dim_product ON f_product = pr_key JOIN dim_visit ON f_visit = vi_key WHERE pr_category = 7 GROUP BY 1 ORDER BY 1;
-- star small_dimension
SELECT st_region, count(*), sum(f_amount) FROM fact JOIN dim_store ON f_store = st_key GROUP BY 1 ORDER BY 1;
-- star large_dimension
SELECT vi_channel, count(*), sum(f_amount) FROM fact JOIN dim_visit ON f_visit = vi_key GROUP BY 1 ORDER BY 1;

-- scan total
SELECT count(*), sum(l_quantity), avg(l_price) FROM lineitem;
-- scan filtered_total
SELECT count(*), sum(l_price * l_discount) FROM lineitem WHERE l_shipped >= '1994-01-01' AND l_shipped < '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24;
-- scan price_summary
SELECT l_returned, l_mode, count(*), sum(l_quantity), sum(l_price * (1 - l_discount)), avg(l_discount) FROM lineitem WHERE l_shipped <= '1998-06-01' GROUP BY 1, 2 ORDER BY 1, 2;
-- scan many_groups
SELECT count(*), max(n), max(q) FROM (SELECT l_part, count(*) AS n, sum(l_quantity) AS q FROM lineitem GROUP BY l_part) p;
-- scan deviations
SELECT l_returned, stddev(l_price), variance(l_quantity) FROM lineitem GROUP BY 1 ORDER BY 1;
-- scan texts
SELECT count(*) FROM lineitem WHERE l_mode = 'MAIL' AND l_returned <> 'A';
-- scan pattern
SELECT count(*), min(p_key) FROM part WHERE p_name LIKE '%green%';
-- scan few_rows
SELECT l_order, l_line, l_price FROM lineitem WHERE l_price < 20 ORDER BY l_price, l_order, l_line LIMIT 20;
-- scan half_rows
SELECT count(*), sum(hashint8(l_order)) FROM (SELECT * FROM lineitem WHERE l_quantity <= 25 OFFSET 0) l;
-- scan most_rows
SELECT count(*), sum(hashint8(l_order)) FROM (SELECT * FROM lineitem WHERE l_line < 7 OFFSET 0) l;
-- scan sorted
SELECT sum(hashint8(l_order) * n) FROM (SELECT l_order, row_number() OVER (ORDER BY l_price, l_order, l_line) % 7 AS n FROM lineitem WHERE l_quantity < 10) l;
-- scan distinct_values
SELECT l_mode, count(DISTINCT l_part) FROM lineitem WHERE l_discount = 0.05 GROUP BY 1 ORDER BY 1;
-- scan first_rows
SELECT count(*) FROM (SELECT * FROM lineitem WHERE l_quantity > 10 LIMIT 100) l;
-- scan any_row
SELECT EXISTS (SELECT FROM lineitem WHERE l_price > 900);
-- scan one_key
SELECT count(*), sum(l_price) FROM lineitem WHERE l_order = 4711;
-- scan one_day
SELECT count(*), sum(o_price) FROM orders WHERE o_date = '1995-06-17';
-- scan small_table
SELECT n_region, count(*) FROM nation WHERE n_key > 3 GROUP BY 1 ORDER BY 1;

-- selective one_order
SELECT c_name, o_date, l_line, l_price FROM customer JOIN orders ON c_key = o_customer JOIN lineitem ON l_order = o_key WHERE o_key = 4711 ORDER BY l_line;
-- selective one_customer
SELECT count(*), sum(l_price) FROM customer JOIN orders ON c_key = o_customer JOIN lineitem ON l_order = o_key WHERE c_key = 1234;
-- selective one_day
SELECT count(*), sum(l_price) FROM orders JOIN lineitem ON l_order = o_key WHERE o_date = '1995-06-17';
-- selective one_week
SELECT n_name, sum(l_price) FROM lineitem JOIN orders ON l_order = o_key JOIN customer ON c_key = o_customer JOIN nation ON n_key = c_nation WHERE l_shipped BETWEEN '1995-06-12' AND '1995-06-18' GROUP BY 1 ORDER BY 1;
-- selective few_parts
SELECT sum(l_price) FROM lineitem JOIN part ON p_key = l_part WHERE p_brand = 'Brand#23' AND p_container = 'MED BAG' AND p_size = 7;
-- selective small_order
SELECT sum(l_price) FROM lineitem l JOIN part ON p_key = l_part WHERE p_brand = 'Brand#23' AND p_size = 7 AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_part = p_key);
-- selective first_rows
SELECT count(*) FROM (SELECT o_key FROM orders JOIN lineitem ON l_order = o_key JOIN part ON p_key = l_part LIMIT 100) s;
-- selective top_by_index
SELECT o_key, c_name FROM orders JOIN customer ON c_key = o_customer ORDER BY o_date DESC, o_key DESC LIMIT 10;
-- selective any_match
SELECT EXISTS (SELECT FROM lineitem JOIN part ON p_key = l_part WHERE p_size = 50);
-- selective small_tables
SELECT r_name, count(*) FROM supplier JOIN nation ON s_nation = n_key JOIN region ON n_region = r_key GROUP BY 1 ORDER BY 1;
-- selective anti
SELECT count(*) FROM supplier WHERE NOT EXISTS (SELECT FROM lineitem WHERE l_supplier = s_key AND l_shipped = '1995-06-17');
