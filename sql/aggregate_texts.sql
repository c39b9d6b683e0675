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
-- as many as an engine looks for, and more
SELECT n, c.* FROM unnest(ARRAY[1, 4, 5, 6, 511, 512, 513]) n, LATERAL compare_aggregate(format('SELECT count(*), sum(k), count(t) FROM texts WHERE t NOT IN (%s) OR c IN (%s)',
    (SELECT string_agg(quote_literal((ARRAY['', ' ', 'straße ', 'xxabcxx', 'a'])[1 + i % 5] || CASE WHEN i > 3 THEN i::text ELSE '' END), ', ') FROM generate_series(1, n) i),
    (SELECT string_agg(quote_literal('c' || i || repeat(' ', i % 3)), ', ') FROM generate_series(10, 9 + n) i))) c;
CREATE TABLE texts_others AS SELECT i AS k, md5((i % 100)::text)::uuid AS u, decode(md5((i % 90)::text), 'hex') AS b, ('n' || i % 80)::name AS n FROM generate_series(1, 1000) i;
ANALYZE texts_others;
SELECT * FROM compare_aggregate(format('SELECT count(*), sum(k) FROM texts_others WHERE u IN (%s)', (SELECT string_agg(quote_literal(md5(i::text)), ', ') FROM generate_series(50, 150) i)));
SELECT * FROM compare_aggregate(format('SELECT count(*), sum(k) FROM texts_others WHERE b NOT IN (%s)', (SELECT string_agg(quote_literal('\x' || md5(i::text)), ', ') FROM generate_series(50, 150) i)));
SELECT * FROM compare_aggregate(format('SELECT count(*), sum(k) FROM texts_others WHERE n = ANY (%L::name[])', (SELECT array_agg('n' || i) FROM generate_series(50, 150) i)));
DROP TABLE texts_others;
-- what is not of one byte, or no constant, or a new text, is PostgreSQL's
SELECT * FROM compare_aggregate('SELECT trim(t, ''é''), count(*) FROM texts GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT upper(v), count(*) FROM texts GROUP BY 1');

-- the least and the greatest of texts are PostgreSQL's by their collation, on the CPU alone
CREATE TABLE text_ends (k int, g int, t text, v varchar(20), c char(8), l text COLLATE "C", x int);
INSERT INTO text_ends SELECT i, CASE WHEN i % 7 > 0 THEN i % 13 END, CASE WHEN i % 5 > 0 THEN (ARRAY['a', 'B', 'Z', 'é', '', ' ', '-', 'ab', 'a b', 'A'])[1 + i % 10] || CASE WHEN i % 3 > 0 THEN i::text ELSE '' END END,
    'v' || (i * 7919::int8) % 1000, CASE WHEN i % 11 > 0 THEN (ARRAY['a', E'a\t', 'b', ''])[1 + i % 4] END, repeat(chr(65 + i % 26), i % 40), i % 50 FROM generate_series(1, 6000) i;
INSERT INTO text_ends SELECT i, 99, repeat('long ' || i, 1 + i % 800), NULL, NULL, repeat(md5(i::text), 60), 0 FROM generate_series(1, 200) i;
INSERT INTO text_ends SELECT 0, 100, NULL, NULL, NULL, NULL, NULL FROM generate_series(1, 3) i;
VACUUM ANALYZE text_ends;
-- one that is not that of the bytes, where there is any
DO $$
DECLARE
    other text;
BEGIN
    SELECT collname INTO other FROM pg_collation WHERE collprovider IN ('c', 'i') AND collisdeterministic AND collencoding IN (-1, 6) AND collname NOT IN ('C', 'POSIX', 'ucs_basic')
        AND collnamespace = 'pg_catalog'::regnamespace ORDER BY collname !~* '^en.us', collname LIMIT 1;
    EXECUTE format('CREATE COLLATION text_other FROM pg_catalog.%I', coalesce(other, 'C'));
END $$;
CREATE TEMP TABLE text_queries (position serial, query text);
INSERT INTO text_queries (query) VALUES
    ('SELECT g, min(t), max(t), min(v), max(v), min(c), max(c), min(l), max(l), count(*) FROM text_ends GROUP BY g'), ('SELECT min(t), max(t), min(v), max(c), min(l), max(l), count(t) FROM text_ends'),
    ('SELECT g, min(t COLLATE text_other), max(v COLLATE text_other), min(c COLLATE text_other), max(l COLLATE text_other) FROM text_ends GROUP BY g'), ('SELECT x, g, max(t COLLATE text_other), min(l COLLATE text_other) FROM text_ends GROUP BY CUBE (x, g)'),
    ('SELECT min(t COLLATE "C"), max(t COLLATE "C"), max(t COLLATE "POSIX"), min(DISTINCT t) FROM text_ends'), ('SELECT t, l, min(v), max(v), min(t), max(l) FROM text_ends GROUP BY t, l'), ('SELECT k, min(t), max(v), min(l) FROM text_ends GROUP BY k'),
    ('SELECT g, min(t) FILTER (WHERE k % 9 = 1), max(v) FILTER (WHERE t > ''a'' COLLATE "C"), min(c) FILTER (WHERE k < 0) FROM text_ends GROUP BY g'), ('SELECT x, min(left(t, 2)), max(right(v, 2)), max(trim(c)), min(CASE WHEN k > 3000 THEN t ELSE v END), max(coalesce(t, l COLLATE "C")) FROM text_ends GROUP BY x'),
    ('SELECT g, min(t), avg(k::float8 / 3), sum(k::float8) FROM text_ends GROUP BY g'), ('SELECT g, count(DISTINCT x), min(t), max(v) FROM text_ends GROUP BY g'), ('SELECT count(DISTINCT t), min(t), max(l) FROM text_ends'),
    ('SELECT g, x, min(t), max(l), count(*) FROM text_ends GROUP BY ROLLUP (g, x)'), ('SELECT g, x, min(v) FROM text_ends GROUP BY CUBE (g, x) HAVING min(v) < ''v5'''), ('SELECT g FROM text_ends GROUP BY g HAVING min(t) < ''a'' AND max(l) > ''M'' AND count(*) > 1'),
    ('SELECT g, max(v) || min(t), min(t) || ''.'' FROM text_ends GROUP BY g HAVING max(v) > min(v)'), ('SELECT min(t), max(l) FROM text_ends WHERE k < 0'), ('SELECT g, min(t) FROM text_ends WHERE k < 0 GROUP BY g'),
    ('SELECT a.g, min(b.v), max(a.t), count(*) FROM text_ends a JOIN text_ends b ON a.k = b.x WHERE a.g <> 100 GROUP BY a.g'), ('SELECT a.x, max(b.t), min(a.l) FROM text_ends a LEFT JOIN text_ends b ON a.x = b.k GROUP BY a.x'), ('SELECT x, min(t), max(m) FROM (SELECT x, g, min(t) AS t, max(v) AS m FROM text_ends GROUP BY x, g) s GROUP BY x'),
    ('SELECT k, (SELECT max(t) FROM text_ends b WHERE b.g = a.k) FROM text_ends a WHERE k < 30'), ('SELECT g, min(t), rank() OVER (ORDER BY max(v), g) FROM text_ends GROUP BY g'),
    -- PostgreSQL's own
    ('SELECT g, min(upper(t)) FROM text_ends GROUP BY g'), ('SELECT g, min(t ORDER BY k) FROM text_ends GROUP BY g'), ('SELECT g, max(coalesce(c, ''b''::bpchar)) FROM text_ends GROUP BY g'), ('SELECT g, min(t || (1 / (k % 700))) FROM text_ends GROUP BY g');
SELECT q.query, c.offloaded, c.result, c.same FROM text_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT q.query, c.same FROM text_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
SELECT * FROM compare_aggregate('SELECT g, min(t), max(l) FROM text_ends GROUP BY g ORDER BY max(l) DESC, g LIMIT 3', in_order => true);
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM text_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
SELECT q.query, c.same FROM text_queries q, LATERAL compare_aggregate(q.query, workers => 2) c WHERE c.same <> 'same' ORDER BY q.position;
-- texts that ascend: each takes the place of the one before
CREATE TABLE text_rising AS SELECT i % 3 AS g, lpad(i::text, 90, '0') AS t FROM generate_series(1, 60000) i;
SELECT * FROM compare_aggregate('SELECT max(t), min(t), count(*) FROM text_rising');
SELECT * FROM compare_aggregate('SELECT g, max(t), min(t), count(*) FROM text_rising GROUP BY g');
SELECT * FROM compare_aggregate('SELECT g, max(t), min(t), count(*) FROM text_rising GROUP BY g', workers => 2);
-- texts in whose place others came give their memory back: these groups need no file
SET work_mem = '1MB';
CREATE TABLE text_replaced AS SELECT i % 2000 AS g, lpad(i::text, 64, '0') AS t FROM generate_series(1, 100000) i;
SELECT * FROM compare_aggregate('SELECT g, max(t), min(t), count(*) FROM text_replaced GROUP BY g');
SET gpuhash.force_offload = on;
DO $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) SELECT g, max(t), min(t), count(*) FROM text_replaced GROUP BY g' INTO plan;
    IF plan->0->'Plan'->>'Disk Usage' <> '0' THEN
        RAISE WARNING 'files were written: %', plan;
    END IF;
END $$;
RESET gpuhash.force_offload;
DROP TABLE text_replaced;
RESET work_mem;
RESET hash_mem_multiplier;
-- by its statistics a column has wide texts: rows would be handed back for them, and the planner leaves them to PostgreSQL
CREATE TABLE text_wide AS SELECT i % 10 AS g, repeat(md5(i::text), 90) AS w, md5(i::text) AS t FROM generate_series(1, 60000) i;
VACUUM ANALYZE text_wide;
SELECT q AS query, plan_lines(q, '%GpuHashAggregate%') AS offloaded FROM unnest(ARRAY['SELECT g, max(t) FROM text_wide GROUP BY g', 'SELECT g, max(w) FROM text_wide GROUP BY g',
    'SELECT max(w) FROM text_wide', 'SELECT w, count(*) FROM text_wide GROUP BY w', 'SELECT count(DISTINCT w) FROM text_wide']) q;
SELECT * FROM compare_aggregate('SELECT g, max(w), min(w) FROM text_wide GROUP BY g');
DROP TABLE text_wide;
-- equal texts that are other bytes
SET client_min_messages = warning;
DO $$
BEGIN
    CREATE COLLATION text_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
RESET client_min_messages;
SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'text_loose') THEN
    (SELECT offloaded || ', ' || same FROM compare_aggregate('SELECT g, min(t COLLATE text_loose) FROM text_ends GROUP BY g')) ELSE '0, same' END AS loose;
DROP TABLE text_ends, text_rising;
DROP COLLATION text_other;

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
