# An error of PostgreSQL's while it compares texts for an engine, which keeps the least or the greatest of them (GhGroupsSink.order):
# no error jumps over the engine, and the query ends with it, wherever the row came from.  What comes after is right.
use GpuHash::Test 'module';
use GpuHash::Resident 'well';

my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off',
	'gpuhash.force_offload = on', 'min_parallel_table_scan_size = 0', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', "work_mem = '256kB'"]);
my $session = $server->session;

well($session, "CREATE TABLE o (g int, d int, k int, t text, w text) WITH (autovacuum_enabled = off)");
well($session, "INSERT INTO o SELECT i % 50, i % 700, i % 300, md5(i::text), CASE WHEN i % 3 = 0 THEN repeat(md5((i % 200)::text), 80) ELSE md5((-i)::text) END FROM generate_series(1, 20000) i");
well($session, 'CREATE TABLE s (k int, t text); INSERT INTO s SELECT i, md5((i * 31)::text) FROM generate_series(0, 299) i; VACUUM ANALYZE');

my %queries = (
	'a table' => 'SELECT g, min(t), max(t) FROM o GROUP BY g ORDER BY g',
	'one group' => 'SELECT min(t), max(t COLLATE "C") FROM o',
	'files' => 'SELECT d % 350, min(t), max(w) FROM o GROUP BY 1 ORDER BY 1',
	'handed back' => 'SELECT g, max(w) FROM o GROUP BY g ORDER BY g',
	'joins' => 'SELECT o.g, min(s.t), max(o.t) FROM o JOIN s ON s.k = o.k GROUP BY o.g ORDER BY o.g',
	'DISTINCT' => 'SELECT g, count(DISTINCT d), count(DISTINCT k), min(t) FROM o GROUP BY g ORDER BY g',
	'rows' => 'SELECT g, max(t) FROM (SELECT * FROM o OFFSET 0) x GROUP BY g ORDER BY g');

sub arm { my ($after, $times) = @_; return well($session, "SELECT gpuhash_fault_arm('text_order', 'launch', $after, $times, 0)") }

for my $workers (0, 2)
{
	well($session, "SET max_parallel_workers_per_gather = $workers");
	for my $name (sort keys %queries)
	{
		my $want = well($session, "SET gpuhash.enabled = off; $queries{$name}");
		well($session, 'SET gpuhash.enabled = on');
		like(well($session, "EXPLAIN (COSTS OFF) $queries{$name}"), qr/GpuHashAggregate/, "$name, $workers workers: offloaded");
		for my $after (0, 1, 99, 9000)
		{
			arm($after, 1);
			well($session, 'BEGIN; SAVEPOINT s');
			my ($rows, $error) = $session->do($queries{$name});
			my $fired = well($session, 'ROLLBACK TO s; SELECT gpuhash_fault_fired()');
			like($error // '', $fired ? qr/fault point: texts are not compared/ : qr/^$/, "  comparison $after " . ($fired ? 'fails' : 'is not made'));
			arm(0, 0);
			is(well($session, $queries{$name}), $want, '  and the same transaction goes on');
			well($session, 'COMMIT');
		}
	}
}
done_testing();
