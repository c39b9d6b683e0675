# Copies of an index, of which the visibility map and the touched map say for which blocks they are right (src/index/README,
# "Copies"): whatever is written, rolled back and vacuumed meanwhile, the copy's entries on such a block are its rows in the
# snapshot of the statement.  And with each of the interlocks left out, a block is wrong: after the steps that it is for, and
# within seconds under writers.
#
#	GPUHASH_SECONDS		of comparisons under writers (10)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 10;
my $seed = seed();
my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", 'autovacuum = off', 'max_prepared_transactions = 10',
	'max_worker_processes = 12', 'min_parallel_index_scan_size = 0', 'wal_level = replica', 'max_wal_senders = 2', 'hot_standby = on']);

# ------------------------------------------------------------------ what may be copied

my $session = $server->session;
my $COPY = "SELECT gpuhash_test_copy_index('s_k')";
my $CHECK = "SELECT gpuhash_test_check_copy('s_k')";
well($session, 'SET gpuhash.enabled = off');
# the second index has VACUUM use workers
well($session, 'CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO s SELECT i * 7919::bigint % 100003, i, 0 FROM generate_series(1, 20000) i;
	CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a); CREATE INDEX s_a ON s USING gpuhash (a); VACUUM ANALYZE s');
my $blocks = well($session, "SELECT pg_relation_size('s') / 8192");
is(well($session, $COPY), 20000, 'an index is copied');
is(well($session, $CHECK), "$blocks 20000 0", 'and is right for all blocks');
well($session, 'DELETE FROM s WHERE a = 5');
my $one = well($session, "SELECT count(*) FROM s WHERE ctid >= '(0,0)' AND ctid < '(1,0)'") + 1;
my $rest = ($blocks - 1) . ' ' . (20000 - $one) . ' 0';
is(well($session, $CHECK), $rest, 'a row was deleted: but for its block');
well($session, 'VACUUM (INDEX_CLEANUP on) s');
is(well($session, $CHECK), $rest, 'also when its place may be used again');
well($session, 'UPDATE s SET c = 1 WHERE a = 19990; VACUUM (INDEX_CLEANUP off) s');
is(well($session, $CHECK), $rest, 'an update in place, when it is all-visible again, changes nothing');
my $other = $server->session;
is(well($other, $CHECK), '0 0 0', 'a session without a copy has none');
is(well($other, $COPY), 19999, 'another copy takes the place');
is(well($session, $CHECK), '0 0 0', 'and the one before is right for no block any more');
well($session, $COPY);
well($session, 'REINDEX INDEX s_k');
is(well($session, $CHECK), '0 0 0', 'nor is that of an index that was made anew');
well($session, $COPY);
my $want = well($session, $CHECK);
like($want, qr/^$blocks \d+ 0$/, 'a copy of that is right');
well($session, 'BEGIN; REINDEX INDEX s_k');
is(well($session, $COPY), -1, 'an index that is new in the transaction is not copied');
well($session, 'ROLLBACK');
is(well($session, $CHECK), $want, 'rolled back, it is what it was');
is(well($session, 'CREATE TEMP TABLE temporary (k bigint, a bigint); CREATE INDEX temporary_k ON temporary USING gpuhash (k) INCLUDE (a); SELECT gpuhash_test_copy_index(\'temporary_k\')'), -1, 'nor is that of a temporary table');
is(well($session, "TRUNCATE s; $CHECK"), '0 0 0', 'of an empty table there is none');
# what each interlock is for: an entry that is newer than the copy, and one of a row that is no more
for (['index_inserted', $COPY, 'INSERT INTO s VALUES (1, 2, 0)', 'VACUUM (INDEX_CLEANUP off) s'], ['index_removed', 'DELETE FROM s WHERE a = 9', $COPY, 'VACUUM (INDEX_CLEANUP on) s'])
{
	my ($point, @steps) = @$_;
	for my $armed ('any', $point)
	{
		well($session, 'TRUNCATE s; INSERT INTO s SELECT i * 7919::bigint % 100003, i, 0 FROM generate_series(1, 20000) i; DELETE FROM s WHERE a IN (5, 6, 7); VACUUM (INDEX_CLEANUP on) s');
		$server->query("SELECT gpuhash_fault_arm('$armed', '" . ($armed eq 'any' ? 'none' : 'launch') . "', 0, 1000000000, 0)");
		well($session, $_) for @steps;
		my ($right, $wrong) = $armed eq 'any' ? ($blocks - 1, 0) : ($blocks, 1);
		like(well($session, $CHECK), qr/^$right \d+ $wrong$/, ($armed eq 'any' ? 'with' : 'without') . " $point: $wrong blocks are wrong");
	}
	$server->query("SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
}
# damaged pages: nothing outside of them is read
well($session, "CREATE TABLE damaged (k bigint, a int2, c \"char\", t text, n numeric, u uuid); INSERT INTO damaged SELECT i % 700, i, 'x', CASE WHEN i % 3 > 0 THEN repeat(i::text, i % 60) END, i / 7.0, gen_random_uuid() FROM generate_series(1, 9000) i;
	CREATE INDEX damaged_k ON damaged USING gpuhash (k, a) INCLUDE (c, t, n, u); CREATE INDEX damaged_a ON damaged USING gpuhash (a, t); CREATE INDEX damaged_several ON damaged USING gpuhash (k); DELETE FROM damaged WHERE k BETWEEN 200 AND 400; VACUUM (INDEX_CLEANUP on) damaged; CHECKPOINT");
for my $index (qw(damaged_k damaged_a damaged_several))
{
	my $found = well($session, "SELECT gpuhash_test_fuzz_leaves('$index', 1500, $seed)");
	like($found, qr/^[1-9]\d* [1-9]\d* 0$/, "$index, damaged: $found");
}
well($session, 'TRUNCATE s');
# where there are no more places, another index's is taken, with its bits
well($session, 'DO $$ BEGIN FOR i IN 1..70 LOOP EXECUTE format($f$CREATE TABLE m%1$s AS SELECT 1::bigint AS k, 2::bigint AS a; CREATE INDEX m%1$s_k ON m%1$s USING gpuhash (k) INCLUDE (a)$f$, i); END LOOP; END $$');
well($session, "VACUUM m$_") for 1, 70;
is(well($session, "SELECT gpuhash_test_copy_index('m1_k'); SELECT gpuhash_test_check_copy('m1_k')"), "1\n1 1 0", 'one of many');
is(well($other, "SELECT count(*) FROM generate_series(2, 70) i WHERE gpuhash_test_copy_index(('m' || i || '_k')::regclass) = 1"), 69, 'the others are copied');
is(well($session, "SELECT gpuhash_test_check_copy('m1_k')"), '0 0 0', 'and the first one of all is no more');
is(well($other, "SELECT gpuhash_test_check_copy('m70_k')"), '1 1 0', 'but the last one is');
is(well($other, "INSERT INTO m1 VALUES (3, 4); INSERT INTO m69 VALUES (3, 4); SELECT gpuhash_test_check_copy('m70_k'); INSERT INTO m70 VALUES (3, 4); VACUUM m70; SELECT gpuhash_test_check_copy('m70_k')"), "1 1 0\n0 0 0", 'each has its own bits');
well($session, 'DO $$ BEGIN FOR i IN 1..70 LOOP EXECUTE format($f$DROP TABLE m%1$s$f$, i); END LOOP; END $$');
$_->close for $session, $other;

# ---------------------------------------------------------------------- under writers

$server->stop;
$server->start;
# unique in another index: rows whose speculative insertion is given up
$server->query('TRUNCATE s; CREATE UNIQUE INDEX s_u ON s (a, k); INSERT INTO s SELECT i * 7919::bigint % 100003, i, 0 FROM generate_series(1, 20000) i; VACUUM s');
my @VACUUMS = ('VACUUM (INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP on) s', 'VACUUM s', 'VACUUM (PARALLEL 2, INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP off) s', 'VACUUM (FREEZE) s', 'VACUUM (DISABLE_PAGE_SKIPPING, INDEX_CLEANUP on) s');
my $names = 0;

sub row { return int(rand(100000)) . ', ' . int(rand(1000000)) . ', 0' }

sub change
{
	my ($number) = @_;
	my $k = int(rand(100000));
	my $few = "k IN (SELECT k FROM s WHERE k >= $k ORDER BY k LIMIT 2)";
	my $new = row();
	my $name = "p$number." . $names++;
	my @changes = ("BEGIN; DELETE FROM s WHERE $few; INSERT INTO s VALUES ($new); COMMIT", "DELETE FROM s WHERE $few; INSERT INTO s VALUES ($new)", "INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 20) i ON CONFLICT DO NOTHING", 'DELETE FROM s WHERE a = 1', "UPDATE s SET a = a + 1 WHERE $few", "UPDATE s SET c = c + 1 WHERE $few", "SELECT count(c) FROM s WHERE k BETWEEN $k AND $k + 3000",
		"BEGIN; INSERT INTO s VALUES ($new); ROLLBACK", "BEGIN; SAVEPOINT x; INSERT INTO s VALUES ($new); DELETE FROM s WHERE $few; ROLLBACK TO x; UPDATE s SET k = k + 1 WHERE $few; COMMIT",
		"BEGIN; INSERT INTO s VALUES ($new); DELETE FROM s WHERE $few; PREPARE TRANSACTION '$name'; " . ('COMMIT', 'ROLLBACK')[rand(2)] . " PREPARED '$name'", "COPY s FROM PROGRAM 'echo \"" . join("\t", split /, /, $new) . "\"'");
	return $changes[int(rand(@changes))];
}

# Compares until the time is over, or, where a point is named, a block is wrong: blocks that were compared, comparisons, and those that were wrong.
sub compare
{
	my ($limit, $point) = @_;
	# of an insert, a deletion on the same block hides the fault, and so does a VACUUM of the indexes, which notes the block
	my $inserts = $point eq 'index_inserted';
	my @vacuums = (@VACUUMS, ('VACUUM (INDEX_CLEANUP off) s') x ($inserts ? 7 : 0));
	$server->query('DELETE FROM s WHERE k % 5 = 0; VACUUM (INDEX_CLEANUP on) s') if $inserts;
	my $end = time + $limit;
	my %work = (10 => sub { sleep rand() * 0.08; $vacuums[int(rand(@vacuums))] });
	for my $number (1 .. 3)
	{
		$work{$number} = sub { $inserts && rand() < 0.9 ? 'INSERT INTO s VALUES (' . row() . ')' : change($number) };
	}
	my @pids = write_until($server, $end, $seed += 100, \%work);
	my $session = $server->session;
	my ($compared, $rounds, $wrong, $last) = (0, 0, 0, '');
	well($session, 'SET gpuhash.enabled = off');
	while (time < $end && !($point ne '' && $wrong > 0))
	{
		well($session, "SELECT gpuhash_test_copy_index('s_k', " . (0, 200, 2000)[rand(3)] . ')');
		for (1 .. 4)
		{
			my $held = rand() < 0.4;
			well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ') if $held;
			for (0 .. ($held ? 3 : 0))
			{
				$last = well($session, $CHECK);
				my ($right, undef, $bad) = split / /, $last;
				$compared += $right;
				$wrong++ if $bad > 0;
				$rounds++;
				sleep 0.05 if $held;
			}
			well($session, 'COMMIT') if $held;
			sleep rand() * 0.05;
		}
	}
	end_writers($server, @pids);
	$session->close;
	return ($compared, $rounds, $wrong);
}

my ($compared, $rounds, $wrong) = compare($seconds, '');
is($wrong, 0, "$rounds comparisons, of $compared blocks: none was wrong");
cmp_ok($compared, '>', 20 * $seconds, 'enough of them');
for my $point ('index_inserted', 'index_removed', 'index_order')
{
	($compared, $rounds, $wrong) = find_wrong($server, $point, sub { compare($SECONDS_TO_FIND, $point) });
	cmp_ok($wrong, '>', 0, "without $point: one of $rounds comparisons was wrong");
}
($compared, $rounds, $wrong) = compare($seconds / 2, '');
is($wrong, 0, "with both again, none of $rounds was");
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
