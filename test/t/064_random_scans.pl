# Random scans with conditions, offloaded and not, give the same rows in the same order.
#
#	GPUHASH_RANDOM_QUERIES		how many queries (500); others of GpuHash::RandomRun
#
# Rows are compared as text.  Of a parallel scan their order may differ.  An error of the offloaded scan must be
# one of PostgreSQL's, too, and have its SQLSTATE; PostgreSQL's may stay away, since of conditions that
# cost the same, those that cannot fail come first: how often is counted, and bounded.
#
# Both answers are of one snapshot.
use GpuHash::Test;
use GpuHash::RandomAggregate;
use GpuHash::RandomRun;

my $run = GpuHash::RandomRun->new(queries => 500);
$run->start;

sub sorted { my ($rows) = @_; return join("\n", sort split /\n/, $rows) }

sub compare
{
	my ($session, $count, $changing) = @_;
	my $workers = rand() < 0.2 ? 2 : 0;
	my $query = GpuHash::RandomAggregate::scan(changing => $changing, parallel => $workers > 0);
	my $answer = GpuHash::RandomRun::both_ways($session, %$query, settings => 'SET plan_cache_mode = ' . (rand() < 0.5 ? 'auto' : 'force_generic_plan'),
		forced => "SET max_parallel_workers_per_gather = $workers");
	my ($got, $error, $want, $want_error) = @$answer{qw(got error want want_error)};
	my $same = $error ne '' ? GpuHash::RandomRun::sqlstate($error) eq GpuHash::RandomRun::sqlstate($want_error) :
		$want_error ne '' ? 1 : $workers ? sorted($got) eq sorted($want) : $got eq $want;
	push @{ $count->{wrong} }, $answer->{printed} if !$same;
	$count->{compared}++;
	$count->{errors}++ if $want_error ne '';
	$count->{fewer_errors}++ if $want_error ne '' && $error eq '';
	$count->{offloaded}++ if $answer->{plan} =~ /GpuHashScan/;
	$count->{parallel}++ if $answer->{plan} =~ /Parallel Custom Scan \(GpuHashScan/;
	$count->{rows} += () = $want =~ /^/mg;
	return;
}

my $sum = $run->all(\&compare);
$sum->{$_} //= 0 for qw(compared errors fewer_errors offloaded parallel rows);
note(sprintf 'seed %d: %s; %d changes of another session, %.0f s', $run->{seed}, join(', ', map { "$_ $sum->{$_}" } qw(compared errors fewer_errors offloaded parallel rows)), $sum->{changes}, $sum->{seconds});
$run->check($sum);
cmp_ok($sum->{offloaded}, '>', 0.6 * $sum->{compared}, 'most queries were offloaded');
cmp_ok($sum->{parallel}, '>', 0.02 * $sum->{compared}, 'some of them in parallel');
cmp_ok($sum->{errors}, '<', 0.6 * $sum->{compared}, 'many had no error');
cmp_ok($sum->{fewer_errors}, '<=', 2 + 0.02 * $sum->{compared}, 'few had none where PostgreSQL has one');
cmp_ok($sum->{rows}, '>', $sum->{compared}, 'there were rows');
done_testing();
