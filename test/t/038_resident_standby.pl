# Pages that stay on the device, and a hot standby: while it replays, its answers are the primary's, whatever is
# replayed between them; when it is promoted, they are as PostgreSQL's, also in transactions that have begun before.  In
# the place of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use Time::HiRes 'sleep';
use GpuHash::Resident qw(well $compared $used);
use GpuHash::Service;

my $ROWS = 3000;
my @CONF = (@GpuHash::Resident::CONF, 'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'max_standby_streaming_delay = 1s');
my $service = GpuHash::Service->new(conf => \@CONF);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $primary = $server->session;
GpuHash::Resident::fresh($primary, $ROWS);

my $standby = $server->standby;
for (1 .. 200) { last if eval { $standby->query('SELECT gpuhash_fault_ready()') } ; sleep 0.1 }
my ($session, $old) = map { $standby->session } 1, 2;

sub check
{
	my ($what, %options) = @_;
	my $answer = GpuHash::Resident::check($options{session} // $session, $what, %options);
	cmp_ok($answer->{pages}, '>', 0, "$what: by the device");
	return $answer->{used};
}

# All that the primary has written is replayed.
sub catch_up
{
	# nobody waits for what VACUUM writes: a commit has it written, and sent
	well($primary, q{SELECT pg_logical_emit_message(true, 'gpuhash', '')});
	my $lsn = well($primary, 'SELECT pg_current_wal_lsn()');
	for (1 .. 400) { return if well($session, "SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't'; sleep 0.02 }
	fail('the standby does not catch up');
	return;
}

# ------------------------------------------------------------------ while it replays

my @CHANGES = ('UPDATE t SET n = n + 1 WHERE id % 400 = 7', 'VACUUM t', 'DELETE FROM t WHERE id % 300 = 5; VACUUM t', 'INSERT INTO t ' . GpuHash::Resident::rows(5001, 5300), 'VACUUM (FREEZE) t',
	'DELETE FROM t WHERE id > 5000; VACUUM t', 'INSERT INTO t ' . GpuHash::Resident::rows(6001, 6900) . '; VACUUM t', 'BEGIN; UPDATE t SET g = 0; ROLLBACK; VACUUM t', 'CREATE INDEX t_n ON t (n DESC); CLUSTER t USING t_n; VACUUM t', 'TRUNCATE t; INSERT INTO t ' . GpuHash::Resident::rows(1, $ROWS) . '; VACUUM t');
for my $sql (@CHANGES)
{
	well($primary, $sql);
	catch_up();
	check("replayed: $sql");
	my $resident = check("and once more: $sql");
	cmp_ok($resident, '>', 0, "$resident pages stay") if $sql =~ /VACUUM t$/;
	my $query = GpuHash::Resident::digest_sql($GpuHash::Resident::QUERY{groups});
	is(well($session, $query), well($primary, "SET gpuhash.enabled = off; $query"), 'as the primary has it');
}

# ---------------------------------------------------------------- when it is promoted

well($primary, 'UPDATE t SET n = n + 1 WHERE id % 400 = 8');
catch_up();
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
check('a transaction that begins in recovery', session => $old, open => 1);
my $before = well($old, 'SET LOCAL gpuhash.enabled = off; ' . GpuHash::Resident::digest_sql($GpuHash::Resident::QUERY{groups}) . '; SET LOCAL gpuhash.enabled = on');
is(well($session, 'SELECT pg_promote()'), 't', 'it is promoted');
check('after that') for 1, 2;
well($session, 'VACUUM t');
cmp_ok(check('and VACUUM') + check('once more'), '>', 0, 'pages stay') ;
check('the transaction that began in recovery', session => $old, open => 1);
for my $sql ('UPDATE t SET n = n + 1 WHERE id % 300 = 7', 'VACUUM t', 'DELETE FROM t WHERE id % 300 = 5; VACUUM t')
{
	well($session, $sql);
	check("changed: $sql") for 1, 2;
	check("beside a transaction that began in recovery: $sql", session => $old, open => 1);
}
is(well($old, GpuHash::Resident::digest_sql($GpuHash::Resident::QUERY{groups})), $before, 'to that transaction all is as it was');
well($old, 'COMMIT');
check('another one of that session', session => $old);

note("$compared answers were compared, $used pages of them were on the device before");
cmp_ok($used, '>', 1000, 'pages were used that were on the device');
$_->close for $session, $old, $primary;
unlike($standby->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log of the standby');
$standby->stop('fast');
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
