# Beside other extensions with hooks of the planner and of EXPLAIN, before them and behind them in
# shared_preload_libraries: joins are offloaded, and each sees a query once.  Citus has to be before gpuhash.
use GpuHash::Test;

my $libdir = GpuHash::Server::libdir();
my @conf = ('jit = off', 'autovacuum = off', "gpuhash.engine = 'cpu'", 'max_parallel_workers_per_gather = 0');

sub installed { my ($library) = @_; return -e "$libdir/$library.so" }

sub check_order
{
	my ($libraries, @more) = @_;
	my $server = GpuHash::Server->new(conf => [@conf, "shared_preload_libraries = '$libraries'", @more]);
	$server->query(<<'SQL');
CREATE TABLE facts AS SELECT i, i % 5000 AS k FROM generate_series(1, 60000) i;
CREATE TABLE dims AS SELECT i AS k FROM generate_series(1, 20000) i;
ANALYZE;
SQL
	# a query that gpuhash plans more than once
	my $query = 'WITH w AS (SELECT k, count(*) AS n FROM facts GROUP BY k) SELECT count(*), sum(a.n) FROM w a JOIN w b USING (k) JOIN dims d USING (k)';
	is($server->query("SET gpuhash.force_offload = on; $query"), '4999|59988', "$libraries: the answer is right");
	like($server->query("EXPLAIN $query"), qr/GpuHash/, "$libraries: it is offloaded");
	return $server;
}

SKIP: {
	skip 'there is no pg_stat_statements', 1 unless installed('pg_stat_statements');
	for my $libraries ('pg_stat_statements, gpuhash', 'gpuhash, pg_stat_statements')
	{
		my $server = check_order($libraries, 'pg_stat_statements.track_planning = on', 'compute_query_id = on');
		$server->query('CREATE EXTENSION pg_stat_statements');
		is($server->query("SELECT string_agg(calls || ' ' || plans, ',') FROM pg_stat_statements WHERE query LIKE 'WITH w%'"), '1 1',
			"$libraries: it was planned and run once, for pg_stat_statements");
		$server->stop;
		unlike($server->log, qr/PANIC|TRAP|terminated by signal/, "$libraries: a clean log");
	}
}
SKIP: {
	skip 'there is no auto_explain', 1 unless installed('auto_explain');
	for my $libraries ('auto_explain, gpuhash', 'gpuhash, auto_explain')
	{
		my $server = check_order($libraries, 'auto_explain.log_min_duration = 0');
		like($server->log, qr/plan:\n\tQuery Text: SET gpuhash\.force_offload = on; WITH w|plan:\n\tQuery Text: WITH w.*Custom Scan \(GpuHash/s,
			"$libraries: auto_explain shows the nodes");
		$server->stop;
	}
}
SKIP: {
	skip 'there is no Citus', 1 unless installed('citus');
	my $server = eval { GpuHash::Server->new(conf => [@conf, "shared_preload_libraries = 'gpuhash, citus'"]) };
	my $said = $@;
	ok(!$server, 'gpuhash, citus: the server does not start');
	like($said, qr/FATAL:  Citus has to be loaded first/, 'and its log says why');
	check_order('citus, gpuhash')->stop;
}
done_testing();
