# The calibration script (test/bench/calibrate.sql): it measures joins anywhere, and scans by a GPU
# where there is one; what it prints can be run.  So does gpuhash_calibrate(), which tells what it did not measure.
# And that the costs of a GPU's scans are what the planner goes by.
use GpuHash::Test 'module';
use File::Basename;
use GpuHash::Service;

my $script = dirname(__FILE__) . '/../bench/calibrate.sql';
open my $file, '<', $script or die "$script: $!";
my $sql = do { local $/; <$file> };

# What the script prints with these variables.
sub calibrate
{
	my ($server, $engine) = @_;
	my ($status, $out, $error) = $server->run("\\set engine $engine\n\\set largest 100000\n$sql");
	is($status, 0, "the script ends well, engine $engine") or diag($error);
	return $out;
}

sub settings { my ($out) = @_; return { $out =~ /^ALTER SYSTEM SET (gpuhash\.\w+) = ([\d.]+);$/mg } }

# By setting, what gpuhash_calibrate() says: the numbers, and why.
sub calibrated
{
	my ($server) = @_;
	my @rows = split /\n/, $server->query(q{SELECT concat_ws('|', setting, coalesce(suggested::text, 'none'), coalesce(measured::text, 'none'), why) FROM gpuhash_calibrate()});
	return { map { my ($setting, @rest) = split /\|/, $_, 4; ($setting => \@rest) } @rows };
}

# Which have numbers.
sub measured { my ($rows) = @_; return [sort grep { $rows->{$_}[0] ne 'none' && $rows->{$_}[1] ne 'none' } keys %$rows] }

my @JOINS = qw(gpuhash.build_tuple_cost gpuhash.probe_tuple_cost gpuhash.setup_cost);
my @DEVICE = qw(gpuhash.device_bus_cost gpuhash.device_page_cost gpuhash.device_start_cost);

# ------------------------------------------------------------ without a GPU
my $server = GpuHash::Server->new;
my $out = calibrate($server, 'cpu');
is_deeply([sort keys %{ settings($out) }], \@JOINS, 'without a GPU: the settings of joins alone');
like($out, qr/^No GPU has read a table here/m, 'and it says why');
is($server->query("SELECT count(*) FROM pg_namespace WHERE nspname = 'gpuhash_calibrate'"), 0, 'no table is left');
$server->query('CREATE EXTENSION gpuhash');
my $rows = calibrated($server);
is_deeply(measured($rows), \@JOINS, 'gpuhash_calibrate: the same');
is(scalar(keys %$rows), 6, 'and a row for each cost');
like($rows->{$_}[2], qr/^not measured: without gpuhash in shared_preload_libraries/, "$_: why not") for @DEVICE;
$server->stop;

# ---------------------------------------------------------------- with one
my $service = GpuHash::Service->new(conf => ['max_parallel_workers = 4', 'shared_buffers = 256MB']);
$server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$out = calibrate($server, 'cuda');
my $settings = settings($out);
is_deeply([sort keys %$settings], [sort @JOINS, @DEVICE], 'with a GPU: all settings');
cmp_ok($settings->{'gpuhash.device_page_cost'}, '>', 0, 'pages cost something');
unlike($out, qr/No GPU/, 'nothing else is said');
$rows = calibrated($server);
is_deeply(measured($rows), [sort @JOINS, grep { !/bus/ } @DEVICE], 'gpuhash_calibrate: all but the bus');
like($rows->{'gpuhash.device_bus_cost'}[2], qr/^not measured: it shows in large tables/, 'and why not that');
cmp_ok($rows->{'gpuhash.device_page_cost'}[1], '>', 0, 'a page takes time');
like($rows->{'gpuhash.device_page_cost'}[2], qr/; [1-9]\d* of \d+ pages were read where they are/, 'pages of its tables are read where they are');
is($server->query("SELECT count(*) FROM pg_class WHERE relname ~ 'gpuhash_calibrate'"), 0, 'no table is left');
$server->query($_) for map { "ALTER SYSTEM SET $_ = $settings->{$_}" } sort keys %$settings;
$server->query('SELECT pg_reload_conf()');

# The cost of a sum over all rows, or the plan where it is not the node's.
$server->query('CREATE TABLE pages AS SELECT i AS v FROM generate_series(1, 100000) i; VACUUM ANALYZE pages');
sub cost
{
	my ($costs) = @_;
	my $plan = $server->query("SET gpuhash.force_offload = off; SET gpuhash.engine = cuda; SET gpuhash.setup_cost = 0; SET gpuhash.device_start_cost = $costs->[0]; SET gpuhash.device_page_cost = $costs->[1];
		SET gpuhash.device_bus_cost = $costs->[2]; SET max_parallel_workers_per_gather = 0; EXPLAIN SELECT sum(v) FROM pages");
	return $plan =~ /GpuHashAggregate\)\s+\(cost=([\d.]+)\.\./ ? $1 : $plan;
}
my $pages = $server->query("SELECT pg_relation_size('pages') / 8192");
my $base = cost([0, 0, 0]);
like($base, qr/^[\d.]+$/, 'a sum by the GPU');
my $near = sub { my ($costs, $more, $name) = @_; cmp_ok(abs(cost($costs) - $base - $more), '<', 0.1, $name) };
$near->([100, 0, 0], 100, 'a start');
$near->([0, 0.5, 0], 0.5 * $pages, 'a page supplied');
$near->([0, 0.5, 0.75], 0.75 * $pages, 'a page on its way, where that takes longer');
like(cost([1e9, 0, 0]), qr/^Aggregate.*Seq Scan on pages/s, 'what costs too much is not taken');

done_testing();
