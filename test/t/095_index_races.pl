# Copies of an index, one race after the other: a session is held at the very place, others go on, and whatever happens, what the
# copy is right for is what the snapshot sees (src/index/README, "Copies").  Each race is run with the copies that joins take, and
# with those of the module, which leave no block out, so that the interlocks alone are asked.
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'gpuhash.force_offload = on', 'autovacuum = off',
	'max_parallel_workers_per_gather = 0', 'bgwriter_lru_maxpages = 0', "checkpoint_timeout = '1h'"]);
my ($reader, $writer, $third, $control) = map { $server->session } 1 .. 4;
my $ROWS = 12000;

# Keys without gaps, two of each tenth one; the outer side has keys that are not there, too.
sub fresh
{
	well($control, 'DROP TABLE IF EXISTS s; CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 70)');
	well($control, "INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, $ROWS) i; INSERT INTO s SELECT i, -i, 0 FROM generate_series(10, $ROWS, 10) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)");
	return well($control, 'VACUUM ANALYZE s');
}
well($control, "CREATE TABLE o AS SELECT i * 7919::bigint % 13007 - 200 AS k, i::bigint AS v FROM generate_series(1, 40000) i");
well($control, 'VACUUM ANALYZE o');
my $CHECK = "SELECT gpuhash_test_check_copy('s_k')";
my %QUERY = (left => 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k', inner => 'SELECT count(*), sum(o.v), sum(s.a), sum(s.k) FROM o JOIN s ON s.k = o.k',
	anti => 'SELECT count(*), sum(o.v) FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.k = o.k)');

# Arms a place: whoever passes it, after some others, stays there until release().
sub hold { my ($point, $after) = @_; return well($control, "SELECT gpuhash_fault_arm('$point', 'hold', " . ($after // 0) . ', 1, 0)') }
sub release { return well($control, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)") }

sub is_held
{
	my ($what) = @_;
	my $held = 0;
	for (1 .. 600) { last if $held = well($control, 'SELECT gpuhash_fault_fired()'); sleep 0.02 }
	return is($held, 1, "held: $what");
}

# The queries in one snapshot of a session, with the copy and without gpuhash.  How: 1: by the copy, and no block of the table;
# 2: and some; 0: either, or without it.
sub right
{
	my ($what, $how, $session, $open) = @_;
	$session //= $reader;
	well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ') unless $open;
	for my $name (sort keys %QUERY)
	{
		my $plan = well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}");
		is(well($session, $QUERY{$name}), well($session, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on"), "$what: $name");
		next if !$how;
		like($plan, qr/Inner Index: s_k/, '  by the copy') or diag($plan);
		($how == 2 ? \&like : \&unlike)->($plan, qr/Blocks From Heap: [1-9]/, '  ' . ($how == 2 ? 'and' : 'without') . ' blocks of the table');
	}
	well($session, 'COMMIT') unless $open;
	return;
}

sub prewarm { my ($in) = @_; return well($in // $reader, "SELECT gpuhash_prewarm('s_k')") }

# The module's copy, which the session of the reader has.
sub module_right
{
	my ($what) = @_;
	return like(well($reader, $CHECK), qr/^[1-9]\d* [1-9]\d* 0$/, "$what: the module's copy is right");
}

sub copy_by_module { return cmp_ok(well($reader, "SELECT gpuhash_test_copy_index('s_k')"), '>', 0, 'the module has a copy') }

sub ended_well { my ($session, $what) = @_; my ($out, $error) = $session->receive; is($error, '', "it goes on: $what"); return $out }

# --------------------------------------------- an insert between its entry and the touched map

for my $end ('COMMIT', 'ROLLBACK')
{
	for my $copy ('before', 'meanwhile')
	{
		for my $whose ('joins', 'module')
		{
			my $what = "an insert, $end, a copy of $whose that was made $copy";
			my $make = $whose eq 'joins' ? \&prewarm : \&copy_by_module;
			my $check = $whose eq 'joins' ? sub { right("$what, $_[0]", $_[1]) } : sub { module_right("$what, $_[0]") };
			fresh();
			# so that there is room for a row
			well($control, 'DELETE FROM s WHERE k IN (50, 51)');
			well($control, 'VACUUM (INDEX_CLEANUP on) s');
			$make->() if $copy eq 'before';
			hold('index_inserted');
			$writer->send("BEGIN; INSERT INTO s VALUES (50, 7, 0)");
			is_held($what);
			if ($copy eq 'before') { $check->('it is held', 2) if $whose eq 'joins'; module_right($what) if $whose ne 'joins' }
			else { $make->() }
			$check->('and looked at', 0);
			well($third, 'VACUUM s');
			$check->('and a VACUUM', 0);
			release();
			ended_well($writer, $what);
			$check->('it goes on', 0);
			well($writer, $end);
			well($third, 'VACUUM s');
			$check->('vacuumed', $end eq 'COMMIT' ? 2 : 0);
			is(well($reader, 'SELECT count(*) FROM s WHERE k = 50'), $end eq 'COMMIT' ? 1 : 0, 'the row is there, or not');
		}
	}
}

# -------------------------------- VACUUM between the entries that it removes and the touched map

for my $copy ('before the rows were deleted', 'before it', 'meanwhile')
{
	for my $whose ('joins', 'module')
	{
		my $what = "VACUUM, a copy of $whose that was made $copy";
		my $make = $whose eq 'joins' ? \&prewarm : \&copy_by_module;
		my $check = $whose eq 'joins' ? sub { right("$what, $_[0]", $_[1]) } : sub { module_right("$what, $_[0]") };
		fresh();
		$make->() if $copy =~ /deleted/;
		well($control, 'DELETE FROM s WHERE k BETWEEN 300 AND 400 OR k IN (1, 6000, 12000)');
		$make->() if $copy eq 'before it';
		hold('index_removed');
		$third->send('VACUUM (INDEX_CLEANUP on) s');
		is_held($what);
		$make->() if $copy eq 'meanwhile';
		$check->('it is held', $copy eq 'meanwhile' ? 0 : 2);
		release();
		ended_well($third, $what);
		$check->('it goes on', 2);
		# the places are used again, by other keys
		well($writer, 'INSERT INTO s SELECT 20000 + i, i, 0 FROM generate_series(1, 60) i; INSERT INTO s SELECT i, 1, 0 FROM generate_series(350, 380) i');
		$check->('places are used again', 0);
		well($third, 'VACUUM s');
		$check->('all-visible again', 2);
	}
}

# a place that is used again by another key, in one block
fresh();
prewarm();
copy_by_module();
prewarm();
my $place = well($control, 'SELECT ctid FROM s WHERE k = 777');
well($control, 'DELETE FROM s WHERE k = 777');
well($control, 'VACUUM (INDEX_CLEANUP on) s');
my $tries = 0;
for (1 .. 200)
{
	my ($block) = $place =~ /\((\d+),/;
	well($control, 'INSERT INTO s VALUES (11, 4711, 0)');
	$tries = $_;
	last if well($control, "SELECT count(*) FROM s WHERE ctid = '$place' AND k = 11") == 1;
}
is(well($control, "SELECT k FROM s WHERE ctid = '$place'"), 11, "another key is where one was deleted, after $tries rows");
right('the place of another key', 2);
well($control, 'VACUUM s');
right('the place of another key, all-visible', 2);

# -------------------------------------- a reader between the two maps, and behind them

for my $after (0, 1)
{
	my $what = 'a reader ' . ('between the two maps', 'behind both')[$after];
	for my $name (sort keys %QUERY)
	{
		fresh();
		prewarm();
		right("$what, before", 1);
		# of rows that are no more to it, the entries go, and the blocks are all-visible, while it asks
		well($writer, 'DELETE FROM s WHERE k % 2000 = 11');
		well($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
		my $want = well($reader, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
		hold('index_asked', $after);
		$reader->send($QUERY{$name});
		is_held("$what: $name");
		# and other blocks change
		well($writer, "DELETE FROM s WHERE k % 3000 = 1203; INSERT INTO s SELECT i, 5, 0 FROM generate_series(1, 12500, 250) i; UPDATE s SET a = a + 1 WHERE k % 3000 = 1207; UPDATE s SET c = 1 WHERE k % 3000 = 1209");
		well($third, 'VACUUM (INDEX_CLEANUP on) s');
		# their places are used again
		well($writer, 'INSERT INTO s SELECT i, 6, 0 FROM generate_series(2, 12500, 250) i') if $after;
		well($third, 'VACUUM (INDEX_CLEANUP on) s') if $after;
		release();
		is(ended_well($reader, "$what: $name"), $want, "$what has what its snapshot has: $name");
		well($reader, 'COMMIT');
		right("$what, afterwards", 0);
	}
}
# another copy takes the place in the touched map of the one that is asked
fresh();
prewarm();
{
	well($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	my $want = well($reader, "SET LOCAL gpuhash.enabled = off; $QUERY{left}; SET LOCAL gpuhash.enabled = on");
	hold('index_asked', 0);
	$reader->send($QUERY{left});
	is_held('a reader, and another copy');
	well($third, 'UPDATE s SET a = a + 1 WHERE k % 5 = 0');
	well($third, 'VACUUM s');
	cmp_ok(well($third, "SELECT gpuhash_test_copy_index('s_k')"), '>', 0, 'another copy takes the place');
	release();
	is(ended_well($reader, 'a reader of the copy before'), $want, 'it has what its snapshot has');
	right('and in the same snapshot', 0, $reader, 1);
	well($reader, 'COMMIT');
}

# ------------------------------------------------ the leaf pages, in the midst of them

# What others do meanwhile: pages are split on both sides of the one that is read, and emptied, deleted and used again.
my %MEANWHILE = (
	few => ['INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 200, 20) i; DELETE FROM s WHERE k IN (300, 11000)', 'VACUUM s'],
	splits => ['INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 3000) i; INSERT INTO s SELECT i, 2, 0 FROM generate_series(9000, 12000) i', 'VACUUM s'],
	removes => ['DELETE FROM s WHERE k BETWEEN 1 AND 4000 OR k > 9000', 'VACUUM (INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP on) s'],
	recycles => ['DELETE FROM s WHERE k BETWEEN 1000 AND 11000', 'VACUUM (INDEX_CLEANUP on) s', 'SELECT txid_current()', 'VACUUM (INDEX_CLEANUP on) s', 'INSERT INTO s SELECT i, 3, 0 FROM generate_series(13000, 21000) i', 'INSERT INTO s SELECT i, 4, 0 FROM generate_series(1000, 3000) i', 'VACUUM (INDEX_CLEANUP on) s'],
	moves => ['UPDATE s SET k = 12001 - k', 'VACUUM (INDEX_CLEANUP on) s', 'UPDATE s SET a = a + 1 WHERE k % 3 = 0', 'VACUUM (INDEX_CLEANUP on) s']);

# There is room on all blocks, which are all-visible, so that new rows come to where the copy has some.
sub fresh_with_room
{
	my ($with_dead) = @_;
	fresh();
	well($control, 'DELETE FROM s WHERE k % 15 = 0');
	well($control, 'VACUUM (INDEX_CLEANUP on) s');
	# entries of rows that are no more are read, and removed later
	well($control, 'DELETE FROM s WHERE k IN (5, 2000, 6000) OR k % 1000 = 1') if $with_dead;
	return;
}

for my $name (sort keys %MEANWHILE)
{
	for my $dead (0, 1)
	{
		for my $whose ('joins', 'module')
		{
			my $after = $dead ? 20 : 3;
			my $what = "leaf pages, $name, behind $after of them" . ($dead ? ', with dead rows' : '') . ", of $whose";
			fresh_with_room($dead);
			hold('index_leaf', $after);
			$reader->send($whose eq 'joins' ? "SELECT gpuhash_prewarm('s_k')" : "SELECT gpuhash_test_copy_index('s_k')");
			is_held($what);
			well($writer, $_) for @{ $MEANWHILE{$name} };
			release();
			my ($out, $error) = $reader->receive;
			like($error, qr/^$|no copy of index/, "$what: a copy, or none");
			# rows that its snapshot has kept are removed now
			for my $round ('not vacuumed', 'vacuumed')
			{
				if ($whose eq 'joins') { right("$what, $round", 0) }
				else { like(well($reader, $CHECK), qr/^\d+ \d+ 0$/, "$what, $round: the module's copy is right") }
				well($third, 'VACUUM (INDEX_CLEANUP on) s');
			}
		}
	}
}
$_->close for $reader, $writer, $third, $control;
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
