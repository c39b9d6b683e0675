# Aggregates whose device fails, at every request in turn and at every fault point of the service: they
# give PostgreSQL's answer, or the error that was asked for; nothing stays pinned or taken; and
# the device is used again.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time sleep);
use GpuHash::Server;
use GpuHash::Service;

if (my $reason = GpuHash::Service::why_not()) { plan skip_all => $reason }
my $fault = GpuHash::Fault->new;
if (my $reason = $fault->why_not) { plan skip_all => $reason }

my @CONF = ("gpuhash.engine = 'cuda'", 'gpuhash.force_offload = on', 'jit = off', 'autovacuum = off', 'max_parallel_workers_per_gather = 0',
	'max_worker_processes = 20', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'max_connections = 30',
	'shared_buffers = 256MB', 'enable_material = off');

# pages of few rows, so that there are many requests
my $TABLES = <<'SQL';
CREATE TABLE t (id int, g int, k int, i8 int8, n numeric(30, 5), x text) WITH (fillfactor = 10);
INSERT INTO t SELECT i, CASE WHEN i % 13 > 0 THEN i % 7 END, i * 7919 % 1500 - 300, i * i * 1000003::int8 * (i % 3 - 1), CASE i % 90 WHEN 0 THEN 'NaN' WHEN 1 THEN 9999999999999999999999999.99999 ELSE i / 7.0 END,
	CASE WHEN i % 1000 = 7 THEN repeat('long ' || i % 3, 2000) ELSE 'x' || i % 50 END FROM generate_series(1, 9000) i;
CREATE TABLE one (k int, p int, t text) WITH (fillfactor = 20);
INSERT INTO one SELECT i, CASE WHEN i % 6 > 0 THEN i * 3 END, 'name ' || i % 20 FROM generate_series(1, 9000) i;
CREATE TABLE two (k int8, p int);
INSERT INTO two SELECT i, i FROM generate_series(-300, 300) i;
ANALYZE t, one, two;
SQL

# name => SQL, settings
my %QUERY = (
	plain => ['SELECT g, count(*), sum(i8), min(k), max(id) FROM t WHERE k > -200 GROUP BY g'],
	back => ['SELECT g, x, count(*), sum(n), max(n) FROM t GROUP BY g, x'],
	no_keys => ['SELECT count(*), sum(n), sum(i8), count(x) FROM t'],
	files => ['SELECT id, x, count(*), sum(i8) FROM t GROUP BY id, x', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	join => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY one.t'],
	join_back => ['SELECT one.t, count(*), sum(t.n), sum(one.p) FROM t LEFT JOIN one ON one.k = t.k GROUP BY one.t'],
	star => ['SELECT g, count(*), sum(one.p), sum(two.p) FROM t JOIN one ON one.k = t.k LEFT JOIN two ON two.k = t.k GROUP BY g'],
	rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT g, count(*), sum(n) FROM t WHERE g < v.x GROUP BY g OFFSET 0) s'],
	awaited => ['SELECT g, count(*), sum(id) FROM t WHERE id % 2 = 0 OR k > (SELECT avg(p) FROM two) GROUP BY g'],
	parallel => ['SELECT g, count(*), sum(n), sum(i8) FROM t GROUP BY g', 'SET max_parallel_workers_per_gather = 2'],
	parallel_files => ['SELECT id, x, count(*), sum(i8) FROM t WHERE id % 7 + 0 = id % 7 GROUP BY id, x', "SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	parallel_join => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY one.t', 'SET max_parallel_workers_per_gather = 2'],
	parallel_join_back => ['SELECT g, count(*), sum(t.n), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY g', 'SET max_parallel_workers_per_gather = 2'],
);

my %want;
my $server;
my $session;

sub set { my ($name) = @_; $session->do('RESET ALL; SET client_min_messages = warning; ' . ($QUERY{$name}[1] // 'SELECT')); return }

sub answer
{
	my ($name) = @_;
	my ($out, $err) = $session->do($QUERY{$name}[0]);
	return join("\n", sort split /\n/, $out) . $err;
}

sub plan_of { my ($name) = @_; return ($session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}[0]"))[0] }

sub by_device
{
	my ($name) = @_;
	my $plan = plan_of($name);
	return $plan =~ /GpuHashAggregate.*?Engine: cuda/s && $plan !~ /Fallback Reason/;
}

# Actual rows of the nodes below, which a serial query counts the same however it was done.
sub rows_below
{
	my ($plan) = @_;
	my @nodes;
	for (split /\n/, $plan)
	{
		push @nodes, "$1 " . ($2 // 0) if /-> +(\S.*?) \((?:actual rows=(\S+) loops=\d+|never executed)\)/;
		$nodes[-1] .= " without $1" if /Rows Removed by Filter: (\d+)/ && @nodes;
	}
	return join "\n", @nodes;
}

sub begin
{
	$server->query($TABLES);
	$session = $server->session;
	for my $name (sort keys %QUERY)
	{
		set($name);
		$session->do('SET gpuhash.enabled = off');
		$want{$name} = answer($name);
	}
	return;
}

# --------------------------------------------------------- without the service

# Every request of a query in turn is the last one that succeeds.
sub fail_all_requests
{
	my ($name) = @_;
	my ($tried, @bad) = (0);
	set($name);
	my $rows = rows_below(plan_of($name));
	for (my $n = 0; $n < 1000; $n++)
	{
		$fault->fail_after($n);
		my $got = answer($name);
		my $failed = $fault->has_failed;
		$fault->repair;
		last unless $failed;
		$tried++;
		push @bad, "after $n: $got" if $got ne $want{$name};
		next if $n % 3;
		$fault->fail_after($n);
		my $plan = plan_of($name);
		$fault->repair;
		push @bad, "after $n, not:\n$rows\nbut\n" . rows_below($plan) if rows_below($plan) ne $rows && $name !~ /parallel/;
		push @bad, "after $n: $plan" if $plan !~ /Fallback Reason: (?:the test lets the device fail|no buffer for)/;
	}
	is(join("\n", @bad), '', "$name with every request failing in turn");
	return $tried;
}

sub alone
{
	$server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", @CONF]);
	begin();
	my $tried = 0;
	for my $name (grep { !/parallel/ } sort keys %QUERY)
	{
		set($name);
		ok(by_device($name), "$name is done by the device");
		$tried += fail_all_requests($name);
		ok(by_device($name), "$name is done by the device again");
	}
	note("$tried failures");
	cmp_ok($tried, '>', 60, 'enough requests failed');

	$session->do("SET gpuhash.fallback = error");
	for my $n (1, 2, 5)
	{
		$fault->fail_after($n);
		my $got = answer('plain');
		$fault->repair;
		like($got, qr/ERROR:  55000: could not aggregate on the GPU: the test lets the device fail\n.*HINT:/s, "fallback = error, request $n");
		is(answer('plain'), $want{plain}, 'and the next query is right');
	}

	# no memory for tables, or for groups, on the device
	for my $limit (qw(0 64kB 1MB))
	{
		for my $name (qw(plain files join star back))
		{
			set($name);
			$session->do("SET gpuhash.device_memory_limit = '$limit'");
			is(answer($name), $want{$name}, "device_memory_limit = $limit: $name");
		}
	}
	set('files');
	$session->do("SET gpuhash.device_memory_limit = '1MB'");
	my $plan = plan_of('files');
	like($plan, qr/Engine: cuda/, 'groups that the device has no memory for are handed back') or diag($plan);
	cmp_ok(($plan =~ /Rows Handed Back: (\d+)/)[0] // 0, '>', 100, 'many of them');
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
	$session->close;
	$server->stop;
	return;
}

# ---------------------------------------------------------------- the service

my $service;

# A fault at a point; what is wrong goes to @$bad.
sub try_fault
{
	my ($name, $point, $kind, $after, $bad) = @_;
	$service->arm($point, $kind, after => $after, ms => 3);
	my $got = answer($name);
	my $left = $service->settle;
	my $fired = $service->disarm;
	return 0 unless $fired;
	push @$bad, "$kind at $point after $after: $got" if $got ne $want{$name};
	push @$bad, "$kind at $point after $after: $left" if $left !~ $GpuHash::Service::CLEAN;
	return 1;
}

sub fail_all_points
{
	my ($name) = @_;
	my ($tried, @bad, %passages) = (0);
	my @points = qw(scan_create scan scan_results scan_table scan_stats allocation destroy reply);
	set($name);
	for my $point (@points)
	{
		$service->arm($point, 'delay', times => 1_000_000);
		push @bad, "no answer at $point" if answer($name) ne $want{$name};
		$service->settle;
		$passages{$point} = $service->disarm;
	}
	note("$name passes " . join ', ', map { "$_ $passages{$_} times" } @points);
	for my $point (grep { $passages{$_} } @points)
	{
		my %after = map { $_ => 1 } grep { $_ >= 0 && $_ < $passages{$point} } 0, 1, int($passages{$point} / 2), $passages{$point} - 1;
		for my $kind (qw(no_memory limit launch delay))
		{
			$tried += try_fault($name, $point, $kind, $_, \@bad) for sort { $a <=> $b } keys %after;
		}
	}
	is(join("\n", @bad), '', "$name with every fault that the worker survives");
	ok(by_device($name), "$name is done by the device again");
	return $tried;
}

# Faults that end the worker, which comes back.
sub end_worker
{
	my ($name, $point, $kind, $after) = @_;
	set($name);
	$session->do('BEGIN');
	$service->arm($point, $kind, after => $after, ms => 3);
	$session->do("DECLARE c CURSOR FOR $QUERY{$name}[0]");
	my ($out, $err) = $session->do('FETCH ALL FROM c');
	is(join("\n", sort split /\n/, $out) . $err, $want{$name}, "$name: $kind at $point after $after");
	cmp_ok($service->disarm, '>', 0, 'it happened');
	is_unpinned('with the cursor open');
	$session->do('COMMIT');
	ok($service->wait_ready, 'the worker is back');
	like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');
	return;
}

sub is_unpinned
{
	my ($name) = @_;
	my $other = $server->session;
	my (undef, $err) = $other->do("SET statement_timeout = '15s'; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) t; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) one");
	is($err, '', "no page is pinned $name");
	$other->close;
	return;
}

# A query that is interrupted while it waits for the device: what it says, how long it took.
sub interrupt
{
	my ($name, $point, $how) = @_;
	set($name);
	my ($pid) = $session->do('SELECT pg_backend_pid()');
	my $key = $how eq 'pg_terminate_backend' ? qr/57P01|server closed|psql ended/ : qr/ERROR:  57014/;
	$session->do("BEGIN; SAVEPOINT s" . ($how eq 'timeout' ? "; SET statement_timeout = '300ms'" : ''));
	$service->arm($point, 'delay', after => $point eq 'scan' ? 1 : 0, ms => 2500);
	my $begin = time;
	$session->send($QUERY{$name}[0]);
	sleep 0.3;
	$service->ask("SELECT $how($pid)") if $how ne 'timeout';
	my ($out, $err) = eval { $session->receive };
	$err = $@ if !defined $err;
	my $took = time - $begin;
	like($err, $key, "$name: $how while $point takes long");
	cmp_ok($took, '<', 2.2, 'at once');
	is_unpinned('in the transaction that goes on') if $how ne 'pg_terminate_backend';
	$session = $server->session if $how eq 'pg_terminate_backend';
	$session->do('ROLLBACK') if $how ne 'pg_terminate_backend';
	like($service->settle, $GpuHash::Service::CLEAN, 'and all is given back');
	cmp_ok($service->disarm, '>', 0, 'it was slow');
	set($name);
	is(answer($name), $want{$name}, 'and the next answer is right');
	return;
}

# Rows are handed back in a parallel join, and the joins' tables do not fit in memory: no statistics tell
# that before.
sub without_memory
{
	my @bad;
	$server->query('CREATE TABLE wide AS SELECT i AS k, repeat(md5(i::text), 12) AS x FROM generate_series(1, 3000) i; ALTER TABLE wide ALTER x SET STATISTICS 0; ANALYZE wide');
	$QUERY{parallel_wide} = ['SELECT wide.x, count(*), sum(t.n), sum(t.i8) FROM t LEFT JOIN wide ON wide.k = t.k GROUP BY wide.x',
		"SET max_parallel_workers_per_gather = 2; SET work_mem = '256kB'; SET hash_mem_multiplier = 1"];
	set('parallel_wide');
	$session->do('SET gpuhash.enabled = off');
	$want{parallel_wide} = answer('parallel_wide');
	set('parallel_wide');
	for (1 .. 5)
	{
		is(answer('parallel_wide'), $want{parallel_wide}, 'tables of joins that do not fit in memory');
	}
	my $plan = plan_of('parallel_wide');
	like($plan, qr/Fallback Reason: tables of joins do not fit in memory.*Partitions:/s, 'rows of the joins are read then') or diag($plan);
	for my $after (0 .. 8)
	{
		try_fault('parallel_wide', $_, 'launch', $after, \@bad) for qw(scan scan_create scan_results);
	}
	is(join("\n", @bad), '', 'and when the device fails, too');
	delete $QUERY{parallel_wide};
	return;
}

sub with_service
{
	$service = GpuHash::Service->new(conf => [@CONF, 'gpuhash.shared_memory = 64MB', "gpuhash.device_timeout = '3s'"]);
	$server = $service->server;
	ok($service->wait_ready, 'the service is ready');
	begin();
	my $tried = 0;
	$tried += fail_all_points($_) for sort keys %QUERY;
	note("$tried faults");
	cmp_ok($tried, '>', 200, 'enough faults were tried');

	without_memory();

	interrupt($_->[0], $_->[1], $_->[2]) for
		['plain', 'scan', 'pg_cancel_backend'], ['plain', 'scan', 'timeout'], ['plain', 'scan', 'pg_terminate_backend'], ['join', 'scan_table', 'pg_cancel_backend'],
		['join_back', 'scan', 'pg_cancel_backend'], ['parallel', 'scan', 'pg_cancel_backend'], ['parallel_join', 'scan', 'timeout'], ['parallel_join', 'scan', 'pg_terminate_backend'];

	$session->do("SET gpuhash.fallback = error");
	$service->arm('scan', 'launch', after => 2);
	like(answer('plain'), qr/ERROR:  \w+: could not aggregate on the GPU/, 'fallback = error');
	$service->disarm;
	like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');

	end_worker(@$_) for ['plain', 'scan', 'sticky', 3], ['join_back', 'scan_table', 'term', 0], ['parallel_join_back', 'scan', 'hang', 4];
	# the server recovers, and sessions are lost
	my $victim = $server->session;
	$service->arm('scan', 'kill', after => 4);
	my ($out, $err) = eval { $victim->do($QUERY{plain}[0]) };
	ok(!defined $out || $out eq '' || $err ne '', 'a worker that is killed costs all sessions');
	eval { $session->close };
	eval { $victim->close };
	sleep 1;
	for (1 .. 100) { last if eval { $session = $server->session; 1 }; sleep 0.2 }
	ok($service->wait_ready(60), 'the worker is back after the crash');
	is(answer('plain'), $want{plain}, 'and the answers are right');
	ok(by_device('plain'), 'by the device');
	unlike($server->log, qr/PANIC|TRAP|leak/, 'a clean log');
	$session->close;
	undef $session;
	undef $service;
	return;
}

# ------------------------------------------------------------------ no buffers

sub without_buffers
{
	$service = GpuHash::Service->new(conf => [@CONF, 'shared_buffers = 64MB', 'gpuhash.shared_memory = 2MB']);
	$server = $service->server;
	ok($service->wait_ready, 'the service is ready');
	begin();
	for my $name (sort keys %QUERY)
	{
		set($name);
		is(answer($name), $want{$name}, "$name without buffers");
	}
	set('plain');
	like(plan_of('plain'), qr/Engine: cpu.*Fallback Reason: no buffer for transfers/s, 'EXPLAIN tells why');
	cmp_ok($service->ask('SELECT fallbacks_no_buffers FROM gpuhash_stat'), '>', 0, 'gpuhash_stat counts them');
	$session->do("SET gpuhash.fallback = error");
	like(answer('plain'), qr/HINT:  Raise "gpuhash.shared_memory"/, 'fallback = error');
	$session->close;
	undef $session;
	undef $service;
	return;
}

# Rows that are handed back are looked for where they were, under a snapshot that has become too old meanwhile.
sub too_old
{
	$service = GpuHash::Service->new(conf => [@CONF, 'old_snapshot_threshold = 0', 'gpuhash.register_buffers = off']);
	$server = $service->server;
	ok($service->wait_ready, 'the service is ready');
	begin();
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
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
	$_->close for $other, $session;
	undef $session;
	undef $service;
	return;
}

my $parts = $ENV{GPUHASH_WITH} // 'alone service small old';
alone() if $parts =~ /alone/;
undef $fault;
with_service() if $parts =~ /service/;
without_buffers() if $parts =~ /small/;
# 17 has no such snapshots any more
my ($major) = `'@{[ GpuHash::Server::bindir() ]}/postgres' --version` =~ / (\d+)/;
too_old() if $parts =~ /old/ && $major < 17;
done_testing();
