# Scans by a device that fails, at every request in turn and at every fault point of the service
# (GpuHash::FaultRun): the same rows in the same order; and scans that end before all rows are out.
use GpuHash::Test 'module';
use GpuHash::FaultRun;
use GpuHash::Service;

my @CONF = (@GpuHash::FaultRun::CONF, 'gpuhash.shared_memory = 64MB', "gpuhash.device_timeout = '3s'");
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2';

# name => SQL, settings
my %QUERY = (
	plain => ['SELECT id, i8, g FROM t WHERE k > -200'],
	few => ['SELECT id, x FROM t WHERE id % 1000 = 7'],
	back => ['SELECT id, n, x, ctid FROM t WHERE n > 5 AND x <> \'x3\''],
	whole => ['SELECT t, xmin IS NULL FROM t WHERE i8 > 0'],
	# a condition without a program
	rest => ['SELECT id FROM t WHERE k > 0 AND length(upper(x)) = 3'],
	limit => ['SELECT id, k FROM t WHERE g > 2 LIMIT 2500'],
	awaited => ['SELECT id, g FROM t WHERE k > (SELECT avg(p) / 20 FROM one)'],
	rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT id, n FROM t WHERE g < v.x OFFSET 0) s'],
	above => ['SELECT g, string_agg(x, \',\'), count(*) FROM t WHERE n > 5 GROUP BY g ORDER BY g'],
	native => ['SELECT t.id, one.t FROM t JOIN one ON one.k = t.k WHERE t.g < 5 AND one.p > 30', 'SET gpuhash.enable_join = off'],
	# those that an ORDER BY ... LIMIT does not want do not come out
	first => ['SELECT id, i8, k FROM t ORDER BY i8 DESC, id LIMIT 10'],
	first_back => ['SELECT id, n, x FROM t WHERE k > -200 ORDER BY n DESC, id LIMIT 10 OFFSET 3'],
	first_computed => ['SELECT id, k * 2 + id % 7, x FROM t WHERE g > 2 ORDER BY 2, 1 LIMIT 7'],
	first_rescan => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT id, i8 FROM t WHERE g < v.x ORDER BY i8, id LIMIT 5) s'],
	parallel_first => ['SELECT id, i8 FROM t WHERE k > -200 ORDER BY i8, id LIMIT 10', $PARALLEL],
	parallel => ['SELECT id, i8, g FROM t WHERE k > -200', $PARALLEL],
	parallel_back => ['SELECT id, n, x FROM t WHERE n > 5 AND x <> \'x3\'', $PARALLEL],
);

my $run = GpuHash::FaultRun->new(node => 'GpuHashScan', in_order => 1, vacuumed => [qw(t one two)], queries => \%QUERY);
my $service;

# --------------------------------------------------------- without the service

sub alone
{
	my $fault = GpuHash::Fault->new;
	return note($fault->why_not) if $fault->why_not;
	my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", @CONF[0 .. $#CONF - 2]]);
	$run->begin($server, fault => $fault);
	my $tried = 0;
	for my $name (grep { !/parallel/ } sort keys %QUERY)
	{
		$run->set($name);
		ok($run->by_device($name), "$name is done by the device") or diag($run->plan_of($name));
		like($run->plan_of($name), qr/Rows Left Out: \d{3}/, "$name: rows are left out") if $name =~ /first/;
		$tried += $run->fail_all_requests($name);
		ok($run->by_device($name), "$name is done by the device again");
	}
	note("$tried failures");
	cmp_ok($tried, '>', 60, 'enough requests failed');
	$run->end;
	return;
}

# ---------------------------------------------------------------- the service

# Rows up to the fault have come out: those that follow it are right, too, and none comes twice.
sub fail_midway
{
	my ($name) = @_;
	my $session = $run->{session};
	my @bad;
	$run->set($name);
	for my $rows (1, 200, 3000)
	{
		for my $kind (qw(launch no_memory))
		{
			$session->do("BEGIN; DECLARE c NO SCROLL CURSOR FOR $QUERY{$name}[0]");
			my ($first) = $session->do("FETCH $rows FROM c");
			$service->arm('scan', $kind);
			my ($last, $err) = $session->do('FETCH ALL FROM c; CLOSE c; COMMIT');
			$service->disarm;
			my $got = $run->answer_of($name, $last eq '' ? $first : "$first\n$last", $err);
			push @bad, "$kind after $rows rows: " . length($first) . " and " . length($last) . " of " . length($run->{want}{$name}) . $err if $got ne $run->{want}{$name};
			push @bad, "$kind after $rows rows: $_" for grep { $_ !~ $GpuHash::Service::CLEAN } $service->settle;
		}
	}
	is(join("\n", @bad), '', "$name: rows before and after a fault");
	return;
}

# What a row's evaluation raises, above or in a condition without a program.
sub errors
{
	my $session = $run->{session};
	for my $name (qw(plain parallel))
	{
		$run->set($name);
		for my $query ('SELECT 1 / (id - 4567) FROM t WHERE k > -200', 'SELECT id FROM t WHERE k > -200 AND length(upper(x)) / (id - 4568) < 100')
		{
			my ($out, $err) = $session->do("BEGIN; SAVEPOINT s; $query");
			like($err, qr/ERROR:  22012: division by zero/, "$name: $query");
			$run->is_unpinned('in the transaction that goes on');
			like($service->settle, $GpuHash::Service::CLEAN, 'and all is given back');
			$session->do('ROLLBACK');
		}
	}
	# without workers, it is the leader whose scan is under way when the row above it fails
	$run->set('parallel');
	my ($out, $err) = $session->do('SET max_parallel_workers = 0; BEGIN; SAVEPOINT s; SELECT 1 / (id - 4567) FROM t WHERE k > -200');
	like($err, qr/ERROR:  22012: division by zero/, 'an error in the leader');
	unlike($err, qr/WARNING|not owned/, 'and no other');
	$run->is_unpinned('in the transaction that goes on');
	$session->do('ROLLBACK; RESET max_parallel_workers');
	$run->set('plain');
	($out, $err) = $session->do('SELECT 1 / (id - 4567), length(x) / (id - 4568) FROM t WHERE k > -200 LIMIT 100');
	is($err, '', 'no error of rows behind a LIMIT');
	return;
}

# What a device does before the first row is a cost that a query for few rows does not pay.
sub few_rows
{
	my $session = $run->{session};
	my $query = 'SELECT * FROM narrow WHERE k = 3 AND v < 900';
	$session->do('CREATE TABLE narrow AS SELECT i AS id, i % 10 AS k, i % 1000 AS v FROM generate_series(1, 500000) i; VACUUM ANALYZE narrow');
	$session->do('SET gpuhash.force_offload = off; SET gpuhash.device_start_cost = 500; SET gpuhash.device_page_cost = 0.25; SET gpuhash.device_bus_cost = 0.07; SET seq_page_cost = 1');
	my ($all) = $session->do("EXPLAIN $query");
	like($all, qr/GpuHashScan/, 'all rows are taken from the device');
	my ($few) = $session->do("EXPLAIN $query LIMIT 1500");
	unlike($few, qr/GpuHash/, 'some are not');
	return;
}

sub with_service
{
	$service = GpuHash::Service->new(conf => \@CONF);
	ok($service->wait_ready, 'the service is ready');
	$run->begin($service->server, service => $service);
	for my $name (sort keys %QUERY)
	{
		$run->set($name);
		ok($run->by_device($name), "$name is done by the device") or diag($run->plan_of($name));
		like($run->plan_of($name), qr/Rows Left Out: \d{3}/, "$name: rows are left out") if $name =~ /first/;
		$run->is_right($name, "$name is right");
	}
	my $tried = 0;
	$tried += $run->fail_all_points($_) for sort keys %QUERY;
	note("$tried faults");
	cmp_ok($tried, '>', 200, 'enough faults were tried');

	fail_midway($_) for qw(plain back rest limit parallel);
	$run->left_early('plain', 'CLOSE', 'CLOSE c');
	$run->left_early('back', 'ROLLBACK TO SAVEPOINT', 'ROLLBACK TO s');
	$run->left_early('rest', 'an error', 'SELECT 1 / 0', 'ROLLBACK TO s');
	errors();
	few_rows();

	$run->interrupt(@$_) for
		['plain', 'scan', 'pg_cancel_backend'], ['back', 'scan', 'timeout'], ['plain', 'scan', 'pg_terminate_backend'], ['parallel', 'scan', 'pg_cancel_backend'],
		['parallel_back', 'scan', 'timeout'], ['above', 'scan', 'pg_cancel_backend'];

	$run->fallback_is_error('plain', 'scan');
	$run->end_worker(@$_) for ['plain', 'scan', 'sticky', 3], ['back', 'scan', 'term', 2], ['parallel_back', 'scan', 'hang', 2];
	$run->kill_worker('plain');
	$run->end;
	undef $service;
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
	$run->end;
	undef $service;
	return;
}

my $parts = $ENV{GPUHASH_WITH} // 'alone service small';
alone() if $parts =~ /alone/;
with_service() if $parts =~ /service/;
without_buffers() if $parts =~ /small/;
done_testing();
