# Buffers, as pipelines of the service use them: those of the server, which the device reads where they are or does not, and
# those of the transfer area, when there are fewer than sessions want.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query(<<'SQL');
CREATE TABLE o AS SELECT i % 1000 AS k, i::bigint * 7 - 100000 AS v FROM generate_series(1, 60000) i;
VACUUM (FREEZE, ANALYZE) o;
SQL
my $session = $server->session;
$session->do('SET gpuhash.enabled = off');
my $groups = ($session->do("SELECT string_agg(format('%s %s %s', k, n, s), ',' ORDER BY k) || ',back 0' FROM (SELECT k, count(*) n, sum(v) s FROM o GROUP BY k) g"))[0];

sub trial { my ($mode, $pages, $flight) = @_; return "SELECT gpuhash_trial_pipeline('service', 'groups', 'o'::regclass, 'o'::regclass, '$mode', $pages, $flight, 65536, true)" }
sub groups
{
	my ($out, $err) = $session->do(trial(@_));
	return $out . $err;
}

# ------------------------------------------------------------- the server's buffers
sub buffers { return $service->ask(q{SELECT buffers FROM gpuhash_devices WHERE engine = 'cuda'}) }
sub await_buffers
{
	my ($want) = @_;
	my $deadline = time + 10;
	sleep 0.02 while (buffers() !~ $want && time < $deadline);
	return buffers();
}
# Whether all pages were read in the server's buffers.
sub direct
{
	my ($mode, $what) = @_;
	$service->ask('SELECT gpuhash_stat_reset()');
	is(groups($mode, 16, 2), $groups, "$what: the answer is right");
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

# Off and on while requests are in flight.
{
	my $other = $server->session;
	my @wrong;
	for my $round (1 .. 10)
	{
		$session->send(trial('pinned', 1, 4));
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

# ------------------------------------------------------ those of the transfer area
my $started = $server->query('SELECT pg_postmaster_start_time()');
# More than there is.
{
	my $other = $server->session;
	my @buffers = map { ($other->do('SELECT gpuhash_forge_hold()'))[0] } 1;
	$service->arm('scan', 'delay', times => 1000, ms => 20);
	my @sessions = map { $server->session } 1 .. 20;
	$_->send(trial('pinned', 16, 4)) for @sessions;
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
$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP/, 'a clean log');

# ------------------------------------------------------------------- huge pages

# Bytes of huge pages that the system has free, of 2 MB or as it has them.
sub huge_free
{
	open my $file, '<', '/proc/meminfo' or return 0;
	my %kept = map { /^(HugePages_Free|Hugepagesize):\s+(\d+)/ ? ($1 => $2) : () } <$file>;
	close $file;
	return ($kept{HugePages_Free} // 0) * ($kept{Hugepagesize} // 0) * 1024;
}
SKIP:
{
	skip 'the system has no 400 MB of free huge pages (vm.nr_hugepages)', 6 if huge_free() < 400 << 20;
	undef $service;
	$service = GpuHash::Service->new(conf => ['huge_pages = on']);
	$server = $service->server;
	ok($service->wait_ready, 'a worker of a server with huge pages');
	$server->query('CREATE TABLE o AS SELECT i % 1000 AS k, i::bigint * 7 - 100000 AS v FROM generate_series(1, 60000) i; VACUUM (FREEZE, ANALYZE) o');
	$session = $server->session;
	is(await_buffers(qr/^direct$/), 'direct', 'the device reads shared_buffers');
	is(direct('pinned', 'huge pages'), 't', 'pinned pages are read where they are');
	$server->query('UPDATE o SET v = v; ALTER SYSTEM SET gpuhash.register_buffers = off; SELECT pg_reload_conf()');
	is(await_buffers(qr/ is off$/), 'gpuhash.register_buffers is off', 'switched off');
	$session->close;
	$service->stop;
	unlike($server->log, qr/PANIC|TRAP/, 'a clean log');
}

done_testing();
