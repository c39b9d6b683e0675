# Rows of joins that the CPU engine makes as a whole, of columns in memory (a GpuHashRows without a GPU): each query returns
# what PostgreSQL returns in the same snapshot, by one process and by several, under all that may end it early, with rows that are
# handed back, and beside sessions that write.  And the node is where it is to be, and nowhere else.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Index qw(write_until end_writers);
use GpuHash::Resident 'well';
use GpuHash::Service;

my $seed = seed();
my $service = GpuHash::Service->new(absent => 1, conf => [@GpuHash::Resident::CONF, 'max_worker_processes = 16', 'gpuhash.engine = auto']);
my $server = $service->server;
my ($session, $other) = map { $server->session } 1, 2;
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
$other->do('SET gpuhash.enabled = off');
my $ROWS = 12000;
well($other, "CREATE TABLE t ($GpuHash::Resident::COLUMNS, d date, j jsonb, f float8) WITH (fillfactor = 40)");
well($other, "INSERT INTO t SELECT i, i % 9, i * 7::bigint, i / 7.0, 'x' || i % 40, date '2026-01-01' + i % 300, NULL, CASE WHEN i % 500 = 3 THEN 'NaN' ELSE i / 3.0 END FROM generate_series(1, $ROWS) i");
well($other, 'CREATE TABLE a (k int, name text, v numeric(10, 2)) WITH (autovacuum_enabled = off)');
well($other, "INSERT INTO a SELECT i * 3, 'name ' || i % 50, CASE WHEN i % 7 > 0 THEN i / 3.0 END FROM generate_series(1, 900) i");
well($other, 'CREATE TABLE b (k int, m bigint); INSERT INTO b SELECT i % 200, i FROM generate_series(1, 600) i');
well($other, 'CREATE TABLE few (g int, what text, n bigint); INSERT INTO few SELECT i % 5, repeat(\'w\', i), i FROM generate_series(1, 8) i');
well($other, "VACUUM ANALYZE $_") for qw(t a b few);

# name => query, whether the node is in its plan
my %QUERY = (
	inner => ['SELECT t.id, t.x, t.b, a.name, a.v FROM t JOIN a ON a.k = t.id WHERE t.g <> 3', 1],
	computed => ['SELECT t.id + 1, t.d + t.g, upper(a.name), a.v * 2 FROM t JOIN a ON a.k = t.id', 1],
	many => ['SELECT t.id, b.m FROM t JOIN b ON b.k = t.id', 1],
	two => ['SELECT t.n, a.name, few.what FROM t JOIN a ON a.k = t.id JOIN few ON few.g = t.g WHERE t.d > date \'2026-03-01\'', 1],
	left => ['SELECT t.id, a.v, few.n FROM t JOIN a ON a.k = t.id LEFT JOIN few ON few.g = t.g AND few.n < t.id', 1],
	semi => ['SELECT t.id, t.b FROM t WHERE t.g = 2 AND EXISTS (SELECT FROM b WHERE b.k = t.id)', 1],
	anti => ['SELECT t.id, a.v FROM t JOIN a ON a.k = t.id WHERE NOT EXISTS (SELECT FROM b WHERE b.k = t.id AND b.m > t.g)', 1],
	pair => ['SELECT t.id, a.name FROM t JOIN a ON a.k = t.id AND a.v < t.b', 1],
	sorted => ['SELECT t.id, a.name, t.x FROM t JOIN a ON a.k = t.id ORDER BY a.name, t.id', 1],
	first => ['SELECT t.id, a.name, t.x FROM t JOIN a ON a.k = t.id ORDER BY a.name, t.id LIMIT 7', 1],
	inside => ['SELECT a.name, count(*), sum(s.m) FROM a JOIN (SELECT t.id, b.m FROM t JOIN b ON b.k = t.id OFFSET 0) s ON s.id = a.k GROUP BY a.name', 1],
	nothing => ['SELECT t.id, a.name FROM t JOIN a ON a.k = t.id WHERE t.n + t.g < 0', 1],
	back => ['SELECT t.id, t.f, a.v FROM t JOIN a ON a.k = t.id WHERE t.f * 2 > 10 AND 1000000 / (t.g + 1) > t.id', 1],
	union => ['SELECT t.id, a.name FROM t JOIN a ON a.k = t.id UNION ALL SELECT t.g, a.name FROM t JOIN a ON a.k = t.id WHERE t.id < 700', 1],
	view => ['WITH w AS MATERIALIZED (SELECT t.id, a.name FROM t JOIN a ON a.k = t.id) SELECT * FROM w UNION ALL SELECT * FROM w', 0],
	# what a pipeline does not return, or not all at once
	limit => ['SELECT t.id, a.name FROM t JOIN a ON a.k = t.id LIMIT 2000', 0],
	json => ['SELECT t.id, t.j FROM t JOIN a ON a.k = t.id', 0],
	open => ['SELECT t.id, t.b::numeric / 3, few.n FROM t JOIN few ON few.n = t.id', 1],
	right => ['SELECT t.id, a.k, a.name FROM t RIGHT JOIN a ON a.k = t.id AND t.g = 1', 0],
	locked => ['SELECT t.id, a.name FROM t JOIN a ON a.k = t.id FOR UPDATE OF t', 0],
	lateral => ['SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL (SELECT t.id, a.name FROM t JOIN a ON a.k = t.id WHERE t.g < v.x OFFSET 0) s', 0]);
my %SQL = map { ($_ => $QUERY{$_}[0]) } grep { $_ ne 'locked' } keys %QUERY;

sub plan_of { my ($query, $options) = @_; return well($session, 'EXPLAIN (COSTS OFF' . ($options // '') . ") $query") }

well($session, 'SET gpuhash.force_offload = on');
unlike(plan_of($SQL{inner}), qr/GpuHashRows/, 'without columns the joins return their rows');
well($session, "SELECT gpuhash_prewarm('t')");
for my $name (sort keys %QUERY)
{
	my $plan = plan_of($QUERY{$name}[0]);
	($QUERY{$name}[1] ? \&like : \&unlike)->($plan, qr/GpuHashRows/, "$name: " . ($QUERY{$name}[1] ? 'the node is there' : 'it is not')) or diag($plan);
}
my $plan = plan_of($SQL{two}, ', ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF');
like($plan, qr/GpuHashRows.*Output: t\.n, a\.name, few\.what.*Steps: .*Collect \(rows=\d+\).*Engine: cpu.*Column Pages: \d\d\d.*Rows Collected: [1-9]/s, 'EXPLAIN shows columns, and rows') or diag($plan);
# results of subqueries that run once have their names there
my $once = 'SELECT t.id, (SELECT max(n) FROM few) + t.g, a.v FROM t JOIN a ON a.k = t.id WHERE t.n > (SELECT min(n) FROM few)';
$SQL{once} = $once;
my ($output) = plan_of($once, ', VERBOSE') =~ /GpuHashRows.*?Output: (.*?)\n/s;
is($output, (well($other, "EXPLAIN (COSTS OFF, VERBOSE) $once") =~ /Output: (.*?)\n/)[0], 'and names results of subqueries as PostgreSQL does');
GpuHash::Resident::check($session, 'by one process', queries => \%SQL);
well($session, $PARALLEL);
like(plan_of($SQL{inner}), qr/Parallel Custom Scan \(GpuHashRows\)/, 'by several processes');
GpuHash::Resident::check($session, 'by several processes, round ' . $_, queries => \%SQL) for 1, 2;
# no row is wanted of what the first participant has begun to read
well($session, 'SET max_parallel_workers = 0');
$plan = plan_of('SELECT * FROM (SELECT t.id, a.v FROM t JOIN a ON a.k = t.id OFFSET 0) s JOIN generate_series(1, 0) e(k) ON e.k = s.id', ', ANALYZE, TIMING OFF, SUMMARY OFF');
like($plan, qr/GpuHashRows\) \(actual rows=1(\.00)? .*Rows Collected: [1-9]/s, 'an early end of a parallel query: what was read is counted') or diag($plan);
well($session, 'RESET max_parallel_workers; SET max_parallel_workers_per_gather = 0');

# by costs: few rows of many
well($session, 'SET gpuhash.force_offload = off');
like(plan_of('SELECT t.id, few.what FROM t JOIN few ON few.n = t.id'), qr/GpuHashRows|Nested Loop|Hash Join/, 'by costs there is some plan');
unlike(plan_of('SELECT t.id, few.what FROM t JOIN few ON few.g = t.g'), qr/GpuHashRows/, 'not where most rows come out');
well($session, 'SET gpuhash.force_offload = on; SET gpuhash.enable_rows = off');
unlike(plan_of($SQL{inner}), qr/GpuHashRows/, 'gpuhash.enable_rows = off');
well($session, 'SET gpuhash.enable_rows = on');

# ------------------------------------------------------------------ memory, early ends, errors

for my $memory ('64kB', '1MB')
{
	well($session, "SET work_mem = '$memory'; SET hash_mem_multiplier = 1");
	GpuHash::Resident::check($session, "work_mem = $memory", queries => \%SQL);
	well($session, $PARALLEL);
	GpuHash::Resident::check($session, "work_mem = $memory, by several processes", queries => \%SQL);
	well($session, 'SET max_parallel_workers_per_gather = 0');
}
well($session, 'RESET work_mem; RESET hash_mem_multiplier');
# many more rows than expected
well($other, 'CREATE TABLE same AS SELECT 5 AS g, i AS m FROM generate_series(1, 60) i');
well($session, "SET work_mem = '4MB'");
GpuHash::Resident::check($session, 'more rows than work_mem holds', queries => { many => 'SELECT t.id, t.x, t.b, same.m FROM t JOIN same ON same.g = t.g' });
well($session, 'RESET work_mem');

for my $name (qw(inner two union))
{
	well($session, "SET cursor_tuple_fraction = 1; BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR $SQL{$name}");
	is(scalar(() = well($session, 'FETCH 5 FROM c') =~ /^/mg), 5, "$name: a cursor has rows");
	my (undef, $error) = $session->do('SELECT 1 / 0');
	like($error, qr/22012/, 'an error ends it');
	well($session, 'ROLLBACK TO s');
	well($session, "DECLARE c CURSOR FOR $SQL{$name}");
	well($session, 'FETCH 3 FROM c');
	well($session, 'CLOSE c');
	well($session, 'COMMIT');
	well($session, "BEGIN; DECLARE c SCROLL CURSOR FOR $SQL{$name}");
	my $forward = well($session, 'FETCH 20 FROM c');
	well($session, 'MOVE ABSOLUTE 0 FROM c');
	is(well($session, 'FETCH 20 FROM c'), $forward, 'a cursor that goes back');
	well($session, 'COMMIT');
}
for my $error ('1 / (t.id - 300)', '(t.g - 2147483647) - t.id')
{
	my $sql = "SELECT t.id, $error FROM t JOIN a ON a.k = t.id";
	my (undef, $want) = $other->do($sql);
	isnt($want, '', "PostgreSQL has an error: $error");
	is(($session->do($sql))[1], $want, 'and so has this');
}
my (undef, $late) = $session->do('SELECT count(*) FROM (SELECT 1 / (t.g - 3) FROM t JOIN a ON a.k = t.id WHERE t.g <> 3 OFFSET 0) s');
is($late, '', 'no error of rows that conditions leave out');

# kept plans, parameters, roles
well($session, 'SET plan_cache_mode = force_generic_plan; PREPARE p(int, text) AS SELECT t.id, t.x, a.name FROM t JOIN a ON a.k = t.id WHERE t.g = $1 AND t.x < $2 ORDER BY 1');
for my $g (1 .. 3)
{
	is(well($session, "EXECUTE p($g, 'x3')"), well($other, "SELECT t.id, t.x, a.name FROM t JOIN a ON a.k = t.id WHERE t.g = $g AND t.x < 'x3' ORDER BY 1"), "a prepared query, $g");
}
like(well($session, "EXPLAIN EXECUTE p(1, 'x')"), qr/GpuHashRows/, 'by the node');
well($other, "CREATE ROLE reader; GRANT SELECT ON a, b, few TO reader; GRANT SELECT (id, x, g) ON t TO reader; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t TO reader USING (g < 4)");
for my $in ($session, $other) { well($in, 'SET ROLE reader') }
is(well($session, 'SELECT t.id, a.name FROM t JOIN a ON a.k = t.id ORDER BY 1'), well($other, 'SELECT t.id, a.name FROM t JOIN a ON a.k = t.id ORDER BY 1'), 'a policy hides the same rows');
like(($session->do('SELECT t.id, t.b FROM t JOIN a ON a.k = t.id'))[1], qr/42501/, 'no privilege on a column');
for my $in ($session, $other) { well($in, 'RESET ROLE') }
well($other, 'ALTER TABLE t DISABLE ROW LEVEL SECURITY');

# ------------------------------------------------------------------ beside others

# rows that were updated meanwhile are looked at once more, with all of their query
{
	my $third = $server->session;
	well($third, 'SET gpuhash.force_offload = on');
	well($other, 'BEGIN; UPDATE t SET g = 8 WHERE id = 300');
	$third->send('UPDATE t SET n = -1 FROM a, b WHERE a.k = t.id AND b.k = a.k AND t.g <> 8 AND t.id BETWEEN 290 AND 310 RETURNING t.id');
	sleep 0.3;
	well($other, 'COMMIT');
	my ($got, $error) = $third->receive;
	is($error, '', 'an update that waited');
	unlike($got, qr/^300$/m, 'leaves out the row that has changed');
	my $update = 'UPDATE a SET v = v + 1000 FROM t WHERE t.id = a.k AND t.g = 3 AND a.v < 100 RETURNING a.k';
	my ($key) = split /\n/, well($other, 'SELECT a.k FROM a JOIN t ON t.id = a.k WHERE t.g = 3 AND a.v < 100 ORDER BY 1');
	well($other, "BEGIN; UPDATE a SET v = 500 WHERE k = $key");
	$third->send($update);
	sleep 0.3;
	well($other, 'COMMIT');
	($got, $error) = $third->receive;
	is($error, '', 'another update that waited');
	cmp_ok(scalar(() = $got =~ /^/mg), '>', 0, 'changes rows');
	unlike($got, qr/^$key$/m, 'but not that which has changed');
	$third->close;
}
my $end = time + 4;
my @pids = write_until($server, $end + 60, $seed, {
	0 => sub { sleep rand() * 0.2; return 'VACUUM t' },
	1 => sub { my $id = int(rand($ROWS)); sleep rand() * 0.02; return rand() < 0.5 ? "UPDATE t SET g = (g + 1) % 9, n = n + 1 WHERE id BETWEEN $id AND $id + 20" : "UPDATE a SET v = v + 1 WHERE k % 97 = $id % 97" } });
my ($rounds, $wrong) = (0, '');
while (time < $end)
{
	my $answer = GpuHash::Resident::compare($session, queries => { map { ($_ => $SQL{$_}) } qw(inner two left anti) });
	$wrong .= $answer->{wrong};
	well($session, ++$rounds % 2 ? $PARALLEL : 'SET max_parallel_workers_per_gather = 0');
}
end_writers($server, @pids);
is($wrong, '', "no difference beside writers, in $rounds rounds");

$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
