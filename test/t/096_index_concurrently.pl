# Indexes of the access method gpuhash that are made, made again and dropped CONCURRENTLY, held and cancelled in each of the
# phases: joins by copies are right in all of them, no index that is not valid is used, and what is left can be dropped.  And
# while that is done again and again, under writers and VACUUM.
#
#	GPUHASH_SECONDS		of that (8)
#	GPUHASH_SEED		to begin with
use GpuHash::Test;
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 8;
my $seed = seed();
my $server = GpuHash::Server->new(conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'gpuhash.force_offload = on', 'autovacuum = off', 'max_parallel_workers_per_gather = 0',
	'max_worker_processes = 8', 'max_prepared_transactions = 5']);
my ($maker, $reader, $writer, $other, $old, $control) = map { $server->session } 1 .. 6;
my $pid = well($maker, 'SELECT pg_backend_pid()');
# a build waits in the first row, and a validation in the first row that it adds, while somebody has that lock
well($control, 'CREATE EXTENSION gpuhash; CREATE FUNCTION waits(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_lock_shared(1); PERFORM pg_advisory_unlock_shared(1); RETURN $1; END $$;
	CREATE TABLE o AS SELECT i * 7919::bigint % 9001 - 200 AS k, i::bigint AS v FROM generate_series(1, 20000) i');
well($control, 'VACUUM ANALYZE o');
my %QUERY = (inner => 'SELECT count(*), sum(o.v), sum(s.a), sum(s.k) FROM o JOIN s ON s.k = o.k', left => 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k');
my @names = sort keys %QUERY;
my $added = 0;

# A statement ends as long as nobody waits for it.
sub fresh
{
	my (@indexes) = @_;
	well($control, 'DROP TABLE IF EXISTS s CASCADE; CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, 8000) i; INSERT INTO s SELECT i, -i, 0 FROM generate_series(10, 8000, 10) i');
	well($control, $_) for @indexes;
	well($control, 'VACUUM ANALYZE s');
	well($_, 'DEALLOCATE ALL; SET plan_cache_mode = force_generic_plan; ' . join('; ', map { "PREPARE p_$_ AS $QUERY{$_}" } @names)) for $reader;
	return;
}

sub change
{
	$added++;
	return well($other, "INSERT INTO s VALUES ($added, 5, 0), (9100 + $added, 6, 0); UPDATE s SET a = a + 1 WHERE k = 200 + $added; UPDATE s SET c = c + 1 WHERE k = 300 + $added; UPDATE s SET k = k + 1 WHERE k = 400 + $added; DELETE FROM s WHERE k = 500 + $added");
}

# The reader's answers, planned now and before, are PostgreSQL's; by: the only index that may be used, '' for none; undef: any that is valid.
sub right
{
	my ($what, $by, $must) = @_;
	for my $name (@names)
	{
		well($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
		my $want = well($reader, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
		my $plan = well($reader, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}");
		is(well($reader, $QUERY{$name}), $want, "$what: $name");
		is(well($reader, "EXECUTE p_$name"), $want, "$what: $name, planned before");
		well($reader, 'COMMIT');
		my ($used) = $plan =~ /Inner Index: (\w+)/;
		next if !defined $by;
		is($used // '', $by, '  by ' . ($by ne '' ? "index $by" : 'no index')) if $by eq '' || $must || defined $used;
	}
	return;
}

sub waits_in
{
	my ($phase, $what) = @_;
	my $seen = '';
	for (1 .. 600)
	{
		# DROP INDEX tells no phases
		$seen = well($control, $phase eq 'drop' ? "SELECT 'drop' FROM pg_locks WHERE pid = $pid AND NOT granted" : "SELECT phase FROM pg_stat_progress_create_index p JOIN pg_locks l ON l.pid = p.pid WHERE p.pid = $pid AND NOT l.granted LIMIT 1");
		last if $seen eq $phase || ($phase ne 'drop' && $seen =~ /^$phase/);
		sleep 0.02;
	}
	return like($seen, qr/^$phase/, "$what: it waits");
}

# Makes whoever waits for these transactions wait: for a writer, then another one, for an old snapshot, for readers.
my %HOLD = (
	writer => sub { well($writer, 'BEGIN; INSERT INTO s VALUES (1, 1, 0), (9000, 1, 0)') }, other_writer => sub { well($old, 'BEGIN; INSERT INTO s VALUES (2, 1, 0), (9001, 1, 0)') },
	snapshot => sub { well($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM o LIMIT 1') }, reader => sub { well($writer, 'BEGIN; SELECT 1 FROM s LIMIT 1') }, other_reader => sub { well($old, 'BEGIN; SELECT 1 FROM s LIMIT 1') },
	function => sub { well($control, 'SELECT pg_advisory_lock(1)') });
my %LET = (writer => sub { well($writer, 'COMMIT') }, other_writer => sub { well($old, 'COMMIT') }, snapshot => sub { well($old, 'COMMIT') }, reader => sub { well($writer, 'COMMIT') }, other_reader => sub { well($old, 'COMMIT') },
	function => sub { well($control, 'SELECT pg_advisory_unlock(1)') });

# What is held before the command begins, and then: in which phase it waits, what is held there, and let go.
my %PHASES = (
	'before the build' => [['writer'], ['waiting for writers before build']],
	'in the build' => [['function'], ['building index']],
	'before the validation' => [['writer'], ['waiting for writers before build', 'other_writer', 'writer'], ['waiting for writers before validation']],
	'in the validation' => [['writer'], ['waiting for writers before build', 'other_writer', 'writer'], ['waiting for writers before validation', 'function', 'other_writer'], ['index validation: scanning table']],
	'for old snapshots' => [['snapshot'], ['waiting for old snapshots']],
	'before it is marked dead' => [['reader'], ['waiting for readers before marking dead']],
	'before it is dropped' => [['reader'], ['waiting for readers before marking dead', 'other_reader', 'reader'], ['waiting for readers before dropping']],
	'drop, before it is marked dead' => [['reader'], ['drop']]);

# Begins the command, and brings it to its last phase; what is held there.
sub bring
{
	my ($sql, $phases, $what, $by) = @_;
	my ($first, @rest) = @$phases;
	my %held = map { $_ => 1 } @$first;
	$HOLD{$_}->() for @$first;
	$maker->send($sql);
	for my $step (@rest)
	{
		my ($phase, $hold, $let) = @$step;
		return keys %held unless waits_in($phase, $what);
		right("$what, $phase", $by);
		change() if !$held{function} || $phase =~ /before/;
		right("$what, $phase, changed", $by) if !$hold;
		if ($hold) { $HOLD{$hold}->(); $held{$hold} = 1 }
		if ($let) { $LET{$let}->(); delete $held{$let} }
	}
	return keys %held;
}

sub drop_invalid
{
	return well($control, "DO \$\$ DECLARE i regclass; BEGIN FOR i IN SELECT indexrelid FROM pg_index WHERE indrelid = 's'::regclass AND NOT indisvalid LOOP EXECUTE 'DROP INDEX ' || i; END LOOP; END \$\$");
}

sub each_phase
{
	my ($what, $sql, $indexes, $by_before, $by_after, @phases) = @_;
	for my $name (@phases)
	{
		for my $end ('cancelled', 'done')
		{
			my $all = "$what, $name, $end";
			# of a function, no copy can be made
			my $plain = !grep { (ref $_ ? "@$_" : $_) =~ /function/ } @{ $PHASES{$name} };
			my ($make, @made) = map { $plain ? s/\(waits\(k\)\), //gr =~ s/k, \(waits\(k\)\)/k/gr : $_ } $sql, @$indexes;
			my ($before, $after) = $plain ? ($by_before, $by_after) : ('', '');
			fresh(@made);
			right("$all, at first", $before, 1) if $before ne '';
			my @held = bring($make, $PHASES{$name}, $all, $by_before eq '' ? '' : undef);
			well($control, "SELECT pg_cancel_backend($pid)") if $end eq 'cancelled';
			$LET{$_}->() for $end eq 'done' ? @held : ();
			my (undef, $error) = $maker->receive;
			$LET{$_}->() for $end eq 'cancelled' ? @held : ();
			like($error, $end eq 'done' ? qr/^$/ : qr/57014/, $all);
			change();
			well($other, 'VACUUM s');
			# cancelled before it was swapped, it is the index before; afterwards the new one
			right("$all, afterwards", $end eq 'done' ? $after : $before eq '' ? '' : undef, $end eq 'done');
			for my $bad (split /\n/, well($control, "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 's'::regclass AND NOT indisvalid"))
			{
				like(($reader->do("SELECT gpuhash_prewarm('$bad')"))[1], qr/no copy of index/, "$bad is not valid, and is not copied");
			}
			drop_invalid();
			right("$all, without what is not valid", undef);
			is(broken($server) // '', '', "$all: amcheck finds nothing") if $end eq 'done';
		}
	}
	return;
}

my @BUILD = ('before the build', 'in the build', 'before the validation', 'in the validation', 'for old snapshots');
each_phase('made', 'CREATE INDEX CONCURRENTLY s_k ON s USING gpuhash (k, (waits(k))) INCLUDE (a)', [], '', 's_k', @BUILD);
each_phase('made again', 'REINDEX INDEX CONCURRENTLY s_k', ['CREATE INDEX s_k ON s USING gpuhash (k, (waits(k))) INCLUDE (a)'], 's_k', 's_k', @BUILD, 'before it is marked dead', 'before it is dropped');
each_phase('dropped', 'DROP INDEX CONCURRENTLY s_k', ['CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)'], 's_k', '', 'drop, before it is marked dead');
$_->close for $maker, $reader, $writer, $other, $old, $control;

# ---------------------------------------------------------------------- again and again

$server->query('DROP TABLE s; CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, 8000) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)');
$server->query('VACUUM ANALYZE s');
my @COMMANDS = ('REINDEX TABLE CONCURRENTLY s', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS s_k ON s USING gpuhash (k) INCLUDE (a)', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS s_ka ON s USING gpuhash (k, a)', 'DROP INDEX CONCURRENTLY IF EXISTS s_k', 'DROP INDEX CONCURRENTLY IF EXISTS s_ka');
my @VACUUMS = ('VACUUM (INDEX_CLEANUP on) s', 'VACUUM s', 'VACUUM (INDEX_CLEANUP off) s');

sub next_change
{
	sleep rand() * 0.05;
	my $k = int(rand(8000));
	my @changes = ("INSERT INTO s VALUES ($k, 1, 0)", "DELETE FROM s WHERE k BETWEEN $k AND $k + 2", "UPDATE s SET a = a + 1 WHERE k = $k", "UPDATE s SET c = c + 1 WHERE k = $k", "UPDATE s SET k = k + 1 WHERE k = $k", "BEGIN; INSERT INTO s VALUES ($k, 2, 0); ROLLBACK");
	return $changes[int(rand(@changes))];
}
my $end = time + $seconds;
my @pids = write_until($server, $end + 30, $seed, { 1 => \&next_change, 2 => \&next_change, 3 => sub { sleep rand() * 0.1; $VACUUMS[int(rand(@VACUUMS))] }, 4 => sub { sleep rand() * 0.1; $COMMANDS[int(rand(@COMMANDS))] } });
my ($rounds, $taken, $wrong) = (0, 0, '');
$reader = $server->session;
well($reader, "SET plan_cache_mode = force_generic_plan; PREPARE p_$_ AS $QUERY{$_}") for @names;
while (time < $end && $wrong eq '')
{
	my $name = $names[$rounds++ % @names];
	well($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $want = well($reader, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
	for my $sql ("EXECUTE p_$name", $QUERY{$name})
	{
		my $got = well($reader, $sql);
		$wrong .= "$sql: $got, not $want\n" if $got ne $want;
	}
	$taken++ if well($reader, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}") =~ /Inner Index/;
	well($reader, 'COMMIT');
}
end_writers($server, @pids);
is($wrong, '', "none of $rounds answers was wrong");
cmp_ok($taken, '>', 0, "$taken by copies");
is(broken($server) // '', '', 'amcheck finds nothing');
$reader->close;
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
