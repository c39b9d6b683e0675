# Random joins, offloaded and not, give the same rows.
#
#	GPUHASH_SEED				repeats a run, with the same number of queries and jobs
#	GPUHASH_RANDOM_QUERIES		how many queries (500)
#	GPUHASH_RANDOM_JOBS			in how many sessions at a time (1)
#	GPUHASH_RANDOM_SECONDS		after which no more are begun (no limit)
#	GPUHASH_RANDOM_SERVICE		yes: the library is preloaded, GPUs have their workers
#	GPUHASH_RANDOM_SETTINGS		SQL that is run before every query
#	GPUHASH_ENGINE				engine of the joins
#
# A query with another answer is printed with the settings and the tables' SQL, to be run
# again in any server.
use GpuHash::Test;
use Time::HiRes 'time';
use GpuHash::Jobs;
use GpuHash::RandomQuery;

my $seed = seed();
my $queries = $ENV{GPUHASH_RANDOM_QUERIES} || 500;
my $jobs = $ENV{GPUHASH_RANDOM_JOBS} || 1;
my $seconds = $ENV{GPUHASH_RANDOM_SECONDS} || 1e9;
my $service = ($ENV{GPUHASH_RANDOM_SERVICE} || '') eq 'yes';
note("$queries queries, $jobs jobs");

# What a query may take: PostgreSQL's, before it counts as too large to compare, and a
# forced one, which may be the worse plan.
my ($PLAIN_MS, $FORCED_MS) = (1500, 60000);

my $server = GpuHash::Server->new(conf => [
	($service ? ("shared_preload_libraries = 'gpuhash'", "gpuhash.shared_memory = '512MB'") : "session_preload_libraries = 'gpuhash'"),
	'max_connections = ' . ($jobs + 20), 'max_parallel_workers_per_gather = 0', 'max_worker_processes = ' . ($jobs * 4 + 12),
	'max_parallel_workers = ' . ($jobs * 4 + 4), 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
	'jit = off']);
$server->query('CREATE EXTENSION gpuhash') if $service;
my $icu = ($server->run("CREATE COLLATION icu_is_there (provider = icu, locale = 'und'); DROP COLLATION icu_is_there"))[0] == 0;
note('no text keys that fold case: the server was built without ICU') if !$icu;

srand($seed);
my $schema = GpuHash::RandomQuery::schema(icu => $icu);
$server->query($schema);

# One query both ways; adds to the job's counts.
sub compare
{
	my ($session, $job, $count) = @_;
	my $settings = GpuHash::RandomQuery::settings();
	my $query = GpuHash::RandomQuery::query($job);
	# workers join where it is forced, in a third of the queries
	my $workers = rand() < 0.33 ? 1 + int(rand(3)) : 0;
	$settings .= "; SET parallel_leader_participation = " . (rand() < 0.8 ? 'on' : 'off') if $workers;
	$session->do("$settings; SET max_parallel_workers_per_gather = 0; SET gpuhash.enabled = off; SET statement_timeout = $PLAIN_MS");
	my ($want, $want_error) = $session->do($query->{sql});
	# a product of skewed keys can be too large to compare
	if ($want_error =~ /statement timeout/) { $count->{skipped}++; return 'ROLLBACK; DEALLOCATE ALL' }
	$session->do("SET max_parallel_workers_per_gather = $workers; SET gpuhash.enabled = on; SET gpuhash.force_offload = on; SET statement_timeout = " . ($query->{limited} ? $FORCED_MS / 3 : $FORCED_MS));
	my ($plan) = $session->do('EXPLAIN ' . (rand() < 0.5 ? 'VERBOSE ' : '') . $query->{explain});
	$count->{offloaded}++ if $plan =~ /GpuHashJoin/;
	$count->{parallel}++ if $plan =~ /Parallel Custom Scan \(GpuHashJoin/;
	$count->{types}{$_}++ for $plan =~ /Join Type: (\w+(?: \w+)?)/g;
	if ($query->{explain} =~ /^\s*SELECT/i && !$query->{limited} && rand() < 0.2)
	{
		my ($ran) = $session->do("EXPLAIN (ANALYZE, VERBOSE, TIMING OFF) $query->{explain}", 2 * $FORCED_MS / 1000);
		$count->{carried}++ if $ran =~ /Table Values: columns/;
	}
	my ($got, $error) = $session->do($query->{sql}, 2 * $FORCED_MS / 1000);
	# one with workers may start them anew for each row of a nested loop
	if ($workers && $error =~ /statement timeout/ && $want_error eq '')
	{
		$count->{restarted}++;
		$session->do('ROLLBACK; DEALLOCATE ALL; SET max_parallel_workers_per_gather = 0');
		($got, $error) = $session->do($query->{sql}, 2 * $FORCED_MS / 1000);
	}
	# forced plans have no regard for the LIMIT: where PostgreSQL stops early, they may make
	# a product that is too large; and another may just be the worse plan, by far
	if ($error =~ /statement timeout/ && $want_error eq '')
	{
		$count->{ $query->{limited} ? 'unlimited' : 'slow' }++;
		note("too slow when forced: $settings;\n$query->{sql};");
		return 'ROLLBACK; DEALLOCATE ALL';
	}
	my $printed = "$settings; SET max_parallel_workers_per_gather = $workers; SET gpuhash.force_offload = on;\n$query->{sql};\n-- $got$error\n-- instead of\n-- $want$want_error\n";
	push @{ $count->{wrong} }, $printed if "$got$error" ne "$want$want_error";
	# a mistake of this test's, not a difference
	push @{ $count->{invalid} }, $printed if $want_error =~ /ERROR/ && $want_error !~ /21000/;
	$count->{compared}++;
	$count->{rows} += $1 if $want =~ /^(\d+)/;
	return $want_error ? 'ROLLBACK; DEALLOCATE ALL' : undef;
}

# A job's queries; returns its counts.
sub job
{
	my ($job, $number, $schema) = @_;
	my $start = time;
	my %count = (compared => 0, offloaded => 0, parallel => 0, carried => 0, restarted => 0, slow => 0, skipped => 0, unlimited => 0, rows => 0, types => {}, wrong => [], invalid => []);
	my $session;
	srand($seed + 7919 * ($job + 1));
	my $job_schema = GpuHash::RandomQuery::job_schema($job);
	for my $q (1 .. $number)
	{
		last if time - $start > $seconds || @{ $count{wrong} } > 20;
		my $ok = eval {
			if (!$session)
			{
				$session = $server->session;
				$session->do($job_schema) if $q == 1;
			}
			my $mend = compare($session, $job, \%count);
			$session->do($mend) if $mend;
			1;
		};
		next if $ok;
		push @{ $count{wrong} }, "job $job, query $q: $@";
		undef $session;
	}
	$count{job_schema} = $job_schema if @{ $count{wrong} };
	return \%count;
}

my $started = time;
my @counts = GpuHash::Jobs::run($jobs, sub { my ($job) = @_; return job($job, int(($queries + $job) / $jobs)) });
$counts[$_] //= { wrong => ["job $_ ended"], invalid => [], types => {} } for 0 .. $jobs - 1;

my (%sum, %types);
for my $count (@counts)
{
	$sum{$_} += $count->{$_} // 0 for qw(compared offloaded parallel carried restarted slow skipped unlimited rows);
	$types{$_} += $count->{types}{$_} for keys %{ $count->{types} };
}
my @wrong = map { ($_->{job_schema} // (), @{ $_->{wrong} }) } @counts;
my @invalid = map { @{ $_->{invalid} } } @counts;
my $differences = 0;
$differences += @{ $_->{wrong} } for @counts;
note(join(', ', map { "$types{$_} $_" } sort keys %types));
note(sprintf '%d right, %d wrong: queries compared, seed %d, %d jobs; %d offloaded, %d of them in parallel, %d again without workers, %d too slow when forced, %d too large to compare, %d too large but for a LIMIT, %d rows in all, %.0f s',
	$sum{compared} - $differences, $differences, $seed, $jobs, @sum{qw(offloaded parallel restarted slow skipped unlimited rows)}, time - $started);

diag("the tables of these queries:\n$schema") if @wrong;
is(join("\n", @wrong), '', "no difference (seed $seed)");
is(join("\n", @invalid), '', 'PostgreSQL has an answer to all');
my $all = $sum{compared} + $sum{skipped} + $sum{unlimited} + $sum{slow};
cmp_ok($sum{offloaded}, '>', 0.5 * $sum{compared}, 'most queries were offloaded');
cmp_ok($sum{parallel}, '>', 0.05 * $sum{compared}, 'some of them in parallel');
cmp_ok($sum{carried}, '>', 0, 'in some the table had columns');
cmp_ok($sum{skipped}, '<', 0.2 * $all, 'few queries were too large to compare');
cmp_ok($sum{restarted}, '<=', 2 + 0.01 * $all, 'very few were too slow for want of workers that stay');
cmp_ok($sum{slow}, '<=', 1 + 0.001 * $all, 'hardly any was too slow when forced');
cmp_ok($sum{unlimited}, '<=', 2 + 0.01 * $all, 'very few were too large but for a LIMIT');
my $version = $server->query('SHOW server_version_num');
for my $type (qw(Inner Left Right Full Semi Anti), $version >= 160000 ? 'Right Anti' : (), $version >= 180000 ? 'Right Semi' : ())
{
	cmp_ok($types{$type} || 0, '>', 0, "some were joins of type $type");
}
SKIP:
{
	skip 'without the service', 1 if !$service;
	my $stat = $server->query(q{SELECT string_agg(format('%s %s', key, value), ', ') FROM gpuhash_stat, json_each_text(row_to_json(gpuhash_stat))});
	note("the service: $stat");
	cmp_ok($server->query('SELECT requests FROM gpuhash_stat'), '>', 0, 'the service had work') if ($ENV{GPUHASH_ENGINE} || '') eq 'cuda';
}
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
done_testing();
