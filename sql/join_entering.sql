-- Tables for a node above, of inner rows that enter as they come, because stored rows and a table would not both fit in
-- memory: what happens when memory runs out all the same, and when the join has to return its rows after all.
\set SHOW_CONTEXT never
LOAD 'gpuhash';
SET gpuhash.engine = cpu;
SET gpuhash.force_offload = on;
SET jit = off;
SET hash_mem_multiplier = 1;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;

CREATE TABLE je_outer AS SELECT i AS id, (i * 7919 % 20011)::bigint AS k, i % 300 AS j, i % 7 AS g FROM generate_series(1, 40000) i;
CREATE TABLE je_left AS SELECT i::bigint AS k, (i % 1000)::numeric(12, 2) AS v, 'text ' || i % 100 AS t FROM generate_series(1, 30000) i;
CREATE TABLE je_right AS SELECT i::bigint AS k, i % 5 AS w FROM generate_series(1, 30000) i;
VACUUM ANALYZE je_outer, je_left, je_right;
CREATE SEQUENCE je_calls;

-- So many rows, and how many are expected: the one numbered `bad` has a v of -1, at `fails` there is an error.
CREATE FUNCTION je_rows_of(n int, bad int, fails int) RETURNS TABLE (k bigint, v int, t text) LANGUAGE sql VOLATILE AS
	$$ SELECT CASE WHEN i % 97 <> 0 THEN (i % 20000)::bigint END, CASE WHEN i = bad THEN -1 ELSE i / (i - fails) * 0 + i % 1000 END, 'text ' || i % 100
		FROM generate_series(1, n) i WHERE nextval('je_calls') > 0 OFFSET 0 $$;
CREATE FUNCTION je_few(n int, bad int, fails int) RETURNS TABLE (k bigint, v int, t text) LANGUAGE plpgsql VOLATILE ROWS 14000 AS
	$$ BEGIN RETURN QUERY SELECT * FROM je_rows_of(n, bad, fails); END $$;

-- How the joins of a plan that was run have their inner rows, from the top: in memory, entered as they came, or parted.
CREATE FUNCTION je_ways(plan jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(CASE WHEN (p ->> 'Partitions')::int > 1 THEN 'parted'
						   WHEN (p ->> 'Disk Usage')::bigint > 0 THEN 'as they came' ELSE 'in memory' END, ', ')
	FROM jsonb_path_query(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuHashJoin")') p $$;

-- The answer is PostgreSQL's; the ways; and how often a row of je_rows_of was made, in both runs.
CREATE FUNCTION je_check(query text, memory text DEFAULT '1MB', workers int DEFAULT 0)
RETURNS TABLE (is_right boolean, ways text, calls bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	mine text;
	theirs text;
BEGIN
	PERFORM set_config('work_mem', memory, true), set_config('max_parallel_workers_per_gather', workers::text, true), setval('je_calls', 1, false);
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) ' || query INTO plan;
	ways := je_ways(plan);
	EXECUTE 'SELECT string_agg(x::text, chr(10) ORDER BY x::text) FROM (' || query || ') x' INTO mine;
	calls := nextval('je_calls') - 1;
	SET LOCAL gpuhash.enabled = off;
	SET LOCAL work_mem = '64MB';
	EXECUTE 'SELECT string_agg(x::text, chr(10) ORDER BY x::text) FROM (' || query || ') x' INTO theirs;
	SET LOCAL gpuhash.enabled = on;
	is_right := mine IS NOT DISTINCT FROM theirs;
	RETURN NEXT;
END
$$;

-- with memory for both; for the table alone; for much less
SELECT * FROM je_check('SELECT g, count(*), sum(v), min(length(t)) FROM je_outer o JOIN je_few(14000, 0, 0) f ON f.k = o.k GROUP BY g', '16MB');
SELECT * FROM je_check('SELECT g, count(*), sum(v), min(length(t)) FROM je_outer o JOIN je_few(14000, 0, 0) f ON f.k = o.k GROUP BY g');
SELECT * FROM je_check('SELECT g, count(*), sum(v), min(length(t)) FROM je_outer o JOIN je_few(14000, 0, 0) f ON f.k = o.k GROUP BY g', '64kB');
-- an outer join, a semijoin, an antijoin, a condition on the pair
SELECT * FROM je_check('SELECT g, count(*), count(v), sum(v) FROM je_outer o LEFT JOIN je_few(14000, 0, 0) f ON f.k = o.k AND f.t <> ''text 7'' GROUP BY g');
SELECT * FROM je_check('SELECT g, count(*) FROM je_outer o WHERE EXISTS (SELECT FROM je_few(14000, 0, 0) f WHERE f.k = o.k AND f.v > o.g) GROUP BY g');
SELECT * FROM je_check('SELECT g, count(*) FROM je_outer o WHERE NOT EXISTS (SELECT FROM je_few(14000, 0, 0) f WHERE f.k = o.k AND f.v > o.g) GROUP BY g');
-- no row; none with a key
SELECT * FROM je_check('SELECT g, count(*) FROM je_outer o JOIN je_few(0, 0, 0) f ON f.k = o.k GROUP BY g');
SELECT * FROM je_check('SELECT g, count(*), count(v) FROM je_outer o LEFT JOIN je_few(0, 0, 0) f ON f.k = o.k GROUP BY g');
-- more rows than were expected: memory runs out, and each row is made once in each run
SELECT * FROM je_check('SELECT g, count(*), sum(v), min(length(t)) FROM je_outer o JOIN je_few(45000, 0, 0) f ON f.k = o.k GROUP BY g');
SELECT * FROM je_check('SELECT g, count(*), sum(v) FROM je_outer o LEFT JOIN je_few(150000, 0, 0) f ON f.k = o.k GROUP BY g');
-- a value that no engine holds, NaN: the first, the last of a thousand, one of the next, the last, and behind those for which there is memory
SELECT bad, c.* FROM unnest(ARRAY[1, 1034, 1035, 14000]) bad, je_check(format('SELECT g, count(*), sum(v), sum(length(t)) FROM je_outer o JOIN (SELECT k, CASE WHEN v < 0 THEN ''NaN'' ELSE v::numeric END::numeric(12, 2) AS v, t FROM je_few(14000, %s, 0) OFFSET 0) f ON f.k = o.k GROUP BY g', bad)) c;
SELECT * FROM je_check('SELECT g, count(*), sum(v) FROM je_outer o JOIN (SELECT k, CASE WHEN v < 0 THEN ''NaN'' ELSE v::numeric END::numeric(12, 2) AS v, t FROM je_few(45000, 44000, 0) OFFSET 0) f ON f.k = o.k WHERE f.t <> o.g::text GROUP BY g');

-- errors of the plan, and of the file
SELECT * FROM je_check('SELECT g, count(*), sum(v) FROM je_outer o JOIN je_few(14000, 0, 9000) f ON f.k = o.k GROUP BY g');
-- the text of that error is another one from 18 on
\set VERBOSITY sqlstate
SET temp_file_limit = '64kB';
SELECT * FROM je_check('SELECT g, count(*), sum(v), sum(w), min(length(t)) FROM je_outer o JOIN (je_left l JOIN je_right r ON r.k = l.k) ON l.k = o.k GROUP BY g', '3MB');
SELECT * FROM je_check('SELECT g, count(*), sum(v), sum(w), min(length(t)) FROM je_outer o JOIN (je_left l JOIN je_right r ON r.k = l.k) ON l.k = o.k GROUP BY g', '1MB', 2);
RESET temp_file_limit;
\set VERBOSITY default

-- a join that has such a table has to return its rows, as one above it cannot be probed (NaN); and it need not, as that is below it
SELECT * FROM je_check('SELECT g, count(*), sum(f.v), sum(h.v) FROM je_outer o JOIN je_few(14000, 0, 0) f ON f.k = o.k
	LEFT JOIN (SELECT k, CASE WHEN v < 0 THEN ''NaN'' ELSE v::numeric END::numeric(12, 2) AS v FROM je_few(300, 299, 0) OFFSET 0) h ON h.k = f.v GROUP BY g');
SELECT * FROM je_check('SELECT g, count(*), sum(h.v), sum(f.v) FROM je_outer o LEFT JOIN (SELECT k, CASE WHEN v < 0 THEN ''NaN'' ELSE v::numeric END::numeric(12, 2) AS v FROM je_few(300, 299, 0) OFFSET 0) h ON h.k = o.j
	LEFT JOIN je_few(14000, 0, 0) f ON f.k = o.k GROUP BY g');

-- run again: with the same inner side, and with another one
SELECT * FROM je_check('SELECT x, s.* FROM generate_series(1, 4) x, LATERAL (SELECT count(*), sum(v) FROM je_outer o JOIN je_few(14000, 0, 0) f ON f.k = o.k WHERE o.g > x OFFSET 0) s');
SELECT * FROM je_check('SELECT x, s.* FROM generate_series(1, 4) x, LATERAL (SELECT count(*), sum(v) FROM je_outer o JOIN je_few(3000 * x * x, 0, 0) f ON f.k = o.k WHERE o.g > 2 OFFSET 0) s');

-- all participants together: the inner side is a join; its table fits, does not, and hands a value back
SELECT workers, memory, c.is_right, split_part(c.ways, ',', 1) AS way FROM (VALUES (0, '3MB'), (0, '16MB'), (2, '1MB'), (2, '2MB'), (2, '64kB'), (2, '16MB')) m (workers, memory),
	je_check('SELECT g, count(*), sum(v), sum(w), min(length(t)) FROM je_outer o JOIN (je_left l JOIN je_right r ON r.k = l.k) ON l.k = o.k GROUP BY g', memory, workers) c;
ALTER TABLE je_left RENAME TO je_good;
CREATE TABLE je_left AS SELECT k, CASE WHEN k = 1000 THEN 'NaN' ELSE v END::numeric(12, 2) AS v, t FROM je_good;
VACUUM ANALYZE je_left;
SELECT workers, memory, c.is_right, split_part(c.ways, ',', 1) AS way FROM (VALUES (0, '3MB'), (2, '1MB'), (2, '2MB')) m (workers, memory),
	je_check('SELECT g, count(*), sum(v), sum(w), min(length(t)) FROM je_outer o JOIN (je_left l JOIN je_right r ON r.k = l.k) ON l.k = o.k GROUP BY g', memory, workers) c;
-- more rows than were expected
ALTER TABLE je_left SET (autovacuum_enabled = off);
ALTER TABLE je_right SET (autovacuum_enabled = off);
INSERT INTO je_left SELECT i % 15000, i % 1000, 'text ' || i % 100 FROM generate_series(1, 200000) i;
UPDATE pg_class SET reltuples = 30000, relpages = 250 WHERE relname IN ('je_left', 'je_right');
SELECT workers, memory, c.is_right FROM (VALUES (0, '3MB'), (2, '1MB'), (2, '2MB')) m (workers, memory),
	je_check('SELECT g, count(*), sum(v), sum(w), min(length(t)) FROM je_outer o JOIN (je_left l JOIN je_right r ON r.k = l.k) ON l.k = o.k GROUP BY g', memory, workers) c;

DROP TABLE je_outer, je_good, je_left, je_right;
DROP FUNCTION je_check, je_ways, je_few, je_rows_of;
DROP SEQUENCE je_calls;
