# Random aggregations, offloaded and not, give the same groups.
#
#	GPUHASH_SEED				repeats a run, with the same number of queries and jobs
#	GPUHASH_RANDOM_QUERIES		how many queries (500)
#	GPUHASH_RANDOM_JOBS			in how many sessions at a time (1)
#	GPUHASH_RANDOM_SECONDS		after which no more are begun, each half in half of it (no limit)
#	GPUHASH_RANDOM_SETTINGS		SQL that is run before every query
#	GPUHASH_RANDOM_DEVICE		not empty: with the service and engine = cuda (037_random_device_aggregates.pl)
#
# On a device floats are added in an order of their own.  How often it has done all of a query's
# aggregates is seen from some, which are run once more under EXPLAIN ANALYZE.
#
# Counts, integers, numerics, texts and all else are compared as text.  So are floats where
# PostgreSQL adds them in the same order (GpuHash::RandomAggregate tells); elsewhere they may differ
# by 1e-9 of themselves.  An error must be one both ways; which of several comes first may differ, so
# where the SQLSTATE is another one, it is counted.
#
# During the second half of the queries another session changes some of the tables; both
# answers are of one snapshot.  A query with another answer is printed with the settings; the
# tables are printed once.
use strict;
use warnings;
use Test::More;
use POSIX ();
use Time::HiRes qw(time sleep);
use GpuHash::Jobs;
use GpuHash::RandomAggregate;
use GpuHash::Server;
use GpuHash::Service;

if (my $reason = GpuHash::Server::why_not()) { plan skip_all => $reason }

my $device = $ENV{GPUHASH_RANDOM_DEVICE};
if (my $reason = $device && GpuHash::Service::why_not()) { plan skip_all => $reason }

my $seed = $ENV{GPUHASH_SEED} || 1 + int(rand(1 << 31));
my $queries = $ENV{GPUHASH_RANDOM_QUERIES} || 500;
my $jobs = $ENV{GPUHASH_RANDOM_JOBS} || 1;
my $seconds = $ENV{GPUHASH_RANDOM_SECONDS} || 1e9;
note("seed $seed, $queries queries, $jobs jobs");

my @conf = ('max_connections = ' . ($jobs + 20), 'max_parallel_workers_per_gather = 0', 'max_worker_processes = ' . ($jobs * 4 + 12), 'max_parallel_workers = ' . ($jobs * 4 + 4), 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'jit = off', 'statement_timeout = 60s', 'max_stack_depth = 6MB');
my ($service, $server);
if ($device)
{
	# as many buffers as participants at work, some with several aggregates, and pages that may stay where they are
	$service = GpuHash::Service->new(conf => [@conf, 'enable_material = on', 'shared_buffers = 256MB', 'gpuhash.shared_memory = ' . (256 + $jobs * 64) . 'MB']);
	die 'the service is not ready' if !$service->wait_ready;
	$server = $service->server;
	# the device does pages
	$GpuHash::RandomAggregate::SETTINGS{'gpuhash.enable_scan'} = ['on'];
}
else { $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", @conf]) }

srand($seed);
my $schema = GpuHash::RandomAggregate::schema();
$server->query($schema);

# ------------------------------------------------------------- comparison

# Whether two records of floats are the same but for their last digits.
sub near
{
	my ($got, $want) = @_;
	return 1 if $got eq $want;
	my @got = split /,/, $got =~ s/[()]//gr, -1;
	my @want = split /,/, $want =~ s/[()]//gr, -1;
	return 0 if @got != @want;
	for (0 .. $#got)
	{
		next if $got[$_] eq $want[$_];
		return 0 if grep { !/^-?\d[\d.e+-]*$/ } $got[$_], $want[$_];
		my $most = abs($got[$_]) > abs($want[$_]) ? abs($got[$_]) : abs($want[$_]);
		return 0 if abs($got[$_] - $want[$_]) > 1e-9 * $most + 1e-12;
	}
	return 1;
}

# Whether two outputs, "(exact, ...)|(float, ...)" line by line, are the same.
sub same
{
	my ($got, $want, $in_order) = @_;
	return 1 if $got eq $want;
	return 0 if $in_order;
	my @got = split /\n/, $got;
	my @want = split /\n/, $want;
	return 0 if @got != @want;
	for (0 .. $#got)
	{
		my ($got_exact, $got_floats) = $got[$_] =~ /^(.*)\|(.*)$/ or return 0;
		my ($want_exact, $want_floats) = $want[$_] =~ /^(.*)\|(.*)$/ or return 0;
		return 0 if $got_exact ne $want_exact || !near($got_floats, $want_floats);
	}
	return 1;
}

sub sqlstate { my ($message) = @_; return $message =~ /ERROR:\s+(\w{5}):/ ? $1 : '' }

# The first lines that differ.
sub differences
{
	my ($got, $want) = @_;
	my @got = split /\n/, $got;
	my @want = split /\n/, $want;
	my @lines = grep { ($got[$_] // '') ne ($want[$_] // '') } 0 .. (@got > @want ? $#got : $#want);
	splice @lines, 5 if @lines > 5;
	return join '', map { '-- ' . ($got[$_] // '(none)') . "\n-- instead of\n-- " . ($want[$_] // '(none)') . "\n" } @lines;
}

# Whether all of a plan's aggregates were done by the device to their end.
sub done_by_device
{
	my ($plan) = @_;
	my @engines = map { /GpuHashAggregate.*\bEngine: (\w+)/s ? $1 : () } split /^ *-> +/m, $plan;
	return @engines && $plan !~ /Fallback Reason/ && !grep { $_ ne 'cuda' } @engines;
}

# One query both ways; adds to the job's counts.
sub compare
{
	my ($session, $count, $changing) = @_;
	my $workers = rand() < 0.33 ? 1 + int(rand(3)) : 0;
	my $small = rand() < 0.25;
	my $settings = GpuHash::RandomAggregate::settings();
	$settings .= '; SET parallel_leader_participation = ' . (rand() < 0.8 ? 'on' : 'off');
	my $query = GpuHash::RandomAggregate::query(changing => $changing, in_order => !$workers && !$small && !$device);
	# a hash aggregation takes the rows as they come
	$settings .= '; SET enable_hashagg = on; SET enable_sort = ' . ($query->{in_order} ? 'off' : 'on');
	$settings .= $small ? "; SET work_mem = '64kB'; SET hash_mem_multiplier = 1" : "; SET work_mem = '4MB'; SET hash_mem_multiplier = 2";
	my $forced = "SET max_parallel_workers_per_gather = $workers; SET gpuhash.enabled = on; SET gpuhash.force_offload = on";
	my $begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT s';
	$session->do("$settings; SET max_parallel_workers_per_gather = 0; SET gpuhash.enabled = off; $begin");
	my ($want, $want_error) = $session->do($query->{sql}, 120);
	$session->do("ROLLBACK TO s; DEALLOCATE ALL; $forced");
	my ($plan) = $session->do("EXPLAIN (COSTS OFF) $query->{explain}");
	my ($got, $error) = $session->do($query->{sql}, 120);
	my $shown = '';
	($shown) = $session->do("ROLLBACK TO s; $forced; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query->{explain}", 120) if $device && rand() < 0.3;
	$session->do('ROLLBACK; DEALLOCATE ALL');
	# what is set in a transaction that ends with an error is forgotten
	my $printed = "$settings; $forced;\n$query->{sql};\n" . differences("$got$error", "$want$want_error");
	push @{ $count->{wrong} }, $printed if ($error eq '') != ($want_error eq '') || ($error eq '' && !same($got, $want, $query->{in_order}));
	# mistakes of this test's, not differences: all but data exceptions, and integers from NaN
	push @{ $count->{invalid} }, $printed if $want_error ne '' && sqlstate($want_error) !~ /^22|^0A/;
	$count->{compared}++;
	$count->{errors}++ if $want_error ne '';
	$count->{other_errors}++ if $want_error ne '' && $error ne '' && sqlstate($error) ne sqlstate($want_error);
	$count->{offloaded}++ if $plan =~ /GpuHashAggregate/;
	$count->{parallel}++ if $plan =~ /Parallel Custom Scan \(GpuHashAggregate/;
	$count->{joins}++ if $plan =~ /GpuHashAggregate.*Join/s;
	$count->{small}++ if $small;
	$count->{shown}++ if $shown =~ /GpuHashAggregate/;
	$count->{by_device}++ if done_by_device($shown);
	$count->{in_order}++ if $query->{in_order};
	$count->{rows} += () = $want =~ /^/mg;
	return;
}

# A job's queries; returns its counts.
sub job
{
	my ($job, $number, $changing, $started) = @_;
	my %count = (compared => 0, wrong => [], invalid => []);
	my $session;
	srand($seed + 7919 * ($job + 1) + ($changing ? 1 : 0));
	for my $q (1 .. $number)
	{
		last if time - $started > $seconds / 2 || @{ $count{wrong} } > 20;
		next if eval { $session //= $server->session; compare($session, \%count, $changing); 1 };
		push @{ $count{wrong} }, "job $job, query $q: $@";
		undef $session;
	}
	return \%count;
}

sub jobs
{
	my ($number, $changing, $started) = @_;
	my @counts = GpuHash::Jobs::run($jobs, sub { my ($job) = @_; return job($job, int(($number + $job) / $jobs), $changing, $started) });
	$counts[$_] //= { wrong => ["job $_ ended"], invalid => [] } for 0 .. $jobs - 1;
	return @counts;
}

# --------------------------------------------------- the session that changes

# Until the file is there.  Returns its process.
sub start_changes
{
	my ($stop) = @_;
	my $pid = fork // die "fork: $!";
	return $pid if $pid != 0;
	srand($seed + 1);
	eval {
		my $session = $server->session;
		my $changes = 0;
		while (!-e $stop)
		{
			my (undef, $error) = $session->do(GpuHash::RandomAggregate::change());
			print STDERR "a change failed: $error\n" if $error ne '';
			$changes++;
			sleep(0.01);
		}
		$session->close;
		open my $file, '>', "$stop.count";
		print $file $changes;
		close $file;
		1;
	} or print STDERR $@;
	POSIX::_exit(0);
}

my $started = time;
my @counts = jobs(int($queries / 2), 0, $started);
my $stop = "$server->{dir}/stop";
my $pid = start_changes($stop);
push @counts, jobs($queries - int($queries / 2), 1, time);
open my $file, '>', $stop or die $!;
close $file;
waitpid $pid, 0;
open $file, '<', "$stop.count" or die "the session that changes the tables has failed";
my $changes = <$file>;
close $file;

my %sum;
for my $count (@counts)
{
	$sum{$_} += $count->{$_} // 0 for qw(compared errors other_errors offloaded parallel joins small in_order rows shown by_device);
}
my @wrong = map { @{ $_->{wrong} } } @counts;
my @invalid = map { @{ $_->{invalid} } } @counts;
note(sprintf '%d right, %d wrong: queries compared, seed %d, %d jobs; %d offloaded, %d of them in parallel, %d of joins; %d with little memory, %d with floats in order; %d errors, %d of them others; %d rows in all, %d changes of another session, %.0f s',
	$sum{compared} - @wrong, scalar @wrong, $seed, $jobs, @sum{qw(offloaded parallel joins small in_order errors other_errors rows)}, $changes, time - $started);

note("$sum{by_device} of $sum{shown} were done by the device to their end") if $device;
diag("the tables of these queries:\n$schema") if @wrong;
is(join("\n", @wrong), '', "no difference (seed $seed)");
is(join("\n", @invalid), '', 'PostgreSQL has an answer to all');
cmp_ok($sum{offloaded}, '>', 0.7 * $sum{compared}, 'most queries were offloaded');
cmp_ok($sum{parallel}, '>', 0.02 * $sum{compared}, 'some of them in parallel');
cmp_ok($sum{joins}, '>', 0.1 * $sum{compared}, 'some of them of joins');
cmp_ok($sum{errors}, '<', 0.4 * $sum{compared}, 'most had no error');
cmp_ok($sum{other_errors}, '<=', 2 + 0.02 * $sum{compared}, 'very few had another error');
cmp_ok($sum{by_device}, '>', 0.25 * $sum{shown}, 'the device did many of them to their end') if $device;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back') if $device;
cmp_ok($changes, '>', 0, 'tables were changed');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
