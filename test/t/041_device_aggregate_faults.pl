# Aggregates whose device fails, at every request in turn and at every fault point of the service
# (GpuHash::FaultRun), and when it has no memory or no buffers.
use GpuHash::Test 'module';
use Time::HiRes 'sleep';
use GpuHash::FaultRun;
use GpuHash::Service;

my $fault = GpuHash::Fault->needed;

my @CONF = @GpuHash::FaultRun::CONF;

# name => SQL, settings
my %QUERY = (
	plain => ['SELECT g, count(*), sum(i8), min(k), max(id) FROM t WHERE k > -200 GROUP BY g'],
	back => ['SELECT g, x, count(*), sum(n), max(n) FROM t GROUP BY g, x'],
	distinct => ['SELECT DISTINCT g, x, n FROM t'],
	sets => ['SELECT g, x, count(*), sum(n), max(n), GROUPING(x) FROM t GROUP BY CUBE (g, x)'],
	no_keys => ['SELECT count(*), sum(n), sum(i8), count(x) FROM t'],
	files => ['SELECT id, x, count(*), sum(i8) FROM t GROUP BY id, x', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	having => ['SELECT id, k, count(*), sum(i8), max(k) FROM t WHERE k IS NOT NULL GROUP BY id, k HAVING sum(i8) > 100 AND max(k) % 3 = 0', 'SET gpuhash.batch_rows = 256'],
	distinct_there => ['SELECT g, count(DISTINCT id), sum(i8), count(*) FROM t GROUP BY g HAVING count(DISTINCT id) > 700', 'SET gpuhash.batch_rows = 256'],
	several_there => ['SELECT g, count(DISTINCT id), count(DISTINCT i8) FILTER (WHERE k > 0), sum(DISTINCT k), sum(i8), count(*) FROM t GROUP BY g', 'SET gpuhash.batch_rows = 256'],
	several_files => ['SELECT k, count(DISTINCT id), count(DISTINCT x), sum(n) FROM t GROUP BY k', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	sets_there => ['SELECT k, g, count(*), sum(i8) FROM t GROUP BY GROUPING SETS ((k), (g, k), (g), ())', 'SET gpuhash.batch_rows = 256'],
	limit => ['SELECT id, k, sum(i8) FROM t GROUP BY id, k ORDER BY sum(i8) DESC, id LIMIT 10', 'SET gpuhash.batch_rows = 256'],
	nested => ['SELECT c, count(*), max(m) FROM (SELECT id, k, max(i8) % 7 + count(*) AS c, min(k) AS m FROM t GROUP BY id, k) q GROUP BY c', 'SET gpuhash.batch_rows = 256'],
	nested_all => ['SELECT c, count(*), count(DISTINCT m) FROM (SELECT k, max(i8) % 700 AS c, count(DISTINCT id) AS m FROM t GROUP BY k HAVING max(i8) IS NOT NULL) q GROUP BY c ORDER BY 2 DESC, 1 LIMIT 5', 'SET gpuhash.batch_rows = 64'],
	shared => ['WITH w AS (SELECT id, k, sum(i8) AS s FROM t GROUP BY id, k) SELECT id, s FROM w WHERE s = (SELECT max(s) FROM w)', 'SET gpuhash.batch_rows = 256'],
	shared_rows => ['WITH w AS (SELECT id % 700 AS m, sum(i8) AS s, count(*) AS c FROM t GROUP BY 1) SELECT a.m, a.s, b.c FROM w a JOIN w b ON a.m = b.m + 1'],
	shared_join => ['WITH w AS (SELECT id, one.t, sum(i8) AS s FROM t JOIN one ON one.k = t.k GROUP BY id, one.t) SELECT t, s FROM w WHERE s = (SELECT min(s) FROM w)', 'SET gpuhash.batch_rows = 256'],
	shared_back => ['WITH w AS (SELECT id, k, sum(n) AS s FROM t GROUP BY id, k) SELECT id, s FROM w WHERE s = (SELECT max(s) FROM w)', 'SET gpuhash.batch_rows = 256'],
	join => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY one.t'],
	join_back => ['SELECT one.t, count(*), sum(t.n), sum(one.p) FROM t LEFT JOIN one ON one.k = t.k GROUP BY one.t'],
	star => ['SELECT g, count(*), sum(one.p), sum(two.p) FROM t JOIN one ON one.k = t.k LEFT JOIN two ON two.k = t.k GROUP BY g'],
	rows => ['SELECT t.g, count(*), sum(t.i8), sum(s.c) FROM t LEFT JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = t.k GROUP BY t.g'],
	rows_back => ['SELECT g, count(*), sum(t.n), sum(s.c) FROM t JOIN (SELECT k, count(*) AS c FROM many GROUP BY k OFFSET 0) s ON s.k = t.k GROUP BY g'],
	rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT g, count(*), sum(n) FROM t WHERE g < v.x GROUP BY g OFFSET 0) s'],
	rescan_many => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT g, count(*), sum(many.p) FROM t JOIN many ON many.k = t.k WHERE g < v.x GROUP BY g OFFSET 0) s'],
	parts => ['SELECT g, count(*), sum(n), max(id) FROM parts GROUP BY g'],
	parts_join => ['SELECT one.t, count(*), sum(p.n), sum(one.p) FROM parts p LEFT JOIN one ON one.k = p.k WHERE p.id > 50 GROUP BY one.t'],
	parts_rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT g, count(*), sum(many.p) FROM parts p JOIN many ON many.k = p.k WHERE g < v.x GROUP BY g OFFSET 0) s'],
	awaited => ['SELECT g, count(*), sum(id) FROM t WHERE id % 2 = 0 OR k > (SELECT avg(p) FROM two) GROUP BY g'],
	parallel => ['SELECT g, count(*), sum(n), sum(i8) FROM t GROUP BY g', 'SET max_parallel_workers_per_gather = 2'],
	parallel_distinct => ['SELECT DISTINCT one.t, g FROM t JOIN one ON one.k = t.k', 'SET max_parallel_workers_per_gather = 2'],
	parallel_sets => ['SELECT g, x, count(*), sum(i8) FROM t GROUP BY ROLLUP (g, x)', 'SET max_parallel_workers_per_gather = 2'],
	parallel_files => ['SELECT id, x, count(*), sum(i8) FROM t WHERE id % 7 + 0 = id % 7 GROUP BY id, x', "SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	parallel_join => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY one.t', 'SET max_parallel_workers_per_gather = 2'],
	parallel_right => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t RIGHT JOIN one ON one.k = t.k GROUP BY one.t', 'SET max_parallel_workers_per_gather = 2'],
	parallel_parts => ['SELECT g, count(*), sum(n), sum(i8) FROM parts GROUP BY g', 'SET max_parallel_workers_per_gather = 2'],
	parallel_parts_join => ['SELECT g, count(*), sum(p.n), sum(one.p) FROM parts p JOIN one ON one.k = p.k GROUP BY g', 'SET max_parallel_workers_per_gather = 2'],
	parallel_join_back => ['SELECT g, count(*), sum(t.n), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY g', 'SET max_parallel_workers_per_gather = 2'],
);

my $TABLES = "$GpuHash::FaultRun::TABLES CREATE TABLE many AS SELECT i % 400 AS k, i AS p FROM generate_series(1, 1000) i; ANALYZE many;
CREATE TABLE parts (LIKE t) PARTITION BY HASH (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO parts SELECT * FROM t;
ANALYZE parts;";
my $run = GpuHash::FaultRun->new(node => 'GpuHashAggregate', tables => $TABLES, queries => \%QUERY);

sub alone
{
	my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", @CONF]);
	$run->begin($server, fault => $fault);
	my $session = $run->{session};
	my $tried = 0;
	for my $name (grep { !/parallel/ } sort keys %QUERY)
	{
		$run->set($name);
		ok($run->by_device($name), "$name is done by the device");
		$tried += $run->fail_all_requests($name);
		ok($run->by_device($name), "$name is done by the device again");
	}
	note("$tried failures");
	cmp_ok($tried, '>', 60, 'enough requests failed');

	$session->do("SET gpuhash.fallback = error");
	for my $n (1, 2, 5)
	{
		$fault->fail_after($n);
		my $got = $run->answer('plain');
		$fault->repair;
		like($got, qr/ERROR:  55000: could not aggregate on the GPU: the test lets the device fail\n.*HINT:/s, "fallback = error, request $n");
		$run->is_right('plain', 'and the next query is right');
	}

	# no memory for tables, or for groups, on the device
	for my $limit (qw(0 64kB 1MB))
	{
		for my $name (qw(plain files join star back))
		{
			$run->set($name);
			$session->do("SET gpuhash.device_memory_limit = '$limit'");
			$run->is_right($name, "device_memory_limit = $limit: $name");
		}
	}
	$run->set('files');
	$session->do("SET gpuhash.device_memory_limit = '1MB'");
	my $plan = $run->plan_of('files');
	like($plan, qr/Engine: cuda/, 'groups that the device has no memory for are handed back') or diag($plan);
	cmp_ok(($plan =~ /Rows Handed Back: (\d+)/)[0] // 0, '>', 100, 'many of them');
	unlike($server->log, qr/terminated by signal/, 'nothing crashed');
	$run->end;
	return;
}

# Rows are handed back in a parallel join, and the joins' tables do not fit in memory: no statistics tell
# that before.
sub without_memory
{
	my @bad;
	$run->{server}->query('CREATE TABLE wide AS SELECT i AS k, repeat(md5(i::text), 12) AS x FROM generate_series(1, 3000) i; ALTER TABLE wide ALTER x SET STATISTICS 0; ANALYZE wide');
	$QUERY{parallel_wide} = ['SELECT wide.x, count(*), sum(t.n), sum(t.i8) FROM t LEFT JOIN wide ON wide.k = t.k GROUP BY wide.x',
		"SET max_parallel_workers_per_gather = 2; SET work_mem = '256kB'; SET hash_mem_multiplier = 1"];
	$run->ask('parallel_wide');
	$run->set('parallel_wide');
	$run->is_right('parallel_wide', 'tables of joins that do not fit in memory') for 1 .. 5;
	my $plan = $run->plan_of('parallel_wide');
	like($plan, qr/Fallback Reason: tables of joins do not fit in memory.*Partitions:/s, 'rows of the joins are read then') or diag($plan);
	for my $after (0 .. 8)
	{
		$run->try_fault('parallel_wide', $_, 'launch', $after, \@bad) for qw(scan scan_create scan_results);
	}
	is(join("\n", @bad), '', 'and when the device fails, too');
	delete $QUERY{parallel_wide};
	return;
}

sub with_service
{
	my $service = GpuHash::Service->new(conf => [@CONF, 'gpuhash.shared_memory = 64MB', "gpuhash.device_timeout = '3s'"]);
	ok($service->wait_ready, 'the service is ready');
	$run->begin($service->server, service => $service);
	my $tried = 0;
	for my $name (qw(having distinct_there several_there sets_there limit nested nested_all))
	{
		$run->set($name);
		like($run->plan_of($name), qr/Groups Left on Device: [1-9]/, "groups of $name stay on the device");
	}
	$tried += $run->fail_all_points($_) for sort keys %QUERY;
	note("$tried faults");
	cmp_ok($tried, '>', 200, 'enough faults were tried');

	without_memory();

	# of participants, EXPLAIN has the reason of the one that failed
	$run->set('parallel_right');
	my @reasons;
	for my $after (0 .. 5, 0 .. 5, 0 .. 5, 0 .. 5, 0 .. 5)
	{
		$service->arm('scan', 'launch', after => $after);
		push @reasons, $run->plan_of('parallel_right') =~ /Fallback Reason: (.*)/;
		$service->disarm;
	}
	unlike(join("\n", @reasons), qr/another process/, 'the reason of who failed is shown');
	cmp_ok(scalar @reasons, '>', 0, 'it did fail');

	$run->interrupt(@$_) for
		['plain', 'scan', 'pg_cancel_backend'], ['plain', 'scan', 'timeout'], ['plain', 'scan', 'pg_terminate_backend'], ['join', 'scan_table', 'pg_cancel_backend'],
		['join_back', 'scan', 'pg_cancel_backend'], ['parallel', 'scan', 'pg_cancel_backend'], ['parallel_join', 'scan', 'timeout'], ['parallel_join', 'scan', 'pg_terminate_backend'];

	$run->{session}->do("SET gpuhash.fallback = error");
	$service->arm('scan', 'launch', after => 2);
	like($run->answer('plain'), qr/ERROR:  \w+: could not aggregate on the GPU/, 'fallback = error');
	$service->disarm;
	like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');

	$run->end_worker(@$_) for ['plain', 'scan', 'sticky', 3], ['join_back', 'scan_table', 'term', 0], ['parallel_join_back', 'scan', 'hang', 4];
	$run->kill_worker('plain');
	$run->end;
	return;
}

sub without_buffers
{
	my $service = GpuHash::Service->new(conf => [@CONF, 'shared_buffers = 64MB', 'gpuhash.shared_memory = 2MB']);
	ok($service->wait_ready, 'the service is ready');
	$run->begin($service->server, service => $service);
	for my $name (sort keys %QUERY)
	{
		$run->set($name);
		$run->is_right($name, "$name without buffers");
	}
	$run->set('plain');
	like($run->plan_of('plain'), qr/Engine: cpu.*Fallback Reason: no buffer for transfers/s, 'EXPLAIN tells why');
	cmp_ok($service->ask('SELECT fallbacks_no_buffers FROM gpuhash_stat'), '>', 0, 'gpuhash_stat counts them');
	$run->{session}->do("SET gpuhash.fallback = error");
	like($run->answer('plain'), qr/HINT:  Raise "gpuhash.shared_memory"/, 'fallback = error');
	$run->end;
	return;
}

# Of participants, those that find no buffer leave the pages to the others.
sub with_few_buffers
{
	my $service = GpuHash::Service->new(conf => [@CONF, 'gpuhash.shared_memory = 8MB', 'gpuhash.register_buffers = off']);
	ok($service->wait_ready, 'the service is ready');
	$run->begin($service->server, service => $service);
	for my $name (qw(parallel_join parallel_join_back))
	{
		$run->set($name);
		$run->{session}->do('SET max_parallel_workers_per_gather = 6');
		# each takes long enough for others to find its buffers taken
		$service->arm('scan', 'delay', times => 10000, ms => 20);
		my ($right, $plan) = (0, '');
		for my $round (1 .. 3)
		{
			$plan = $run->plan_of($name);
			$right++ if $plan =~ /Workers Launched: 6/ && $plan =~ /GpuHashAggregate.*?Engine: cuda/s && $plan !~ /Fallback Reason/;
		}
		$service->disarm;
		is($right, 3, "$name is done by the device, with buffers for few") or diag($plan);
		$run->is_right($name, "$name with few buffers");
	}
	$run->end;
	return;
}

# Rows that are handed back are looked for where they were, under a snapshot that has become too old meanwhile.
sub too_old
{
	my $service = GpuHash::Service->new(conf => [@CONF, 'old_snapshot_threshold = 0', 'gpuhash.register_buffers = off']);
	ok($service->wait_ready, 'the service is ready');
	$run->begin($service->server, service => $service);
	my ($server, $session) = @$run{qw(server session)};
	# no page is read after the request
	$server->query(q{CREATE TABLE few AS SELECT i, 'NaN'::numeric(30, 5) AS n FROM generate_series(1, 60) i});
	$session->do('RESET ALL; SET gpuhash.fallback = error');
	my $other = $server->session;
	$service->arm('scan', 'delay', ms => 9000);
	$session->send('SELECT count(*), sum(n) FROM few');
	sleep 1;
	$other->do('DELETE FROM few');
	sleep 5.5;
	$other->do('VACUUM few');
	my ($out, $err) = $session->receive;
	like($err, qr/ERROR:  72000: snapshot too old/, 'a snapshot that became too old is an error');
	cmp_ok($service->disarm, '>', 0, 'it was slow');
	unlike($server->log, qr/terminated by signal/, 'nothing crashed');
	$other->close;
	$run->end;
	return;
}

my $parts = $ENV{GPUHASH_WITH} // 'alone service small few old';
alone() if $parts =~ /alone/;
undef $fault;
with_service() if $parts =~ /service/;
without_buffers() if $parts =~ /small/;
with_few_buffers() if $parts =~ /few/;
# 17 has no such snapshots any more
my ($major) = `'@{[ GpuHash::Server::bindir() ]}/postgres' --version` =~ / (\d+)/;
too_old() if $parts =~ /old/ && $major < 17;
done_testing();
