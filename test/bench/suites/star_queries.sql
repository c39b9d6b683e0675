-- star_queries.sql: the thirteen questions of the Star Schema Benchmark's four flights, about star_tables.sql.

-- revenue_of_year
SELECT sum(l_price::bigint * l_discount) FROM sale, day WHERE l_day = d_key AND d_year = 1993 AND l_discount BETWEEN 1 AND 3 AND l_quantity < 25;
-- revenue_of_month
SELECT sum(l_price::bigint * l_discount) FROM sale, day WHERE l_day = d_key AND d_month = 199401 AND l_discount BETWEEN 4 AND 6 AND l_quantity BETWEEN 26 AND 35;
-- revenue_of_week
SELECT sum(l_price::bigint * l_discount) FROM sale, day WHERE l_day = d_key AND d_week = 6 AND d_year = 1994 AND l_discount BETWEEN 5 AND 7 AND l_quantity BETWEEN 26 AND 35;

-- brands_of_category
SELECT sum(l_revenue), d_year, p_brand FROM sale, day, product, seller
WHERE l_day = d_key AND l_product = p_key AND l_seller = s_key AND p_category = 'category 12' AND s_region = 'America'
GROUP BY d_year, p_brand ORDER BY d_year, p_brand;
-- brands_in_range
SELECT sum(l_revenue), d_year, p_brand FROM sale, day, product, seller
WHERE l_day = d_key AND l_product = p_key AND l_seller = s_key AND p_brand BETWEEN 'brand 22-21' AND 'brand 22-28' AND s_region = 'Asia'
GROUP BY d_year, p_brand ORDER BY d_year, p_brand;
-- one_brand
SELECT sum(l_revenue), d_year, p_brand FROM sale, day, product, seller
WHERE l_day = d_key AND l_product = p_key AND l_seller = s_key AND p_brand = 'brand 22-39' AND s_region = 'Europe'
GROUP BY d_year, p_brand ORDER BY d_year, p_brand;

-- trade_of_nations
SELECT b_nation, s_nation, d_year, sum(l_revenue) AS revenue FROM buyer, sale, seller, day
WHERE l_buyer = b_key AND l_seller = s_key AND l_day = d_key AND b_region = 'Asia' AND s_region = 'Asia' AND d_year >= 1992 AND d_year <= 1997
GROUP BY b_nation, s_nation, d_year ORDER BY d_year, revenue DESC;
-- trade_of_cities
SELECT b_city, s_city, d_year, sum(l_revenue) AS revenue FROM buyer, sale, seller, day
WHERE l_buyer = b_key AND l_seller = s_key AND l_day = d_key AND b_nation = 'nation 12' AND s_nation = 'nation 12' AND d_year >= 1992 AND d_year <= 1997
GROUP BY b_city, s_city, d_year ORDER BY d_year, revenue DESC;
-- trade_of_two_cities
SELECT b_city, s_city, d_year, sum(l_revenue) AS revenue FROM buyer, sale, seller, day
WHERE l_buyer = b_key AND l_seller = s_key AND l_day = d_key AND b_city IN ('nation 31 1', 'nation 31 5') AND s_city IN ('nation 31 1', 'nation 31 5')
	AND d_year >= 1992 AND d_year <= 1997
GROUP BY b_city, s_city, d_year ORDER BY d_year, revenue DESC;
-- trade_in_one_month
SELECT b_city, s_city, d_year, sum(l_revenue) AS revenue FROM buyer, sale, seller, day
WHERE l_buyer = b_key AND l_seller = s_key AND l_day = d_key AND (b_city = 'nation 31 1' OR b_city = 'nation 31 5') AND (s_city = 'nation 31 1' OR s_city = 'nation 31 5')
	AND d_month_name = 'Dec1997'
GROUP BY b_city, s_city, d_year ORDER BY d_year, revenue DESC;

-- profit_of_nations
SELECT d_year, b_nation, sum(l_revenue - l_cost) AS profit FROM day, buyer, seller, product, sale
WHERE l_buyer = b_key AND l_seller = s_key AND l_product = p_key AND l_day = d_key AND b_region = 'America' AND s_region = 'America' AND (p_maker = 'maker 1' OR p_maker = 'maker 2')
GROUP BY d_year, b_nation ORDER BY d_year, b_nation;
-- profit_of_categories
SELECT d_year, s_nation, p_category, sum(l_revenue - l_cost) AS profit FROM day, buyer, seller, product, sale
WHERE l_buyer = b_key AND l_seller = s_key AND l_product = p_key AND l_day = d_key AND b_region = 'America' AND s_region = 'America' AND (d_year = 1997 OR d_year = 1998)
	AND (p_maker = 'maker 1' OR p_maker = 'maker 2')
GROUP BY d_year, s_nation, p_category ORDER BY d_year, s_nation, p_category;
-- profit_of_brands
SELECT d_year, s_city, p_brand, sum(l_revenue - l_cost) AS profit FROM day, buyer, seller, product, sale
WHERE l_buyer = b_key AND l_seller = s_key AND l_product = p_key AND l_day = d_key AND b_region = 'America' AND s_nation = 'nation 12' AND (d_year = 1997 OR d_year = 1998)
	AND p_category = 'category 14'
GROUP BY d_year, s_city, p_brand ORDER BY d_year, s_city, p_brand;
