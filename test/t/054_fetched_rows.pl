# Rows of joins by the device, with columns that programs do not hold: tuples are fetched when the rows come out. These are
# the tuples that the query's snapshot sees, whatever happened to them since the device has read the pages; and an open cursor
# holds no page.
use GpuHash::Test 'module';
use GpuHash::Service;

my $service = GpuHash::Service->new(conf => ['gpuhash.device_start_cost = 0', 'gpuhash.device_page_cost = 0.02', 'gpuhash.device_bus_cost = 0.005', 'seq_page_cost = 0.05', "gpuhash.engine = 'cuda'", 'gpuhash.force_offload = on', 'autovacuum = off', 'max_parallel_workers_per_gather = 0', 'enable_material = off', 'shared_buffers = 16MB']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $session = $server->session;

my (undef, $made) = $session->do(<<'SQL');
CREATE TYPE pair AS (x int8, y text);
CREATE DOMAIN amount AS numeric(10, 2);
CREATE TABLE f (gone1 text, id int, gone2 int8, k int, j jsonb, u inet, n numeric, m amount, p pair, big text) WITH (fillfactor = 50);
INSERT INTO f SELECT 'gone', i, i, i % 300, jsonb_build_object('i', i), '10.0.0.0'::inet + i, i / 8.0, i / 3.0, ROW(i, 'p' || i)::pair, CASE WHEN i % 40 = 0 THEN (SELECT string_agg(md5((i + n)::text), '') FROM generate_series(1, 150) n) ELSE 'b' || i END FROM generate_series(1, 3000) i;
ALTER TABLE f DROP COLUMN gone1;
ALTER TABLE f ADD COLUMN later interval DEFAULT '3 days', ADD COLUMN later_null int[];
ALTER TABLE f DROP COLUMN gone2;
INSERT INTO f SELECT i, i % 300, NULL, NULL, 'NaN', i, NULL, 'new', NULL, ARRAY[i] FROM generate_series(3001, 3300) i;
CREATE TABLE d (k int PRIMARY KEY, v int, tags text[], iv interval);
INSERT INTO d SELECT i, i * 10, ARRAY['t' || i % 7], i * interval '1 hour' FROM generate_series(1, 200) i;
INSERT INTO d SELECT i, i, ARRAY['without a match'] FROM generate_series(100001, 100011) i;
CREATE TABLE e (k int PRIMARY KEY, b varbit);
INSERT INTO e SELECT i, i::bit(20) FROM generate_series(1, 150) i;
DO $$ BEGIN EXECUTE 'CREATE TABLE most (k int, j jsonb, ' || (SELECT string_agg('c' || i || ' int', ', ') FROM generate_series(1, 1598) i) || ')'; END $$;
INSERT INTO most (k, j, c1598) SELECT i, jsonb_build_object('i', i), i FROM generate_series(1, 300) i;
DO $$ BEGIN EXECUTE 'CREATE TABLE many (id int, k int, ' || (SELECT string_agg('c' || i || ' int DEFAULT ' || i, ', ') FROM generate_series(1, 40) i) || ')'; END $$;
INSERT INTO many SELECT i, i % 300 FROM generate_series(1, 1000) i;
CREATE TABLE notes (k int PRIMARY KEY, title varchar(20), note text);
INSERT INTO notes SELECT i, 'title ' || i, repeat(md5(i::text), CASE WHEN i % 9 = 0 THEN 200 ELSE 10 END) FROM generate_series(1, 200) i;
VACUUM ANALYZE f, d, e, many, most, notes;
SQL
is($made, '', 'the tables are made');

# -------------------------------------------------------------------- plans

# The tables whose tuples are fetched; undef: no GpuHashRows.
sub fetched
{
	my ($query) = @_;
	my ($plan) = $session->do("EXPLAIN (VERBOSE, COSTS OFF) $query");
	return undef if $plan !~ /GpuHashRows/;
	return $plan =~ /Tuples Fetched From: (.*)/ ? $1 : '';
}

my @QUERIES = (
	['values', 'SELECT f.id, d.v FROM f JOIN d ON d.k = f.k', ''],
	['the outer table', 'SELECT f.id, f.j, f.u, d.v FROM f JOIN d ON d.k = f.k', 'f'],
	['an inner table', 'SELECT f.id, d.tags, d.v FROM f JOIN d ON d.k = f.k', 'd'],
	['both', 'SELECT f.*, d.* FROM f JOIN d ON d.k = f.k', 'f, d'],
	['no match', 'SELECT f.id, f.later, d.tags, d.v, e.b FROM f LEFT JOIN d ON d.k = f.k LEFT JOIN e ON e.k = f.k', 'f, d, e'],
	['a key of a table whose tuples are fetched', 'SELECT f.id, d.iv, e.b FROM f JOIN d ON d.k = f.k JOIN e ON e.k = d.k', 'd, e'],
	['a numeric without a scale', 'SELECT f.id, f.n FROM f JOIN d ON d.k = f.k', 'f'],
	['a domain over numeric', 'SELECT f.id, f.m FROM f JOIN d ON d.k = f.k', 'f'],
	['a row type, and fields of it', 'SELECT f.p, (f.p).y FROM f JOIN d ON d.k = f.k', 'f'],
	['a value from elsewhere', 'SELECT f.big, f.u, length(f.big) FROM f JOIN d ON d.k = f.k WHERE f.id % 4 = 0', 'f'],
	['conditions', "SELECT f.j FROM f JOIN d ON d.k = f.k WHERE f.id > 2900 AND d.v < 500", 'f'],
	['columns that tuples lack', 'SELECT f.later, f.later_null FROM f JOIN d ON d.k = f.k', 'f'],
	['many columns', 'SELECT many.*, d.v FROM many JOIN d ON d.k = many.k', 'many'],
	['many columns, and others', 'SELECT many.*, d.tags FROM many JOIN d ON d.k = many.k', 'many, d'],
	['as many columns as there can be', 'SELECT most.j, most.c1598, d.* FROM most JOIN d ON d.k = most.k', 'most, d'],
	['values of such a table', 'SELECT most.c1598, d.v FROM most JOIN d ON d.k = most.k', ''],
	['not all columns of many', 'SELECT many.id, c1, c40, d.v FROM many JOIN d ON d.k = many.k', ''],
	['semi and anti joins', 'SELECT f.j, f.id FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k) AND NOT EXISTS (SELECT FROM e WHERE e.k = f.k)', 'f'],
	['a right join', 'SELECT f.j, f.id, e.b FROM e LEFT JOIN f ON f.k = e.k AND f.id < 100', 'e, f'],
	['a full join', 'SELECT f.id, f.u, d.tags, d.k FROM f FULL JOIN d ON d.k = f.k', 'f, d'],
	['long texts of an inner table, some of them compressed', 'SELECT f.id, notes.note, notes.title FROM f JOIN notes ON notes.k = f.k', 'notes'],
	['short texts of it', 'SELECT f.id, notes.title FROM f JOIN notes ON notes.k = f.k', ''],
	['long texts of the outer table', 'SELECT notes.note, d.v FROM notes JOIN d ON d.k = notes.k AND d.v < 500', 'notes'],
	['rows without columns', 'SELECT 1 FROM f JOIN d ON d.k = f.k', ''],
	['a subquery that is asked again', 'SELECT v.x, s.* FROM (VALUES (1), (200)) v(x), LATERAL (SELECT f.j, d.iv FROM f JOIN d ON d.k = f.k WHERE f.id < v.x OFFSET 0) s', 'f, d'],
	['DISTINCT and ORDER BY', 'SELECT DISTINCT f.u, d.tags FROM f JOIN d ON d.k = f.k ORDER BY 1, 2', 'f, d'],
	# left to others
	['system columns', 'SELECT f.ctid, f.tableoid, f.j FROM f JOIN d ON d.k = f.k', undef],
	['whole rows', 'SELECT f, d.v FROM f JOIN d ON d.k = f.k', undef],
	['rows that are locked', 'SELECT f.j FROM f JOIN d ON d.k = f.k WHERE f.id < 50 FOR UPDATE', undef]);

for (@QUERIES)
{
	my ($name, $query, $tables) = @$_;
	is(fetched($query), $tables, "$name: the plan");
	my ($want) = $session->do("SET gpuhash.enabled = off; $query");
	my ($got, $err) = $session->do("SET gpuhash.enabled = on; $query");
	is($err, '', "$name: no error");
	ok($want ne '' && join("\n", sort split /\n/, $got) eq join("\n", sort split /\n/, $want), "$name: the rows") or diag(substr($got, 0, 300), "\n instead of \n", substr($want, 0, 300));
	next if !defined $tables;
	my ($plan) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
	ok($plan =~ /GpuHashRows.*?Engine: cuda/s && $plan !~ /Fallback Reason/, "$name: by the device") or diag($plan);
}

my ($json) = $session->do("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) $QUERIES[3][1]");
like($json, qr/"Tuples Fetched From": \["f", "d"\]/, 'EXPLAIN in another format');

# Without the device, at once and after it has failed: the CPU engine reads pages.
for (['gpuhash.engine = cpu', 'the CPU engine'], ['work_mem = \'64kB\'', 'little memory'], ['gpuhash.enable_scan = off', 'no pages'])
{
	my ($setting, $what) = @$_;
	for (grep { defined $_->[2] } @QUERIES)
	{
		my ($name, $query) = @$_;
		my ($want) = $session->do("SET gpuhash.enabled = off; $query");
		# with the plan for the device
		$session->do("SET gpuhash.enabled = on; SET plan_cache_mode = force_generic_plan; PREPARE q AS $query; EXPLAIN EXECUTE q");
		my ($plan) = $session->do("SET $setting; EXPLAIN (COSTS OFF) EXECUTE q");
		my ($got, $err) = $session->do('EXECUTE q');
		like($plan, qr/GpuHashRows/, "$what: $name: the same plan");
		ok($err eq '' && join("\n", sort split /\n/, $got) eq join("\n", sort split /\n/, $want), "$what: $name") or diag($err);
		$session->do('DEALLOCATE q; RESET ALL');
	}
}

# ------------------------------------------------------------------- cursors

my $other = $server->session;
my $CURSOR = 'SELECT f.id, f.j, f.later, d.tags, d.v FROM f LEFT JOIN d ON d.k = f.k WHERE f.id > 50';

# What was fetched before and behind some statements, of this session or another one, sorted.
sub walked
{
	my ($declare, $between) = @_;
	my ($first, $err) = $session->do("$declare; FETCH 7 FROM c");
	is($err, '', "$declare: no error");
	$between->();
	my ($rest, $err2) = $session->do('FETCH ALL FROM c; CLOSE c');
	is($err2, '', 'nor later');
	return join("\n", sort split(/\n/, $first), split(/\n/, $rest));
}

# Updates of all kinds, and a VACUUM that must have each page to itself.
sub change
{
	my ($by, $vacuum) = @_;
	my (undef, $err) = $by->do("SET statement_timeout = '20s'; UPDATE f SET j = '{}' WHERE id % 3 = 0; UPDATE d SET tags = ARRAY['new'], k = k + 1000 WHERE k % 5 = 0 AND k < 100000; DELETE FROM f WHERE id % 7 = 0; UPDATE f SET later = '1 day' WHERE id % 2 = 0" .
		($vacuum ? '; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) f; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) d' : ''));
	is($err, '', 'the tables are changed' . ($vacuum ? ', and nothing is in the way of VACUUM' : ''));
	return;
}

sub all_rows { return join "\n", sort split /\n/, ($session->do("SET gpuhash.enabled = off; $CURSOR; SET gpuhash.enabled = on"))[0] }

is(fetched($CURSOR), 'f, d', 'tuples are fetched');
my $want = all_rows();
$session->do('BEGIN');
is(walked("DECLARE c NO SCROLL CURSOR FOR $CURSOR", sub { change($other, 1) }), $want, 'a cursor sees what was there, whatever others do');
$session->do('COMMIT');
$want = all_rows();
$session->do('BEGIN; SAVEPOINT s');
is(walked("DECLARE c NO SCROLL CURSOR FOR $CURSOR", sub { change($session, 0) }), $want, 'or this transaction itself');
$session->do('SAVEPOINT t');
$want = all_rows();
is(walked("DECLARE c SCROLL CURSOR FOR $CURSOR", sub { $session->do('MOVE ABSOLUTE 0 FROM c; MOVE 7 FROM c'); change($session, 0) }), $want, 'and of its own changes those before it');
$session->do('ROLLBACK TO s');
$want = all_rows();
is(walked("DECLARE c CURSOR WITH HOLD FOR $CURSOR", sub { $session->do('COMMIT'); change($other, 1) }), $want, 'a cursor that outlives its transaction');
$want = all_rows();
$session->do('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
change($other, 1);
my ($got) = $session->do($CURSOR);
is(join("\n", sort split /\n/, $got), $want, 'a transaction that began before the changes');
$session->do('COMMIT');
my ($again) = $session->do($CURSOR);
$want = all_rows();
is(join("\n", sort split /\n/, $again), $want, 'and one that began behind them');

# A node above is not through with a row when the cursor is left; its page is others' meanwhile.
my $LOOP = 'SELECT s.*, n FROM (SELECT f.id, f.j, f.u, d.tags FROM f JOIN d ON d.k = f.k OFFSET 0) s, LATERAL generate_series(1, 3 + s.id - s.id) n';
is(fetched($LOOP), 'f, d', 'tuples are fetched for a nested loop');
$CURSOR = $LOOP;
$want = all_rows();
$session->do('BEGIN');
is(walked("DECLARE c NO SCROLL CURSOR FOR $LOOP", sub { change($other, 1); $other->do("CREATE TABLE filler AS SELECT repeat('filler', 200) AS x FROM generate_series(1, 60000)") }), $want, 'a row that is still needed');
$session->do('COMMIT');

$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
