# A hot standby's device has pages that stay there, too: what is all-visible there the visibility map tells, and not the
# pages' own flag.  Answers are PostgreSQL's in the same snapshot, and when all is replayed the primary's, whatever is
# written meanwhile; when the standby is promoted, copies of before are used no more.  In the place of the CUDA engine
# there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_SECONDS		of queries while writers' changes are replayed (4)
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $seconds = $ENV{GPUHASH_SECONDS} || 4;
my $ROWS = 20000;
my $service = GpuHash::Service->new(conf => ['shared_buffers = 256MB', 'wal_level = replica', 'max_wal_senders = 4',
	'hot_standby = on', 'max_connections = 30', 'max_standby_streaming_delay = -1']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');

sub well
{
	my ($session, $sql) = @_;
	my ($out, $error) = $session->do($sql);
	is($error, '', "no error: $sql") if $error ne '';
	return $out;
}

my $primary = $server->session;
well($primary, "SET gpuhash.enabled = off");
well($primary, "CREATE TABLE beat AS SELECT 0 AS n; CREATE TABLE t (id int, g int, n numeric(12, 2), x text); INSERT INTO t SELECT i, i % 9, i / 7.0, 'x' || i % 40 FROM generate_series(1, $ROWS) i; VACUUM ANALYZE t");
my $standby = $server->standby;
for (1 .. 100) { last if eval { $standby->query('SELECT gpuhash_fault_ready()') } ; sleep 0.1 }
my $session = $standby->session;

# Sums, groups by texts, rows that come one by one, and a count for which no row is looked at.
my @QUERIES = ('SELECT g, count(*), sum(n), min(id), max(id) FROM t GROUP BY g', 'SELECT x, count(*) FROM t WHERE id % 3 > 0 GROUP BY x',
	'SELECT id, n, x FROM t WHERE n > 1000 AND g < 4', 'SELECT count(*) FROM t');

# Pages that the device did not need, by now.
sub found { return well($session, 'SELECT pages_resident FROM gpuhash_stat') }

# Pages of which the rows' hints tell what is visible, where none is there already.
sub hinted
{
	my $plan = well($session, "SET gpuhash.enable_resident = off; EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) $QUERIES[1]; RESET gpuhash.enable_resident");
	return $plan =~ /Hinted Pages: (\d+)/ ? $1 : 'none told';
}

# All that the primary has written is replayed.
sub catch_up
{
	# what VACUUM writes nobody waits for
	my $lsn = well($primary, 'SET synchronous_commit = on; UPDATE beat SET n = n + 1; RESET synchronous_commit; SELECT pg_current_wal_lsn()');
	for (1 .. 400) { return if well($session, "SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't'; sleep 0.05 }
	fail('the standby does not catch up');
	return;
}

# The standby's answers are the primary's; how many pages its device had.
sub check
{
	my ($name) = @_;
	catch_up();
	my $before = found();
	for my $query (@QUERIES)
	{
		my $digest = GpuHash::Service::digest_sql($query);
		is(well($session, $digest), well($primary, $digest), "$name: $query");
	}
	return found() - $before;
}

# ------------------------------------------------------------------- one change after the other

my ($plan) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $QUERIES[0]");
like($plan, qr/Engine: cuda/, 'a query on the standby is done by the device');
my $blocks = well($session, "SELECT pg_relation_size('t') / current_setting('block_size')::int");
my $resident = "SELECT coalesce(sum(resident), 0) FROM gpuhash_resident WHERE relation = 't'::regclass";
is(well($session, $resident), $blocks, 'all pages stay on the device');
cmp_ok(check('at first'), '>=', $blocks, 'and are used');

for my $change ('UPDATE t SET n = n + 1 WHERE id < 300', 'VACUUM t', 'DELETE FROM t WHERE id % 50 = 0 AND id > 10000', 'VACUUM t', 'VACUUM FREEZE t',
	'BEGIN; DELETE FROM t WHERE id < 5000; ROLLBACK', "INSERT INTO t SELECT i, 3, i, 'new' FROM generate_series(1, 2000) i", 'VACUUM t',
	'DELETE FROM t WHERE ctid >= (SELECT max(ctid) FROM t WHERE id = 2000)', 'VACUUM t', 'CHECKPOINT; UPDATE t SET g = 1 WHERE id = 7000', 'VACUUM t')
{
	well($primary, $change);
	cmp_ok(check($change), '>', 0, "$change: other pages are there yet") if $change !~ /FREEZE|generate_series/;
	check("$change, again") if $change =~ /FREEZE|generate_series/;
}
cmp_ok(check('in the end'), '>=', $blocks, 'pages are used');

# ------------------------------------------------------------------- the flag alone does not do

SKIP:
{
	skip 'no pg_visibility', 11 if ($primary->do('CREATE EXTENSION pg_visibility'))[1] ne '';
	well($primary, "SELECT pg_truncate_visibility_map('t')");
	is(check('without a map'), 0, 'pages that have the flag, but not the bit, are not used');
	my $hinted = hinted();
	cmp_ok($hinted, '>', 0, 'and are not all-visible');
	well($primary, 'VACUUM t');
	check('with a new map');
	cmp_ok(check('with a new map, again'), '>', 0, 'pages are used again');
	cmp_ok(hinted(), '<', $hinted, 'and are all-visible, but for those with free lines');
}

well($primary, "TRUNCATE t; INSERT INTO t SELECT i, i % 5, i, 'y' || i % 30 FROM generate_series(1, $ROWS) i");
is(check('after TRUNCATE'), 0, 'pages of before are not used');
well($primary, 'VACUUM t');
check('after VACUUM');
cmp_ok(check('after VACUUM, again'), '>', 0, 'pages of the new file are used');

# ---------------------------------------------------------------------- while changes are replayed

# The device's answer and PostgreSQL's in one snapshot.
sub compare_in_snapshot
{
	my ($reader, $query) = @_;
	my $digest = GpuHash::Service::digest_sql($query);
	well($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $want = well($reader, "SET LOCAL gpuhash.enabled = off; $digest");
	my $got = well($reader, "SET LOCAL gpuhash.enabled = on; $digest");
	well($reader, 'COMMIT');
	return $got eq $want;
}

my ($writer, $cleaner) = map { $server->session } 1, 2;
$writer->send("DO \$\$ BEGIN WHILE extract(epoch FROM clock_timestamp()) < @{[time + $seconds]} LOOP
	UPDATE t SET n = n + 1 WHERE id BETWEEN v AND v + 20; COMMIT;
	DELETE FROM t WHERE id = v + 100; INSERT INTO t VALUES (v, 3, v, 'w'); v := 1 + (v * 7919) % $ROWS; COMMIT;
	END LOOP; END \$\$" =~ s/DO \$\$ BEGIN/DO \$\$ DECLARE v int := 1; BEGIN/r);
my $end = time + $seconds;
my $before = found();
my ($rounds, $wrong) = (0, 0);
while (time < $end)
{
	$cleaner->send($rounds % 5 == 4 ? 'VACUUM FREEZE t' : 'VACUUM t');
	$wrong += !compare_in_snapshot($session, $_) for @QUERIES;
	$cleaner->receive;
	$rounds++;
}
$writer->receive;
is($wrong, 0, "while changes are replayed, answers are PostgreSQL's");
cmp_ok($rounds, '>', 2, 'in some rounds');
cmp_ok(found() - $before, '>', 0, 'and pages are used');
check('after the writers');

# -------------------------------------------------------------------------------- promotion

my $old = $standby->session;
my $digest = GpuHash::Service::digest_sql($QUERIES[0]);
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
my $seen = well($old, $digest);
well($primary, 'VACUUM t');
catch_up();
check('before the promotion');
cmp_ok(well($session, $resident), '>', 0, 'pages are there');
GpuHash::Server::must("$standby->{bin}/pg_ctl", '-D', "$standby->{dir}/data", '-w', '-t', 60, 'promote');
is(well($session, $resident), 0, 'after the promotion none of them is');
$before = found();
ok(compare_in_snapshot($session, $_), "after the promotion: $_") for $QUERIES[0];
is(found() - $before, 0, 'none was used');
well($session, 'UPDATE t SET n = n + 5 WHERE id % 7 = 0; VACUUM t');
is(well($old, $digest), $seen, 'a snapshot of before sees what it saw');
well($old, 'COMMIT');
well($session, 'VACUUM t');
for my $round (1, 2) { ok(compare_in_snapshot($session, $_), "after changes: $_, round $round") for @QUERIES }
cmp_ok(well($session, $resident), '>', 0, 'new ones are made');
cmp_ok(found() - $before, '>', 0, 'and used');

$_->close for $session, $old, $writer, $cleaner, $primary;
unlike($standby->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log of the standby');
$standby->stop('fast');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
