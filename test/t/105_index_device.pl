# Joins on a device whose inner side is the copy of an index there (src/index/copy_device.c, src/fragment/device_copy.c): PostgreSQL's own answer, of all join
# types that take it, whatever of the table the copy is right for; under writers and VACUUMs of all kinds; and with each of the
# interlocks left out, a wrong one within seconds.  In the place of the CUDA engine there is a stand-in (test/fault), unless
# GPUHASH_STAND_IN is "no".
#
#	GPUHASH_SECONDS		of comparisons under writers (10)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use GpuHash::Resident ();
use GpuHash::Service;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 10;
my $seed = seed();
my $service = GpuHash::Service->new(conf => ['shared_buffers = 256MB', 'max_connections = 20', 'max_worker_processes = 16', 'max_prepared_transactions = 5', 'bgwriter_lru_maxpages = 0']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $session = $server->session;

my %queries = (
	inner => 'SELECT count(*), sum(o.v), sum(s.a), count(s.t), sum(s.k) FROM o JOIN s ON s.k = o.k',
	left => 'SELECT count(*), sum(o.v), sum(s.a), count(s.k), sum(s.n) FROM o LEFT JOIN s ON s.k = o.k',
	semi => 'SELECT count(*), sum(o.v) FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.k = o.k)',
	anti => 'SELECT count(*), sum(o.v) FROM o WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = o.k)',
	'inner, a condition' => 'SELECT count(*), sum(o.v), sum(s.a) FROM o JOIN s ON s.k = o.k AND s.a > o.v',
	'left, a condition' => 'SELECT count(*), sum(o.v), sum(s.a), count(s.t) FROM o LEFT JOIN s ON s.k = o.k AND s.a > o.v',
	'semi, a condition' => 'SELECT count(*), sum(o.v) FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.k = o.k AND s.a + o.v > 30000)',
	'anti, a condition' => 'SELECT count(*), sum(o.v) FROM o WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = o.k AND s.a + o.v > 30000)',
	'of texts' => 'SELECT s.t, count(*), sum(o.v) FROM o JOIN s ON s.k = o.k GROUP BY 1 ORDER BY 2, 3, 1 LIMIT 300',
	'of narrow keys' => 'SELECT count(*), sum(o.v), sum(s.a) FROM o JOIN s ON s.k = o.small',
	'two' => 'SELECT count(*), sum(o.v), sum(s.a), sum(r.a) FROM o JOIN s ON s.k = o.k LEFT JOIN s r ON r.k = o.small');
my @names = sort keys %queries;

# The answer by the device and by PostgreSQL, of one snapshot, and the plan.
sub answers
{
	my ($in, $name) = @_;
	well($in, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $with = well($in, $queries{$name});
	my $plan = well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $queries{$name}");
	my $want = well($in, "SET LOCAL gpuhash.enabled = off; $queries{$name}");
	well($in, 'COMMIT');
	return ($with, $want, $plan);
}

# heap: whether some blocks of the table are read, too; -1: the copy is not used
sub compare_all
{
	my ($what, $heap) = @_;
	for my $name (@names)
	{
		my ($with, $want, $plan) = answers($session, $name);
		is($with, $want, "$what: $name");
		like($plan, qr/Engine: cuda/, '  by the device') or diag($plan);
		unlike($plan, qr/Inner Index/, '  not by the copy') or diag($plan) if $heap < 0;
		like($plan, qr/Inner Index: s_k\n\s+Blocks From Index: \d+\n/, '  by the copy') or diag($plan) if $heap >= 0;
		like($plan, $heap ? qr/Blocks From Heap: [1-9]/ : qr/^(?!.*Blocks From Heap)/s, '  ' . ($heap ? 'and some blocks of the table' : 'alone')) or diag($plan) if $heap >= 0;
	}
	return;
}

my $FILL = "SELECT i - 300, i, CASE WHEN i % 7 > 0 THEN repeat('x', i % 40) || i END, i / 100.0, 0 FROM generate_series(1, 20000) i ORDER BY i * 7919::bigint % 100003";
well($session, "CREATE TABLE s (k bigint, a bigint, t text, n numeric(12, 2), c int) WITH (fillfactor = 80); INSERT INTO s $FILL;
	INSERT INTO s SELECT i, -i, 'again', NULL, 0 FROM generate_series(1, 20000, 5) i; INSERT INTO s VALUES (NULL, 1, 'none', 2, 0);
	CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t, n);
	CREATE TABLE o AS SELECT (i * 7919::bigint % 22000) - 1000 AS k, i::bigint AS v, ((i * 31) % 3000)::int AS small FROM generate_series(1, 60000) i");
well($session, "VACUUM ANALYZE $_") for 's', 'o';
compare_all('without a copy', -1);
# those tables are of rows that are not the same any more
well($session, 'UPDATE s SET c = c + 1 WHERE k < 100');
well($session, 'VACUUM s');
cmp_ok(well($session, "SELECT gpuhash_prewarm('s_k')"), '>', 0, 'the copy is made');
compare_all('a table that does not change', 0);
compare_all('again', 0);
{
	# other sessions, of which each fourth has the executor of all copies
	my @others = map { $server->session } 1 .. 3;
	my $made = well($session, "SELECT hits FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device = 0");
	well($_, "SELECT gpuhash_prewarm('s_k')") for @others;
	is(well($session, "SELECT hits >= $made FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device = 0"), 't', 'a copy that is right is not made again');
	$_->close for @others;
}
for my $type (qw(RIGHT FULL))
{
	local $queries{$type} = "SELECT count(*), sum(o.v), sum(s.a), count(s.t), sum(s.k), count(o.k) FROM o $type JOIN s ON s.k = o.k";
	my ($with, $want, $plan) = answers($session, $type);
	is($with, $want, "$type JOIN");
	like($plan, qr/Engine: cuda.*Inner Index: s_k\n\s+Blocks From Index/s, '  by the copy, entries without a key among its rows') or diag($plan);
}
like((answers($session, 'two'))[2], qr/Resident Tables: 2/, 'with the tables of before');
well($session, 'UPDATE s SET a = a + 100000 WHERE k BETWEEN 20 AND 23; DELETE FROM s WHERE k BETWEEN 40 AND 43; INSERT INTO s SELECT i, 7, \'new\', 1, 0 FROM generate_series(15, 55) i');
compare_all('with rows that are new, changed and gone', 1);
like((answers($session, 'two'))[2], qr/Resident Tables: 2/, 'with the tables of before');
well($session, 'BEGIN; UPDATE s SET a = a + 1 WHERE k = 100; INSERT INTO s VALUES (101, 5, \'own\', 1, 0), (30000, 6, NULL, NULL, 1); DELETE FROM s WHERE k = 102');
for my $name (@names)
{
	my $with = well($session, $queries{$name});
	is($with, well($session, "SET LOCAL gpuhash.enabled = off; $queries{$name}"), "changes of the transaction itself: $name");
	well($session, 'SET LOCAL gpuhash.enabled = on');
}
well($session, 'ROLLBACK; VACUUM (INDEX_CLEANUP on) s');
compare_all('vacuumed', 1);
well($session, "SET work_mem = '64kB'; SET hash_mem_multiplier = 1");
compare_all('without memory for what has changed', -1);
well($session, 'RESET work_mem; RESET hash_mem_multiplier');
well($session, 'SET gpuhash.enable_index = off');
unlike((answers($session, 'inner'))[2], qr/Inner Index/, 'not without gpuhash.enable_index');
well($session, 'RESET gpuhash.enable_index');
is(well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device = 0 AND tables = 1 AND table_bytes > 0 AND resident = 0 AND hits > 20"), 1, 'the view shows the copy on the device');
is(well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device IS NULL"), 0, "and none in shared memory, which gpuhash.engine = 'cuda' does not use");

# ------------------------------------------------------------------ where it is not used
well($session, 'BEGIN ISOLATION LEVEL SERIALIZABLE');
unlike(well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $queries{inner}"), qr/Inner Index/, 'a serializable transaction does without');
well($session, "COMMIT; SELECT gpuhash_fault_arm('index_copy', 'launch', 0, 2, 0)");
unlike((answers($session, 'semi'))[2], qr/Inner Index/, 'nor does one that cannot take it');
# who still sees the rows from before keeps scans from marking the blocks again, which they do from PostgreSQL 19 on
my $keeper = $server->session;
well($keeper, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM s');
well($session, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0); UPDATE s SET c = c + 1 WHERE ctid IN (SELECT min(ctid) FROM s WHERE (ctid::text::point)[0]::int % 10 = 0 GROUP BY (ctid::text::point)[0])");
compare_all('too many blocks have changed', -1);
well($keeper, 'COMMIT');
$keeper->close;
well($session, 'VACUUM s');
compare_all('which VACUUM marks again: no entry was made', 1);

# of several processes: all blocks are right, or it is made of pages
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
my $SERIAL = 'SET max_parallel_workers_per_gather = 0; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size';
well($session, 'UPDATE s SET a = a + 1 WHERE k < 500');
well($session, $_) for 'VACUUM (INDEX_CLEANUP on) s', "SELECT gpuhash_prewarm('s_k')", $PARALLEL;
compare_all('of several processes', 0);
compare_all('of several processes, again', 0);
well($session, "INSERT INTO s VALUES (7, 7, 'seven', 7, 7)");
compare_all('which do not tell changes apart', -1);
well($session, $SERIAL);
compare_all('one process does', 1);

# an index whose keys do not ascend, or are of two columns
well($session, "CREATE TABLE two (k int, j int, a bigint); INSERT INTO two SELECT i % 5000, i / 5000 - 1, i FROM generate_series(1, 20000) i; CREATE INDEX two_kj ON two USING gpuhash (k, j) INCLUDE (a);
	CREATE TABLE down (k int, a bigint); INSERT INTO down SELECT i, i FROM generate_series(1, 20000) i; CREATE INDEX down_k ON down USING gpuhash (k DESC) INCLUDE (a)");
for my $table ('two', 'down')
{
	my %other = %queries;
	my $on = $table eq 'two' ? 'd.k = o.small AND d.j = (o.v % 5)::int' : 'd.k = o.small';
	$queries{$table} = "SELECT count(*), sum(o.v), sum(d.a) FROM o JOIN $table d ON $on";
	well($session, $_) for "VACUUM ANALYZE $table", "SELECT gpuhash_prewarm('$table" . ($table eq 'two' ? '_kj' : '_k') . "')";
	for my $change ('SELECT 1', "INSERT INTO $table SELECT * FROM $table WHERE a < 20", "DELETE FROM $table WHERE a BETWEEN 100 AND 110", "UPDATE $table SET a = -1 WHERE k = 2000")
	{
		well($session, $change);
		my ($with, $want, $plan) = answers($session, $table);
		is($with, $want, "$table: $change");
		like($plan, qr/Engine: cuda/, '  by the device') or diag($plan);
		like($plan, qr/Inner Index/, '  and the copy') or diag($plan) if $table eq 'down' && $change eq 'SELECT 1';
	}
	%queries = %other;
}

# what a copy is made of is another index; the tables of the one before go with the next that comes, or who looks
well($session, 'REINDEX INDEX s_k');
compare_all('of an index that was made anew', -1);
well($session, 'UPDATE s SET a = a + 1 WHERE k < 500');
well($session, $_) for 'VACUUM (INDEX_CLEANUP on) s', "SELECT gpuhash_prewarm('s_k')";
compare_all('with its own copy', 0);
well($session, 'CREATE INDEX s_other ON s USING gpuhash (k) INCLUDE (a, t, n, c); DROP INDEX s_k; ALTER INDEX s_other RENAME TO s_k');
is(well($session, "SELECT count(*) FROM gpuhash_resident WHERE device = 0 AND relation NOT IN (SELECT oid FROM pg_class)"), 0, 'of one that was dropped nothing is left');
well($session, 'UPDATE s SET a = a + 1 WHERE k < 500');
well($session, $_) for 'VACUUM (INDEX_CLEANUP on) s', "SELECT gpuhash_prewarm('s_k')";
compare_all('another index', 0);

# rescans, each of which takes the copy anew
well($session, "INSERT INTO s VALUES (7, 7, 'seven', 7, 7)");
my $RESCANS = 'SELECT v.x, l.* FROM (VALUES (1), (2), (1)) v(x), LATERAL (SELECT count(*), sum(s.a), sum(o.v) FROM o JOIN s ON s.k = o.k WHERE o.v % 2 < v.x OFFSET 0) l ORDER BY 1';
is(well($session, $RESCANS), well($session, "SET gpuhash.enabled = off; $RESCANS; SET gpuhash.enabled = on"), 'rescans');

# unlogged tables, of which no table of pages stays
well($session, 'CREATE UNLOGGED TABLE u AS SELECT k, a FROM s; CREATE INDEX u_k ON u USING gpuhash (k) INCLUDE (a)');
well($session, $_) for 'VACUUM ANALYZE u', "SELECT gpuhash_prewarm('u_k')";
for my $change ('SELECT 1', 'SELECT 2', 'UPDATE u SET a = a + 1 WHERE k = 50', 'DELETE FROM u WHERE k = 51')
{
	local $queries{u} = 'SELECT count(*), sum(o.v), sum(u.a) FROM o JOIN u ON u.k = o.k';
	well($session, $change);
	my ($with, $want, $plan) = answers($session, 'u');
	is($with, $want, "an unlogged table: $change");
	like($plan, qr/Engine: cuda.*Resident Tables: 1\n.*Inner Index: u_k/s, '  by its index, with the table of before') or diag($plan);
}

# without room for such tables on the device it is made of pages; with it again, of the copy
GpuHash::Resident::configure($session, 'gpuhash.resident_memory', 1);
well($session, 'UPDATE s SET a = a + 1 WHERE k < 500; ALTER INDEX s_k RENAME TO s_k2; ALTER INDEX s_k2 RENAME TO s_k');
compare_all('without room', -1);
# nor if it is the texts that have none, whatever is read
GpuHash::Resident::configure($session, 'gpuhash.resident_memory', 8);
well($session, 'CREATE TABLE long AS SELECT i AS k, repeat(md5(i::text), 10) AS t FROM generate_series(1, 4000) i; CREATE INDEX long_k ON long USING gpuhash (k) INCLUDE (t)');
well($session, $_) for 'VACUUM ANALYZE long', "SELECT gpuhash_prewarm('long_k')";
for my $column ('k', 't')
{
	local $queries{long} = "SELECT count(*), sum(o.v), count(l.$column) FROM o JOIN long l ON l.k = o.small";
	my ($with, $want, $plan) = answers($session, 'long');
	is($with, $want, "long texts, of which $column is read");
	like($plan, qr/^(?!.*Inner Index).*Engine: cuda/s, '  not by the copy') or diag($plan);
}
GpuHash::Resident::configure($session, 'gpuhash.resident_memory', -1);
well($session, $_) for 'VACUUM (INDEX_CLEANUP on) s', "SELECT gpuhash_prewarm('s_k')";
compare_all('with room', 0);

# the device is lost while its table is made, while rows that have changed are supplied, or behind
well($session, "INSERT INTO s VALUES (7, 7, 'seven', 7, 7)");
for my $after (0 .. 12)
{
	for my $name ('inner', 'of texts')
	{
		my $want = well($session, "SET gpuhash.enabled = off; $queries{$name}");
		well($session, 'SET gpuhash.enabled = on');
		$service->arm('any', 'launch', after => $after * 2);
		is(well($session, $queries{$name}), $want, "the device fails at point $after: $name");
		$service->disarm;
		ok($service->wait_ready, '  and is back');
	}
}

# a database with the OID, the files and the index of one that is no more, and other rows
$server->query('CREATE DATABASE seed');
my $source = $server->session;
well($source, "SET client_min_messages = warning"); well($source, '\\connect seed'); well($source, "SET client_min_messages = warning");
well($source, "CREATE EXTENSION gpuhash; CREATE TABLE o AS SELECT i * 7919::bigint % 9000 AS k, i::bigint AS v FROM generate_series(1, 20000) i;
	CREATE TABLE s (k bigint, a bigint); INSERT INTO s SELECT i, i FROM generate_series(1, 9000) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)");
well($source, "VACUUM ANALYZE $_") for 's', 'o';
$source->close;
for my $which ('first', 'second')
{
	local $queries{again} = 'SELECT count(*), sum(o.v), sum(s.a) FROM o JOIN s ON s.k = o.k';
	$server->query('CREATE DATABASE again TEMPLATE seed OID 77001');
	my $again = $server->session;
	well($again, '\\connect again');
	my ($with, $want, $plan) = answers($again, 'again');
	is($with, $want, "the $which database, at first");
	unlike($plan, qr/Inner Index/, '  without a copy');
	well($again, 'UPDATE s SET a = a + 1; DELETE FROM s WHERE k % 3 = 0; VACUUM (INDEX_CLEANUP on) s') if $which eq 'first';
	cmp_ok(well($again, "SELECT gpuhash_prewarm('s_k')"), '>', 0, '  a copy is made');
	($with, $want, $plan) = answers($again, 'again');
	is($with, $want, "the $which database, by it");
	like($plan, qr/Inner Index/, '  which is used') or diag($plan);
	$again->close;
	for (1 .. 200) { last if $server->query("SELECT count(*) FROM pg_stat_activity WHERE datname = 'again'") == 0; sleep 0.05 }
	$server->query('DROP DATABASE again');
}
$server->query('DROP DATABASE seed');

# ---------------------------------------------------------------------- under writers

my @VACUUMS = ('VACUUM (INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP on) s', 'VACUUM s', 'VACUUM (FREEZE) s', "SELECT gpuhash_prewarm('s_k')", "SELECT gpuhash_prewarm('s_k')");
my $names = 0;

sub change
{
	my ($number, $inserts) = @_;
	my $k = int(rand(20000)) - 300;
	my $few = "k IN (SELECT k FROM s WHERE k >= $k ORDER BY k LIMIT 1)";
	my $new = int(rand(20000)) . ', ' . int(rand(1000000)) . ", 'n', 1, 0";
	return "INSERT INTO s VALUES ($new)" if $inserts && rand() < 0.6;
	my $name = "p$number." . $names++;
	my @changes = ("BEGIN; DELETE FROM s WHERE $few; INSERT INTO s VALUES ($new); COMMIT", "UPDATE s SET a = a + 1 WHERE $few", "UPDATE s SET c = c + 1 WHERE $few", "DELETE FROM s WHERE $few",
		"SELECT count(c) FROM s WHERE k BETWEEN $k AND $k + 300", "BEGIN; INSERT INTO s VALUES ($new); ROLLBACK", "INSERT INTO s VALUES ($new)",
		"BEGIN; SAVEPOINT x; INSERT INTO s VALUES ($new); DELETE FROM s WHERE $few; ROLLBACK TO x; UPDATE s SET k = k + 1 WHERE $few; COMMIT",
		"BEGIN; INSERT INTO s VALUES ($new); DELETE FROM s WHERE $few; PREPARE TRANSACTION '$name'; " . ('COMMIT', 'ROLLBACK')[rand(2)] . " PREPARED '$name'");
	return $changes[int(rand(@changes))];
}

# Compares until the time is over, or, where a point is named, an answer is wrong: comparisons, those that took the copy, and those that were wrong.
sub compare
{
	my ($limit, $point) = @_;
	my $end = time + $limit;
	# VACUUM notes the blocks that it removes entries of, and so hides an insert that was not noted
	my $inserts = $point eq 'index_inserted';
	my @vacuums = (@VACUUMS, ('VACUUM (INDEX_CLEANUP off) s') x ($inserts ? 6 : 0));
	my %work = (10 => sub { sleep rand() * 0.2; $vacuums[int(rand(@vacuums))] }, 1 => sub { sleep rand() * 0.2; change(1, $inserts) }, 2 => sub { sleep rand() * 0.2; change(2, $inserts) });
	my @pids = write_until($server, $end, $seed += 100, \%work);
	my $session = $server->session;
	my ($rounds, $taken, $wrong) = (0, 0, 0);
	while (time < $end && !($point ne '' && $wrong > 0))
	{
		my $name = $names[int(rand(@names))];
		well($session, rand() < 0.2 ? $PARALLEL : $SERIAL) if rand() < 0.2;
		my ($with, $want, $plan) = answers($session, $name);
		$rounds++;
		$taken++ if $plan =~ /Inner Index/;
		next if $with eq $want;
		$wrong++;
		diag("$name: $with, not $want\n$plan") if $point eq '';
	}
	end_writers($server, @pids);
	$session->close;
	return ($rounds, $taken, $wrong);
}

my ($rounds, $taken, $wrong) = compare($seconds, '');
is($wrong, 0, "none of $rounds answers was wrong");
cmp_ok($taken, '>', $rounds / 8, "$taken by copies");
needs($server, \&compare, qw(index_inserted index_removed));
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
$session->close;
done_testing;
