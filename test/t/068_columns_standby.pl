# Columns of tables in shared memory, for the CPU engine, on a hot standby: while it replays, its answers are those that PostgreSQL has
# there, whatever is replayed between them; when it is promoted, too, also in transactions that have begun before.
use GpuHash::Test 'module';
use GpuHash::Index 'catch_up';
use GpuHash::Resident 'well';
use GpuHash::Service;

my $ROWS = 8000;
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'max_standby_streaming_delay = 1s']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $primary = $server->session;
well($primary, "SET gpuhash.enabled = off; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 30, autovacuum_enabled = off); INSERT INTO t " . GpuHash::Resident::rows(1, $ROWS));
well($primary, 'VACUUM ANALYZE t');
my $standby = $server->standby;
my ($session, $old) = map { $standby->session } 1, 2;
$_->do('SET gpuhash.engine = cpu') for $session, $old;

my %SUMS = %GpuHash::Resident::SUMS;

sub check { my ($what, %options) = @_; return GpuHash::Resident::check($options{session} // $session, $what, queries => \%SUMS, %options) }

sub column_pages { return GpuHash::Resident::column_pages($session, $SUMS{a}) }

# ------------------------------------------------------------------ while it replays

check("at first, $_") for 1 .. 3;
cmp_ok(column_pages(), '>', 100, 'a standby makes columns, too');
for my $sql ('UPDATE t SET n = n + 1 WHERE id % 400 = 7', 'VACUUM t', 'DELETE FROM t WHERE id % 300 = 5; VACUUM t', 'INSERT INTO t ' . GpuHash::Resident::rows(10001, 10300), 'VACUUM (FREEZE) t',
	'DELETE FROM t WHERE id > 10000; VACUUM t', 'INSERT INTO t ' . GpuHash::Resident::rows(11001, 11900) . '; VACUUM t', 'BEGIN; UPDATE t SET g = 0; ROLLBACK; VACUUM t', 'CREATE INDEX t_n ON t (n DESC); CLUSTER t USING t_n; VACUUM t', 'TRUNCATE t; INSERT INTO t ' . GpuHash::Resident::rows(1, $ROWS) . '; VACUUM t')
{
	well($primary, $_) for split /; (?=VACUUM)/, $sql;
	catch_up($server, $standby);
	check("replayed, $_: $sql") for 1 .. 3;
	is(well($session, $SUMS{a}), well($primary, $SUMS{a}), 'as the primary has it');
}
cmp_ok(column_pages(), '>', 100, 'by columns');

# an update of many rows and a VACUUM are replayed while a snapshot is held
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM t LIMIT 1');
well($primary, 'UPDATE t SET n = n + 1 WHERE id % 3 = 0');
catch_up($server, $standby);
check("beside an old snapshot, $_", session => $old, open => 1) for 1 .. 2;
check('and to a new one');
well($old, 'COMMIT');

# ---------------------------------------------------------------- when it is promoted

well($primary, 'VACUUM t');
catch_up($server, $standby);
check("before it is promoted, $_") for 1 .. 3;
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
check('a transaction that begins in recovery', session => $old, open => 1);
is(well($session, 'SELECT pg_promote()'), 't', 'it is promoted');
check("after that, $_") for 1 .. 3;
for my $sql ('UPDATE t SET n = n + 1 WHERE id % 300 = 7', 'VACUUM t', 'DELETE FROM t WHERE id % 300 = 5; VACUUM t')
{
	well($session, "SET gpuhash.enabled = off; $_; SET gpuhash.enabled = on") for grep { !/VACUUM/ } split /; /, $sql;
	well($session, 'VACUUM t') if $sql =~ /VACUUM/;
	check("changed, $_: $sql") for 1 .. 3;
	check("beside a transaction that began in recovery: $sql", session => $old, open => 1);
}
well($old, 'COMMIT');
cmp_ok(column_pages(), '>', 100, 'by columns');
$_->close for $primary, $session, $old;
unlike($standby->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
$standby->stop;
done_testing();
