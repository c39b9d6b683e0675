# Pages that are not all-visible, of which the device finds by the tuples' hints what a snapshot sees: answers are
# PostgreSQL's, whatever others, or the transaction itself, have written, and EXPLAIN and the statistics count the
# same tuples.  Pages stay where they are, or are copied; in the place of the CUDA engine there is a stand-in
# (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_SECONDS		how long others write while queries run, in each way (5)
use GpuHash::Test 'module';
use POSIX ();
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $seconds = $ENV{GPUHASH_SECONDS} || 5;
my @CONF = ('shared_buffers = 256MB', 'max_connections = 30', 'track_counts = on');
my $ROWS = 60000;

# ------------------------------------------------------------------ the queries

my %QUERY = (
	all => 'SELECT count(*), sum(n), sum(id), min(g), max(g) FROM h',
	count => 'SELECT count(*) FROM h',
	groups => 'SELECT g, count(*), sum(n) FROM h WHERE n % 3 > 0 GROUP BY g ORDER BY g',
	outer => 'SELECT d.p, count(*), sum(h.n) FROM h JOIN d ON d.k = h.g GROUP BY d.p ORDER BY 1',
	inner => 'SELECT count(*), sum(h.n), sum(o.v) FROM o JOIN h ON h.id = o.k');

# Name, and what is done to the table in a session of its own; whether the device is to find what is visible at the
# first reading, and whether hints leave something open then (undef: maybe); whether it is to at the third one (1).
my $FRESH = "DROP TABLE IF EXISTS h; CREATE TABLE h (id int, g int, n bigint) WITH (fillfactor = 80, autovacuum_enabled = off); INSERT INTO h SELECT i, i % 9, i FROM generate_series(1, $ROWS) i; VACUUM h";
my @CASES = (
	[loaded => 'TRUNCATE h; INSERT INTO h SELECT i, i % 9, i FROM generate_series(1, 60000) i', 0, 0],
	[updated => 'UPDATE h SET n = n + 1 WHERE id % 100 = 7', undef, undef],
	[deleted => 'DELETE FROM h WHERE id % 100 = 7', 1, 1],
	[not_deleted => 'BEGIN; DELETE FROM h WHERE id % 100 = 7; ROLLBACK', 1, 1],
	[many_deleted => 'DELETE FROM h WHERE id % 3 = 1', undef, undef],
	[all_deleted => 'DELETE FROM h', undef, undef, 0],
	[not_updated => 'BEGIN; UPDATE h SET n = n + 1 WHERE id % 100 = 7; ROLLBACK', undef, undef],
	[not_inserted => 'BEGIN; INSERT INTO h SELECT i, 1, i FROM generate_series(1, 5000) i; ROLLBACK', undef, undef, 0],
	[locked => 'DELETE FROM h WHERE id % 100 = 7; SELECT count(*) FROM h; SELECT count(*) FROM (SELECT FROM h WHERE id % 50 = 3 FOR UPDATE) s', 1, 0],
	[key_shared => 'DELETE FROM h WHERE id % 100 = 7; SELECT count(*) FROM h; SELECT count(*) FROM (SELECT FROM h FOR KEY SHARE) s', 1, 0],
	[sub_deleted => 'BEGIN; SAVEPOINT a; DELETE FROM h WHERE id % 100 = 7; RELEASE a; SAVEPOINT b; DELETE FROM h WHERE id % 100 = 9; ROLLBACK TO b; COMMIT', 1, 1],
	[chains => join(';', ('UPDATE h SET n = n + 1 WHERE id % 100 = 7') x 5), undef, undef],
	[pruned => 'UPDATE h SET n = n + 1 WHERE id % 4 = 1; SELECT count(*) FROM h; UPDATE h SET n = n + 1 WHERE id % 4 = 1; SELECT count(*) FROM h; DELETE FROM h WHERE id % 50 = 4; SELECT count(*) FROM h', undef, undef],
	[vacuumed => 'DELETE FROM h WHERE id % 50 = 4; VACUUM h; UPDATE h SET n = n + 1 WHERE id % 100 = 7', undef, undef],
	[frozen => 'VACUUM (FREEZE) h; DELETE FROM h WHERE id % 100 = 7', 1, 1],
	[copied => 'BEGIN; TRUNCATE h; COPY h FROM PROGRAM \'seq -f "%.0f	1	2" 1 30000\' WITH (FREEZE); COMMIT; DELETE FROM h WHERE id % 100 = 7', 1, 1]);

my ($service, $server);

# What EXPLAIN counts of a query by the device.
sub explained
{
	my ($session, $name, $by_device) = @_;
	my ($plan, $error) = $session->do("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) $QUERY{$name}");
	my ($hinted, $judged) = map { $plan =~ /^ *$_: (\d+)/m ? $1 : -1 } 'Hinted Pages', 'Tuples Judged';
	my ($node) = $plan =~ /(Seq Scan on public\.h .*)/s;
	my $counts = join ' ', map { ($node // '') =~ /$_/ ? $1 : '-' } qr/actual rows=([\d.]+)/, qr/Rows Removed by Filter: (\d+)/;
	ok($plan =~ /Engine: cuda/ && $plan !~ /Fallback Reason/, "$by_device") || diag("$plan$error") if defined $by_device;
	return ($hinted, $judged, $counts);
}

# The query by the device, and by PostgreSQL in the same snapshot.
sub compare
{
	my ($session, $name, $what) = @_;
	$session->do('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my ($got, $error) = $session->do($QUERY{$name});
	my ($want) = $session->do("SET LOCAL gpuhash.enabled = off; $QUERY{$name}");
	$session->do('COMMIT');
	is($got . $error, $want, $what);
	return;
}

# Tuples that the relation's scans were told to have returned, since the last call.
sub tuples_counted
{
	my ($session) = @_;
	my ($n) = $session->do("SELECT pg_stat_force_next_flush(); SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'h'");
	return ($n =~ /(\d+)\s*$/)[0];
}

sub run_cases
{
	my ($way) = @_;
	my $session = $server->session;
	my $other = $server->session;
	$other->do('SET gpuhash.enabled = off');
	my $scans_mark = ($other->do('SHOW server_version_num'))[0] >= 190000;
	for my $case (@CASES)
	{
		my ($name, $sql, $hinted, $judged, $then) = @$case;
		for my $query (sort keys %QUERY)
		{
			$other->do($FRESH);
			my (undef, $failed) = $other->do($sql);
			is($failed, '', "$way: $name: no error") if $failed ne '';
			my @first = explained($session, $query, "$way: $name, $query: by the device");
			is($first[0] > 0 ? 1 : 0, $hinted, "$way: $name, $query: whether pages are hinted at first") or diag("@first") if defined $hinted;
			is($first[1] > 0 ? 1 : 0, $judged, "$way: $name, $query: whether tuples are judged at first") or diag("@first") if defined $judged;
			# once more, without hints
			$other->do($FRESH);
			$other->do($sql);
			compare($session, $query, "$way: $name, $query: the first time");
			compare($session, $query, "$way: $name, $query: the second time");
			my @last = explained($session, $query);
			# from PostgreSQL 19 on the first scan may have marked such pages as all-visible
			my $marked = $scans_mark && !defined $then && $last[0] == 0;
			is($last[0] > 0 ? 1 : 0, $then // 1, "$way: $name, $query: whether pages are hinted then") or diag("@last") if !$marked;
			is($last[1], 0, "$way: $name, $query: and all is told") or diag("@last");
			my $before = tuples_counted($session);
			$session->do($QUERY{$query});
			my $device = tuples_counted($session) - $before;
			my @native = ($session->do('SET gpuhash.enabled = off'), explained($session, $query));
			my $native_before = tuples_counted($session);
			$session->do($QUERY{$query});
			is($device, tuples_counted($session) - $native_before, "$way: $name, $query: tuples are counted");
			$session->do('SET gpuhash.enabled = on');
			is($last[2], $native[-1], "$way: $name, $query: rows and rows removed");
		}
	}
	$session->close;
	$other->close;
	return;
}

# -------------------------------------------------- transactions that are open

sub run_open
{
	my ($way) = @_;
	my ($session, $a, $b) = map { $server->session } 1 .. 3;
	my $both = sub {
		my ($what) = @_;
		compare($session, $_, "$way: $what, $_") for sort keys %QUERY;
		return;
	};
	$a->do($FRESH);
	$a->do('BEGIN; UPDATE h SET n = n + 1000 WHERE id % 100 = 7; DELETE FROM h WHERE id % 100 = 8; INSERT INTO h SELECT i, 1, i FROM generate_series(1, 1000) i');
	$both->('another transaction is open');
	$a->do('COMMIT');
	$both->('it is committed');

	# locks by several are multixacts, also with an update among them
	$a->do("$FRESH; BEGIN; SELECT count(*) FROM (SELECT FROM h WHERE id % 40 = 1 FOR KEY SHARE) s");
	$b->do('BEGIN; SELECT count(*) FROM (SELECT FROM h WHERE id % 80 = 1 FOR SHARE) s; UPDATE h SET n = -n WHERE id % 80 = 41; DELETE FROM h WHERE id % 80 = 2');
	$both->('multixacts, open');
	$b->do('COMMIT');
	$both->('multixacts, one is committed');
	$a->do('ROLLBACK');
	$both->('multixacts, both have ended');

	# a snapshot that is older than what is committed, and its own changes
	$a->do($FRESH);
	$a->do('UPDATE h SET n = n + 1 WHERE id % 100 = 5');
	$session->do('SELECT count(*) FROM h');
	$session->do('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my %before = map { $_ => ($session->do($QUERY{$_}))[0] } sort keys %QUERY;
	$a->do('DELETE FROM h WHERE id % 100 = 7; UPDATE h SET n = 0 WHERE id % 100 = 9; INSERT INTO h SELECT i, 1, i FROM generate_series(1, 1000) i');
	$b->do('SET gpuhash.enabled = off; SELECT count(*), sum(n) FROM h');
	is(($session->do($QUERY{$_}))[0], $before{$_}, "$way: an old snapshot, $_") for sort keys %QUERY;
	$session->do('ROLLBACK; BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT count(*), sum(n) FROM h');
	my ($want) = $session->do('SET LOCAL gpuhash.enabled = off; SELECT count(*), sum(n) FROM h');
	$session->do('SET LOCAL gpuhash.enabled = on; DELETE FROM h WHERE id % 3 = 0; UPDATE h SET n = 5 WHERE id % 3 = 1; INSERT INTO h VALUES (1, 1, 1)');
	is(($session->do('FETCH c'))[0], $want, "$way: a cursor does not see what was done since");
	my $own = sub {
		my ($what) = @_;
		for my $name (sort keys %QUERY)
		{
			my ($got) = $session->do($QUERY{$name});
			my ($native) = $session->do("SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on");
			is($got, $native, "$way: $what, $name");
		}
	};
	$own->('own changes');
	$session->do('SAVEPOINT a; DELETE FROM h WHERE id % 5 = 0; ROLLBACK TO a; SAVEPOINT b; DELETE FROM h WHERE id % 5 = 1; RELEASE b');
	$own->('own subtransactions');
	$session->do('COMMIT');

	# floats are added in an order that does not depend on hints
	$a->do("$FRESH; ALTER TABLE h ALTER n TYPE float8 USING n / 7.0; VACUUM h; UPDATE h SET n = n + 1 WHERE id % 100 = 7");
	my ($float_plan) = $session->do('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) SELECT sum(n) FROM h');
	like($float_plan, qr/Engine: cuda.*Hinted Pages: 0/s, "$way: no pages are hinted for sums of floats");
	my @sums = map { ($session->do('SELECT sum(n), avg(n) FROM h'))[0] } 1 .. 3;
	is("@sums", "$sums[0] $sums[0] $sums[0]", "$way: sums of floats repeat themselves");

	# where conflicts are looked for tuple by tuple, it is PostgreSQL that looks at them
	$a->do("$FRESH; DELETE FROM h WHERE id % 100 = 7; SELECT count(*) FROM h");
	my ($serializable) = $session->do("BEGIN ISOLATION LEVEL SERIALIZABLE; EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) $QUERY{all}; COMMIT");
	like($serializable, qr/Hinted Pages: 0/, "$way: nor in serializable transactions");
	$_->close for $session, $a, $b;
	return;
}

# ------------------------------------------------------------ others that write

# A session that writes until the file is there, and from time to time vacuums.
sub start_writer
{
	my ($number, $stop) = @_;
	my $pid = fork // die "fork: $!";
	return $pid if $pid != 0;
	srand($number);
	eval {
		my $session = $server->session;
		$session->do('SET gpuhash.enabled = off');
		while (!-e $stop)
		{
			my $r = int(rand(97));
			my $sql = (
				"UPDATE h SET n = n + 1 WHERE id % 97 = $r", "DELETE FROM h WHERE id % 997 = $r", "INSERT INTO h SELECT i, i % 9, i FROM generate_series(1, 50) i",
				"BEGIN; UPDATE h SET n = -1 WHERE id % 97 = $r; ROLLBACK", "BEGIN; SAVEPOINT a; DELETE FROM h WHERE id % 97 = $r; ROLLBACK TO a; UPDATE h SET g = 3 WHERE id % 997 = $r; COMMIT",
				"SELECT count(*) FROM (SELECT FROM h WHERE id % 97 = $r FOR SHARE SKIP LOCKED) s", "BEGIN; SELECT count(*) FROM (SELECT FROM h WHERE id % 97 = $r FOR KEY SHARE SKIP LOCKED) s; UPDATE h SET n = n + 1 WHERE id % 997 = $r; COMMIT",
				$number == 1 ? 'VACUUM h' : 'SELECT count(*), sum(n) FROM h')[int(rand(8))];
			my (undef, $error) = $session->do($sql);
			print STDERR "a writer failed: $error\n" if $error ne '' && $error !~ /deadlock/;
		}
		$session->close;
		1;
	} or print STDERR $@;
	POSIX::_exit(0);
}

sub run_writers
{
	my ($way) = @_;
	my $session = $server->session;
	my $stop = "$server->{dir}/stop_$way";
	my ($compared, $hinted, $judged, @wrong) = (0, 0, 0);
	$session->do($FRESH);
	my @pids = map { start_writer($_, $stop) } 1 .. 3;
	my $end = time + $seconds;
	while (time < $end)
	{
		for my $name (sort keys %QUERY)
		{
			$session->do('BEGIN ISOLATION LEVEL REPEATABLE READ');
			my @counts = explained($session, $name);
			my ($got, $error) = $session->do($QUERY{$name});
			my ($want) = $session->do("SET LOCAL gpuhash.enabled = off; $QUERY{$name}");
			$session->do('COMMIT');
			push @wrong, "$name: $got$error instead of $want" if $got . $error ne $want;
			$compared++;
			$hinted += $counts[0];
			$judged += $counts[1];
		}
	}
	open my $file, '>', $stop or die $!;
	close $file;
	waitpid $_, 0 for @pids;
	note("$way: $compared queries beside writers, $hinted pages hinted, $judged tuples judged");
	is(join("\n", @wrong), '', "$way: no difference beside writers");
	cmp_ok($compared, '>', 5, "$way: some queries ran");
	cmp_ok($hinted, '>', 100, "$way: pages were hinted");
	cmp_ok($judged, '>', 0, "$way: tuples were judged");
	$session->close;
	return;
}

for my $way (qw(pinned copied))
{
	$service = GpuHash::Service->new(conf => [@CONF, 'gpuhash.register_buffers = ' . ($way eq 'pinned' ? 'on' : 'off')]);
	$server = $service->server;
	ok($service->wait_ready, "$way: the service is ready");
	$server->query("CREATE TABLE d AS SELECT k, k * 2 AS p FROM generate_series(0, 8) k; CREATE TABLE o AS SELECT i AS k, i AS v FROM generate_series(1, 30000, 3) i; VACUUM ANALYZE d, o");
	run_cases($way);
	run_open($way);
	run_writers($way);
	like($service->settle, $GpuHash::Service::CLEAN, "$way: all was given back");
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, "$way: a clean log");
	undef $server;
	undef $service;
}
done_testing();
