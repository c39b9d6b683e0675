# Random scans with conditions, offloaded and not, give the same rows in the same order.
#
#	GPUHASH_SEED				repeats a run, with the same number of queries
#	GPUHASH_RANDOM_QUERIES		how many queries (500)
#
# Rows are compared as text.  Of a parallel scan their order may differ.  An error of the offloaded scan must be
# one of PostgreSQL's, too, and have its SQLSTATE; PostgreSQL's may stay away, since of conditions that
# cost the same, those that cannot fail come first: how often is counted, and bounded.
#
# During the second half of the queries another session changes some of the tables; both answers are
# of one snapshot.
use strict;
use warnings;
use Test::More;
use POSIX ();
use Time::HiRes qw(time sleep);
use GpuHash::RandomAggregate;
use GpuHash::Server;

if (my $reason = GpuHash::Server::why_not()) { plan skip_all => $reason }

my $seed = $ENV{GPUHASH_SEED} || 1 + int(rand(1 << 31));
my $queries = $ENV{GPUHASH_RANDOM_QUERIES} || 500;
note("seed $seed, $queries queries");

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", 'max_parallel_workers_per_gather = 0', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'jit = off', 'statement_timeout = 60s', 'max_stack_depth = 6MB']);

srand($seed);
my $schema = GpuHash::RandomAggregate::schema();
$server->query($schema);

sub sqlstate { my ($message) = @_; return $message =~ /ERROR:\s+(\w{5}):/ ? $1 : '' }
sub sorted { my ($rows) = @_; return join("\n", sort split /\n/, $rows) }

my (%count, @wrong);

sub compare
{
	my ($session, $changing) = @_;
	my $workers = rand() < 0.2 ? 2 : 0;
	my $query = GpuHash::RandomAggregate::scan(changing => $changing, parallel => $workers > 0);
	my $settings = 'SET plan_cache_mode = ' . (rand() < 0.5 ? 'auto' : 'force_generic_plan');
	my $forced = "SET max_parallel_workers_per_gather = $workers; SET gpuhash.enabled = on; SET gpuhash.force_offload = on";
	$session->do("$settings; SET max_parallel_workers_per_gather = 0; SET gpuhash.enabled = off; BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT s");
	my ($want, $want_error) = $session->do($query->{sql}, 120);
	$session->do("ROLLBACK TO s; DEALLOCATE ALL; $forced");
	my ($plan) = $session->do("EXPLAIN (COSTS OFF) $query->{explain}");
	my ($got, $error) = $session->do($query->{sql}, 120);
	$session->do('ROLLBACK; DEALLOCATE ALL');
	my $same = $error ne '' ? sqlstate($error) eq sqlstate($want_error) :
		$want_error ne '' ? 1 : $workers ? sorted($got) eq sorted($want) : $got eq $want;
	push @wrong, "$settings; $forced;\n$query->{sql};\n-- $error\n-- $want_error" if !$same;
	$count{compared}++;
	$count{errors}++ if $want_error ne '';
	$count{fewer_errors}++ if $want_error ne '' && $error eq '';
	$count{offloaded}++ if $plan =~ /GpuHashScan/;
	$count{parallel}++ if $plan =~ /Parallel Custom Scan \(GpuHashScan/;
	$count{rows} += () = $want =~ /^/mg;
	return;
}

# A session that changes tables until the file is there; returns its process.
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

%count = map { $_ => 0 } qw(compared errors fewer_errors offloaded parallel rows);
my $started = time;
my $session = $server->session;
for (1 .. $queries / 2) { compare($session, 0) }
my $stop = "$server->{dir}/stop";
my $pid = start_changes($stop);
for (1 .. $queries / 2) { compare($session, 1) }
open my $file, '>', $stop or die $!;
close $file;
waitpid $pid, 0;
open $file, '<', "$stop.count" or die 'the session that changes the tables has failed';
my $changes = <$file>;
close $file;
$session->close;

note(sprintf 'seed %d: %s; %d changes of another session, %.0f s', $seed, join(', ', map { "$_ $count{$_}" } sort keys %count), $changes, time - $started);
diag("the tables of these queries:\n$schema") if @wrong;
is(join("\n", @wrong), '', "no difference (seed $seed)");
cmp_ok($count{offloaded}, '>', 0.6 * $count{compared}, 'most queries were offloaded');
cmp_ok($count{parallel}, '>', 0.02 * $count{compared}, 'some of them in parallel');
cmp_ok($count{errors}, '<', 0.6 * $count{compared}, 'many had no error');
cmp_ok($count{fewer_errors}, '<=', 2 + 0.02 * $count{compared}, 'few had none where PostgreSQL has one');
cmp_ok($count{rows}, '>', $count{compared}, 'there were rows');
cmp_ok($changes, '>', 0, 'tables were changed');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
