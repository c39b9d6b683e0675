# Citus: a coordinator and two workers.  Queries over distributed, reference and local tables give the same rows without
# gpuhash, by default and forced; the parts that workers do are offloaded there; explain_why is about the plan that is shown.
# Needs a PostgreSQL with Citus 12 or later.
use GpuHash::Test;
use GpuHash::Nodes qw(skip_without nodes set_mode in_modes check_example @modes);

skip_without('citus');

my @nodes = nodes(3, "shared_preload_libraries = 'citus, gpuhash'", "citus.node_conninfo = 'sslmode=disable'",
	'citus.max_background_task_executors = 1', 'jit = off', 'autovacuum = off', "gpuhash.engine = 'cpu'",
	'max_connections = 60', 'auto_explain.log_min_duration = 0', 'auto_explain.log_nested_statements = on');
my ($coordinator, @workers) = @nodes;

# A node's name is the folder of its socket.
$_->query("ALTER SYSTEM SET citus.local_hostname = '$_->{dir}'; SELECT pg_reload_conf();
	SET client_min_messages = warning; CREATE EXTENSION citus; CREATE EXTENSION gpuhash") for @nodes;
$coordinator->query("SELECT citus_set_coordinator_host('$coordinator->{dir}', 5432)");
$coordinator->query("SELECT citus_add_node('$_->{dir}', 5432)") for @workers;
$coordinator->query(<<'SQL');
SET client_min_messages = warning;
SET citus.shard_count = 4;
CREATE TABLE fact (k int NOT NULL, d int, g int, v bigint, a numeric(12,2), s text, day date);
CREATE INDEX ON fact (k);
SELECT create_distributed_table('fact', 'k');
CREATE TABLE dim (k int PRIMARY KEY, p bigint, c int, name text);
SELECT create_distributed_table('dim', 'k', colocate_with => 'fact');
CREATE TABLE ref (id int PRIMARY KEY, label text, w int);
SELECT create_reference_table('ref');
CREATE TABLE other (id int NOT NULL, d int, q bigint);
SELECT create_distributed_table('other', 'id', colocate_with => 'none');
CREATE TABLE here AS SELECT i AS k, i % 9 AS z FROM generate_series(1, 20000) i;
INSERT INTO fact SELECT i % 60000, i % 1000, i % 100, i, i / 7.0, 's' || i % 50, date '2020-01-01' + i % 500
	FROM generate_series(1, 240000) i;
INSERT INTO dim SELECT i, i * 3, i % 20, 'n' || i % 30 FROM generate_series(1, 59999, 1) i WHERE i % 11 <> 0;
INSERT INTO ref SELECT i, 'l' || i % 10, i FROM generate_series(0, 999) i;
INSERT INTO other SELECT i, i % 1200, i FROM generate_series(1, 60000) i;
ANALYZE;
SQL

# ---------------------------------------------------------------- the same rows
my %query = (
	'co-located join' => 'SELECT count(*), sum(f.v), sum(d.p), sum(f.a) FROM fact f JOIN dim d ON d.k = f.k',
	'co-located join, groups' => 'SELECT d.c, count(*), sum(f.v), min(f.day) FROM fact f JOIN dim d ON d.k = f.k GROUP BY d.c ORDER BY 1',
	'co-located left join' => 'SELECT count(*), count(d.k), sum(f.v) FROM fact f LEFT JOIN dim d ON d.k = f.k',
	'co-located full join' => 'SELECT count(*), count(d.k), count(f.k) FROM (SELECT * FROM fact WHERE g < 50) f FULL JOIN dim d ON d.k = f.k',
	'co-located semi join' => 'SELECT count(*), sum(v) FROM fact f WHERE EXISTS (SELECT FROM dim d WHERE d.k = f.k AND d.c < 5)',
	'co-located anti join' => 'SELECT count(*), sum(v) FROM fact f WHERE NOT EXISTS (SELECT FROM dim d WHERE d.k = f.k)',
	'reference table' => 'SELECT r.label, count(*), sum(f.v) FROM fact f JOIN ref r ON r.id = f.d GROUP BY r.label ORDER BY 1',
	'distributed and reference tables' => 'SELECT r.label, d.c, sum(f.v) FROM fact f JOIN dim d ON d.k = f.k JOIN ref r ON r.id = f.d WHERE d.c < 4 GROUP BY 1, 2 ORDER BY 1, 2',
	'repartitioned join of both' => 'SELECT count(*), sum(f.v + o.q) FROM fact f JOIN other o ON o.d = f.d AND o.q = f.v',
	'repartitioned join of one' => 'SET citus.enable_single_hash_repartition_joins = on; SELECT count(*), sum(f.v + o.q) FROM fact f JOIN other o ON o.d = f.k; RESET citus.enable_single_hash_repartition_joins',
	'repartitioned join, groups' => 'SELECT f.g, count(*), max(o.q) FROM fact f JOIN other o ON o.d = f.k GROUP BY 1 ORDER BY 1 LIMIT 20',
	'groups by the distribution column' => 'SELECT count(*), sum(n), max(s) FROM (SELECT k, count(*) n, sum(v) s FROM fact GROUP BY k) x',
	'groups by another' => 'SELECT s, count(*), avg(a), sum(v) FROM fact GROUP BY s ORDER BY s',
	'many groups of another' => 'SELECT d, g, count(*), sum(v) FROM fact GROUP BY d, g HAVING sum(v) % 3 = 0 ORDER BY 1, 2 LIMIT 50',
	'distinct' => 'SELECT count(DISTINCT d), count(DISTINCT s) FROM fact',
	'a filter' => "SELECT v, s FROM fact WHERE g = 17 AND s LIKE 's1%' AND v % 1000 = 17 ORDER BY v",
	'nested subplans' => <<'SQL' =~ s/\s+/ /gr,
WITH a AS MATERIALIZED (SELECT d FROM other WHERE d < 700 OFFSET 0),
	b AS MATERIALIZED (SELECT g, count(*) n FROM fact WHERE d IN (SELECT d FROM a) GROUP BY g)
SELECT count(*), sum(n) FROM b
SQL
	'nested subplans, groups of groups' => <<'SQL' =~ s/\s+/ /gr,
WITH a AS MATERIALIZED (SELECT d, max(q) q FROM other GROUP BY d),
	b AS MATERIALIZED (SELECT f.g, count(*) n, max(a.q) q FROM fact f JOIN a ON a.d = f.d GROUP BY f.g),
	c AS MATERIALIZED (SELECT n, count(*) m, sum(q) q FROM b GROUP BY n)
SELECT DISTINCT n, m, q FROM c ORDER BY 1, 2, 3
SQL
	'WITH that is read twice' => 'WITH x AS (SELECT g, sum(v) s FROM fact GROUP BY g) SELECT count(*), sum(a.s) FROM x a JOIN x b ON a.g = b.g',
	'a correlated subquery' => 'SELECT count(*), sum(v) FROM fact f WHERE v > (SELECT avg(v) FROM fact i WHERE i.k = f.k)',
	'one over a reference table' => 'SELECT count(*), sum(v) FROM fact f WHERE w_of IS NOT NULL' =~ s/w_of/(SELECT max(w) FROM ref r WHERE r.id = f.d AND r.w > 500)/r,
	'NOT IN' => 'SELECT count(*) FROM fact WHERE d NOT IN (SELECT id FROM ref WHERE w > 300)',
	'windows' => 'SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY k ORDER BY v) r FROM fact) x',
	'UNION and EXCEPT' => '(SELECT k FROM fact WHERE g = 3 UNION SELECT k FROM dim WHERE c = 7) EXCEPT SELECT k FROM dim WHERE c = 9 ORDER BY 1 LIMIT 30',
	'a local table' => 'SELECT h.z, count(*), sum(f.v) FROM here h JOIN fact f ON f.k = h.k GROUP BY h.z ORDER BY 1',
	'one key' => 'SELECT count(*), sum(f.v), max(d.name) FROM fact f JOIN dim d ON d.k = f.k WHERE f.k = 4711',
	'INSERT ... SELECT' => 'BEGIN; INSERT INTO other SELECT d, count(*), sum(v) FROM fact GROUP BY d; SELECT count(*), sum(q) FROM other; ROLLBACK',
	'UPDATE ... FROM' => 'BEGIN; UPDATE fact f SET v = v + d.p FROM dim d WHERE d.k = f.k AND d.c = 3; SELECT sum(v), count(*) FROM fact; ROLLBACK',
	'a prepared statement' => join('; ', 'PREPARE p(int) AS SELECT count(*), sum(f.v) FROM fact f JOIN dim d ON d.k = f.k WHERE d.c = $1', map { "EXECUTE p($_)" } 1 .. 7),
);
my @names = sort keys %query;
my $all = join '', "SET client_min_messages = warning; SET citus.enable_repartition_joins = on;\n",
	map { "\\echo == $_\n$query{$_};\n" } @names;
my %output = in_modes($all, @nodes);
my %rows = map { my $mode = $_; ($mode => { $output{$mode} =~ /^== (.*?)\n(.*?)(?=^== |\z)/msg }) } @modes;
for my $name (@names)
{
	like($rows{off}{$name}, qr/\d/, "$name: there are rows");
	is($rows{$_}{$name}, $rows{off}{$name}, "$name: the same rows, $_") for qw(default forced);
}

# ---------------------------------------------------------------- who does what
# Nodes of the tasks, which EXPLAIN gets from the workers.
sub plan_of
{
	my ($sql, $before) = @_;
	return $coordinator->query(join '; ', $before // (), "EXPLAIN (COSTS OFF) $sql");
}

like(plan_of($query{'co-located join'}), qr/Task\n\s+Node: .*GpuHashJoin\)/s, 'a co-located join is done by the workers');
like(plan_of($query{'co-located join, groups'}), qr/Task\n\s+Node: .*GpuHashAggregate\).*GpuHashJoin\).* on fact_\d+ .* on dim_\d+ /s, 'with its groups');
like(plan_of($query{'reference table'}), qr/Task\n\s+Node: .*GpuHashAggregate\).*GpuHashJoin\).* on fact_\d+ .* on ref_\d+ /s, 'a join with a reference table, too');
like(plan_of($query{'groups by another'}), qr/Task\n\s+Node: .*GpuHashAggregate\)/s, 'groups of their shards');
unlike(plan_of($query{'groups by another'}), qr/GpuHashAggregate.*Task\n/s, 'what the coordinator adds up stays with PostgreSQL, for it is little');
set_mode('forced', @nodes);
like(plan_of('SELECT g, count(*) FROM fact GROUP BY g'), qr/GpuHashAggregate.*Citus Adaptive.*Task\n.*GpuHashAggregate/s, 'forced, it is above the scan of Citus');
my (undef, undef, $messages) = $coordinator->run("SET client_min_messages = debug1; $query{'WITH that is read twice'}");
is(() = $messages =~ /generating subplan/g, 1, 'and Citus plans a query once, as it is, also where gpuhash would have it another way');
set_mode('default', @nodes);

# EXPLAIN shows no tasks of a repartitioned join: the logs of the workers do
my @before = map { length $_->log } @workers;
$_->query("SET citus.enable_ddl_propagation = off; ALTER DATABASE postgres SET session_preload_libraries = 'auto_explain'") for @workers;
SKIP: {
	skip 'there is no auto_explain', 1 unless -e GpuHash::Server::libdir() . '/auto_explain.so';
	$coordinator->query("SET citus.enable_repartition_joins = on; $query{'repartitioned join of one'}");
	my $log = join '', map { substr $workers[$_]->log, $before[$_] } 0 .. $#workers;
	like($log, qr/GpuHashJoin.*Seq Scan on fact_\d+.*read_intermediate_result/s, 'what a repartitioned join brings together is joined by the workers');
}
$_->query('SET citus.enable_ddl_propagation = off; ALTER DATABASE postgres RESET session_preload_libraries') for @workers;

# ------------------------------------------------------------------ explain_why
my $why = plan_of($query{'co-located join, groups'}, 'SET gpuhash.explain_why = on');
unlike($why, qr/Not Offloaded: (?:Join|Scan)/, 'explain_why has nothing of the empty tables of the coordinator');
like($why, qr/Not Offloaded: Aggregate: it has few rows/, 'and says why what it adds up itself stays with PostgreSQL');
unlike(plan_of($query{'one key'}, 'SET gpuhash.explain_why = on'), qr/Not Offloaded: Join/, 'nor where the whole query goes to a worker');
$_->query('SET citus.enable_ddl_propagation = off; ALTER DATABASE postgres SET gpuhash.explain_why = on') for @workers;
like(plan_of('SELECT count(*) FROM fact f JOIN ref r ON r.label < f.s', 'SET gpuhash.explain_why = on'), qr/Task\n.*\n {8,}Not Offloaded: /s,
	'what a worker has to say of its part is shown with it');
like(plan_of('SELECT count(*) FROM here a JOIN here b ON a.k > b.k AND b.k < 3', 'SET gpuhash.explain_why = on'),
	qr/Not Offloaded: Join of a, b: /, 'explain_why of local tables is what it always was');

check_example($coordinator, 'doc/scaling.md', 'test/t/101_citus.pl');

for my $node (@nodes)
{
	$node->stop;
	unlike($node->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}
done_testing();
