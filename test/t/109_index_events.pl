# Copies of indexes through what happens to their tables, indexes and databases: whatever file an index has afterwards, committed or
# rolled back, joins by its copy are right; of more indexes than there are places for copies; a database that takes another one's OID
# and files; rows that logical replication applies; and where old snapshots end, there are none.
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my @CONF = ("shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off', 'gpuhash.force_offload = on', 'max_parallel_workers_per_gather = 0');
my $server = GpuHash::Server->new(module => 1, conf => [@CONF, 'wal_level = logical', 'max_worker_processes = 12', 'gpuhash.resident_memory = 200']);
my $session = $server->session;
my $QUERY = 'SELECT count(*), sum(o.v), sum(s.a), count(s.k), count(s.t) FROM o LEFT JOIN s ON s.k = o.k';
my $ROWS = "SELECT i, i * 3, 'text ' || i, 0 FROM generate_series(1, 8000) i";

# The answer is PostgreSQL's; by: by the copy, or not, or in whatever way.
sub right
{
	my ($what, $by, $in) = @_;
	$in //= $session;
	my $plan = well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY");
	is(well($in, $QUERY), well($in, "SET gpuhash.enabled = off; $QUERY; SET gpuhash.enabled = on"), $what);
	($by ? \&like : \&unlike)->($plan, qr/Inner Index: s_k/, '  ' . ($by ? '' : 'not ') . 'by the copy') if defined $by;
	return;
}

sub prewarm { my ($in) = @_; return well($in // $session, "SELECT gpuhash_prewarm('s_k') = pg_relation_size('s') / 8192") }

well($session, "SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION ''");
well($session, "CREATE TABLE o AS SELECT i * 7919::bigint % 9000 - 100 AS k, i::bigint AS v FROM generate_series(1, 20000) i;
	CREATE TABLE s (k bigint, a bigint, t text, c int) WITH (fillfactor = 80); INSERT INTO s $ROWS; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t)");
well($session, "VACUUM ANALYZE $_") for 's', 'o';

# ------------------------------------------------------------------- one event after the other

# keeps: the copy is right for what is there afterwards
my @events = (
	['REINDEX INDEX s_k'], ['REINDEX TABLE s'], ['CLUSTER s USING s_k'], ['VACUUM FULL s', outside => 1], ["TRUNCATE s; INSERT INTO s $ROWS"],
	["TRUNCATE s; SAVEPOINT x; INSERT INTO s SELECT 1, 1, '', 1; ROLLBACK TO x; INSERT INTO s $ROWS"], ['ALTER TABLE s ALTER a TYPE int'], ['ALTER TABLE s ALTER a TYPE bigint'],
	['ALTER TABLE s ALTER k TYPE int'], ['ALTER TABLE s ALTER k TYPE bigint'], ['ALTER TABLE s SET UNLOGGED'], ['ALTER TABLE s SET LOGGED'], ['ALTER INDEX s_k SET TABLESPACE elsewhere'],
	['ALTER TABLE s SET TABLESPACE elsewhere'], ['ALTER INDEX s_k SET TABLESPACE pg_default'], ['ALTER TABLE s SET TABLESPACE pg_default'],
	['ALTER INDEX s_k SET (fillfactor = 60)', keeps => 1], ['ALTER INDEX s_k RENAME TO s_key; ALTER INDEX s_key RENAME TO s_k', keeps => 1], ['ALTER TABLE s ADD z int DEFAULT 5', keeps => 1],
	['ALTER TABLE s DROP z', keeps => 1], ['ALTER TABLE s ALTER a SET STATISTICS 50', keeps => 1], ['ANALYZE s', keeps => 1],
	['DROP INDEX s_k; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (t, a)'], ['DROP INDEX s_k; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t)'],
	['CREATE TABLE new AS SELECT * FROM s; DROP TABLE s; ALTER TABLE new RENAME TO s; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t)'], ['REINDEX INDEX CONCURRENTLY s_k', outside => 1]);
for my $event (@events)
{
	my ($sql, %is) = @$event;
	is(prewarm(), 't', "$sql: there is a copy before");
	right("$sql: before", 1);
	if (!$is{outside})
	{
		well($session, "BEGIN; $sql");
		right("$sql: in the transaction", undef);
		well($session, 'ROLLBACK');
		right("$sql: rolled back", 1);
		well($session, "BEGIN; SAVEPOINT y; $sql; ROLLBACK TO y; INSERT INTO s (k, a, t, c) SELECT i, 1, 'in between', 0 FROM generate_series(1, 50) i; COMMIT");
		right("$sql: rolled back to a savepoint", undef);
		well($session, "DELETE FROM s WHERE t = 'in between'; VACUUM (INDEX_CLEANUP on) s");
		is(prewarm(), 't', "  and a copy again");
		right('  which is right', 1);
		well($session, "BEGIN; $sql; COMMIT");
	}
	else { well($session, $sql) }
	right("$sql: done", $is{keeps} ? 1 : undef);
	well($session, "INSERT INTO s (k, a, t, c) SELECT i, -i, 'more', 0 FROM generate_series(3, 8000, 400) i; DELETE FROM s WHERE k % 400 = 5 OR t = 'more' AND k < 4000");
	right("$sql: with other rows", undef);
	well($session, 'VACUUM (INDEX_CLEANUP on) s');
	right("$sql: vacuumed", undef);
}
# blocks that no row has reached, from PostgreSQL 16 on half of a table that was made anew and has grown by a row since
well($session, "TRUNCATE s; INSERT INTO s $ROWS; ALTER TABLE s ALTER c TYPE bigint; INSERT INTO s VALUES (8001, 1, 'one', 0)");
well($session, 'VACUUM (INDEX_CLEANUP on) s');
is(prewarm(), 't', 'the copy is right for blocks without rows');
unlike(well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY"), qr/Blocks From Heap/, '  which are not read');
well($session, 'DELETE FROM s WHERE k = 4000; VACUUM (INDEX_CLEANUP on) s');
right('entries of another block are removed', 1);
like(well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY"), qr/Blocks From Heap: 1\n/, '  and that one alone is read');
well($session, "BEGIN; INSERT INTO s SELECT 8002 + i, i, 'own', 0 FROM generate_series(1, 300) i");
right('rows of the transaction itself come to them', 1);
well($session, 'ROLLBACK');
right('and go', 1);
well($session, "INSERT INTO s SELECT 8002 + i, i, 'new', 0 FROM generate_series(1, 300) i");
right('rows come to them', 1);
well($session, 'VACUUM (INDEX_CLEANUP off) s');
right('and are vacuumed', 1);
well($session, 'DELETE FROM s WHERE k > 8000; VACUUM (INDEX_CLEANUP on) s');
right('and go', 1);
well($session, "SELECT gpuhash_prewarm('s_k'); SELECT gpuhash_fault_arm('index_inserted', 'launch', 0, 1000000000, 0)");
well($session, "INSERT INTO s SELECT 8002 + i, i, 'unknown', 0 FROM generate_series(1, 600) i; SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
well($session, 'VACUUM (INDEX_CLEANUP off) s');
isnt(well($session, $QUERY), well($session, "SET gpuhash.enabled = off; $QUERY; SET gpuhash.enabled = on"), 'rows that were not noted are missing');
well($session, 'REINDEX INDEX s_k');
right('and are there by another copy', undef);
# who made the table in the same transaction
well($session, "BEGIN; CREATE TABLE n (LIKE s); CREATE INDEX n_k ON n USING gpuhash (k) INCLUDE (a, t); INSERT INTO n SELECT * FROM s");
my (undef, $refused) = $session->do("SELECT gpuhash_prewarm('n_k')");
like($refused, qr/55000.*no copy of index "n_k" can be made/s, 'of a table that is new in the transaction there is none');
well($session, 'ROLLBACK');

# -------------------------------------------------------- more indexes than places for copies

my $NAMES = 70;
well($session, join '; ', map { "CREATE TABLE m$_ AS SELECT i AS k, i * $_ AS a FROM generate_series(1, 4000) i; CREATE INDEX m${_}_k ON m$_ USING gpuhash (k) INCLUDE (a)" } 1 .. $NAMES);
for my $round (1, 2)
{
	well($session, "VACUUM m$_") for 1 .. $NAMES;
	my $made = grep { well($session, "SELECT gpuhash_prewarm('m${_}_k') > 0") eq 't' } 1 .. $NAMES;
	is($made, $NAMES, "$NAMES copies are made, round $round");
	well($session, "DELETE FROM m$_ WHERE k % 1000 = $round; INSERT INTO m$_ SELECT $round, $_") for 1 .. $NAMES;
	my $wrong = 0;
	for my $number (1 .. $NAMES)
	{
		my $query = "SELECT count(*), sum(o.v), sum(m.a) FROM o JOIN m$number m ON m.k = o.k";
		$wrong++ if well($session, $query) ne well($session, "SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on");
	}
	is($wrong, 0, '  and joins are right by those that are left, and without the others');
}
well($session, "DROP TABLE m$_") for 1 .. $NAMES;
is(well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation::text LIKE 'm%\\_k'"), 0, 'of indexes that are no more there are none');

# ------------------------------------------------- a database with another one's OID and files

sub session_in { my ($database) = @_; my $new = $server->session; well($new, "\\connect $database"); well($new, 'SET client_min_messages = warning'); return $new }

$server->query('CREATE DATABASE seed');
my $seed = session_in('seed');
well($seed, "CREATE EXTENSION gpuhash; CREATE TABLE o AS SELECT i * 7919::bigint % 9000 - 100 AS k, i::bigint AS v FROM generate_series(1, 20000) i;
	CREATE TABLE s (k bigint, a bigint, t text, c int); INSERT INTO s $ROWS; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t)");
well($seed, "VACUUM ANALYZE $_") for 's', 'o';
my $places = well($seed, "SELECT string_agg(oid || ' ' || relfilenode, ', ' ORDER BY oid) FROM pg_class WHERE relname IN ('s', 's_k')");
$seed->close;
my %answer;
for my $which ('first', 'second')
{
	$server->query('CREATE DATABASE again TEMPLATE seed OID 77001');
	my $again = session_in('again');
	is(well($again, "SELECT string_agg(oid || ' ' || relfilenode, ', ' ORDER BY oid) FROM pg_class WHERE relname IN ('s', 's_k')"), $places, "the $which database has the same files");
	is(well($again, "SELECT count(*) FROM gpuhash_resident WHERE relation = 's_k'::regclass"), 0, '  and no copy');
	right("the $which database, at first", undef, $again);
	well($again, 'UPDATE s SET a = a + 1; DELETE FROM s WHERE k % 3 = 0; VACUUM (INDEX_CLEANUP on) s') if $which eq 'first';
	is(prewarm($again), 't', '  a copy is made');
	right("the $which database, by it", 1, $again);
	$answer{$which} = well($again, $QUERY);
	$again->close;
	for (1 .. 200) { last if $server->query("SELECT count(*) FROM pg_stat_activity WHERE datname = 'again'") == 0; sleep 0.05 }
	$server->query('DROP DATABASE again');
}
isnt($answer{first}, $answer{second}, 'which had other rows');

# --------------------------------------------------------------------- logical replication

well($session, "CREATE PUBLICATION changes FOR TABLE s; ALTER TABLE s REPLICA IDENTITY FULL; SELECT pg_create_logical_replication_slot('changes', 'pgoutput')");
$server->query('CREATE DATABASE subscriber TEMPLATE seed');
my $subscriber = session_in('subscriber');
well($subscriber, 'TRUNCATE s; INSERT INTO s SELECT i, i, \'before\', 0 FROM generate_series(20001, 28000) i; CREATE INDEX s_c ON s (k)');
well($subscriber, 'VACUUM ANALYZE s');
is(prewarm($subscriber), 't', 'a subscriber has a copy');
my ($host, $port, $user) = map { $server->query($_) } 'SHOW unix_socket_directories', 'SHOW port', 'SELECT current_user';
well($subscriber, "CREATE SUBSCRIPTION changes CONNECTION 'dbname=postgres host=$host port=$port user=$user' PUBLICATION changes WITH (create_slot = false, slot_name = changes, copy_data = false)");
for my $round (1 .. 4)
{
	well($session, "INSERT INTO s (k, a, t, c) SELECT i, $round, 'replicated', 0 FROM generate_series($round, 8000, 90) i; UPDATE s SET a = a + 7 WHERE t = 'replicated' AND k % 3 = 0; DELETE FROM s WHERE t = 'replicated' AND k % 7 = 0");
	well($session, "BEGIN; INSERT INTO s (k, a, t, c) SELECT i, 0, 'not', 0 FROM generate_series(1, 8000, 50) i; ROLLBACK");
	my $lsn = $server->query('SELECT pg_current_wal_lsn()');
	my $there = 0;
	for (1 .. 600) { last if $there = $server->query("SELECT confirmed_flush_lsn >= '$lsn' FROM pg_replication_slots WHERE slot_name = 'changes'") eq 't'; sleep 0.05 }
	ok($there, "changes are applied, round $round");
	right("round $round: by the copy and the blocks that changed", undef, $subscriber);
	well($subscriber, 'VACUUM (INDEX_CLEANUP on) s');
	right("round $round: vacuumed", undef, $subscriber);
	prewarm($subscriber) if $round % 2 == 0;
	right("round $round: with another copy", $round % 2 == 0 ? 1 : undef, $subscriber);
}
is(well($subscriber, "SELECT count(*) > 0 FROM s WHERE t = 'replicated'"), 't', 'rows came');
well($subscriber, 'DROP SUBSCRIPTION changes');
$_->close for $subscriber, $session;

# ------------------------------------------------------------------- where old snapshots end

SKIP:
{
	skip('old_snapshot_threshold is of PostgreSQL 15 and 16') if $server->query("SELECT count(*) FROM pg_settings WHERE name = 'old_snapshot_threshold'") == 0;
	my $ends = GpuHash::Server->new(module => 1, conf => [@CONF, 'old_snapshot_threshold = 1h']);
	my $in = $ends->session;
	well($in, "CREATE TABLE o AS SELECT i::bigint AS k, i::bigint AS v FROM generate_series(1, 20000) i; CREATE TABLE s (k bigint, a bigint, t text, c int); INSERT INTO s $ROWS; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t)");
	well($in, "VACUUM ANALYZE $_") for 's', 'o';
	(undef, $refused) = $in->do("SELECT gpuhash_prewarm('s_k')");
	like($refused, qr/55000.*no copy of index "s_k" can be made/s, 'with old_snapshot_threshold there is none');
	right('  and joins do without', 0, $in);
	$in->close;
}
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
