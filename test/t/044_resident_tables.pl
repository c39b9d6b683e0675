# Tables of joins that stay on the device are used again while the rows that they were made of are the same, and only then:
# answers are PostgreSQL's in the same snapshot.  In the place of the CUDA engine there is a stand-in (test/fault), unless
# GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use Time::HiRes 'sleep';
use GpuHash::Resident 'well';
use GpuHash::Service;

my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'max_worker_processes = 16']);
my $server = $service->server;
my ($session, $other) = GpuHash::Resident::sessions($service);

# facts f, dimensions d and e
sub make_tables
{
	well($other, <<'SQL');
DROP TABLE IF EXISTS f, d, e;
CREATE TABLE f AS SELECT i AS id, i % 700 AS k, i % 40 AS j, i::bigint * 3 AS v FROM generate_series(1, 4000) i;
CREATE TABLE d (k int, p int, t text) WITH (autovacuum_enabled = off);
INSERT INTO d SELECT i, i * 7, CASE WHEN i % 9 > 0 THEN 'name ' || i % 30 END FROM generate_series(1, 600) i;
CREATE TABLE e AS SELECT i AS j, i * 2 AS q FROM generate_series(1, 30) i;
VACUUM ANALYZE f; VACUUM ANALYZE d; VACUUM ANALYZE e
SQL
	return;
}

my $STAR = 'SELECT d.t, count(*), sum(d.p), sum(e.q), sum(f.v) FROM f JOIN d ON d.k = f.k JOIN e ON e.j = f.j GROUP BY d.t';
my $LEFT = 'SELECT f.id % 50 AS g, count(d.p), sum(d.p) FROM f LEFT JOIN d ON d.k = f.k GROUP BY f.id % 50';

# How many tables of a run were there before it.
sub used
{
	my ($in, $sql) = @_;
	my $plan = well($in, "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql");
	like($plan, qr/Engine: cuda/, 'it is done by the device') or diag($plan);
	return $plan =~ /Resident Tables: (\d+)/ ? $1 : "none: $plan";
}

sub is_right
{
	my ($in, $sql, $what) = @_;
	my $answer = GpuHash::Resident::compare($in, queries => { query => $sql });
	is($answer->{wrong}, '', "$what: PostgreSQL's answer");
	return;
}

# Runs it several times: with so many tables that were there each time, and PostgreSQL's answer.
sub runs
{
	my ($what, $sql, @tables) = @_;
	for my $run (0 .. $#tables)
	{
		is(used($session, $sql), $tables[$run], "$what: run $run");
	}
	is_right($session, $sql, $what);
	return;
}

# ------------------------------------------------------------------ used again
make_tables();
runs('a star', $STAR, 0, 2, 2);
runs('another aggregate over the same tables', 'SELECT e.q, count(d.t), sum(d.p) FROM f JOIN d ON d.k = f.k JOIN e ON e.j = f.j GROUP BY e.q', 2);
runs('a left join', $LEFT, 0, 1);
runs('a right join', 'SELECT d.t, count(f.id), count(d.k), sum(f.v) FROM f RIGHT JOIN d ON d.k = f.k GROUP BY d.t', 0, 1, 1);
runs('a semi join', 'SELECT f.j, count(*) FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k AND d.p > 70) GROUP BY f.j', 0, 1);
runs('rows of a join, with the table of the star', 'SELECT f.id, d.t, d.p FROM f JOIN d ON d.k = f.k', 1, 1);
runs('an empty table', 'SELECT f.j, count(d.k) FROM f LEFT JOIN d ON d.k = f.k AND d.p < 0 GROUP BY f.j', 0, 1);
is(well($other, "SELECT count(*) FROM gpuhash_resident WHERE relation = 'd'::regclass AND tables >= 5 AND table_bytes > 0"), 1, 'the view shows them');
my $DEEP = 'SELECT f.id % 50 AS g, count(s.q), sum(s.q), sum(s.p) FROM f LEFT JOIN (SELECT d.k, d.p, e.q FROM d JOIN e ON e.j = d.k WHERE d.p > 20) s ON s.k = f.k GROUP BY 1';
runs('an inner side that is a join: first with the table of the star', $DEEP, 1, 1, 1);
well($other, 'UPDATE e SET q = q + 1; VACUUM e');
runs('and of which the inner one has changed', $DEEP, 0, 1);
well($other, 'UPDATE d SET p = p + 1; VACUUM d');
runs('and the outer one', $DEEP, 1, 1);

# ---------------------------------------------------------- values of parameters
well($session, 'PREPARE one(int) AS SELECT f.j, count(*), sum(d.p) FROM f JOIN d ON d.k = f.k AND d.p > $1 GROUP BY f.j; SET plan_cache_mode = force_generic_plan');
is(used($session, 'EXECUTE one(100)'), 0, 'a parameter: first');
is(used($session, 'EXECUTE one(100)'), 1, 'a parameter: the same value');
is(used($session, 'EXECUTE one(101)'), 0, 'a parameter: another value');
for my $value (100, 101, 2000)
{
	my ($got) = well($session, "EXECUTE one($value)");
	my ($want) = well($other, "SELECT f.j, count(*), sum(d.p) FROM f JOIN d ON d.k = f.k AND d.p > $value GROUP BY f.j");
	is(join("\n", sort split /\n/, $got), join("\n", sort split /\n/, $want), "a parameter: $value");
}
is_right($session, 'SELECT v.x, s.* FROM (VALUES (10), (500), (10)) v(x), LATERAL (SELECT f.j, count(*), sum(d.p) FROM f JOIN d ON d.k = f.k AND d.p > v.x GROUP BY f.j OFFSET 0) s', 'lateral rescans');

# ------------------------------------------------------------------- changes
sub changed
{
	my ($what, $sql, @tables) = @_;
	well($other, $_) for split /; /, $sql;
	runs($what, $LEFT, @tables);
	return;
}
changed('an update', 'UPDATE d SET p = p + 1 WHERE k % 100 = 3', 0, 0);
changed('a vacuum', 'VACUUM d', 0, 1);
changed('an update and a vacuum', 'UPDATE d SET p = p + 1 WHERE k % 100 = 3; VACUUM d', 0, 1);
changed('a delete', 'DELETE FROM d WHERE k = 5', 0, 0);
changed('a vacuum of it', 'VACUUM d', 0, 1);
changed('an insert, into a page that is not marked then', "INSERT INTO d VALUES (650, 1, 'new')", 0, 1, 1);
changed('another one', "INSERT INTO d VALUES (651, 1, 'new')", 0, 1);
changed('a row of it that is locked', 'SELECT 1 FROM d WHERE k = 651 FOR UPDATE', 0);
changed('and deleted', 'DELETE FROM d WHERE k = 651', 0, 0);
changed('more pages than are asked', "ALTER TABLE d ALTER t SET STORAGE PLAIN; INSERT INTO d SELECT i, i, repeat('x', 6000) FROM generate_series(1000, 1140) i; ANALYZE d", 0, 0);
changed('and marked again', 'DELETE FROM d WHERE k >= 1000; VACUUM d', 0, 1);
changed('a vacuum with freezing', 'VACUUM (FREEZE) d', 0, 1);
changed('more pages', "INSERT INTO d SELECT i, i, 'more' FROM generate_series(601, 699) i; VACUUM d", 0, 1);
changed('CLUSTER', 'CREATE INDEX d_k ON d (k); CLUSTER d USING d_k; VACUUM d', 0, 1);
changed('TRUNCATE and rows as before', 'TRUNCATE d; INSERT INTO d SELECT i, i * 8, NULL FROM generate_series(1, 600) i; VACUUM d', 0, 1);
changed('a column that is added', 'ALTER TABLE d ADD COLUMN z int', 0, 1);
changed('a table of that name', "DROP TABLE d; CREATE TABLE d AS SELECT i AS k, i AS p, 'x' AS t FROM generate_series(1, 600) i; VACUUM ANALYZE d", 0, 1);
cmp_ok(well($other, "SELECT tables FROM gpuhash_resident WHERE relation = 'd'::regclass"), '<', 3, 'those of rows as they were have gone');

# COPY leaves pages behind its rows (from 16 on) that are new until somebody puts rows there
make_tables();
well($other, 'TRUNCATE d');
well($other, "COPY (SELECT i, i * 7, repeat('x', 500) FROM generate_series(1, 600) i) TO PROGRAM 'cat >copied.tmp'; COPY d FROM PROGRAM 'cat copied.tmp'; VACUUM (TRUNCATE off, ANALYZE) d");
my $NEW = "SELECT pg_relation_size('d') / 8192 - 1 - max(split_part(trim('()' FROM ctid::text), ',', 1)::int) FROM d";
cmp_ok(well($other, $NEW), '>', 0, 'there are pages that are new') if well($other, "SELECT current_setting('server_version_num')::int >= 160000") eq 't';
runs('a table with new pages', $LEFT, 0, 1, 1);
# a scan that marks pages, as from PostgreSQL 19 on, changes them
changed('which get rows', "INSERT INTO d SELECT i, 1, repeat('y', 500) FROM generate_series(601, 650) i; SELECT count(*) FROM d", 0, 1);

# the rows of an open transaction, which are this one's alone
well($session, 'BEGIN; UPDATE d SET p = -p WHERE k < 100');
is(used($session, $LEFT), 0, 'own changes: no table of before');
is(GpuHash::Resident::compare($session, open => 1, queries => { query => $LEFT })->{wrong}, '', 'own changes');
well($session, 'ROLLBACK');
is_right($session, $LEFT, 'rolled back');
well($other, 'VACUUM d');

# an old snapshot, and rows that are newer
well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before = well($session, "SELECT md5(string_agg(r::text, ';' ORDER BY r::text)) FROM ($LEFT) r");
well($other, 'UPDATE d SET p = p + 5; VACUUM d');
my $third = $server->session;
is_right($third, $LEFT, 'a new snapshot');
is(well($session, "SELECT md5(string_agg(r::text, ';' ORDER BY r::text)) FROM ($LEFT) r"), $before, 'an old snapshot sees what it did');
is(GpuHash::Resident::compare($session, open => 1, queries => { query => $LEFT })->{wrong}, '', "an old snapshot: PostgreSQL's answer");
well($session, 'COMMIT');
well($other, 'VACUUM d');
runs('a new snapshot', $LEFT, 0, 1);

# --------------------------------------------------------------- where none stays
well($session, 'BEGIN ISOLATION LEVEL SERIALIZABLE');
is(used($session, $LEFT), 0, 'none is used by a serializable transaction');
well($session, 'COMMIT; SET gpuhash.enable_resident = off');
runs('without enable_resident', $LEFT, 0, 0);
well($session, 'RESET gpuhash.enable_resident');
runs('with it', $LEFT, 1);
well($other, 'CREATE UNLOGGED TABLE u AS TABLE d; VACUUM u');
runs('an unlogged table', $LEFT =~ s/JOIN d /JOIN u d /r, 0, 0);
well($session, 'CREATE TEMP TABLE w AS TABLE d; VACUUM w');
runs('a temporary table', $LEFT =~ s/JOIN d /JOIN w d /r, 0, 0);
well($other, "UPDATE d SET t = repeat(md5(k::text), 200) WHERE k = 7; VACUUM d");
is_right($session, $STAR, 'a table with a row that is handed back');

# ---------------------------------------------- others, workers, memory, the proof
make_tables();
well($session, 'RESET ALL');
my @sessions = map { $server->session } 1 .. 8;
used($_, $STAR) for @sessions;
is(used($_, $STAR), 2, 'another session uses them') for @sessions;
is_right($_, $STAR, 'another session') for @sessions;
$_->close for @sessions;

# ------------------------------------------------------------ by several processes
make_tables();
# a session that is, or is not, in a parallel query
my %WAY = (parallel => 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET gpuhash.device_page_cost = 0; SET gpuhash.device_bus_cost = 0; SET gpuhash.device_start_cost = 0', serial => 'RESET ALL; SET max_parallel_workers_per_gather = 0');
sub runs_as
{
	my ($way, $what, $sql, @tables) = @_;
	well($session, $WAY{$way});
	my $plan = well($session, "EXPLAIN $sql");
	$way eq 'parallel' ? like($plan, qr/Workers Planned: 2/, "$what: in parallel") : unlike($plan, qr/Workers/, "$what: not in parallel");
	runs("$what, $way", $sql, @tables);
	well($session, 'RESET ALL');
	return;
}
my $parallel_right = well($session, "SELECT current_setting('server_version_num')::int >= 160000") eq 't';
my $RIGHT = 'SELECT d.t, count(f.id), count(d.k), sum(f.v) FROM f RIGHT JOIN d ON d.k = f.k GROUP BY d.t';
runs_as('parallel', 'a star', $STAR, 0, 2, 2);
runs_as('serial', 'a star that was joined in parallel', $STAR, 2);
runs_as('serial', 'a left join', $LEFT, 0, 1);
runs_as('parallel', 'a left join that was there', $LEFT, 1, 1);
runs_as('parallel', 'an inner side that is a join, first with the table of the star', $DEEP, 1, 1, 1);
runs_as('serial', 'an inner side that is a join, which was made in parallel', $DEEP, 1);
runs_as('parallel', 'a right join', $RIGHT, 0, 1, 1);
runs_as('parallel', 'an empty table', 'SELECT f.j, count(d.k) FROM f LEFT JOIN d ON d.k = f.k AND d.p < 0 GROUP BY f.j', 0, 1, 1);
well($session, $WAY{parallel});
is_right($session, 'SELECT f.j, count(d.k) FROM f JOIN d ON d.k = f.k AND d.p < -1 GROUP BY f.j', 'no rows, by an empty table') for 1 .. 3;
for my $change (['an update', 'UPDATE d SET p = p + 1 WHERE k % 100 = 3', 0, 0], ['a vacuum', 'VACUUM d', 0, 1], ['a row', "INSERT INTO d VALUES (650, 1, 'new')", 0, 1], ['more pages', "INSERT INTO d SELECT i, i, 'more' FROM generate_series(601, 699) i; VACUUM d", 0, 1])
{
	my ($what, $sql, @tables) = @$change;
	well($other, $_) for split /; /, $sql;
	runs_as('parallel', "a left join after $what", $LEFT, @tables);
	# before 16 that is a left join of the other table, with the one that has not changed as its inner side
	runs_as('parallel', "a right join after $what", $RIGHT, $parallel_right ? @tables : (1) x @tables);
	well($session, $WAY{parallel});
	is_right($session, $DEEP, "an inner side that is a join, after $what") for 1, 2;
	well($session, 'RESET ALL');
}
well($session, "$WAY{parallel}; BEGIN; UPDATE d SET p = -p WHERE k < 100");
is(GpuHash::Resident::compare($session, open => 1, queries => { query => $LEFT })->{wrong}, '', 'own changes, in parallel');
well($session, 'ROLLBACK; RESET ALL');
is_right($session, $LEFT, 'rolled back');
well($other, "VACUUM d; UPDATE d SET t = repeat(md5(k::text), 200) WHERE k = 7; VACUUM d");
well($session, $WAY{parallel});
is_right($session, $STAR, 'a table with a row that is handed back, in parallel') for 1, 2;
# a request fails, or the worker ends, while they use what has stayed
make_tables();
well($session, $LEFT) for 1, 2;
$service->arm('scan', 'launch', times => 1);
is_right($session, $LEFT, 'in parallel, a request fails');
cmp_ok($service->disarm, '>', 0, 'it has failed');
runs_as('parallel', 'a left join after that', $LEFT, 1, 1);
well($session, $WAY{parallel});
$service->arm('scan', 'term', times => 1);
is_right($session, $LEFT, 'in parallel, the worker ends');
$service->disarm;
ok($service->wait_ready, 'there is another worker');
runs_as('parallel', 'a left join after the worker', $LEFT, 0, 1);

# one that is held goes when it is left
well($session, "BEGIN; DECLARE c CURSOR FOR SELECT f.id, d.t FROM f JOIN d ON d.k = f.k; FETCH 1 FROM c");
well($other, 'UPDATE d SET p = p + 1');
is(scalar(() = well($session, 'FETCH ALL FROM c') =~ /^/mg), 4000 - 1 - well($other, 'SELECT count(*) FROM f WHERE k NOT BETWEEN 1 AND 600'), 'a cursor over a table that has changed');
well($session, 'COMMIT');
well($other, 'VACUUM d');
is_right($session, $STAR, 'after the cursor');

my ($worker) = values %{ { $service->workers } };
kill TERM => $worker;
for (1 .. 500) { last if !GpuHash::Server::runs($worker); sleep 0.02 }
is_right($session, $STAR, 'the worker has ended');
ok($service->wait_ready, 'there is another worker');
runs('after the worker', $STAR, 0, 2);

GpuHash::Resident::configure($session, 'gpuhash.resident_memory', 0);
runs('without memory for them', $STAR, 0, 0);
GpuHash::Resident::configure($session, 'gpuhash.resident_memory', -1);
runs('with memory', $STAR, 2 - 2 * !well($session, "SELECT sum(tables) FROM gpuhash_resident WHERE relation::text IN ('d', 'e')"), 2);

# many more than there may be: those of which each is another one do not drive out what is there
my $OTHERS = 'SELECT f.j, count(*) FROM f JOIN d ON d.k = f.k AND d.p <> %d GROUP BY f.j';
used($session, sprintf $OTHERS, $_) for 1 .. 300;
runs('after many others', $STAR, 2, 2);
is(well($other, 'SELECT sum(tables) FROM gpuhash_resident'), 256, 'there are no more than 256');
# those that are made for the second time do: the oldest go
is(used($session, sprintf $OTHERS, 300), 0, 'one that had no room is made again');
is(used($session, sprintf $OTHERS, 300), 1, 'and then it stays');
for my $again (1, 2) { used($session, sprintf $OTHERS, $_) for 301 .. 560 }
runs('after many others that were made twice', $STAR, 0, 0, 2);
is(well($other, 'SELECT sum(tables) FROM gpuhash_resident'), 256, 'there are no more than 256 yet');

# a relation that is dropped takes its tables with it, when somebody looks
my $MEMORY = "SELECT (SELECT sum(memory_resident) FROM gpuhash_devices WHERE engine = 'cuda') - (SELECT coalesce(sum(bytes), 0) FROM gpuhash_resident)";
sub memory_is_free
{
	my ($what) = @_;
	my $bytes;
	for (1 .. 200)
	{
		well($other, 'SELECT count(*) FROM gpuhash_resident');
		last if ($bytes = well($other, $MEMORY)) == 0;
		sleep 0.02;
	}
	is($bytes, 0, $what) if $service->{fault};
	return;
}
well($other, 'DROP TABLE f, d, e');
memory_is_free('dropped relations have no tables on the device');

# others have the memory before them
make_tables();
well($other, 'CREATE TABLE wide AS SELECT i AS k, i::bigint AS a FROM generate_series(1, 400000) i; VACUUM ANALYZE wide');
GpuHash::Resident::configure($session, 'gpuhash.device_memory_limit', 9);
my %NEEDS = (
	'a join' => 'SELECT count(*), sum(y.a) FROM wide x JOIN (SELECT * FROM wide WHERE k <= 390000 OFFSET 0) y ON y.k = x.k',
	groups => 'SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c, sum(a) AS s FROM wide GROUP BY k OFFSET 0) g');
# Its plan, where no memory that stays is its own.
sub plan_of
{
	my ($name) = @_;
	well($session, "SET gpuhash.enable_resident = off; SET work_mem = '256MB'; SET gpuhash.enable_scan = off; SET gpuhash.enable_aggregate = " . ($name eq 'groups' ? 'on' : 'off'));
	my $plan = well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $NEEDS{$name}");
	well($session, 'RESET ALL');
	return $plan;
}
for my $name (sort keys %NEEDS)
{
	my @plans = plan_of($name);
	used($session, "SELECT f.j, count(*), sum(d.p) FROM f JOIN d ON d.k = f.k AND d.p <> $_ GROUP BY f.j") for 1 .. 40;
	cmp_ok(well($other, $MEMORY), '>', 500_000, "$name: tables stay") if $service->{fault};
	push @plans, plan_of($name);
	my @memory = map { join ', ', /(Engine: \w+|Device Memory: .*|Fallback Reason: .*)/g } @plans;
	is($memory[1], $memory[0], "$name has as much memory as without them") or diag("@plans");
}
GpuHash::Resident::configure($session, 'gpuhash.device_memory_limit', -1);

# without the look at the map, or at pages that it has not marked, a table is used whose rows have changed
my %CHANGE = (resident_map => 'UPDATE d SET p = p + 1; VACUUM d', resident_heap => "INSERT INTO d VALUES (651, 1, 'new')");
for my $point (sort keys %CHANGE)
{
	for my $armed (0, 1)
	{
		make_tables();
		well($other, "INSERT INTO d VALUES (650, 1, 'new')") if $point eq 'resident_heap';
		used($session, $LEFT);
		well($other, $_) for split /; /, $CHANGE{$point};
		$service->arm($point, 'launch', times => 1 << 30) if $armed;
		my $answer = GpuHash::Resident::compare($session, queries => { query => $LEFT });
		cmp_ok($service->fired, '>', 0, "$point: the look is left out") if $armed;
		$service->disarm if $armed;
		$armed ? isnt($answer->{wrong}, '', "$point: left out, it is found") : is($answer->{wrong}, '', "$point: looked at, there is no difference");
	}
}

$_->close for $session, $other, $third;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
undef $server;
$service->stop;
done_testing();
