# Random queries for rows of tables and of joins, offloaded and not, give the same rows.
#
#	GPUHASH_RANDOM_QUERIES		how many queries (600); others of GpuHash::RandomRun
#	GPUHASH_WITH				what does the work (all): device: the service's, the stand-in for it (test/fault) unless
#								GPUHASH_STAND_IN is "no"; devices: two of these; session: one that the session itself opens, the stand-in; cpu
#
# Rows are compared as text: as bags, or in their order where the query tells it.  An error must be one
# both ways, but PostgreSQL's may stay away: of conditions that cost the same, those that cannot
# fail come first.  Both answers are of one snapshot.  A query with another answer is printed with the
# settings; the tables are printed once.
use GpuHash::Test 'module';
use GpuHash::Fault;
use GpuHash::RandomOuter;
use GpuHash::RandomPairs;
use GpuHash::RandomRows;
use GpuHash::RandomRun;
use GpuHash::RandomTables;
use GpuHash::Service;

# ------------------------------------------------------------- comparison

sub sorted { my ($rows) = @_; return join("\n", sort split /\n/, $rows, -1) }

# Whether there are `most` of these rows, or all where these are fewer.
sub part
{
	my ($got, $want, $most) = @_;
	my (@got, %left) = split /\n/, $got, -1;
	my @want = split /\n/, $want, -1;
	$left{$_}++ for @want;
	for (@got) { return 0 if !$left{$_}-- }
	return @got == ($most < @want ? $most : @want);
}

# Whether a cursor's steps gave what they should, of the rows that came last.
sub walk
{
	my ($got, $want, $steps) = @_;
	my @got = split /^step\n/m, "$got\n", -1;
	my $all = pop @got;
	chomp $all;
	return 0 if sorted($all) ne sorted($want);
	my @rows = split /\n/, $all, -1;
	my @should = GpuHash::RandomRows::steps_of($steps, @rows);
	return 0 if @should != @got;
	return !grep { $should[$_] ne $got[$_] } 0 .. $#got;
}

sub same
{
	my ($query, $got, $want) = @_;
	my $how = $query->{compare};
	return $how eq 'exact' ? $got eq $want : $how eq 'part' ? part($got, $want, $query->{most}) : $how eq 'walk' ? walk($got, $want, $query->{steps}) : sorted($got) eq sorted($want);
}

# One query both ways; adds to the job's counts.
sub compare
{
	my ($run, $session, $count, $changing, $job) = @_;
	my $query = GpuHash::RandomRows::query(changing => $changing, job => $job);
	my $workers = rand() < 0.33 ? 1 + int(rand(3)) : 0;
	my $settings = GpuHash::RandomTables::settings() . '; SET parallel_leader_participation = ' . (rand() < 0.8 ? 'on' : 'off') . '; SET gpuhash.enable_aggregate = ' . (rand() < 0.5 ? 'on' : 'off');
	$settings .= rand() < 0.25 ? "; SET work_mem = '64kB'; SET hash_mem_multiplier = 1" : "; SET work_mem = '4MB'; SET hash_mem_multiplier = 2";
	my $shown = $run->shown;
	my $answer = GpuHash::RandomRun::both_ways($session, %$query, settings => $settings, forced => "SET max_parallel_workers_per_gather = $workers", shown => $shown);
	my ($got, $error, $want, $want_error, $plan) = @$answer{qw(got error want want_error plan)};
	my $right = $error ne '' ? $want_error ne '' : $want_error ne '' || same($query, $got, $want);
	my $slow = GpuHash::RandomRun::too_slow($answer);
	push @{ $count->{wrong} }, "-- $query->{kind}\n$answer->{printed}" if !$right && !$slow;
	$count->{slow} += $slow;
	# mistakes of this test's, not differences: all but data exceptions
	push @{ $count->{invalid} }, "-- $query->{kind}\n$answer->{printed}-- $want_error" if $want_error ne '' && ($query->{kind} ne 'scan' || GpuHash::RandomRun::sqlstate($want_error) !~ /^22|^0A/);
	my $offloaded = $plan =~ /GpuHashRows/;
	$count->{compared}++;
	$count->{errors}++ if $want_error ne '';
	$count->{fewer_errors}++ if $want_error ne '' && $error eq '';
	$count->{offloaded}++ if $offloaded;
	$count->{joins}++ if $plan =~ /GpuHashRows.*\n.*GpuHashJoin/;
	$count->{parallel}++ if $plan =~ /Parallel Custom Scan \(GpuHashRows/;
	$count->{rows} += () = $want =~ /^/mg;
	$count->{kinds}{ $query->{kind} }++;
	$count->{offloaded_kinds}{ $query->{kind} }++ if $offloaded;
	$count->{scans}++ if $answer->{shown} =~ /GpuHashScan/;
	$count->{device_scans}++ if $answer->{shown} =~ /GpuHashScan(?:(?!->).)*\bEngine: cuda/s;
	$count->{held}++ if $query->{held};
	$count->{offloaded_held}++ if $query->{held} && $offloaded;
	$count->{fetched}++ if $query->{fetched};
	$count->{offloaded_fetched}++ if $query->{fetched} && $offloaded;
	$count->{outer_joins}++ if $plan =~ /GpuHashJoin(?:(?!->).)*Join Type: (?:Right|Full)$/ms;
	$count->{outer_rows}++ if GpuHash::RandomOuter::is_read($plan, 'GpuHashRows');
	$count->{bushy}++ if $plan =~ /GpuHashRows/ && GpuHash::RandomPairs::is_bushy($plan);
	$count->{unnested}++ if GpuHash::RandomPairs::is_unnested($answer->{plan});
	$count->{coded}++ if $plan =~ /GpuHashRows/ && GpuHash::RandomPairs::is_coded($plan);
	$count->{pairs}++ if $plan =~ /GpuHashRows/ && GpuHash::RandomPairs::is_read($plan);
	$count->{divided}++ if GpuHash::RandomRun::is_divided($answer->{shown});
	if ($answer->{shown} =~ /GpuHashRows/)
	{
		$count->{shown}++;
		$count->{first}++ if $answer->{shown} =~ /Rows Left on Device: [1-9]/;
		$count->{by_device}++ if $answer->{shown} =~ /GpuHashRows.*\bEngine: cuda/s && $answer->{shown} !~ /Fallback Reason/;
	}
	return;
}

# ------------------------------------------------------------------ engines

sub run
{
	my ($name, $queries, %options) = @_;
	note("with $name");
	my $run = GpuHash::RandomRun->new(queries => $queries);
	$run->start(%options);
	$run->{server}->query(GpuHash::RandomRows::prepare() . join '', map { GpuHash::RandomTables::own($_) } 0 .. $run->{jobs} - 1);
	my $sum = $run->all(sub { return compare($run, @_) });
	$sum->{$_} //= 0 for qw(compared errors fewer_errors offloaded held offloaded_held fetched offloaded_fetched joins outer_joins outer_rows pairs coded bushy unnested parallel rows shown first by_device scans device_scans divided);
	my $wrong = @{ $sum->{wrong} };
	note(sprintf '%d right, %d wrong: queries compared with %s, seed %d, %d jobs; %d offloaded, %d of them in parallel, %d of joins; %d with groups in place of subqueries; %d errors, %d only without; %d rows in all, %d changes of another session, %.0f s',
		$sum->{compared} - $wrong, $wrong, $name, $run->{seed}, $run->{jobs}, @$sum{qw(offloaded parallel joins unnested errors fewer_errors rows changes seconds)});
	note(join ', ', map { "$_ " . ($sum->{offloaded_kinds}{$_} // 0) . " of $sum->{kinds}{$_}" } sort keys %{ $sum->{kinds} });
	note("of what a device can do: $sum->{offloaded_held} of $sum->{held}; with other columns: $sum->{offloaded_fetched} of $sum->{fetched}; $sum->{by_device} of $sum->{shown} were done by the device to their end, of $sum->{first} of which rows stayed there; scans of $sum->{device_scans} of $sum->{scans}; of right and full joins, $sum->{outer_rows} of $sum->{outer_joins}; $sum->{pairs} with further conditions, $sum->{bushy} with joins inside") if $name ne 'cpu';
	$run->check($sum);
	cmp_ok($sum->{unnested}, '>', 0, 'some had groups in place of subqueries') if $sum->{compared} >= 300;
	cmp_ok($sum->{errors}, '<', 0.2 * $sum->{compared}, 'most had no error');
	cmp_ok($sum->{fewer_errors}, '<=', 2 + 0.02 * $sum->{compared}, 'few had none where PostgreSQL has one');
	cmp_ok($sum->{divided}, '>', 0, 'some were done by several devices') if $name eq 'devices';
	return if $name ne 'device';
	cmp_ok($sum->{outer_joins}, '>', 0.05 * $sum->{compared}, 'some had right or full joins');
	cmp_ok($sum->{offloaded_held}, '>', 0.25 * $sum->{held}, 'many of what a device can do were offloaded');
	cmp_ok($sum->{offloaded_fetched}, '>', 0.2 * $sum->{fetched}, 'and of what else it can do but for the types of some columns');
	cmp_ok($sum->{parallel}, '>', 0.01 * $sum->{compared}, 'some of them in parallel');
	cmp_ok($sum->{by_device}, '>', 0.25 * $sum->{shown}, 'the device did many of them to their end');
	cmp_ok($sum->{device_scans}, '>', 0.25 * $sum->{scans}, 'and of those with a GpuHashScan');
	# of a kind whose queries are few it may be none by chance
	cmp_ok(scalar(grep { $_ > 0 } values %{ $sum->{offloaded_kinds} }), '>=', 8, 'of many kinds') if $sum->{compared} >= 300;
	cmp_ok($sum->{pairs}, '>', 0.01 * $sum->{compared}, 'and some of joins with further conditions') if $sum->{compared} >= 300;
	cmp_ok($sum->{coded}, '>', 0.01 * $sum->{compared}, 'and some of joins by keys that are no whole numbers') if $sum->{compared} >= 300;
	cmp_ok($sum->{outer_rows}, '>', 0, 'and some of right and full joins') if $sum->{compared} >= 300;
	return;
}

my %WEIGHT = (device => 14, devices => 5, session => 3, cpu => 3);
my $parts = $ENV{GPUHASH_WITH} // 'device devices session cpu';
my $all = 0;
$all += $WEIGHT{$_} for split ' ', $parts;
my $queries = $ENV{GPUHASH_RANDOM_QUERIES} || 600;
delete $ENV{GPUHASH_RANDOM_QUERIES};
my %queries = map { $_ => int($queries * $WEIGHT{$_} / $all) } split ' ', $parts;
run('device', $queries{device}, device => 1) if $queries{device};
run('devices', $queries{devices}, device => 1, devices => 2) if $queries{devices};
if ($queries{session})
{
	my $fault = ($ENV{GPUHASH_STAND_IN} || '') eq 'no' ? undef : GpuHash::Fault->new;
	SKIP:
	{
		skip $fault->why_not, 1 if $fault && $fault->why_not;
		run('session', $queries{session}, conf => ["gpuhash.engine = 'cuda'"]);
	}
}
run('cpu', $queries{cpu}, conf => ["gpuhash.engine = 'cpu'"]) if $queries{cpu};
done_testing();
