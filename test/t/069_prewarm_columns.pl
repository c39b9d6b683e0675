# gpuhash_prewarm() of a table whose queries the CPU engine does: its columns are in shared memory before the first query, which
# takes them, and returns what PostgreSQL returns; of columns that cost the others blocks, of partitions, with little memory; and
# what it does where there is a device.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Resident 'well';
use GpuHash::Service;

my $ROWS = 14000;
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'autovacuum = off']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my ($session, $other) = map { $server->session } 1, 2;
$session->do('SET gpuhash.engine = cpu; SET gpuhash.force_offload = on');
$other->do('SET gpuhash.enabled = off');

sub column_pages { return GpuHash::Resident::column_pages($session, $_[0]) }

# The first pages of a relation are read before the pipeline is there, of which columns are asked for.
sub takes_columns
{
	my ($query, $pages, $what) = @_;
	my $taken = column_pages($query);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($taken > $pages - 8 && $taken <= $pages, "$what: $taken of $pages pages");
}

sub pages_of { return well($session, "SELECT pg_relation_size('$_[0]') / 8192") }
sub prewarm { return well($session, "SELECT gpuhash_prewarm('$_[0]')") }
sub hits { return well($session, "SELECT coalesce(sum(hits), 0) FROM gpuhash_resident WHERE relation = '$_[0]'::regclass AND device IS NULL") }

sub make_table
{
	my ($name, $more) = @_;
	well($other, "DROP TABLE IF EXISTS $name; CREATE TABLE $name (id int, g int, n bigint, b numeric(12, 2), x text" . ($more // '') . ') WITH (fillfactor = 30, autovacuum_enabled = off)');
	well($other, "INSERT INTO $name " . GpuHash::Resident::rows(1, $ROWS));
	return well($other, "VACUUM ANALYZE $name");
}

# --------------------------------------------------------- the first query takes columns

make_table('t');
my $pages = pages_of('t');
is(prewarm('t'), $pages, 'columns of all pages');
is(well($session, "SELECT resident || ' of ' || blocks || ', used by ' || hits FROM gpuhash_resident WHERE relation = 't'::regclass AND device IS NULL"), "$pages of $pages, used by 0", 'the view has them, and nobody has used them');
my %QUERY = (%GpuHash::Resident::SUMS, rows => 'SELECT count(*) FROM t', where => "SELECT g, count(*) FROM t WHERE x = 'x7' AND b < 900 GROUP BY g");
# EXPLAIN does not count the pages that a join reads
delete $QUERY{h};
for my $name (sort keys %QUERY)
{
	# each of them for the first time
	make_table('t');
	prewarm('t');
	# of a join the outer side
	takes_columns($QUERY{$name}, $pages, "the first query takes them: $name");
	GpuHash::Resident::check($session, "and is right: $name", queries => { $name => $QUERY{$name} });
	cmp_ok(hits('t'), '>', 0, 'by columns');
}
is(prewarm('t'), $pages, 'once more');
well($other, 'UPDATE t SET n = n + 1 WHERE id % 500 = 3');
cmp_ok(prewarm('t'), '<', $pages, 'of pages that were changed there are none');
GpuHash::Resident::check($session, 'changed', queries => \%QUERY);
well($other, 'VACUUM t');
$pages = pages_of('t');
is(prewarm('t'), $pages, 'after VACUUM there are, of new pages, too');
GpuHash::Resident::check($session, 'vacuumed', queries => \%QUERY);
takes_columns($QUERY{a}, $pages, 'and they are used');
well($session, 'BEGIN ISOLATION LEVEL SERIALIZABLE');
is(prewarm('t'), $pages, 'a serializable transaction finds what is there');
well($session, 'COMMIT');

# rows are counted by columns that no prewarming has made, too
make_table('counted');
GpuHash::Resident::check($session, "counted, $_", queries => { rows => 'SELECT count(*) FROM counted' }) for 1 .. 3;
takes_columns('SELECT count(*) FROM counted', pages_of('counted'), 'from the second scan on');
GpuHash::Resident::check($session, "and columns are added, $_", queries => { sums => 'SELECT count(*), sum(n) FROM counted', groups => 'SELECT g, sum(b) FROM counted GROUP BY g' }) for 1 .. 3;
takes_columns('SELECT g, sum(n), sum(b) FROM counted GROUP BY g', pages_of('counted'), 'to what counting has made');

# ------------------------------------------------- columns that cost the others blocks

make_table('long', ', y text, l text');
well($other, 'ALTER TABLE long ALTER y SET STORAGE external');
# few in some stripes, many in others; and texts that are long on the average
well($other, "UPDATE long SET y = repeat('y', 3000) WHERE id % 700 = 1 OR id BETWEEN 9000 AND 9900; UPDATE long SET l = repeat('l', 40) || id");
well($other, 'VACUUM ANALYZE long');
$pages = pages_of('long');
is(prewarm('long'), $pages, 'values that are not in the page cost no block');
takes_columns('SELECT sum(n), count(b) FROM long', $pages, 'of other columns');
is(column_pages('SELECT count(l) FROM long'), 0, 'long texts are left out');
for my $round (1 .. 3)
{
	GpuHash::Resident::check($session, "asked for, $round", queries => { y => 'SELECT y, count(*), sum(n) FROM long GROUP BY y', l => 'SELECT count(l), max(length(l)) FROM long' });
	my $there = prewarm('long');
	GpuHash::Resident::check($session, "and again, after prewarming, $round", queries => { sums => 'SELECT g, sum(n), count(b), count(y) FROM long GROUP BY g', l => 'SELECT l, sum(id) FROM long GROUP BY l' });
	cmp_ok($there, '>', $pages / 2, 'most blocks stay') or diag("$there of $pages");
}
well($other, "ALTER TABLE long ADD COLUMN later int DEFAULT 8");
well($other, 'UPDATE long SET n = n + 1 WHERE id % 900 = 5');
well($other, 'VACUUM ANALYZE long');
prewarm('long');
GpuHash::Resident::check($session, 'a column that most tuples lack', queries => { later => 'SELECT later, count(*), sum(n) FROM long GROUP BY later', sums => 'SELECT sum(n), count(b) FROM long' });

# ------------------------------------------------------------- partitions, and none

well($other, 'CREATE TABLE p (id int, g int, n bigint, b numeric(12, 2), x text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5000); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (5000) TO (90000); INSERT INTO p ' . GpuHash::Resident::rows(1, $ROWS));
well($other, 'VACUUM ANALYZE p');
is(prewarm('p'), pages_of('p1') + pages_of('p2'), 'of a partitioned table, columns of its partitions');
takes_columns('SELECT sum(n), sum(b) FROM p', pages_of('p1') + pages_of('p2'), 'which its first query takes');
well($other, 'CREATE UNLOGGED TABLE unlogged AS SELECT * FROM t; CREATE TABLE empty (n int); CREATE TABLE strange (i interval, p point, j jsonb); INSERT INTO strange SELECT i * interval \'1 day\', point(i, 1), to_jsonb(i) FROM generate_series(1, 9000) i');
well($other, 'VACUUM ANALYZE unlogged, empty, strange');
is(prewarm('unlogged'), 0, 'of an unlogged table there are none');
is(prewarm('empty'), 0, 'nor of an empty one');
is(prewarm('strange'), pages_of('strange'), 'of one without columns that programs read, how many rows there are');
GpuHash::Resident::check($session, 'which is right', queries => { rows => 'SELECT count(*) FROM strange' });
takes_columns('SELECT count(*) FROM strange', pages_of('strange'), 'and used');
well($session, 'CREATE TEMP TABLE temporary AS SELECT * FROM t');
is(prewarm('temporary'), 0, 'nor of a temporary one');

# ---------------------------------------------------------------------- limits, errors

well($other, 'DROP TABLE counted, long, p, strange');
GpuHash::Resident::configure($other, 'gpuhash.resident_memory', 2);
well($other, 'DROP TABLE IF EXISTS large; CREATE TABLE large AS SELECT i AS id, i * 7919::bigint % 1000003 AS n, random() AS r FROM generate_series(1, 300000) i');
# pages at its end that nothing is on go with the second one
well($other, 'VACUUM ANALYZE large') for 1, 2;
sleep 1;
my $there = prewarm('large');
cmp_ok($there, '>', 100, 'something');
ok($there < pages_of('large'), "of a large table a part: $there of " . pages_of('large'));
is(well($session, 'SELECT sum(bytes) <= 2 * 1024 * 1024 FROM gpuhash_resident WHERE device IS NULL'), 't', 'within gpuhash.resident_memory');
GpuHash::Resident::check($session, 'with little memory', queries => { sums => 'SELECT sum(n), count(r), max(r) FROM large' });
GpuHash::Resident::configure($other, 'gpuhash.resident_memory', -1);
is(prewarm('large'), pages_of('large'), 'with more, all of it');
well($session, 'SET gpuhash.enable_resident = off');
like(($session->do("SELECT gpuhash_prewarm('t')"))[1], qr/55000.*pages and columns are not kept/s, 'not where nothing is kept');
well($session, 'RESET gpuhash.enable_resident');
well($other, 'CREATE ROLE reader; GRANT SELECT ON large TO reader');
well($session, 'SET ROLE reader');
is(prewarm('large'), pages_of('large'), 'it takes SELECT');
like(($session->do("SELECT gpuhash_prewarm('t')"))[1], qr/42501.*permission denied for table t/s, 'and nothing without it');
well($session, 'RESET ROLE');

# cancelled at any time, what was made stays, and nothing else
well($other, 'TRUNCATE large; INSERT INTO large SELECT i, i, i FROM generate_series(1, 300000) i');
well($other, 'VACUUM ANALYZE large') for 1, 2;
my $cancelled = 0;
for my $ms (1, 3, 9, 27)
{
	my (undef, $error) = $session->do("SET statement_timeout = $ms; SELECT gpuhash_prewarm('large')");
	$cancelled++ if $error =~ /57014/;
	like($error, qr/^$|57014/, "ended after $ms ms, or done");
	well($session, 'RESET statement_timeout');
}
cmp_ok($cancelled, '>', 0, 'some was cancelled');
is(prewarm('large'), pages_of('large'), 'the next one goes on');
GpuHash::Resident::check($session, 'after that', queries => { sums => 'SELECT sum(n), count(r), max(r), min(id) FROM large' });

# --------------------------------------------------------------------- with a device

well($session, 'SET gpuhash.engine = auto');
make_table('t');
is(prewarm('t'), pages_of('t'), 'with a device, pages');
is(well($session, "SELECT string_agg(DISTINCT coalesce(device::text, 'memory'), ' ') FROM gpuhash_resident WHERE relation = 't'::regclass"), '0', 'are on it, and no columns are made');
$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
$server->stop;

# a server without one
undef $server;
undef $service;
$service = GpuHash::Service->new(absent => 1, conf => ['autovacuum = off']);
$server = $service->server;
($session, $other) = map { $server->session } 1, 2;
$session->do('SET gpuhash.engine = auto; SET gpuhash.force_offload = on');
$other->do('SET gpuhash.enabled = off');
make_table('t');
is(prewarm('t'), pages_of('t'), 'without a device, columns');
takes_columns($GpuHash::Resident::SUMS{a}, pages_of('t'), 'which the first query takes');
well($session, 'SET gpuhash.engine = cuda');
like(($session->do("SELECT gpuhash_prewarm('t')"))[1], qr/55000.*the CUDA engine is not available/s, 'engine = cuda: an error');
$_->close for $session, $other;
done_testing();
