# What EXPLAIN ANALYZE tells a role of rows that a policy hides from it: no count depends on their values.
#
# Two tables have the same rows for the role, and as many hidden ones; in one of them these have values that no
# program can do.  On the CPU engine, and on a stand-in for a GPU.
use GpuHash::Test;
use GpuHash::Fault;

my $stand_in = GpuHash::Fault->needed;

my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", 'gpuhash.force_offload = on',
	'autovacuum = off', 'jit = off', 'max_parallel_workers_per_gather = 0']);

# NaN takes as much room in a row as 5.00
$server->query(<<'SQL');
CREATE ROLE reader;
CREATE TABLE plain (id int, owner int, n numeric(12, 2));
INSERT INTO plain SELECT i, i % 2, CASE WHEN i % 2 = 0 THEN 5 WHEN i % 500 = 1 THEN 'NaN'::numeric ELSE i % 100 END FROM generate_series(1, 20000) i;
CREATE TABLE odd (id int, owner int, n numeric(12, 2));
INSERT INTO odd SELECT id, owner, CASE WHEN owner = 0 THEN 'NaN' ELSE n END FROM plain;
CREATE TABLE other (id int, a int);
INSERT INTO other SELECT i, i % 10 FROM generate_series(1, 20000) i;
ANALYZE;
ALTER TABLE plain ENABLE ROW LEVEL SECURITY;
ALTER TABLE odd ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON plain USING (owner = 1);
CREATE POLICY own ON odd USING (owner = 1);
GRANT SELECT ON plain, odd, other TO reader;
SQL

my %QUERY = (
	scan => 'SELECT id FROM %s WHERE n <> 7',
	limit => 'SELECT id FROM %s WHERE n <> 7 LIMIT 3000',
	aggregate => 'SELECT count(*), sum(n) FROM %s WHERE n <> 7',
	groups => 'SELECT id %% 10, count(*), sum(n) FROM %s WHERE n <> 7 GROUP BY 1',
	outer => 'SELECT count(*), sum(n) FROM %s t JOIN other USING (id) WHERE n <> 7',
	inner => 'SELECT count(*), sum(n) FROM other JOIN %s t USING (id) WHERE n <> 7 AND a < 5',
);

sub plan_of
{
	my ($engine, $table, $name, $options) = @_;
	my $plan = $server->query("SET gpuhash.engine = '$engine'; SET ROLE reader; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF$options) " .
		sprintf($QUERY{$name}, $table));
	$plan =~ s/\b$table\b/the_table/g;
	# sizes in memory are told in kilobytes, and vary with the hash's seed
	$plan =~ s/^.*(?:Device Memory|Memory Usage).*\n//mg;
	return $plan;
}

for my $vacuum ('', 'VACUUM plain; VACUUM odd;')
{
	for my $statement (split /;/, $vacuum) { $server->query($statement) }
	my $state = $vacuum eq '' ? 'as inserted' : 'vacuumed';
	for my $engine (qw(cpu cuda))
	{
		for my $name (sort keys %QUERY)
		{
			my $got = plan_of($engine, 'odd', $name, ', VERBOSE');
			my $want = plan_of($engine, 'plain', $name, ', VERBOSE');
			is($got, $want, "$engine, $state, $name: nothing depends on values of hidden rows");
		}
		my ($back) = plan_of($engine, 'odd', 'scan', '') =~ /Rows Handed Back: (\d+)/;
		is($back, 40, "$engine, $state: rows handed back of a scan are those that the role sees");
		($back) = plan_of($engine, 'odd', 'aggregate', '') =~ /Rows Handed Back: (\d+)/;
		is($back, 40, "$engine, $state: and of an aggregate");
		like(plan_of($engine, 'odd', 'scan', ''), qr/Engine: $engine/, "$engine, $state: the engine");
	}
}

# the owner sees all rows, and all counts
my $plan = $server->query("SET gpuhash.engine = 'cpu'; EXPLAIN (ANALYZE, COSTS OFF) SELECT id FROM odd WHERE n <> 7");
is(($plan =~ /Rows Handed Back: (\d+)/)[0], 10040, 'the owner is told of all');

$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

done_testing();
