# What is a crash to PostgreSQL: the worker killed, an abort inside it, a client killed,
# an immediate shutdown, the postmaster's death.  The server recovers by itself, nothing
# is left over, and the worker works again.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

# the harder case: as below the init of some containers
note('orphans are reaped by init') unless GpuHash::Server::adopt_orphans();

my $CLEAN = $GpuHash::Service::CLEAN;
my %QUERY = %GpuHash::Service::QUERY;

# restart_after_crash is on by default
my $service = GpuHash::Service->new(tables => 1, conf => ['log_min_messages = log']);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
my %want = $service->answers;
my $rows = $server->query('SELECT count(*), sum(id) FROM o');
my ($tried, $survived) = (0, 0);

# A join that takes a while after its table was made.
my $long = 'SELECT count(*) FROM (SELECT pg_sleep(0.002) FROM o JOIN i ON i.k = o.k) s';

sub gone
{
	my ($seconds, @pids) = @_;
	my $deadline = time + $seconds;
	sleep 0.02 while ((grep { GpuHash::Server::runs($_) } @pids) && time < $deadline);
	return !grep { GpuHash::Server::runs($_) } @pids;
}

# After a crash: connections work again, nothing is left over, the worker is used.
sub recovers
{
	my ($what) = @_;
	my $up = 0;
	for (1 .. 600)
	{
		last if $up = eval { $server->query('SELECT 1') };
		sleep 0.05;
	}
	ok($up, "$what: the server recovers by itself") or return 0;
	my $good = ok($service->wait_ready(60), "$what: the worker comes back");
	$good &&= like($service->settle, $CLEAN, "$what: nothing is left over");
	$good &&= is($server->query('SELECT count(*), sum(id) FROM o'), $rows, "$what: the data is there");
	my $session = $server->session;
	$session->do("SET gpuhash.fallback = 'error'");
	for my $name (qw(inner partitions))
	{
		$session->do(GpuHash::Service::settings($name));
		$good &&= is(GpuHash::Service::digest($session, $QUERY{$name}), $want{$name}, "$what: the worker does the $name join");
	}
	$session->close;
	return $good;
}

# A query during which the server crashes; its session is lost, not answered wrongly.
sub crashes
{
	my ($what, $action) = @_;
	my $session = $server->session;
	my $bystander = $server->session;
	# a join by a table that the session has
	$session->do(GpuHash::Service::settings('inner'));
	$tried++;
	my ($out) = eval { $action->($session) };
	$out = '' unless defined $out;
	my $deadline = time + 10;
	my $lost;
	until ($lost = !eval { $bystander->do('SELECT 1'); 1 }) { last if time > $deadline; sleep 0.02 }
	ok($lost, "$what: all sessions are disconnected");
	# the crash may come between the answer and the next statement
	$out =~ s/WARNING: .*terminating connection because of crash.*//s;
	ok($out eq '' || $out eq $want{inner}, "$what: no wrong answer") or diag($out);
	$_->close for $session, $bystander;
	delete $service->{control};
	$survived++ if recovers($what);
	return;
}

# ------------------------------------------------- the worker, while it works
for my $kind (qw(kill crash))
{
	for my $point (qw(create exchange find reply destroy))
	{
		crashes("$kind at $point", sub {
			my ($session) = @_;
			$service->arm($point, $kind);
			return GpuHash::Service::digest($session, $QUERY{inner});
		});
	}
}

# ------------------------------------------------------- and while it is idle
for my $signal (qw(KILL SEGV))
{
	crashes("$signal of the idle worker", sub {
		my %workers = $service->workers;
		kill $signal => $workers{0};
		return;
	});
}

# ------------------------------------------------------------------- a client
for my $signal (qw(KILL ABRT))
{
	crashes("$signal of a client in a join", sub {
		my ($session) = @_;
		my ($pid) = $session->do('SELECT pg_backend_pid()');
		$session->send($long);
		sleep 0.1;
		unlike($service->leftovers, $CLEAN, "$signal of a client: it holds buffers and a table");
		kill $signal => $pid;
		eval { $session->receive };
		return;
	});
}
crashes('KILL of a client whose request is with the device', sub {
	my ($session) = @_;
	my ($pid) = $session->do('SELECT pg_backend_pid()');
	$service->arm('find', 'delay', ms => 1500);
	$session->send($long);
	sleep 0.3;
	kill KILL => $pid;
	eval { $session->receive };
	return;
});
like($server->log, qr/terminated by signal/, 'the server saw them as crashes');

# A worker that does not get past the opening of its device; sessions go on without it.
sub hang_at_start
{
	my %workers = $service->workers;
	$service->arm('open', 'hang');
	kill TERM => $workers{0};
	for (1 .. 500) { last if $service->fired; sleep 0.02 }
	is($service->fired, 1, 'a new worker hangs while it opens the device');
	my $session = $server->session;
	is(GpuHash::Service::digest($session, $QUERY{inner}), $want{inner}, 'the CPU engine answers');
	$session->close;
	return;
}

# ---------------------------------------------------------------- shutdowns
# the device is idle, busy, or hangs
for my $mode (qw(fast immediate))
{
	for my $state ('idle', 'in a join', 'with a device that hangs', 'with a driver that hangs at the start')
	{
		my $what = "$mode shutdown, $state";
		my $session = $server->session;
		hang_at_start() if $state =~ /start/;
		my @pids = ($service->postmaster, keys %{ { $service->processes } });
		$service->arm('find', 'hang') if $state =~ /device that hangs/;
		$session->send($long) unless $state eq 'idle';
		sleep 0.1;
		$tried++;
		my $watch = stopwatch();
		$service->stop($mode);
		ok(gone(5, @pids), "$what: no process stays");
		cmp_ok($watch->(), '<', 4, "$what: promptly");
		$session->close;
		$server->start;
		$survived++ if recovers($what);
	}
}

# -------------------------------------------------------- the postmaster's death
for my $state ('idle', 'in a join', 'with a device that hangs', 'with a driver that hangs at the start')
{
	my $what = "death of the postmaster, $state";
	my $session = $server->session;
	hang_at_start() if $state =~ /start/;
	my %workers = $service->workers;
	my $postmaster = $service->postmaster;
	# that, too, has to be gone before another one can start
	my @pids = ($postmaster, keys %{ { $service->processes } });
	$service->arm('find', 'hang') if $state =~ /device that hangs/;
	$session->send($state eq 'idle' ? 'SELECT 1' : $long);
	sleep 0.1;
	$tried++;
	kill KILL => $postmaster;
	ok(gone(5, $workers{0}), "$what: the worker ends");
	eval { $session->receive };
	$session->close;
	delete $service->{control};
	ok(gone(10, @pids), "$what: no process stays") or diag(join ', ', map { GpuHash::Server::read_file("/proc/$_/cmdline") } grep { GpuHash::Server::runs($_) } @pids);
	$server->start;
	$survived++ if recovers($what);
}
$service->stop;
unlike($server->log, qr/PANIC|TRAP/, 'a log without failed assertions');

note("$tried ends tried, $survived survived");
is($survived, $tried, 'every end was survived');

done_testing();
