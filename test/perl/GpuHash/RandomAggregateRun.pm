# GpuHash::RandomAggregateRun: random aggregations, offloaded and not, give the same groups.
#
#	GpuHash::RandomAggregateRun::test(queries => 500, device => 1, devices => 2);
#				device: with the service and engine = cuda; devices: that each query's pages are divided among
#
# On a device floats are added in an order of their own.  How often it has done all of a query's
# aggregates is seen from some, which are run once more under EXPLAIN ANALYZE.
#
# Counts, integers, numerics, texts and all else are compared as text.  So are floats where
# PostgreSQL adds them in the same order (GpuHash::RandomAggregate tells); elsewhere they may differ
# by 1e-9 of themselves.  An error must be one both ways; which of several comes first may differ, so
# where the SQLSTATE is another one, it is counted.  So is where a GpuHashScan leaves a row out before the
# condition that fails is asked about it: it has an order of its own among conditions that cost the same.
#
# Both answers are of one snapshot.  A query with another answer is printed with the settings; the
# tables are printed once.
package GpuHash::RandomAggregateRun;

use GpuHash::Test;
use GpuHash::RandomAggregate;
use GpuHash::RandomExpression 'one_of';
use GpuHash::RandomOuter;
use GpuHash::RandomPairs;
use GpuHash::RandomRun;
use GpuHash::RandomTables;

my ($run, $device);

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

# Whether all of a plan's aggregates were done by the device to their end.
sub done_by_device
{
	my ($plan) = @_;
	my @engines = map { /GpuHashAggregate.*\bEngine: (\w+)/s ? $1 : () } split /^ *-> +/m, $plan;
	return @engines && $plan !~ /Fallback Reason/ && !grep { $_ ne 'cuda' } @engines;
}

# Whether a device grouped rows by several arguments with DISTINCT.
sub has_several_by_device
{
	my ($plan) = @_;
	return scalar grep { /Distinct Key: .*, / && /\bEngine: cuda/ } split /^ *-> +/m, $plan;
}

# One query both ways; adds to the job's counts.
sub compare
{
	my ($session, $count, $changing) = @_;
	my $workers = rand() < 0.33 ? 1 + int(rand(3)) : 0;
	my $small = rand() < 0.25;
	my $settings = GpuHash::RandomTables::settings();
	$settings .= '; SET parallel_leader_participation = ' . (rand() < 0.8 ? 'on' : 'off');
	my $query = GpuHash::RandomAggregate::query(changing => $changing, in_order => !$workers && !$small && !$device, outer => $device ? 0.25 : 0.2);
	# a hash aggregation takes the rows as they come
	$settings .= '; SET enable_hashagg = on; SET enable_sort = ' . ($query->{in_order} ? 'off' : 'on');
	$settings .= $small ? "; SET work_mem = " . one_of("'64kB'", "'320kB'") . "; SET hash_mem_multiplier = 1" : "; SET work_mem = '4MB'; SET hash_mem_multiplier = 2";
	my $answer = GpuHash::RandomRun::both_ways($session, %$query, settings => $settings, forced => "SET max_parallel_workers_per_gather = $workers", shown => ($device && ($run->{queries} <= 2000 || $run->shown)) || $query->{limited});
	my ($error, $want_error) = @$answer{qw(error want_error)};
	my $fewer_errors = $want_error ne '' && $error eq '' && $answer->{plan} =~ /GpuHashScan/;
	my $same = $error eq '' && $want_error eq '' ? same(@$answer{qw(got want)}, $query->{in_order}) : $error ne '' && $want_error ne '';
	my $slow = GpuHash::RandomRun::too_slow($answer);
	push @{ $count->{wrong} }, $answer->{printed} if !$same && !$fewer_errors && !$slow;
	$count->{slow} += $slow;
	# mistakes of this test's, not differences: all but data exceptions, and integers from NaN
	push @{ $count->{invalid} }, $answer->{printed} if $want_error ne '' && GpuHash::RandomRun::sqlstate($want_error) !~ /^22|^0A/;
	$count->{compared}++;
	$count->{errors}++ if $want_error ne '';
	$count->{other_errors}++ if $want_error ne '' && $error ne '' && GpuHash::RandomRun::sqlstate($error) ne GpuHash::RandomRun::sqlstate($want_error);
	$count->{fewer_errors}++ if $fewer_errors;
	$count->{offloaded}++ if $answer->{plan} =~ /GpuHashAggregate/;
	$count->{parallel}++ if $answer->{plan} =~ /Parallel Custom Scan \(GpuHashAggregate/;
	$count->{joins}++ if $answer->{plan} =~ /GpuHashAggregate.*Join/s;
	$count->{outer_joins}++ if GpuHash::RandomOuter::is_read($answer->{plan});
	$count->{pairs}++ if GpuHash::RandomPairs::is_read($answer->{plan});
	$count->{coded}++ if GpuHash::RandomPairs::is_coded($answer->{plan});
	$count->{bushy}++ if GpuHash::RandomPairs::is_bushy($answer->{plan});
	$count->{bushy_by_device}++ if GpuHash::RandomPairs::is_bushy($answer->{shown}) && done_by_device($answer->{shown});
	$count->{distinct}++ if $answer->{plan} =~ /Distinct Key/;
	$count->{several_distinct}++ if $query->{several} && $answer->{plan} =~ /Distinct Key: .*, /;
	$count->{several_by_device}++ if $query->{several} && has_several_by_device($answer->{shown});
	$count->{select_distinct}++ if $query->{distinct} && $answer->{plan} =~ /GpuHashAggregate/;
	$count->{sets}++ if $answer->{plan} =~ /Grouping Sets: /;
	$count->{sets_by_device}++ if $answer->{shown} =~ /Grouping Sets: / && done_by_device($answer->{shown});
	$count->{limited}++ if $query->{limited};
	$count->{first}++ if $answer->{shown} =~ /, First \(rows=/;
	$count->{unnested}++ if GpuHash::RandomPairs::is_unnested($answer->{plan});
	$count->{small}++ if $small;
	$count->{shown}++ if $answer->{shown} =~ /GpuHashAggregate/ && !$query->{outer};
	$count->{coded_by_device}++ if GpuHash::RandomPairs::is_coded($answer->{shown}) && done_by_device($answer->{shown});
	$count->{pairs_by_device}++ if GpuHash::RandomPairs::is_read($answer->{shown}) && done_by_device($answer->{shown});
	$count->{by_device}++ if done_by_device($answer->{shown}) && !$query->{outer};
	$count->{outer_by_device}++ if GpuHash::RandomOuter::is_read($answer->{shown}) && done_by_device($answer->{shown});
	$count->{divided}++ if GpuHash::RandomRun::is_divided($answer->{shown});
	$count->{in_order}++ if $query->{in_order};
	$count->{rows} += () = $answer->{want} =~ /^/mg;
	return;
}

sub test
{
	my (%options) = @_;
	$device = $options{device};
	$run = GpuHash::RandomRun->new(queries => $options{queries});
	$run->start(device => $device, devices => $options{devices});
	my $sum = $run->all(\&compare);
	$sum->{$_} //= 0 for qw(compared errors other_errors fewer_errors offloaded parallel joins outer_joins pairs coded bushy distinct several_distinct select_distinct sets sets_by_device several_by_device unnested small in_order rows shown by_device outer_by_device pairs_by_device coded_by_device bushy_by_device divided limited first);
	my $wrong = @{ $sum->{wrong} };
	note(sprintf '%d right, %d wrong: queries compared, seed %d, %d jobs; %d offloaded, %d of them in parallel, %d of joins, %d whose last is a right or full one, %d with further conditions, %d with joins inside, %d with DISTINCT in aggregates, %d of these with several arguments, %d with SELECT DISTINCT, %d with grouping sets, %d with groups in place of subqueries, %d of which the first were wanted, and of %d others left out; %d with little memory, %d with floats in order; %d errors, %d of them others, %d of them none; %d rows in all, %d changes of another session, %.0f s',
		$sum->{compared} - $wrong, $wrong, $run->{seed}, $run->{jobs}, @$sum{qw(offloaded parallel joins outer_joins pairs bushy distinct several_distinct select_distinct sets unnested limited first small in_order errors other_errors fewer_errors rows changes seconds)});
	note("$sum->{by_device} of $sum->{shown} were done by the device to their end, $sum->{outer_by_device} of right and full joins, $sum->{pairs_by_device} of joins with further conditions, $sum->{sets_by_device} with grouping sets, and $sum->{bushy_by_device} with joins inside; $sum->{several_by_device} have several arguments with DISTINCT there") if $device;
	$run->check($sum);
	note("$sum->{divided} by several devices") if $options{devices};
	cmp_ok($sum->{divided}, '>', 0.1 * $sum->{shown}, 'some were done by several devices') if $options{devices};
	cmp_ok($sum->{offloaded}, '>', 0.7 * $sum->{compared}, 'most queries were offloaded');
	cmp_ok($sum->{parallel}, '>', 0.02 * $sum->{compared}, 'some of them in parallel');
	cmp_ok($sum->{joins}, '>', 0.1 * $sum->{compared}, 'some of them of joins');
	cmp_ok($sum->{outer_joins}, '>', 0.05 * $sum->{compared}, 'some of right and full joins');
	cmp_ok($sum->{pairs}, '>', 0.03 * $sum->{compared}, 'some of joins with further conditions');
	cmp_ok($sum->{coded}, '>', 0.03 * $sum->{compared}, 'some of joins by keys that are no whole numbers');
	cmp_ok($sum->{bushy}, '>', 0.01 * $sum->{compared}, 'some of joins whose inner sides are joins');
	cmp_ok($sum->{distinct}, '>', 0.03 * $sum->{compared}, 'some with DISTINCT in aggregates');
	cmp_ok($sum->{several_distinct}, '>', 0, 'some of these with several arguments') if $sum->{compared} >= 300;
	cmp_ok($sum->{select_distinct}, '>', 0.03 * $sum->{compared}, 'some with SELECT DISTINCT');
	cmp_ok($sum->{sets}, '>', 0.02 * $sum->{compared}, 'some with grouping sets');
	cmp_ok($sum->{sets_by_device}, '>', 0, 'some of these by the device') if $device && $sum->{compared} >= 500;
	cmp_ok($sum->{several_by_device}, '>', 0, 'and of those of several arguments with DISTINCT') if $device && $sum->{compared} >= 500;
	cmp_ok($sum->{unnested}, '>', 0, 'and some had groups in place of subqueries') if $sum->{compared} >= 300;
	cmp_ok($sum->{first}, '>', 0, 'of some the groups that were not among the first were left out') if $sum->{limited} >= 60;
	cmp_ok($sum->{errors}, '<', 0.4 * $sum->{compared}, 'most had no error');
	cmp_ok($sum->{other_errors}, '<=', 2 + 0.02 * $sum->{compared}, 'very few had another error');
	cmp_ok($sum->{fewer_errors}, '<=', 2 + 0.001 * $sum->{compared}, 'next to none had no error where PostgreSQL has one');
	cmp_ok($sum->{by_device}, '>', 0.25 * $sum->{shown}, 'the device did many of them to their end') if $device;
	cmp_ok($sum->{outer_by_device}, '>', 0, 'some of right and full joins, too') if $device && $sum->{compared} >= 500;
	cmp_ok($sum->{pairs_by_device}, '>', 0, 'and of those with further conditions') if $device && $sum->{compared} >= 500;
	cmp_ok($sum->{coded_by_device}, '>', 0, 'and of those by other keys than whole numbers') if $device && $sum->{compared} >= 500;
	cmp_ok($sum->{bushy_by_device}, '>', 0, 'and of those whose inner sides are joins') if $device && $sum->{compared} >= 500;
	return;
}

1;
