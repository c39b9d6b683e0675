# Copies of indexes on a hot standby, where nobody notes what is replayed: they are right for blocks by whose page of the visibility map no
# bit was set since.  By them joins and keys of arrays are right while the primary writes and vacuums; with the LSNs left out of account,
# wrong.  They end with recovery.
#
#	GPUHASH_ROUNDS		of changes on the primary (40)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $rounds = $ENV{GPUHASH_ROUNDS} || 40;
my $seed = seed();
my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'gpuhash.force_offload = on', 'autovacuum = off', 'max_parallel_workers_per_gather = 0',
	'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'max_standby_streaming_delay = -1', 'max_worker_processes = 8', 'enable_bitmapscan = off']);
my $primary = $server->session;
my $ROWS = 9000;
my $FILL = "INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, $ROWS) i; INSERT INTO s SELECT i, -i, 0 FROM generate_series(10, $ROWS, 10) i";
well($primary, "CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); $FILL; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a); CREATE TABLE o AS SELECT i * 7919::bigint % 10007 - 200 AS k, i::bigint AS v FROM generate_series(1, 20000) i;
	CREATE UNLOGGED TABLE u AS SELECT * FROM s; CREATE INDEX u_k ON u USING gpuhash (k) INCLUDE (a)");
well($primary, "VACUUM ANALYZE $_") for 's', 'o';
my %QUERY = (inner => 'SELECT count(*), sum(o.v), sum(s.a), sum(s.k) FROM o JOIN s ON s.k = o.k', left => 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k',
	anti => 'SELECT count(*), sum(o.v) FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.k = o.k)', keys => 'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k = ANY (ARRAY(SELECT k FROM o WHERE v % 3 = 0)) OFFSET 0) x');
my @names = sort keys %QUERY;
my $standby = $server->standby;
my ($session, $old, $control) = map { $standby->session } 1 .. 3;
my $taken = 0;

# How many answers in a snapshot are others than without gpuhash.
sub wrong
{
	my ($in, $open) = @_;
	my $wrong = 0;
	well($in, 'BEGIN ISOLATION LEVEL REPEATABLE READ') unless $open;
	for my $name (@names)
	{
		my $with = well($in, $QUERY{$name});
		$wrong++ if $with ne well($in, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
		$taken++ if well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}") =~ /Blocks From Index: [1-9]/;
	}
	well($in, 'COMMIT') unless $open;
	return $wrong;
}

sub right { my ($what, $by) = @_; $taken = 0; is(wrong($session), 0, $what); is($taken, $by ? @names : 0, '  ' . ($by ? '' : 'not ') . 'by the copy') if defined $by; return }
sub prewarm { return well($session, "SELECT gpuhash_prewarm('s_k')") }

# -------------------------------------------------------------- one change after the other

cmp_ok(prewarm(), '>', 0, 'a standby makes a copy of its own');
right('by it', 1);
my @CHANGES = (['UPDATE s SET a = a + 1 WHERE k % 400 = 7'], ['DELETE FROM s WHERE k % 300 = 5'], ['INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 9500, 900) i'], ['UPDATE s SET c = c + 1 WHERE k % 200 = 9'], ['BEGIN; DELETE FROM s WHERE k < 500; ROLLBACK'],
	['UPDATE s SET k = k + 1 WHERE k % 500 = 3'], ['DELETE FROM s WHERE k BETWEEN 2000 AND 5000', 'VACUUM (INDEX_CLEANUP on) s', 'INSERT INTO s SELECT i, 2, 0 FROM generate_series(1, 2500) i'], ['REINDEX INDEX s_k'], ["TRUNCATE s; $FILL"]);
for my $change (@CHANGES)
{
	prewarm();
	well($primary, $_) for @$change;
	catch_up($server, $standby);
	right("replayed, $change->[0]");
	well($primary, 'VACUUM (INDEX_CLEANUP on) s');
	catch_up($server, $standby);
	right("vacuumed, $change->[0]");
	well($primary, 'INSERT INTO s VALUES (77, 7, 0); DELETE FROM s WHERE k = 78');
	well($primary, 'VACUUM s');
	catch_up($server, $standby);
	cmp_ok(prewarm(), '>', 0, '  another copy is made');
	right("  and right, $change->[0]", 1);
}
like(($session->do("SELECT gpuhash_prewarm('u_k')"))[1], qr/no copy of index|unlogged/, 'none of an unlogged table');

# ------------------------------------------------------------------ one race after the other

sub fresh
{
	well($primary, "TRUNCATE s; $FILL");
	well($primary, 'DELETE FROM s WHERE k % 15 = 0');
	well($primary, 'VACUUM (INDEX_CLEANUP on) s') for 1, 2;
	return catch_up($server, $standby);
}

sub hold
{
	my ($what, $point, $after, $in, $sql) = @_;
	well($control, "SELECT gpuhash_fault_arm('$point', 'hold', $after, 1, 0)");
	$in->send($sql);
	my $held = 0;
	for (1 .. 600) { last if $held = well($control, 'SELECT gpuhash_fault_fired()'); sleep 0.02 }
	return is($held, 1, "held: $what");
}
sub release { return well($control, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)") }

# The leaf pages are read, and meanwhile entries come, pages are split, and rows deleted; what VACUUM does is replayed when the snapshot has gone.
my %MEANWHILE = (few => 'INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 200, 20) i; DELETE FROM s WHERE k IN (301, 8000)', splits => 'INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 3000) i; INSERT INTO s SELECT i, 2, 0 FROM generate_series(7000, 9000) i',
	moves => 'UPDATE s SET k = 9001 - k WHERE k % 3 = 1', removes => 'DELETE FROM s WHERE k < 3000 OR k > 8000');
for my $name (sort keys %MEANWHILE)
{
	for my $after (0, 5)
	{
		fresh();
		hold("leaf pages, $name, behind $after", 'index_leaf', $after, $session, "SELECT gpuhash_prewarm('s_k')");
		well($primary, $MEANWHILE{$name});
		catch_up($server, $standby);
		well($primary, 'VACUUM (INDEX_CLEANUP on) s');
		release();
		like(($session->receive)[1], qr/^$|no copy of index/, '  a copy, or none');
		right("$name, behind $after");
		catch_up($server, $standby);
		right("$name, behind $after, vacuumed");
	}
}
# a query has asked the map, and then rows change
for my $name (@names)
{
	fresh();
	prewarm();
	well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	my $want = well($session, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
	hold("behind the map, $name", 'index_asked', 0, $session, $QUERY{$name});
	well($primary, 'DELETE FROM s WHERE k % 30 = 1; UPDATE s SET a = a + 1 WHERE k % 30 = 2; INSERT INTO s SELECT i, 5, 0 FROM generate_series(1, 9500, 70) i');
	catch_up($server, $standby);
	well($primary, 'VACUUM (INDEX_CLEANUP on) s');
	well($primary, 'INSERT INTO s SELECT i, 6, 0 FROM generate_series(2, 9500, 70) i');
	sleep 0.2;
	release();
	my ($got, $error) = $session->receive;
	is("$error$got", $want, "$name: it has what its snapshot has");
	is(wrong($session, 1), 0, '  and so have others in it');
	well($session, 'COMMIT');
	catch_up($server, $standby);
	right("$name: and the next one");
}

# ------------------------------------------------------------ while the primary writes

# The same with the LSNs left out of account: a change that VACUUM has made all-visible again is not seen.
srand $seed;
for my $point ('none', 'index_lsn')
{
	well($primary, 'REINDEX INDEX s_k');
	well($primary, 'VACUUM s');
	catch_up($server, $standby);
	prewarm();
	well($control, "SELECT gpuhash_fault_arm('index_lsn', 'launch', 0, 1000000000, 0)") if $point ne 'none';
	my $found = 0;
	$taken = 0;
	for my $round (1 .. $rounds)
	{
		my $r = int rand 50;
		well($primary, ("UPDATE s SET a = a + 1 WHERE k % 50 = $r", "DELETE FROM s WHERE k % 50 = $r", "INSERT INTO s SELECT i, $round, 0 FROM generate_series(1 + $r, 9500, 50) i", 'SELECT 1')[rand 4]);
		well($primary, 'VACUUM (INDEX_CLEANUP on) s') if rand() < 0.7;
		# what is replayed meanwhile is seen, or not
		catch_up($server, $standby) if $point ne 'none';
		# none can be made where few blocks are all-visible
		$session->do("SELECT gpuhash_prewarm('s_k')") if $point eq 'none' && rand() < 0.5;
		$found += wrong($session);
		last if $found > 0;
	}
	well($control, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
	$point eq 'none' ? is($found, 0, "in $rounds rounds no answer was wrong") : cmp_ok($found, '>', 0, 'without the LSNs some are');
	cmp_ok($taken, '>', 0, "  $taken by the copy") if $point eq 'none';
}

# ------------------------------------------------------------ made again, in the background

well($primary, 'VACUUM s');
catch_up($server, $standby);
prewarm();
right('a copy', 1);
well($primary, 'UPDATE s SET a = a + 1 WHERE k % 90 = 1');
well($primary, 'VACUUM (INDEX_CLEANUP on) s');
catch_up($server, $standby);
my $again = 0;
for (1 .. 300) { last if $again = well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{left}") =~ /Inner Index: s_k/; sleep 0.1 }
is($again, 1, 'it is made again in the background');
right('by that', 1);

# --------------------------------------------------------------------- it ends with recovery

well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
my %want = map { ($_ => well($old, "SET LOCAL gpuhash.enabled = off; $QUERY{$_}; SET LOCAL gpuhash.enabled = on")) } @names;
$primary->close;
$server->stop;
is(well($control, 'SELECT pg_promote()'), 't', 'it is promoted');
my $writer = $standby->session;
well($writer, 'DELETE FROM s WHERE k % 900 = 5; UPDATE s SET a = a + 1 WHERE k % 900 = 6; INSERT INTO s SELECT i, 9, 0 FROM generate_series(1, 9500, 900) i');
right('what was made in recovery is not used');
for my $name (@names) { is(well($old, $QUERY{$name}), $want{$name}, "a transaction that began in recovery: $name") }
well($old, 'COMMIT');
well($writer, 'VACUUM (INDEX_CLEANUP on) s');
prewarm();
right('but one that is made then', 1);
$_->close for $session, $old, $control, $writer;
unlike($server->log . $standby->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
