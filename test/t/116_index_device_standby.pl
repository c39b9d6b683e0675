# Copies of an index on a device of a hot standby (src/index/README, "On a standby" and "On a device"): answers are PostgreSQL's
# while the primary writes and vacuums, also between two leaf pages that are read; a copy ends with recovery, and another one is made
# then.  In the place of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Index;
use GpuHash::Service;
use Time::HiRes qw(time sleep);

my $service = GpuHash::Service->new(conf => ['shared_buffers = 128MB', 'bgwriter_lru_maxpages = 0', 'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'max_standby_streaming_delay = -1',
	'checkpoint_timeout = 1h']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $primary = $server->session;
my $QUERY = 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k';
my %QUERY = (left => $QUERY, right => $QUERY =~ s/LEFT/RIGHT/r, inner => $QUERY =~ s/LEFT//r, anti => 'SELECT count(*), sum(o.v) FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.k = o.k)');
well($primary, 'CREATE TABLE o AS SELECT i * 7919::bigint % 13000 - 1000 AS k, i::bigint AS v FROM generate_series(1, 20000) i; CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, 12000) i;
	CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)');
well($primary, "VACUUM ANALYZE $_") for 's', 'o';
my $standby = $server->standby;
for (1 .. 200) { last if eval { $standby->query('SELECT gpuhash_fault_ready()') }; sleep 0.1 }
my ($session, $maker, $control, $old) = map { $standby->session } 1 .. 4;
my $PREWARM = "SELECT gpuhash_prewarm('s_k') > 0";

# by: by the copy, or not, or in whatever way
sub right
{
	my ($what, $by, $in) = @_;
	$in //= $session;
	for my $name (sort keys %QUERY)
	{
		my $got = well($in, $QUERY{$name});
		my $plan = well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}");
		is($got, well($in, "SET gpuhash.enabled = off; $QUERY{$name}; SET gpuhash.enabled = on"), "$what: $name");
		like($plan, qr/Engine: cuda/, '  by the device') or diag($plan);
		($by ? \&like : \&unlike)->($plan, qr/Blocks From Index/, '  ' . ($by ? '' : 'not ') . 'by the copy') or diag($plan) if defined $by && ($name ne 'right' || !$by);
	}
	return;
}

sub await
{
	my ($what, $is_so) = @_;
	for (1 .. 600) { return 1 if $is_so->(); sleep 0.02 }
	return fail($what);
}

right('without a copy', 0);
is(well($session, $PREWARM), 't', 'a copy is made on a standby');
is(well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation::text = 's_k' AND device = 0 AND tables = 1"), 1, '  on the device');
right('replaying nothing', 1);
# a page of the visibility map that has changed is one of all blocks
for my $sql ('INSERT INTO s SELECT i, 1, 1 FROM generate_series(20, 25) i', 'UPDATE s SET a = 0 WHERE k BETWEEN 400 AND 405', 'DELETE FROM s WHERE k BETWEEN 500 AND 505', 'VACUUM (INDEX_CLEANUP on) s', 'INSERT INTO s SELECT i, 2, 1 FROM generate_series(500, 505) i',
	'VACUUM (FREEZE) s', 'DELETE FROM s WHERE k BETWEEN 700 AND 800', 'VACUUM (INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP off) s', 'REINDEX INDEX s_k')
{
	well($primary, $sql);
	catch_up($server, $standby);
	right("replayed: $sql", undef);
}
is(well($session, $PREWARM), 't', 'another one is made');
right('by the other one', 1);

# while leaf pages are read
for my $after (0, 3, 12)
{
	well($primary, 'UPDATE s SET a = a + 1 WHERE k = 3000');
	well($primary, 'VACUUM (INDEX_CLEANUP on) s');
	catch_up($server, $standby);
	well($control, "SELECT gpuhash_fault_arm('index_leaf', 'hold', $after, 1, 0)");
	$maker->send($PREWARM);
	await('the maker is held', sub { well($control, 'SELECT gpuhash_fault_fired()') == 1 });
	well($primary, 'INSERT INTO s SELECT i, 3, 2 FROM generate_series(1, 12000, 9) i; DELETE FROM s WHERE k BETWEEN 6000 AND 6100');
	# of rows that the maker's snapshot may see none is removed before it is through
	catch_up($server, $standby);
	well($control, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
	my ($out, $error) = $maker->receive;
	like("$out$error", qr/^t$|no copy of index/, "rows come and go behind leaf page $after: a copy is made, or not");
	right("rows have come and gone behind leaf page $after", undef);
	well($primary, 'VACUUM (INDEX_CLEANUP on) s');
	catch_up($server, $standby);
	right('  and were vacuumed', undef);
	well($primary, 'DELETE FROM s WHERE c = 2');
	well($primary, 'VACUUM (INDEX_CLEANUP on) s');
	catch_up($server, $standby);
	right('  and are gone', undef);
}

# it is promoted: a copy of recovery is no more
is(well($session, $PREWARM), 't', 'there is a copy');
right('by it', 1);
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
right('a transaction that begins in recovery', 1, $old);
my $want = well($old, $QUERY);
$primary->close;
$server->stop;
is(well($session, 'SELECT pg_promote()'), 't', 'the standby is promoted');
for my $sql ('SELECT 1', 'UPDATE s SET a = a + 7 WHERE k BETWEEN 50 AND 60', 'DELETE FROM s WHERE k BETWEEN 70 AND 80', 'VACUUM (INDEX_CLEANUP on) s', 'INSERT INTO s SELECT i, 9, 3 FROM generate_series(70, 80) i')
{
	well($session, $sql);
	right("promoted: $sql", 0);
	is(well($old, $QUERY), $want, '  the transaction that began in recovery has what it had');
}
well($old, 'COMMIT');
well($session, 'VACUUM (INDEX_CLEANUP on) s');
is(well($session, $PREWARM), 't', 'and another copy is made');
right('by that', 1);
well($session, 'INSERT INTO s VALUES (77, 77, 7)');
right('and rows that are new', 1);
$_->close for $session, $maker, $control, $old;
unlike($server->log . $standby->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
