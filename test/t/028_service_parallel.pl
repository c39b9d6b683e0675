# Joins of the participants of a parallel query with one table on the GPU: faults of the
# device in every phase, cancels at any moment; then nothing is left over of device
# memory, buffers, dynamic shared memory and temporary files.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $seed = seed();

my $CLEAN = $GpuHash::Service::CLEAN;
# dynamic shared memory is in files, to be counted
my $service = GpuHash::Service->new(conf => [
	'max_parallel_workers_per_gather = 3', 'max_parallel_workers = 8', 'max_worker_processes = 16', 'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'dynamic_shared_memory_type = mmap', 'hash_mem_multiplier = 1', 'gpuhash.enable_rows = off']);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
my $version = $server->query('SHOW server_version_num');
$server->query(<<'SQL');
CREATE TABLE o AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 31::bigint) % 7000 END AS k, 'key ' || i % 9000 AS t FROM generate_series(1, 20000) i;
CREATE TABLE i AS SELECT i AS id, CASE WHEN i % 13 = 0 THEN NULL ELSE (i * 17::bigint) % 9000 END AS k, 'key ' || i % 10000 AS t FROM generate_series(1, 12000) i;
CREATE TABLE u AS SELECT i AS k, CASE WHEN i % 5 > 0 THEN i * 3 END AS v, i * 5 AS w, CASE i WHEN 11900 THEN 3 ELSE i END AS late FROM generate_series(1, 12000) i;
ALTER TABLE o ADD k4 int GENERATED ALWAYS AS (k) STORED;
ALTER TABLE i ADD k4 int GENERATED ALWAYS AS (k) STORED;
ANALYZE o, i, u;
SQL

my %QUERY = (
	inner => 'SELECT o.id, i.id, i.t FROM o JOIN i ON i.k = o.k',
	left => 'SELECT o.id, i.id, i.t FROM o LEFT JOIN i ON i.k = o.k AND i.id > 500',
	text => 'SELECT o.id, i.id FROM o JOIN i ON i.t = o.t AND i.k <> o.k',
	full => 'SELECT o.id, i.id FROM o FULL JOIN i ON i.k = o.k AND i.id < 9000',
	columns => 'SELECT o.id, u.v FROM o LEFT JOIN u ON u.k = o.k AND u.v > o.id',
	columns_late => 'SELECT o.id, u.v FROM o JOIN u ON u.late = o.k',
	anti => 'SELECT o.id FROM o WHERE NOT EXISTS (SELECT 1 FROM i WHERE i.k = o.k)',
	two => 'SELECT o.id, i.id, j.id FROM o JOIN i ON i.k = o.k LEFT JOIN i j ON j.t = o.t',
	short => 'SELECT o.id, i.id, i.t FROM o LEFT JOIN i ON i.k4 = o.k4',
	short_columns => 'SELECT o.id, u.w FROM o LEFT JOIN u ON u.k = o.k4 AND u.w > o.id',
	short_columns_late => 'SELECT o.id, u.w FROM o JOIN u ON u.late = o.k4',
	files => 'SELECT o.id, i.id, i.t FROM o LEFT JOIN i ON i.k = o.k');
my @NAMES = sort keys %QUERY;
sub settings { my ($name) = @_; return 'SET work_mem = ' . ($name eq 'files' ? "'64kB'" : "'4MB'") }

my $session = $server->session;
my %want;
sub run_query
{
	my ($name) = @_;
	$session->do(settings($name) . '; SET parallel_leader_participation = ' . (rand() < 0.5 ? 'on' : 'off'));
	return GpuHash::Service::digest($session, $QUERY{$name});
}
$session->do('SET gpuhash.enabled = off; SET max_parallel_workers_per_gather = 0');
$want{$_} = run_query($_) for @NAMES;
$session->do('RESET gpuhash.enabled; RESET max_parallel_workers_per_gather');

# What is taken of everything, after a moment if need be.  The server has segments of its
# own, for statistics, which may grow a little.
my $own_segments = 4;
sub left_over
{
	my $left = $service->settle;
	return $left if $left !~ $CLEAN;
	my $deadline = time + 10;
	my ($files, $segments);
	do
	{
		sleep 0.01 if defined $files;
		$files = $service->ask('SELECT count(*) FROM pg_ls_tmpdir()');
		$segments = $service->ask("SELECT count(*) FROM pg_ls_dir('pg_dynshmem')");
	} while (($files > 0 || $segments > $own_segments) && time < $deadline);
	return '' if $files == 0 && $segments <= $own_segments;
	return "$files temporary files, $segments segments";
}

# ------------------------------------------------- on the GPU, by all of them
for my $name (@NAMES)
{
	$session->do(settings($name));
	my ($plan) = $session->do("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $QUERY{$name}");
	if ($name eq 'full' && $version < 160000) { like($plan, qr/GpuHashJoin/, "$name") }
	else { like($plan, qr/Parallel Custom Scan \(GpuHashJoin\)/, "$name is parallel") }
	like($plan, qr/Engine: cuda/, "$name is done on the GPU");
	like($plan, qr/Partitions: \d+\n/, 'in partitions') if $name eq 'files';
	like($plan, qr/Table Values: columns/, 'its values are columns') if $name eq 'columns';
	like($plan, qr/Table Values: rows/, 'its values are references') if $name eq 'columns_late';
	is(run_query($name), $want{$name}, "$name is right");
}
$own_segments = 2 + $server->query("SELECT count(*) FROM pg_ls_dir('pg_dynshmem')");
is(left_over(), '', 'nothing is left over');

# --------------------------------------------------- faults of the device
my ($tried, $bad) = (0, '');
my @points = grep { !/^(?:any|open|register|pool|scan.*|reserve|flush|upsert|add|find_all|delete|insert)$/ } split /,/,
	$service->ask("SELECT gpuhash_fault_list('points')");
for my $name (@NAMES)
{
	for my $point (@points)
	{
		for my $kind (qw(no_memory launch delay))
		{
			for my $after (0, 1 + int(rand(30)))
			{
				# one request fails, or all from then on
				$service->arm($point, $kind, after => $after, ms => 3, times => rand() < 0.5 ? 1 : $kind eq 'delay' ? 3 : 100000);
				my $got = run_query($name);
				my $left = left_over();
				$tried++ if $service->disarm;
				$bad .= "$name, $kind at $point after $after: $got $left\n" if $got ne $want{$name} || $left ne '';
			}
		}
	}
}
is($bad, '', 'every fault that the worker survives');
cmp_ok($tried, '>', 100, 'enough of them');

$server->query("ALTER SYSTEM SET gpuhash.device_timeout = '400ms'; SELECT pg_reload_conf()");
$tried = 0;
$bad = '';
for my $kind (qw(sticky term hang))
{
	for my $point (qw(create exchange find))
	{
		my $name = $NAMES[int(rand(@NAMES))];
		$service->arm($point, $kind, after => int(rand(4)));
		my $got = run_query($name);
		my $left = left_over();
		$tried++ if $service->disarm;
		$bad .= "$name, $kind at $point: $got $left\n" if $got ne $want{$name} || $left ne '';
		$bad .= "$kind at $point: no worker came back\n" if !$service->wait_ready(15);
	}
}
is($bad, '', 'the worker ends in the middle');
cmp_ok($tried, '>', 4, 'as it was told to');
$server->query("ALTER SYSTEM RESET gpuhash.device_timeout; SELECT pg_reload_conf()");

# What users see of it.
$session->do(settings('inner') . '; SET parallel_leader_participation = on');
$service->arm('exchange', 'launch', after => 1, times => 100000);
my ($out) = $session->do("EXPLAIN (ANALYZE, COSTS OFF) $QUERY{inner}");
like($out, qr/Engine: cpu\n.*Inner Rows: 11077\n.*Fallback Reason: fault point: the device failed/s, 'a failure while rows are entered');
$service->arm('find', 'launch', after => 3, times => 100000);
($out) = $session->do("EXPLAIN (ANALYZE, COSTS OFF) $QUERY{inner}");
like($out, qr/Engine: cpu\n.*Fallback Reason: fault point: the device failed/s, 'a failure while the table is probed');
$service->arm('find', 'launch', after => 3, times => 100000);
my (undef, $err) = $session->do("SET gpuhash.fallback = 'error'; $QUERY{inner}");
like($err, qr/ERROR:  55000: could not join through the hash table: fault point: the device failed\n/, 'fallback = error');
$service->disarm;
$session->do('RESET gpuhash.fallback');
is(left_over(), '', 'nothing is left over of an error');

# Participants that could not take part in the device's table have nothing left there: the
# one that makes the next table, and one that does not.  Each has inner rows, for they wait in
# between.  Who returns rows is past all that.
$session->do(settings('inner') . '; SET parallel_leader_participation = on; SET max_parallel_workers_per_gather = 2');
$service->arm('stats', 'launch', times => 2);
$session->send('SELECT count(CASE WHEN o.id > 19985 THEN pg_sleep(0.2)::text END) FROM o JOIN (SELECT k FROM i WHERE id % 1000 > 0 OR pg_sleep(0.1) IS NOT NULL) i ON i.k = o.k');
my $returns = "SELECT gpuhash_fault_fired() > 0 AND EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')";
for (1 .. 500) { last if $service->ask($returns) eq 't'; sleep 0.01 }
like($service->leftovers, qr/^buffers 0,/, 'nothing there while the CPU engine has the table');
(undef, $err) = $session->receive;
is($service->disarm, 2, 'two had failed');
is($err, '', 'the query goes on');
$session->do('RESET max_parallel_workers_per_gather');

# ------------------------------------------------------------------ cancels
my %outcome = (cancelled => 0, answered => 0);
$bad = '';
for my $try (1 .. 120)
{
	my $name = $NAMES[int(rand(@NAMES))];
	my $ms = 1 + int(rand(rand() < 0.5 ? 12 : 60));
	$session->do("SET gpuhash.engine = " . (rand() < 0.5 ? 'cuda' : 'cpu') . "; SET statement_timeout = $ms");
	my $got = run_query($name);
	$session->no_timeout;
	# PostgreSQL takes a time-out that comes while it parses the statement for a user's request
	if ($got =~ /ERROR:  57014: canceling statement due to (statement timeout|user request)\n/) { $outcome{cancelled}++ }
	elsif ($got eq $want{$name}) { $outcome{answered}++ }
	else { $bad .= "$name cancelled after $ms ms: $got\n" }
	next if $try % 10;
	my $left = left_over();
	$bad .= "left over after cancels: $left\n" if $left ne '';
}
is($bad, '', 'cancelled at any moment');
note("$outcome{cancelled} cancelled, $outcome{answered} answered");
cmp_ok($outcome{cancelled}, '>', 20, 'many were cancelled');

# A worker of the query is ended: the query ends with an error, or had its answer.  One that
# was about to start is reported by PostgreSQL in other words.
$bad = '';
my $other = $server->session;
$session->do('SET gpuhash.engine = cuda; SET parallel_leader_participation = on');
for my $try (1 .. 20)
{
	my $name = $NAMES[int(rand(@NAMES))];
	$session->do(settings($name));
	$session->send(GpuHash::Service::digest_sql($QUERY{$name}));
	for (1 .. 20)
	{
		my ($ended) = $other->do("SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1) w");
		last if $ended > 0;
		sleep 0.002;
	}
	my ($answer, $message) = $session->receive;
	$bad .= "$name: $answer $message\n" if $answer ne $want{$name} && $message !~ /57P01|parallel worker failed to initialize/;
	my $left = left_over();
	$bad .= "left over after $name: $left\n" if $left ne '';
}
is($bad, '', 'workers of queries ended');
is(run_query($_), $want{$_}, "$_ is right after all that") for @NAMES;

$other->close;
$session->close;
like($service->settle, $CLEAN, 'nothing is left over');
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
