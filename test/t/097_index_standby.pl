# Indexes of the access method gpuhash on a hot standby: joins are right whatever is replayed, by copies that are made there or without,
# also by snapshots that VACUUM on the primary knows nothing of; a conflict ends a query, and is never a wrong answer.  When it is
# promoted while a query runs, that one has what its snapshot has, though a copy may be made from then on.
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'gpuhash.force_offload = on', 'autovacuum = off', 'max_parallel_workers_per_gather = 0',
	'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'hot_standby_feedback = off', 'max_standby_streaming_delay = -1', 'max_worker_processes = 8']);
my $primary = $server->session;
my $ROWS = 9000;
my $FILL = "INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, $ROWS) i; INSERT INTO s SELECT i, -i, 0 FROM generate_series(10, $ROWS, 10) i";
well($primary, "CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); $FILL; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a); CREATE TABLE o AS SELECT i * 7919::bigint % 10007 - 200 AS k, i::bigint AS v FROM generate_series(1, 30000) i");
well($primary, "VACUUM ANALYZE $_") for 's', 'o';
my %QUERY = (inner => 'SELECT count(*), sum(o.v), sum(s.a), sum(s.k) FROM o JOIN s ON s.k = o.k', left => 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k',
	anti => 'SELECT count(*), sum(o.v) FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.k = o.k)');
my @names = sort keys %QUERY;
my $standby = $server->standby;
my ($session, $old, $control) = map { $standby->session } 1 .. 3;

# What a session has in a snapshot with gpuhash is what it has without.  by: 1: by the copy, 0: without one.
sub right
{
	my ($what, $in, %how) = @_;
	well($in, 'BEGIN ISOLATION LEVEL REPEATABLE READ') unless $how{open};
	for my $name (@names)
	{
		my $plan = well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}");
		is(well($in, $QUERY{$name}), $how{want}{$name} // well($in, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on"), "$what: $name");
		next if !defined $how{by};
		($how{by} ? \&like : \&unlike)->($plan, qr/Inner Index: s_k/, '  ' . ($how{by} ? '' : 'not ') . 'by the copy');
	}
	well($in, 'COMMIT') unless $how{open};
	return;
}

sub answers { my ($in) = @_; return { map { ($_ => well($in, "SET LOCAL gpuhash.enabled = off; $QUERY{$_}; SET LOCAL gpuhash.enabled = on")) } @names } }

# --------------------------------------------------------------------- while it replays

my @CHANGES = (['UPDATE s SET a = a + 1 WHERE k % 400 = 7'], ['VACUUM s'], ['DELETE FROM s WHERE k % 300 = 5', 'VACUUM (INDEX_CLEANUP on) s'], ['INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 9500, 90) i', 'VACUUM s'],
	['DELETE FROM s WHERE k BETWEEN 2000 AND 5000', 'VACUUM (INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP on) s', 'INSERT INTO s SELECT i, 2, 0 FROM generate_series(1, 2500) i'], ['REINDEX INDEX s_k'], ['REINDEX INDEX CONCURRENTLY s_k'],
	['BEGIN; DELETE FROM s; ROLLBACK', 'VACUUM s'], ["TRUNCATE s; $FILL", 'VACUUM ANALYZE s']);
for my $change (@CHANGES)
{
	well($primary, $_) for @$change;
	catch_up($server, $standby);
	right("replayed, $change->[0]", $session);
	right("and on the primary, $change->[0]", $primary);
	is(well($session, $QUERY{left}), well($primary, $QUERY{left}), 'which has the same');
}
well($session, "SELECT gpuhash_prewarm('s_k')");
right('a copy is made there', $session, by => 1);
well($primary, "SELECT gpuhash_prewarm('s_k')");
right('the primary has one', $primary, by => 1);

# a snapshot of the standby that the primary's VACUUM does not wait for: replay does
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
my $want = answers($old);
well($primary, 'DELETE FROM s WHERE k % 7 = 3; UPDATE s SET a = 0 WHERE k % 7 = 4');
well($primary, 'VACUUM (INDEX_CLEANUP on) s');
well($primary, "INSERT INTO s SELECT i, 77, 0 FROM generate_series(3, $ROWS, 7) i");
sleep 0.5;
right('an old snapshot that replay waits for', $old, open => 1, want => $want);
well($old, 'COMMIT');
catch_up($server, $standby);
right('and when it has gone', $session);
is(well($session, $QUERY{left}), well($primary, $QUERY{left}), 'the primary has the same');

# or ends whoever has it
well($control, "ALTER SYSTEM SET max_standby_streaming_delay = '100ms'");
well($control, 'SELECT pg_reload_conf()');
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$want = answers($old);
well($primary, 'DELETE FROM s WHERE k % 11 = 3');
well($primary, 'VACUUM (INDEX_CLEANUP on) s');
well($primary, "INSERT INTO s SELECT i, 78, 0 FROM generate_series(3, $ROWS, 11) i");
my ($ended, $wrong, $rounds) = ('', '', 0);
my $deadline = time + 30;
while ($ended eq '' && time < $deadline)
{
	my $name = $names[$rounds++ % @names];
	# between two of them it is the session that ends
	my ($got, $error) = eval { $old->do($QUERY{$name}) };
	$error = $@ if !defined $got;
	if ($error ne '') { $ended = $error }
	elsif ($got ne $want->{$name}) { $wrong .= "$name: $got\n" }
}
is($wrong, '', "until a conflict ends it, none of $rounds answers was wrong");
like($ended, qr/40001|57P01|conflict with recovery/, 'a conflict with recovery ends it');
$old->close;
$old = $standby->session;
catch_up($server, $standby);
right('the next one', $session);
well($control, "ALTER SYSTEM RESET max_standby_streaming_delay");
well($control, 'SELECT pg_reload_conf()');

# a crash of the standby
$_->close for $session, $old, $control;
$standby->stop('immediate');
well($primary, 'UPDATE s SET a = a + 1 WHERE k % 50 = 9');
$standby->start;
($session, $old, $control) = map { $standby->session } 1 .. 3;
catch_up($server, $standby);
right('after a crash of the standby', $session);

# ---------------------------------------------------------------- promoted, in mid-query

well($primary, "TRUNCATE s; $FILL");
well($primary, 'VACUUM ANALYZE s');
catch_up($server, $standby);
my $third = $standby->session;
my %held = (inner => $session, left => $third);
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$want = answers($old);
# each is held before it looks for a copy; the one that was made in recovery ends with it
well($control, "SELECT gpuhash_prewarm('s_k')");
well($control, "SELECT gpuhash_fault_arm('index_copy', 'hold', 0, 2, 0)");
$held{$_}->send($QUERY{$_}) for sort keys %held;
for (1 .. 500) { last if well($control, 'SELECT gpuhash_fault_fired()') == 2; sleep 0.02 }
is(well($control, 'SELECT gpuhash_fault_fired()'), 2, 'queries are held');
$primary->close;
$server->stop;
is(well($control, 'SELECT pg_promote()'), 't', 'it is promoted meanwhile');
my $writer = $standby->session;
well($writer, 'DELETE FROM s WHERE k % 900 = 5; UPDATE s SET a = a + 1 WHERE k % 900 = 6; INSERT INTO s SELECT i, 9, 0 FROM generate_series(1, 9500, 900) i');
well($writer, 'VACUUM (INDEX_CLEANUP on) s');
cmp_ok(well($writer, "SELECT gpuhash_prewarm('s_k')"), '>', 0, 'a copy is made');
right('by it', $writer, by => 1);
well($control, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
for my $name (sort keys %held)
{
	my ($got, $error) = $held{$name}->receive;
	is("$error$got", $want->{$name}, "a query that began in recovery: $name");
}
right('a transaction that began in recovery', $old, open => 1, want => $want);
for my $change ('DELETE FROM s WHERE k % 900 = 8', 'UPDATE s SET c = 1 WHERE k % 900 = 9', 'INSERT INTO s SELECT i, 10, 0 FROM generate_series(2, 9500, 900) i')
{
	well($writer, $change);
	right("beside it, $change", $writer);
	well($writer, 'VACUUM (INDEX_CLEANUP on) s');
	right("vacuumed, $change", $_) for $writer, $session;
	right("a transaction that began in recovery, after $change", $old, open => 1, want => $want);
}
well($old, 'COMMIT');
well($writer, 'VACUUM (INDEX_CLEANUP on) s; ');
well($writer, "SELECT gpuhash_prewarm('s_k')");
right('and when that has ended', $_, by => 1) for $writer, $session, $old;
is(broken($standby) // '', '', 'amcheck finds nothing');
$_->close for $session, $old, $control, $third, $writer;
unlike($server->log . $standby->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
