-- shapes_queries.sql: one operation each, about shapes_tables.sql.  What returns many rows is counted and summed outside,
-- so that answers can be compared; sums of floats are left out for the same reason.

-- count_all
SELECT count(*) FROM event;
-- sum_filtered
SELECT count(*), sum(e_price), min(e_day), max(e_at) FROM event WHERE e_few < 300 AND e_day BETWEEN '2012-01-01' AND '2016-01-01';
-- sum_loose
SELECT sum(e_loose * e_price), avg(e_loose) FROM event WHERE e_flag;
-- like_prefix
SELECT count(*) FROM event WHERE e_name LIKE 'name 12%';
-- like_inner
SELECT count(*) FROM event WHERE e_text LIKE '%xx9%7';
-- in_list
SELECT count(*), sum(e_few) FROM event WHERE e_item IN (3, 17, 99, 1234, 4321, 9999, 12345, 54321, 77777, 99999) OR e_name IN ('name 7', 'name 77', 'name 777');
-- case_sums
SELECT sum(CASE WHEN e_few < 100 THEN e_price ELSE 0 END), sum(CASE e_few % 3 WHEN 0 THEN 1 WHEN 1 THEN 2 END), count(*) FILTER (WHERE e_nulls IS NULL) FROM event;
-- dates
SELECT extract(year FROM e_day) AS y, count(*), sum(e_price) FROM event GROUP BY 1 ORDER BY 1;
-- months
SELECT date_trunc('month', e_at) AS m, count(*), max(e_price) FROM event GROUP BY 1 ORDER BY 1;
-- groups_few
SELECT e_few, count(*), sum(e_price), avg(e_item) FROM event GROUP BY e_few ORDER BY e_few LIMIT 5;
-- groups_many
SELECT count(*), max(n), sum(s) FROM (SELECT e_item, count(*) AS n, sum(e_price) AS s FROM event GROUP BY e_item) x;
-- groups_underrated
SELECT count(*), max(n), sum(s) FROM (SELECT e_underrated, count(*) AS n, sum(e_price) AS s FROM event GROUP BY e_underrated) x;
-- groups_skewed
SELECT count(*), max(n), sum(s) FROM (SELECT e_skewed, count(*) AS n, sum(e_price) AS s FROM event GROUP BY e_skewed) x;
-- groups_hot
SELECT count(*), max(n), sum(s) FROM (SELECT e_hot, count(*) AS n, sum(e_price) AS s FROM event GROUP BY e_hot) x;
-- groups_nulls
SELECT count(*), max(n), sum(s) FROM (SELECT e_nulls, count(*) AS n, sum(e_price) AS s FROM event GROUP BY e_nulls) x;
-- groups_text_few
SELECT count(*), max(n), min(e_name), sum(s) FROM (SELECT e_name, count(*) AS n, sum(e_price) AS s FROM event GROUP BY e_name) x;
-- groups_text_many
SELECT count(*), max(n), sum(length(e_text)), sum(s) FROM (SELECT e_text, count(*) AS n, sum(e_price) AS s FROM event GROUP BY e_text) x;
-- groups_two
SELECT count(*), max(n), sum(s) FROM (SELECT e_few, e_nulls, count(*) AS n, sum(e_price) AS s FROM event GROUP BY 1, 2) x;
-- groups_three
SELECT count(*), max(n), sum(s) FROM (SELECT e_few, e_flag, e_name, count(*) AS n, sum(e_price) AS s FROM event GROUP BY 1, 2, 3) x;
-- groups_numeric
SELECT count(*), max(n) FROM (SELECT e_price, count(*) AS n FROM event GROUP BY 1) x;
-- groups_expression
SELECT count(*), max(n) FROM (SELECT e_item % 50000 AS k, count(*) AS n FROM event GROUP BY 1) x;
-- groups_having
SELECT e_skewed, count(*) AS n FROM event GROUP BY 1 HAVING count(*) > 20000 ORDER BY 2 DESC, 1;
-- groups_top
SELECT e_item, sum(e_price) AS s FROM event GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10;
-- groups_top_text
SELECT e_text, count(*) AS n FROM event GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10;
-- groups_min_max
SELECT count(*), sum(a), sum(b) FROM (SELECT e_item, min(e_few) AS a, max(e_nulls) AS b FROM event GROUP BY e_item) x;
-- min_max_text
SELECT e_few % 10 AS k, min(e_name), max(e_name) FROM event GROUP BY 1 ORDER BY 1;
-- count_distinct
SELECT count(DISTINCT e_item), count(DISTINCT e_few) FROM event;
-- count_distinct_groups
SELECT count(*), sum(d), max(d) FROM (SELECT e_few, count(DISTINCT e_item) AS d, sum(e_price) FROM event GROUP BY e_few) x;
-- count_distinct_text
SELECT e_flag, count(DISTINCT e_name) FROM event GROUP BY 1 ORDER BY 1;
-- distinct_rows
SELECT count(*) FROM (SELECT DISTINCT e_few, e_day FROM event) x;
-- deviations
SELECT count(*), max(v), sum(w) FROM (SELECT e_few, round(stddev_samp(e_item), 6) AS v, round(var_pop(e_nulls), 6) AS w FROM event GROUP BY e_few) x;
-- rollup
SELECT count(*), sum(n), max(s) FROM (SELECT e_few % 20 AS a, e_flag, extract(year FROM e_day) AS y, count(*) AS n, sum(e_price) AS s FROM event GROUP BY ROLLUP (1, 2, 3)) x;
-- cube_many
SELECT count(*), sum(n) FROM (SELECT e_few, e_name, count(*) AS n FROM event GROUP BY CUBE (1, 2)) x;
-- string_agg
SELECT count(*), max(length(s)) FROM (SELECT e_few, string_agg(e_name, ',') AS s FROM event WHERE e_nulls < 1000 GROUP BY 1) x;
-- array_agg
SELECT count(*), max(cardinality(s)) FROM (SELECT e_few, array_agg(e_item) AS s FROM event WHERE e_nulls < 1000 GROUP BY 1) x;
-- percentile
SELECT e_few % 10 AS k, percentile_disc(0.5) WITHIN GROUP (ORDER BY e_price) FROM event WHERE e_flag GROUP BY 1 ORDER BY 1;
-- windows
SELECT count(*), sum(r) FROM (SELECT rank() OVER (PARTITION BY e_few ORDER BY e_price DESC) AS r FROM event WHERE e_flag) x WHERE r <= 3;
-- windows_over_groups
SELECT count(*), max(r) FROM (SELECT e_few, y, rank() OVER (PARTITION BY y ORDER BY s DESC) AS r FROM (SELECT e_few, extract(year FROM e_day) AS y, sum(e_price) AS s FROM event GROUP BY 1, 2) g) x WHERE r < 5;
-- top_rows
SELECT e_id, e_price, e_text FROM event ORDER BY e_price DESC, e_id LIMIT 20;
-- top_rows_text
SELECT e_text, e_id FROM event WHERE e_few < 500 ORDER BY e_text, e_id LIMIT 20;
-- rows_few
SELECT count(*), sum(e_id), max(e_text) FROM (SELECT * FROM event WHERE e_few = 7 AND e_nulls < 5000 OFFSET 0) x;
-- rows_tenth
SELECT count(*), sum(e_id), max(e_text) FROM (SELECT e_id, e_text FROM event WHERE e_few < 100 OFFSET 0) x;
-- join_sum
SELECT count(*), sum(e_price * i_size) FROM event JOIN item ON i_key = e_item;
-- join_groups
SELECT i_kind, count(*), sum(e_price) FROM event JOIN item ON i_key = e_item GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5;
-- join_groups_many
SELECT count(*), max(n), sum(s) FROM (SELECT i_name, count(*) AS n, sum(e_price) AS s FROM event JOIN item ON i_key = e_item GROUP BY 1) x;
-- join_skewed
SELECT count(*), sum(e_price * i_size) FROM event JOIN item ON i_key = e_skewed;
-- join_hot
SELECT count(*), sum(e_price * i_size) FROM event JOIN item ON i_key = e_hot;
-- join_filtered
SELECT count(*), sum(e_price) FROM event JOIN item ON i_key = e_item WHERE i_size < 10 AND e_flag;
-- join_multiplied
SELECT count(*), sum(p_value), count(DISTINCT p_color) FROM event JOIN part ON p_item = e_item;
-- join_multiplied_groups
SELECT p_color, e_few % 10 AS f, count(*), sum(p_value) FROM event JOIN part ON p_item = e_item GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 5;
-- join_heavy_keys
SELECT count(*), sum(n_value) FROM event JOIN note ON n_item = e_item;
-- join_both_heavy
SELECT count(*), sum(n_value) FROM note JOIN part ON p_item = n_item;
-- join_underrated
SELECT count(*), sum(t_value) FROM event JOIN tag ON t_key = e_underrated;
-- join_text
SELECT count(*), sum(i_size) FROM event JOIN (SELECT DISTINCT ON (i_label) i_label, i_size FROM item ORDER BY i_label, i_key) x ON i_label = e_name;
-- join_two_keys
SELECT count(*), sum(i_size) FROM event JOIN item ON i_key = e_item AND i_since = e_day;
-- join_inequality
SELECT count(*), sum(i_size) FROM event JOIN item ON i_key = e_item AND i_since < e_day AND i_price > e_few;
-- join_left
SELECT count(*), count(p_value), sum(p_value) FROM event LEFT JOIN part ON p_item = e_hot AND p_color = 'red';
-- join_left_small
SELECT count(*), count(e_id), sum(e_price) FROM item LEFT JOIN event ON e_item = i_key AND e_few < 50;
-- join_full
SELECT count(*), count(e_id), count(t_key) FROM (SELECT * FROM event WHERE e_few < 100) e FULL JOIN tag ON t_key = e_underrated;
-- join_exists
SELECT count(*), sum(e_price) FROM event WHERE EXISTS (SELECT 1 FROM part WHERE p_item = e_item AND p_value > e_few);
-- join_not_exists
SELECT count(*), sum(i_price) FROM item WHERE NOT EXISTS (SELECT 1 FROM event WHERE e_hot = i_key AND e_flag);
-- join_in_groups
SELECT count(*), sum(e_price) FROM event WHERE e_skewed IN (SELECT e_skewed FROM event GROUP BY 1 HAVING count(*) > 100);
-- join_not_in
SELECT count(*), sum(i_price) FROM item WHERE i_key NOT IN (SELECT p_item FROM part WHERE p_value < 500);
-- join_chain
SELECT k_class, count(*), sum(e_price) FROM event JOIN item ON i_key = e_item JOIN kind ON k_key = i_kind GROUP BY 1 ORDER BY 1;
-- join_bushy
SELECT count(*), sum(e_price), sum(s) FROM event JOIN (SELECT i_key, i_size, count(*) AS s FROM item JOIN part ON p_item = i_key GROUP BY 1, 2) x ON i_key = e_item;
-- join_rows
SELECT count(*), sum(e_id), max(i_name) FROM (SELECT e_id, i_name FROM event JOIN item ON i_key = e_item WHERE i_kind < 50 OFFSET 0) x;
-- join_top
SELECT e_id, i_name, e_price FROM event JOIN item ON i_key = e_item WHERE i_size < 100 ORDER BY e_price DESC, e_id LIMIT 10;
-- scalar_correlated
SELECT count(*), sum(k_key) FROM kind WHERE k_class = 3 AND k_key < 300 AND (SELECT avg(i_price) FROM item WHERE i_kind = k_key) > 500;
-- scalar_mean
SELECT count(*) FROM event WHERE e_price > (SELECT avg(e_price) FROM event);
-- union_all
SELECT k, count(*), sum(v) FROM (SELECT e_few % 7 AS k, e_item AS v FROM event UNION ALL SELECT i_kind % 7, i_size FROM item UNION ALL SELECT p_item % 7, p_value FROM part) x GROUP BY 1 ORDER BY 1;
-- union_distinct
SELECT count(*) FROM (SELECT e_item FROM event UNION SELECT p_item FROM part) x;
-- intersect
SELECT count(*) FROM (SELECT e_skewed FROM event INTERSECT SELECT p_item FROM part) x;
-- cte_twice
WITH x AS (SELECT e_item, sum(e_price) AS s FROM event GROUP BY 1) SELECT count(*), max(s) FROM x WHERE s > (SELECT avg(s) FROM x);
-- lateral_top
SELECT count(*), sum(v) FROM kind, LATERAL (SELECT max(i_size) AS v FROM item WHERE i_kind = k_key) x WHERE k_class = 3 AND k_key < 300;
