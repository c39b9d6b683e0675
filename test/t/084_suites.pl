# Queries in the shapes of other benchmarks (test/bench/suites): a star schema, many-way joins over skewed data, three sales
# channels, one operation each.  Over small data they give PostgreSQL's rows by the CPU engine and by the device of the service, which is
# the stand-in for it (test/fault) unless GPUHASH_STAND_IN is "no", at the planner's choice and where it is made to like
# gpuhash.
use GpuHash::Test 'module';
use GpuHash::Service;
use File::Basename;

my $suites = dirname(__FILE__) . '/../bench/suites';
my $service = GpuHash::Service->new(conf => ['gpuhash.force_offload = off', 'shared_buffers = 256MB', 'jit = off']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');

# Name and text of each query.
sub queries_of
{
	my ($suite) = @_;
	open(my $file, '<', "$suites/${suite}_queries.sql") or die $!;
	my @queries;
	while (<$file>)
	{
		if (/^-- (\w+)$/) { push @queries, [$1, ''] }
		elsif (@queries && !/^--/) { $queries[-1][1] .= $_ }
	}
	s/;\s*$// for map { $_->[1] } @queries;
	return @queries;
}

sub read_all
{
	my ($file) = @_;
	open(my $handle, '<', "$suites/$file") or die $!;
	local $/;
	return scalar <$handle>;
}

# What a query returns, or its error; rows that it does not order are in some order.
sub answer
{
	my ($session, $query) = @_;
	my ($out, $error) = $session->do($query);
	return join("\n", sort split /\n/, $out) . $error;
}

my @WAYS = (
	['the CPU engine', "SET gpuhash.engine = 'cpu'"],
	['the CPU engine, whatever it costs', "SET gpuhash.engine = 'cpu'; SET gpuhash.force_offload = on"],
	['the device', 'SET gpuhash.device_start_cost = 0; SET gpuhash.device_page_cost = 0.05; SET gpuhash.device_bus_cost = 0'],
	['the device, whatever it costs', 'SET gpuhash.force_offload = on'],
	['the device, by three processes', 'SET gpuhash.force_offload = on; SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0']);

for (['star', 0.01], ['films', 0.003], ['channels', 0.006], ['shapes', 0.0025])
{
	my ($suite, $scale) = @$_;
	my $tables = read_all('draws.sql') . read_all("${suite}_tables.sql");
	$tables =~ s/:scale/$scale/g;
	$server->query("CREATE SCHEMA $suite; SET search_path = $suite; $tables");
	my $session = $server->session;
	$session->do("SET search_path = $suite");
	my @queries = queries_of($suite);
	my %want;
	$session->do('SET gpuhash.enabled = off');
	$want{ $_->[0] } = answer($session, $_->[1]) for @queries;
	is_deeply([grep { $want{$_} =~ /ERROR/ } sort keys %want], [], "$suite: PostgreSQL answers");
	note(join ' ', 'without rows:', grep { $want{$_} eq '' } sort keys %want);
	for (@WAYS)
	{
		my ($way, $settings) = @$_;
		my @differs;
		my $nodes = 0;
		$session->do("RESET ALL; SET search_path = $suite; SET client_min_messages = warning; $settings");
		for (@queries)
		{
			my ($name, $query) = @$_;
			$nodes += () = ($session->do("EXPLAIN $query"))[0] =~ /GpuHash/g if $way =~ /whatever/;
			push @differs, $name if answer($session, $query) ne $want{$name};
		}
		is_deeply(\@differs, [], "$suite: $way") or diag("with $settings");
		ok($nodes > 0, "$suite: there are nodes of gpuhash") if $way =~ /whatever/;
	}
	$session->close;
}
$server->stop;
done_testing();
