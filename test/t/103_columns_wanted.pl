# Columns of tables that the planner would have liked to find in memory are made in the background, when they were asked for twice: the
# plan changes then.  It is bounded, harms nobody who changes or drops a table or a database, is not made for who may not read the table,
# and what fails is not made again.  Without a GPU.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Resident 'well';
use GpuHash::Service;

my $service = GpuHash::Service->new(absent => 1, conf => [@GpuHash::Resident::CONF, 'gpuhash.prewarm_columns = on', 'gpuhash.engine = auto', 'gpuhash.force_offload = off', 'random_page_cost = 0.4', 'log_min_messages = debug1']);
my $server = $service->server;
my ($session, $other);

sub begin_sessions
{
	$_->close for grep { defined } $session, $other;
	delete $service->{control};
	($session, $other) = map { $server->session } 1, 2;
	$other->do('SET gpuhash.enabled = off');
	return;
}
begin_sessions();

# A table that PostgreSQL reads through its index: a tenth of it, and there are as many pages as such rows.
sub make_table
{
	my ($name, $rows, $in) = @_;
	well($in // $other, "CREATE TABLE $name (id int, shop int NOT NULL, n int, price numeric(12, 2), pad text) WITH (autovacuum_enabled = off); INSERT INTO $name SELECT i, (i * 7919::bigint) % 2000 + 1, i % 10, i % 5000 / 4.0, repeat('x', 400) FROM generate_series(1, $rows) i; CREATE INDEX ON $name (shop)");
	well($in // $other, "VACUUM ANALYZE $name");
	return;
}

sub sum_of { return "SELECT n, sum(price) FROM $_[0] WHERE shop < 120 GROUP BY n ORDER BY n" }
sub plan_of { my ($query, $in) = @_; return well($in // $session, "EXPLAIN (COSTS OFF) $query") }
# A planning that asks.
sub ask { my ($table, $in) = @_; return plan_of(sum_of($table), $in) }
sub there { my ($table, $in) = @_; return well($in // $other, "SELECT coalesce(sum(resident), 0) FROM gpuhash_resident WHERE relation::text = '$table' AND device IS NULL") }
sub all_there { my ($table, $in) = @_; return well($in // $other, "SELECT count(*) FROM gpuhash_resident WHERE relation::text = '$table' AND device IS NULL AND resident = blocks") == 1 }
sub workers { return well($other, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpuhash columns worker'") }

sub await
{
	my ($what, $is_so) = @_;
	for (1 .. 1200) { return pass($what) if $is_so->(); sleep 0.05 }
	return fail($what);
}

# How often a table's columns were begun to be made, by the log.
sub begun
{
	my ($oid) = @_;
	my @lines = $server->log =~ /gpuhash makes columns of relation $oid of/g;
	return scalar @lines;
}
sub oid_of { my ($table, $in) = @_; return well($in // $other, "SELECT '$table'::regclass::oid") }

# Whatever was to be made has been: another table's columns are.
my $gates = 0;
sub gate
{
	my $table = 'gate_' . ++$gates;
	make_table($table, 12000);
	ask($table) for 1, 2;
	await("$table is made", sub { there($table) > 0 && workers() == 0 });
	well($other, "DROP TABLE $table");
	return;
}

# --------------------------------------------------------------- asked for twice

my $ROWS = 30000;
make_table($_, $ROWS) for 'sold', 'once', 'off';
well($other, 'CREATE TABLE shop (id int PRIMARY KEY, region int); INSERT INTO shop SELECT i, i % 6 FROM generate_series(1, 2000) i');
well($other, 'VACUUM ANALYZE shop');
my $join = 'SELECT sold.n, sum(price * sold.n) FROM sold JOIN shop ON shop.id = sold.shop WHERE region = 3 GROUP BY 1 ORDER BY 1';
like(plan_of($join), qr/Nested Loop.*Index Scan using sold_shop_idx/s, 'PostgreSQL reads the table through its index');
ask('once');
plan_of($join);
await('asked for twice, its columns are made', sub { all_there('sold') });
my $plan = plan_of($join);
like($plan, qr/GpuHashAggregate.*GpuHashJoin.*Seq Scan on sold/s, 'the plan is a chain of joins') or diag($plan);
# of few rows an index takes less all the same, whatever it is charged for pages that are in memory
well($session, 'SET random_page_cost = 4; SET parallel_setup_cost = 0; SET max_parallel_workers_per_gather = 2');
$plan = plan_of('SELECT sum(price * sold.n) FROM sold JOIN shop ON shop.id = sold.shop WHERE shop.id BETWEEN 10 AND 16');
like($plan, qr/Nested Loop.*sold_shop_idx/s, 'a hundred rows by the index') or diag($plan);
$plan = plan_of('SELECT n, sum(price) FROM sold WHERE shop BETWEEN 10 AND 16 GROUP BY n');
like($plan, qr/^(?!.*GpuHash).*sold_shop_idx/s, 'likewise of a grouping without joins') or diag($plan);
$plan = plan_of('SELECT n, sum(price) FROM sold WHERE shop BETWEEN 10 AND 700 GROUP BY n');
like($plan, qr/GpuHashAggregate.*Seq Scan on sold/s, 'but not a hundred times as many') or diag($plan);
$plan = plan_of('SELECT id, (SELECT sum(price) FROM sold WHERE sold.shop = shop.id) FROM shop WHERE region = 3 AND id < 40');
like($plan, qr/SubPlan.*sold_shop_idx/s, 'nor is a subquery unnested that few rows ask') or diag($plan);
$plan = plan_of('SELECT id, (SELECT sum(price) FROM sold WHERE sold.shop = shop.id) FROM shop WHERE region < 5');
unlike($plan, qr/SubPlan/, 'but one that most of them do') or diag($plan);
well($session, 'RESET random_page_cost; RESET parallel_setup_cost; RESET max_parallel_workers_per_gather');
is(well($session, $join), well($other, $join), 'with the same rows');
cmp_ok(GpuHash::Resident::column_pages($session, $join), '>', 0, 'out of columns');
like(ask('sold'), qr/GpuHashAggregate/, 'so is that of a grouping of the table alone');
is(begun(oid_of('once')), 0, 'what was asked for once is not made');
is(begun(oid_of('sold')), 1, 'and nothing is made twice');
ask('once');
await('but when it is asked for again', sub { there('once') > 0 });

# a plan that was not chosen would be, with columns: an anti join in the place of a subquery
make_table('apart', $ROWS);
my $not_in = 'SELECT n, sum(price) FROM apart WHERE shop NOT IN (SELECT id FROM shop WHERE region = 3) GROUP BY n ORDER BY n';
well($session, 'SET random_page_cost = 4');
# from 19 on it makes an anti join of that by itself
my $theirs = well($session, 'SHOW server_version_num') >= 190000 ? qr/Anti.*Seq Scan on apart/s : qr/HashAggregate.*Seq Scan on apart.*SubPlan/s;
like(plan_of($not_in), $theirs, 'PostgreSQL runs the subquery');
plan_of($not_in);
await('the columns of the other plan are made', sub { all_there('apart') });
like(plan_of($not_in), qr/GpuHashAggregate.*GpuHashJoin.*Join Type: Anti.*Seq Scan on apart/s, 'which is chosen then');
is(well($session, $not_in), well($other, $not_in), 'with the same rows');

# likewise one that costs less where joins' rows come of columns
make_table('lowest', $ROWS);
my $lowest = 'SELECT l.id, l.price FROM shop JOIN lowest l ON l.shop = shop.id WHERE shop.id < 20 AND l.price = (SELECT min(o.price) FROM lowest o WHERE o.shop = shop.id) ORDER BY 1';
like(plan_of($lowest), qr/SubPlan/, 'PostgreSQL runs the subquery, which reads an index');
plan_of($lowest);
await('the columns of the other plan are made', sub { all_there('lowest') });
$plan = plan_of($lowest);
like($plan, qr/GpuHashRows.*Seq Scan on lowest l/s, 'whose joins return rows by them') or diag($plan);
unlike($plan, qr/SubPlan/, 'and which has groups in place of the subquery');
is(well($session, $lowest), well($other, $lowest), 'with the same rows');
well($session, 'RESET random_page_cost');

# one statement asks once, however often it plans
make_table('again', 12000);
well($session, "DO \$\$ BEGIN FOR i IN 1 .. 5 LOOP EXECUTE 'EXPLAIN SELECT n, sum(price) FROM again WHERE shop < 120 GROUP BY n'; END LOOP; END \$\$");
gate();
is(begun(oid_of('again')), 0, 'one statement asks once');

# switched off, nobody asks; on again, what was asked for before does not count
GpuHash::Resident::configure($other, 'gpuhash.prewarm_columns', 'off');
ask('off') for 1 .. 4;
GpuHash::Resident::configure($other, 'gpuhash.prewarm_columns', 'on');
gate();
is(begun(oid_of('off')), 0, 'switched off, nothing is made');
well($session, 'SET gpuhash.enable_resident = off');
ask('off') for 1 .. 4;
well($session, 'RESET gpuhash.enable_resident');

# ------------------------------------------------------------------- who may not read

make_table('secret', 12000);
well($other, 'CREATE ROLE reader; CREATE VIEW secret_view AS SELECT * FROM secret; GRANT SELECT (id) ON secret TO reader');
well($session, 'SET ROLE reader');
like(($session->do('EXPLAIN ' . sum_of($_)))[1], qr/42501/, "denied: $_") for ('secret', 'secret_view') x 3;
well($session, 'RESET ROLE');
well($other, 'GRANT SELECT (shop, n, price) ON secret TO reader');
well($session, 'SET ROLE reader');
ask('secret') for 1 .. 3;
well($session, 'RESET ROLE');
gate();
is(begun(oid_of('secret')), 0, 'nothing is made for who may not read all of a table');
well($other, 'GRANT SELECT ON secret_view TO reader');
well($session, 'SET ROLE reader');
ask('secret_view') for 1, 2;
well($session, 'RESET ROLE');
await('through a view of its owner', sub { there('secret') > 0 });

# ------------------------------------------------------------------- what has no columns

well($session, 'CREATE TEMP TABLE temporary AS TABLE once; CREATE INDEX ON temporary (shop)');
well($session, 'VACUUM ANALYZE temporary');
well($other, 'CREATE UNLOGGED TABLE unlogged AS TABLE once; CREATE INDEX ON unlogged (shop)');
well($other, 'VACUUM ANALYZE unlogged');
for my $table ('temporary', 'unlogged') { ask($table) for 1 .. 3 }
gate();
is(begun(oid_of($_, $session)), 0, "$_: none are asked for") for 'temporary', 'unlogged';

# not at the cost of columns that queries use
make_table('more', 12000);
GpuHash::Resident::configure($other, 'gpuhash.resident_memory', well($other, "SELECT ceil(bytes / 1048576.0) FROM gpuhash_resident WHERE relation = 'sold'::regclass"));
well($session, "SELECT gpuhash_prewarm('sold')");
my $before = there('sold');
ask('more') for 1, 2;
await('there is no room for more', sub { begun(oid_of('more')) == 1 && workers() == 0 });
is(there('more'), 0, 'so they are not made');
is(there('sold'), $before, 'and others stay');
GpuHash::Resident::configure($other, 'gpuhash.resident_memory', -1);

# a standby makes its own
my $standby = $server->standby;
my ($there, $there_too) = map { $standby->session } 1, 2;
ask('once', $there) for 1, 2;
await('on a standby they are made, too', sub { all_there('once', $there_too) });
like(ask('once', $there), qr/GpuHashAggregate/, 'and used');
$_->close for $there, $there_too;
unlike($standby->log, qr/ERROR|WARNING|PANIC|TRAP/, 'a clean log');
$standby->stop;

# ------------------------------------------------------------- changes, right then

for my $change ('DROP TABLE c', 'TRUNCATE c', 'ALTER TABLE c DROP COLUMN price', 'ALTER TABLE c ALTER n TYPE bigint', 'UPDATE c SET n = n + 1', 'DELETE FROM c')
{
	make_table('c', 12000);
	ask('c') for 1, 2;
	well($other, $change);
	gate();
	well($other, 'DROP TABLE IF EXISTS c');
}

# between two parts: DDL waits for one, at most
for my $change ('DROP TABLE d', 'TRUNCATE d')
{
	make_table('d', 12000);
	my $oid = oid_of('d');
	$service->arm('columns_worker', 'hold', after => 1);
	ask('d') for 1, 2;
	await('it is in its second part', sub { $service->fired == 1 });
	$session->send($change);
	await("$change waits", sub { well($other, 'SELECT count(*) FROM pg_locks WHERE NOT granted') > 0 });
	$service->disarm;
	is(($session->receive)[1], '', "$change is done");
	await('and the worker ends', sub { workers() == 0 });
	is(begun($oid), 1, 'it was begun once');
	well($other, 'DROP TABLE IF EXISTS d');
}
gate();

# of a database, too
well($other, 'CREATE DATABASE two');
my $two = $server->session;
$two->do('\\c two');
well($two, 'SET client_min_messages = warning; CREATE EXTENSION gpuhash');
make_table('e', 12000, $two);
$service->arm('columns_worker', 'hold', after => 1);
ask('e', $two) for 1, 2;
await('it is in its second part', sub { $service->fired == 1 });
$two->close;
$session->send('DROP DATABASE two');
await('DROP DATABASE waits', sub { well($other, 'SELECT count(*) FROM pg_locks WHERE NOT granted') > 0 });
$service->disarm;
is(($session->receive)[1], '', 'for the part, and is done');
gate();
unlike($server->log, qr/(?:ERROR|FATAL|WARNING):(?!.*(?:permission denied|too many arguments))/, 'nobody has complained');

# ------------------------------------------------------------------- what fails

# what is as if nothing could be made; what ends the process
for my $kind ('no_memory', 'term')
{
	make_table('f', 12000);
	my $oid = oid_of('f');
	$service->arm('columns_worker', $kind, times => 100);
	ask('f') for 1, 2;
	await("$kind: begun", sub { begun($oid) == 1 && workers() == 0 });
	$service->disarm;
	ask('f') for 1 .. 4;
	gate();
	is(begun($oid), 1, "$kind: it is not made again, although it is asked for");
	is(there('f'), 0, 'nothing is there');
	well($other, 'DROP TABLE f');
}

# many at once: the list is short, one process makes those on it, one after the other
make_table("m_$_", 12000) for 1 .. 12;
for (1, 2) { ask("m_$_") for 1 .. 12 }
gate();
is(well($other, "SELECT count(*) FROM gpuhash_resident WHERE relation::text ~ '^m_'"), 0, 'of more tables than the list has, none is asked for twice');
my $most = 0;
for my $table (map { "m_$_" } 1 .. 6) { ask($table) for 1, 2; $most = workers() if workers() > $most }
await('one by one they are', sub { $most = workers() if workers() > $most; well($other, "SELECT count(*) FROM gpuhash_resident WHERE relation::text ~ '^m_'") == 6 });
cmp_ok($most, '<=', 1, 'by one process at a time');

# the server, too
make_table('g', 12000);
my $oid = oid_of('g');
$service->arm('columns_worker', 'kill');
# the second answer may not come any more
eval { $session->do('EXPLAIN ' . sum_of('g')) } for 1, 2;
await('the server has ended and is there again', sub { $server->log =~ /gpuhash makes no columns of tables, nor copies of indexes, in the background until the server is restarted/ });
await('it answers', sub { ($server->run('SELECT 1'))[0] == 0 });
begin_sessions();
is(begun($oid), 1, 'begun once');
ask('g') for 1 .. 4;
is(well($session, "SELECT gpuhash_prewarm('once')") > 0, 1, 'who asks by name has columns');
$_->close for $session, $other;
($session, $other) = ();
$service->stop('fast');
is(begun($oid), 1, 'none are made in the background until then');
$server->start;
begin_sessions();
ask('g') for 1, 2;
await('after a restart they are', sub { there('g') > 0 });
is(begun($oid), 2, 'begun for the second time');

# ------------------------------------------------------ subqueries that are run for each row

# Of few of the outer rows' keys there are any rows, so that the index finds far less than for the mean of its keys: it stays, though
# to read all columns would cost less than to read a seventh of the table by it
well($other, 'CREATE TABLE sevenths AS SELECT i % 7 AS k, (i % 100)::numeric(8, 2) AS c, i AS id FROM generate_series(1, 50000) i; CREATE INDEX ON sevenths (k); VACUUM ANALYZE sevenths');
well($other, 'CREATE TABLE keys AS SELECT i AS k FROM generate_series(1, 3000) i; VACUUM ANALYZE keys');
well($session, "RESET random_page_cost; SET random_page_cost = 4; SELECT gpuhash_prewarm('sevenths')");
like(plan_of('SELECT sum(c), min(id) FROM sevenths WHERE k = 3'), qr/GpuHashAggregate.*Seq Scan on sevenths/s, 'of a constant, all are read');
# as groups they would not be run for each row
well($session, 'SET gpuhash.enable_unnest = off');
for my $query ('SELECT sum((SELECT sum(c) FROM sevenths WHERE sevenths.k = keys.k)) FROM keys',
	'SELECT sum(s) FROM keys, LATERAL (SELECT sum(c) AS s FROM sevenths WHERE sevenths.k = keys.k) x',
	'SELECT sum((SELECT sum(c) FROM sevenths WHERE sevenths.k IN (keys.k, keys.k + 1) OR sevenths.k = keys.k + 2)) FROM keys',
	'SELECT sum((SELECT count(*) FROM sevenths JOIN keys o ON o.k = sevenths.id WHERE sevenths.k = keys.k)) FROM keys')
{
	unlike(plan_of($query), qr/Seq Scan on sevenths/, 'of an outer row, an index is looked into') or diag($query);
	my $got = well($session, $query);
	is($got, well($other, $query), 'with that answer');
}
$_->close for $session, $other;
unlike($server->log, qr/PANIC|TRAP|leak/, 'a clean log');
done_testing();
