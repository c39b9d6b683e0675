# Pages that stay on the device, beside sessions that write and vacuum: each query by the device, in one snapshot with
# one of PostgreSQL's, returns the same, by one process and by several, with memory enough or not.  And with the checks
# left out that this rests on (fault points), the tests find it: an answer differs.  In the place of the CUDA engine
# there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_SECONDS		how long others write while queries run, in each way (6)
use GpuHash::Test 'module';
use POSIX ();
use Time::HiRes qw(time sleep);
use GpuHash::Jobs;
use GpuHash::Resident;
use GpuHash::Service;

my $seconds = $ENV{GPUHASH_SECONDS} || 6;
my $ROWS = 14000;
my $seed = seed();
my ($service, $server);

# ------------------------------------------------------------ others that write

# What a writer does next.
sub next_change
{
	my ($number) = @_;
	my $id = int(rand($ROWS));
	my ($few, $many, $new) = ("id BETWEEN $id AND $id + 8", 'id % 997 = ' . int(rand(997)), 20000 + int(rand(100000)));
	my $where = rand() < 0.9 ? $few : $many;
	my @changes = (
		"UPDATE t SET n = n + 1 WHERE $where", "UPDATE t SET x = x || 1, b = -b WHERE $where", "DELETE FROM t WHERE $many",
		'INSERT INTO t ' . GpuHash::Resident::rows($id, $id + 8), 'INSERT INTO t ' . GpuHash::Resident::rows($new, $new + 20),
		"BEGIN; UPDATE t SET n = -1 WHERE $where; ROLLBACK", 'BEGIN; INSERT INTO t ' . GpuHash::Resident::rows($new, $new + 100) . '; ROLLBACK',
		"DELETE FROM t WHERE id > 20000 AND $many", "BEGIN; SAVEPOINT a; DELETE FROM t WHERE $many; ROLLBACK TO a; UPDATE t SET g = 3 WHERE $where; COMMIT",
		"SELECT count(*) FROM (SELECT FROM t WHERE $many FOR UPDATE SKIP LOCKED) s");
	my @vacuums = ('VACUUM t', 'VACUUM t', 'VACUUM (FREEZE) t', 'VACUUM (DISABLE_PAGE_SKIPPING) t', "DELETE FROM t WHERE ctid >= '(1350,0)'", 'VACUUM (TRUNCATE) t');
	return $number == 0 ? $vacuums[int(rand(@vacuums))] : $changes[int(rand(@changes))];
}

# A session that writes until the file is there; the first one vacuums.
sub start_writer
{
	my ($number, $stop) = @_;
	my $pid = fork // die "fork: $!";
	return $pid if $pid != 0;
	srand($seed + $number);
	eval {
		my $session = $server->session;
		$session->do('SET gpuhash.enabled = off');
		while (!-e $stop)
		{
			my (undef, $error) = $session->do(next_change($number));
			print STDERR "a writer failed: $error\n" if $error ne '' && $error !~ /deadlock/;
			# so that most pages stay as they are for some time, and the map's, too
			sleep rand() * ($number == 0 ? 0.2 : 0.02);
		}
		$session->close;
		1;
	} or print STDERR $@;
	POSIX::_exit(0);
}

# A session that takes most of the device's memory until the file is there.  Whenever pages are there, it waits until it is given the
# memory, and keeps it until queries have read the table several times.
sub start_hog
{
	my ($stop, $blocks) = @_;
	my $pid = fork // die "fork: $!";
	return $pid if $pid != 0;
	eval {
		my $session = $server->session;
		my $ask = sub { my ($sql) = @_; return ($session->do($sql))[0] || 0 };
		# until the number, which the query asks for, is reached, or all end
		my $await = sub { my ($sql, $number) = @_; sleep 0.01 while !-e $stop && $ask->($sql) < $number };
		$session->do('SET gpuhash.engine = cuda');
		while (!-e $stop)
		{
			$await->("SELECT sum(resident) FROM gpuhash_resident WHERE relation::text = 't'", 1);
			my (undef, $error) = $session->do("SELECT gpuhash_create('hog', capacity => 400000, host_copy => false)");
			next if $error ne '';
			$await->('SELECT pages FROM gpuhash_stat', $ask->('SELECT pages FROM gpuhash_stat') + 8 * $blocks);
			$session->do("SELECT gpuhash_drop('hog')");
		}
		$session->close;
		1;
	} or print STDERR $@;
	POSIX::_exit(0);
}

# Compares until it is time; what it came to.  Some do it in transactions with changes of their own.
sub read_until
{
	my ($end, $settings, $writes) = @_;
	my $session = $server->session;
	my %sum = (compared => 0, wrong => '');
	$session->do($settings);
	while (time < $end)
	{
		if ($writes)
		{
			my $some = int(rand(7));
			my (undef, $error) = $session->do('BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO t ' . GpuHash::Resident::rows(900001, 900020) . "; DELETE FROM t WHERE id > 900000 AND id % 7 = $some; UPDATE t SET n = -n WHERE id > 900000 AND id % 5 = 0");
			# others have changed the same rows
			if ($error ne '') { $session->do('ROLLBACK'); next }
		}
		my $answer = GpuHash::Resident::compare($session, open => $writes);
		$session->do(rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') if $writes;
		$sum{$_} .= $answer->{$_} for 'wrong';
		$sum{$_} += $answer->{$_} for 'compared';
	}
	$session->close;
	return \%sum;
}

my $COUNTS = "SELECT sum(hits), sum(revalidated), (SELECT pages FROM gpuhash_stat) FROM gpuhash_resident WHERE relation::text = 't'";
my @READERS = ('SET max_parallel_workers_per_gather = 0', 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET seq_page_cost = 0; SET gpuhash.device_page_cost = 0; SET gpuhash.device_bus_cost = 0');

sub run_writers
{
	my ($way, @readers) = @_;
	my $session = $server->session;
	my $stop = "$server->{dir}/stop";
	my $blocks = GpuHash::Resident::fresh($session, $ROWS, with => 'fillfactor = 10, autovacuum_enabled = off');
	my ($plan) = $session->do("$READERS[1]; EXPLAIN (ANALYZE, COSTS OFF) $GpuHash::Resident::QUERY{a_sums}");
	ok($plan =~ /Workers Launched: 2/ && $plan =~ /Page Supply: resident/, "$way: by several processes") or diag($plan);
	my @before = split /\|/, ($session->do($COUNTS))[0];
	my @pids = map { start_writer($_, $stop) } 0 .. 3;
	push @pids, start_hog($stop, $blocks) if $way eq 'scarce';
	my $end = time + $seconds;
	my @sums = GpuHash::Jobs::run(scalar @readers, sub { return read_until($end, $readers[$_[0]], $_[0] == 2) });
	open my $file, '>', $stop or die $!;
	close $file;
	waitpid $_, 0 for @pids;
	my @after = split /\|/, ($session->do($COUNTS))[0];
	my ($hits, $revalidated, $pages) = map { $after[$_] - $before[$_] } 0 .. 2;
	my $compared = 0;
	for my $i (0 .. $#readers)
	{
		is($sums[$i]{wrong}, '', "$way: no difference beside writers, to reader $i");
		cmp_ok($sums[$i]{compared}, '>', 0, "$way: which has compared");
		$compared += $sums[$i]{compared};
	}
	note("$way: $compared answers compared beside writers, of a table with $blocks pages at first, from $pages pages; $hits of these were not looked at, $revalidated were and had not changed");
	cmp_ok($compared, '>', 20, "$way: some answers were compared");
	if ($way eq 'scarce')
	{
		cmp_ok($hits + $revalidated, '<', $pages / 2, "$way: most pages had to go, again and again");
	}
	else
	{
		cmp_ok($hits, '>', 200, "$way: pages were used that were not looked at");
		cmp_ok($revalidated, '>', 200, "$way: and some that were, and had not changed");
	}
	$session->close;
	return;
}

# ------------------------------------------------------- what the tests rest on

# Changes rows so that pages are all-visible again, of as many lines as before, with other rows.
my $REPLACE = 'DELETE FROM t WHERE id > 6000; VACUUM t; INSERT INTO t SELECT i, i % 9, i * 8::bigint, i / 6.0, \'y\' || i % 40 FROM generate_series(6001, ' . $ROWS . ') i; VACUUM t';

sub run_control
{
	my ($point, $sql) = @_;
	my ($session, $other) = map { $server->session } 1, 2;
	$other->do('SET gpuhash.enabled = off');
	for my $armed (0, 1)
	{
		GpuHash::Resident::fresh($session, $ROWS);
		$service->arm($point, 'launch', times => 1 << 30) if $armed;
		is(GpuHash::Resident::compare($session)->{wrong}, '', "$point: no difference before the table is changed");
		my (undef, $error) = $other->do($sql);
		is($error, '', "$point: the table is changed");
		my $answer = GpuHash::Resident::compare($session);
		if ($armed)
		{
			cmp_ok($service->fired, '>', 0, "$point: it is left out");
			$service->disarm;
			isnt($answer->{wrong}, '', "$point: left out, it is found");
		}
		else { is($answer->{wrong}, '', "$point: looked at, there is no difference") }
	}
	$_->close for $session, $other;
	return;
}

for my $way (qw(pinned copied scarce))
{
	$service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'max_worker_processes = 16', 'gpuhash.register_buffers = ' . ($way eq 'copied' ? 'off' : 'on'),
		# which is little more than the table's pages take
		$way eq 'scarce' ? ("gpuhash.device_memory_limit = '13MB'") : ()]);
	$server = $service->server;
	ok($service->wait_ready, "$way: the service is ready");
	run_writers($way, $way eq 'scarce' ? @READERS[0, 0, 1, 1] : @READERS[0, 1, 0]);
	if ($way ne 'scarce')
	{
		run_control('resident_map', 'UPDATE t SET n = n + 1 WHERE id % 100 = 7; VACUUM t');
		run_control('resident_heap', $REPLACE);
		# pages are not all-visible again, and the map's bits say so
		run_control('resident_order', 'UPDATE t SET n = n + 1 WHERE id % 100 = 7');
	}
	like($service->settle, $GpuHash::Service::CLEAN, "$way: all was given back");
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, "$way: a clean log");
	undef $server;
	undef $service;
}
done_testing();
