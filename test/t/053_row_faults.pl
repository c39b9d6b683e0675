# Rows of joins from a device that fails, at every request in turn and at every fault point of the
# service (GpuHash::FaultRun); that has no memory or no buffers; and queries that end before all rows are out.
use GpuHash::Test 'module';
use Time::HiRes 'sleep';
use GpuHash::FaultRun;
use GpuHash::Service;

my @CONF = (@GpuHash::FaultRun::CONF, 'gpuhash.shared_memory = 64MB', "gpuhash.device_timeout = '3s'");
# what a wide row has, which programs do not hold, is compressed, or lies in another table
my $WIDE = "jsonb_build_object('k', i, 'list', CASE WHEN i % 5 > 0 THEN jsonb_build_array(i % 3, NULL) END) AS j, CASE WHEN i % 4 > 0 THEN ARRAY[i, NULL] END AS a, " .
	"CASE i % 70 WHEN 0 THEN (SELECT string_agg(md5((i + n)::text), '') FROM generate_series(1, 150) n) WHEN 1 THEN repeat('b', 3000) ELSE 'b' || i END AS big";
my $TABLES = "$GpuHash::FaultRun::TABLES CREATE TABLE wt WITH (fillfactor = 20) AS SELECT i AS id, i % 9 AS g, i * 7919 % 1500 - 300 AS k, CASE i % 90 WHEN 0 THEN 'NaN' ELSE i / 7.0 END::numeric(20, 5) AS n, $WIDE FROM generate_series(1, 3000) i; " .
	"CREATE TABLE w1 AS SELECT i AS k, i % 6 AS g, '10.0.0.0'::inet + i AS ip, $WIDE FROM generate_series(1, 900) i; ALTER TABLE w1 ADD later interval DEFAULT '3 days', ADD PRIMARY KEY (k); ANALYZE wt, w1; ALTER TABLE one ADD PRIMARY KEY (k); ALTER TABLE two ADD PRIMARY KEY (k); CREATE TABLE many AS SELECT i % 400 AS k, i AS p FROM generate_series(1, 1000) i; ALTER TABLE many ALTER k SET (n_distinct = -1); ANALYZE many;";
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2';

# name => SQL, settings
my %QUERY = (
	join => ['SELECT t.id, t.i8, one.t FROM t JOIN one ON one.k = t.k WHERE t.g < 5'],
	back => ['SELECT t.id, t.n, t.x, one.p FROM t JOIN one ON one.k = t.k'],
	left => ['SELECT t.id, t.n * 2, two.p, t.x FROM t LEFT JOIN two ON two.k = t.k WHERE t.id > 3000'],
	star => ['SELECT t.id, one.p, two.p FROM t JOIN one ON one.k = t.k LEFT JOIN two ON two.k = t.k'],
	semi => ['SELECT t.id, t.g FROM t WHERE EXISTS (SELECT FROM one WHERE one.k = t.k AND one.p > 30)'],
	anti => ['SELECT t.id, t.x FROM t WHERE NOT EXISTS (SELECT FROM two WHERE two.k = t.k)'],
	# several rows of a key, which is not expected
	many => ['SELECT t.id, t.g, many.p, two.p FROM t JOIN many ON many.k = t.k LEFT JOIN two ON two.k = t.k'],
	# tuples that are fetched when rows come out: of the outer side, of inner ones, of both, and not of all
	fetched => ['SELECT wt.id, wt.j, wt.big, two.p FROM wt JOIN two ON two.k = wt.k WHERE wt.g < 4'],
	fetched_inner => ['SELECT wt.id, w1.ip, w1.j, w1.later FROM wt LEFT JOIN w1 ON w1.k = wt.k'],
	fetched_both => ['SELECT wt.*, one.t, w1.* FROM wt JOIN w1 ON w1.k = wt.k LEFT JOIN one ON one.k = w1.g'],
	fetched_back => ['SELECT wt.n, wt.id, w1.* FROM wt LEFT JOIN w1 ON w1.k = wt.k WHERE wt.n > 3'],
	fetched_files => ['SELECT wt.j, wt.id, wt.k, w1.big, w1.a FROM wt LEFT JOIN w1 ON w1.k = wt.k', "SET work_mem = '64kB'"],
	fetched_rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT wt.id, wt.a, w1.later FROM wt JOIN w1 ON w1.k = wt.k WHERE wt.g < v.x OFFSET 0) s'],
	parallel_fetched => ['SELECT wt.id, wt.j, w1.big, w1.ip FROM wt LEFT JOIN w1 ON w1.k = wt.k', $PARALLEL],
	parallel_fetched_back => ['SELECT wt.n, wt.big, w1.j FROM wt JOIN w1 ON w1.k = wt.k WHERE wt.n > 3', $PARALLEL],
	# rows without columns
	none => ['SELECT 1 FROM t JOIN two ON two.k = t.k WHERE t.g < 3'],
	files => ['SELECT t.id, t.i8, t.k, t.g, one.t, one.p FROM t JOIN one ON one.k = t.k', "SET work_mem = '64kB'"],
	rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT t.id, t.n, two.p FROM t JOIN two ON two.k = t.k WHERE t.g < v.x OFFSET 0) s'],
	rescan_many => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT t.id, many.p FROM t JOIN many ON many.k = t.k WHERE t.g < v.x OFFSET 0) s'],
	ordered => ['SELECT t.id, one.t FROM t JOIN one ON one.k = t.k ORDER BY one.t DESC, t.id LIMIT 100'],
	# those that an ORDER BY ... LIMIT does not want stay on the device
	first => ['SELECT t.id, t.i8, one.t FROM t JOIN one ON one.k = t.k ORDER BY t.i8 DESC, t.id LIMIT 10'],
	first_back => ['SELECT t.id, t.n, t.x, one.p FROM t JOIN one ON one.k = t.k ORDER BY t.n DESC NULLS LAST, t.id LIMIT 10 OFFSET 3'],
	# but for those that are too many
	first_all => ['SELECT t.id, one.p FROM t JOIN one ON one.k = t.k ORDER BY one.p, t.id LIMIT 3000000000 OFFSET 100'],
	first_half => ['SELECT t.id, one.p FROM t JOIN one ON one.k = t.k ORDER BY one.p, t.id LIMIT 4000'],
	first_half_fetched => ['SELECT wt.j, wt.g + 1, w1.ip FROM wt JOIN w1 ON w1.k = wt.k ORDER BY wt.id * 2 LIMIT 700'],
	first_ties => ['SELECT t.id, one.p FROM t JOIN one ON one.k = t.k ORDER BY one.p FETCH FIRST 5 ROWS WITH TIES'],
	first_null => ['SELECT t.id, t.g, two.p FROM t LEFT JOIN two ON two.k = t.k ORDER BY t.g NULLS FIRST, t.id DESC LIMIT 7'],
	first_many => ['SELECT t.id, many.p FROM t JOIN many ON many.k = t.k ORDER BY many.p, t.id LIMIT 6'],
	first_computed => ['SELECT t.id, t.k * 2 - one.p, t.id % 7 FROM t JOIN one ON one.k = t.k ORDER BY 2, 1 LIMIT 9'],
	first_fetched => ['SELECT wt.id, wt.j, wt.big, w1.ip FROM wt LEFT JOIN w1 ON w1.k = wt.k ORDER BY wt.k DESC, wt.id LIMIT 5'],
	first_rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT t.id, t.i8, two.p FROM t JOIN two ON two.k = t.k WHERE t.g < v.x ORDER BY t.i8, t.id LIMIT 5) s'],
	first_parameter => ['EXECUTE first(4)', "DEALLOCATE ALL; SET plan_cache_mode = force_generic_plan; PREPARE first(int) AS SELECT t.id, t.i8 FROM t JOIN one ON one.k = t.k ORDER BY t.i8, t.id LIMIT \$1 OFFSET \$1"],
	parallel_first => ['SELECT t.id, t.i8, one.t FROM t JOIN one ON one.k = t.k ORDER BY t.i8 DESC, t.id LIMIT 10', $PARALLEL],
	parallel_first_back => ['SELECT t.id, t.n, one.p FROM t LEFT JOIN one ON one.k = t.k ORDER BY t.n NULLS FIRST, t.id LIMIT 10', $PARALLEL],
	parallel => ['SELECT t.id, t.i8, one.t FROM t JOIN one ON one.k = t.k', $PARALLEL],
	parallel_back => ['SELECT t.id, t.n, t.x, one.p FROM t LEFT JOIN one ON one.k = t.k', $PARALLEL],
	parallel_many => ['SELECT t.id, t.i8, many.p FROM t LEFT JOIN many ON many.k = t.k', $PARALLEL],
	parallel_star => ['SELECT t.id, one.p, two.p FROM t LEFT JOIN one ON one.k = t.k JOIN two ON two.k = t.k', $PARALLEL],
);

my $run = GpuHash::FaultRun->new(node => 'GpuHashRows', tables => $TABLES, vacuumed => [qw(t one two wt w1)], queries => \%QUERY);
my $service;

# ----------------------------------------------------------------- early ends

# A projection above that fails for a row, in every process.
sub error_above
{
	my ($name, $from) = @_;
	my $session = $run->{session};
	$run->set($name);
	my ($out, $err) = $session->do("BEGIN; SAVEPOINT s; SELECT t.id, 1 / (t.id - 4567) $from");
	like($err, qr/ERROR:  22012: division by zero/, "$name: an error above");
	$run->is_unpinned('in the transaction that goes on');
	like($service->settle, $GpuHash::Service::CLEAN, 'and all is given back');
	$session->do('ROLLBACK');
	return;
}

# Whether EXPLAIN tells of tuples that are fetched.
sub fetches
{
	my ($name, $whether) = @_;
	my ($plan) = $run->{session}->do("EXPLAIN (VERBOSE, COSTS OFF) $QUERY{$name}[0]");
	my $told = $plan =~ /Tuples Fetched From: / ? 1 : 0;
	is($told, $whether, "$name: whether tuples are fetched") or diag($plan);
	return;
}

# Whether EXPLAIN tells of rows that an ORDER BY ... LIMIT leaves on the device.
sub leaves
{
	my ($name) = @_;
	my $plan = $run->plan_of($name);
	my ($collected, $first) = $plan =~ /Collect \(rows=(\d+)\), First \(rows=(\d+)\)/;
	cmp_ok($first // 1e9, '<', ($collected // 0) / 2, "$name: most rows are not collected") or diag($plan);
	like($plan, qr/Rows Left on Device: [1-9]/, "$name: they are left there");
	return;
}

# What PostgreSQL computes of rows that are not wanted is not lost.
sub computed_of_unwanted
{
	my $session = $run->{session};
	my $limit = 'FROM t JOIN one ON one.k = t.k ORDER BY t.i8 DESC, t.id LIMIT 3';
	$run->set('first');
	for my $computed ('1 / (t.id - 4567)', 'CASE WHEN t.id = 4567 THEN t.i8 / (t.k - t.k) END', '(9223372036854775807 - t.id) + 4566')
	{
		my ($out, $err) = $session->do("SELECT t.id, t.i8, $computed $limit");
		like($err, qr/ERROR:  22/, "$computed: an error of a row that is not wanted");
	}
	my ($out, $err) = $session->do("SELECT t.id FROM t JOIN one ON one.k = t.k ORDER BY 1 / (t.id - 4567), t.id LIMIT 3");
	like($err, qr/ERROR:  22012/, 'and of the order itself');
	# it says that it is cheap, so that it is computed below the sort
	$session->do('CREATE SEQUENCE calls; CREATE FUNCTION called(int) RETURNS int LANGUAGE plpgsql IMMUTABLE COST 1 AS $$BEGIN PERFORM nextval(\'calls\'); RETURN $1; END$$');
	my @calls;
	for my $enabled (qw(off on))
	{
		($out) = $session->do("SET gpuhash.enabled = $enabled; SELECT setval('calls', 1); SELECT t.id, called(t.id) $limit; SELECT last_value FROM calls");
		push @calls, $out;
	}
	is($calls[1], $calls[0], "a user's function is called for all rows");
	$session->do('DROP FUNCTION called; DROP SEQUENCE calls');
	return;
}

# Rows that are left out do not raise errors, and neither do those after the last one that is asked for.
sub unwanted_errors
{
	my $session = $run->{session};
	$run->set('join');
	my ($out, $err) = $session->do('SELECT count(*) FROM (SELECT 1 / (t.id - 8000) FROM t JOIN one ON one.k = t.k WHERE t.id < 8000) s');
	is($err, '', 'no error of rows that are left out');
	($out, $err) = $session->do('SELECT 1 / (t.id - 8999) FROM t JOIN one ON one.k = t.k LIMIT 3');
	is($err, '', 'no error of rows behind a LIMIT');
	return;
}

# The same query a thousand times: memory of the session does not grow.
sub leaks
{
	my $session = $run->{session};
	my $used = 'SELECT sum(used_bytes) FROM pg_backend_memory_contexts';
	for my $name (qw(join back rescan files parallel fetched_both fetched_rescan parallel_fetched first first_rescan parallel_first))
	{
		$run->set($name);
		my $times = $name =~ /parallel|rescan/ ? 15 : 40;
		my $many = join '; ', ("SELECT count(*) FROM ($QUERY{$name}[0] OFFSET 0) s") x $times;
		$session->do($many);
		my ($before) = $session->do($used);
		$session->do($many);
		my ($after) = $session->do($used);
		cmp_ok($after, '<', $before + 100 * 1024, "$name: no memory is lost in $times queries");
	}
	like($service->settle, $GpuHash::Service::CLEAN, 'nor anything of the service');
	return;
}

# ---------------------------------------------------------------- the service

sub with_service
{
	$service = GpuHash::Service->new(conf => \@CONF);
	ok($service->wait_ready, 'the service is ready');
	$run->begin($service->server, service => $service);
	my $session = $run->{session};
	for my $name (sort keys %QUERY)
	{
		$run->set($name);
		ok($run->by_device($name), "$name is done by the device") or diag($run->plan_of($name));
		fetches($name, $name =~ /fetched/ ? 1 : 0);
		leaves($name) if $name =~ /first(?!_half|_all)/;
	}
	my $tried = 0;
	$tried += $run->fail_all_points($_) for sort keys %QUERY;
	note("$tried faults");
	cmp_ok($tried, '>', 400, 'enough faults were tried');

	without_memory();
	many_back();
	$run->left_early('join', 'CLOSE', 'CLOSE c');
	$run->left_early('back', 'ROLLBACK TO SAVEPOINT', 'ROLLBACK TO s');
	$run->left_early('fetched_both', 'CLOSE of one whose tuples are fetched', 'CLOSE c');
	$run->left_early('star', 'an error', 'SELECT 1 / 0', 'ROLLBACK TO s');
	$run->left_early('files', 'CLOSE of one with files', 'CLOSE c');
	error_above('join', 'FROM t JOIN one ON one.k = t.k');
	error_above('parallel', 'FROM t LEFT JOIN one ON one.k = t.k');
	unwanted_errors();
	computed_of_unwanted();
	leaks();

	$run->interrupt(@$_) for
		['join', 'scan', 'pg_cancel_backend'], ['join', 'scan', 'timeout'], ['join', 'scan', 'pg_terminate_backend'], ['back', 'scan_results', 'pg_cancel_backend'],
		['star', 'scan_table', 'timeout'], ['parallel', 'scan', 'pg_cancel_backend'], ['parallel_star', 'scan_results', 'timeout'], ['parallel_back', 'scan', 'pg_terminate_backend'];

	$run->fallback_is_error('join', qw(scan scan_results));
	$session = $run->{session};
	# no memory for tables, or for rows, on the device
	$session->do("ALTER SYSTEM SET gpuhash.device_memory_limit = '$_'; SELECT pg_reload_conf()"), limited($_) for qw(64kB 1MB);
	$session->do('ALTER SYSTEM RESET gpuhash.device_memory_limit; SELECT pg_reload_conf()');

	$run->end_worker(@$_) for ['join', 'scan', 'sticky', 3], ['back', 'scan_table', 'term', 0], ['parallel_back', 'scan', 'hang', 4], ['star', 'scan_results', 'sticky', 0];
	$run->kill_worker('join');
	$run->end;
	undef $service;
	return;
}

# Rows are handed back in a parallel join, and the joins' tables do not fit in memory: no statistics tell
# that before.
sub without_memory
{
	my @bad;
	my $name = 'parallel_wide';
	$run->{server}->query('CREATE TABLE wide AS SELECT i AS k, repeat(md5(i::text), 12) AS x FROM generate_series(1, 3000) i; ALTER TABLE wide ADD PRIMARY KEY (k); ALTER TABLE wide ALTER x SET STATISTICS 0; ANALYZE wide');
	$QUERY{$name} = ['SELECT t.id, t.n, t.x, wide.x FROM t LEFT JOIN wide ON wide.k = t.k', "$PARALLEL; SET work_mem = '256kB'; SET hash_mem_multiplier = 1"];
	$run->ask($name);
	$run->set($name);
	for (1 .. 5)
	{
		ok($run->answer($name) eq $run->{want}{$name}, 'tables of joins that do not fit in memory');
	}
	my $plan = $run->plan_of($name);
	like($plan, qr/GpuHashRows.*Fallback Reason: tables of joins do not fit in memory.*Partitions:/s, 'rows of the joins are passed on then') or diag($plan);
	for my $after (0 .. 8)
	{
		$run->try_fault($name, $_, 'launch', $after, \@bad) for qw(scan scan_create scan_results);
	}
	is(scalar @bad, 0, 'and when the device fails, too') or diag(substr(join("\n", @bad), 0, 2000));
	delete $QUERY{$name};
	return;
}

# Rows that have several matches are handed back: they are joined on the host.
sub many_back
{
	my @bad;
	for my $name (qw(many_back parallel_many_back))
	{
		$QUERY{$name} = ['SELECT t.id, t.n, many.p FROM t LEFT JOIN many ON many.k = t.k', $name =~ /parallel/ ? $PARALLEL : 'SELECT'];
		$run->ask($name);
		$run->set($name);
		$run->is_right($name, "$name is right");
		ok($run->by_device($name), "$name is done by the device all the same") or diag($run->plan_of($name));
		for my $after (0 .. 9)
		{
			$run->try_fault($name, $_, 'launch', $after, \@bad) for qw(scan scan_table scan_results);
		}
		delete $QUERY{$name};
	}
	is(scalar @bad, 0, 'and when the device fails, too') or diag(substr(join("\n", @bad), 0, 2000));
	return;
}

sub limited
{
	my ($limit) = @_;
	# until every process has read it
	sleep 0.3;
	for my $name (qw(join back files star parallel parallel_back fetched_both fetched_back parallel_fetched_back))
	{
		$run->set($name);
		$run->is_right($name, "device_memory_limit = $limit: $name");
	}
	$run->set('star');
	my $plan = $run->plan_of('star');
	like($plan, $limit eq '64kB' ? qr/Fallback Reason: .*(?:memory|limit)/ : qr/GpuHashRows/, 'EXPLAIN tells why') or diag($plan);
	return;
}

sub without_buffers
{
	$service = GpuHash::Service->new(conf => [@CONF, 'shared_buffers = 64MB', 'gpuhash.shared_memory = 2MB']);
	ok($service->wait_ready, 'the service is ready');
	$run->begin($service->server, service => $service);
	for my $name (sort keys %QUERY)
	{
		$run->set($name);
		$run->is_right($name, "$name without buffers");
	}
	$run->set('join');
	like($run->plan_of('join'), qr/GpuHashRows.*Fallback Reason: no buffer for transfers/s, 'EXPLAIN tells why');
	$run->end;
	undef $service;
	return;
}

my $parts = $ENV{GPUHASH_WITH} // 'service small';
with_service() if $parts =~ /service/;
without_buffers() if $parts =~ /small/;
done_testing();
