# Groups that a device makes once for several nodes of a query (src/fragment/shared_groups.c): which nodes have them in
# common, that answers are PostgreSQL's, and that nothing is left on the device.  In the place of the CUDA engine there is a
# stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Service;

# of two devices, which has most memory left changes from node to node; the machine of the device itself may have just one
my $service = GpuHash::Service->new(devices => ($ENV{GPUHASH_STAND_IN} || '') eq 'no' ? 1 : 2, conf => ['shared_buffers = 128MB', 'max_connections = 20']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
$server->query(<<'SQL');
CREATE TABLE f AS SELECT i AS id, nullif(i % 700, 0) AS k, i % 40 AS j, i % 3 AS z, i::bigint * 3 % 1009 AS v, (i % 500 / 4.0)::numeric(10, 2) AS n, 'name ' || i % 613 AS t FROM generate_series(1, 6000) i;
CREATE TABLE back AS SELECT id, k, CASE WHEN id = 17 THEN 'NaN' ELSE n END AS n FROM f;
CREATE TABLE d AS SELECT i AS k, i % 11 AS p, i % 50 AS e FROM generate_series(1, 650) i;
CREATE TABLE e AS SELECT i AS e, i % 7 AS q FROM generate_series(1, 45) i;
CREATE VIEW v AS SELECT k, sum(n) AS s, count(*) AS c FROM f GROUP BY k;
ANALYZE f; ANALYZE back; ANALYZE d; ANALYZE e;
SQL

my $session = $server->session;
my $SETTINGS = "SET max_parallel_workers_per_gather = 0; SET gpuhash.engine = cuda; SET gpuhash.force_offload = on; SET gpuhash.batch_rows = 256; SET jit = off; SET enable_nestloop = on";

sub well
{
	my ($sql) = @_;
	my ($out, $err) = $session->do($sql);
	is($err, '', $sql) if $err ne '';
	return $out;
}

sub answer
{
	my ($sql) = @_;
	return join('', $session->do("SELECT md5(coalesce(string_agg(r::text, '|' ORDER BY r::text), '')), count(*) FROM ($sql) r"));
}

# Of how many nodes the groups were there, and the answer.
sub shares
{
	my ($what, $sql, $nodes) = @_;
	well("RESET ALL; SET gpuhash.enabled = off");
	my $want = answer($sql);
	well("RESET ALL; $SETTINGS");
	my $plan = well("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql");
	my $shown = () = $plan =~ /Groups Shared: [1-9]/g;
	is($shown, $nodes, "$what: $nodes nodes have the groups of another one") or diag($plan);
	is(answer($sql), $want, "$what: PostgreSQL's answer");
	return $plan;
}

my $W = 'WITH w AS (SELECT k, sum(n) AS s, count(*) AS c FROM f GROUP BY k)';
my $plan = shares('the largest', 'WITH w AS (SELECT k, sum(n) AS s FROM f GROUP BY k) SELECT k, s FROM w WHERE s = (SELECT max(s) FROM w)', 1);
like($plan, qr/Steps: Rows w \(rows=700\), Aggregate \(rows=1\)\n *Engine: cuda/, 'which is found on the device') or diag($plan);
like($plan, qr/Steps: Shared Groups f_1 \(rows=700\)/, 'and no row is read for it') or diag($plan);
shares('joined with itself', "$W SELECT a.k, a.s, b.s, a.c + b.c FROM w a JOIN w b USING (k)", 1);
shares('read three times', "$W SELECT (SELECT max(s) FROM w), (SELECT min(s) FROM w), count(s), sum(s) FROM w", 2);
shares('a join of groups with a table', "$W SELECT d.p, w.s, w.c FROM w JOIN d USING (k) WHERE s = (SELECT max(s) FROM w WHERE c > 3)", 1);
shares('of an aggregate without keys', "WITH w AS (SELECT sum(n) AS s FROM f WHERE z = 1) SELECT k FROM f WHERE n < (SELECT s FROM w) GROUP BY k HAVING sum(n) < (SELECT s FROM w)", 1);
shares('a view, read twice', 'SELECT a.*, b.* FROM v a JOIN v b USING (k)', 1);
shares('written twice, with other conditions on the groups', 'SELECT a.k, b.s FROM (SELECT k, sum(n) AS s FROM f GROUP BY k HAVING sum(n) > 400) a JOIN (SELECT k, sum(n) AS s FROM f GROUP BY k HAVING sum(n) < 600) b USING (k)', 1);
shares('two by two', 'WITH w AS (SELECT k, sum(n) AS s FROM f GROUP BY k), u AS (SELECT j, max(v) AS m FROM f GROUP BY j) SELECT (SELECT count(*) FROM w WHERE s = (SELECT max(s) FROM w)), (SELECT count(*) FROM u WHERE m = (SELECT max(m) FROM u))', 2);
shares('conditions on rows', 'WITH w AS (SELECT k, t, sum(v) AS s FROM f WHERE z > 0 AND t LIKE \'name 1%\' GROUP BY k, t) SELECT * FROM w WHERE s = (SELECT max(s) FROM w)', 1);
shares('DISTINCT in an aggregate', 'WITH w AS (SELECT j, count(DISTINCT k) AS c FROM f GROUP BY j) SELECT * FROM w WHERE c = (SELECT max(c) FROM w)', 1);
shares('DISTINCT of several arguments', 'WITH w AS (SELECT j, count(DISTINCT k) AS c, count(DISTINCT t) FILTER (WHERE z > 0) AS d FROM f GROUP BY j) SELECT a.j, a.c, b.c, a.d + b.d FROM w a JOIN w b USING (j)', 1);
shares('grouping sets', 'WITH w AS (SELECT k, j, sum(v) AS s FROM f GROUP BY GROUPING SETS ((k, j), (k))) SELECT a.k, a.s FROM w a JOIN w b ON a.k = b.k AND a.s > b.s', 1);
shares('a join', 'WITH w AS (SELECT f.k, p, sum(n) AS s FROM f JOIN d ON d.k = f.k WHERE e > 3 GROUP BY f.k, p) SELECT * FROM w WHERE s = (SELECT max(s) FROM w)', 1);
shares('a star, and a left join', 'WITH w AS (SELECT f.k, p, q, sum(n) AS s FROM f JOIN d ON d.k = f.k LEFT JOIN e ON e.e = f.j GROUP BY f.k, p, q) SELECT * FROM w WHERE s = (SELECT max(s) FROM w)', 1);
shares('a subquery in it: its only group, but not those of the rows that were handed back', 'WITH w AS (SELECT k, sum(n) AS s FROM f WHERE j > (SELECT avg(p) FROM d) GROUP BY k) SELECT * FROM w WHERE s = (SELECT max(s) FROM w)', 1);
shares('no group', 'WITH w AS (SELECT k, sum(n) AS s FROM f WHERE id < 0 GROUP BY k) SELECT * FROM w WHERE s = (SELECT max(s) FROM w)', 0);

# not the same, or not whole
shares('of other rows', 'SELECT a.k, b.s FROM (SELECT k, sum(n) AS s FROM f WHERE z = 1 GROUP BY k) a JOIN (SELECT k, sum(n) AS s FROM f WHERE z = 2 GROUP BY k) b USING (k)', 0);
shares('of other columns', 'SELECT a.k, b.s FROM (SELECT k, sum(n) AS s FROM f GROUP BY k) a JOIN (SELECT k, sum(v) AS s FROM f GROUP BY k) b USING (k)', 0);
shares('a row handed back', 'WITH w AS (SELECT k, sum(n) AS s, count(*) AS c FROM back GROUP BY k) SELECT * FROM w WHERE c = (SELECT max(c) FROM w)', 0);
shares('a right join', 'WITH w AS (SELECT d.k, count(f.id) AS c FROM f RIGHT JOIN d ON d.k = f.k GROUP BY d.k) SELECT * FROM w WHERE c = (SELECT max(c) FROM w)', 0);
shares('for each row, with its parameter', 'SELECT x.z, y.* FROM (VALUES (0), (1), (2)) x (z), LATERAL (WITH w AS (SELECT k, sum(n) AS s FROM f WHERE f.z = x.z GROUP BY k) SELECT k, s FROM w WHERE s = (SELECT max(s) FROM w)) y', 0);
$SETTINGS .= '; SET gpuhash.enable_inline = off';
shares('a query in WITH that is not inlined', "$W SELECT k, s FROM w WHERE s = (SELECT max(s) FROM w)", 0);
$SETTINGS =~ s/; SET gpuhash.enable_inline = off//;

# a plan that is kept: a parameter, and rows that have changed
well("RESET ALL; $SETTINGS; SET plan_cache_mode = force_generic_plan");
well('PREPARE p(int) AS WITH w AS (SELECT k, sum(v) AS s FROM f WHERE j > $1 GROUP BY k) SELECT k, s FROM w WHERE s = (SELECT max(s) FROM w)');
for my $j (3, 30, 3)
{
	my $want = do { well('SET gpuhash.enabled = off'); answer("WITH w AS (SELECT k, sum(v) AS s FROM f WHERE j > $j GROUP BY k) SELECT k, s FROM w WHERE s = (SELECT max(s) FROM w)") };
	well('SET gpuhash.enabled = on');
	my ($plan) = well("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE p($j)");
	like($plan, qr/Groups Shared: [1-9]/, "a plan that is kept, with $j");
	my $rows = join '|', sort map { s/^(.*)\|(.*)$/($1,$2)/r } split /\n/, well("EXECUTE p($j)");
	is(well("SELECT md5('$rows')"), (split /\|/, $want)[0], 'and its answer');
	well('UPDATE f SET v = v + 1 WHERE id % 5 = 0');
}

# two pairs of nodes that are the same as long as two parameters are
my $PAIRS = 'WITH w AS (SELECT k, sum(v) AS s FROM f WHERE j > %s GROUP BY k), u AS (SELECT k, sum(v) AS s FROM f WHERE j > %s GROUP BY k)
	SELECT (SELECT count(*) FROM w WHERE s = (SELECT max(s) FROM u)), (SELECT count(*) FROM u WHERE s >= (SELECT min(s) FROM w))';
well('PREPARE pairs(int, int) AS ' . sprintf($PAIRS, '$1', '$2'));
for my $pair ([3, 4], [3, 3], [4, 3])
{
	my ($want) = $session->do('SET gpuhash.enabled = off; ' . sprintf($PAIRS, @$pair) . '; SET gpuhash.enabled = on');
	my $plan = well("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE pairs($pair->[0], $pair->[1])");
	my $shown = () = $plan =~ /Groups Shared: [1-9]/g;
	cmp_ok($shown, '>=', 2, "two pairs of nodes, with @$pair: $shown have groups of another one") or diag($plan);
	is(well("EXECUTE pairs($pair->[0], $pair->[1])"), $want, 'and their answer');
}

# a query that ends before the second node is asked, by its LIMIT, its cursor, an error
well("RESET ALL; $SETTINGS");
my $EARLY = "$W SELECT a.k FROM w a WHERE EXISTS (SELECT FROM f WHERE f.k = a.k) UNION ALL SELECT b.k FROM w b";
well("$EARLY LIMIT 3");
well("BEGIN; DECLARE c CURSOR FOR $EARLY; FETCH 2 FROM c; CLOSE c; COMMIT");
well("BEGIN; DECLARE c CURSOR FOR $EARLY; FETCH 2 FROM c; SAVEPOINT s");
like(join('', $session->do("SELECT 1 / (k - k) FROM ($EARLY) q")), qr/division by zero/, 'an error');
well('ROLLBACK TO s');
well('FETCH ALL FROM c; COMMIT');
like($service->settle, $GpuHash::Service::CLEAN, 'nothing is left on the device');
done_testing();
