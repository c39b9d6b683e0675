# Joins whose inner side is the copy of an index (src/join/probed_copy.c): PostgreSQL's own answer, of all join types that take
# it, whatever of the table the copy is right for; under writers and VACUUMs of all kinds; and with each of the interlocks left
# out, a wrong one within seconds.
#
#	GPUHASH_SECONDS		of comparisons under writers (10)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 10;
my $seed = seed();
my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off',
	'max_prepared_transactions = 10', 'max_worker_processes = 12', 'min_parallel_index_scan_size = 0', 'gpuhash.force_offload = on']);

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

# The answer with and without copies, of one snapshot, and the plan with.
sub answers
{
	my ($session, $name, $level) = @_;
	well($session, "BEGIN ISOLATION LEVEL $level");
	my $with = well($session, $queries{$name});
	my $plan = well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $queries{$name}");
	my $want = well($session, "SET LOCAL gpuhash.enabled = off; $queries{$name}");
	well($session, 'COMMIT');
	return ($with, $want, $plan);
}

sub compare_all
{
	my ($session, $what, $heap) = @_;
	for my $name (@names)
	{
		my ($with, $want, $plan) = answers($session, $name, 'REPEATABLE READ');
		is($with, $want, "$what: $name");
		like($plan, qr/Inner Index: s_k\n\s+Blocks From Index: \d+\n/, '  by the copy') or diag($plan);
		like($plan, $heap ? qr/Blocks From Heap: [1-9]/ : qr/^(?!.*Blocks From Heap)/s, '  ' . ($heap ? 'and some blocks of the table' : 'alone'));
	}
	return;
}

# ------------------------------------------------------------------ what comes from where

my $session = $server->session;
well($session, 'SET max_parallel_workers_per_gather = 0');
my $FILL = "SELECT i - 300, i, CASE WHEN i % 7 > 0 THEN repeat('x', i % 40) || i END, i / 100.0, 0 FROM generate_series(1, 20000) i ORDER BY i * 7919::bigint % 100003";
well($session, "CREATE TABLE s (k bigint, a bigint, t text, n numeric(12, 2), c int) WITH (fillfactor = 80); INSERT INTO s $FILL;
	INSERT INTO s SELECT i, -i, 'again', NULL, 0 FROM generate_series(1, 20000, 5) i; INSERT INTO s VALUES (NULL, 1, 'none', 2, 0);
	CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t, n); VACUUM ANALYZE s;
	CREATE TABLE o AS SELECT (i * 7919::bigint % 22000) - 1000 AS k, i::bigint AS v, ((i * 31) % 3000)::int AS small FROM generate_series(1, 60000) i; VACUUM ANALYZE o");
compare_all($session, 'a table that does not change', 0);
well($session, 'UPDATE s SET a = a + 100000 WHERE k BETWEEN 20 AND 29; DELETE FROM s WHERE k BETWEEN 40 AND 45; INSERT INTO s SELECT i, 7, \'new\', 1, 0 FROM generate_series(15, 55) i');
compare_all($session, 'with rows that are new, changed and gone', 1);
well($session, 'BEGIN; UPDATE s SET a = a + 1 WHERE k = 100; INSERT INTO s VALUES (101, 5, \'own\', 1, 0); DELETE FROM s WHERE k = 102');
for my $name (@names)
{
	my $with = well($session, $queries{$name});
	is($with, well($session, "SET LOCAL gpuhash.enabled = off; $queries{$name}"), "changes of the transaction itself: $name");
	well($session, 'SET LOCAL gpuhash.enabled = on');
}
well($session, 'ROLLBACK; VACUUM (INDEX_CLEANUP on) s');
compare_all($session, 'vacuumed', 1);
is(well($session, 'SELECT count(*) FROM gpuhash_resident WHERE relation = \'s_k\'::regclass AND device IS NULL AND hits > 0 AND table_bytes > 0 AND tables = 1'), 1, 'the view shows the copy');
well($session, 'SET gpuhash.enable_index = off');
unlike((answers($session, 'inner', 'REPEATABLE READ'))[2], qr/Inner Index/, 'not without gpuhash.enable_index');
well($session, 'RESET gpuhash.enable_index');
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
my $SERIAL = 'SET max_parallel_workers_per_gather = 0; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size';
well($session, $PARALLEL);
compare_all($session, 'of several processes', 1);
like((answers($session, 'inner', 'REPEATABLE READ'))[2], qr/Workers Launched: [12].*Parallel Custom Scan \(GpuHashJoin\)/s, 'which have it in common');
# one of them, sooner or later, cannot take it.  On a busy machine workers come when the query is through: then once more
for my $passages (0 .. 3)
{
	my $fired = 0;
	for (1 .. 20)
	{
		for my $name (@names)
		{
			my $want = well($session, "SET gpuhash.enabled = off; $queries{$name}");
			well($session, "SET gpuhash.enabled = on; SELECT gpuhash_fault_arm('index_copy', 'launch', $passages, 1, 0)");
			is(well($session, $queries{$name}), $want, "of several processes, of which number $passages does without: $name");
			$fired += well($session, 'SELECT gpuhash_fault_fired()');
		}
		last if $fired > 0;
	}
	cmp_ok($fired, '>', 0, "  which happened $fired times");
}
$server->query("SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
well($session, $SERIAL);
# an oid and an integer, compared without a function, have other bits
well($session, 'CREATE TABLE of_int (k int, a bigint); INSERT INTO of_int SELECT i, i FROM generate_series(-1, 20000) i; CREATE INDEX of_int_k ON of_int USING gpuhash (k) INCLUDE (a);
	CREATE TABLE of_oid (k oid, a bigint); INSERT INTO of_oid SELECT i::oid, i FROM generate_series(-1, 20000) i; CREATE INDEX of_oid_k ON of_oid USING gpuhash (k) INCLUDE (a)');
well($session, "VACUUM ANALYZE $_") for 'of_int', 'of_oid';
for my $condition ('of_int.k = of_oid.k', 'of_int.k = of_oid.k::int', 'of_int.k::oid = of_oid.k')
{
	for my $tables ('of_int RIGHT JOIN of_oid', 'of_oid RIGHT JOIN of_int', 'of_int LEFT JOIN of_oid', 'of_oid LEFT JOIN of_int', 'of_int JOIN of_oid')
	{
		my $query = "SELECT count(*), sum(of_int.a), sum(of_oid.a), sum(of_int.k) FROM $tables ON $condition";
		is(well($session, $query), well($session, "SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on"), "$tables ON $condition");
	}
}
# a copy that the query could not read is not made: its key has 48 bits, those of the join 64
well($session, 'CREATE TABLE pairs (a int2, b int, c bigint); INSERT INTO pairs SELECT i % 100, i, i FROM generate_series(1, 20000) i; CREATE INDEX pairs_ab ON pairs USING gpuhash (a, b) INCLUDE (c)');
well($session, 'VACUUM ANALYZE pairs');
{
	my $query = 'SELECT count(*), sum(p.c) FROM o JOIN pairs p ON p.a = o.small AND p.b = o.k';
	is(well($session, $query), well($session, "SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on"), 'keys of other widths');
	is(well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation = 'pairs_ab'::regclass"), 0, 'no copy is made for them');
}
# of half of the blocks another one is made, in the background
well($session, 'UPDATE s SET a = a + 1 WHERE k % 7 = 0; VACUUM s');
for (1 .. 300) { last if (answers($session, 'inner', 'REPEATABLE READ'))[2] =~ /Blocks From Index(?!.*Blocks From Heap)/s; sleep 0.1 }
compare_all($session, 'made again', 0);
# a row changed on so many blocks, which are not vacuumed: beyond a sixth of them the copy does not pay, with two workers a tenth.
# Who still sees the rows from before keeps scans from marking these blocks, which they do from PostgreSQL 19 on
my $keeper = $server->session;
for my $step (5, 8)
{
	well($keeper, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM s');
	well($session, "UPDATE s SET c = c + 1 WHERE ctid IN (SELECT min(ctid) FROM s WHERE (ctid::text::point)[0]::int % $step = 0 GROUP BY (ctid::text::point)[0])");
	for my $name (@names)
	{
		my ($with, $want, $plan) = answers($session, $name, 'REPEATABLE READ');
		is($with, $want, "one block in $step is not right: $name");
		($step == 5 ? \&unlike : \&like)->($plan, qr/Inner Index/, '  ' . ($step == 5 ? 'not ' : '') . 'by the copy');
		like($plan, qr/Without Copy: s_k: too many blocks have changed, or are not all-visible/, '  and why') if $step == 5;
		next if $step == 5;
		well($session, $PARALLEL);
		($with, $want, $plan) = answers($session, $name, 'REPEATABLE READ');
		is($with, $want, '  with two workers');
		unlike($plan, qr/Inner Index/, '  not by the copy');
		well($session, $SERIAL);
	}
	well($keeper, 'COMMIT');
	well($session, 'VACUUM s; VACUUM s');
}
well($session, 'REINDEX INDEX s_k');
like(well($session, "EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF) $queries{inner}"), qr/Inner Index: s_k\n\s+Copy Build Time: [\d.]+ ms\n/, 'the time is shown in which the query has made a copy');
unlike(well($session, "EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF) $queries{inner}"), qr/Copy Build Time/, '  and the next one has not made it');
compare_all($session, 'of an index that was made anew', 0);
# new blocks, an eighth of the table: until VACUUM has seen them no other copy would have them, and none is made
my $USED = "SELECT tables, hits FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device IS NULL";
well($session, "SELECT gpuhash_prewarm('s_k')");
my $size = well($session, "SELECT pg_relation_size('s')");
well($session, "DO \$\$ BEGIN WHILE pg_relation_size('s') < $size * 1.13 LOOP INSERT INTO s SELECT 1 + i, i, 'new', 1, 0 FROM generate_series(1, 100) i; END LOOP; END \$\$");
# ten times of what making it took
sleep 4;
my ($hits) = well($session, $USED) =~ /\|(\d+)$/;
compare_all($session, 'grown', 1);
cmp_ok((well($session, $USED) =~ /\|(\d+)$/)[0], '>=', $hits + 2 * @names, 'by the copy that there was');
well($session, 'VACUUM s');
is(well($session, "SELECT gpuhash_prewarm('s_k') = pg_relation_size('s') / 8192"), 't', 'vacuumed, new blocks come into another one');
compare_all($session, 'grown and vacuumed', 0);
well($session, 'TRUNCATE s');
is((answers($session, 'left', 'REPEATABLE READ'))[0], (answers($session, 'left', 'REPEATABLE READ'))[1], 'of an empty table');
well($session, "INSERT INTO s $FILL; VACUUM s");
sleep 1;
# write skew: both read what the other writes
well($session, 'SELECT gpuhash_prewarm(\'s_k\')');
{
	my $other = $server->session;
	my @plans;
	for my $one ($session, $other)
	{
		well($one, 'SET max_parallel_workers_per_gather = 0; BEGIN ISOLATION LEVEL SERIALIZABLE');
		push @plans, well($one, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $queries{inner}");
	}
	like($_, qr/Inner Index: s_k/, 'a serializable transaction takes the copy') for @plans;
	well($session, 'INSERT INTO s VALUES (1, 1, NULL, 1, 0); COMMIT');
	my (undef, $error) = $other->do('INSERT INTO s VALUES (2, 1, NULL, 1, 0); COMMIT');
	like($error, qr/could not serialize access/, 'and write skew fails');
	$other->do('ROLLBACK');
	$other->close;
}
# ------------------------------------------------ few rows, where the planner is not forced

well($session, "SET gpuhash.force_offload = off; CREATE TABLE big (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO big SELECT i, i % 1000, 0 FROM generate_series(1, 200000) i ORDER BY i * 7919::bigint % 100003;
	CREATE INDEX big_k ON big USING gpuhash (k) INCLUDE (a); CREATE TABLE few AS SELECT (i * 7919::bigint % 210000) - 1000 AS k, i::bigint AS v FROM generate_series(1, 5000) i");
well($session, "VACUUM ANALYZE $_") for 'big', 'few';
my %few = (
	inner => 'SELECT count(*), sum(f.v), sum(b.a) FROM few f JOIN big b ON b.k = f.k',
	'the other way round' => 'SELECT count(*), sum(f.v), sum(b.a) FROM big b JOIN few f ON b.k = f.k WHERE f.v > 100',
	left => 'SELECT count(*), sum(f.v), sum(b.a), count(b.k) FROM few f LEFT JOIN big b ON b.k = f.k',
	right => 'SELECT count(*), sum(f.v), sum(b.a), count(b.k) FROM big b RIGHT JOIN few f ON b.k = f.k',
	semi => 'SELECT count(*), sum(v) FROM few f WHERE EXISTS (SELECT FROM big b WHERE b.k = f.k)',
	anti => 'SELECT count(*), sum(v) FROM few f WHERE NOT EXISTS (SELECT FROM big b WHERE b.k = f.k)',
	in => 'SELECT count(*), sum(v) FROM few WHERE k IN (SELECT k FROM big)',
	groups => 'SELECT v % 7, count(*), sum(a) FROM few f JOIN big b ON b.k = f.k GROUP BY 1 ORDER BY 1',
	'a condition' => 'SELECT count(*), sum(f.v), sum(b.a) FROM few f LEFT JOIN big b ON b.k = f.k AND b.a > f.v % 900');

sub compare_few
{
	my ($what, $by_copy) = @_;
	for my $name (sort keys %few)
	{
		my $plan = well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $few{$name}");
		my $with = well($session, $few{$name});
		is($with, well($session, "SET gpuhash.enabled = off; $few{$name}; SET gpuhash.enabled = on"), "few rows, $what: $name");
		next if !defined $by_copy;
		($by_copy ? \&like : \&unlike)->($plan, qr/Inner Index: big_k/, '  ' . ($by_copy ? '' : 'not ') . 'by the copy');
	}
	return;
}

compare_few('without a copy, which none of them makes', 0);
is(well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation = 'big_k'::regclass"), 0, 'there is none');
well($session, "SELECT gpuhash_prewarm('big_k')");
compare_few('with a copy', 1);
# of a sample of the table, and of a partitioned table, which has no pages, the copy has not what they have
well($session, "CREATE TABLE parted (k bigint, a bigint, c int) PARTITION BY RANGE (k); CREATE TABLE low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (90000); CREATE TABLE high PARTITION OF parted FOR VALUES FROM (90000) TO (MAXVALUE);
	INSERT INTO parted SELECT * FROM big; CREATE INDEX parted_k ON parted USING gpuhash (k) INCLUDE (a)");
well($session, 'VACUUM ANALYZE parted');
for my $inner ('big b TABLESAMPLE system (30) REPEATABLE (5)', 'big b TABLESAMPLE bernoulli (30) REPEATABLE (5)', 'parted b')
{
	my %whole = %few;
	s/\bbig b\b/$inner/, s/FROM big\)/FROM $inner)/ for values %few;
	compare_few("from $inner", $inner =~ /parted/ ? undef : 0);
	%few = %whole;
}
well($session, 'DROP TABLE parted');
well($session, 'SET gpuhash.enable_index = off');
compare_few('without gpuhash.enable_index', 0);
well($session, "RESET gpuhash.enable_index; SET plan_cache_mode = force_generic_plan; PREPARE kept AS $few{left}");
my $CHANGE_BIG = "DELETE FROM big WHERE k % 4001 = 0; UPDATE big SET a = a + 1 WHERE k % 4001 = 1; UPDATE big SET c = 1 WHERE k % 4001 = 2; INSERT INTO big SELECT i, 5, 0 FROM generate_series(-900, 210000, 4001) i";
well($session, "EXECUTE kept; $CHANGE_BIG");
compare_few('changed', undef);
well($session, 'SET work_mem = 64');
compare_few('changed, with little memory', 0);
well($session, 'RESET work_mem; VACUUM (INDEX_CLEANUP on) big');
well($session, "BEGIN; $CHANGE_BIG");
compare_few('changed in the transaction', undef);
is(well($session, 'EXECUTE kept'), well($session, "SET gpuhash.enabled = off; $few{left}; SET gpuhash.enabled = on"), 'a plan that was made before');
well($session, 'ROLLBACK');
well($keeper, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM big');
well($session, 'UPDATE big SET c = c + 1 WHERE k % 20 = 0');
compare_few('mostly not right', 0);
well($keeper, 'COMMIT');
$keeper->close;
is(well($session, 'EXECUTE kept'), well($session, "SET gpuhash.enabled = off; $few{left}; SET gpuhash.enabled = on"), 'a plan that was made before');
well($session, 'RESET ALL; REINDEX INDEX big_k');
is(well($session, 'EXECUTE kept'), well($session, "SET gpuhash.enabled = off; $few{left}; SET gpuhash.enabled = on"), 'also when the copy is no more');
well($session, 'DROP TABLE big');
$session->close;

# ---------------------------------------------------------------------- under writers

my @VACUUMS = ('VACUUM (INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP on) s', 'VACUUM s', 'VACUUM (INDEX_CLEANUP off) s', 'VACUUM (FREEZE) s', 'VACUUM (DISABLE_PAGE_SKIPPING, INDEX_CLEANUP on) s');
my $names = 0;

sub change
{
	my ($number, $inserts) = @_;
	my $k = int(rand(20000)) - 300;
	my $few = "k IN (SELECT k FROM s WHERE k >= $k ORDER BY k LIMIT 2)";
	my $new = int(rand(20000)) . ', ' . int(rand(1000000)) . ", 'n', 1, 0";
	return "INSERT INTO s VALUES ($new)" if $inserts && rand() < 0.6;
	my $name = "p$number." . $names++;
	my @changes = ("BEGIN; DELETE FROM s WHERE $few; INSERT INTO s VALUES ($new); COMMIT", "DELETE FROM s WHERE $few; INSERT INTO s VALUES ($new)", "UPDATE s SET a = a + 1 WHERE $few", "UPDATE s SET c = c + 1 WHERE $few",
		"SELECT count(c) FROM s WHERE k BETWEEN $k AND $k + 300", "BEGIN; INSERT INTO s VALUES ($new); ROLLBACK",
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
	my %work = (10 => sub { sleep rand() * 0.15; $vacuums[int(rand(@vacuums))] });
	for my $number (1 .. 3)
	{
		$work{$number} = sub { sleep rand() * 0.1; change($number, $inserts) };
	}
	my @pids = write_until($server, $end, $seed += 100, \%work);
	my $session = $server->session;
	my ($rounds, $taken, $wrong) = (0, 0, 0);
	well($session, 'SET max_parallel_workers_per_gather = 0');
	while (time < $end && !($point ne '' && $wrong > 0))
	{
		my $name = $names[int(rand(@names))];
		well($session, rand() < 0.4 ? $PARALLEL : $SERIAL) if rand() < 0.2;
		my ($with, $want, $plan) = answers($session, $name, ('REPEATABLE READ', 'SERIALIZABLE')[rand() < 0.2]);
		$rounds++;
		$taken++ if $plan =~ /Inner Index/;
		# on a busy machine VACUUM may fall behind the writers, so that no copy is right for enough blocks
		if ($rounds % 50 == 0 && $taken < $rounds / 10)
		{
			diag("$taken of $rounds by copies; waiting: " . well($session, "SELECT string_agg(concat_ws(' ', wait_event, query), '; ') FROM pg_stat_activity WHERE wait_event IS NOT NULL AND state <> 'idle'") .
				"; prepared: " . well($session, 'SELECT count(*) FROM pg_prepared_xacts'));
			well($session, 'VACUUM (INDEX_CLEANUP on) s');
		}
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
cmp_ok($taken, '>', $rounds / 4, "$taken by copies");
needs($server, \&compare, qw(index_inserted index_removed index_order));
($rounds, $taken, $wrong) = compare($seconds / 2, '');
$server->query('REINDEX INDEX s_k');
($rounds, $taken, $wrong) = compare($seconds / 2, '');
is($wrong, 0, "with both again, none of $rounds was");
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
