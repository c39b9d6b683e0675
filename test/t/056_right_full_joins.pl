# Joins by the device below other nodes of ours: right and full ones, whose inner rows without a match come out when
# all pages are read, and those with conditions beside their keys, on what is a match or on the rows that they have
# joined.  Answers, and what EXPLAIN ANALYZE counts of the nodes below, are PostgreSQL's, with the service and without;
# so they are where the device fails, at every request in turn and at every fault point of the service.
#
#	GPUHASH_ONLY	a pattern: only queries whose whole name it matches
#	GPUHASH_WITH	any of alone, service, faults: only these parts
use GpuHash::Test 'module';
use GpuHash::FaultRun;
use GpuHash::Service;

my $fault = GpuHash::Fault->needed;

my @CONF = @GpuHash::FaultRun::CONF;

my $PARALLEL = 'SET max_parallel_workers_per_gather = 2';
# joins in the order in which they are written
my $WRITTEN = 'SET join_collapse_limit = 1';
# before 16, right and full joins are not parallel
my ($major) = `'@{[ GpuHash::Server::bindir() ]}/postgres' --version` =~ / (\d+)/;

# Pages of few rows, so that there are several requests.
my $TABLES = <<'SQL';
CREATE TABLE f (id int, k int, k2 int2, k8 int8, g int, v int8, n numeric(12, 2), r float8, x text) WITH (fillfactor = 20);
INSERT INTO f SELECT i, CASE WHEN i % 17 > 0 THEN i * 7919 % 2000 - 500 END, i % 30, i * 7919 % 1500, i % 7, i::int8 * 3, (i % 997) / 100.0 - 3, i % 8000 / 8.0, CASE WHEN i % 11 > 0 THEN 'x' || i % 50 END FROM generate_series(1, 9000) i;
-- a key is that of one row, of several, of some with NULL
CREATE TABLE dim (k int PRIMARY KEY, p int, x text, n numeric(12, 2), b bool);
INSERT INTO dim SELECT i, CASE WHEN i % 6 > 0 THEN i * 3 END, CASE WHEN i % 5 > 0 THEN 'name ' || i % 20 END, i / 4.0, i % 3 = 0 FROM generate_series(1, 3000) i;
CREATE TABLE many (k int, p int, x text);
INSERT INTO many SELECT i % 400 + 1200, i, 'many ' || i % 9 FROM generate_series(1, 1200) i;
CREATE TABLE nullable (k int, p int);
INSERT INTO nullable SELECT CASE WHEN i % 50 > 0 THEN i END, i FROM generate_series(1, 1000) i;
-- more rows than one request asks for
CREATE TABLE wide AS SELECT i AS k, i % 1000 AS p FROM generate_series(1, 300000) i;
ALTER TABLE wide ADD PRIMARY KEY (k);
CREATE TABLE pair (k1 int, k2 int2, p int);
INSERT INTO pair SELECT i / 30, i % 30, i FROM generate_series(0, 700) i;
CREATE TABLE wide_key (k int8, p int);
INSERT INTO wide_key SELECT i, i FROM generate_series(-300, 300) i;
INSERT INTO wide_key VALUES (4294967297, -1), (-4294967297, -2);
CREATE TABLE empty (LIKE f);
CREATE TABLE empty_dim (LIKE dim INCLUDING ALL);
-- what the device hands back: values out of line, that are no numbers, that overflow
CREATE TABLE long (id int, k int, x text, n numeric(30, 5), w int8) WITH (fillfactor = 20);
INSERT INTO long SELECT i, i % 300, CASE WHEN i % 500 = 7 THEN repeat('long ' || i % 3, 2000) ELSE 'x' || i % 50 END, CASE WHEN i % 900 = 5 THEN 'NaN' ELSE i / 7.0 END, CASE WHEN i = 900 THEN 9223372036854775807 ELSE i END FROM generate_series(1, 3000) i;
CREATE TABLE long_dim (k int PRIMARY KEY, x text, m numeric(30, 5), w int8);
INSERT INTO long_dim SELECT i, CASE WHEN i = 450 THEN repeat('long ', 2000) ELSE 'short ' || i % 5 END, CASE WHEN i = 451 THEN 9999999999999999999999999.99999 ELSE i / 3.0 END, CASE WHEN i = 452 THEN 9223372036854775807 ELSE i END FROM generate_series(1, 500) i;
-- each is too large for a sum of the device's, and they are more than a request has room for in its list
CREATE TABLE huge AS SELECT i AS k, 9999999999999999999999999.99999::numeric(30, 5) AS m FROM generate_series(400001, 460000) i;
ALTER TABLE huge ADD PRIMARY KEY (k);
CREATE TABLE moments (k int, ts timestamp, p int, PRIMARY KEY (k, ts));
INSERT INTO moments SELECT i % 60, timestamp '2024-01-01' + i / 60 * interval '1 day', i FROM generate_series(0, 899) i;
CREATE TABLE days AS SELECT i AS id, i % 7 AS g, i % 70 AS k, date '2024-01-01' + i % 20 AS d FROM generate_series(1, 9000) i;
-- rows of several ages, some dead
UPDATE f SET v = v + 1 WHERE id % 40 = 0;
DELETE FROM f WHERE id % 41 = 0;
DELETE FROM dim WHERE k % 43 = 0;
ALTER TABLE many ALTER k SET (n_distinct = -1);
ALTER TABLE nullable ALTER k SET (n_distinct = -1);
ANALYZE;
SQL

# Queries: name, SQL, then options:
#	by		engine that does it to its end: cuda if not given; workers: cuda where workers may use it, and from 16 on; all:
#			likewise, in all versions; any: it does not matter
#	set		SQL that is run before
#	join	type of the last join: Right if not given
#	back	rows are handed back
#	why		what EXPLAIN tells where it is not done by the device
#	nodes	0: an inner side without rows may or may not keep the host from reading the outer one
my @AGGREGATES = (
	[right => 'SELECT f.g, count(*), count(f.id), sum(f.v), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k GROUP BY f.g'],
	[right_written => 'SELECT f.g, count(*), sum(f.v), sum(dim.p) FROM f RIGHT JOIN dim ON f.k = dim.k GROUP BY f.g'],
	[full => 'SELECT f.g, count(*), count(dim.k), sum(f.v), sum(dim.p) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY f.g', join => 'Full'],
	[right_count => 'SELECT count(*) FROM dim LEFT JOIN f ON f.k = dim.k'],
	[full_count => 'SELECT count(*) FROM dim FULL JOIN f ON f.k = dim.k', join => 'Full'],
	[right_texts => 'SELECT dim.x, f.x, count(*), sum(f.n), avg(dim.n), max(f.r) FROM dim LEFT JOIN f ON f.k = dim.k GROUP BY dim.x, f.x'],
	[full_texts => "SELECT coalesce(dim.x, 'none'), count(*), min(f.n), avg(dim.n), bool_and(dim.b) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY 1", by => 'any', join => 'Full'],
	[full_using => 'SELECT k % 100, count(*), sum(f.v), sum(dim.p) FROM dim FULL JOIN f USING (k) GROUP BY 1', join => 'Full'],
	[by_column_of_both => 'SELECT dim.b, f.g, count(*), sum(f.v + dim.p), sum(coalesce(f.v, -1)) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY 1, 2', join => 'Full'],
	[floats => 'SELECT f.g, sum(f.r), avg(f.r), sum(dim.n) FROM dim LEFT JOIN f ON f.k = dim.k GROUP BY f.g'],
	[having => 'SELECT dim.x, count(f.id) FROM dim LEFT JOIN f ON f.k = dim.k GROUP BY dim.x HAVING count(*) > 350'],
	[aggregate_filter => 'SELECT f.g, count(*) FILTER (WHERE f.id IS NULL), sum(dim.p) FILTER (WHERE f.v > 300 OR dim.b) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY f.g', join => 'Full'],
	[filtered_inner => 'SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k WHERE dim.p > 300 AND dim.b GROUP BY f.g'],
	[filtered_outer => "SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k AND f.v > 3000 AND f.x <> 'x3' GROUP BY f.g"],
	[filtered_full => 'SELECT s.g, count(*), sum(d.p) FROM (SELECT * FROM dim WHERE p > 100) d FULL JOIN (SELECT * FROM f WHERE v > 3000) s ON s.k = d.k GROUP BY s.g', join => 'Full'],
	# a vector of the filter that is read behind the joins, too
	[shared_expression => 'SELECT s.v % 10, s.k + 5, count(*), sum(s.v % 10) FROM dim LEFT JOIN (SELECT * FROM f WHERE v % 10 > 3 AND k + 5 > 0 OFFSET 0) s ON s.k = dim.k GROUP BY 1, 2', by => 'any'],
	[shared_with_filter => 'SELECT f.v % 10, coalesce(f.k + 5, 0), count(*), sum(f.v % 10), count(coalesce(f.v % 10, 1)) FROM dim LEFT JOIN f ON f.k = dim.k AND (f.v % 10 > 3 OR f.v % 10 < 2) AND f.k + 5 <> 7 GROUP BY 1, 2'],
	[constants => 'SELECT coalesce(f.g, 99), 1, count(*), sum(1), sum(coalesce(f.v, 0) + 1) FROM dim LEFT JOIN f ON f.k = dim.k GROUP BY 1'],
	[above => 'SELECT f.g, count(*) FROM dim LEFT JOIN f ON f.k = dim.k WHERE coalesce(f.v, 5) < 2000 GROUP BY f.g'],
	[above_full => 'SELECT f.g, count(*) FROM dim FULL JOIN f ON f.k = dim.k WHERE f.v IS NULL OR dim.p IS NULL GROUP BY f.g', join => 'Full'],
	# conditions on what was joined
	[inner_condition => 'SELECT f.g, count(*), sum(f.v), sum(dim.p) FROM dim JOIN f ON f.k = dim.k AND f.v > dim.p GROUP BY f.g', join => 'Inner'],
	[inner_count => 'SELECT count(*) FROM dim JOIN f ON f.k = dim.k AND f.v > dim.p', join => 'Inner'],
	[inner_texts => 'SELECT f.x, count(*), sum(dim.n) FROM dim JOIN f ON f.k = dim.k WHERE f.x <> dim.x AND (dim.b OR f.n < dim.n) GROUP BY f.x', join => 'Inner'],
	[inner_above => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM f JOIN wide_key w ON w.k = f.k JOIN dim ON dim.k = f.k WHERE f.v + w.p > dim.p GROUP BY f.g', join => 'Inner'],
	[inner_below => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM (SELECT f.*, w.p FROM f JOIN wide_key w ON w.k = f.k WHERE f.v > w.p OFFSET 0) f LEFT JOIN dim ON dim.k = f.k JOIN wide_key w ON w.k = f.k GROUP BY f.g', by => 'any', join => 'Inner'],
	[left_condition => 'SELECT dim.b, count(*), sum(f.v), sum(dim.p) FROM f LEFT JOIN dim ON f.k = dim.k WHERE dim.p IS NULL OR dim.p > f.v GROUP BY dim.b', join => 'Left'],
	[many_condition => 'SELECT f.g, count(*), sum(f.v), sum(many.p) FROM many JOIN f ON f.k = many.k WHERE f.v % 7 <> many.p % 7 GROUP BY f.g', join => 'Inner'],
	[no_condition_holds => 'SELECT f.g, count(*) FROM dim JOIN f ON f.k = dim.k WHERE f.v + dim.p < -5 GROUP BY f.g', by => 'any', join => 'Inner'],
	# what makes a match a single one is a condition, and no key
	[single_by_condition => 'SELECT w.g, count(*), sum(m.p) FROM days w JOIN moments m ON w.k = m.k AND w.d = m.ts GROUP BY w.g', join => 'Inner'],
	[anti_above => 'SELECT f.g, count(*) FROM f LEFT JOIN dim ON f.k = dim.k WHERE dim.k IS NULL AND coalesce(dim.p, f.g) > 3 GROUP BY f.g', by => 'any'],
	# conditions that decide on what is a match
	[semi_condition => 'SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM dim WHERE dim.k = f.k AND dim.p < f.v) GROUP BY f.g', join => '(?:Inner|Semi)'],
	[anti_condition => 'SELECT f.g, count(*) FROM f WHERE NOT EXISTS (SELECT FROM dim WHERE dim.k = f.k AND dim.p < f.v) GROUP BY f.g', join => 'Anti'],
	[left_own_condition => 'SELECT dim.b, count(*) FROM f LEFT JOIN dim ON f.k = dim.k AND f.v > dim.p GROUP BY dim.b', join => 'Left'],
	[semi_many => 'SELECT f.g, count(*), sum(f.v) FROM f WHERE EXISTS (SELECT FROM many WHERE many.k = f.k AND many.p % 50 < f.g) GROUP BY f.g', join => 'Semi'],
	[anti_many => 'SELECT f.g, count(*), sum(f.v) FROM f WHERE NOT EXISTS (SELECT FROM many WHERE many.k = f.k AND many.p % 40 > f.g + 30) GROUP BY f.g', join => 'Anti'],
	[left_many => 'SELECT many.x, count(*), sum(f.v), sum(many.p) FROM f LEFT JOIN many ON f.k = many.k AND f.v % 7 < many.p % 7 AND f.g <> 3 GROUP BY many.x', join => 'Left'],
	[left_many_above => 'SELECT many.x, count(*), sum(f.v) FROM f LEFT JOIN many ON f.k = many.k AND f.v % 7 < many.p % 7 WHERE coalesce(many.p, f.v) % 5 <> f.g GROUP BY many.x', join => 'Left'],
	[semi_of_itself => 'SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM f o WHERE o.k8 = f.k8 AND o.g <> f.g) AND NOT EXISTS (SELECT FROM f o WHERE o.k8 = f.k8 AND o.g <> f.g AND o.v > f.v) GROUP BY f.g', by => 'any'],
	[below_semi_condition => 'SELECT s.g, count(*), sum(dim.p) FROM (SELECT * FROM f WHERE EXISTS (SELECT FROM many WHERE many.k = f.k AND many.p % 50 < f.g)) s JOIN dim ON s.k = dim.k AND s.v > dim.p GROUP BY s.g', by => 'any'],
	[below_left_condition => 'SELECT f.g, w.p % 4, count(*), sum(dim.p) FROM (f LEFT JOIN wide_key w ON w.k = f.k AND w.p <> f.g) FULL JOIN dim ON f.k = dim.k WHERE w.p IS NULL OR w.p > -200 GROUP BY 1, 2', join => 'Full'],
	[conditions_of_all => 'SELECT f.g, many.x, count(*), sum(w.p), sum(dim.p) FROM f JOIN many ON many.k = f.k AND many.p % 9 <> f.g LEFT JOIN dim ON dim.k = many.p AND dim.n < f.v LEFT JOIN wide_key w ON w.k = dim.p AND w.p <> many.p WHERE dim.b IS NOT TRUE OR f.g > 2 GROUP BY 1, 2', by => 'any'],
	# rows that are handed back are done with all their candidates
	[condition_back => 'SELECT dim.b, count(*), sum(long.w) FROM long JOIN dim ON long.k = dim.k WHERE long.n > dim.n GROUP BY dim.b', join => 'Inner', back => 1],
	[semi_back => 'SELECT long.k % 5, count(*), sum(long.w) FROM long WHERE EXISTS (SELECT FROM many WHERE many.k % 300 = long.k AND many.p < long.n) GROUP BY 1', by => 'any'],
	[semi_many_back => 'SELECT long.id % 5, count(*) FROM long WHERE EXISTS (SELECT FROM many WHERE many.k = long.id AND many.p < long.n) GROUP BY 1', join => 'Semi', back => 1],
	[anti_many_back => 'SELECT long.id % 5, count(*) FROM long WHERE NOT EXISTS (SELECT FROM many WHERE many.k = long.id AND many.p % 100 < long.n) GROUP BY 1', join => 'Anti', back => 1],
	[left_many_back => 'SELECT many.x, count(*), count(many.p) FROM long LEFT JOIN many ON many.k = long.id AND many.p % 100 > long.n GROUP BY 1', join => 'Left', back => 1],
	[left_overflow => 'SELECT dim.b, count(*), sum(long.id) FROM long LEFT JOIN dim ON long.id = dim.k AND long.w + dim.p < 500 GROUP BY dim.b', by => 'any'],
	[two_joins_back => 'SELECT dim.b, many.x, count(*), sum(long.id) FROM long LEFT JOIN many ON many.k = long.id AND many.p % 100 > long.n LEFT JOIN dim ON dim.k = many.p AND long.n > dim.n GROUP BY 1, 2', join => 'Left', back => 1],
	[condition_text_back => "SELECT dim.b, count(*), sum(long.w) FROM long LEFT JOIN dim ON long.k = dim.k WHERE long.x <> coalesce(dim.x, 'none') GROUP BY dim.b", join => 'Left', back => 1],
	[condition_fails => 'SELECT count(*) FROM dim JOIN f ON f.k = dim.k WHERE f.v / (dim.p - 300) > 1', by => 'any'],
	[condition_awaited => 'SELECT f.g, count(*) FROM dim JOIN f ON f.k = dim.k WHERE f.v + dim.p > (SELECT avg(p) FROM many) GROUP BY f.g', by => 'any'],
	[condition_unknown => "SELECT f.g, count(*) FROM dim JOIN f ON f.k = dim.k WHERE f.x || dim.x LIKE '%1%' GROUP BY f.g", by => 'any'],
	[condition_floats => 'SELECT f.g, sum(f.r), avg(f.r), count(*) FROM dim JOIN f ON f.k = dim.k WHERE f.r > dim.n GROUP BY f.g', join => 'Inner'],
	[condition_lateral => 'SELECT v.x, s.* FROM (VALUES (10), (2000), (NULL), (5000)) v(x), LATERAL (SELECT f.g, count(*), sum(dim.p) FROM dim JOIN f ON f.k = dim.k WHERE f.v + dim.p < v.x GROUP BY f.g OFFSET 0) s', by => 'any'],
	[condition_files => 'SELECT f.id, dim.k, dim.x, count(*), sum(f.v) FROM dim FULL JOIN f ON f.k = dim.k WHERE f.v IS NULL OR dim.p IS NULL OR f.v > dim.p GROUP BY 1, 2, 3', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1", by => 'any', join => 'Full'],
	[parallel_condition => 'SELECT f.g, count(*), sum(f.v), sum(dim.p) FROM dim JOIN f ON f.k = dim.k AND f.v > dim.p GROUP BY f.g', set => $PARALLEL, by => 'all', join => 'Inner'],
	[parallel_semi => 'SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM many WHERE many.k = f.k AND many.p % 50 < f.g) GROUP BY f.g', set => $PARALLEL, by => 'all', join => 'Semi'],
	[parallel_anti_back => 'SELECT long.id % 5, count(*) FROM long WHERE NOT EXISTS (SELECT FROM many WHERE many.k = long.id AND many.p % 100 < long.n) GROUP BY 1', set => $PARALLEL, by => 'any'],
	[parallel_left_many => 'SELECT many.x, count(*), sum(f.v), sum(many.p) FROM f LEFT JOIN many ON f.k = many.k AND f.v % 7 < many.p % 7 GROUP BY many.x', set => $PARALLEL, by => 'all', join => 'Left'],
	[parallel_condition_left => 'SELECT dim.b, count(*), sum(f.v) FROM f LEFT JOIN dim ON f.k = dim.k WHERE dim.p IS NULL OR dim.p > f.v GROUP BY dim.b', set => $PARALLEL, by => 'all', join => 'Left'],
	[parallel_condition_full => 'SELECT f.g, count(*), sum(dim.p) FROM dim FULL JOIN f ON f.k = dim.k WHERE f.v IS NULL OR dim.p IS NULL OR f.v > dim.p GROUP BY f.g', set => $PARALLEL, by => 'workers', join => 'Full'],
	[parallel_condition_back => 'SELECT dim.b, count(*), sum(long.w) FROM long JOIN dim ON long.k = dim.k WHERE long.n > dim.n GROUP BY dim.b', set => $PARALLEL, by => 'any'],
	[further_condition => 'SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k AND f.v > dim.p GROUP BY f.g', by => 'any'],
	[many => 'SELECT f.g, count(*), sum(f.v), sum(many.p) FROM many LEFT JOIN f ON f.k = many.k GROUP BY f.g'],
	[many_full => 'SELECT many.x, count(*), sum(f.v), sum(many.p) FROM many FULL JOIN f ON f.k = many.k GROUP BY many.x', join => 'Full'],
	[null_keys => 'SELECT f.g, count(*), sum(f.v), sum(nullable.p) FROM nullable LEFT JOIN f ON f.k = nullable.k GROUP BY f.g'],
	[null_keys_full => 'SELECT f.g, count(*), sum(f.v), sum(nullable.p) FROM nullable FULL JOIN f ON f.k = nullable.k GROUP BY f.g', join => 'Full'],
	[two_columns => 'SELECT f.g, count(*), sum(pair.p) FROM pair LEFT JOIN f ON pair.k1 = f.g AND pair.k2 = f.k2 GROUP BY f.g', by => 'any'],
	[two_columns_full => 'SELECT f.g, count(*), sum(pair.p) FROM pair FULL JOIN f ON pair.k1 = f.g AND pair.k2 = f.k2 GROUP BY f.g', by => 'any', join => 'Full'],
	[wide_keys => 'SELECT f.g, count(*), sum(wide_key.p) FROM wide_key FULL JOIN f ON wide_key.k = f.k GROUP BY f.g', join => 'Full'],
	[int8_keys => 'SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON dim.k = f.k8 GROUP BY f.g'],
	[wide => 'SELECT wide.p, count(*), count(f.id), sum(wide.k) FROM wide LEFT JOIN f ON wide.k = f.k GROUP BY wide.p', by => 'any'],
	[wide_right => 'SELECT wide.p, count(*), count(f.id), sum(wide.k) FROM f RIGHT JOIN wide ON wide.k = f.id GROUP BY wide.p', set => 'SET enable_mergejoin = off', by => 'any'],
	[wide_full => 'SELECT wide.p, count(*), count(f.id), sum(wide.k) FROM f FULL JOIN wide ON wide.k = f.k GROUP BY wide.p', by => 'any', join => 'Full'],
	[empty_outer => 'SELECT e.g, count(*), sum(dim.p) FROM dim LEFT JOIN empty e ON e.k = dim.k GROUP BY e.g', by => 'any'],
	[empty_outer_full => 'SELECT e.g, count(*), sum(dim.p) FROM dim FULL JOIN empty e ON e.k = dim.k GROUP BY e.g', by => 'any', join => 'Full'],
	[empty_inner => 'SELECT f.g, count(*), sum(d.p) FROM f RIGHT JOIN empty_dim d ON d.k = f.k GROUP BY f.g', by => 'any'],
	[empty_inner_full => 'SELECT f.g, count(*), sum(d.p) FROM f FULL JOIN empty_dim d ON d.k = f.k GROUP BY f.g', by => 'any', join => 'Full'],
	[no_match => 'SELECT f.g, count(*), sum(dim.p) FROM dim FULL JOIN f ON f.k = dim.k + 0 GROUP BY f.g', by => 'any', join => 'Full'],
	[nothing_passes => 'SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k AND f.v <> f.v + 0 GROUP BY f.g'],
	[all_match => 'SELECT dim.b, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k WHERE dim.n < 250 GROUP BY dim.b'],
	# joins below
	[below_inner => 'SELECT f.g, count(*), sum(pair.p), sum(dim.p) FROM dim LEFT JOIN (f JOIN wide_key pair ON pair.k = f.k) ON f.k = dim.k GROUP BY f.g'],
	[below_left => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM (f LEFT JOIN wide_key w ON w.k = f.k) FULL JOIN dim ON f.k = dim.k GROUP BY f.g', join => 'Full'],
	[below_left_key => 'SELECT w.p % 5, count(*), sum(f.v), sum(dim.p) FROM (f LEFT JOIN wide_key w ON w.k = f.k) FULL JOIN dim ON w.p = dim.k GROUP BY 1', join => 'Full'],
	[below_semi => 'SELECT s.g, count(*), sum(dim.p) FROM dim LEFT JOIN (SELECT * FROM f WHERE EXISTS (SELECT FROM many WHERE many.k = f.k)) s ON s.k = dim.k GROUP BY s.g', set => 'SET enable_hashagg = off; SET enable_sort = off', by => 'any'],
	[below_anti => 'SELECT s.g, count(*), sum(dim.p) FROM dim FULL JOIN (SELECT * FROM f WHERE NOT EXISTS (SELECT FROM many WHERE many.k = f.k)) s ON s.k = dim.k GROUP BY s.g', by => 'any', join => 'Full'],
	[below_empty => 'SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN (f JOIN empty_dim e ON e.k = f.k) ON f.k = dim.k GROUP BY f.g', by => 'any'],
	[above_join => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k LEFT JOIN wide_key w ON w.k = dim.k GROUP BY f.g', by => 'any'],
	[twice_full => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM f FULL JOIN dim ON f.k = dim.k FULL JOIN wide_key w ON w.k = f.k GROUP BY f.g', by => 'any', join => 'Full'],
	# inner sides that are joins
	[bushy => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => $WRITTEN, join => 'Inner'],
	[bushy_left => 'SELECT dim.x, w.p % 3, count(*), sum(f.v) FROM f LEFT JOIN (dim LEFT JOIN wide_key w ON w.k = dim.p AND w.p <> dim.k) ON f.k = dim.k AND f.v > dim.p GROUP BY 1, 2', set => $WRITTEN, join => 'Left'],
	[bushy_above => 'SELECT dim.x, count(*), sum(f.v) FROM f JOIN (dim LEFT JOIN wide_key w ON w.k = dim.p) ON f.k = dim.k WHERE coalesce(w.p, f.g) <> 3 GROUP BY 1', set => $WRITTEN, join => 'Inner'],
	[bushy_many => 'SELECT f.g, many.x, count(*), sum(dim.p) FROM f JOIN (many JOIN dim ON dim.k = many.p AND dim.n * 4 < many.k) ON many.k = f.k AND f.v % 5 <> many.p % 5 GROUP BY 1, 2', set => $WRITTEN, join => 'Inner'],
	[bushy_deep => 'SELECT f.g, count(*), sum(w.p), sum(many.p) FROM f JOIN (many JOIN (dim JOIN wide_key w ON w.k = dim.k) ON dim.k = many.p) ON many.k = f.k GROUP BY 1', set => $WRITTEN, join => 'Inner'],
	[bushy_twice => 'SELECT f.g, count(*), sum(w.p), sum(p.p) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k LEFT JOIN (nullable n JOIN pair p ON p.p = n.p) ON n.k = f.id AND p.k1 <> w.p GROUP BY f.g', set => $WRITTEN, join => 'Left'],
	[bushy_semi => 'SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM many JOIN dim ON dim.k = many.p WHERE many.k = f.k AND dim.n * 8 > f.g) GROUP BY f.g', set => $WRITTEN, by => 'any'],
	[bushy_anti => 'SELECT f.g, count(*) FROM f WHERE NOT EXISTS (SELECT FROM many JOIN dim ON dim.k = many.p WHERE many.k = f.k AND dim.n * 8 > f.g) GROUP BY f.g', set => $WRITTEN, by => 'any'],
	[bushy_inner_semi => 'SELECT f.g, count(*), sum(d.p) FROM f JOIN (SELECT * FROM dim WHERE EXISTS (SELECT FROM many WHERE many.p = dim.k AND many.k <> dim.p)) d ON d.k = f.k GROUP BY f.g', set => $WRITTEN, by => 'any'],
	[bushy_full => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM f FULL JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => $WRITTEN, join => 'Full'],
	[bushy_right => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM f RIGHT JOIN (dim LEFT JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => $WRITTEN, by => 'any'],
	[bushy_empty => 'SELECT f.g, count(*), sum(dim.p) FROM f LEFT JOIN (dim JOIN empty_dim e ON e.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => $WRITTEN, by => 'any', nodes => 0],
	[bushy_empty_inner => 'SELECT f.g, count(*), sum(dim.p) FROM f JOIN (dim JOIN empty_dim e ON e.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => $WRITTEN, by => 'any', nodes => 0],
	[bushy_back => 'SELECT d.x, count(*), sum(f.v) FROM f JOIN (long_dim d JOIN dim ON dim.k = d.k) ON f.k = d.k GROUP BY d.x', set => $WRITTEN, by => 'cpu', join => 'Inner', why => qr/rows of an inner side were handed back/],
	[bushy_pair_back => 'SELECT d.w, count(*), sum(f.v) FROM f JOIN (long_dim d JOIN dim ON dim.k = d.k AND d.x <> dim.x) ON f.k = d.k GROUP BY d.w', set => $WRITTEN, by => 'cpu', join => 'Inner', why => qr/rows of an inner side were handed back/],
	[bushy_outer_back => 'SELECT dim.b, count(*), sum(long.w) FROM long JOIN (dim JOIN wide_key w ON w.k = dim.k) ON long.k = dim.k AND long.n > dim.n GROUP BY dim.b', set => $WRITTEN, join => 'Inner', back => 1],
	[bushy_unknown => "SELECT dim.x, count(*) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k AND md5(dim.x) < 'a') ON f.k = dim.k GROUP BY dim.x", set => $WRITTEN, by => 'any'],
	[bushy_fails => 'SELECT f.g, count(*) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k AND 1 / (w.p - 40) < 5) ON f.k = dim.k GROUP BY f.g', set => $WRITTEN, by => 'any'],
	[bushy_awaited => 'SELECT f.g, count(*) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k AND w.p + dim.p > (SELECT avg(p) FROM pair)) ON f.k = dim.k GROUP BY f.g', set => $WRITTEN, by => 'any'],
	[bushy_lateral => 'SELECT v.x, s.* FROM (VALUES (10), (200), (NULL), (50)) v(x), LATERAL (SELECT f.g, count(*), sum(w.p) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k AND w.p < v.x) ON f.k = dim.k GROUP BY f.g OFFSET 0) s', set => $WRITTEN, by => 'any', nodes => 0],
	[bushy_rescan => 'SELECT a.p, s.* FROM many a, (SELECT f.g, count(*) AS c, sum(w.p) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k GROUP BY f.g OFFSET 0) s WHERE a.p < 8 AND s.c > a.p', set => "$WRITTEN; SET enable_hashjoin = off; SET enable_mergejoin = off", by => 'any', join => 'Inner'],
	[bushy_files => 'SELECT f.id, dim.x, w.p, count(*), sum(f.v) FROM f LEFT JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k GROUP BY 1, 2, 3', set => "$WRITTEN; SET work_mem = '64kB'; SET hash_mem_multiplier = 1", by => 'any', join => 'Left'],
	[parallel_bushy => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => "$PARALLEL; $WRITTEN", by => 'all', join => 'Inner'],
	[parallel_bushy_deep => 'SELECT f.g, count(*), sum(w.p), sum(many.p) FROM f JOIN (many JOIN (dim JOIN wide_key w ON w.k = dim.k) ON dim.k = many.p) ON many.k = f.k GROUP BY 1', set => "$PARALLEL; $WRITTEN", by => 'all', join => 'Inner'],
	[parallel_bushy_twice => 'SELECT f.g, count(*), sum(w.p), sum(p.p) FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k LEFT JOIN (nullable n JOIN pair p ON p.p = n.p) ON n.k = f.id AND p.k1 <> w.p GROUP BY f.g', set => "$PARALLEL; $WRITTEN", by => 'all', join => 'Left'],
	[parallel_bushy_full => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM f FULL JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => "$PARALLEL; $WRITTEN", by => 'workers', join => 'Full'],
	[parallel_bushy_empty => 'SELECT f.g, count(*), sum(dim.p) FROM f JOIN (dim JOIN empty_dim e ON e.k = dim.k) ON f.k = dim.k GROUP BY f.g', set => "$PARALLEL; $WRITTEN", by => 'any', nodes => 0],
	[parallel_bushy_back => 'SELECT d.x, count(*), sum(f.v) FROM f JOIN (long_dim d JOIN dim ON dim.k = d.k) ON f.k = d.k GROUP BY d.x', set => "$PARALLEL; $WRITTEN", by => 'any'],
	[parallel_bushy_outer_back => 'SELECT dim.b, count(*), sum(long.w) FROM long JOIN (dim JOIN wide_key w ON w.k = dim.k) ON long.k = dim.k AND long.n > dim.n GROUP BY dim.b', set => "$PARALLEL; $WRITTEN", by => 'any'],
	# rows that are handed back
	[outer_back => 'SELECT d.x, count(*), sum(long.n), count(long.x), max(long.n) FROM long_dim d LEFT JOIN long ON long.k = d.k AND d.k < 400 AND d.k <> 450 GROUP BY d.x', by => 'any'],
	[outer_back_full => "SELECT d.w % 3, count(*), sum(long.n), count(long.x) FROM long_dim d FULL JOIN long ON long.k = d.k GROUP BY 1", by => 'cpu', join => 'Full', why => qr/rows that the device handed back must be joined/],
	[outer_text_back => "SELECT long.x, count(*) FROM dim LEFT JOIN long ON long.k = dim.k GROUP BY long.x", by => 'cpu', why => qr/rows that the device handed back must be joined/],
	[inner_back => 'SELECT long_dim.x, count(*), count(f.id) FROM long_dim LEFT JOIN f ON f.k = long_dim.k GROUP BY long_dim.x', by => 'cpu', why => qr/rows of an inner side were handed back/],
	[unmatched_back => 'SELECT f.g, count(*), sum(d.w + 1) FROM long_dim d LEFT JOIN f ON f.k = d.k AND f.k < 440 WHERE d.k <> 452 GROUP BY f.g'],
	[unmatched_huge => 'SELECT w.p, count(*), sum(h.m) FROM wide w RIGHT JOIN huge h ON h.k = w.k GROUP BY w.p', set => 'SET enable_mergejoin = off; SET gpuhash.fallback = error', by => 'cpu', why => qr/rows without a match were handed back/],
	[overflow => 'SELECT f.g, sum(d.w + 1) FROM long_dim d LEFT JOIN f ON f.k = d.k AND f.k < 440 GROUP BY f.g', by => 'any'],
	# a row without a match overflows, and is then not added
	[unmatched_overflow => 'SELECT f.g, count(*), sum(CASE WHEN d.w > 1000 THEN 0 ELSE d.w + 1 END), sum(d.m) FROM long_dim d LEFT JOIN f ON f.k = d.k AND f.k < 440 WHERE d.k <> 450 GROUP BY f.g', by => 'any'],
	[lateral => 'SELECT v.x, s.* FROM (VALUES (1), (2), (NULL), (5)) v(x), LATERAL (SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k AND f.g < v.x GROUP BY f.g OFFSET 0) s', by => 'any'],
	[lateral_inner => 'SELECT v.x, s.* FROM (VALUES (10), (2000), (NULL), (5000)) v(x), LATERAL (SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k WHERE dim.p < v.x GROUP BY f.g OFFSET 0) s', by => 'any', nodes => 0],
	[rescan => 'SELECT a.p, s.* FROM many a, (SELECT f.g, count(*) AS c, sum(dim.p) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY f.g OFFSET 0) s WHERE a.p < 8 AND s.c > a.p', set => 'SET enable_hashjoin = off; SET enable_mergejoin = off', by => 'any', join => 'Full'],
	[files => 'SELECT f.id, dim.k, dim.x, count(*), sum(f.v) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY 1, 2, 3', set => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1", by => 'any', join => 'Full'],
	[awaited => 'SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k AND f.v > (SELECT avg(p) FROM many) GROUP BY f.g', by => 'any'],
	[parallel_right => 'SELECT f.g, count(*), count(f.id), sum(f.v), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k GROUP BY f.g', set => $PARALLEL, by => 'workers'],
	[parallel_full => 'SELECT f.g, count(*), sum(f.v), sum(dim.p) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY f.g', set => $PARALLEL, by => 'workers', join => 'Full'],
	[parallel_count => 'SELECT count(*), count(f.id) FROM dim FULL JOIN f ON f.k = dim.k', set => $PARALLEL, by => 'workers', join => 'Full'],
	[parallel_many => 'SELECT many.x, count(*), sum(f.v), sum(many.p) FROM many FULL JOIN f ON f.k = many.k GROUP BY many.x', set => $PARALLEL, by => 'workers', join => 'Full'],
	[parallel_below => 'SELECT f.g, count(*), sum(w.p), sum(dim.p) FROM (f LEFT JOIN wide_key w ON w.k = f.k) FULL JOIN dim ON f.k = dim.k GROUP BY f.g', set => $PARALLEL, by => 'workers', join => 'Full'],
	[parallel_workers => 'SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k GROUP BY f.g', set => "$PARALLEL; SET parallel_leader_participation = off", by => 'workers'],
	[parallel_wide => 'SELECT wide.p, count(*), count(f.id), sum(wide.k) FROM f RIGHT JOIN wide ON wide.k = f.id GROUP BY wide.p', set => "$PARALLEL; SET enable_mergejoin = off", by => 'any'],
	[parallel_empty => 'SELECT f.g, count(*), sum(d.p) FROM f FULL JOIN empty_dim d ON d.k = f.k GROUP BY f.g', set => $PARALLEL, by => 'any', join => 'Full'],
	[parallel_empty_outer => 'SELECT e.g, count(*), sum(dim.p) FROM dim LEFT JOIN empty e ON e.k = dim.k GROUP BY e.g', set => $PARALLEL, by => 'any'],
	[parallel_null_keys => 'SELECT f.g, count(*), sum(nullable.p) FROM nullable FULL JOIN f ON f.k = nullable.k GROUP BY f.g', set => $PARALLEL, by => 'any', join => 'Full'],
	[parallel_back => 'SELECT dim.b, count(*), sum(long.n), sum(dim.p) FROM dim LEFT JOIN long ON long.k = dim.k GROUP BY dim.b', set => $PARALLEL, by => 'any'],
	[parallel_files => 'SELECT f.id, dim.k, dim.x, count(*), sum(f.v) FROM dim FULL JOIN f ON f.k = dim.k GROUP BY 1, 2, 3', set => "$PARALLEL; SET work_mem = '64kB'; SET hash_mem_multiplier = 1", by => 'any', join => 'Full'],
	[parallel_lateral => 'SELECT v.x, s.* FROM (VALUES (1), (2), (5)) v(x), LATERAL (SELECT f.g, count(*), sum(dim.p) FROM dim LEFT JOIN f ON f.k = dim.k AND f.g < v.x GROUP BY f.g OFFSET 0) s', set => $PARALLEL, by => 'any'],
	[error => 'SELECT sum(1 / (dim.p - 6000)) FROM dim LEFT JOIN f ON f.k = dim.k', by => 'any'],
);

my @ROWS = (
	[rows_right => 'SELECT f.id, f.v, dim.p, dim.k FROM dim LEFT JOIN f ON f.k = dim.k'],
	[rows_full => 'SELECT f.id, f.n, f.x, dim.x, dim.n, dim.b FROM dim FULL JOIN f ON f.k = dim.k', join => 'Full'],
	[rows_expression => 'SELECT coalesce(f.id, -dim.k), f.v * 2 FROM dim LEFT JOIN f ON f.k = dim.k WHERE dim.p > 300'],
	[rows_none => 'SELECT 1 FROM dim FULL JOIN f ON f.k = dim.k', join => 'Full'],
	[rows_many => 'SELECT f.id, many.p, many.x FROM many FULL JOIN f ON f.k = many.k', join => 'Full'],
	[rows_null_keys => 'SELECT f.id, nullable.p FROM nullable FULL JOIN f ON f.k = nullable.k', join => 'Full'],
	[rows_back => 'SELECT long.id, long.x, long.n, dim.p FROM dim LEFT JOIN long ON long.k = dim.k', by => 'cpu', why => qr/rows that the device handed back must be joined/],
	[rows_below => 'SELECT f.id, w.p, dim.p FROM (f LEFT JOIN wide_key w ON w.k = f.k) FULL JOIN dim ON f.k = dim.k', join => 'Full'],
	[rows_above => 'SELECT f.id, w.p, dim.p FROM (dim LEFT JOIN f ON f.k = dim.k) JOIN wide_key w ON w.k = dim.k', by => 'any'],
	[rows_condition => 'SELECT f.id, f.v, dim.p, dim.x FROM dim JOIN f ON f.k = dim.k AND f.v > dim.p', join => 'Inner'],
	[rows_condition_left => 'SELECT f.id, dim.k FROM f LEFT JOIN dim ON f.k = dim.k WHERE dim.p IS NULL OR dim.p > f.v', join => 'Left'],
	[rows_condition_right => 'SELECT f.id, dim.k FROM dim LEFT JOIN f ON f.k = dim.k WHERE coalesce(f.v, 7) < dim.p'],
	[rows_condition_full => 'SELECT f.id, dim.k FROM dim FULL JOIN f ON f.k = dim.k WHERE f.v IS NULL OR dim.p IS NULL OR f.v > dim.p', join => 'Full'],
	[rows_condition_above => 'SELECT f.id, w.p, dim.p FROM f JOIN dim ON dim.k = f.k AND f.v > dim.p JOIN wide_key w ON w.k = f.g', by => 'any'],
	[rows_condition_rescan => 'SELECT v.x, s.* FROM (VALUES (100), (4000)) v(x), LATERAL (SELECT f.id, dim.p FROM dim JOIN f ON f.k = dim.k WHERE f.v + dim.p < v.x OFFSET 0) s', by => 'any'],
	[rows_condition_back => 'SELECT long.id, dim.p FROM long JOIN dim ON long.k = dim.k WHERE long.n > dim.n', join => 'Inner', back => 1],
	[rows_semi => 'SELECT f.id, f.x FROM f WHERE EXISTS (SELECT FROM many WHERE many.k = f.k AND many.p % 50 < f.g)', by => 'any', join => 'Semi'],
	[rows_left_many => 'SELECT f.id, many.p, many.x, dim.x FROM f LEFT JOIN many ON f.k = many.k AND f.v % 7 < many.p % 7 LEFT JOIN dim ON dim.k = f.id AND dim.n < many.p', join => 'Left'],
	[rows_left_many_back => 'SELECT long.id, many.p, many.x FROM long LEFT JOIN many ON many.k = long.id AND many.p % 100 > long.n', join => 'Left', back => 1],
	[rows_parallel_condition => 'SELECT f.id, f.v, dim.p FROM dim JOIN f ON f.k = dim.k AND f.v > dim.p', set => $PARALLEL, by => 'all', join => 'Inner'],
	[rows_bushy => 'SELECT f.id, w.p, dim.x FROM f JOIN (dim JOIN wide_key w ON w.k = dim.k) ON f.k = dim.k', set => $WRITTEN, by => 'any', join => 'Inner'],
	[rows_bushy_left => 'SELECT f.id, w.p, dim.x FROM f LEFT JOIN (dim LEFT JOIN wide_key w ON w.k = dim.k AND w.p > 20) ON f.k = dim.k AND f.v > dim.p', set => $WRITTEN, by => 'any', join => 'Left'],
	[rows_bushy_back => 'SELECT long.id, dim.x, w.p FROM long JOIN (dim JOIN wide_key w ON w.k = dim.k) ON long.k = dim.k AND long.n > dim.n', set => $WRITTEN, by => 'any', join => 'Inner'],
	[rows_limit => 'SELECT count(*) FROM (SELECT f.id, dim.p FROM dim LEFT JOIN f ON f.k = dim.k LIMIT 9000) s', by => 'any'],
	[rows_ordered => 'SELECT f.id, dim.x, dim.k FROM dim LEFT JOIN f ON f.k = dim.k ORDER BY dim.k DESC, f.id LIMIT 2000'],
	[rows_empty => 'SELECT e.id, dim.p FROM dim LEFT JOIN empty e ON e.k = dim.k', by => 'any'],
	[rows_rescan => 'SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT f.id, dim.p FROM dim LEFT JOIN f ON f.k = dim.k AND f.g < v.x OFFSET 0) s', by => 'any'],
	[rows_parallel => 'SELECT f.id, f.v, dim.p, dim.k FROM dim FULL JOIN f ON f.k = dim.k', set => $PARALLEL, by => 'workers', join => 'Full'],
	[rows_parallel_right => 'SELECT f.id, dim.x, dim.k FROM dim LEFT JOIN f ON f.k = dim.k', set => $PARALLEL, by => 'workers'],
	[rows_parallel_back => 'SELECT long.id, long.n, dim.p FROM dim LEFT JOIN long ON long.k = dim.k', set => $PARALLEL, by => 'any'],
);

# From 18 on there are decimals.
sub rows_below { return GpuHash::FaultRun::rows_below($_[0]) =~ s/\b(\d+)\.00\b/$1/gr }

sub sorted { return join "\n", sort split /\n/, $_[0] }

my %RUN = map { my ($name, $sql, %options) = @$_; $name => [$sql, $options{set} // 'SELECT'] } @AGGREGATES, @ROWS;

# One query: the answer, who has made it, and what the nodes below count.
sub check_query
{
	my ($session, $with, $node, $name, $sql, %options) = @_;
	my $by = $options{by} // 'cuda';
	my $join = $options{join} // 'Right';
	$by = $with eq 'service' && ($by eq 'all' || $major >= 16) ? 'cuda' : 'any' if $by =~ /^(?:workers|all)$/;
	my $set = 'RESET ALL; SET client_min_messages = warning; ' . ($options{set} // 'SELECT');
	my ($want, $want_err) = $session->do("$set; SET gpuhash.enabled = off; $sql");
	my ($got, $err) = $session->do("$set; $sql");
	is(sorted($got) . $err, sorted($want) . $want_err, "$with: $name");
	return if $want_err ne '';
	isnt($want, '', "$with: $name has rows") if $by ne 'any';
	# a plan for the device that is run without one
	$session->do("$set; SET plan_cache_mode = force_generic_plan; PREPARE q AS $sql");
	my ($plan) = $session->do('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, VERBOSE) EXECUTE q');
	my ($host) = $session->do('SET gpuhash.engine = cpu; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, VERBOSE) EXECUTE q');
	my ($on_host) = $session->do('EXECUTE q');
	$session->do('DEALLOCATE q; RESET gpuhash.engine');
	is(sorted($on_host), sorted($want), "$with: $name, by the same plan without a device");
	is(rows_below($plan), rows_below($host), "$with: nodes of $name return as many rows") if $options{nodes} // $name !~ /parallel|limit/;
	return if $by eq 'any';
	like($plan, qr/Workers Launched: [12].*Parallel Custom Scan \(GpuHashJoin\)/s, "$with: $name is parallel") if $name =~ /parallel/;
	like($plan, qr/$node.*Join Type: $join\b/s, "$with: $name is a join for $node") or diag($plan);
	my $unmatched = $join =~ /Right|Full/ ? qr/(?:(?!->).)*Unmatched Inner Rows: \d+/s : qr//;
	like($plan, qr/Rows Handed Back: [1-9]/, "$with: some rows of $name are handed back") if $options{back};
	like($plan, $by eq 'cuda' ? qr/\A(?:(?!Fallback Reason).)*$node(?:(?!->).)*Engine: cuda$unmatched(?:(?!Fallback Reason).)*\z/s : qr/$node.*Fallback Reason: $options{why}/s, "$with: $name is done by $by") or diag($plan);
	return;
}

sub check_queries
{
	my ($server, $with, $node, @queries) = @_;
	my $session = $server->session;
	for (@queries)
	{
		next if $ENV{GPUHASH_ONLY} && $_->[0] !~ /^(?:$ENV{GPUHASH_ONLY})$/;
		check_query($session, $with, $node, @$_);
	}
	$session->close;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, "$with: a clean log");
	return;
}

# ------------------------------------------------------------- a device that fails

# Of these, every request fails in turn.
my @FAILING = (qw(right full_texts many_full below_left outer_back_full nothing_passes rescan inner_condition condition_back semi_many bushy), $major >= 16 ? qw(parallel_full parallel_right parallel_back parallel_condition parallel_condition_back parallel_bushy) : ());
my @FAILING_ROWS = (qw(rows_full rows_back rows_rescan rows_condition rows_left_many), $major >= 16 ? qw(rows_parallel rows_parallel_back) : ());

sub failing { return map { $_ => $RUN{$_} } @_ }

sub alone
{
	my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", @CONF]);
	$server->query("CREATE EXTENSION gpuhash; $TABLES");
	check_queries($server, 'alone', 'GpuHashAggregate', @AGGREGATES);
	my $run = GpuHash::FaultRun->new(node => 'GpuHashAggregate', tables => 'SELECT 1', vacuumed => [qw(f dim)], queries => { failing(@FAILING) });
	$run->begin($server, fault => $fault);
	my $tried = 0;
	$tried += $run->fail_all_requests($_) for grep { !/back|parallel/ } @FAILING;
	note("$tried failures");
	cmp_ok($tried, '>', 30, 'enough requests failed');
	$run->end;
	return;
}

sub with_service
{
	my ($parts) = @_;
	my $service = GpuHash::Service->new(conf => [@CONF, 'gpuhash.shared_memory = 64MB', "gpuhash.device_timeout = '3s'"]);
	my $server = $service->server;
	ok($service->wait_ready, 'the service is ready');
	$server->query($TABLES);
	if ($parts =~ /service/)
	{
		check_queries($server, 'service', 'GpuHashAggregate', @AGGREGATES);
		check_queries($server, 'service', 'GpuHashRows', @ROWS);
		like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
	}
	faults($service, 'GpuHashAggregate', 'aggregate on the GPU', @FAILING) if $parts =~ /faults/;
	faults($service, 'GpuHashRows', 'join on the GPU', @FAILING_ROWS) if $parts =~ /faults/;
	$service->stop;
	return;
}

sub faults
{
	my ($service, $node, $what, @names) = @_;
	my $run = GpuHash::FaultRun->new(node => $node, tables => 'SELECT 1', vacuumed => [qw(f dim)], queries => { failing(@names) });
	$run->begin($service->server, service => $service);
	my ($tried, @bad) = (0);
	for my $name (@names)
	{
		$run->set($name);
		if ($name !~ /back/) { $tried += $run->fail_all_points($name); next }
		# rows that were handed back, and then the device fails
		for my $after (0 .. 6) { $tried += $run->try_fault($name, $_, 'launch', $after, \@bad) for qw(scan scan_table scan_results) }
	}
	is(join("\n", @bad), '', "$node: rows are handed back, and the device fails");
	note("$tried faults");
	cmp_ok($tried, '>', 80, 'enough faults were tried');
	my $name = $names[0];
	$run->set($name);
	# the last passage is that for rows without a match
	$service->arm('scan', 'delay', times => 1_000_000);
	$run->answer($name);
	$service->settle;
	my $last = $service->disarm - 1;
	$run->{session}->do('SET gpuhash.fallback = error');
	$service->arm('scan', 'launch', after => $last);
	like($run->answer($name), qr/ERROR:  \w+: could not $what/, "$node: fallback = error");
	$service->disarm;
	like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');
	$run->interrupt($name, 'scan', $_) for qw(pg_cancel_backend timeout);
	# where marks are made
	$run->interrupt($name, 'create', 'pg_cancel_backend');
	$run->disturb($name, 'create');
	$run->end_worker($name, 'scan', $_, $last) for qw(sticky term);
	if (my ($parallel) = grep { /parallel/ } @names)
	{
		$run->interrupt($parallel, 'scan', $_) for qw(pg_cancel_backend timeout pg_terminate_backend);
		$run->end_worker($parallel, 'scan', 'hang', 3);
		$run->end_worker($parallel, 'scan', 'sticky', 5);
	}
	$run->end;
	return;
}

my $parts = $ENV{GPUHASH_WITH} // 'alone service faults';
alone() if $parts =~ /alone/;
undef $fault;
with_service($parts) if $parts =~ /service|faults/;
done_testing();
