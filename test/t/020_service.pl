# The service: one worker for each GPU, and all sessions its clients.  Start without a
# GPU, joins through the worker, nothing left over, two devices, a new limit, no wake-ups.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my %QUERY = %GpuHash::Service::QUERY;

# What EXPLAIN ANALYZE says of the engine, each kind once.
sub engines
{
	my ($session, $query, $what) = @_;
	my ($out, $err) = $session->do("EXPLAIN (ANALYZE, COSTS OFF) $query");
	my %seen = map { $_ => 1 } $out =~ /$what: (.*)/g;
	return join(', ', sort keys %seen) . $err;
}

# A row count that nothing but a large table gives.
my $LARGE = 'SELECT a.i, b.i FROM generate_series(1, 100000) a(i) JOIN generate_series(1, 100000) b(i) USING (i)';

# ----------------------------------------------------------- no library at all
{
	my $service = GpuHash::Service->new(absent => 1, tables => 1);
	my $server = $service->server;
	my %want = $service->answers;
	my $deadline = time + 30;
	sleep 0.05 until $server->log =~ /does not use GPU/ || time > $deadline;
	my @lines = grep { /gpuhash/ && !/listening on/ } split /\n/, $server->log =~ s/statement:.*//gr;
	is(scalar @lines, 1, 'without the library the log has one line of it') or diag(join "\n", @lines);
	like($server->log, qr/LOG:  gpuhash does not use GPU 0: \S.*\n.*DETAIL:.*CPU engine.*\n.*HINT:.*every minute/, 'it says why, what happens, and that it is tried again');
	my $session = $server->session;
	my $length = length $server->log;
	$session->do("SET gpuhash.engine = 'auto'");
	for my $name (sort keys %QUERY)
	{
		$session->do(GpuHash::Service::settings($name));
		is(GpuHash::Service::digest($session, $QUERY{$name}), $want{$name}, "$name without a GPU");
	}
	is(engines($session, $QUERY{inner}, 'Engine'), 'cpu', 'the CPU engine did it');
	is(length($server->log), $length, 'nothing more in the log');
	my (undef, $err) = $session->do("SET gpuhash.engine = 'cuda'; $QUERY{inner}");
	like($err, qr/ERROR:  55000: the CUDA engine is not available: no usable GPU\n.*HINT:.*gpuhash_devices/s, 'engine = cuda is an error with a hint');
	like($service->leftovers, $CLEAN, 'nothing is left over');
	$session->close;
	$service->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log without a GPU');
}

# ------------------------------------------------------------- with the device
my $service = GpuHash::Service->new(tables => 1);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
my %want = $service->answers;
my ($worker) = values %{ { $service->workers } };
my $session = $server->session;
$session->do("SET gpuhash.fallback = 'error'");

for my $name (sort keys %QUERY)
{
	$session->do(GpuHash::Service::settings($name));
	is(GpuHash::Service::digest($session, $QUERY{$name}), $want{$name}, "$name through the service");
	is(engines($session, $QUERY{$name}, 'Engine'), 'cuda', "$name: EXPLAIN ANALYZE says so");
}
$session->do('RESET work_mem; RESET hash_mem_multiplier');
like($service->settle, $CLEAN, 'nothing is left over of joins');

is($server->query(q{SELECT memory_used - memory_resident, tables, status FROM gpuhash_devices WHERE engine = 'cuda'}), '0|0|ready', 'gpuhash_devices says so');
is($server->query('SELECT buffers_free = buffers, tables, requests > 0 FROM gpuhash_stat'), 't|0|t', 'and so does gpuhash_stat');
my ($backend) = $session->do('SELECT pg_backend_pid()');
sub loads { my ($pid) = @_; return GpuHash::Server::read_file("/proc/$pid/maps") =~ /gpuhash_cuda/ ? 1 : 0 }
is(loads($backend), 0, 'the session has not opened the engine');
is(loads($service->postmaster), 0, 'nor has the postmaster');
is(loads($worker), 1, 'the worker has');

# ------------------------------------------------------- all ends of a query
my $other = $server->session;
my $long = "SELECT count(*) FROM (SELECT pg_sleep(0.001) FROM o JOIN i ON i.k = o.k) s";
# a cursor's first rows are not worth a hash join
my $CURSOR = 'SET cursor_tuple_fraction = 1';
my %end = (
	'LIMIT' => sub { $_[0]->do("$QUERY{inner} LIMIT 1") },
	'a cursor left open' => sub { $_[0]->do("$CURSOR; BEGIN; DECLARE c CURSOR FOR $QUERY{left}; FETCH 3 FROM c; COMMIT") },
	'a held cursor' => sub { $_[0]->do("$CURSOR; BEGIN; DECLARE c CURSOR WITH HOLD FOR $QUERY{left}; FETCH 3 FROM c; COMMIT; CLOSE c") },
	'an error' => sub { $_[0]->do("SELECT 1 / (o.id - 1200) FROM o JOIN i ON i.k = o.k") },
	'a savepoint' => sub { $_[0]->do("$CURSOR; BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR $QUERY{text}; FETCH 3 FROM c; ROLLBACK TO s; COMMIT") },
	'statement_timeout' => sub { $_[0]->do("SET statement_timeout = 30; $long"); $_[0]->do('RESET statement_timeout') },
	'a cancel' => sub {
		my ($pid) = $_[0]->do('SELECT pg_backend_pid()');
		$_[0]->send($long);
		sleep 0.05;
		$other->do("SELECT pg_cancel_backend($pid)");
		$_[0]->receive;
	},
	'pg_terminate_backend' => sub {
		my ($pid) = $_[0]->do('SELECT pg_backend_pid()');
		$_[0]->send($long);
		sleep 0.05;
		$other->do("SELECT pg_terminate_backend($pid)");
		eval { $_[0]->receive };
		$_[0]->close;
	},
	'a disconnect' => sub {
		$_[0]->send("SET client_connection_check_interval = 20; $long");
		sleep 0.05;
		kill KILL => $_[0]{pid};
		$_[0]->close;
	},
	'PREPARE and its generic plan' => sub { $_[0]->do("PREPARE p AS $QUERY{inner}; EXECUTE p; EXECUTE p") });
for my $name (sort keys %end)
{
	my $ending = $server->session;
	$end{$name}->($ending);
	like($service->settle, $CLEAN, "nothing is left over after $name");
	$ending->close;
}
$other->close;
($service->workers)[1] == $worker or fail('the worker is still the same');

# ---------------------------------------------------------- the worker ends
my $started = $server->query('SELECT pg_postmaster_start_time()');
$session->do("SET gpuhash.fallback = 'cpu'");
for my $round (1, 2)
{
	my %workers = $service->workers;
	$session->send("SELECT count(*), sum(x) FROM (SELECT pg_sleep(0.0001), o.id AS x FROM o JOIN i ON i.k = o.k WHERE o.id <= 1000) s");
	sleep 0.1;
	kill TERM => $workers{0};
	my ($out, $err) = $session->receive;
	is("$out$err", $server->query("SET gpuhash.enabled = off; SELECT count(*), sum(o.id) FROM o JOIN i ON i.k = o.k WHERE o.id <= 1000"), "TERM $round: the join in flight has the right answer");
	is(GpuHash::Service::digest($session, $QUERY{inner}), $want{inner}, "TERM $round: a join while there is no worker");
	ok($service->wait_ready, "TERM $round: the worker comes back");
	my %now = $service->workers;
	isnt($now{0}, $workers{0}, "TERM $round: it is a new one");
	is(engines($session, $QUERY{inner}, 'Engine'), 'cuda', "TERM $round: and is used");
	like($service->settle, $CLEAN, "TERM $round: nothing is left over");
}
is($server->query('SELECT pg_postmaster_start_time()'), $started, 'the server was never restarted');

# ------------------------------------------------------------------ the limit
sub set_limit
{
	my ($limit) = @_;
	$server->query("ALTER SYSTEM SET gpuhash.device_memory_limit = '$limit'");
	$server->query('SELECT pg_reload_conf()');
	sleep 0.3;
}
set_limit('1MB');
is(engines($session, $LARGE, 'Engine'), 'cpu', 'SIGHUP: a join beyond the new limit runs on the CPU');
like(engines($session, $LARGE, 'Fallback Reason'), qr/limit|used up/, 'and EXPLAIN ANALYZE says why');
is(engines($session, $QUERY{inner}, 'Engine'), 'cuda', 'a smaller one does not');
my ($status, undef, $err) = $server->run("SET gpuhash.device_memory_limit = '2MB'");
like($err, qr/55P02/, 'a session cannot set the limit of all');
set_limit('-1');
is(engines($session, $LARGE, 'Engine'), 'cuda', 'SIGHUP: the limit is gone');
like($service->settle, $CLEAN, 'nothing is left over');

# ------------------------------------------------------------------- idleness
sub wakeups
{
	my ($pid) = @_;
	my $sum = 0;
	for my $task (glob "/proc/$pid/task/*")
	{
		my $status = GpuHash::Server::read_file("$task/status");
		$sum += $1 for $status =~ /ctxt_switches:\s*(\d+)/g;
	}
	return $sum;
}
($worker) = values %{ { $service->workers } };
for my $round (1, 2)
{
	GpuHash::Service::digest($session, $QUERY{$_}) for qw(inner text);
	sleep 1;
	my $before = wakeups($worker);
	sleep 2;
	is(wakeups($worker) - $before, 0, "idle for 2 s, round $round: no thread of the worker woke up");
}
$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
undef $service;

# ---------------------------------------------------------------- two devices
SKIP: {
	skip 'the installed engine is used, and how many GPUs it has is not known', 1 if ($ENV{GPUHASH_STAND_IN} || '') eq 'no';
	my $two = GpuHash::Service->new(tables => 1, devices => 2);
	ok($two->wait_ready, 'two devices, two workers');
	my %workers = $two->workers;
	is(join(',', sort keys %workers), '0,1', 'one for each');
	my @sessions = map { $two->server->session } 1 .. 4;
	$_->do("SET gpuhash.fallback = 'error'; SET cursor_tuple_fraction = 1; BEGIN; DECLARE c CURSOR FOR SELECT a.i FROM generate_series(1, 50000) a(i) JOIN generate_series(1, 50000) b(i) USING (i); FETCH 3 FROM c") for @sessions;
	my ($first, $second) = $two->leftovers =~ /bytes (\d+) (\d+)/;
	ok($first > 0 && $first == $second, 'tables are where memory is free') or diag($two->leftovers);
	$sessions[0]->do('RESET gpuhash.fallback');
	kill TERM => $workers{1};
	my ($out, $err) = ('', '');
	for my $session (@sessions)
	{
		$session->do("SET gpuhash.fallback = 'cpu'");
		($out, $err) = $session->do("FETCH ALL FROM c");
		my $rows = () = $out =~ /^\d+$/mg;
		is($rows . $err, 49997, 'the loss of one device costs no query');
	}
	is(engines($sessions[0], $QUERY{inner}, 'Engine'), 'cuda', 'the other one serves on');
	$_->close for @sessions;
	ok($two->wait_ready, 'and the lost one comes back');
	like($two->settle, $CLEAN, 'nothing is left over on either');
	$two->stop;
	unlike($two->server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log with two devices');
}

done_testing();
