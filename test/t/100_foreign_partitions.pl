# postgres_fdw: a table with a partition here and two on other servers.  The same rows without gpuhash, by default and
# forced, with partitionwise joins and aggregates and without; the other servers offload what they are sent.
use GpuHash::Test;
use GpuHash::Nodes qw(skip_without nodes set_mode in_modes check_example @modes);

skip_without('postgres_fdw');

my @nodes = nodes(3, "session_preload_libraries = 'gpuhash, auto_explain'", 'jit = off', 'autovacuum = off', "gpuhash.engine = 'cpu'",
	'auto_explain.log_min_duration = 0', 'auto_explain.log_nested_statements = on');
my ($here, @there) = @nodes;
my $columns = 'part int NOT NULL, k int, g int, v bigint, a numeric(12,2), s text';
my $foreign = '';
my $rows = "SELECT %d, i %% 20000, i %% 100, i, i / 7.0, 's' || i %% 50 FROM generate_series(1, 50000) i";

for my $i (0, 1)
{
	my $part = $i + 1;
	$there[$i]->query(<<"SQL");
CREATE TABLE fact_$part ($columns);
INSERT INTO fact_$part @{[ sprintf $rows, $part ]};
CREATE TABLE dim_$part (part int NOT NULL, k int, c int, name text);
INSERT INTO dim_$part SELECT $part, i, i % 20, 'n' || i % 30 FROM generate_series(1, 15000) i WHERE i % 11 <> 0;
ANALYZE;
SQL
	$foreign .= <<"SQL";
CREATE SERVER s$part FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$there[$i]{dir}', port '5432', dbname 'postgres', use_remote_estimate 'true', async_capable 'true');
CREATE USER MAPPING FOR postgres SERVER s$part OPTIONS (user 'postgres');
CREATE FOREIGN TABLE fact_$part PARTITION OF fact FOR VALUES IN ($part) SERVER s$part OPTIONS (table_name 'fact_$part');
CREATE FOREIGN TABLE dim_$part PARTITION OF dim FOR VALUES IN ($part) SERVER s$part OPTIONS (table_name 'dim_$part');
SQL
}
$here->query(<<"SQL");
CREATE EXTENSION postgres_fdw;
CREATE TABLE fact ($columns) PARTITION BY LIST (part);
CREATE TABLE dim (part int NOT NULL, k int, c int, name text) PARTITION BY LIST (part);
CREATE TABLE fact_0 PARTITION OF fact FOR VALUES IN (0);
CREATE TABLE dim_0 PARTITION OF dim FOR VALUES IN (0);
$foreign
CREATE TABLE ref AS SELECT i AS id, 'l' || i % 10 AS label FROM generate_series(0, 99) i;
INSERT INTO fact @{[ sprintf $rows, 0 ]};
INSERT INTO dim SELECT 0, i, i % 20, 'n' || i % 30 FROM generate_series(1, 15000) i WHERE i % 11 <> 0;
ANALYZE;
SQL

# ---------------------------------------------------------------- the same rows
my %query = (
	'sums' => 'SELECT count(*), sum(v), sum(a), max(k) FROM fact',
	'groups by the partition key' => 'SELECT part, count(*), sum(v), avg(a) FROM fact GROUP BY part ORDER BY part',
	'groups by another' => 'SELECT g, count(*), sum(v), min(s) FROM fact GROUP BY g ORDER BY g',
	'groups of some partitions' => 'SELECT s, count(*), sum(v) FROM fact WHERE part < 2 GROUP BY s ORDER BY s',
	'one other server' => 'SELECT g, count(*), sum(v) FROM fact WHERE part = 2 GROUP BY g ORDER BY g',
	'join on the partition key' => 'SELECT count(*), sum(f.v), sum(d.c) FROM fact f JOIN dim d ON d.part = f.part AND d.k = f.k',
	'join on the partition key, groups by it' => 'SELECT f.part, d.c, count(*), sum(f.v) FROM fact f JOIN dim d ON d.part = f.part AND d.k = f.k GROUP BY 1, 2 ORDER BY 1, 2',
	'join on another column' => 'SELECT d.c, count(*), sum(f.v) FROM fact f JOIN dim d ON d.k = f.k WHERE d.part = 0 GROUP BY d.c ORDER BY 1',
	'left join' => 'SELECT count(*), count(d.k), sum(f.v) FROM fact f LEFT JOIN dim d ON d.part = f.part AND d.k = f.k',
	'full join' => 'SELECT count(*), count(d.k), count(f.k) FROM (SELECT * FROM fact WHERE g < 10) f FULL JOIN dim d ON d.part = f.part AND d.k = f.k',
	'semi join' => 'SELECT count(*), sum(v) FROM fact f WHERE EXISTS (SELECT FROM dim d WHERE d.part = f.part AND d.k = f.k AND d.c < 5)',
	'anti join' => 'SELECT count(*), sum(v) FROM fact f WHERE NOT EXISTS (SELECT FROM dim d WHERE d.k = f.k AND d.part = 1)',
	'a local table' => 'SELECT r.label, count(*), sum(f.v) FROM fact f JOIN ref r ON r.id = f.g GROUP BY r.label ORDER BY 1',
	'a filter' => 'SELECT part, v, s FROM fact WHERE g = 17 AND v % 1000 = 17 ORDER BY part, v',
	'where rows are' => "SELECT tableoid::regclass, count(*) FROM fact WHERE s = 's7' GROUP BY 1 ORDER BY 1",
	'distinct' => 'SELECT count(DISTINCT g), count(DISTINCT s) FROM fact',
	'a change' => 'BEGIN; UPDATE fact f SET v = v + d.c FROM dim d WHERE d.part = f.part AND d.k = f.k AND f.g = 3; SELECT part, sum(v) FROM fact GROUP BY part ORDER BY part; ROLLBACK',
);
my @names = sort keys %query;
for my $partitionwise ('off', 'on')
{
	my $all = join '', "SET enable_partitionwise_join = $partitionwise; SET enable_partitionwise_aggregate = $partitionwise;\n",
		map { "\\echo == $_\n$query{$_};\n" } @names;
	my %output = in_modes($all, @nodes);
	my %rows = map { my $mode = $_; ($mode => { $output{$mode} =~ /^== (.*?)\n(.*?)(?=^== |\z)/msg }) } @modes;
	for my $name (@names)
	{
		like($rows{off}{$name}, qr/\d/, "$name: there are rows, partitionwise $partitionwise");
		is($rows{$_}{$name}, $rows{off}{$name}, "$name: the same, $_") for qw(default forced);
	}
}

# ---------------------------------------------------------------- who does what
sub plan_of
{
	my ($sql, $partitionwise) = @_;
	return $here->query("SET enable_partitionwise_join = $partitionwise; SET enable_partitionwise_aggregate = $partitionwise; EXPLAIN (VERBOSE, COSTS OFF) $sql");
}

like(plan_of($query{'groups by the partition key'}, 'on'), qr/GpuHashAggregate\).*Seq Scan on public\.fact_0.*Relations: Aggregate on/s,
	'partitionwise: the part here is a GpuHashAggregate, those elsewhere are sent as groups');
like(plan_of($query{'join on the partition key, groups by it'}, 'on'), qr/GpuHashJoin\).*Relations: Aggregate on \(.*INNER JOIN/s, 'joins, too');
like(plan_of('SELECT g, count(*), sum(v) FROM fact_2 GROUP BY g', 'off'), qr/Remote SQL: SELECT g, count\(\*\), sum\(v\) FROM public\.fact_2 GROUP BY 1/s,
	'a query of one foreign table is sent as a whole');
SKIP: {
	skip 'there is no auto_explain', 2 unless -e GpuHash::Server::libdir() . '/auto_explain.so';
	my $from = length $there[0]->log;
	$here->query("SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on; $query{'join on the partition key, groups by it'}");
	my $log = substr $there[0]->log, $from;
	like($log, qr/DECLARE c1 CURSOR/, 'the other server has a cursor');
	like($log, qr/GpuHashAggregate\).*GpuHashJoin\)/s, 'and offloads it');
}

$there[0]->query("CREATE TABLE sales_2024 AS SELECT 2024 AS year, i % 300 AS item, (i % 900 / 10.0)::numeric(12,2) AS amount FROM generate_series(1, 200000) i; ANALYZE");
check_example($here, 'doc/scaling.md', 'test/t/100_foreign_partitions.pl', node1 => $there[0]{dir});

for my $node (@nodes)
{
	$node->stop;
	unlike($node->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}
done_testing();
