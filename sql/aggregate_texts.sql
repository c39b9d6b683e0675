-- Parts of texts, their lengths, and where they begin, in conditions, keys and arguments.
LOAD 'gpuhash';
CREATE TABLE texts (k int, t text, v varchar(20), c char(8), long text);
INSERT INTO texts SELECT i, (ARRAY['', ' ', 'straße ', '  naïve', '日本語', 'xxabcxx', 'a', 'été', NULL])[1 + i % 9] || CASE WHEN i % 4 > 0 THEN (i % 50)::text ELSE '' END,
    'v' || i % 300, CASE WHEN i % 11 > 0 THEN 'c' || i % 20 END, CASE WHEN i % 100 = 0 THEN repeat('é' || i, 3000) ELSE 'short ' || i END
    FROM generate_series(1, 3000) i;
ANALYZE texts;

SELECT * FROM compare_aggregate('SELECT left(t, 3), count(*), sum(length(t)), max(length(t)), min(octet_length(t)), sum(length(c)) FROM texts GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT right(t, 2), left(v, -1), count(*), sum(strpos(t, ''é'')), sum(position(''ab'' IN t)) FROM texts GROUP BY 1, 2', 2);
SELECT * FROM compare_aggregate('SELECT trim(t), ltrim(v, ''v1''), rtrim(c), count(*) FROM texts WHERE char_length(t) > 1 AND btrim(t, ''x0 '') <> ''abc'' GROUP BY 1, 2, 3');
SELECT * FROM compare_aggregate('SELECT t::varchar(2), left(c, 2), v::varchar(3), count(*) FROM texts WHERE starts_with(t, ''n'') OR v ^@ ''v1'' GROUP BY 1, 2, 3');
SELECT * FROM compare_aggregate('SELECT greatest(v, ''v2''), least(c, v), count(*) FROM texts WHERE least(t, v) < ''b'' GROUP BY 1, 2');
-- texts of every length, numbers at the ends of their type
SELECT * FROM compare_aggregate('SELECT left(t, k - 1500), right(t, 7 - k % 15), count(*) FROM texts GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT right(t, CASE WHEN k % 2 = 0 THEN -2147483647 ELSE 2147483647 END), left(t, CASE WHEN k % 3 = 0 THEN -2147483647 ELSE 2147483647 END), count(*) FROM texts GROUP BY 1, 2');
-- compressed ones are handed back
SELECT * FROM compare_aggregate('SELECT left(long, 7), right(long, 3), count(*), sum(length(long)), sum(octet_length(long)), max(strpos(long, ''é100é'')) FROM texts GROUP BY 1, 2');
-- IN of any length, of texts whose blanks count and of such whose do not
SELECT format('SELECT count(*), sum(k), count(t) FROM texts WHERE t IN (%s)', string_agg(quote_literal(w || i), ', ')) AS long_list
	FROM unnest(ARRAY['', ' ', 'straße ', '日本語', 'a', 'none', 'xxabcxx ']) w, generate_series(1, 40, 3) i \gset
SELECT * FROM compare_aggregate(:'long_list');
SELECT * FROM compare_aggregate(replace(:'long_list', 'IN (', 'NOT IN ('));
SELECT * FROM compare_aggregate(replace(:'long_list', 'IN (', 'NOT IN (NULL, '));
SELECT * FROM compare_aggregate(format('SELECT c, count(*), sum(k) FROM texts WHERE c IN (%s) GROUP BY c', (SELECT string_agg(quote_literal('c' || i || repeat(' ', i % 4)), ', ') FROM generate_series(3, 90) i)));
SELECT * FROM compare_aggregate(format('SELECT v, count(*), sum(k) FROM texts WHERE v IN (%s) GROUP BY v', (SELECT string_agg(quote_literal('v' || i || repeat(' ', (i % 5) / 4)), ', ') FROM generate_series(3, 200, 2) i)));
SELECT * FROM compare_aggregate(format('SELECT count(*), sum(k) FROM texts WHERE left(t, 1) IN (%s)', (SELECT string_agg(quote_literal(chr(i)), ', ') FROM generate_series(32, 126) i)));
CREATE TABLE texts_others AS SELECT i AS k, md5((i % 100)::text)::uuid AS u, decode(md5((i % 90)::text), 'hex') AS b, ('n' || i % 80)::name AS n FROM generate_series(1, 1000) i;
ANALYZE texts_others;
SELECT * FROM compare_aggregate(format('SELECT count(*), sum(k) FROM texts_others WHERE u IN (%s)', (SELECT string_agg(quote_literal(md5(i::text)), ', ') FROM generate_series(50, 150) i)));
SELECT * FROM compare_aggregate(format('SELECT count(*), sum(k) FROM texts_others WHERE b NOT IN (%s)', (SELECT string_agg(quote_literal('\x' || md5(i::text)), ', ') FROM generate_series(50, 150) i)));
SELECT * FROM compare_aggregate(format('SELECT count(*), sum(k) FROM texts_others WHERE n = ANY (%L::name[])', (SELECT array_agg('n' || i) FROM generate_series(50, 150) i)));
DROP TABLE texts_others;
-- what is not of one byte, or no constant, or a new text, is PostgreSQL's
SELECT * FROM compare_aggregate('SELECT trim(t, ''é''), count(*) FROM texts GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT upper(v), count(*) FROM texts GROUP BY 1');

SET plan_cache_mode = force_generic_plan;
SET gpuhash.force_offload = on;
SET max_parallel_workers_per_gather = 0;
PREPARE begins(text, int) AS SELECT count(*), sum(length(left(t, $2))) FROM texts WHERE starts_with(v, $1) AND strpos(t, $1) = 0;
EXPLAIN (COSTS OFF) EXECUTE begins('v1', 2);
EXECUTE begins('v1', 2);
EXECUTE begins('', NULL);
EXECUTE begins(NULL, 1);
SET gpuhash.enabled = off;
EXECUTE begins('v1', 2);
EXECUTE begins('', NULL);
EXECUTE begins(NULL, 1);
DROP TABLE texts;
