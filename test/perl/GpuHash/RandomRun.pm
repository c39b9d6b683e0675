# GpuHash::RandomRun: the frame of tests that run random queries, offloaded and not.
#
#	GPUHASH_SEED				repeats a run, with the same number of queries and jobs
#	GPUHASH_RANDOM_QUERIES		how many queries
#	GPUHASH_RANDOM_JOBS			in how many sessions at a time (1)
#	GPUHASH_RANDOM_SECONDS		after which no more are begun, each half in half of it (no limit)
#	GPUHASH_RANDOM_SETTINGS		SQL that is run before every query (GpuHash::RandomTables)
#
#	my $run = GpuHash::RandomRun->new(queries => 500)
#	$run->start(conf => [...], device => 1, devices => 2)	a server with the tables; device: with the service and engine = cuda;
#									devices: that each query's pages are divided among
#	my $sum = $run->all($compare)		the queries: a hash with the counts
#	$run->{server}, {service}, {seed}, {schema}
#
# $compare->($session, $count, $changing, $job) runs one query and adds to the job's counts;
# both_ways(), shown(), too_slow() and check() help it; it counts {slow}, of which check() allows next to none.  During the second half of the queries another session changes
# some of the tables ($changing).  A session that fails counts as wrong, and another one is begun.
package GpuHash::RandomRun;

use strict;
use warnings;
use POSIX ();
use Test::More;
use Time::HiRes qw(time sleep);
use GpuHash::Jobs;
use GpuHash::RandomTables;
use GpuHash::Server;
use GpuHash::Service;
use GpuHash::Test;

sub new
{
	my ($class, %options) = @_;
	my $self = bless {
		seed => GpuHash::Test::seed(),
		queries => $ENV{GPUHASH_RANDOM_QUERIES} || $options{queries},
		jobs => $ENV{GPUHASH_RANDOM_JOBS} || 1,
		seconds => $ENV{GPUHASH_RANDOM_SECONDS} || 1e9,
	}, $class;
	note("$self->{queries} queries, $self->{jobs} jobs");
	return $self;
}

sub start
{
	my ($self, %options) = @_;
	my $jobs = $self->{jobs};
	my @conf = ('max_connections = ' . ($jobs + 20), 'max_parallel_workers_per_gather = 0', 'max_worker_processes = ' . ($jobs * 4 + 12), 'max_parallel_workers = ' . ($jobs * 4 + 4),
		'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'jit = off', 'statement_timeout = 60s', 'max_stack_depth = 6MB', @{ $options{conf} || [] });
	delete @$self{qw(server service)};
	if ($options{device})
	{
		# as many buffers as participants at work, some with several scans, and pages that may stay where they are
		my $devices = $options{devices} // 1;
		push @conf, "gpuhash.devices_per_query = $devices" if $devices > 1;
		$self->{service} = GpuHash::Service->new(devices => $devices, conf => [@conf, 'enable_material = on', 'shared_buffers = 256MB', 'gpuhash.shared_memory = ' . (256 + $jobs * 64) . 'MB']);
		die 'the service is not ready' if !$self->{service}->wait_ready;
		$self->{server} = $self->{service}->server;
		# the device does pages
		$GpuHash::RandomTables::SETTINGS{'gpuhash.enable_scan'} = ['on'];
	}
	else { $self->{server} = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", @conf]) }
	srand($self->{seed});
	$self->{schema} = GpuHash::RandomTables::schema();
	$self->{server}->query($self->{schema});
	return;
}

# ------------------------------------------------------------- comparison

sub sqlstate { my ($message) = @_; return $message =~ /ERROR:\s+(\w{5}):/ ? $1 : '' }

# Whether its pages were divided among several devices, by that.
sub is_divided { my ($shown) = @_; return $shown =~ /^ *Devices: \d/m }

# Whether to run a query once more under EXPLAIN ANALYZE: of very many, fewer will do.
sub shown { my ($self) = @_; return rand() < ($self->{queries} > 5000 ? 0.1 : 0.3) }

# Whether a plan that was forced took longer than the minute that it has: one that nobody would take, as a nested loop over scans.
sub too_slow { my ($answer) = @_; return $answer->{want_error} eq '' && sqlstate($answer->{error}) eq '57014' }

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

# A query by PostgreSQL and offloaded, in the same snapshot, as a hash: want, want_error; plan; got, error.
#	sql, explain	of the query; plain		what PostgreSQL is given in place of sql (an option)
#	settings		SQL that goes for both; forced: for the second only; before: in the transaction, first
#	shown			whether to run it once more under EXPLAIN ANALYZE: shown
sub both_ways
{
	my ($session, %query) = @_;
	my %answer = (shown => '');
	my $forced = "SET gpuhash.enabled = on; SET gpuhash.force_offload = on; $query{forced}";
	$session->do("$query{settings}; SET max_parallel_workers_per_gather = 0; SET gpuhash.enabled = off; BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT s");
	@answer{qw(want want_error)} = $session->do($query{plain} // $query{sql}, 120);
	# what is set in a transaction that ends with an error is forgotten
	($answer{plan}) = $session->do("ROLLBACK TO s; DEALLOCATE ALL; $forced; EXPLAIN (COSTS OFF) $query{explain}");
	@answer{qw(got error)} = $session->do_or_cancel($query{sql}, 90);
	($answer{shown}) = $session->do("ROLLBACK TO s; $forced; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query{explain}", 120) if $query{shown};
	$session->do('ROLLBACK; DEALLOCATE ALL');
	$answer{printed} = "$query{settings}; $forced;\n$query{sql};\n" . $answer{plan} =~ s/^/-- /gmr . "\n" . differences("$answer{got}$answer{error}", "$answer{want}$answer{want_error}");
	return \%answer;
}

# -------------------------------------------------------------------- jobs

# A job's queries; returns its counts.
sub job
{
	my ($self, $compare, $job, $number, $changing, $started) = @_;
	my %count = (compared => 0, wrong => [], invalid => []);
	my $session;
	srand($self->{seed} + 7919 * ($job + 1) + ($changing ? 1 : 0));
	for my $q (1 .. $number)
	{
		last if time - $started > $self->{seconds} / 2 || @{ $count{wrong} } > 20;
		next if eval { $session //= $self->{server}->session; $compare->($session, \%count, $changing, $job); 1 };
		push @{ $count{wrong} }, "job $job, query $q: $@";
		undef $session;
	}
	return \%count;
}

sub half
{
	my ($self, $compare, $number, $changing) = @_;
	my $jobs = $self->{jobs};
	my $started = time;
	my @counts = GpuHash::Jobs::run($jobs, sub { my ($job) = @_; return $self->job($compare, $job, int(($number + $job) / $jobs), $changing, $started) });
	$counts[$_] //= { wrong => ["job $_ ended"], invalid => [] } for 0 .. $jobs - 1;
	return @counts;
}

# The session that changes tables, until the file is there.  Returns its process.
sub start_changes
{
	my ($self, $stop) = @_;
	my $pid = fork // die "fork: $!";
	return $pid if $pid != 0;
	srand($self->{seed} + 1);
	eval {
		my $session = $self->{server}->session;
		my $changes = 0;
		while (!-e $stop)
		{
			my (undef, $error) = $session->do(GpuHash::RandomTables::change());
			die "a change failed: $error" if $error ne '';
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

# All queries.  What the jobs counted, added up: numbers, lists, and hashes of numbers; and changes, the other session's.
sub all
{
	my ($self, $compare) = @_;
	my $started = time;
	my $first = int($self->{queries} / 2);
	my @counts = $self->half($compare, $first, 0);
	my $stop = "$self->{server}{dir}/stop";
	my $pid = $self->start_changes($stop);
	push @counts, $self->half($compare, $self->{queries} - $first, 1);
	open my $file, '>', $stop or die $!;
	close $file;
	waitpid $pid, 0;
	open $file, '<', "$stop.count" or die 'the session that changes the tables has failed';
	my %sum = (changes => scalar(<$file>), wrong => [], invalid => []);
	close $file;
	unlink $stop, "$stop.count";
	for my $count (@counts)
	{
		for my $what (keys %$count)
		{
			my $value = $count->{$what};
			if (ref $value eq 'ARRAY') { push @{ $sum{$what} }, @$value }
			elsif (ref $value eq 'HASH') { $sum{$what}{$_} += $value->{$_} for keys %$value }
			else { $sum{$what} += $value }
		}
	}
	$sum{seconds} = time - $started;
	return \%sum;
}

# What goes for every run.
sub check
{
	my ($self, $sum) = @_;
	diag("the tables of these queries:\n$self->{schema}") if @{ $sum->{wrong} };
	is(join("\n", @{ $sum->{wrong} }), '', "no difference (seed $self->{seed})");
	is(join("\n", @{ $sum->{invalid} }), '', 'PostgreSQL has an answer to all');
	cmp_ok($sum->{changes}, '>', 0, 'tables were changed');
	cmp_ok($sum->{slow} // 0, '<=', 1 + 0.0005 * $sum->{compared}, 'next to no forced plan took longer than a minute');
	like($self->{service}->settle, $GpuHash::Service::CLEAN, 'all was given back') if $self->{service};
	unlike($self->{server}->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
	return;
}

1;
