# Which joins the planner gives a device as a whole, at its own costs: those that leave few rows, also
# where the first joins of a chain leave many; but not those that leave few by an estimate that is worth
# nothing.  And what pages cost, by where they are.
use GpuHash::Test 'module';
use GpuHash::Service;

my $service = GpuHash::Service->new(conf => ['gpuhash.force_offload = off', 'gpuhash.device_start_cost = 0',
	'gpuhash.device_page_cost = 0.05', 'gpuhash.device_bus_cost = 0.01', 'shared_buffers = 256MB',
	'gpuhash.batch_rows = 16384', 'enable_material = on']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $session = $server->session;

my (undef, $made) = $session->do(<<'SQL');
CREATE TABLE facts AS SELECT i AS id, i % 1000 AS day, i * 13 % 100000 AS k, i % 20000 AS a,
	i % 20000 % 200 AS b, i * 7 AS v, repeat('x', 100) AS filler FROM generate_series(1, 200000) i;
CREATE TABLE customers AS SELECT i AS k, i % 500 AS region, 'name ' || i AS name
	FROM generate_series(0, 99999) i;
ALTER TABLE customers ADD PRIMARY KEY (k);
CREATE TABLE suppliers AS SELECT i AS k, i % 500 AS region FROM generate_series(0, 19999) i;
ALTER TABLE suppliers ADD PRIMARY KEY (k);
-- b tells nothing that a does not
CREATE TABLE pairs AS SELECT i AS a, i % 200 AS b, i AS p FROM generate_series(0, 19999) i;
ALTER TABLE pairs ADD PRIMARY KEY (a, b);
CREATE TABLE bs AS SELECT i AS b, 'b ' || i AS name FROM generate_series(0, 199) i;
ALTER TABLE bs ADD PRIMARY KEY (b);
-- facts are of one era
CREATE TABLE days AS SELECT i AS day, i / 1000 AS era FROM generate_series(0, 99999) i;
CREATE TABLE nobody (LIKE facts);
VACUUM ANALYZE facts, customers, suppliers, pairs, bs, days;
SQL
is($made, '', 'the tables are made');

sub plan_of
{
	my ($query) = @_;
	return ($session->do($query =~ /EXPLAIN/ ? $query : "EXPLAIN (COSTS OFF) $query"))[0];
}

# The query's answer is PostgreSQL's.
sub is_right
{
	my ($name, $query) = @_;
	my $digest = GpuHash::Service::digest_sql($query);
	my ($got) = $session->do($digest);
	my ($want) = $session->do("SET gpuhash.enabled = off; $digest; RESET gpuhash.enabled");
	is($got, $want, "$name: the answer");
	return;
}

# A row has ten matches: the device does that, too, and hashes the smaller table, whichever PostgreSQL would; but a key of
# which there are thousands is left to the host.
$session->do(<<'SQL');
CREATE TABLE lines AS SELECT i % 2000 AS k, i AS v, 'line ' || i % 3 AS kind FROM generate_series(1, 20000) i;
CREATE TABLE crowds AS SELECT CASE WHEN i % 2 = 0 THEN 7 ELSE i % 2000 END AS k, i AS v FROM generate_series(1, 20000) i;
VACUUM ANALYZE lines, crowds;
SQL
for my $from ('facts f JOIN lines l ON l.k = f.k', 'lines l JOIN facts f ON f.k = l.k')
{
	my $query = "SELECT l.kind, count(*), sum(f.v) FROM $from GROUP BY l.kind";
	my $plan = plan_of($query);
	like($plan, qr/\A\s*Custom Scan \(GpuHashAggregate\).*GpuHashJoin.*Seq Scan on facts f.*Seq Scan on lines l/s, "several matches: $from");
	is_right($from, $query);
}
like(plan_of('EXPLAIN (ANALYZE, COSTS OFF) SELECT l.kind, count(*) FROM facts f JOIN lines l ON l.k = f.k GROUP BY 1'),
	qr/Scan f \(rows=200000\), Join l.*Engine: cuda/s, 'several matches are found on the device');
is_right('a key with thousands of matches', 'SELECT count(*), sum(c.v) FROM facts f JOIN crowds c ON c.k = f.k');

# Groups that the planner takes to be few are grouped again where they are, if they are not.
$session->do('CREATE TABLE few AS SELECT i AS k, i % 100 AS v FROM generate_series(1, 200000) i; ALTER TABLE few ALTER k SET (n_distinct = 10);
	VACUUM ANALYZE few');
my $again = 'SELECT count(*), max(s) FROM (SELECT k, sum(v) AS s FROM few GROUP BY k) x';
like(plan_of("EXPLAIN (ANALYZE, COSTS OFF) $again"), qr/GpuHashAggregate.*GpuHashAggregate.*Groups Left on Device: 200000/s, 'groups of groups that were to be few');
is_right('groups of groups', $again);

my @WHOLE = (
	['rows that the last join leaves', 'SELECT f.v, s.k FROM facts f JOIN customers c ON c.k = f.k
		JOIN suppliers s ON s.k = f.a AND s.region = c.region WHERE f.day < 900'],
	['rows that have a match', 'SELECT f.v FROM facts f
		WHERE f.day < 100 AND EXISTS (SELECT FROM pairs p WHERE p.a = f.k AND p.p > 7)']);
for my $workers (0, 2)
{
	$session->do("SET max_parallel_workers_per_gather = $workers; SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0");
	for (@WHOLE)
	{
		my ($name, $query) = @$_;
		my $plan = plan_of($query);
		ok($plan =~ /GpuHashRows/ && $plan !~ /Hash Join|Nested Loop|Merge Join/, "$name, $workers workers")
			or diag($plan);
		is_right("$name, $workers workers", $query);
	}

	# the first ones of many rows, but not all of them; nor those that an index has in that order; nor where something that has
	# no program is computed of each, or the order has none
	my $first = 'FROM facts f JOIN customers c ON c.k = f.k ORDER BY';
	my $limit = 'LIMIT 10 OFFSET 5';
	for my $query ("SELECT f.v, c.name $first f.v % 1000 DESC, f.id $limit", "SELECT f.v * 2, c.name $first 1, f.id $limit", "SELECT f.*, c.* $first c.region, f.id $limit")
	{
		like(plan_of($query), qr/GpuHashRows/, "first rows, $workers workers: $query");
		is_right("first rows, $workers workers", $query);
	}
	for my $query ("SELECT f.v, c.name $first f.v % 1000 DESC, f.id", "SELECT f.v, c.name $first md5(c.name), f.id $limit",
		"SELECT f.v, regexp_replace(c.name, 'a', 'b') $first f.v % 1000, 2 $limit", "SELECT f.v, c.name $first f.v % 1000 DESC, f.id $limit FOR UPDATE OF f",
		"CREATE INDEX ordered ON facts (v, id); EXPLAIN (COSTS OFF) SELECT f.v, c.name $first f.v, f.id $limit; DROP INDEX ordered")
	{
		unlike(plan_of($query), qr/GpuHashRows/, "no first rows, $workers workers: $query");
	}

	# also where joins are searched at random, and rows just take the place of a hash join
	my $plan = plan_of("SET geqo_threshold = 2; EXPLAIN (COSTS OFF) $WHOLE[1][1]; RESET geqo_threshold");
	like($plan, qr/GpuHashRows/, "$WHOLE[1][0], with GEQO, $workers workers");

	# keys of two columns, of which each row of facts has one match
	my $pairs = 'SELECT f.v, p.p FROM facts f JOIN pairs p ON p.a = f.a AND p.b = f.b';
	my $equal = 'SELECT f.v, p.p, bs.name FROM facts f JOIN bs ON bs.b = f.b
		JOIN pairs p ON p.a = f.a AND p.b = bs.b';
	for my $query ($pairs, $equal)
	{
		my $plan = plan_of($query);
		unlike($plan, qr/GpuHashRows/, "rows of which far too few are expected, $workers workers");
		is_right("rows of which far too few are expected, $workers workers", $query);
	}
	# but their groups, however few rows are expected; also where the join with far too few is an inner side
	for my $from ('facts f JOIN pairs p ON p.a = f.a AND p.b = f.b',
		'customers c JOIN (facts f JOIN pairs p ON p.a = f.a AND p.b = f.b) ON c.k = f.k')
	{
		my $query = "SELECT p.b, count(*), sum(f.v) FROM $from WHERE f.day < 900 GROUP BY p.b";
		my $plan = plan_of($query);
		ok($plan =~ /GpuHashAggregate/ && $plan !~ /GpuHashRows|Hash Join|Nested Loop|Merge Join/,
			"groups of rows of which far too few are expected, $workers workers") or diag($plan);
		is_right("their groups, $workers workers", $query);
	}

	# a subquery of which the scan's first condition compares the result, with an anti join above; and a key that is
	# equal to one of a table of which no row comes out
	for my $query ('SELECT count(*), sum(f.v) FROM facts f WHERE f.day > (SELECT avg(day) FROM facts)
			AND NOT EXISTS (SELECT FROM customers c WHERE c.k = f.k AND c.region > 300)',
		'SELECT count(*), sum(f.v) FROM facts f JOIN customers c ON c.k = f.k
			WHERE EXISTS (SELECT FROM pairs p WHERE p.a = c.k AND p.p <> c.region)')
	{
		my ($ran) = $session->do("EXPLAIN (ANALYZE, COSTS OFF) $query");
		is(() = $ran =~ /Engine: (?!cuda)/g, 0, "all is done by the device: $query, $workers workers") or diag($ran);
		is_right("$query, $workers workers", $query);
	}

	# others, of which one process does not know the result in time
	for my $where ('f.day > (SELECT avg(day) FROM facts)', 'c.region < (SELECT avg(region) FROM customers)')
	{
		is_right("$where, $workers workers", "SELECT count(*), sum(f.v) FROM facts f JOIN customers c ON c.k = f.k WHERE $where");
	}

	# one that PostgreSQL does not run, which would fail: no row reaches it, or none is there
	for my $where ('f.day < 0 AND f.v > (SELECT 1 / count(*) FROM nobody)', 'f.day > (SELECT 1 / count(*) FROM nobody)')
	{
		my $from = $where =~ /day > / ? 'nobody' : 'facts';
		my ($sum, $error) = $session->do("SELECT count(*), sum(f.v) FROM $from f
			WHERE $where AND NOT EXISTS (SELECT FROM customers c WHERE c.k = f.k AND c.region > 300)");
		is("$sum$error", '0|', "a subquery that is not run: $where, $workers workers") if $workers == 0;
	}

	# each process of several would have all groups made
	my $groups = 'SELECT count(*) FROM customers c JOIN (SELECT k, sum(v) AS s FROM facts GROUP BY k) g ON g.k = c.k
		WHERE c.name <> g.s::text';
	my $beside = plan_of($groups);
	my ($below) = $beside =~ /^( *)->  Gather[^\n]*\n((?:\1 +[^\n]*\n?)*)/m ? $2 : '';
	unlike($below, qr/-> {2}Custom Scan \(GpuHashAggregate/, "groups that each process would make, $workers workers");
	is_right("groups beside a parallel scan, $workers workers", $groups);
	($plan) = $session->do(
		"SET gpuhash.explain_why = on; EXPLAIN (COSTS OFF) $pairs; RESET gpuhash.explain_why");
	unlike($plan, qr/costs less as a whole/, 'which EXPLAIN does not call a plan that costs more');
}

# A device makes 16 tables at most: of 17 joins the last one is the host's.
my @keys = map { "k$_" } 1 .. 17;
(undef, $made) = $session->do(join(';', 'CREATE TABLE spokes AS SELECT i AS id, ' .
	join(', ', map { "i * 7 % (50 + $_) AS k$_" } 1 .. 17) . ' FROM generate_series(1, 30000) i',
	'CREATE TABLE hub AS SELECT i AS k, i * 3 AS w FROM generate_series(0, 80) i', 'VACUUM ANALYZE spokes, hub'));
is($made, '', 'a table with many keys is made');
$session->do('SET max_parallel_workers_per_gather = 0; SET join_collapse_limit = 1; SET geqo = off; SET gpuhash.force_offload = on');
for my $n (16, 17)
{
	my $query = 'SELECT id' . join('', map { ", $_.w AS w$_" } @keys[0 .. $n - 1]) . ' FROM spokes s' .
		join('', map { " JOIN hub $_ ON $_.k = s.$_" } @keys[0 .. $n - 1]) . ' WHERE id % 100 = 3';
	my $plan = plan_of($query);
	my $expected = $n == 16 ? qr/\ACustom Scan \(GpuHashRows\)/ :
		qr/\ACustom Scan \(GpuHashJoin\)\n(?:  \w.*\n)*  ->  Custom Scan \(GpuHashRows\)/;
	like($plan, $expected, "$n joins") or diag($plan);
	is_right("$n joins", $query);
}
$session->do('RESET max_parallel_workers_per_gather; RESET join_collapse_limit; RESET geqo; RESET gpuhash.force_offload');

# A subquery in the conditions of an inner side is the host's, and costs what it does there: groups are better.
my $asking = 'SELECT f.day, sum(f.v) FROM facts f JOIN suppliers s ON s.k = f.a WHERE s.k < 3000 AND
	s.region > (SELECT count(*) FROM customers c WHERE c.region = s.region) GROUP BY f.day';
$session->do('SET max_parallel_workers_per_gather = 0');
unlike(plan_of($asking), qr/SubPlan/, 'a subquery below a join for the device') or diag(plan_of($asking));
# PostgreSQL reads customers for each supplier
is_right('a subquery below a join for the device', $asking =~ s/3000/300/r);
$session->do('RESET max_parallel_workers_per_gather');

# Groups are made on the device where a condition on one table may leave all keys that the other one has: a hundredth of the
# rows is expected, and all come.
for my $keys ('f.a, d.day, f.b, f.k', 'f.a, f.filler, d.day')
{
	my $query = "SELECT $keys, sum(f.v) AS s FROM facts f JOIN days d ON d.day = f.day WHERE d.era = 0 GROUP BY ROLLUP ($keys)";
	$session->do("SET max_parallel_workers_per_gather = 0; SET work_mem = '256kB'");
	my $plan = plan_of($query);
	ok($plan =~ /GpuHashAggregate/ && $plan !~ /GpuHashRows/, "groups of far more rows than are expected, by $keys") or diag($plan);
	# nor do they come for an order of theirs
	$plan = plan_of("$query ORDER BY $keys");
	ok($plan =~ /GpuHashAggregate/ && $plan !~ /GpuHashRows/, "in an order, by $keys") or diag($plan);
	is_right("groups by $keys", "SELECT count(*), sum(s), sum(hashtext(x::text)::bigint) FROM ($query) x");
	$session->do('RESET max_parallel_workers_per_gather; RESET work_mem');
}

# A page costs less where it is in shared_buffers, and a fifth of that where the device reads it there, at the least the
# bus.  All are, of this table; after a restart none is, until it is read.
my $pages = ($session->do("SELECT pg_relation_size('facts') / current_setting('block_size')::int"))[0];

sub cost_of
{
	my ($plan) = $_[0]->do('SET max_parallel_workers_per_gather = 0; EXPLAIN SELECT sum(v) FROM facts');
	like($plan, qr/GpuHashAggregate/, 'a sum by the device');
	return $plan =~ /GpuHashAggregate\)\s+\(cost=[\d.]+\.\.([\d.]+)/ ? $1 : 0;
}
ok($service->wait_direct, 'the device reads shared buffers');
my $in_pool = cost_of($session);
$session->close;
$server->stop;
$server->start;
ok($service->wait_ready, 'the service is ready again');
ok($service->wait_direct, 'the device reads shared buffers again');
$session = $server->session;
my $not_there = cost_of($session);
my $more = $pages * (1 + 0.05 - 0.01);
cmp_ok(abs($not_there - $in_pool - $more), '<', 0.02 * $pages, "$pages pages that have to be read cost $more more");
$session->do('SET gpuhash.enabled = off; SELECT count(*) FROM facts; RESET gpuhash.enabled');
cmp_ok(abs(cost_of($session) - $in_pool), '<', 0.02 * $pages, 'when they were read they cost what they did');
$session->close;
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
