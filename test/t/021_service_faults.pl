# Every fault point crossed with every operation: a join that is hit goes on with the
# CPU engine and gives PostgreSQL's answer, and the worker is used again without a
# restart of the server.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

# ms until a request counts as hanging: so long that a stall of the machine is no hang of the device.
my $TIMEOUT = 1000;

my $CLEAN = $GpuHash::Service::CLEAN;
my %QUERY = %GpuHash::Service::QUERY;
my $service = GpuHash::Service->new(tables => 1);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
my $started = $server->query('SELECT pg_postmaster_start_time()');
my %want = $service->answers;
my @points = grep { !/^(?:any|open|register|pool|scan.*)$/ } split /,/, $service->ask("SELECT gpuhash_fault_list('points')");
my @kinds = split /,/, $service->ask("SELECT gpuhash_fault_list('kinds')");
is("@kinds", 'no_memory limit launch sticky term hang delay hold kill crash', 'the kinds of faults that are known here');
my $session = $server->session;
my (%tried, %survived);

sub run_query
{
	my ($name) = @_;
	$session->do(GpuHash::Service::settings($name));
	return GpuHash::Service::digest($session, $QUERY{$name});
}

# One try: whether the fault happened; a wrong answer or what is left over goes to @$bad.
sub try_fault
{
	my ($name, $point, $kind, $after, $bad) = @_;
	$service->arm($point, $kind, after => $after, ms => 3);
	my $got = run_query($name);
	# until tables are freed, for the faults in there
	my $left = $service->settle;
	my $fired = $service->disarm;
	return 0 unless $fired;
	$tried{$kind}++;
	if ($got ne $want{$name}) { push @$bad, "$name, $kind at $point after $after: $got" }
	elsif ($left !~ $CLEAN) { push @$bad, "$name, $kind at $point after $after: $left" }
	else { $survived{$kind}++ }
	return 1;
}

# How often a query passes each point.
my %passages;
for my $name (sort keys %QUERY)
{
	for my $point (@points)
	{
		$service->arm($point, 'delay', times => 1_000_000);
		is(run_query($name), $want{$name}, "$name passes $point") or last;
		$service->settle;
		$passages{$name}{$point} = $service->disarm;
	}
	note("$name passes " . join ', ', map { "$_ $passages{$name}{$_} times" } grep { $passages{$name}{$_} } @points);
	ok($passages{$name}{find} && $passages{$name}{exchange} && $passages{$name}{create}, "$name is done by the worker");
}

# ------------------------------------ faults that the worker survives: all of them
for my $name (sort keys %QUERY)
{
	my @bad;
	for my $point (grep { $passages{$name}{$_} } @points)
	{
		my %after = map { $_ => 1 } grep { $_ < $passages{$name}{$point} } 0, 2, $passages{$name}{$point} - 1;
		for my $kind (qw(no_memory limit launch delay))
		{
			try_fault($name, $point, $kind, $_, \@bad) for sort { $a <=> $b } keys %after;
		}
	}
	is(join("\n", @bad), '', "$name with every fault that the worker survives");
}
my ($worker) = values %{ { $service->workers } };

# All requests fail, one after the other.
{
	my @bad;
	for my $kind (qw(no_memory limit launch))
	{
		for my $name (sort keys %QUERY)
		{
			$service->arm('any', $kind, times => 1_000_000);
			my $got = run_query($name);
			$service->disarm;
			push @bad, "$name, $kind: $got" if $got ne $want{$name};
		}
	}
	is(join("\n", @bad), '', 'nothing works on the device');
	is((values %{ { $service->workers } })[0], $worker, 'the worker was never restarted so far');
}

# --------------------------------------- faults that end the worker: each point once
$server->query("ALTER SYSTEM SET gpuhash.device_timeout = '${TIMEOUT}ms'; SELECT pg_reload_conf()");
my @names = sort keys %QUERY;
for my $kind (qw(sticky term hang))
{
	my @bad;
	for my $point (grep { my $p = $_; grep { $passages{$_}{$p} } @names } @points)
	{
		push @names, shift @names;
		my ($name) = grep { $passages{$_}{$point} } @names;
		my $after = $tried{$kind} && $tried{$kind} % 2 ? $passages{$name}{$point} - 1 : 0;
		($worker) = values %{ { $service->workers } };
		my $start = time;
		if (!try_fault($name, $point, $kind, $after, \@bad)) { push @bad, "$name, $kind at $point never happened"; next }
		# the first statement after it, worker or not
		push @bad, "$name after $kind at $point" if run_query($name) ne $want{$name};
		if (!$service->wait_ready(10)) { push @bad, "$kind at $point: no worker came back"; next }
		push @bad, "$kind at $point: the worker did not end" if (values %{ { $service->workers } })[0] == $worker;
		$session->do("SET gpuhash.fallback = 'error'");
		my $got = run_query($name);
		push @bad, "$kind at $point: the new worker is not used: $got" if $got ne $want{$name};
		$session->do("RESET gpuhash.fallback");
	}
	is(join("\n", @bad), '', "every point with $kind: the worker ends, comes back and is used");
}
$server->query("ALTER SYSTEM RESET gpuhash.device_timeout; SELECT pg_reload_conf()");

# --------------------------------------------------------- faults of the start
sub end_worker
{
	my %workers = $service->workers;
	kill TERM => $workers{0};
	my $deadline = time + 10;
	sleep 0.02 while (GpuHash::Server::runs($workers{0}) && time < $deadline);
	return;
}
for my $kind (qw(no_memory launch sticky))
{
	my $length = length $server->log;
	$service->arm('open', $kind);
	end_worker();
	my $deadline = time + 10;
	sleep 0.05 while (substr($server->log, $length) !~ /does not use GPU 0: fault point/ && time < $deadline);
	ok($service->fired, "$kind while the device is opened");
	is(run_query('inner'), $want{inner}, "$kind while the device is opened: the CPU engine answers") if $session->do("SET gpuhash.engine = 'auto'");
	$session->do('RESET gpuhash.engine');
	$service->disarm;
	# it would look again after a minute; a reload makes it look at once
	$server->query('SELECT pg_reload_conf()');
	ok($service->wait_ready(10), "$kind while the device is opened: found when looked for again");
	$tried{$kind}++;
	$survived{$kind}++;
}
$service->arm('register', 'no_memory');
end_worker();
ok($service->wait_ready(10), 'the transfer area cannot be registered: the worker serves all the same');
like($server->log, qr/LOG:  gpuhash transfers to GPU 0 are slower: .*\n.*DETAIL:  fault point/, 'and says so');
$session->do("SET gpuhash.fallback = 'error'");
is(run_query('inner'), $want{inner}, 'without registered memory');
$service->disarm;
$session->do('RESET gpuhash.fallback');

# -------------------------------------------------------------- what users see
$session->do('RESET work_mem; RESET hash_mem_multiplier');
$service->arm('find', 'launch', after => 2);
my ($out) = $session->do("EXPLAIN (ANALYZE, COSTS OFF) $QUERY{inner}");
like($out, qr/Engine: cpu\n.*Fallback Reason: fault point: the device failed/s, 'EXPLAIN ANALYZE shows engine and reason');
$service->arm('exchange', 'launch');
my (undef, $err) = $session->do("SET gpuhash.fallback = 'error'; $QUERY{inner}");
like($err, qr/ERROR:  55000: could not join through the hash table: fault point: the device failed\n.*HINT:/s, 'fallback = error');
# [point, kind, SQLSTATE, what the hint names, counter]: the cause decides
for ([qw(create limit 53400 device_memory_limit memory)], [qw(create no_memory 53200 work_mem memory)],
	[qw(find delay 55000 device_timeout timeout)])
{
	my ($point, $kind, $state, $setting, $counter) = @$_;
	my $count = "SELECT sum(fallbacks_$counter) FROM gpuhash_stat";
	my $before = $service->ask($count);
	$session->do("RESET gpuhash.fallback; SET gpuhash.device_timeout = '100ms'");
	$service->arm($point, $kind, ms => 500);
	is(run_query('inner'), $want{inner}, "$kind at $point");
	cmp_ok($service->ask($count), '>', $before, "$kind at $point is counted as $counter");
	$service->settle;
	$service->arm($point, $kind, ms => 500);
	(undef, $err) = $session->do("SET gpuhash.fallback = 'error'; $QUERY{inner}");
	like($err, qr/ERROR:  $state: could not join .*\n.*HINT:  [^\n]*$setting/s, "$kind at $point: SQLSTATE and hint");
	$session->do('RESET gpuhash.fallback; RESET gpuhash.device_timeout');
	$service->settle;
}
$service->disarm;
is(run_query('inner'), $want{inner}, 'the session goes on');
like($server->log, qr/LOG:  GPU 0 failed: its gpuhash worker ends\n.*DETAIL:.*\n.*HINT:/, 'the log tells of a failed device');
like($server->log, qr/LOG:  GPU 0 has not answered for $TIMEOUT ms: its gpuhash worker ends\n.*DETAIL:.*\n.*HINT:/, 'the log tells of a device that hangs');

is($server->query('SELECT pg_postmaster_start_time()'), $started, 'the server was never restarted');
like($service->settle, $CLEAN, 'nothing is left over');
$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

my ($tries, $passed) = (0, 0);
for my $kind (sort keys %tried)
{
	note(sprintf '%-10s %4d tried, %4d survived', $kind, $tried{$kind}, $survived{$kind} // 0);
	$tries += $tried{$kind};
	$passed += $survived{$kind} // 0;
}
note("$tries faults tried, $passed survived");
is($passed, $tries, 'every fault was survived');
cmp_ok($tries, '>=', 100, 'enough of them');

done_testing();
