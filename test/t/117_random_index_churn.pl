# Copies of indexes, on a device and in shared memory, while other sessions change their tables in all ways,
# VACUUM them, and make the indexes anew, and the copies: random queries, in snapshots that are older, with
# changes of their own, through cursors, prepared, by imported snapshots, and cancelled.  The answer is
# PostgreSQL's in the same snapshot.  In the place of the CUDA engine there is a stand-in (test/fault), unless
# GPUHASH_STAND_IN is "no".
#
#	GPUHASH_SECONDS		of comparisons (30)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use GpuHash::RandomChurn;
use GpuHash::Service;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 30;
my $ROUND = 10;
my $seed = seed();
my $service = GpuHash::Service->new(conf => ['shared_buffers = 256MB', 'max_connections = 20',
	'max_worker_processes = 16', 'max_prepared_transactions = 5', 'allow_in_place_tablespaces = on',
	'deadlock_timeout = 200ms', 'gpuhash.reload_resident = on', 'gpuhash.prewarm_columns = on',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
	'min_parallel_index_scan_size = 0']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $session = $server->session;
well($session, "SET client_min_messages = error; CREATE TABLESPACE place LOCATION ''");

sub one { return $_[int(rand(@_))] }
sub sorted { return join "\n", sort split /\n/, $_[0] }

# What a process of those that compare has found.
my %count;
my $churn;

# In a transaction; undef: it could not be, for what others have done.  Dies of any other error.
sub ask
{
	my ($in, $sql) = @_;
	my ($out, $error) = $in->do($sql, 120);
	return $out if $error !~ /(?:ERROR|FATAL|PANIC):/;
	die "$error: $sql\n" if $error !~ /^(?:psql:\S+ )?$GpuHash::RandomChurn::EXPECTED/;
	return undef;
}

sub note_plan
{
	my ($plan) = @_;
	$count{device}++ if $plan =~ /Inner Index: .*\n\s+Blocks From Index/ && $plan =~ /Engine: cuda/;
	$count{shared}++ if $plan =~ /Inner Index: .*\n\s+Blocks From Index/ && $plan !~ /Engine: cuda/;
	$count{keys}++ if $plan =~ /Keys: \d+\n\s+Blocks From Index/;
	$count{partly}++ if $plan =~ /Blocks From Heap/;
	return;
}

# Rows of a cursor, which is opened before that is done, and gone through behind it.
sub by_cursor
{
	my ($in, $query, $meanwhile) = @_;
	my $first = ask($in, "DECLARE c CURSOR FOR $query; FETCH " . one(0, 1, 7) . ' FROM c') // return;
	$meanwhile->() // return;
	my $rest = ask($in, 'FETCH ALL FROM c; CLOSE c') // return;
	return join "\n", grep { $_ ne '' } $first, $rest;
}

# In another session, by the snapshot of the transaction.
sub by_import
{
	my ($in, $other, $query, $settings) = @_;
	my $snapshot = ask($in, 'SELECT pg_export_snapshot()') // return;
	my $with = ask($other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$snapshot';
		SET LOCAL lock_timeout = '2s'; $settings; $query");
	ask($other, 'ROLLBACK');
	return $with;
}

sub compare_in
{
	my ($in, $other, $query, $table) = @_;
	my $settings = GpuHash::RandomChurn::settings();
	my $how = one('own', 'own', 'old', 'old', 'cursor', 'cursor', 'import', 'prepared', '', '', '', '');
	my $own = sub { return ask($in, $churn->own($table)) };
	my $wait = sub { sleep rand() * 0.6; return 1 };

	my $level = one(('REPEATABLE READ') x 6, 'SERIALIZABLE');
	ask($in, "BEGIN ISOLATION LEVEL $level; SET LOCAL lock_timeout = '2s'; SELECT 1") // return;
	$wait->() if $how eq 'old';
	return if $how eq 'own' && !defined $own->();
	my $want = ask($in, "SET LOCAL gpuhash.enabled = off; $query") // return;
	ask($in, "SET LOCAL gpuhash.enabled = on; $settings") // return;
	my $prepared = "SET LOCAL plan_cache_mode = force_generic_plan; PREPARE q AS $query; EXECUTE q";
	my $with = $how eq 'cursor' ? by_cursor($in, $query, one($own, $wait)) :
		$how eq 'import' ? by_import($in, $other, $query, $settings) :
		ask($in, $how eq 'prepared' ? $prepared : $query);
	return unless defined $with;
	# a cursor's changes came behind it
	my $plan = ask($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query") // return;
	if ($how eq 'prepared')
	{
		$wait->();
		$with .= "\nagain\n" . (ask($in, 'EXECUTE q') // return);
		$want .= "\nagain\n$want";
	}
	$count{compared}++;
	note_plan($plan);
	return if sorted($with) eq sorted($want);
	$count{wrong}++;
	my ($first, $right) = map { substr sorted($_), 0, 1000 } $with, $want;
	note_error($server, "wrong: $settings; $how; $query\n$first\nnot\n$right\n$plan\nindex $table->{on}");
	return;
}

# A query that is cancelled somewhere.
sub cancel
{
	my ($in, $query) = @_;
	my $settings = GpuHash::RandomChurn::settings();
	my $work = rand() < 0.3 ? "SELECT gpuhash_prewarm('" . one($churn->indexes) . "')" :
		"BEGIN; $settings; $query; ROLLBACK";
	my $ms = int(1 + rand(40));
	my $error = ($in->do("SET statement_timeout = '${ms}ms'; $work"))[1];
	# which may be cancelled, too
	for (1 .. 100) { last if ($in->do('ROLLBACK; SET statement_timeout = 0'))[1] !~ /ERROR/ }
	my $expected = qr/57014|$GpuHash::RandomChurn::EXPECTED/;
	note_error($server, "$error: $query") if $error ne '' && $error !~ $expected;
	return;
}

# One comparison of the process.
my $other;
sub compare
{
	my ($in) = @_;
	$other ||= $server->session;
	my ($query, $name) = $churn->query;
	my ($table) = grep { $_->{name} eq $name } @{ $churn->{tables} };
	return cancel($in, $query) if rand() < 0.05;
	my $prewarm = "SET gpuhash.engine = 'auto'; SELECT gpuhash_prewarm('${name}_k'); RESET gpuhash.engine";
	$in->do($prewarm) if rand() < 0.05;
	$count{tried}++;
	# of the last one
	eval { compare_in($in, $other, $query, $table || $churn->table); 1 } or note_error($server, $@);
	$in->do('ROLLBACK; DEALLOCATE ALL');
	return;
}

# All that processes have counted until then.
sub counted
{
	my %sum;
	for my $file (glob "$server->{dir}/counts.*")
	{
		open my $in, '<', $file or die $!;
		while (<$in>) { $sum{$1} += $2 if /^(\w+) (\d+)/ }
		close $in;
	}
	return %sum;
}

sub keep_counts
{
	open my $file, '>', "$server->{dir}/counts.$$" or die $!;
	print $file "$_ $count{$_}\n" for sort keys %count;
	close $file;
	return;
}

# A machine that is busy has longer.
my $end = time + $seconds;
my $last = $end + 3 * $seconds;
my %sum;
my $few = sub { return grep { $sum{$_} < $seconds / 8 } qw(device shared keys) };
for (my $round = 0; time < $end || (time < $last && $few->()); $round++)
{
	$churn = GpuHash::RandomChurn->new($session);
	my $until = time + $ROUND;
	my %work = (10 => sub { sleep rand() * 0.2; $churn->keep });
	for my $n (1, 2)
	{
		$work{$n} = sub { sleep rand() * 0.2; $churn->change("$round.$n") };
	}
	my $begin = $seed + 100 * $round;
	my @pids = write_until($server, $until, $begin, \%work, $GpuHash::RandomChurn::EXPECTED);
	push @pids, fork_until($server, $until, $begin, sub { compare($_[0]); keep_counts() }, 20, 21);
	waitpid $_, 0 for @pids;
	%sum = ((map { $_ => 0 } qw(tried compared device shared keys partly wrong)), counted());
	last if errors($server) ne '';
}
note(join ', ', map { "$_ $sum{$_}" } sort keys %sum);
is(errors($server), '', "none of $sum{compared} answers was wrong");
cmp_ok($sum{compared}, '>', $sum{tried} / 3, "of $sum{tried} that were begun");
my $by = $sum{device} + $sum{shared} + $sum{keys};
cmp_ok($by, '>', $sum{compared} / 15, "$by by copies, $sum{partly} of these with blocks of the table");
is(join(' ', $few->()), '', "$sum{device} on the device, $sum{shared} in shared memory, $sum{keys} by keys");
$session->close;
like($service->settle, qr/buffers 0, slots 0/, 'no buffer is left over');
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
