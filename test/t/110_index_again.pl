# Copies of indexes that are made again: in the background, beside the one that is in use, by one process, while nobody waits for it;
# both are right meanwhile; and whatever fails there, or comes in between, no query fails.
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 10;
my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off', 'gpuhash.force_offload = on',
	'max_parallel_workers_per_gather = 0', 'log_min_messages = debug1']);
my ($session, $writer, $control) = map { $server->session } 1 .. 3;
my $QUERY = 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k';
my $ROWS = 20000;
my $blocks;
well($session, "CREATE TABLE o AS SELECT i * 7919::bigint % 23000 - 1000 AS k, i::bigint AS v FROM generate_series(1, 30000) i");
well($session, 'VACUUM ANALYZE o');

sub fresh
{
	well($control, "DROP TABLE IF EXISTS s; CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, $ROWS) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)");
	# rows that are inserted later come to any block
	well($control, "ALTER TABLE s SET (fillfactor = 100)");
	well($control, 'VACUUM ANALYZE s');
	$blocks = well($control, "SELECT pg_relation_size('s') / 8192");
	return is(well($control, "SELECT gpuhash_prewarm('s_k') = pg_relation_size('s') / 8192"), 't', 'there is a copy');
}

# Of one block in so many a row is deleted, and its entry removed, so that the copy is not right for the block any more.
sub age
{
	my ($step) = @_;
	well($writer, "DELETE FROM s WHERE ctid IN (SELECT min(ctid) FROM s WHERE (ctid::text::point)[0]::int % $step = 0 GROUP BY (ctid::text::point)[0])");
	return well($writer, 'VACUUM (INDEX_CLEANUP on) s');
}

# New rows, until one is on a block that both copies are right for: none that age() has aged, nor one of rows that are deleted.
sub insert_into_right
{
	my ($step, $a) = @_;
	my $there = 0;
	for (1 .. 300)
	{
		well($writer, "INSERT INTO s VALUES ($_ * 50, $a, 0)");
		last if $there = well($writer, "SELECT count(*) FROM s WHERE a = $a AND k % 50 = 0 AND (ctid::text::point)[0]::int % $step <> 0 AND (ctid::text::point)[0]::int < $blocks
			AND (ctid::text::point)[0] NOT IN (SELECT (ctid::text::point)[0] FROM s WHERE k BETWEEN 5990 AND 6010)") > 0;
	}
	return is($there, 1, 'a row comes to a block that did not change before');
}

sub shown { return well($_[0] // $session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY") }
sub from_heap { my ($plan) = @_; return $plan =~ /Blocks From Heap: (\d+)/ ? $1 : $plan =~ /Blocks From Index/ ? 0 : undef }
sub workers { return well($control, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpuhash copies worker'") }

# The answer, in one snapshot.
sub right
{
	my ($what, $in) = @_;
	$in //= $session;
	return is(well($in, "BEGIN ISOLATION LEVEL REPEATABLE READ; $QUERY"), well($in, "SET LOCAL gpuhash.enabled = off; $QUERY; COMMIT"), "$what: the answer");
}

sub await
{
	my ($what, $is_so) = @_;
	for (1 .. 600) { return pass($what) if $is_so->(); sleep 0.05 }
	return fail($what);
}

# Queries go on until another copy has been made: one by which no block of the table is read.
sub await_another { my ($what) = @_; return await("$what: another copy", sub { my $heap = from_heap(shown()); defined $heap && $heap == 0 }) }

sub hold { my ($after) = @_; return well($control, "SELECT gpuhash_fault_arm('index_remade', 'hold', " . ($after // 0) . ', 1, 0)') }
sub release { return well($control, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)") }

# A worker makes another copy, and is held.
sub hold_maker
{
	my ($what, $after) = @_;
	hold($after);
	return await("$what: a worker makes a copy", sub { shown(); well($control, 'SELECT gpuhash_fault_fired()') == 1 });
}

# ------------------------------------------------------------------ beside the old one

fresh();
age(9);
# of entries that are removed while it is made
well($writer, 'DELETE FROM s WHERE k IN (6000, 6001)');
hold_maker('of some blocks', 3);
my $plan = shown();
like($plan, qr/Inner Index: s_k/, 'meanwhile the copy that there was is used');
unlike($plan, qr/Copy Build Time/, '  and no query makes one');
cmp_ok(from_heap($plan), '>', 0, '  with blocks of the table');
is(workers(), 1, '  by one process');
is(well($control, "SELECT backend_type FROM gpuhash_stat_progress p JOIN pg_stat_activity USING (pid) WHERE command = 'copy of index' AND p.relation = 's_k'::regclass"), 'gpuhash copies worker', 'which the view of progress shows');
right('meanwhile');
# what is inserted, deleted and removed meanwhile is noted for both copies
well($writer, "DELETE FROM s WHERE k % 10000 = 5; UPDATE s SET k = k + 20000 WHERE k % 10000 = 7");
right('others write meanwhile');
well($writer, 'VACUUM (INDEX_CLEANUP on) s');
right('and are vacuumed');
like(shown(), qr/Inner Index: s_k/, '  by the old copy');
# no entry is removed any more, which would note blocks of rows that are new
insert_into_right(9, -8);
well($writer, 'VACUUM (INDEX_CLEANUP on) s');
right('and new rows come');
my $before = from_heap(shown());
release();
await('the other one is published', sub { my $heap = from_heap(shown()); defined $heap && $heap < $before });
right('by the other one');
like(shown(), qr/Inner Index: s_k/, '  which is used');
is(well($control, "SELECT count(*) FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device IS NULL AND tables = 1"), 1, 'there is one copy then');
# the maker's snapshot was one that VACUUM kept rows for; where it removes no entries, it notes no blocks
for my $how ('off', 'on')
{
	well($writer, "VACUUM (INDEX_CLEANUP $how) s");
	right("vacuumed, INDEX_CLEANUP $how");
	like(shown(), qr/Inner Index: s_k/, '  by the copy');
}

# whoever had the old one goes on with it
fresh();
{
	my $cursor = $server->session;
	age(7);
	my $want = well($cursor, "SELECT sum(a) FROM o JOIN s ON s.k = o.k");
	well($cursor, 'BEGIN; SET LOCAL cursor_tuple_fraction = 1; DECLARE c CURSOR FOR SELECT s.a FROM o JOIN s ON s.k = o.k');
	my $first = well($cursor, 'FETCH 10 FROM c');
	await_another('with an open cursor');
	my $rest = well($cursor, 'FETCH ALL FROM c');
	my $sum = 0;
	$sum += $_ for split /\n/, "$first\n$rest";
	is($sum, $want, 'a cursor has the rows that it had');
	well($cursor, 'COMMIT');
	$cursor->close;
}

# more has changed than a query does with: it goes on without, and does not wait
fresh();
age(3);
hold_maker('of many blocks', 2);
$plan = shown();
unlike($plan, qr/Inner Index/, 'a copy that is wrong for many blocks is not used');
like($plan, qr/Without Copy: s_k: too many blocks have changed/, '  which EXPLAIN says');
right('without a copy');
release();
await_another('of many blocks');
right('by the other one');

# ------------------------------------------------------------------ whoever makes it by name

age(7);
hold_maker('by name', 2);
$writer->send("SELECT gpuhash_prewarm('s_k') > 0");
await('gpuhash_prewarm() waits for who makes it', sub { well($control, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT gpuhash_prewarm%' AND wait_event IN ('GpuhashCopy', 'Extension')") == 1 });
release();
my ($out, $error) = $writer->receive;
is("$out$error", 't', '  and is done with that');

# ------------------------------------------------------------------ what fails

for my $how ('launch', 'term', 'cancelled')
{
	fresh();
	age(9);
	if ($how eq 'cancelled')
	{
		hold_maker('cancelled', 3);
		my $pid = well($control, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'gpuhash copies worker'");
		# the copy that there is goes on, with what is written meanwhile
		insert_into_right(9, -9);
		well($control, "SELECT pg_cancel_backend($pid)");
		release();
		await('an error ends the worker', sub { well($control, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") == 0 });
		like($server->log, qr/ERROR:  canceling statement due to user request/, '  which the log says');
	}
	else
	{
		well($control, "SELECT gpuhash_fault_arm('index_remade', '$how', 3, 1, 0)");
		await("$how: it fails", sub { shown(); well($control, 'SELECT gpuhash_fault_fired()') == 1 });
		await("$how: the worker is gone", sub { workers() == 0 });
	}
	like(shown(), qr/Inner Index: s_k\n\s+Blocks From Index/, "$how: the copy that there was is used");
	right("$how: afterwards");
	well($writer, 'VACUUM (INDEX_CLEANUP on) s');
	right("$how: vacuumed");
	release();
	await_another("$how: it is tried again");
	right("$how: in the end");
}

# ------------------------------------------------------------------ whoever wants a lock

for my $sql ('DROP INDEX s_k', 'REINDEX INDEX s_k', 'TRUNCATE s', 'DROP TABLE s', 'ALTER TABLE s ADD x int')
{
	fresh();
	age(7);
	hold_maker($sql, 4);
	$writer->send($sql);
	await("$sql waits", sub { well($control, 'SELECT count(*) FROM pg_locks WHERE NOT granted') > 0 });
	release();
	is(($writer->receive)[1], '', "$sql is done");
	await("$sql: the worker is gone", sub { workers() == 0 });
	right($sql) if $sql !~ /DROP TABLE/;
}
for my $sql ('DROP DATABASE two', 'CREATE DATABASE three TEMPLATE two')
{
	well($control, 'CREATE DATABASE two');
	my $two = $server->session;
	$two->do('\\c two');
	well($two, "SET client_min_messages = warning; CREATE EXTENSION gpuhash; CREATE TABLE o AS SELECT i::bigint AS k, i::bigint AS v FROM generate_series(1, 30000) i; CREATE TABLE s AS SELECT i::bigint AS k, i::bigint AS a FROM generate_series(1, 20000) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)");
	well($two, "VACUUM ANALYZE $_") for 's', 'o';
	well($two, "SELECT gpuhash_prewarm('s_k'); UPDATE s SET a = 1 WHERE k < 3000");
	well($two, 'VACUUM s') for 1, 2;
	hold(4);
	await("$sql: a worker makes a copy", sub { shown($two); well($control, 'SELECT gpuhash_fault_fired()') == 1 });
	$two->close;
	$writer->send($sql);
	await("$sql waits", sub { well($control, 'SELECT count(*) FROM pg_locks WHERE NOT granted') > 0 });
	release();
	is(($writer->receive)[1], '', "$sql is done");
	well($control, 'DROP DATABASE IF EXISTS two');
}
well($control, 'DROP DATABASE three');

# ------------------------------------------------------------------ who asks

# the planner, of whose plans none would use the copy as it is; keys of an array
fresh();
age(3);
well($control, 'CREATE ROLE reader');
my %ASK = ('the planner' => 'EXPLAIN SELECT count(*), sum(s.a) FROM o JOIN s ON s.k = o.k WHERE o.v < 500', 'keys of an array' => 'SET enable_bitmapscan = off; SELECT a FROM s WHERE k IN (1, 2, 3, 5, 11, 16); RESET enable_bitmapscan');
well($session, 'SET gpuhash.force_offload = off; SET ROLE reader');
hold();
like(($session->do($ASK{'the planner'}))[1], qr/42501/, 'a user may not read the table') for 1 .. 3;
sleep 0.5;
is(well($control, 'SELECT gpuhash_fault_fired()'), 0, '  and no copy is made for that');
release();
well($session, 'RESET ROLE');
for my $who (sort keys %ASK)
{
	fresh();
	age(3);
	well($session, 'SET gpuhash.force_offload = ' . ($who =~ /keys/ ? 'on' : 'off'));
	hold();
	await("$who: a worker makes a copy", sub { well($session, $ASK{$who}); well($control, 'SELECT gpuhash_fault_fired()') == 1 });
	release();
}
well($session, 'RESET gpuhash.force_offload');
await_another('asked for by the planner');
well($control, 'DROP ROLE reader');

# ------------------------------------------------------------------ without room for both

fresh();
my $bytes = well($control, "SELECT bytes + table_bytes FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device IS NULL");
well($control, 'ALTER SYSTEM SET gpuhash.resident_memory = ' . int($bytes / 1048576 * 1.5 + 1));
well($control, 'SELECT pg_reload_conf()');
await('the setting is there', sub { well($session, 'SHOW gpuhash.resident_memory') ne '-1' });
age(7);
await_another('without room for both');
right('without room for both');
well($control, 'ALTER SYSTEM RESET gpuhash.resident_memory');
well($control, 'SELECT pg_reload_conf()');

$_->close for $session, $writer, $control;
unlike($server->log, qr/PANIC|TRAP:|terminated by signal|WARNING:/, 'nothing else failed');
done_testing();
