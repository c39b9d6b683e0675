# Aggregates whose pages the device reads give PostgreSQL's answers, and EXPLAIN ANALYZE counts the
# rows of the nodes below as it does where the CPU engine reads them; with the service and without.
#
#	GPUHASH_ONLY	a pattern: only queries whose whole name it matches
#	GPUHASH_WITH	alone or service: only without the service, or with it
#
# In the place of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Service;

my $stand_in;
if (($ENV{GPUHASH_STAND_IN} || '') ne 'no')
{
	$stand_in = GpuHash::Fault->needed;
}

# a scan on a device starts for nothing: rescans, too, go there
# what stays on a device is another test's; from PostgreSQL 19 on the first scans of these tables make them fit for it
my @CONF = ('gpuhash.enable_resident = off', 'gpuhash.device_start_cost = 0', 'seq_page_cost = 0.05',
	"gpuhash.engine = 'cuda'", 'jit = off', 'autovacuum = off', 'max_parallel_workers_per_gather = 0', 'max_worker_processes = 20',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'max_connections = 30', 'max_locks_per_transaction = 20',
	'gpuhash.batch_rows = 1000', 'shared_buffers = 256MB');

my $TABLES = <<'SQL';
CREATE TABLE t (id int, g int, i2 int2, i4 int4, i8 int8, n numeric(12, 2), f float8, b bool, x text, c char(8), d date);
INSERT INTO t SELECT i, CASE WHEN i % 13 > 0 THEN i % 7 END, i % 300 - 100, i * 7919 % 2000 - 1000, i * i * 1000003::int8 * (i % 3 - 1), (i % 997) / 100.0 - 3, i % 8000 / 8.0, CASE WHEN i % 5 > 0 THEN i % 3 = 0 END,
	CASE WHEN i % 11 > 0 THEN repeat('x', i % 4) || i % 50 END, 't' || i % 30, date '2000-01-01' + i % 400 FROM generate_series(1, 30000) i;
CREATE TABLE empty (LIKE t);
CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES FROM (1) TO (4000);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (4000) TO (4010);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (4010) TO (40000);
CREATE TABLE parts_3 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM t;
CREATE TABLE odd_parts (id int, g int, i8 int8, m numeric(30, 5), x text, k int8) PARTITION BY LIST (g);
CREATE TABLE odd_parts_0 PARTITION OF odd_parts FOR VALUES IN (0, 1);
CREATE TABLE odd_parts_1 PARTITION OF odd_parts DEFAULT;
-- wide values: compressed, out of line, NaN, infinite, near the limits
CREATE TABLE odd (id int, g int, i8 int8, n numeric, m numeric(30, 5), x text, k int8);
INSERT INTO odd SELECT i, i % 5, CASE i % 100 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 ELSE i END,
	CASE i % 90 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN 1e200 WHEN 4 THEN 1e-150 ELSE i / 7.0 END,
	CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN 9999999999999999999999999.99999 ELSE i * 1.00001 END,
	CASE WHEN i % 40 = 0 THEN repeat('long ' || i % 3, 2000) WHEN i % 40 = 1 THEN (SELECT string_agg(md5((i % 3 * 1000 + j)::text), '') FROM generate_series(1, 300) j) ELSE 'short ' || i % 9 END, i % 60
	FROM generate_series(1, 4000) i;
INSERT INTO odd_parts SELECT id, g, i8, m, x, k FROM odd;
-- tuples of several ages and shapes
CREATE TABLE aged (id int, gone text, g int, v int);
INSERT INTO aged SELECT i, 'gone', i % 6, i FROM generate_series(1, 5000) i;
ALTER TABLE aged DROP COLUMN gone;
ALTER TABLE aged ADD COLUMN late int, ADD COLUMN later int DEFAULT 7, ADD COLUMN latest text DEFAULT 'default';
INSERT INTO aged SELECT i, i % 6, i, i % 4, CASE WHEN i % 3 > 0 THEN i END, 'set ' || i % 5 FROM generate_series(5001, 8000) i;
UPDATE aged SET late = 1 WHERE id % 37 = 0;
-- pages with dead, redirected and unused line pointers
CREATE TABLE holes (id int PRIMARY KEY, g int, v int) WITH (fillfactor = 60);
INSERT INTO holes SELECT i, i % 9, i FROM generate_series(1, 20000) i;
UPDATE holes SET v = v + 1 WHERE id % 3 = 0;
DELETE FROM holes WHERE id % 7 = 0;
VACUUM holes;
UPDATE holes SET v = v + 1 WHERE id % 5 = 0;
UPDATE holes SET v = v + 1 WHERE id % 10 = 0;
DELETE FROM holes WHERE id % 11 = 0;
DELETE FROM holes WHERE id BETWEEN 3000 AND 6000;
INSERT INTO holes SELECT i, i % 9, i FROM generate_series(30001, 31000) i;
-- all-visible pages with redirected lines, without free ones
CREATE TABLE redirected (id int PRIMARY KEY, g int, v int, n numeric(30, 2)) WITH (fillfactor = 70);
INSERT INTO redirected SELECT i, i % 9, i, CASE i % 500 WHEN 0 THEN 'NaN' ELSE i::numeric END FROM generate_series(1, 20000) i;
UPDATE redirected SET v = v + 1 WHERE id % 4 = 0;
VACUUM redirected;
CREATE TABLE frozen AS SELECT i AS id, i % 9 AS g, i AS v FROM generate_series(1, 20000) i;
VACUUM (FREEZE) frozen;
-- dimensions
CREATE TABLE one (k int, p int, t text, q int8, n numeric(8, 2), k2 int2);
INSERT INTO one SELECT i, CASE WHEN i % 6 > 0 THEN i * 3 END, 'name ' || i % 20, i::int8 * 1000000007, i / 4.0, i % 20 - 10 FROM generate_series(-1000, 5) i;
INSERT INTO one SELECT i, CASE WHEN i % 6 > 0 THEN i * 3 END, CASE WHEN i % 5 > 0 THEN 'name ' || i % 20 END, i::int8 * 1000000007, i / 4.0, i % 20 - 10 FROM generate_series(6, 900) i;
INSERT INTO one VALUES (NULL, 5, 'null', 5, 5, 5), (NULL, 6, 'null', 6, 6, 6);
CREATE TABLE wide_key (k int8, p int);
INSERT INTO wide_key SELECT i, i FROM generate_series(-300, 300) i;
INSERT INTO wide_key VALUES (4294967297, -1), (-4294967297, -2);
CREATE TABLE many (k int, p int);
INSERT INTO many SELECT i % 300, i FROM generate_series(1, 900) i;
-- more rows of some keys than the device joins with a row
CREATE TABLE hub (k int, p int);
INSERT INTO hub SELECT CASE WHEN i % 2 = 0 THEN i % 4 ELSE i / 10 END, i FROM generate_series(1, 20000) i;
CREATE TABLE pair (k1 int, k2 int2, p int, t text);
INSERT INTO pair SELECT i / 30 - 8, i % 30 - 10, i, 'pair ' || i % 3 FROM generate_series(0, 700) i;
-- keys that are no whole numbers
CREATE TABLE code (x text, c char(10), n numeric(20, 2), b bool, i8 int8, p int);
INSERT INTO code SELECT repeat('x', i % 4) || i % 40, 't' || i % 25, i / 100.0 - 3, CASE WHEN i % 5 > 0 THEN i % 3 = 0 END, i::int8 * i * 1000003 * (i % 3 - 1), i FROM generate_series(1, 300) i;
INSERT INTO code VALUES (NULL, 't1', NULL, NULL, NULL, 1000), ('', '', 0, false, 0, 1001);
CREATE TABLE code_odd (x text, m numeric(30, 5), p int);
INSERT INTO code_odd SELECT 'short ' || i % 7, i * 1.00001, i FROM generate_series(1, 60) i;
CREATE TABLE inner_long (k int, x text);
INSERT INTO inner_long SELECT i, CASE WHEN i = 77 THEN repeat('long ', 2000) ELSE 'short' END FROM generate_series(1, 100) i;
CREATE TABLE sub (k int8, p int);
INSERT INTO sub SELECT i::int8 * 3, i FROM generate_series(0, 400) i;
CREATE TABLE seen (v int);
CREATE DOMAIN later AS date CHECK (VALUE > '1990-01-01');
CREATE FUNCTION noted(int) RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
-- in this order, nothing overflows
CREATE TABLE infinite (id int, g int, f float8, n numeric(60, 0));
INSERT INTO infinite SELECT i, i % 3, CASE WHEN i < 3 THEN 'Infinity' WHEN i % 40 > 37 THEN 1e308 ELSE i END, CASE WHEN i % 50 = 0 THEN 1e50 ELSE i END FROM generate_series(0, 1999) i;
ANALYZE;
SQL

# Queries: name, SQL, then options:
#	by		engine that does it to its end: cuda if not given; workers: cuda where workers may use it;
#			service: cuda with the service, else cpu; any: it does not matter; leader: cuda where
#			workers have it, too, else these may have read all before the leader has begun
#	set		SQL that is run before
#	plan	what the plan must have
my @QUERIES = (
	[count => 'SELECT count(*) FROM t'],
	[filter => 'SELECT count(*), sum(i4), min(i8), max(n), avg(n), sum(f), bool_and(b), bool_or(b) FROM t WHERE i4 > 100 AND x <> \'x1\''],
	[by_int => 'SELECT g, count(*), sum(i4), sum(i8), avg(i2), stddev(i4) FROM t GROUP BY g'],
	[by_text => 'SELECT x, count(*), sum(n) FROM t GROUP BY x'],
	[by_bpchar => 'SELECT c, count(*), max(i4) FROM t GROUP BY c'],
	[by_numeric => 'SELECT n, count(*) FROM t GROUP BY n'],
	[by_bool => 'SELECT b, count(*), sum(f) FROM t GROUP BY b'],
	[by_date => 'SELECT d, count(*), min(d), max(d) FROM t GROUP BY d'],
	[by_many_keys => 'SELECT g, x, b, n, c, count(*), sum(i8) FROM t GROUP BY g, x, b, n, c'],
	[by_expression => 'SELECT g % 3, i4 / 100, sum(n * 2 + i2) FROM t GROUP BY 1, 2'],
	[by_float => 'SELECT f, count(*) FROM t GROUP BY f', by => 'cpu'],
	[distinct => 'SELECT DISTINCT g, x FROM t'],
	[distinct_expression => 'SELECT DISTINCT i4 / 100, c FROM t WHERE b'],
	[distinct_many => 'SELECT DISTINCT id, x FROM t', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	[distinct_join => 'SELECT DISTINCT one.t, t.g FROM t JOIN one ON one.k = t.i4'],
	[distinct_back => 'SELECT DISTINCT x, m FROM odd'],
	[distinct_float => 'SELECT DISTINCT f FROM t', by => 'cpu'],
	[distinct_parallel => 'SELECT DISTINCT g, x FROM t', set => 'SET max_parallel_workers_per_gather = 2', by => 'workers'],
	[sets => 'SELECT g, x, count(*), sum(i8), avg(n), max(d), GROUPING(g, x) FROM t GROUP BY CUBE (g, x)'],
	[sets_having => 'SELECT g, b, i4 / 100, sum(n) FROM t GROUP BY ROLLUP (g, b, i4 / 100) HAVING sum(n) > 5 OR GROUPING(b) = 1'],
	[sets_many => 'SELECT id, x, count(*), sum(i8) FROM t GROUP BY CUBE (id, x)', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	[sets_join => 'SELECT one.t, t.g, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 GROUP BY CUBE (one.t, t.g)'],
	[sets_back => 'SELECT x, m, count(*), sum(m), max(i8) FROM odd GROUP BY ROLLUP (x, m)'],
	[sets_no_rows => 'SELECT g, count(*), sum(i4) FROM t WHERE i4 > 100000 GROUP BY ROLLUP (g)'],
	[sets_parallel => 'SELECT g, x, count(*), sum(n) FROM t GROUP BY CUBE (g, x)', set => 'SET max_parallel_workers_per_gather = 2', by => 'workers'],
	[infinite => 'SELECT g, sum(f), avg(f), stddev(f), count(*) FROM infinite GROUP BY g', by => 'any'],
	[infinite_with_others => 'SELECT g, sum(f), max(f), sum(n) FROM infinite GROUP BY g', by => 'cpu'],
	[having => 'SELECT g, count(*) FROM t GROUP BY g HAVING sum(i4) > 0'],
	[having_many => 'SELECT id, count(*), sum(n) FROM t GROUP BY id HAVING sum(n) > 5 AND avg(i4) <> 3 AND max(d) IS NOT NULL'],
	[having_back => 'SELECT g, sum(n), sum(m) FROM odd GROUP BY g HAVING sum(m) > 100 OR avg(n) < 5 OR max(i8) > 0', by => 'any'],
	[having_not_stored => 'SELECT id, x, count(*), sum(i8) FROM t GROUP BY id, x HAVING sum(i8) > 1000 AND id % 50 = 0', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1", plan => qr/GpuHashAggregate(?!.*Disk Usage: [1-9])/s],
	# a device judges groups itself, from one more than a batch on, where its program can tell of all
	[having_there => 'SELECT id, x, d, b, n, count(*), count(x), sum(i8), sum(i4), avg(n), max(n), min(f), sum(f), bool_or(b) FROM t GROUP BY id, x, d, b, n HAVING sum(i8) > 1000 AND avg(n) > 2.5 AND count(*) < 3', plan => qr/Groups: 30000\b.*Groups Left on Device: 2\d{4}\b/s],
	[having_there_key => "SELECT id, x, c FROM t GROUP BY id, x, c HAVING (x > 'x4' OR count(*) > 1) AND (id % 3 = 0 OR count(*) > 1) AND (c <> 't7' OR count(*) > 1)", plan => qr/Groups: 30000\b.*Groups Left on Device: 2\d{4}\b/s],
	[having_there_null => 'SELECT id, min(g), max(b::int), count(b), sum(i8) FROM t GROUP BY id HAVING min(g) IS NULL OR max(i4) IS NULL', plan => qr/Groups Left on Device: 2\d{4}\b/],
	[having_there_wide => 'SELECT id, sum(i8), sum(n), max(i8) FROM t GROUP BY id HAVING sum(i8 * 3) > 100000 AND sum(n) > 0', plan => qr/Groups Left on Device: [12]\d{4}\b/],
	[having_there_part => "SELECT id, x, sum(i4) FROM t GROUP BY id, x HAVING sum(i4) > 900 AND (x ~ '1\$' OR count(*) > 1)", plan => qr/Groups Left on Device: 2\d{4}\b/],
	[having_there_none => 'SELECT id, x, sum(i4) FROM t GROUP BY id, x HAVING sum(i4) > 1000000', plan => qr/Groups: 30000\b.*Groups Left on Device: 30000\b/s],
	[having_there_all => 'SELECT id, x, sum(i4) FROM t GROUP BY id, x HAVING sum(i4) < 1000000', plan => qr/Groups Left on Device: 0\b/],
	[having_there_files => 'SELECT id, x, count(*), sum(i8) FROM t GROUP BY id, x HAVING sum(i8) >= 0', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1", plan => qr/Groups Left on Device: 1\d{4}\b.*Disk Usage: [1-9]/s],
	[having_subquery_behind_error => 'SELECT id, count(*) FROM t GROUP BY id HAVING 1 / (min(i4) - min(i4)) > (SELECT noted(1))', by => 'any'],
	[having_there_subquery => 'SELECT id, x, sum(i4) FROM t GROUP BY id, x HAVING sum(i4) > (SELECT max(p) FROM one) / 3', plan => qr/Groups: 30000\b.*Groups Left on Device: 2\d{4}\b/s],
	[having_there_join => 'SELECT t.id, one.t, sum(one.p), count(*) FROM t JOIN one ON one.k = t.i4 GROUP BY t.id, one.t HAVING sum(one.p) > 1500', plan => qr/Groups Left on Device: 2\d{4}\b/],
	# of some groups the program cannot tell, or the pipeline has no such columns: all of them come
	[having_not_there => 'SELECT id, sum(n) FROM t GROUP BY id HAVING sum(i8) * 10000000000000000000000 * 10000 > 5', plan => qr/Groups: 30000\b.*Groups Left on Device: 0\b/s],
	[having_not_there_moments => 'SELECT id, stddev(i4), count(*) FROM t GROUP BY id HAVING count(*) > 1', plan => qr/Groups: 30000\b.*Groups Left on Device: 0\b/s],
	[having_not_there_floats => 'SELECT id, avg(f) FROM t GROUP BY id HAVING avg(f) > 500', plan => qr/Groups: 30000\b.*Groups Left on Device: 0\b/s],
	[having_not_there_back => 'SELECT id, sum(m) FROM odd GROUP BY id HAVING sum(m) > 2000', plan => qr/Groups Left on Device: 0\b/, by => 'any'],
	[having_few_stored => 'SELECT * FROM generate_series(1, 3) g LEFT JOIN (SELECT id, x, count(*) AS c, sum(i8) FROM t GROUP BY id, x HAVING sum(i8) > 1000 AND id % 50 = 0) s ON s.c > g - 3', set => 'SET enable_material = off', plan => qr/Nested Loop.*GpuHashAggregate.*loops=3(?!.*Disk Usage: [1-9])/s],
	[having_again => 'SELECT * FROM generate_series(1, 3) g LEFT JOIN (SELECT id, x, count(*) AS c, sum(i8) FROM t GROUP BY id, x HAVING sum(i8) > 1000) s ON s.c > g - 3', set => 'SET enable_material = off'],
	# groups by the values of DISTINCT become the groups that come out
	[distinct_there => 'SELECT x, c, count(DISTINCT id), count(*), count(b), sum(i8), sum(n), min(d), avg(i4), bool_and(b) FROM t GROUP BY x, c', plan => qr/Distinct Values: 30000\b.*Groups Left on Device: 30000\b/s],
	[distinct_there_values => 'SELECT g, count(DISTINCT i4), sum(DISTINCT i4), avg(DISTINCT i4) FROM t GROUP BY g', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_there_numerics => 'SELECT i2, sum(DISTINCT n), avg(DISTINCT n), sum(n), count(*) FROM t GROUP BY i2', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_there_texts => 'SELECT i4, count(DISTINCT x), max(d) FROM t GROUP BY i4', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_there_filter => 'SELECT g, count(DISTINCT i4) FILTER (WHERE i2 > 0), sum(DISTINCT i4) FILTER (WHERE b), count(*) FILTER (WHERE b) FROM t GROUP BY g', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_there_alone => 'SELECT count(DISTINCT i4), sum(DISTINCT i4), count(*), sum(n) FROM t', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_there_having => 'SELECT i4, count(DISTINCT g) FROM t GROUP BY i4 HAVING count(DISTINCT g) > 6 AND sum(i8) < 0', plan => qr/Rows Removed by Filter: [1-9].*Groups Left on Device: [1-9]/s],
	[distinct_there_having_all => 'SELECT i4, count(DISTINCT g) FROM t GROUP BY i4 HAVING count(DISTINCT g) > 6 AND noted(max(i2)) > 150 AND sum(i8) < 0', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_there_scales => 'SELECT i2, count(DISTINCT i4), sum(CASE WHEN b THEN n ELSE 0 END) FROM t GROUP BY i2', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_there_again => 'SELECT * FROM generate_series(1, 3) s LEFT JOIN (SELECT x, count(DISTINCT id) AS c, sum(n) FROM t GROUP BY x) q ON q.c > s - 3', set => 'SET enable_material = off', plan => qr/Groups Left on Device: [1-9]/],
	[distinct_not_there_moments => 'SELECT g, count(DISTINCT i4), stddev(i2) FROM t GROUP BY g', plan => qr/Groups Left on Device: 0\b/],
	[distinct_not_there_back => 'SELECT g, count(DISTINCT m), sum(i8) FROM odd GROUP BY g', plan => qr/Groups Left on Device: 0\b/, by => 'any'],
	# also of several arguments
	[several_there => 'SELECT g, count(DISTINCT i4), count(DISTINCT d), sum(DISTINCT i2), count(*), count(b), sum(i8), sum(n), min(d), bool_and(b) FROM t GROUP BY g', plan => qr/Distinct Key: t.i4, t.d, t.i2\b.*Groups Left on Device: [1-9]/s],
	[several_there_texts => 'SELECT c, count(DISTINCT x), count(DISTINCT id), count(DISTINCT c), max(i2) FROM t GROUP BY c', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_numerics => 'SELECT b, x, sum(DISTINCT n), avg(DISTINCT n), avg(DISTINCT i4), count(DISTINCT b), sum(n) FROM t GROUP BY b, x', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_filter => 'SELECT g, count(DISTINCT i4) FILTER (WHERE i2 > 0), sum(DISTINCT i4) FILTER (WHERE b), count(DISTINCT d) FILTER (WHERE b), count(*) FILTER (WHERE b), count(DISTINCT x) FROM t GROUP BY g', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_alone => 'SELECT count(DISTINCT i4), sum(DISTINCT i2), count(DISTINCT x), count(*), sum(n) FROM t', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_most => 'SELECT b, count(DISTINCT i2), count(DISTINCT i4), count(DISTINCT i8), count(DISTINCT n), count(DISTINCT x), count(DISTINCT c), count(DISTINCT d), count(DISTINCT g) FROM t GROUP BY b', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_having => 'SELECT i4, count(DISTINCT g), count(DISTINCT b) FROM t GROUP BY i4 HAVING count(DISTINCT g) > 6 AND count(DISTINCT b) > 0 AND sum(i8) < 0', plan => qr/Rows Removed by Filter: [1-9].*Groups Left on Device: [1-9]/s],
	[first_there_several => 'SELECT id % 9999, count(DISTINCT i4), count(DISTINCT d), sum(n) FROM t GROUP BY 1 ORDER BY sum(n) DESC, 1 LIMIT 10', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_scales => 'SELECT i2, count(DISTINCT i4), count(DISTINCT g), sum(CASE WHEN b THEN n ELSE 0 END) FROM t GROUP BY i2', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_join => 'SELECT one.t, count(DISTINCT t.id), count(DISTINCT t.d), sum(one.q) FROM t LEFT JOIN one ON one.k = t.i4 GROUP BY one.t', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_matches => 'SELECT t.g, count(DISTINCT t.id), count(DISTINCT pair.p), count(*) FROM t JOIN pair ON pair.k1 = t.g GROUP BY t.g', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_again => 'SELECT * FROM generate_series(1, 3) s LEFT JOIN (SELECT x, count(DISTINCT id) AS c, count(DISTINCT i2), sum(n) FROM t GROUP BY x) q ON q.c > s - 3', set => 'SET enable_material = off', plan => qr/Groups Left on Device: [1-9]/],
	[several_there_nested => 'SELECT m, count(DISTINCT c), count(DISTINCT e), sum(k) FROM (SELECT id, i4 % 9 AS m, count(DISTINCT g) AS c, count(DISTINCT x) + id % 7 AS e, count(*) AS k FROM t GROUP BY id, 2) q GROUP BY m', plan => qr/Rows q.*Engine: cuda/s],
	[several_none => 'SELECT count(DISTINCT i4), count(DISTINCT x), sum(i8) FROM empty', by => 'any'],
	[several_little => "SELECT g, count(DISTINCT id), count(DISTINCT i8), sum(n) FROM t GROUP BY g", set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	[several_parallel => 'SELECT g, count(DISTINCT i4), count(DISTINCT d), sum(i8) FROM t GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', by => 'workers'],
	[several_moments => 'SELECT g, count(DISTINCT i4), count(DISTINCT d), stddev(i2), variance(DISTINCT i2) FROM t GROUP BY g', plan => qr/Groups Left on Device: 0\b/],
	[several_back => 'SELECT g, count(DISTINCT m), count(DISTINCT i8), sum(i8) FROM odd GROUP BY g', plan => qr/Rows Handed Back: [1-9].*Groups Left on Device: 0\b/s, by => 'any'],
	[several_back_alone => 'SELECT count(DISTINCT m), sum(DISTINCT m) FILTER (WHERE k > 5), count(DISTINCT id), sum(i8), min(m) FROM odd', by => 'any'],
	[several_text_order => 'SELECT g, count(DISTINCT i4), count(DISTINCT x), min(x) FROM t GROUP BY g', by => 'cpu'],
	# and those by all keys of grouping sets become those of each set
	[sets_there => 'SELECT i4, g, x, count(*), sum(i8), sum(n), min(d), bool_or(b), GROUPING(i4, x) FROM t GROUP BY GROUPING SETS ((i4), (g, x), (x, g), (i4, g), ())', plan => qr/Groups: \d{5}\b.*Groups Left on Device: [1-9]/s],
	[sets_there_many => 'SELECT id, c, x, count(*), sum(n) FROM t GROUP BY CUBE (id, x), c', plan => qr/Groups: 30000\b.*Groups Left on Device: 30000\b/s],
	[sets_there_having => 'SELECT i4, g, sum(n) FROM t GROUP BY ROLLUP (i4, g) HAVING sum(n) > 5 OR GROUPING(g) = 1', plan => qr/Groups Left on Device: [1-9]/],
	[sets_there_scales => 'SELECT i4, g, sum(CASE WHEN b THEN n ELSE 0 END), avg(i4) FROM t GROUP BY ROLLUP (i4, g)', plan => qr/Groups Left on Device: [1-9]/],
	[sets_there_nested => 'SELECT c, g, count(*) FROM (SELECT id, g, count(b) AS c FROM t GROUP BY id, g) q GROUP BY CUBE (c, g)', plan => qr/Rows q.*Engine: cuda/s],
	[sets_there_nested_many => 'SELECT id, m, sum(c) FROM (SELECT id, max(i4) AS m, count(b) AS c FROM t GROUP BY id) q GROUP BY GROUPING SETS ((id), (m), ())', plan => qr/Rows .*Engine: cuda.*Groups Left on Device: 30000\b.*Groups Left on Device: 30000\b/s],
	[sets_not_there_moments => 'SELECT i4, g, stddev(i2) FROM t GROUP BY ROLLUP (i4, g)', plan => qr/Groups Left on Device: 0\b/],
	# of an order that is wanted to a limit, few more come out than are wanted
	[first_there => 'SELECT id, x, sum(i8) FROM t GROUP BY id, x ORDER BY sum(i8) DESC NULLS LAST, id LIMIT 10', plan => qr/GpuHashAggregate\) \(actual rows=\d{2,3}\b.*Group \(rows=30000\), First \(rows=\d{2,3}\).*Groups: 30000\b.*Groups Left on Device: 29\d{3}\b/s],
	[first_there_offset => 'SELECT id, max(d), sum(n) FROM t GROUP BY id ORDER BY max(d), sum(n) DESC, id LIMIT 5 OFFSET 12', plan => qr/Groups Left on Device: 2\d{4}\b/],
	[first_there_nulls => 'SELECT id, max(g) FROM t GROUP BY id ORDER BY max(g) DESC, id LIMIT 20', plan => qr/Groups Left on Device: 2\d{4}\b/],
	[first_there_nulls_last => 'SELECT id, max(g) FROM t GROUP BY id ORDER BY max(g) DESC NULLS LAST, id LIMIT 20', plan => qr/Groups Left on Device: 2\d{4}\b/],
	[first_there_nulls_too => 'SELECT id, max(f), min(g) FROM t GROUP BY id ORDER BY max(f) NULLS FIRST, id LIMIT 20', plan => qr/Groups Left on Device: 2\d{4}\b/],
	[first_there_key => 'SELECT id, count(*) FROM t GROUP BY id ORDER BY id DESC LIMIT 7', plan => qr/Groups Left on Device: 2\d{4}\b/],
	[first_there_expression => 'SELECT id, sum(n) * 2 - count(*), max(d) + 1 FROM t GROUP BY id ORDER BY 2, id LIMIT 7', plan => qr/Groups Left on Device: 2\d{4}\b/],
	[first_there_domain => 'SELECT id, x::varchar(10), max(d)::later FROM t GROUP BY id, x ORDER BY 3 DESC, id LIMIT 7', by => 'any'],
	[first_not_there_equal => 'SELECT id, count(*) FROM t GROUP BY id ORDER BY 2, 1 LIMIT 7', plan => qr/Groups Left on Device: 0\b/],
	[first_there_mean => 'SELECT id, avg(n) FROM t GROUP BY id ORDER BY avg(n) DESC, id LIMIT 7', by => 'any'],
	[first_there_having => 'SELECT id, x, sum(i4) FROM t GROUP BY id, x HAVING sum(i4) > 0 ORDER BY 3, id LIMIT 10', plan => qr/Rows Removed by Filter: 1[45]\d{3}\b.*Group \(rows=30000\), Filter \(rows=1[45]\d{3}\), First \(rows=\d{2,3}\).*Groups Left on Device: 29\d{3}\b/s],
	[first_there_having_few => 'SELECT id, x, sum(i4) FROM t GROUP BY id, x HAVING sum(i4) > 998 ORDER BY 3, id LIMIT 50', plan => qr/Groups Left on Device: 29\d{3}\b/],
	[first_there_distinct => 'SELECT id, x, count(DISTINCT i4), sum(n) FROM t GROUP BY id, x ORDER BY sum(n) DESC, id LIMIT 10', plan => qr/GpuHashAggregate\) \(actual rows=\d{2,3}\b.*Groups Left on Device: 59\d{3}\b/s],
	[first_there_ties => 'SELECT g + 0 * id, id % 10, count(*) FROM t GROUP BY 1, id, 2 ORDER BY 1, 2 FETCH FIRST 5 ROWS WITH TIES', by => 'any'],
	[first_there_select_distinct => 'SELECT DISTINCT id, d FROM t ORDER BY d DESC, id LIMIT 3', by => 'any'],
	# PostgreSQL computes it above the sort, of those that are wanted alone; and below it
	[first_there_function => 'SELECT id, noted(max(i4)) FROM t GROUP BY id ORDER BY max(i4), id LIMIT 3', plan => qr/Groups Left on Device: 29\d{3}\b/],
	[first_not_there_function => 'SELECT id, max(i4) FROM t GROUP BY id ORDER BY noted(max(i4)), id LIMIT 3', plan => qr/Groups Left on Device: 0\b/],
	[first_not_there_all => 'SELECT id, sum(i4) FROM t GROUP BY id ORDER BY 2, 1 LIMIT 20000', plan => qr/Groups Left on Device: 0\b/],
	[first_not_there_null => 'SELECT id, sum(i4) FROM t GROUP BY id ORDER BY 2, 1 LIMIT NULL', plan => qr/Groups Left on Device: 0\b/],
	[first_not_there_between => 'SELECT count(*), sum(s) FROM (SELECT id, sum(i4) AS s FROM t GROUP BY id ORDER BY 2, 1 LIMIT (SELECT 20)) q', by => 'any'],
	# groups of a grouping become groups of the one above
	[nested_there => 'SELECT c, count(*) FROM (SELECT id, count(b) AS c FROM t GROUP BY id) q GROUP BY c', plan => qr/Rows q \(rows=30000\).*Engine: cuda.*Subquery Scan on q \(actual rows=30000\b.*Groups: 30000\b.*Groups Left on Device: 30000\b/s],
	[nested_there_alone => 'SELECT count(*) FROM (SELECT DISTINCT id, x FROM t) q', plan => qr/Rows q.*Engine: cuda.*Groups Left on Device: 30000\b/s],
	[nested_there_having => 'SELECT g, sum(c), avg(m), min(x), count(*) FROM (SELECT id, g, max(i4) AS m, count(*) AS c, max(d) AS x FROM t GROUP BY id, g HAVING sum(i4) > 5 AND g > 1) q GROUP BY g HAVING count(*) > 3', plan => qr/Engine: cuda.*Rows Removed by Filter: [1-9].*Groups Left on Device: 19\d{3}\b/s],
	[nested_there_expressions => 'SELECT s % 3, count(*), max(s), sum(s) FROM (SELECT id, 2 * max(i4) + 1 AS s, x FROM t GROUP BY id, x) q GROUP BY 1', plan => qr/Rows q.*Engine: cuda/s],
	[nested_there_distinct => 'SELECT x, count(DISTINCT c), sum(k) FROM (SELECT id, x, count(DISTINCT g) AS c, count(*) AS k FROM t GROUP BY id, x) q GROUP BY x', plan => qr/Rows q.*Engine: cuda/s],
	[nested_there_first => 'SELECT d, count(*), max(s) FROM (SELECT id, d, sum(i4) AS s FROM t GROUP BY id, d) q GROUP BY d ORDER BY 2, 3, 1 LIMIT 3', plan => qr/Rows q.*Engine: cuda/s],
	[nested_there_twice => 'SELECT k, count(*) FROM (SELECT c, count(*) AS k FROM (SELECT id, count(b) + id % 5000 AS c FROM t GROUP BY id) q GROUP BY c) p GROUP BY k', plan => qr/Rows p.*Engine: cuda.*Rows q.*Engine: cuda/s],
	[nested_there_wide_keys => 'SELECT q::text, count(*) FROM (SELECT id, x, sum(i4) AS s FROM t GROUP BY id, x) q GROUP BY 1', by => 'any'],
	[nested_there_no_scale => 'SELECT m, count(*) FROM (SELECT id, sqrt(sum(n) + 10)::numeric(12, 1) AS m FROM t GROUP BY id) q GROUP BY m', by => 'any'],
	[nested_there_parameter => 'SELECT v.y, s.* FROM (VALUES (1), (4), (NULL)) v(y), LATERAL (SELECT m, count(*) FROM (SELECT id, (max(i4) + v.y) % 7 AS m FROM t GROUP BY id) q GROUP BY m OFFSET 0) s', plan => qr/Groups Left on Device: 90000\b/],
	[nested_there_outer_changes => 'SELECT v.y, (SELECT count(*) FILTER (WHERE s > v.y) FROM (SELECT id, max(i4) AS s FROM t GROUP BY id) q) FROM generate_series(1, 5) v(y)', plan => qr/Scan t \(rows=[36]0000\)/],
	[nested_there_means => 'SELECT x, max(a), count(*) FROM (SELECT id, x, avg(n) AS a FROM t GROUP BY id, x) q GROUP BY x', by => 'any'],
	[nested_there_again => 'SELECT v.y, s.* FROM (VALUES (1), (4)) v(y), LATERAL (SELECT c, count(*) FROM (SELECT id, count(b) AS c FROM t WHERE g < v.y GROUP BY id) q GROUP BY c OFFSET 0) s', by => 'any'],
	[nested_not_there_function => 'SELECT c, count(*) FROM (SELECT id, count(b) AS c, noted(max(i4)) AS n FROM t GROUP BY id OFFSET 0) q GROUP BY c', by => 'any'],
	[nested_not_there_called => 'SELECT noted(c), count(*) FROM (SELECT id, count(b)::int AS c FROM t GROUP BY id) q GROUP BY 1', plan => qr/Groups Left on Device: 0\b/, by => 'any'],
	[nested_not_there_sets => 'SELECT c, count(*) FROM (SELECT id, x, count(b) AS c FROM t GROUP BY ROLLUP (id, x)) q GROUP BY c', by => 'any'],
	[nested_not_there_floats => 'SELECT a > 5, count(*), sum(a) FROM (SELECT id, avg(f) AS a FROM t GROUP BY id) q GROUP BY 1', by => 'any'],
	[aggregate_filter => 'SELECT g, count(*) FILTER (WHERE i4 > 0), sum(i8) FILTER (WHERE b), avg(n) FILTER (WHERE x IS NULL) FROM t GROUP BY g'],
	[choice => 'SELECT g, sum(CASE WHEN b THEN n ELSE 0 END), avg(coalesce(n, 1.2345)) FROM t GROUP BY g'],
	[groups => 'SELECT id, count(*), sum(i8), min(x) IS NULL FROM t GROUP BY id', by => 'any'],
	[many_groups => 'SELECT id, count(*), sum(i8), max(n) FROM t GROUP BY id'],
	[many_groups_spilled => 'SELECT id, x, count(*), sum(i8), max(n) FROM t GROUP BY id, x', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	# the groups come out three times
	[groups_again_spilled => 'SELECT * FROM generate_series(1, 3) g LEFT JOIN (SELECT id, x, count(*) AS c, sum(i8), max(n) FROM t GROUP BY id, x) s ON s.c > g - 3', set => "SET enable_material = off; SET work_mem = '64kB'; SET hash_mem_multiplier = 1", plan => qr/Nested Loop.*GpuHashAggregate.*loops=3.*Disk Usage/s],
	[groups_again => 'SELECT * FROM generate_series(1, 3) g LEFT JOIN (SELECT id, x, count(*) AS c, sum(i8), max(n) FROM t GROUP BY id, x) s ON s.c > g - 3', set => 'SET enable_material = off', plan => qr/Nested Loop.*GpuHashAggregate.*loops=3/s],
	[no_rows => 'SELECT count(*), sum(i4), min(n) FROM t WHERE i4 > 100000'],
	[no_groups => 'SELECT g, count(*) FROM t WHERE i4 > 100000 GROUP BY g'],
	[empty => 'SELECT count(*), sum(i4) FROM empty', by => 'cpu'],
	[empty_groups => 'SELECT g, count(*), sum(i4) FROM empty GROUP BY g', by => 'cpu'],
	[contradiction => 'SELECT count(*), sum(i4) FROM t WHERE false', by => 'any'],
	[sum_limits => 'SELECT g, sum(i8), avg(i8), min(i8), max(i8), count(i8), var_pop(i8) FROM odd GROUP BY g'],
	[numerics => 'SELECT g, sum(n), avg(n), min(n), max(n), count(n) FROM odd GROUP BY g', by => 'any'],
	[wide_numerics => 'SELECT g, sum(m), avg(m), min(m), max(m), stddev(m) FROM odd GROUP BY g'],
	[wide_numeric_keys => 'SELECT m, count(*) FROM odd GROUP BY m'],
	[long_texts => 'SELECT x, count(*), sum(id) FROM odd GROUP BY x'],
	[long_text_filter => "SELECT count(*), sum(id) FROM odd WHERE x > 'm'"],
	[missing => 'SELECT late, later, latest, count(*), sum(later), sum(v) FROM aged GROUP BY late, later, latest'],
	[missing_filter => 'SELECT g, count(*), sum(late), sum(later) FROM aged WHERE later = 7 GROUP BY g'],
	[not_missing => 'SELECT g, count(*), sum(v) FROM aged GROUP BY g'],
	[holes => 'SELECT g, count(*), sum(v), min(id), max(id) FROM holes GROUP BY g'],
	[frozen => 'SELECT g, count(*), sum(v), min(id), max(id) FROM frozen GROUP BY g'],
	[redirected => 'SELECT g, count(*), sum(v), min(id), max(id) FROM redirected GROUP BY g'],
	[redirected_filter => 'SELECT g, count(*), sum(v), max(n) FROM redirected WHERE v % 3 > 0 GROUP BY g'],
	[redirected_join => 'SELECT r.g, count(*), sum(one.p) FROM t JOIN redirected r ON r.id = t.i4 LEFT JOIN one ON one.k = r.v GROUP BY r.g', set => 'SET gpuhash.enable_resident = off'],
	[redirected_inner => 'SELECT t.g, count(*), sum(r.v) FROM t JOIN redirected r ON r.id = t.i4 AND r.v % 3 > 0 GROUP BY t.g', set => 'SET gpuhash.enable_resident = off'],
	[subquery => 'SELECT g, count(*), sum(i4 + (SELECT max(p) FROM many)) FROM t WHERE i4 > (SELECT avg(p) FROM many) GROUP BY g'],
	[subquery_argument => 'SELECT sum(i4 * (SELECT 2)) FROM t'],
	[subquery_null => 'SELECT count(*), sum(i4) FROM t WHERE i4 > (SELECT p FROM many WHERE k < 0)'],
	[union => 'SELECT sum(i4) FROM t UNION ALL SELECT sum(v) FROM holes UNION ALL SELECT count(*) FROM frozen'],
	[lateral => 'SELECT v.x, s.* FROM (VALUES (1), (2), (NULL), (5)) v(x), LATERAL (SELECT g, count(*), sum(i4) FROM t WHERE g < v.x GROUP BY g OFFSET 0) s'],
	[correlated => 'SELECT m.k, (SELECT sum(i4) FROM t WHERE t.g = m.k) FROM many m WHERE m.k < 9 AND m.p < 300', set => 'SET gpuhash.enable_unnest = off'],
	[nested => 'SELECT a.p, s.* FROM many a, (SELECT g, count(*) AS c FROM t GROUP BY g OFFSET 0) s WHERE a.p < 8 AND s.c > a.p', set => 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off'],
	[limit => 'SELECT count(*) FROM (SELECT g, x, count(*) FROM t GROUP BY g, x LIMIT 3) s', by => 'any'],
	[error => 'SELECT sum(1 / i4) FROM t', by => 'any'],
	[overflow => 'SELECT sum(i4 * 3000000) FROM t', by => 'any'],

	[inner => 'SELECT count(*), sum(t.i4), sum(one.p), min(one.n), max(one.q) FROM t JOIN one ON one.k = t.i4'],
	[inner_groups => 'SELECT one.t, count(*), sum(t.i4), sum(one.p) FROM t JOIN one ON one.k = t.i4 GROUP BY one.t'],
	[left => 'SELECT one.p IS NULL, count(*), sum(t.i4), sum(one.p), count(one.k) FROM t LEFT JOIN one ON one.k = t.i4 GROUP BY 1'],
	[semi => 'SELECT g, count(*), sum(i4) FROM t WHERE EXISTS (SELECT FROM many WHERE many.k = t.i4) GROUP BY g', set => 'SET enable_hashagg = off; SET enable_sort = off'],
	[anti => 'SELECT g, count(*), sum(i4) FROM t WHERE NOT EXISTS (SELECT FROM many WHERE many.k = t.i4) GROUP BY g'],
	[star => 'SELECT one.t, count(*), sum(one.p), sum(wide_key.p) FROM t JOIN one ON one.k = t.i4 LEFT JOIN wide_key ON wide_key.k = t.i2 WHERE t.g > 1 GROUP BY one.t'],
	[snowflake => 'SELECT count(*), sum(one.p), sum(sub.p) FROM t JOIN one ON one.k = t.i4 JOIN sub ON sub.k = one.p', set => 'SET join_collapse_limit = 1'],
	[snowflake_left => 'SELECT g, count(*), sum(one.p), sum(sub.p) FROM t LEFT JOIN one ON one.k = t.i4 LEFT JOIN sub ON sub.k = one.p GROUP BY g', set => 'SET join_collapse_limit = 1'],
	[duplicates => 'SELECT count(*), sum(many.p) FROM t JOIN many ON many.k = t.i4'],
	[duplicates_left => 'SELECT g, count(*), sum(many.p) FROM t LEFT JOIN many ON many.k = t.i4 GROUP BY g'],
	[duplicates_groups => 'SELECT many.p, count(*), sum(t.i4), sum(many.p * 0.5::float8) FROM t JOIN many ON many.k = t.i4 WHERE t.g > 2 GROUP BY many.p'],
	[duplicates_filtered => 'SELECT g, count(*), sum(many.p) FROM t LEFT JOIN many ON many.k = t.i4 AND many.p > 400 WHERE t.b GROUP BY g'],
	[duplicates_twice => 'SELECT a.p % 7, count(*), sum(a.p), sum(b.p) FROM t JOIN many a ON a.k = t.i4 LEFT JOIN many b ON b.k = a.p GROUP BY 1', set => 'SET join_collapse_limit = 1'],
	[duplicates_and_semi => 'SELECT g, count(*), sum(many.p) FROM t JOIN many ON many.k = t.i4 WHERE EXISTS (SELECT FROM many m WHERE m.k = t.i2) GROUP BY g', by => 'any'],
	[duplicates_without_columns => 'SELECT count(*) FROM t JOIN many ON many.k = t.i4'],
	[duplicates_back => 'SELECT odd.g, count(*), sum(odd.m), sum(many.p) FROM odd JOIN many ON many.k = odd.k GROUP BY odd.g', by => 'any'],
	[duplicates_of_a_hub => 'SELECT t.g, count(*), sum(hub.p) FROM t JOIN hub ON hub.k = t.i4 GROUP BY t.g', by => 'any'],
	[filtered_inner => "SELECT one.t, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 AND one.p > 30 AND one.t <> 'name 3' WHERE t.b GROUP BY one.t"],
	[filtered_left => 'SELECT g, count(*), sum(one.p) FROM t LEFT JOIN one ON one.k = t.i4 AND one.p > 30 GROUP BY g'],
	[all_filtered_inner => 'SELECT g, count(*), sum(one.p) FROM t LEFT JOIN one ON one.k = t.i4 AND one.p > 100000 GROUP BY g'],
	[empty_inner => 'SELECT count(*), sum(e.i4) FROM t JOIN empty e ON e.i4 = t.i4', by => 'any'],
	[empty_inner_left => 'SELECT g, count(*), sum(e.i4) FROM t LEFT JOIN empty e ON e.i4 = t.i4 GROUP BY t.g', by => 'any'],
	[empty_inner_anti => 'SELECT g, count(*) FROM t WHERE NOT EXISTS (SELECT FROM empty e WHERE e.i4 = t.i4) GROUP BY g', by => 'any'],
	[empty_outer => 'SELECT count(*), sum(one.p) FROM empty e JOIN one ON one.k = e.i4', by => 'any'],
	[wide_keys => 'SELECT count(*), sum(wide_key.p), min(wide_key.k) FROM t JOIN wide_key ON wide_key.k = t.i4'],
	[int2_keys => 'SELECT count(*), sum(one.p) FROM t JOIN one ON one.k = t.i2'],
	[int8_keys => 'SELECT count(*), sum(one.p) FROM odd JOIN one ON one.k = odd.k'],
	[two_columns => 'SELECT pair.t, count(*), sum(pair.p) FROM t JOIN pair ON pair.k1 = t.g AND pair.k2 = t.i2 GROUP BY pair.t'],
	[two_columns_left => 'SELECT g, count(*), sum(pair.p) FROM t LEFT JOIN pair ON pair.k1 = t.g AND pair.k2 = t.i2 GROUP BY g'],
	[code_text => 'SELECT g, count(*), sum(code.p) FROM t JOIN code ON code.x = t.x GROUP BY g'],
	[code_bpchar => 'SELECT g, count(*), sum(code.p) FROM t LEFT JOIN code ON code.c = t.c AND code.p > t.i2 GROUP BY g'],
	[code_numeric => 'SELECT g, count(*), sum(code.p) FROM t JOIN code ON code.n = t.n GROUP BY g'],
	[code_semi => 'SELECT g, count(*), sum(i4) FROM t WHERE EXISTS (SELECT FROM code WHERE code.x = t.x) GROUP BY g', by => 'any'],
	[code_anti => 'SELECT g, count(*), sum(i4) FROM t WHERE NOT EXISTS (SELECT FROM code WHERE code.n = t.n AND code.p % 2 = 0) GROUP BY g'],
	[code_two_columns => 'SELECT g, count(*), sum(code.p) FROM t JOIN code ON code.x = t.x AND code.b = t.b GROUP BY g'],
	[code_chain => 'SELECT t.g, count(*), sum(a.p), sum(b.p), sum(one.p) FROM t JOIN code a ON a.n = t.n JOIN one ON one.k = t.i4 LEFT JOIN code b ON b.x = a.x AND b.p < a.p GROUP BY t.g', set => 'SET join_collapse_limit = 1'],
	[code_inside => 'SELECT t.g, count(*), sum(v.p), sum(v.q) FROM t JOIN (code a JOIN (SELECT c, p AS q FROM code) b USING (c)) v ON v.x = t.x AND v.q < 9 GROUP BY t.g', by => 'any'],
	[code_rows => 'SELECT t.g, count(*), sum(s.p) FROM t JOIN (SELECT x, sum(p) AS p FROM code GROUP BY x OFFSET 0) s ON s.x = t.x GROUP BY t.g'],
	[code_back => 'SELECT odd.g, count(*), sum(odd.i8), sum(c.p) FROM odd LEFT JOIN code_odd c ON c.x = odd.x GROUP BY odd.g'],
	[code_numeric_back => 'SELECT odd.g, count(*), sum(odd.i8), sum(c.p) FROM odd JOIN code_odd c ON c.m = odd.m GROUP BY odd.g'],
	[code_missing => 'SELECT one.t, count(*), sum(aged.v) FROM aged JOIN one ON one.t = aged.latest GROUP BY one.t'],
	[code_parts => 'SELECT p.g, count(*), sum(code.p) FROM parts p JOIN code ON code.x = p.x GROUP BY p.g'],
	[inner_back => 'SELECT inner_long.x, count(*) FROM t JOIN inner_long ON inner_long.k = t.i4 GROUP BY inner_long.x', by => 'cpu'],
	[outer_back => 'SELECT one.t, count(*), sum(odd.i8), sum(odd.m), sum(one.p) FROM odd JOIN one ON one.k = odd.k GROUP BY one.t', by => 'any'],
	[outer_back_left => "SELECT one.t, count(*), sum(odd.i8), sum(odd.m), sum(one.p) FROM odd LEFT JOIN one ON one.k = odd.k WHERE odd.x <> 'short 2' GROUP BY one.t", by => 'any'],
	[outer_missing => 'SELECT one.t, count(*), sum(aged.later) FROM aged JOIN one ON one.k = aged.v GROUP BY one.t', by => 'any'],
	[self_join => 'SELECT count(*), sum(a.v), sum(b.v) FROM holes a JOIN holes b ON b.id = a.v'],
	[self_join_filtered => 'SELECT a.g, count(*), sum(a.v), sum(b.v) FROM holes a JOIN holes b ON b.id = a.v AND b.g > 2 WHERE a.g < 8 GROUP BY a.g'],
	[join_subquery => 'SELECT count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 WHERE t.i4 > (SELECT avg(p) FROM many)', by => 'any'],
	[join_lateral => 'SELECT v.x, s.* FROM (VALUES (1), (2), (4)) v(x), LATERAL (SELECT one.t, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 WHERE t.g < v.x GROUP BY one.t OFFSET 0) s', by => 'any'],
	[join_lateral_inner => 'SELECT v.x, s.* FROM (VALUES (1), (200), (400)) v(x), LATERAL (SELECT t.g, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 AND one.p < v.x GROUP BY t.g OFFSET 0) s', by => 'any'],
	[join_lateral_back => 'SELECT v.x, s.* FROM (VALUES (1), (2), (4), (5)) v(x), LATERAL (SELECT odd.g, count(*), sum(odd.m), sum(one.p) FROM odd JOIN one ON one.k = odd.k WHERE odd.g < v.x GROUP BY odd.g OFFSET 0) s', by => 'any'],
	[join_lateral_back_semi => 'SELECT v.x, s.* FROM (VALUES (1), (2), (4), (5)) v(x), LATERAL (SELECT odd.g, count(*), sum(odd.m) FROM odd WHERE EXISTS (SELECT FROM one WHERE one.k = odd.k AND one.p > 90) AND odd.g < v.x GROUP BY odd.g OFFSET 0) s', by => 'any'],
	[join_lateral_back_anti => 'SELECT v.x, s.* FROM (VALUES (1), (2), (4), (5)) v(x), LATERAL (SELECT odd.g, count(*), sum(odd.m) FROM odd WHERE NOT EXISTS (SELECT FROM one WHERE one.k = odd.k AND one.p > 90) AND odd.g < v.x GROUP BY odd.g OFFSET 0) s', by => 'any'],
	[join_spilled => 'SELECT t.id, one.t, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 GROUP BY t.id, one.t', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],

	# inner sides that are rows of a plan
	[rows_groups => 'SELECT t.g, count(*), sum(s.c), min(s.p) FROM t JOIN (SELECT k, count(*) AS c, min(p) AS p FROM many GROUP BY k HAVING count(*) > 0) s ON s.k = t.i4 GROUP BY t.g'],
	[rows_texts => 'SELECT s.t, s.n, count(*), sum(t.i4) FROM t JOIN (SELECT k, max(t || repeat(chr(65 + k % 20), k % 300)) AS t, max(n) AS n FROM one GROUP BY k OFFSET 0) s ON s.k = t.i4 GROUP BY s.t, s.n', by => 'any'],
	[rows_keys => 'SELECT t.g, count(*), sum(s.p) FROM t JOIN (SELECT DISTINCT k1, k2 + 0 AS k2, p FROM pair OFFSET 0) s ON s.k1 = t.g AND s.k2 = t.i2 GROUP BY t.g'],
	[rows_left => 'SELECT t.g, count(*), sum(s.p), count(s.k) FROM t LEFT JOIN (SELECT k, p FROM many ORDER BY p LIMIT 300) s ON s.k = t.i4 GROUP BY t.g'],
	[rows_semi => 'SELECT g, count(*), sum(i4) FROM t WHERE i4 IN (SELECT k FROM many GROUP BY k HAVING count(*) > 1) GROUP BY g', by => 'any'],
	[rows_anti => 'SELECT g, count(*), sum(i4) FROM t WHERE NOT EXISTS (SELECT FROM (SELECT k FROM many ORDER BY p LIMIT 100) s WHERE s.k = t.i4) GROUP BY g'],
	[rows_pair => 'SELECT t.g, count(*), sum(s.c) FROM t JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = t.i4 AND s.c > t.g % 3 GROUP BY t.g'],
	[rows_among_others => 'SELECT one.t, count(*), sum(s.c), sum(wide_key.p) FROM t JOIN one ON one.k = t.i4 JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = t.i4 LEFT JOIN wide_key ON wide_key.k = t.i2 GROUP BY one.t'],
	[rows_within => 'SELECT t.g, count(*), sum(v.p), sum(v.c) FROM t JOIN (one JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = one.p) v ON v.k = t.i4 GROUP BY t.g', by => 'any'],
	[rows_twice => 'SELECT t.g, count(*), sum(a.c), sum(b.c) FROM t JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) a ON a.k = t.i4 JOIN (SELECT k, max(p) AS c FROM many GROUP BY k OFFSET 0) b ON b.k = t.i2 GROUP BY t.g'],
	[rows_error => 'SELECT t.g, count(*), sum(s.c) FROM t JOIN (SELECT k, 1 / (p - p) AS c FROM many OFFSET 0) s ON s.k = t.i4 GROUP BY t.g', by => 'any'],
	[rows_outer_back => 'SELECT odd.g, count(*), sum(odd.m), sum(s.c) FROM odd JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = odd.k GROUP BY odd.g', by => 'any'],
	[rows_long => 'SELECT s.x, count(*) FROM t JOIN (SELECT k, x FROM inner_long OFFSET 0) s ON s.k = t.i4 GROUP BY s.x', by => 'any'],
	[rows_little_memory => 'SELECT t.g, count(*), sum(h.v) FROM t JOIN (SELECT id, v FROM holes OFFSET 0) h ON h.id = t.i4 GROUP BY t.g', set => q{SET work_mem = '64kB'; SET hash_mem_multiplier = 1}, by => 'any'],
	[rows_lateral => 'SELECT v.x, s.* FROM (VALUES (1), (200), (400)) v(x), LATERAL (SELECT t.g, count(*), sum(s.c) FROM t JOIN (SELECT k, count(*) AS c FROM many WHERE p < v.x GROUP BY k OFFSET 0) s ON s.k = t.i4 GROUP BY t.g OFFSET 0) s', by => 'any'],
	[rows_lateral_outer => 'SELECT v.x, s.* FROM (VALUES (1), (2), (4)) v(x), LATERAL (SELECT t.g, count(*), sum(s.c) FROM t JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = t.i4 WHERE t.g < v.x GROUP BY t.g OFFSET 0) s', by => 'any'],

	# several tables that are read as one
	[parts => 'SELECT g, count(*), sum(i4), sum(n), max(i8), min(d) FROM parts GROUP BY g', plan => qr/Scan parts \(rows=30000\).*->  Append/s],
	[parts_filter => 'SELECT count(*), sum(f), avg(n) FROM parts WHERE id < 4005 AND b', plan => qr/Scan parts.*->  Append/s],
	[parts_back => 'SELECT g, sum(i8), sum(m), count(x) FROM odd_parts GROUP BY g', plan => qr/->  Append/],
	[parts_distinct => 'SELECT x, count(DISTINCT id), sum(n) FROM parts GROUP BY x', plan => qr/->  Append/],
	[parts_union => 'SELECT g, count(*), sum(n) FROM (SELECT g, n FROM t UNION ALL SELECT g, n FROM parts) u GROUP BY g', plan => qr/Scan u \(rows=60000\)/],
	[parts_join => 'SELECT one.t, count(*), sum(p.i4), sum(one.p) FROM parts p JOIN one ON one.k = p.i4 GROUP BY one.t', plan => qr/Scan p \(rows=30000\).*GpuHashJoin.*->  Append/s],
	[parts_left => 'SELECT p.g, count(*), count(one.p) FROM parts p LEFT JOIN one ON one.k = p.i4 AND one.p > p.i2 WHERE p.id > 100 GROUP BY p.g'],
	[parts_right => 'SELECT one.t, count(*), sum(p.i4) FROM parts p RIGHT JOIN one ON one.k = p.i4 GROUP BY one.t', by => 'any'],
	[parts_star => 'SELECT p.g, count(*), sum(one.p), sum(wide_key.p) FROM parts p JOIN one ON one.k = p.i4 LEFT JOIN wide_key ON wide_key.k = p.i2 GROUP BY p.g'],
	[parts_join_back => 'SELECT one.t, count(*), sum(o.i8), sum(o.m), sum(one.p) FROM odd_parts o JOIN one ON one.k = o.k GROUP BY one.t', by => 'any'],
	[parts_inner => 'SELECT t.g, count(*), sum(s.n) FROM t JOIN parts s ON s.id = t.i4 GROUP BY t.g', by => 'any'],
	[parts_lateral => 'SELECT v.x, s.* FROM (VALUES (1), (2), (NULL), (5)) v(x), LATERAL (SELECT g, count(*), sum(i4) FROM parts WHERE g < v.x GROUP BY g OFFSET 0) s'],
	[parts_join_lateral => 'SELECT v.x, s.* FROM (VALUES (1), (2), (4)) v(x), LATERAL (SELECT one.t, count(*), sum(one.p) FROM parts p JOIN one ON one.k = p.i4 WHERE p.g < v.x GROUP BY one.t OFFSET 0) s', by => 'any'],
	[parts_subquery => 'SELECT count(*), sum(one.p) FROM parts p JOIN one ON one.k = p.i4 WHERE one.p > (SELECT avg(p) FROM many)', by => 'any'],
	[parts_parallel => 'SELECT g, count(*), sum(i4), sum(n) FROM parts GROUP BY g', set => 'SET max_parallel_workers_per_gather = 3', plan => qr/Parallel Custom Scan.*Append.*Parallel Seq Scan on (?:public\.)?parts_0/s, by => 'leader'],
	[parts_parallel_join => 'SELECT p.g, count(*), sum(one.p) FROM parts p JOIN one ON one.k = p.i4 GROUP BY p.g', set => 'SET max_parallel_workers_per_gather = 2', by => 'any'],
	[parts_parallel_join_back => 'SELECT o.g, count(*), sum(o.m), sum(one.p) FROM odd_parts o JOIN one ON one.k = o.k GROUP BY o.g', set => 'SET max_parallel_workers_per_gather = 2', by => 'any'],

	[parallel => 'SELECT g, count(*), sum(i4), sum(n) FROM t GROUP BY g', set => 'SET max_parallel_workers_per_gather = 3', plan => qr/Parallel Custom Scan/, by => 'leader'],
	[parallel_workers_only => 'SELECT g, x, count(*), sum(i4) FROM t WHERE i4 > 0 GROUP BY g, x', set => 'SET max_parallel_workers_per_gather = 3; SET parallel_leader_participation = off', plan => qr/Parallel Custom Scan/, by => 'workers'],
	[parallel_spilled => 'SELECT id, x, count(*), sum(i8) FROM t WHERE id % 7 + 0 = id % 7 GROUP BY id, x', set => "SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'; SET hash_mem_multiplier = 1", plan => qr/Parallel Custom Scan/],
	[parallel_back => 'SELECT g, sum(i8), sum(m), count(x) FROM odd GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', by => 'leader'],
	[parallel_join => 'SELECT g, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_join_left => 'SELECT g, count(*), sum(one.p), count(one.k) FROM t LEFT JOIN one ON one.k = t.i4 AND one.p > 30 WHERE t.i2 < 50 GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_star => 'SELECT g, count(*), sum(one.p), sum(wide_key.p) FROM t JOIN one ON one.k = t.i4 LEFT JOIN wide_key ON wide_key.k = t.i2 GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_code => 'SELECT g, count(*), sum(code.p) FROM t JOIN code ON code.x = t.x GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_code_left => 'SELECT g, count(*), sum(code.p) FROM t LEFT JOIN code ON code.n = t.n AND code.p <> t.i2 GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_semi => 'SELECT g, count(*), sum(i4) FROM t WHERE EXISTS (SELECT FROM many WHERE many.k = t.i4) GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2; SET enable_hashagg = off; SET enable_sort = off', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_anti => 'SELECT g, count(*), sum(i4) FROM t WHERE NOT EXISTS (SELECT FROM many WHERE many.k = t.i4) GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_outer_back => 'SELECT odd.g, count(*), sum(odd.i8), sum(odd.m), sum(one.p) FROM odd JOIN one ON one.k = odd.k GROUP BY odd.g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'any'],
	[parallel_inner_back => "SELECT t.g, count(inner_long.x), max(inner_long.k) FROM t JOIN inner_long ON inner_long.k = t.i4 AND inner_long.x <> 'sort' GROUP BY t.g", set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'any'],
	[parallel_duplicates => 'SELECT t.g, count(*), sum(many.p) FROM t JOIN many ON many.k = t.i4 GROUP BY t.g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_join_empty => 'SELECT g, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 AND one.p > 100000 GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_join_workers => 'SELECT g, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 GROUP BY g', set => 'SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off', plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_join_many_groups => 'SELECT id, x, count(*), sum(one.p) FROM t LEFT JOIN one ON one.k = t.i4 WHERE id % 7 + 0 = id % 7 GROUP BY id, x', set => q{SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'}, by => 'service'],
	# what a device holds is not bounded by work_mem: holes has tens of thousands of rows
	[parallel_join_little_memory => 'SELECT t.g, count(*), sum(h.v) FROM t JOIN holes h ON h.id = t.i4 GROUP BY t.g', set => q{SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'; SET hash_mem_multiplier = 1}, plan => qr/Parallel Custom Scan .GpuHashJoin/, by => 'service'],
	[parallel_join_little_memory_back => 'SELECT odd.g, count(*), sum(odd.i8), sum(odd.m), sum(h.v) FROM odd JOIN holes h ON h.id = odd.k GROUP BY odd.g', set => q{SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'; SET hash_mem_multiplier = 1}, by => 'any'],
	[parallel_join_lateral => 'SELECT v.x, s.* FROM (VALUES (1), (2), (4)) v(x), LATERAL (SELECT t.g, count(*), sum(one.p) FROM t JOIN one ON one.k = t.i4 WHERE t.g < v.x GROUP BY t.g OFFSET 0) s', set => 'SET max_parallel_workers_per_gather = 2', by => 'any'],
	[parallel_rescan => 'SELECT a.k, s.* FROM (SELECT k FROM many WHERE p < 4 OFFSET 0) a LEFT JOIN (SELECT t.g, count(*) AS c, sum(one.p) FROM t JOIN one ON one.k = t.i4 GROUP BY t.g OFFSET 0) s ON s.c > a.k', set => 'SET max_parallel_workers_per_gather = 2; SET enable_material = off', by => 'any'],
	[forced_parallel => 'SELECT g, count(*), sum(i4), sum(n) FROM t GROUP BY g', set => 'SET %PARALLEL% = on', by => 'workers'],
	[temporary => 'SELECT g, count(*), sum(i4), sum(n) FROM temporary GROUP BY g'],
	[temporary_join => 'SELECT g, count(*), sum(p.k) FROM temporary JOIN temporary_inner p ON p.k = i4 GROUP BY g'],
);

# Nodes of a plan in order: name, actual rows, rows removed by its filter.
sub nodes
{
	my ($plan) = @_;
	my @nodes;
	for (split /\n/, $plan)
	{
		# whole rows: from 18 on there are decimals, and a row that is looked at ahead in one loop is none of the next
		push @nodes, "$1 " . int($2 // 0) if /^ *(?:-> +)?(\S.*?) \((?:actual rows=(\S+) loops=\d+|never executed)\)/;
		$nodes[-1] .= " without $1" if /Rows Removed by Filter: (\d+)/ && @nodes;
	}
	return join "\n", @nodes;
}

# The engines that the plan's aggregates show.
sub engines
{
	my ($plan) = @_;
	return join ' ', map { /GpuHashAggregate.*\bEngine: (\w+)/s ? $1 : () } split /^ *-> +/m, $plan;
}

sub sorted { return join "\n", sort split /\n/, $_[0] }

sub check_queries
{
	my ($server, $with, $workers_have_device) = @_;
	my $session = $server->session;
	my $parallel = $server->query('SELECT current_setting(\'server_version_num\')::int >= 160000') eq 't' ? 'debug_parallel_query' : 'force_parallel_mode';
	$session->do("CREATE TEMP TABLE temporary AS SELECT * FROM t; CREATE TEMP TABLE temporary_inner AS SELECT i AS k FROM generate_series(1, 500) i; ANALYZE temporary, temporary_inner");
	for (@QUERIES)
	{
		my ($name, $sql, %options) = @$_;
		next if $ENV{GPUHASH_ONLY} && $name !~ /^(?:$ENV{GPUHASH_ONLY})$/;
		(my $set = $options{set} // 'SELECT') =~ s/%PARALLEL%/$parallel/;
		my $by = $options{by} // 'cuda';
		$by = $workers_have_device ? 'cuda' : 'any' if $by eq 'workers';
		$by = $workers_have_device ? 'cuda' : 'cpu' if $by eq 'service';
		$by = $workers_have_device ? 'cuda' : 'any' if $by eq 'leader';
		my (%answer, %plan);
		for my $engine (qw(off cpu cuda))
		{
			$session->do("RESET ALL; SET client_min_messages = warning; SET gpuhash.engine = " . ($engine eq 'off' ? "cpu; SET gpuhash.enabled = off" : "$engine; SET gpuhash.force_offload = on") . "; $set");
			my ($out, $err) = $session->do($sql);
			$answer{$engine} = sorted($out) . $err;
			($plan{$engine}) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, VERBOSE) $sql") if $engine ne 'off';
		}
		is($answer{cuda}, $answer{off}, "$with: $name");
		diag("-- $answer{cpu}") if $answer{cpu} ne $answer{off};
		like($plan{cuda}, $options{plan} // qr/GpuHashAggregate/, "$with: $name is offloaded") if $answer{off} !~ /ERROR/ && ($by ne 'any' || $options{plan});
		my $is_by = engines($plan{cuda}) . ($plan{cuda} =~ /Fallback Reason/ ? ' cpu' : '');
		like($is_by, qr/^$by(?: $by)*$/, "$with: $name is done by $by") or diag($plan{cuda}) if $by ne 'any';
		if ($name =~ /^(?!parallel).*spilled/ && $plan{cuda} =~ /Memory Usage: (\d+) kB.*Disk Usage/s) { cmp_ok($1, '<', 800, "$with: groups of $name stay within memory") }
		is(nodes($plan{cuda}), nodes($plan{cpu}), "$with: nodes of $name return as many rows") if $set !~ /parallel/ && $answer{off} !~ /ERROR/ && $name !~ /^first_there/;
	}
	$session->do('RESET ALL; DROP TABLE temporary, temporary_inner');
	$session->close;
	return;
}

# Inner sides that are rows of a plan, and that the executor would not read, or that have none.
sub check_unread_rows
{
	my ($server, $with) = @_;
	my $session = $server->session;
	my %sql = (
		'no rows' => 'SELECT t.g, count(*), sum(s.c) FROM t JOIN (SELECT k, count(*) AS c FROM many GROUP BY k HAVING count(*) > 1000) s ON s.k = t.i4 GROUP BY t.g',
		'no outer row, and some handed back' => "SELECT odd.g, count(*), sum(s.c) FROM odd LEFT JOIN (SELECT k, max(1 / (p - p)) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = odd.k WHERE odd.x = 'none' GROUP BY odd.g",
		'no outer row' => 'SELECT t.g, count(*), sum(s.c) FROM t JOIN (SELECT k, 1 / (p - p) AS c FROM many OFFSET 0) s ON s.k = t.i4 WHERE t.i4 > 100000 GROUP BY t.g',
	);
	$session->do('SET gpuhash.force_offload = on');
	for my $name (sort keys %sql)
	{
		my ($out, $err) = $session->do($sql{$name});
		is($out . $err, '', "$with: rows of an inner side with $name");
		my ($plan) = $session->do("EXPLAIN (COSTS OFF) $sql{$name}");
		like($plan, qr/GpuHashAggregate.*GpuHashJoin.*Seq Scan on (?:t|odd)\b.*(?:Subquery Scan|Seq Scan on many)/s, "$with: $name is planned so");
	}
	$session->close;
	return;
}

# What one query does not show.
sub check_sessions
{
	my ($server, $with) = @_;
	my $session = $server->session;
	my $other = $server->session;
	my $on = 'SET gpuhash.enabled = on; SET gpuhash.force_offload = on';
	my $off = 'SET gpuhash.enabled = off';
	my $both = sub {
		my ($sql, $name) = @_;
		my ($want, $want_err) = $session->do("$off; $sql");
		my ($got, $err) = $session->do("$on; $sql");
		is(sorted($got) . $err, sorted($want) . $want_err, "$with: $name");
		my ($plan) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");
		ok($plan =~ /Engine: cuda/ && $plan !~ /Fallback Reason/, "$with: $name, by the device") or diag($plan);
	};
	my $sql = 'SELECT g, count(*), sum(v), max(id) FROM holes GROUP BY g';
	$session->do('BEGIN; INSERT INTO holes SELECT i, i % 9, i FROM generate_series(50001, 50500) i; UPDATE holes SET v = v + 5 WHERE id < 500; SAVEPOINT a; DELETE FROM holes WHERE id > 1000; ROLLBACK TO a');
	$both->($sql, 'rows of the transaction itself');
	$other->do("$on");
	my ($theirs) = $other->do($sql);
	$session->do('ROLLBACK');
	is(sorted($theirs), sorted(($session->do("$off; $sql"))[0]), "$with: rows of a transaction in progress");
	$both->($sql, 'after a rollback');

	for my $mode (qw(force_generic_plan force_custom_plan))
	{
		$session->do("SET plan_cache_mode = $mode; PREPARE p(int, text) AS SELECT g, count(*), sum(i4 + \$1) FROM t WHERE i4 > \$1 AND x <> \$2 GROUP BY g");
		for my $arguments ("(5, 'x1')", "(-700, '')", "(NULL, 'x1')", "(2000, 'a')")
		{
			my ($want) = $session->do("$off; DEALLOCATE ALL; PREPARE p(int, text) AS SELECT g, count(*), sum(i4 + \$1) FROM t WHERE i4 > \$1 AND x <> \$2 GROUP BY g; EXECUTE p$arguments");
			my ($got) = $session->do("$on; DEALLOCATE ALL; PREPARE p(int, text) AS SELECT g, count(*), sum(i4 + \$1) FROM t WHERE i4 > \$1 AND x <> \$2 GROUP BY g; EXECUTE p(1, 'x2'); EXECUTE p$arguments");
			my $last = join "\n", (split /\n/, $got)[-(() = $want =~ /^./mg) .. -1];
			is(sorted($last), sorted($want), "$with: prepared, $mode $arguments") if $want ne '';
		}
	}
	$session->do('RESET plan_cache_mode');

	# a cursor: nothing is held when rows come out
	my ($want) = $session->do("$off; SELECT x, count(*) FROM t GROUP BY x ORDER BY 1");
	my ($got) = $session->do("$on; BEGIN; DECLARE c CURSOR FOR SELECT x, count(*) FROM t GROUP BY x ORDER BY 1; FETCH 3 FROM c");
	my ($explained, $vacuum_err) = $other->do("SET statement_timeout = '20s'; VACUUM (FREEZE) t; RESET statement_timeout");
	is($vacuum_err, '', "$with: a VACUUM beside a cursor");
	my ($rest) = $session->do('FETCH ALL FROM c');
	is("$got\n$rest", $want, "$with: a cursor");
	$session->do('COMMIT');
	($got) = $session->do("$on; BEGIN; DECLARE c SCROLL CURSOR FOR SELECT g, count(*) FROM holes GROUP BY g; MOVE ALL FROM c; MOVE BACKWARD ALL FROM c; FETCH ALL FROM c; COMMIT");
	is(sorted($got), sorted(($session->do("$off; SELECT g, count(*) FROM holes GROUP BY g"))[0]), "$with: a cursor that goes backward");
	# a subquery that is run for each row goes to the engine that costs less
	my %costs = (cuda => 'SET gpuhash.device_page_cost = 0; SET gpuhash.device_bus_cost = 0', cpu => 'SET gpuhash.device_start_cost = 500; SET gpuhash.device_page_cost = 0.25; SET gpuhash.device_bus_cost = 0.07; SET seq_page_cost = 1');
	for my $from ('many a WHERE a.p', 'frozen a WHERE a.v', 'many a JOIN wide_key w ON w.k = a.k WHERE a.p', 'frozen a JOIN one ON one.k = a.v WHERE a.v')
	{
		for my $engine (sort keys %costs)
		{
			$session->do($costs{$engine});
			for my $list ('count(*)', 'string_agg(a::text, \'\')')
			{
				# an aggregate, and, where it is none of the device's, the scan below
				next if $list ne 'count(*)' && $from =~ /JOIN/;
				my $query = "SELECT v.x, (SELECT $list FROM $from % 3 < v.x) FROM (VALUES (1), (2), (3)) v(x)";
				is(($session->do("$on; $query"))[0], ($session->do("$off; $query"))[0], "$with: subqueries over $from, $list, $engine");
				my ($plan) = $session->do("$on; SET gpuhash.explain_why = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query; RESET gpuhash.explain_why");
				like($plan, $engine eq 'cuda' ? qr/(?:GpuHashAggregate|GpuHashScan).*Engine: cuda/s :
					qr/(?:GpuHashAggregate|GpuHashScan).*Engine: \w+.*Engine Reason: the CPU engine is expected to do this again for less/s, "$with: by the engine $engine") or diag($plan);
				unlike($plan, qr/for less/, "$with: each time") if $engine eq 'cuda';
			}
			$session->do('RESET gpuhash.device_start_cost; RESET gpuhash.device_page_cost; RESET gpuhash.device_bus_cost; RESET seq_page_cost');
		}
	}
	$session->close;
	$other->close;
	return;
}

# Whether pages stay where they are: most do, if the device reads them there.
sub check_supply
{
	my ($server, $with) = @_;
	my $session = $server->session;
	$session->do('SET gpuhash.force_offload = on');
	my $direct = $server->query("SELECT buffers FROM gpuhash_devices WHERE engine = 'cuda'") eq 'direct' ? 'pinned' : 'copied';
	note("pages are $direct");
	# more than a quarter of shared_buffers is read through few of these, but it is in them already
	$session->do('CREATE TABLE large (id int, g int, x text); ALTER TABLE large ALTER x SET STORAGE PLAIN; INSERT INTO large SELECT i, i % 9, repeat(\'large \', 650) FROM generate_series(1, 17000) i; CREATE TEMP TABLE temporary AS SELECT * FROM t');
	for (['t', $direct], ['large', $direct], ['temporary', 'copied'])
	{
		my ($table, $supply) = @$_;
		my ($plan) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT g, count(*), sum(id) FROM $table GROUP BY g");
		like($plan, qr/Engine: cuda.*Page Supply: $supply/s, "$with: pages of $table are $supply") or diag($plan);
	}
	my ($plan) = $session->do('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*), sum(one.p) FROM temporary JOIN one ON one.k = temporary.id');
	my $both = $direct eq 'pinned' ? 'both' : 'copied';
	like($plan, qr/Engine: cuda.*Page Supply: $both/s, "$with: pages of a join are $both") or diag($plan);
	my ($got) = $session->do('SELECT g, count(*), sum(id) FROM large GROUP BY g ORDER BY g');
	my ($want) = $session->do('SET gpuhash.enabled = off; SELECT g, count(*), sum(id) FROM large GROUP BY g ORDER BY g');
	is($got, $want, "$with: and the answer is right");
	$session->close;
	return;
}

sub check
{
	my ($server, $with, $workers_have_device) = @_;
	check_queries($server, $with, $workers_have_device);
	check_sessions($server, $with) if !$ENV{GPUHASH_ONLY};
	check_unread_rows($server, $with) if !$ENV{GPUHASH_ONLY};
	check_supply($server, $with) if !$ENV{GPUHASH_ONLY};
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, "$with: a clean log");
	return;
}

if (($ENV{GPUHASH_WITH} // '') ne 'service')
{
	my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", @CONF]);
	$server->query("CREATE EXTENSION gpuhash; $TABLES");
	check($server, 'alone', 0);
	$server->stop;
}
undef $stand_in;
if (($ENV{GPUHASH_WITH} // '') ne 'alone')
{
	my $service = GpuHash::Service->new(conf => [@CONF, 'gpuhash.shared_memory = 64MB']);
	ok($service->wait_ready, 'the service is ready');
	$service->server->query($TABLES);
	check($service->server, 'service', 1);
	like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
}

# A scan is where the tables are that it joins with, whichever of several devices has most memory left.  The machine
# of the device itself may have just one.
if (($ENV{GPUHASH_WITH} // '') ne 'alone' && ($ENV{GPUHASH_STAND_IN} || '') ne 'no')
{
	my $service = GpuHash::Service->new(devices => 2, conf => [@CONF, "gpuhash.device_memory_limit = '300MB'"]);
	ok($service->wait_ready, 'two devices are ready');
	my $session = $service->server->session;
	$session->do('CREATE TABLE facts AS SELECT i AS id, i % 3000 AS k, i % 9 AS g FROM generate_series(1, 30000) i; CREATE TABLE a AS SELECT i AS k, i AS p FROM generate_series(1, 3000) i; CREATE TABLE b AS SELECT * FROM a; ANALYZE; SET join_collapse_limit = 1; SET gpuhash.force_offload = on');
	my $sql = 'SELECT g, count(*), sum(a.p), sum(b.p) FROM facts JOIN a ON a.k = facts.k JOIN b ON b.k = facts.k GROUP BY g';
	my ($want) = $session->do("SET gpuhash.enabled = off; $sql");
	$session->do('SET gpuhash.enabled = on');
	for my $workers (0, 2)
	{
		$session->do("SET max_parallel_workers_per_gather = $workers");
		my ($got, $err) = $session->do($sql);
		is(sorted($got) . $err, sorted($want), "two devices, $workers workers");
		my ($plan) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");
		ok(engines($plan) eq 'cuda' && $plan !~ /Fallback Reason/, 'by a device') or diag($plan);
	}
	$session->close;
	like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
}
done_testing();
