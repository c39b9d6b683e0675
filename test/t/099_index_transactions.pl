# Joins by copies of indexes in long transactions beside writers and VACUUM: by plans that were prepared before, by cursors that
# are read later, also WITH HOLD, and around savepoints that are rolled back, with changes of the transaction itself: what each
# returns is what PostgreSQL returns in the same snapshot.
#
#	GPUHASH_SECONDS		of that (12)
#	GPUHASH_SEED		to begin with
use GpuHash::Test;
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 12;
my $seed = seed();
my $server = GpuHash::Server->new(conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'gpuhash.force_offload = on', 'autovacuum = off', 'max_worker_processes = 8']);
$server->query("CREATE EXTENSION gpuhash; CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO s SELECT i, i % 1000, 0 FROM generate_series(1, 9000) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a);
	CREATE TABLE o AS SELECT i * 7919::bigint % 9501 - 200 AS k, i::bigint AS v, i % 7 AS g FROM generate_series(1, 25000) i");
$server->query("VACUUM ANALYZE $_") for 's', 'o';
my %QUERY = (sums => 'SELECT count(*), sum(o.v), sum(s.a), sum(s.k) FROM o JOIN s ON s.k = o.k', groups => 'SELECT o.g, count(*), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k GROUP BY o.g ORDER BY o.g',
	anti => 'SELECT o.g, count(*) FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.k = o.k) GROUP BY 1 ORDER BY 1');
my @names = sort keys %QUERY;

sub one { return $_[int(rand(@_))] }

# Of few rows, which the copy is not right for then.
sub small_change
{
	my $k = int(rand(9500));
	return one("INSERT INTO s VALUES ($k, 7, 0)", "DELETE FROM s WHERE k BETWEEN $k AND $k + 1", "UPDATE s SET a = a + 1 WHERE k = $k", "UPDATE s SET c = c + 1 WHERE k = $k", "UPDATE s SET k = k + 1 WHERE k = $k");
}

my @VACUUMS = ('VACUUM (INDEX_CLEANUP on) s', 'VACUUM s', 'VACUUM (INDEX_CLEANUP off) s', 'VACUUM (FREEZE) s');
my $session = $server->session;
well($session, 'SET plan_cache_mode = force_generic_plan; SET max_parallel_workers_per_gather = 0; ' . join('; ', map { "PREPARE p_$_ AS $QUERY{$_}" } @names));
my ($compared, $wrong, $taken) = (0, '', 0);

sub want { my ($name) = @_; return well($session, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on") }

sub same
{
	my ($what, $got, $want) = @_;
	$compared++;
	$wrong .= "$what: $got\nnot $want\n" if $got ne $want;
	return;
}

sub ask_now
{
	my ($what) = @_;
	my $name = one(@names);
	my $want = want($name);
	same("$what, $name, prepared", well($session, "EXECUTE p_$name"), $want);
	same("$what, $name", well($session, $QUERY{$name}), $want);
	$taken++ if well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE p_$name") =~ /Inner Index/;
	return;
}

# A transaction: queries, own changes that are rolled back and others that are not, and cursors that are read at its end and after it.
sub transaction
{
	my $level = one('READ COMMITTED', 'REPEATABLE READ', 'REPEATABLE READ', 'SERIALIZABLE');
	my (%held, %later);
	well($session, "BEGIN ISOLATION LEVEL $level");
	if ($level ne 'READ COMMITTED')
	{
		ask_now('at first');
		for my $number (1 .. 2)
		{
			my $name = one(@names);
			my $kind = $number == 1 ? \%held : \%later;
			well($session, "DECLARE c$number CURSOR " . ($number == 1 ? 'WITH HOLD ' : '') . "FOR $QUERY{$name}");
			$kind->{$number} = want($name);
		}
	}
	my $broken = 0;
	for (1 .. 1 + int(rand(3)))
	{
		my (undef, $error) = $session->do('SAVEPOINT x; ' . small_change() . '; ' . small_change());
		# another one has changed the row
		if ($error ne '') { $broken = $error !~ /40001/; last if $broken; well($session, 'ROLLBACK TO x') }
		ask_now('with changes') if $level ne 'READ COMMITTED';
		well($session, one('ROLLBACK TO x', 'RELEASE x'));
		ask_now('after a savepoint') if $level ne 'READ COMMITTED';
		sleep rand() * 0.05;
	}
	$wrong .= 'an error' if $broken;
	same('a cursor', well($session, "FETCH ALL FROM c$_"), $later{$_}) for keys %later;
	my (undef, $error) = $session->do(one('COMMIT', 'COMMIT', 'ROLLBACK'));
	$wrong .= "$error\n" if $error !~ /^$|40001/;
	for my $number (keys %held)
	{
		my ($got, $gone) = $session->do("FETCH ALL FROM c$number; CLOSE c$number");
		# a transaction that was rolled back, or failed, leaves none
		same('a cursor WITH HOLD', $got, $held{$number}) if $gone !~ /34000/;
	}
	return;
}

my $end = time + $seconds;
my @pids = write_until($server, $end + 30, $seed, { 1 => sub { sleep rand() * 0.1; small_change() }, 2 => sub { sleep rand() * 0.1; 'BEGIN; SAVEPOINT x; ' . small_change() . '; ROLLBACK TO x; ' . small_change() . '; COMMIT' }, 3 => sub { sleep rand() * 0.2; one(@VACUUMS) } });
while (time < $end && $wrong eq '')
{
	transaction();
	# which takes enough blocks that are all-visible
	$session->do("SELECT gpuhash_prewarm('s_k')") if rand() < 0.2;
}
end_writers($server, @pids);
is($wrong, '', "none of $compared answers was wrong");
cmp_ok($taken, '>', 5, "$taken by copies");
well($session, 'DEALLOCATE ALL');
is(broken($server) // '', '', 'amcheck finds nothing');
$session->close;
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
