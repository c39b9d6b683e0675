# Copies of indexes on a hot standby, where nobody notes what is replayed: they are right for blocks that were
# all-visible when a copy was begun, and behind its last leaf page, and are so by a page of the visibility map
# that has the same LSN since then.  By them joins and keys of arrays are right while the primary writes and
# vacuums, and databases are copied as files; with the LSNs left out of account, or the bits of the begin, or
# of the end, wrong.  Queries make them, and nobody in the background.  They end with recovery.
#
#	GPUHASH_ROUNDS		of changes on the primary (30)
#	GPUHASH_SECONDS		of writers beside queries (8)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $rounds = $ENV{GPUHASH_ROUNDS} || 30;
my $seconds = $ENV{GPUHASH_SECONDS} || 8;
my $seed = seed();
my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'gpuhash.force_offload = on', 'autovacuum = off', 'max_parallel_workers_per_gather = 0',
	'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'max_standby_streaming_delay = -1', 'max_worker_processes = 8', 'enable_bitmapscan = off', 'allow_in_place_tablespaces = on', 'checkpoint_timeout = 1h', 'max_wal_size = 4GB', 'work_mem = 64MB']);
my $primary = $server->session;
# from 17.11 and 18.6 on, to clear a bit of the map moves its LSN, too
my $version = well($primary, 'SHOW server_version_num');
my $ROWS = 9000;
my $FILL = "INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, $ROWS) i; INSERT INTO s SELECT i, -i, 0 FROM generate_series(10, $ROWS, 10) i";
my $TABLES = "CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); $FILL; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a); CREATE TABLE o AS SELECT i * 7919::bigint % 10007 - 200 AS k, i::bigint AS v FROM generate_series(1, 20000) i";
# a row on each page, and more pages than a page of the map is of
my ($BIG, $MAP) = (34000, 32672);
well($primary, "$TABLES; CREATE UNLOGGED TABLE u AS SELECT * FROM s; CREATE INDEX u_k ON u USING gpuhash (k) INCLUDE (a); CREATE TABLE big (k bigint, a bigint, filler text); ALTER TABLE big ALTER filler SET STORAGE PLAIN;
	INSERT INTO big SELECT i, i * 3, repeat('x', 4200) FROM generate_series(1, $BIG) i; CREATE INDEX big_k ON big USING gpuhash (k) INCLUDE (a);
	CREATE TABLE p AS SELECT i * 7919::bigint % 40007 AS k, i::bigint AS v FROM generate_series(1, 60000) i");
well($primary, "VACUUM ANALYZE $_") for 's', 'o', 'big', 'p';
my %QUERY = (inner => 'SELECT count(*), sum(o.v), sum(s.a), sum(s.k) FROM o JOIN s ON s.k = o.k', left => 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k',
	anti => 'SELECT count(*), sum(o.v) FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.k = o.k)', keys => 'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k = ANY (ARRAY(SELECT k FROM o WHERE v % 3 = 0)) OFFSET 0) x');
my @names = sort keys %QUERY;
my $standby = $server->standby;
my ($session, $old, $control) = map { $standby->session } 1 .. 3;
my ($answers, $taken, $ended) = (0, 0, 0);

# ------------------------------------------------------------------------ what is asked

sub analyze { my ($in, $query) = @_; return well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query") }

# How many blocks a query takes from the copy, by its plan.
sub blocks { my ($in, $query) = @_; return analyze($in, $query) =~ /Blocks From Index: (\d+)/ ? $1 : 0 }

# How many answers in a snapshot are others than without gpuhash.  Each is asked for with its plan first, in the same snapshot.
sub wrong
{
	my ($in, $open) = @_;
	my $wrong = 0;
	well($in, 'BEGIN ISOLATION LEVEL REPEATABLE READ') unless $open;
	for my $name (@names)
	{
		$taken++ if blocks($in, $QUERY{$name}) > 0;
		$answers++;
		$wrong++ if well($in, $QUERY{$name}) ne well($in, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
	}
	well($in, 'COMMIT') unless $open;
	return $wrong;
}

# The same where a conflict with recovery, or a lock that replay holds, may end it: what was found before that.
sub wrong_beside
{
	my ($in) = @_;
	my $wrong = 0;
	my $ask = sub { my ($out, $error) = $in->do($_[0]); die $error if $error ne ''; return $out };
	eval {
		$ask->('BEGIN ISOLATION LEVEL REPEATABLE READ');
		for my $name (@names)
		{
			my $plan = $ask->("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}");
			my $got = $ask->($QUERY{$name});
			$wrong++ if $got ne $ask->("SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
			$answers++;
			$taken++ if $plan =~ /Blocks From Index: [1-9]/;
		}
		1;
	} or do {
		$ended++;
		fail("not by a conflict: $@") if $@ !~ /40001|40P01|55P03|57P01|psql ended/;
	};
	eval { $in->do('ROLLBACK') };
	return $wrong;
}

# by: 1: each of them by the copy, 0: none.
sub right
{
	my ($what, $by, $in) = @_;
	$taken = 0;
	is(wrong($in // $session), 0, $what);
	is($taken, $by ? @names : 0, '  ' . ($by ? '' : 'not ') . 'by the copy') if defined $by;
	return;
}
sub prewarm { return well($_[0] // $session, "SELECT gpuhash_prewarm('s_k')") }
sub vacuum { well($primary, 'VACUUM (INDEX_CLEANUP on) s'); return catch_up($server, $standby) }

sub hold
{
	my ($what, $point, $after, @sent) = @_;
	well($control, "SELECT gpuhash_fault_arm('$point', 'hold', $after, ${\scalar(@sent)}, 0)");
	my $held = 0;
	for my $one (@sent)
	{
		$one->[0]->send($one->[1]);
		$held++;
		for (1 .. 600) { last if well($control, 'SELECT gpuhash_fault_fired()') == $held; sleep 0.02 }
	}
	return is(well($control, 'SELECT gpuhash_fault_fired()'), $held, "held: $what");
}
sub release { return well($control, "SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)") }

# -------------------------------------------------------------- one change after the other

cmp_ok(prewarm(), '>', 0, 'a standby makes a copy of its own');
right('by it', 1);
well($primary, 'UPDATE s SET a = a + 1 WHERE k = 7');
catch_up($server, $standby);
my $moves = blocks($session, $QUERY{left}) == 0;
ok(!$moves, 'of a change alone the map\'s LSN does not tell') if $version < 170000;
my @CHANGES = (['UPDATE s SET a = a + 1 WHERE k % 400 = 7'], ['DELETE FROM s WHERE k % 300 = 5'], ['INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 9500, 900) i'], ['UPDATE s SET c = c + 1 WHERE k % 200 = 9'], ['BEGIN; DELETE FROM s WHERE k < 500; ROLLBACK'],
	['UPDATE s SET k = k + 1 WHERE k % 500 = 3'], ['DELETE FROM s WHERE k BETWEEN 2000 AND 5000', 'VACUUM (INDEX_CLEANUP on) s', 'INSERT INTO s SELECT i, 2, 0 FROM generate_series(1, 2500) i'], ['VACUUM (FREEZE) s'], ['REINDEX INDEX s_k'], ['REINDEX INDEX CONCURRENTLY s_k'],
	["TRUNCATE s; $FILL"], ['DROP INDEX s_k; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)'], ["DROP TABLE s; $TABLES" =~ s/; CREATE TABLE o.*//sr]);
for my $change (@CHANGES)
{
	my $seen = $change->[0] =~ s/; (?:INSERT|CREATE).*//sr;
	vacuum();
	prewarm();
	right("before, $seen", 1);
	well($primary, $_) for @$change;
	catch_up($server, $standby);
	right("replayed, $seen");
	vacuum();
	right("vacuumed, $seen");
}
like(($session->do("SELECT gpuhash_prewarm('u_k')"))[1], qr/no copy of index|unlogged/, 'none of an unlogged table');

# ------------------------------------------------------------- a table of many pages

# The page of the map that has changed is told from the other one; the planner knows; and a copy that has become right for none is gone at once.
my $JOIN = 'SELECT count(*), sum(p.v), sum(big.a) FROM p LEFT JOIN big ON big.k = p.k';
my $KEYS = 'SELECT count(*), sum(a) FROM (SELECT a FROM big WHERE k = ANY (ARRAY(SELECT k FROM o)) OFFSET 0) x';
sub big_is_right { is(well($session, $_), well($session, "SET gpuhash.enabled = off; $_; RESET gpuhash.enabled"), "$_[0]") for $JOIN, $KEYS; return }
sub big_blocks { my ($query) = @_; my $plan = analyze($session, $query); return join '+', map { $plan =~ /Blocks From $_: (\d+)/ ? $1 : 0 } 'Index', 'Heap' }
sub cost { return well($session, "SET gpuhash.force_offload = off; EXPLAIN $JOIN; RESET gpuhash.force_offload") =~ /\.\.([\d.]+) / ? $1 : die }
sub big { my (@sql) = @_; well($primary, $_) for @sql, 'VACUUM (INDEX_CLEANUP on) big'; return catch_up($server, $standby) }
sub all_blocks { return well($session, "SELECT pg_relation_size('big') / 8192") }
sub copies_of_big { return well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation = 'big_k'::regclass") }
# with nothing to choose between, the inner side would be read by the index
well($session, 'SET enable_indexonlyscan = off');
is(well($session, "SELECT gpuhash_prewarm('big_k')"), $BIG, 'a copy of many blocks');
is(big_blocks($_), "$BIG+0", '  all are from it') for $JOIN, $KEYS;
my $with = cost();
big("UPDATE big SET a = 5, k = k + 100000 WHERE k = $BIG - 1");
is(big_blocks($_), "$MAP+" . (all_blocks() - $MAP), 'those of a page of the map that has changed are not') for $JOIN, $KEYS;
big_is_right('right');
my $between = cost();
cmp_ok($with, '<', $between, '  which the planner knows');
# of the other page, nothing is left then; the index is planned for, and no query makes another one
well($session, "SELECT gpuhash_prewarm('big_k')");
big('DELETE FROM big WHERE k = 1');
my $rest = all_blocks() - $MAP;
my $until = time + 1.5;
cost() while time < $until;
is(big_blocks($KEYS), "$rest+$MAP", 'of the first page: nobody makes another one in the background');
big_is_right('right');
cmp_ok(blocks($session, $JOIN), '>', $MAP, 'a join that needs it makes it');
like(analyze($session, $JOIN), qr/Blocks From Index: ${\all_blocks()}\n/, '  once');
big('DELETE FROM big WHERE k = 2', "DELETE FROM big WHERE k = $BIG");
is(copies_of_big(), 1, 'both have changed: it is there');
my $without = cost();
is(copies_of_big(), 0, '  until somebody asks for it');
cmp_ok($between, '<', $without, '  the planner knows that it was made a moment ago');
big_is_right('right');
sleep 1.1;
cmp_ok(blocks($session, $JOIN), '>', $MAP, 'a join makes another one');
# while its leaf pages are read, a row of the second page of the map goes
big("UPDATE big SET a = 7 WHERE k = $BIG - 3");
hold('leaf pages of a table of many pages', 'index_leaf', 5, [$session, "SELECT gpuhash_prewarm('big_k')"]);
well($primary, "DELETE FROM big WHERE k = $BIG - 5");
catch_up($server, $standby);
release();
my ($have, $not) = $session->receive;
is($not, '', '  a copy');
cmp_ok($have, '>=', $MAP, '  of the first page, at least');
is((big_blocks($_) =~ /(\d+)/)[0], $have, '  by it') for $JOIN, $KEYS;
big_is_right('right');
big();
big_is_right('right, vacuumed');
well($session, 'RESET enable_indexonlyscan');

# ------------------------------------------------------------------ one race after the other

# full: what is inserted comes to new blocks.
sub fresh
{
	my ($full) = @_;
	well($primary, "TRUNCATE s; $FILL");
	well($primary, 'DELETE FROM s WHERE k % 15 = 0') unless $full;
	well($primary, 'VACUUM (INDEX_CLEANUP on) s') for 1, 2;
	return catch_up($server, $standby);
}

# The leaf pages are read, and meanwhile entries come, pages are split, and rows deleted; VACUUM comes then,
# or later: what it does is replayed when the snapshot has gone.  Up to 16 the copy has the blocks that were
# not changed, if they are enough: not of `moves` and `removes`.
my $SHIFTS = 'UPDATE s SET k = k + 5000 WHERE k BETWEEN 2000 AND 2020';
my %MEANWHILE = (
	few => [0, 'INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 99, 9) i; DELETE FROM s WHERE k < 9'],
	splits => [5, join "; ", map { "INSERT INTO s SELECT i, 1, 0 FROM generate_series($_) i" } "1, 500", "7001, 7500"],
	shifts => [5, $SHIFTS],
	moves => [0, 'UPDATE s SET k = 9001 - k WHERE k % 3 = 1'],
	removes => [5, 'DELETE FROM s WHERE k < 3000 OR k > 8000']);
for my $name (sort keys %MEANWHILE)
{
	my ($after, $change) = @{ $MEANWHILE{$name} };
	my $made = !$moves && $name !~ /^(re)?moves$/;
	for my $later (0, 1)
	{
		fresh($name eq 'splits');
		hold("leaf pages, $name", 'index_leaf', $after, [$session, "SELECT gpuhash_prewarm('s_k')"]);
		well($primary, $change);
		catch_up($server, $standby);
		well($primary, 'VACUUM (INDEX_CLEANUP on) s') if !$later;
		release();
		my ($blocks, $error) = $session->receive;
		$made ? is($error, '', '  a copy') : like($error, qr/no copy of index/, '  no copy');
		cmp_ok($blocks, '>', 0, '  of some blocks') if $made && $later;
		right("$name, behind $after", $made && $later ? 1 : undef);
		well($primary, 'VACUUM (INDEX_CLEANUP on) s') if $later;
		catch_up($server, $standby);
		right("$name, behind $after, vacuumed");
	}
}
# A query has asked the map, and then rows change.  The plan is there before, for the planner asks, too.
sub plan_ahead { my ($in, $name) = @_; return well($in, "DEALLOCATE ALL; SET plan_cache_mode = force_generic_plan; PREPARE q AS $QUERY{$name}; EXECUTE q") }
# the answer without the copy; plans that were kept stay, as they would not if gpuhash were switched off
sub begin
{
	my ($in, $name) = @_;
	my @nodes = map { "gpuhash.enable_$_" } qw(join aggregate rows scan index);
	well($in, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	return well($in, join('', map { "SET LOCAL $_ = off; " } @nodes) . "$QUERY{$name}; " . join('; ', map { "SET LOCAL $_ = on" } @nodes));
}
sub hits { return well($control, "SELECT hits FROM gpuhash_resident WHERE relation = 's_k'::regclass") }
for my $name (@names)
{
	fresh();
	prewarm();
	plan_ahead($session, $name);
	my $want = begin($session, $name);
	my $hits = hits();
	hold("behind the map, $name", 'index_asked', 0, [$session, 'EXECUTE q']);
	well($primary, 'DELETE FROM s WHERE k % 30 = 1; UPDATE s SET a = a + 1 WHERE k % 30 = 2; INSERT INTO s SELECT i, 5, 0 FROM generate_series(1, 9500, 70) i');
	catch_up($server, $standby);
	well($primary, 'VACUUM (INDEX_CLEANUP on) s');
	well($primary, 'INSERT INTO s SELECT i, 6, 0 FROM generate_series(2, 9500, 70) i');
	sleep 0.2;
	release();
	my ($got, $error) = $session->receive;
	is("$error$got", $want, "$name: it has what its snapshot has");
	is(hits(), $hits + 1, '  by the copy');
	is(wrong($session, 1), 0, '  and so have others in it');
	well($session, 'COMMIT');
	catch_up($server, $standby);
	right("$name: and the next one");
}

# An index that REINDEX CONCURRENTLY has made lacks rows that were deleted before.  A snapshot that sees them, for which the primary does not wait, has them nevertheless.
fresh();
well($control, $_) for "ALTER SYSTEM SET hot_standby_feedback = on", "ALTER SYSTEM SET wal_receiver_status_interval = '1s'", 'SELECT pg_reload_conf()';
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
# it has used nothing yet: replay would wait for its lock on the index that is dropped
my %before = map { ($_ => well($session, "SET gpuhash.enabled = off; $QUERY{$_}; RESET gpuhash.enabled")) } @names;
for (1 .. 300) { last if $server->query('SELECT count(*) FROM pg_stat_replication WHERE backend_xmin IS NOT NULL'); sleep 0.1 }
well($primary, 'DELETE FROM s WHERE k BETWEEN 3000 AND 3040');
well($primary, 'REINDEX INDEX CONCURRENTLY s_k');
catch_up($server, $standby);
cmp_ok(prewarm($old), '>', 0, 'an old snapshot has a copy of a new index');
for my $name (@names)
{
	cmp_ok(blocks($old, $QUERY{$name}), '>', 0, "  by it: $name");
	is(well($old, $QUERY{$name}), $before{$name}, '  it has rows that the index has not');
}
well($old, 'COMMIT');
well($control, $_) for 'ALTER SYSTEM RESET hot_standby_feedback', 'ALTER SYSTEM RESET wal_receiver_status_interval', 'SELECT pg_reload_conf()';

# ------------------------------------------------------------ while the primary writes

# With the LSNs left out of account, a change that VACUUM has made all-visible again is not seen.
srand $seed;
for my $point ('none', 'index_lsn')
{
	well($primary, 'REINDEX INDEX s_k');
	vacuum();
	prewarm();
	well($control, "SELECT gpuhash_fault_arm('index_lsn', 'launch', 0, 1000000000, 0)") if $point ne 'none';
	my $found = 0;
	($answers, $taken) = (0, 0);
	for my $round (1 .. $rounds)
	{
		my $r = int rand 50;
		well($primary, ("UPDATE s SET a = a + 1 WHERE k % 50 = $r", "DELETE FROM s WHERE k % 50 = $r", "INSERT INTO s SELECT i, $round, 0 FROM generate_series(1 + $r, 9500, 50) i", 'SELECT 1')[rand 4]);
		well($primary, 'VACUUM (INDEX_CLEANUP on) s') if rand() < 0.7;
		# what is replayed meanwhile is seen, or not
		catch_up($server, $standby) if $point ne 'none' || rand() < 0.5;
		# none can be made where few blocks are all-visible
		$session->do("SELECT gpuhash_prewarm('s_k')") if $point eq 'none' && rand() < 0.7;
		if ($point eq 'none' && $round % 5 == 0) { vacuum(); prewarm() }
		$found += wrong($session);
		last if $found > 0;
	}
	release();
	$point eq 'none' ? is($found, 0, "in $rounds rounds no answer was wrong") : cmp_ok($found, '>', 0, 'without the LSNs some are');
	cmp_ok($taken, '>', $answers / 10, "  $taken of $answers by the copy") if $point eq 'none';
}

# The same at once: writers, VACUUM and DDL beside queries, some of which replay is held for.
my $VACUUMS = 0;
# rows of a few blocks each, so that most others are all-visible
sub some { my $k = int rand 9000; return "k BETWEEN $k AND $k + 30" }
my %WORK = (1 => sub { sleep rand 0.2; my $some = some(); ("UPDATE s SET a = a + 1 WHERE $some", "UPDATE s SET c = c + 1 WHERE $some", "UPDATE s SET k = k + 1 WHERE $some")[rand 3] },
	2 => sub { sleep rand 0.2; my $some = some(); ("INSERT INTO s SELECT k, k, 1 FROM s WHERE $some", "DELETE FROM s WHERE $some", "BEGIN; DELETE FROM s WHERE $some; ROLLBACK")[rand 3] },
	3 => sub { sleep rand 0.3; ('VACUUM (INDEX_CLEANUP on) s', 'VACUUM s', 'VACUUM (FREEZE) s')[$VACUUMS++ % 3] },
	4 => sub { sleep 0.5 + rand 1; ('REINDEX INDEX s_k', 'REINDEX INDEX CONCURRENTLY s_k', "BEGIN; TRUNCATE s; $FILL; COMMIT; VACUUM s", 'BEGIN; DROP INDEX s_k; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a); COMMIT')[rand 4] });
fresh();
# replay may wait for a snapshot while its holder waits for a lock of replay's
well($control, $_) for "ALTER SYSTEM SET max_standby_streaming_delay = '500ms'", 'SELECT pg_reload_conf()';
my @writers = write_until($server, time + $seconds, $seed, \%WORK);
my $found = 0;
($answers, $taken, $ended) = (0, 0, 0);
for (my $end = time + $seconds; time < $end;)
{
	my $paused = rand() < 0.5;
	# a conflict may have ended it between two statements
	if (!eval { $session->do("SET lock_timeout = '200ms'"); 1 })
	{
		$session->close;
		$session = eval { $standby->session } // $session;
		next;
	}
	$control->do('SELECT pg_wal_replay_pause()') if $paused;
	eval { $session->do("SELECT gpuhash_prewarm('s_k')") } if $paused || rand() < 0.5;
	$found += wrong_beside($session);
	$control->do('SELECT pg_wal_replay_resume()') if $paused;
}
end_writers($server, @writers);
is($found, 0, "beside writers, none of $answers answers was wrong, and $ended times a conflict ended them");
cmp_ok($answers, '>', 20, '  they are enough');
cmp_ok($taken, '>', $answers / 10, "  $taken by the copy");
well($control, $_) for 'ALTER SYSTEM RESET max_standby_streaming_delay', 'SELECT pg_reload_conf()', 'SELECT pg_wal_replay_resume()';
$session->close;
$session = $standby->session;
fresh();
prewarm();
right('and behind them', 1);

# --------------------------------------------------------- databases copied as files

# One that is dropped, and copied anew under its OID, has indexes and files of the names of those before, and LSNs from before them.
well($primary, 'CREATE DATABASE src');
sub in_database { my ($in, $name, @sql) = @_; well($in, $_) for "\\c $name", 'SET client_min_messages = warning', @sql; return $in }
in_database($primary, 'src', 'CREATE EXTENSION gpuhash', $TABLES, 'VACUUM ANALYZE s', 'VACUUM ANALYZE o');
sub copy_anew
{
	in_database($primary, 'postgres', 'DROP DATABASE IF EXISTS a', 'CREATE DATABASE a OID 90001 TEMPLATE src STRATEGY file_copy');
	return catch_up($server, $standby);
}
my @IN_COPY = ('INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 20) i', 'UPDATE s SET k = -k WHERE k BETWEEN 2000 AND 2020', 'DELETE FROM s WHERE k BETWEEN 3000 AND 3020');
# what is done in the copy before its index is copied; in the template before it is copied again; whether the copy from before is right then
for my $case (['nothing', [], [], 1], ['changes in the copy', \@IN_COPY, [], !$moves], ['changes in the template', [], ['DELETE FROM s WHERE k BETWEEN 4000 AND 4020'], !$moves],
	['changes, vacuumed, in the template', [], ['DELETE FROM s WHERE k BETWEEN 5000 AND 5020', 'VACUUM (INDEX_CLEANUP on) s'], 0],
	['changes, vacuumed, in the copy', [@IN_COPY, 'VACUUM (INDEX_CLEANUP on) s'], [], 0], ['changes in both', [@IN_COPY], ['DELETE FROM s WHERE k BETWEEN 6000 AND 6020'], !$moves])
{
	my ($what, $in_copy, $in_template, $stays) = @$case;
	for my $point ('none', $stays && @$in_copy > 0 && @$in_template == 0 ? 'index_begin' : ())
	{
		copy_anew();
		in_database($primary, 'a', @$in_copy);
		catch_up($server, $standby);
		my $in = in_database($standby->session, 'a');
		well($control, "SELECT gpuhash_fault_arm('index_begin', 'launch', 0, 1000000000, 0)") if $point ne 'none';
		cmp_ok(prewarm($in), '>', 0, "a copy of a copied database, $what");
		release() if $point ne 'none';
		right('  right', 1, $in) if $point eq 'none';
		$in->close;
		in_database($primary, 'src', @$in_template);
		copy_anew();
		$in = in_database($standby->session, 'a');
		# the first one asked for would make another copy
		$taken = 0;
		my $blocks = blocks($in, $QUERY{keys});
		$stays ? cmp_ok($blocks, '>', 0, '  and of the next one by the same') : is($blocks, 0, '  but not of the next one');
		$found = wrong($in);
		$point eq 'none' ? is($found, 0, '  right') : cmp_ok($found, '>', 0, '  without the bits of the begin it is wrong');
		$in->close;
		# the next case begins without a copy
		in_database($primary, 'src', 'UPDATE s SET c = c + 1 WHERE k = 8000', 'VACUUM (INDEX_CLEANUP on) s');
	}
}
# What changes while the leaf pages are read comes back as it was with the files.
for my $point ('any', $moves ? () : 'index_again')
{
	copy_anew();
	my $in = in_database($standby->session, 'a');
	hold("leaf pages of a copied database, $point", 'index_leaf', 0, [$in, "SELECT gpuhash_prewarm('s_k')"]);
	in_database($primary, 'a', $SHIFTS);
	catch_up($server, $standby);
	# another fault instead of the one that holds it
	my ($kind, $times) = $point eq 'any' ? ('none', 0) : ('launch', 1000000000);
	well($control, "SELECT gpuhash_fault_arm('$point', '$kind', 0, $times, 0)");
	my ($made, $error) = $in->receive;
	release();
	$moves ? like($error, qr/no copy of index/, '  none') : cmp_ok("$error$made", '>', 0, '  a copy');
	right('  right', $moves ? undef : 1, $in) if $point eq 'any';
	$in->close;
	copy_anew();
	$in = in_database($standby->session, 'a');
	cmp_ok(blocks($in, $QUERY{keys}), '>', 0, '  and of the next one by the same') if !$moves;
	$found = wrong($in);
	$point eq 'any' ? is($found, 0, '  right') : cmp_ok($found, '>', 0, '  wrong without those of the end');
	$in->close;
	in_database($primary, 'src', 'UPDATE s SET c = c + 1 WHERE k = 8000', 'VACUUM (INDEX_CLEANUP on) s');
}
# files that move are the same
copy_anew();
well($primary, "CREATE TABLESPACE other LOCATION ''");
my $in = in_database($standby->session, 'a');
cmp_ok(prewarm($in), '>', 0, 'a copy of a database that moves');
$in->close;
for my $where ('other', 'pg_default')
{
	in_database($primary, 'postgres', "ALTER DATABASE a SET TABLESPACE $where");
	catch_up($server, $standby);
	$in = in_database($standby->session, 'a');
	cmp_ok(blocks($in, $QUERY{keys}), '>', 0, "moved to $where: it is there");
	right('  right', 1, $in);
	$in->close;
}
in_database($primary, 'postgres');

# ------------------------------------------------------------------ when the standby ends

# none is left of before
for my $how ('fast', 'immediate', 'a process is killed')
{
	vacuum();
	prewarm();
	right("before it ends: $how", 1);
	if ($how =~ /killed/)
	{
		kill 'KILL', $session->{backend};
		eval { $session->receive(1) };
		for (1 .. 600) { last if eval { $standby->query('SELECT 1') } && ($standby->run('SELECT count(*) FROM gpuhash_resident'))[1] =~ /^0$/; sleep 0.1 }
	}
	else
	{
		$_->close for $session, $old, $control;
		$standby->stop($how);
	}
	well($primary, 'UPDATE s SET a = a + 1 WHERE k % 50 = 9; INSERT INTO s SELECT i, 1, 0 FROM generate_series(1, 100) i');
	$standby->start if $how !~ /killed/;
	eval { $_->close } for $session, $old, $control;
	($session, $old, $control) = map { $standby->session } 1 .. 3;
	vacuum();
	is(well($session, 'SELECT count(*) FROM gpuhash_resident WHERE tables > 0'), 0, "no copy is left: $how");
	right('  right');
}

# --------------------------------------------------------------------- it ends with recovery

well($primary, 'CREATE TABLE s2 AS SELECT * FROM s; CREATE INDEX s2_k ON s2 USING gpuhash (k) INCLUDE (a)');
well($primary, 'VACUUM ANALYZE s2');
fresh();
prewarm();
cmp_ok(well($session, "SELECT gpuhash_prewarm('big_k')"), '>', $MAP, 'a copy that nothing changes for');
cmp_ok(blocks($session, $KEYS), '>', $MAP, '  is used');
unlike($standby->log, qr/gpuhash copies worker|cannot acquire lock mode/, 'nobody tried to make one in the background');
well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
my %want = map { ($_ => well($old, "SET LOCAL gpuhash.enabled = off; $QUERY{$_}; SET LOCAL gpuhash.enabled = on")) } @names;
plan_ahead($session, 'left');
is(begin($session, 'left'), $want{left}, 'transactions that begin in recovery');
# a query has asked for a copy's blocks; another copy has been begun, and its leaf pages are read afterwards
my $maker = $standby->session;
hold('a query, and a copy', 'index_asked', 0, [$session, 'EXECUTE q'], [$maker, "SELECT gpuhash_prewarm('s2_k')"]);
$primary->close;
$server->stop;
is(well($control, 'SELECT pg_promote()'), 't', 'it is promoted');
my $writer = $standby->session;
is(blocks($writer, $KEYS), 0, 'a copy that nothing has changed for ends with recovery');
my $WRITES = join '; ', map { "DELETE FROM $_ WHERE k % 900 = 5; UPDATE $_ SET a = a + 1 WHERE k % 900 = 6; INSERT INTO $_ SELECT i, 9, 0 FROM generate_series(1, 9500, 900) i" } 's', 's2';
well($writer, $WRITES);
well($writer, "VACUUM (INDEX_CLEANUP on) $_") for 's', 's2';
well($writer, $WRITES);
release();
my ($got, $error) = $session->receive;
is("$error$got", $want{left}, 'a query that had asked in recovery has what its snapshot has');
well($session, 'COMMIT');
($got, $error) = $maker->receive;
like($error, qr/^$|no copy of index/, 'a copy that was begun in recovery is made, or not');
is(blocks($maker, $QUERY{$_} =~ s/\bs\b/s2/gr), 0, "  and not used: $_") for 'keys';
right('what was made in recovery is not used');
for my $name (@names) { is(well($old, $QUERY{$name}), $want{$name}, "a transaction that began in recovery: $name") }
well($old, 'COMMIT');
well($writer, "VACUUM (INDEX_CLEANUP on) $_") for 's', 's2';
prewarm();
right('but one that is made then', 1);
for my $sql ('DELETE FROM s WHERE k % 900 = 8', 'INSERT INTO s SELECT i, 10, 0 FROM generate_series(2, 9500, 900) i') { well($writer, $sql); right("changed then, $sql", 1); }
$_->close for $session, $old, $control, $maker, $writer;
unlike($server->log . $standby->log =~ s/^.*terminated by signal 9: Killed$//mr, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
