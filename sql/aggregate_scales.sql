-- Sums and means of numerics whose rows have different scales show as many digits as PostgreSQL's.
LOAD 'gpuhash';
CREATE TABLE scales (k int, g int, n numeric(8, 2), m numeric(12, 4));
INSERT INTO scales SELECT i, i % 7, i % 997 / 13.0, CASE WHEN i % 5 > 0 THEN i / 3.0 END FROM generate_series(1, 3000) i;
ANALYZE scales;

SELECT * FROM compare_aggregate('SELECT g, sum(CASE WHEN k % 3 = 0 THEN n ELSE 0 END), avg(CASE WHEN k % 3 = 0 THEN n ELSE 0 END) FROM scales GROUP BY g');
-- nobody takes the branch with digits
SELECT * FROM compare_aggregate('SELECT g, sum(CASE WHEN k < 0 THEN n ELSE 0 END), avg(CASE WHEN k < 0 THEN n ELSE 0 END) FROM scales GROUP BY g');
-- some groups do
SELECT * FROM compare_aggregate('SELECT g, sum(CASE WHEN g = 3 THEN n * m ELSE 0 END), sum(CASE WHEN g = 3 THEN n WHEN g = 4 THEN m ELSE 0.5 END) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(coalesce(m, 0)), avg(coalesce(m, n)), sum(coalesce(CASE WHEN g > 5 THEN m END, n, 0)) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(coalesce(m, 0)), avg(coalesce(m, n)) FROM scales WHERE k % 10 < 7 GROUP BY g', 2);
-- NULL has no scale
SELECT * FROM compare_aggregate('SELECT sum(CASE WHEN k < 0 THEN m WHEN k > 0 THEN NULL ELSE 1 END), sum(CASE WHEN k = 5 THEN 1 WHEN k > 0 THEN NULL ELSE m END) FROM scales');
SELECT * FROM compare_aggregate('SELECT sum(coalesce(m, 0)) FILTER (WHERE k % 5 = 0), sum(coalesce(m, 0)) FILTER (WHERE k % 5 > 0) FROM scales');
-- what does not fit in 128 bits
SELECT * FROM compare_aggregate('SELECT g, sum(CASE WHEN k < 0 THEN m WHEN k = 9 THEN ''NaN'' ELSE 0 END), sum(CASE WHEN k < 0 THEN m WHEN k = 9 THEN 1e60 ELSE 0 END) FROM scales GROUP BY g');
-- rows that are handed back
SELECT * FROM compare_aggregate('SELECT g, sum(CASE WHEN k % 3 = 0 THEN n WHEN 100 / (k % 2 + 1) > 60 THEN m ELSE 0 END), avg(CASE WHEN k % 2 = 0 THEN 0 ELSE m END) FROM scales WHERE k <> 7 OR 1 / (k - 7) > 0 GROUP BY g');
-- what is calculated with such a choice
SELECT * FROM compare_aggregate('SELECT g, sum(2 * coalesce(m, 0)), avg(coalesce(m, 0) * 1.50 - n), sum(-coalesce(m, n)), sum(abs(coalesce(m, 0.5) % 7)) FROM scales GROUP BY g');
-- quotients, whose digits depend on both numbers
SELECT * FROM compare_aggregate('SELECT g, sum(n / 3), avg(n / 7.00), sum(m / 12345.6789), sum(n / (k + 0.5)), avg((k - 1500) / 0.0007) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT k, sum(n / m), sum(m / nullif(n, 0)), sum(100.00 * n / k), sum(n / m * 100 + n), sum(0.00 / k) FROM scales GROUP BY k', 2);
SELECT * FROM compare_aggregate('SELECT g, sum(coalesce(n / m, 0)), sum(n / m / k), sum(CASE WHEN k % 3 = 0 THEN n / k ELSE m END / 11) FROM scales WHERE n / k < 2.5 GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(n / (k - 7)) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(n / (k - 7)) FROM scales WHERE k <> 7 GROUP BY g');
-- by numbers whose inverse ends: few digits are held, whatever is shown, and rounding to fewer comes first
SELECT * FROM compare_aggregate('SELECT g, sum(n / 2), avg(m / 100), sum(m / -0.05), sum(k / 1024.0), sum(n / 1e3), avg(n / 25), sum(m / 1e20), sum(k / 1e-9), sum(m / 1099511627776.0) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(k * 1e9 / 2), sum(k * 1e12 / 64), avg(k * 1e13 / 4096), sum(k * 98765432109.7 / 8), sum(n * 1e-9 / 2), sum(m * 1e-10 / 80) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(m / 2 * n / 4 - k), sum(coalesce(m / 8, 0)), sum(CASE WHEN k % 2 = 0 THEN n / 20 ELSE n END), sum((m / 2)::float8), sum(round(m / 4, 1)), sum((m / 2)::int) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(m / 2) / 3, avg(n / 8) FROM scales GROUP BY g HAVING sum(m / 2) / 3 > 28500.5 AND avg(n / 8) / 7 < 0.683', 2);
SELECT * FROM compare_aggregate('SELECT g, sum(CASE WHEN k = 9 THEN ''NaN'' WHEN k = 10 THEN 1e60 ELSE m END / 2) FROM scales GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(s), max(c) FROM (SELECT g, k % 50 AS h, sum(m / 2) AS s, count(m / 2) AS c FROM scales GROUP BY 1, 2) x GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, sum(DISTINCT m / 2), count(DISTINCT m / 2) FROM scales GROUP BY g');
-- by a parameter, and by a subquery's result
CREATE FUNCTION by_parameter(d numeric) RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT string_agg(x::text, ' ' ORDER BY g) FROM (SELECT g, sum(n / d), avg(m / d) FROM scales GROUP BY g) x);
END $$;
SELECT * FROM compare_answers('SELECT by_parameter(4)');
SELECT * FROM compare_aggregate('SELECT g, sum(n / (SELECT 2.0)), avg(m / (SELECT count(*) FROM scales WHERE k <= 50)) FROM scales GROUP BY g');
-- large ones are summed where they are read
SET gpuhash.force_offload = on;
SELECT lines_of_plan('SELECT g, sum(m / 2), avg(k * 1000 / 8.0) FROM scales GROUP BY g', 'Handed Back|Groups:', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
RESET gpuhash.force_offload;
-- what is rounded has one scale
SELECT * FROM compare_aggregate('SELECT round(m / 7, 1), trunc(n, -1), max(round(n / 3, 4)), min(trunc(m, 6)), sum(round(n, -1)), max((n / 3)::numeric(12, 3)) FROM scales GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT ceil(n), floor(-m / 100), max(sign(n - 20)), sum(m % 1.5), sum(round(k / 7::float8)) FROM scales GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT sum(m::numeric(5, 2)) FROM scales');
-- extremes of numerics of different scales, and keys, are PostgreSQL's
SELECT * FROM compare_aggregate('SELECT n / 7, count(*) FROM scales GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT max(n / 7) FROM scales');
SELECT * FROM compare_aggregate('SELECT max(coalesce(m, 0)), min(coalesce(m, 0)) FROM scales');
SELECT * FROM compare_aggregate('SELECT coalesce(m, 0), count(*) FROM scales GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT stddev(coalesce(m, 0)) FROM scales');

DROP FUNCTION by_parameter;
DROP TABLE scales;
