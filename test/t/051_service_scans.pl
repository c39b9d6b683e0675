# Scans of tables' pages by the service: PostgreSQL's own answers, through any way that
# pages go, with several requests at a time; faults; and what is left over.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query(<<'SQL');
CREATE TABLE o AS SELECT i % 1000 AS k, i::bigint * 7 - 100000 AS v FROM generate_series(1, 60000) i;
CREATE TABLE i AS SELECT i AS k, i::bigint * 1000 AS p FROM generate_series(-5, 900) i;
VACUUM (FREEZE, ANALYZE) o, i;
SQL
my $session = $server->session;
$session->do('SET gpuhash.enabled = off');
my $groups = ($session->do("SELECT string_agg(format('%s %s %s', k, n, s), ',' ORDER BY k) || ',back 0' FROM (SELECT k, count(*) n, sum(v) s FROM o GROUP BY k) g"))[0];
my $joined = ($session->do("SELECT string_agg(format('%s %s %s %s', k, n, s, p), ',' ORDER BY k) || ',back 0, table of 906' FROM (SELECT o.k, count(*) n, sum(v) s, sum(p) p FROM o JOIN i USING (k) GROUP BY o.k) g"))[0];

sub scan
{
	my ($mode, $pages, $flight, $capacity) = @_;
	my ($out, $err) = $session->do("SELECT gpuhash_trial_scan('o'::regclass, '$mode', $pages, $flight, $capacity)");
	return $out . $err;
}
sub join_tables
{
	my ($mode, $early) = @_;
	my ($out, $err) = $session->do("SELECT gpuhash_trial_join('o'::regclass, 'i'::regclass, '$mode', 16, 2, $early)");
	return $out . $err;
}

# --------------------------------------------------------------------- answers
for my $mode ('copied', 'pinned', 'copied bitmaps', 'pinned bitmaps')
{
	for my $shape ([16, 1, 65536], [16, 2, 65536], [64, 4, 1000], [1, 4, 1])
	{
		is(scan($mode, @$shape), $groups, "$mode, @$shape");
	}
	is(join_tables($mode, 'false'), $joined, "$mode, joined");
	is(join_tables($mode, 'true'), $joined, "$mode, joined with a table that was given up");
}
like($service->settle, $CLEAN, 'nothing is left over');
is($server->query('SELECT page_batches > 100, pages > 5000, page_bytes = pages * 8192, scans FROM gpuhash_stat'), 't|t|t|0', 'gpuhash_stat counts them');

# ---------------------------------------------------------- the server's buffers
sub buffers { return $service->ask(q{SELECT buffers FROM gpuhash_devices WHERE engine = 'cuda'}) }
sub await_buffers
{
	my ($want) = @_;
	my $deadline = time + 10;
	sleep 0.02 while (buffers() !~ $want && time < $deadline);
	return buffers();
}
# Pages that the device read in the server's buffers, of a scan of these.
sub direct
{
	my ($mode, $what) = @_;
	$service->ask('SELECT gpuhash_stat_reset()');
	is(scan($mode, 16, 2, 65536), $groups, "$what: the answer is right");
	return $service->ask('SELECT pages_direct = pages FROM gpuhash_stat');
}
is(await_buffers(qr/^direct$/), 'direct', 'the device reads shared_buffers');
like($server->log, qr/LOG:  GPU 0 reads shared_buffers: 128 MB were registered in [0-9.]+ s/, 'and the log says so');
is(direct('pinned', 'registered'), 't', 'pinned pages are read where they are');
is(direct('copied', 'registered'), 'f', 'copied ones are not');
$server->query("ALTER SYSTEM SET gpuhash.register_buffers = off; SELECT pg_reload_conf()");
is(await_buffers(qr/ is off$/), 'gpuhash.register_buffers is off', 'switched off');
is(direct('pinned', 'off'), 'f', 'pinned pages are copied');
$server->query("ALTER SYSTEM RESET gpuhash.register_buffers; SELECT pg_reload_conf()");
is(await_buffers(qr/^direct$/), 'direct', 'and on again');
is(direct('pinned', 'on again'), 't', 'pinned pages are read where they are');

# Off and on while scans are in flight.
{
	my $other = $server->session;
	my @wrong;
	for my $round (1 .. 10)
	{
		$session->send("SELECT gpuhash_trial_scan('o'::regclass, 'pinned', 1, 4, 65536)");
		$other->do("ALTER SYSTEM SET gpuhash.register_buffers = " . ($round % 2 ? 'off' : 'on'));
		$other->do('SELECT pg_reload_conf()');
		my ($out, $err) = $session->receive;
		push @wrong, "$round: $out$err" if $out ne $groups;
	}
	is(join("\n", @wrong), '', 'off and on between requests');
	$other->close;
	await_buffers(qr/^direct$/);
}

sub await_end
{
	my ($worker) = @_;
	my $deadline = time + 10;
	sleep 0.02 while (GpuHash::Server::runs($worker) && time < $deadline);
	return;
}
sub end_worker
{
	my ($signal) = @_;
	my %workers = $service->workers;
	kill $signal => $workers{0};
	await_end($workers{0});
	return;
}
# Refused in the middle: what was registered is taken back.  Before 16 there is one piece.
my $pieces = $server->query("SELECT current_setting('server_version_num')::int >= 160000") eq 't' ? 8 : 1;
$service->arm('pool', 'no_memory', after => int($pieces / 2));
end_worker('TERM');
ok($service->wait_ready, 'a worker whose device takes no more memory');
is(await_buffers(qr/fault point/), 'fault point: the device has no memory', 'says why it does not read shared_buffers');
like($server->log, qr/LOG:  GPU 0 does not read shared_buffers: .*\n.*DETAIL:  fault point: the device has no memory\./, 'and so does the log');
is($service->disarm, 1, 'it gave up at once');
is(direct('pinned', 'refused'), 'f', 'pinned pages are copied');
is(direct('copied', 'refused'), 'f', 'so are others');
# A slow one: requests are served before it is through.
$service->arm('pool', 'delay', times => 100, ms => int(1600 / $pieces));
end_worker('TERM');
ok($service->wait_ready, 'a worker whose device takes its time');
is(buffers(), 'being registered', 'is ready before it reads shared_buffers');
is(direct('pinned', 'in between'), 'f', 'pinned pages are copied until then');
$service->disarm;
is(await_buffers(qr/^direct$/), 'direct', 'and reads them in the end');

# ---------------------------------------------------------------------- faults
my $started = $server->query('SELECT pg_postmaster_start_time()');
for my $point (qw(scan_create scan scan_results allocation reply))
{
	for my $kind ($point eq 'reply' ? ('delay') : qw(no_memory limit launch delay))
	{
		next if $point eq 'allocation' && $kind ne 'no_memory';
		$service->arm($point, $kind, after => $point eq 'scan' ? 3 : 0, ms => 5);
		my $got = scan('pinned', 16, 2, 65536);
		ok($service->fired, "$kind at $point happens");
		if ($kind eq 'delay' || $point eq 'allocation') { ok($got eq $groups || $got =~ /back [1-9]|ERROR/, "$kind at $point: no wrong answer") }
		else { like($got, qr/ERROR: .*fault point/, "$kind at $point is an error") }
		like($service->settle, $CLEAN, "$kind at $point: nothing is left over");
		$service->disarm;
		is(scan('pinned', 16, 2, 65536), $groups, "$kind at $point: the next one is right");
	}
}
$service->arm('scan_table', 'launch');
like(join_tables('copied', 'false'), qr/ERROR: .*fault point/, 'a table that cannot be made is an error');
like($service->settle, $CLEAN, 'and leaves nothing over');
for my $kind (qw(term sticky))
{
	for my $point (qw(scan_create scan scan_results scan_table))
	{
		my %workers = $service->workers;
		$service->arm($point, $kind, after => $point eq 'scan' ? 5 : 0);
		# it may end just after the last answer
		my $got = join_tables('pinned', 'true');
		ok($got eq $joined || $got =~ /ERROR: .*(?:worker of GPU|fault point)/, "the worker ends by $kind at $point: an error, or the right answer")
			or diag($got);
		ok($service->fired, "$kind at $point happened");
		$service->disarm;
		await_end($workers{0});
		ok($service->wait_ready, 'it comes back');
		is(join_tables('pinned', 'true'), $joined, 'and does the same again');
	}
}
await_buffers(qr/^direct$/);

$server->query("ALTER SYSTEM SET gpuhash.device_timeout = '400ms'; SELECT pg_reload_conf()");
for my $point (qw(scan_create scan scan_results scan_table destroy))
{
	my %workers = $service->workers;
	$service->arm($point, 'hang', after => $point eq 'scan' ? 5 : 0);
	my $got = join_tables('pinned', 'true');
	ok($got eq $joined || $got =~ /ERROR: .*(?:worker of GPU|no answer)/, "the device hangs at $point: an error, or the right answer") or diag($got);
	await_end($workers{0});
	ok($service->disarm, "it did hang at $point");
	ok($service->wait_ready, 'the worker ends and comes back');
	is(join_tables('pinned', 'true'), $joined, 'and does the same again');
}
like($server->log, qr/has not answered for 400 ms.*\n.*DETAIL:  The request is of the process \d+, over 16 pages\./, 'the log tells what hung');
$server->query("ALTER SYSTEM RESET gpuhash.device_timeout; SELECT pg_reload_conf()");
await_buffers(qr/^direct$/);

# A device that fails by itself, in the middle of a request.
SKIP: {
	skip 'the device itself does not fail when asked to', 3 unless $service->{fault};
	$service->{fault}->fail_after(4);
	like(scan('pinned', 16, 3, 65536), qr/ERROR: .*the test lets the device fail/, 'a failing device is an error');
	$service->{fault}->repair;
	ok($service->wait_ready(60), 'the next worker finds it');
	is(scan('pinned', 16, 3, 65536), $groups, 'and scans');
}

# ------------------------------------------------------------------- sessions leave
for my $point (qw(scan_create scan scan_results scan_table))
{
	$service->arm($point, 'delay', after => $point eq 'scan' ? 2 : 0, ms => 700);
	my ($out, $err) = $session->do("SET statement_timeout = '200ms'; SELECT gpuhash_trial_join('o'::regclass, 'i'::regclass, 'pinned', 16, 3, false)");
	like($err, qr/ERROR:  57014/, "a session that is cancelled while it waits at $point");
	$session->do('RESET statement_timeout');
	$service->disarm;
	# its pins are gone, whatever the device still does
	is($server->query('VACUUM (FREEZE) o; SELECT count(*) FROM o'), 60000, 'its pages are free');
	like($service->settle, $CLEAN, 'nothing is left over of it');
	is(join_tables('pinned', 'false'), $joined, 'it goes on');
}
# More than there is.
{
	my $other = $server->session;
	my @buffers = map { ($other->do('SELECT gpuhash_forge_hold()'))[0] } 1;
	$service->arm('scan', 'delay', times => 1000, ms => 20);
	my @sessions = map { $server->session } 1 .. 20;
	$_->send("SELECT gpuhash_trial_scan('o'::regclass, 'pinned', 16, 4, 65536)") for @sessions;
	my %seen;
	for my $one (@sessions)
	{
		my ($got, $err) = $one->receive;
		$seen{ $got eq $groups ? 'right' : $err =~ /no buffer for transfers/ ? 'refused' : "$got$err" }++;
	}
	is(join(' ', sort grep { $_ ne 'refused' } keys %seen), 'right', 'sessions share what there is, or are refused');
	ok($seen{refused}, 'some are refused: nobody waits');
	$service->disarm;
	$_->close for @sessions, $other;
}
like($service->settle, $CLEAN, 'nothing is left over in the end');
is($server->query('SELECT pg_postmaster_start_time()'), $started, 'the server was never restarted');

# A worker that is killed takes all sessions along, and nothing stays.
sub starts { my @starts = $server->log =~ /database system is ready to accept connections/g; return scalar @starts }
my $starts = starts();
$service->arm('scan', 'kill', after => 4);
unlike(eval { scan('pinned', 16, 3, 65536) } // '', qr/^\d/, 'a worker that is killed');
my $deadline = time + 60;
sleep 0.05 while (starts() == $starts && time < $deadline);
ok($service->wait_ready(60), 'the server recovers, and the worker');
$session = $server->session;
is(scan('pinned', 16, 3, 65536), $groups, 'the next answer is right');
like($service->settle, $CLEAN, 'nothing is left over');
$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP/, 'a clean log');

done_testing();
