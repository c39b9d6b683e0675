# Aggregates by the device see what PostgreSQL's see: the steps of the isolation test
# aggregate_snapshot (test/specs), offloaded to the device of the service and not, print the same, errors of
# serializable transactions included, and so do rows of scans and of joins; and a hot standby answers as its primary does.
use GpuHash::Test 'module';
use FindBin;
use Time::HiRes 'sleep';
use GpuHash::Service;

# ------------------------------------------------------------------- the spec

my $text = GpuHash::Server::read_file("$FindBin::Bin/../specs/aggregate_snapshot.spec");
my ($head) = $text =~ /^(.*?)^session/ms;
my @setup = $head =~ /^setup\s*\{(.*?)\}$/msg;
my ($teardown) = $head =~ /^teardown\s*\{(.*?)\}/ms;
my (%session_of, %step, %session_setup);
for my $part ($text =~ /^(session \w+.*?)(?=^session|^permutation)/msg)
{
	my ($session) = $part =~ /^session (\w+)/;
	($session_setup{$session}) = $part =~ /^setup\s*\{(.*?)\}$/ms;
	while ($part =~ /^step (\w+)\s*\{(.*?)\}$/msg) { ($session_of{$1}, $step{$1}) = ($session, $2) }
}
my @permutations = map { [split ' ', $_] } $text =~ /^permutation (.*)$/mg;
cmp_ok(scalar @permutations, '>', 5, 'the permutations of the isolation test');

my $service = GpuHash::Service->new(conf => ['shared_buffers = 256MB', 'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'max_connections = 30']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');

# What the steps print, one after the other.
sub run_permutation
{
	my ($steps, $settings) = @_;
	my $control = $server->session;
	my %session;
	$control->do($_) for @setup;
	for my $name (sort keys %session_setup)
	{
		$session{$name} = $server->session;
		$session{$name}->do($_) for grep { defined } $session_setup{$name}, $settings;
	}
	my @printed;
	for (@$steps)
	{
		my ($out, $err) = $session{$session_of{$_}}->do($step{$_});
		$err =~ s/^LOCATION:.*\n?//mg;
		push @printed, "$_: " . join("\n", sort split /\n/, $out) . $err;
	}
	$session{$_}->close for keys %session;
	$control->do($teardown);
	$control->close;
	return join "\n", @printed;
}

my ($device_before) = $service->ask('SELECT page_batches FROM gpuhash_stat');
my $conflicts = 0;
for my $steps (grep { "@$_" ne 'plan' } @permutations)
{
	my $want = run_permutation($steps, 'SET gpuhash.enabled = off');
	my $got = run_permutation($steps, 'SET gpuhash.engine = cuda');
	is($got, $want, "@$steps");
	$conflicts++ if $want =~ /could not serialize/;
}
cmp_ok($conflicts, '>', 0, 'some of them with a conflict');
cmp_ok($service->ask('SELECT page_batches FROM gpuhash_stat') - $device_before, '>', 20, 'the device read pages');

# ------------------------------------------------ rows in serializable transactions

# Two transactions, each of which reads what the other one writes: the last one's commit.
sub write_skew
{
	my ($query, $node, $settings) = @_;
	my $control = $server->session;
	$control->do('DROP TABLE IF EXISTS skew, one; CREATE TABLE skew (id int, k int, on_call bool); CREATE TABLE one (k int PRIMARY KEY)');
	$control->do('INSERT INTO skew SELECT i, i % 50, i < 3 FROM generate_series(1, 3000) i; INSERT INTO one SELECT i FROM generate_series(0, 60) i; VACUUM ANALYZE skew, one');
	my @session = map { $server->session } 1, 2;
	my ($plan) = $session[0]->do("$settings; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
	my $printed = '';
	$_->do("$settings; BEGIN ISOLATION LEVEL SERIALIZABLE") for @session;
	$printed .= join(' ', $_->do($query)) . "\n" for @session;
	$printed .= join(' ', $session[$_ - 1]->do("UPDATE skew SET on_call = false WHERE id = $_")) . "\n" for 1, 2;
	$printed .= join(' ', $_->do('COMMIT')) . "\n" for @session;
	$_->close for @session, $control;
	$printed =~ s/^LOCATION:.*\n?//mg;
	ok($plan =~ /$node.*?Engine: cuda/s, "$node by the device") or diag($plan) if $node ne '';
	return $printed;
}

for (['SELECT id FROM skew WHERE on_call', 'GpuHashScan'], ['SELECT skew.id FROM skew JOIN one ON one.k = skew.k WHERE on_call ORDER BY 1', 'GpuHashRows'])
{
	my ($query, $node) = @$_;
	# the planner takes the few rows that are expected for the inner side
	$query =~ s/on_call/(on_call OR id > 2900)/ if $node eq 'GpuHashRows';
	my $want = write_skew($query, '', 'SET gpuhash.enabled = off');
	like($want, qr/40001: could not serialize/, "PostgreSQL finds the conflict of $query");
	is(write_skew($query, $node, 'SET gpuhash.engine = cuda'), $want, "and so does $node");
}

# ----------------------------------------------------------------- a hot standby

my $primary = $server->session;
$primary->do('CREATE TABLE s (id int, g int, n numeric(12, 2), x text) WITH (fillfactor = 70); CREATE TABLE d (k int PRIMARY KEY, p int)');
$primary->do("INSERT INTO s SELECT i, i % 9, CASE i % 300 WHEN 0 THEN 'NaN' ELSE i / 7.0 END, 'x' || i % 40 FROM generate_series(1, 20000) i; INSERT INTO d SELECT i, i FROM generate_series(0, 8) i; VACUUM ANALYZE s, d");
{
	my $standby = $server->standby;
	my %QUERY = (
		groups => 'SELECT g, count(*), sum(n), max(id), count(x) FROM s GROUP BY g ORDER BY 1',
		texts => 'SELECT x, count(*), avg(n) FROM s WHERE id % 3 > 0 GROUP BY x ORDER BY 1',
		join => 'SELECT x, count(*), sum(p) FROM s JOIN d ON d.k = s.g GROUP BY x ORDER BY 1',
		scan => "SELECT id, n, x FROM s WHERE n > 1000 AND x <> 'x3'",
		rows => 'SELECT s.id, s.n, s.x, d.p FROM s JOIN d ON d.k = s.g WHERE s.id > 300 ORDER BY 1, 2, 3');
	my %NODE = (scan => 'GpuHashScan', rows => 'GpuHashRows');
	for (1 .. 100) { last if eval { $standby->query('SELECT gpuhash_fault_ready()') } ; sleep 0.1 }
	my $session = $standby->session;
	my $hinted = 0;
	for my $round (1 .. 4)
	{
		# a standby sets hints only of commits before its last restartpoint
		$primary->do('CHECKPOINT');
		my ($lsn) = $primary->do('SELECT pg_current_wal_lsn()');
		for (1 .. 200) { last if ($session->do("SELECT pg_last_wal_replay_lsn() >= '$lsn'"))[0] eq 't'; sleep 0.05 }
		$session->do('CHECKPOINT');
		for my $name (sort keys %QUERY)
		{
			my ($want) = $primary->do("SET gpuhash.enabled = off; $QUERY{$name}");
			my ($got, $err) = $session->do("SET gpuhash.enabled = on; $QUERY{$name}");
			is($got . $err, $want, "$name on the standby, round $round");
			my ($plan) = $session->do("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) $QUERY{$name}");
			$hinted += $1 if $plan =~ /Hinted Pages: (\d+)/;
			my $node = $NODE{$name} // 'GpuHashAggregate';
			ok($plan =~ /$node.*Engine: cuda/s && $plan !~ /Fallback Reason/, "$name by the standby's device") or diag($plan);
		}
		$primary->do("UPDATE s SET n = n + 1, id = id + 1 WHERE id % 5 = $round; DELETE FROM s WHERE id % 31 = $round; BEGIN; UPDATE s SET g = 3 WHERE id < 5000; ROLLBACK; INSERT INTO s SELECT i, i % 9, i, 'new' FROM generate_series(1, 200) i" . ($round % 2 ? '; VACUUM s' : ''));
	}
	cmp_ok($hinted, '>', 100, 'the device found by hints what the standby sees');
	$session->close;
	unlike($standby->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log of the standby');
	$standby->stop('fast');
}
$primary->close;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
