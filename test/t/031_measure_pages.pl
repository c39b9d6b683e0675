# gpuhash_measure_pages: every way to supply a table's pages
# sees the rows that count(*) sees and reads the same bytes, whatever else goes on, and no
# pin is left.
use GpuHash::Test 'module';

# 128 MB of shared buffers for so few processes: each may pin 200 pages and more
my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", 'max_connections = 20',
	'max_worker_processes = 4', 'max_wal_senders = 0', 'autovacuum_max_workers = 1', 'autovacuum = off'], module => 1);
my @ways = qw(pinned copied source);
push @ways, qw(stream_pinned stream_copied) if $server->query('SHOW server_version_num') >= 170000;

$server->query(<<'SQL');
CREATE TABLE plain (k bigint, v bigint, t text);
INSERT INTO plain SELECT i, i * 7, CASE WHEN i % 3 = 0 THEN NULL ELSE repeat('x', i % 50) END FROM generate_series(1, 20000) i;
CREATE TABLE visible AS SELECT * FROM plain;
CREATE TABLE updated AS SELECT * FROM plain;
CREATE TABLE holes AS SELECT * FROM plain;
CREATE TABLE hot (k bigint, v bigint) WITH (fillfactor = 50);
INSERT INTO hot SELECT i, i FROM generate_series(1, 20000) i;
CREATE TABLE dropped AS SELECT * FROM plain;
CREATE TABLE empty (k bigint);
CREATE TABLE never (k int);
CREATE TABLE one AS SELECT 1 AS k;
CREATE TABLE other AS SELECT 1 AS k;
VACUUM visible;
UPDATE updated SET v = v + 1 WHERE k % 100 = 0;
DELETE FROM holes WHERE k % 10 = 0;
VACUUM holes;
UPDATE hot SET v = v + 1 WHERE k % 4 = 0;
VACUUM hot;
DELETE FROM dropped;
SQL
my @tables = qw(plain visible updated holes hot dropped empty one);

# What a way sees of a table in a session: tuples and pages as count(*) and the file's size
# say, and the checksum.
sub look
{
	my ($session, $table, $way, $more) = @_;
	my ($out, $err) = $session->do("SELECT count(*), min(tuples) = (SELECT count(*) FROM $table) AND max(tuples) = min(tuples)"
			. " AND min(pages) = pg_relation_size('$table') / 8192 AND min(ns) > 0 AND min(cpu_ns) >= 0, min(checksum), max(checksum) FROM gpuhash_measure_pages('$table', '$way'$more)");
	return $out . $err;
}

# All ways agree on all tables, as this session sees them.
sub agree
{
	my ($session, $name) = @_;
	for my $table (@tables)
	{
		my ($want, @wrong);
		my ($blocks) = $session->do("SELECT pg_relation_size('$table') / 8192");
		my $middle = int($blocks / 2);
		for my $way (@ways)
		{
			for my $more (', 1, repetitions => 2', ', 7, repetitions => 2', ', 200, repetitions => 2', ", 16, true, $middle, 2")
			{
				my $got = look($session, $table, $way, $more);
				$want //= $got;
				push @wrong, "$way$more: $got" if $got ne $want || $got !~ /^2\|t\|(-?\d+)\|\1$/;
			}
		}
		is_deeply(\@wrong, [], "$name: table $table");
	}
	return;
}

my $session = $server->session;
agree($session, 'nothing else goes on');

# The checksum is of the rows' places and data: it tells another row, and an old one.
my $before = $server->query("SELECT checksum FROM gpuhash_measure_pages('one', 'copied')");
$server->query('UPDATE one SET k = 2');
isnt($server->query("SELECT checksum FROM gpuhash_measure_pages('one', 'copied')"), $before, 'the checksum tells rows that differ');

# An open transaction with rows of its own: others see the old ones, it sees its own.
my $writer = $server->session;
$writer->do('BEGIN');
$writer->do("UPDATE $_ SET k = k + 1 WHERE k % 50 = 0; INSERT INTO $_ (k) SELECT i FROM generate_series(1, 500) i") for @tables;
$writer->do("DELETE FROM $_ WHERE k % 70 = 0") for @tables;
agree($session, 'rows of an open transaction are not seen');
agree($writer, 'but by itself');

# A snapshot from before the commit goes on to see the old rows, on pages that cannot be
# pruned for its sake; after it, all see the new ones.
$session->do('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $old = look($session, 'visible', 'pinned', '');
$writer->do('COMMIT');
agree($session, 'an old snapshot');
is(look($session, 'visible', 'pinned', ''), $old, 'sees what it saw before');
$session->do('COMMIT');
agree($session, 'after the commit');
isnt(look($session, 'visible', 'pinned', ''), $old, 'the new rows are seen');

# Each way checks serializable conflicts: this one reads what a transaction wrote that
# read what this one wrote.
$session->do('BEGIN ISOLATION LEVEL SERIALIZABLE');
agree($session, 'serializable');
$session->do('COMMIT');
for my $way (@ways)
{
	my $reader = $server->session;
	$reader->do('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT FROM never');
	$writer->do('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM other; UPDATE visible SET v = v WHERE k = 5; COMMIT');
	$reader->do('UPDATE other SET k = k + 1');
	my ($out, $err) = $reader->do("SELECT tuples FROM gpuhash_measure_pages('visible', '$way')");
	like($err, qr/ERROR:  40001: could not serialize access/, "$way finds a serialization failure");
	$reader->do('ROLLBACK');
}

is($server->query("SELECT pages = pg_relation_size('holes') / 8192, tuples = (SELECT count(*) FROM holes), checksum IS NULL FROM gpuhash_measure_pages('holes', 'count')"),
	't|t|t', 'way count is count(*)');

# Arguments.
$server->query('CREATE ROLE reader; GRANT EXECUTE ON FUNCTION gpuhash_measure_pages TO reader; CREATE VIEW v AS SELECT 1; CREATE TABLE p (k int) PARTITION BY LIST (k)');
my %refused = (
	"'visible', 'guessed'" => qr/22023: there is no way "guessed" to read pages/,
	"'visible', 'pinned', 0" => qr/22023: window is 0, not 1 to \d+/,
	"'visible', 'pinned', 16384" => qr/22023: window is 16384, not 1 to \d{3}\n/,
	"'visible', 'copied', 32769" => qr/22023: window is 32769, not 1 to 32768/,
	"'visible', 'pinned', 1, false, -1" => qr/22023: start_block is -1/,
	"'visible', 'pinned', 1, false, 100000" => qr/22023: start_block is 100000, not 0 to \d+/,
	"'never', 'pinned', 1, false, 1" => qr/22023: start_block is 1, not 0 to \d+/,
	"'visible', 'pinned', 1, false, 0, 0" => qr/22023: repetitions is 0, not 1 to 1000/,
	"'visible', 'pinned', 1, false, 0, 1001" => qr/22023: repetitions is 1001, not 1 to 1000/,
	"'v', 'pinned'" => qr/42809: "v" is not a heap table in shared buffers/,
	"'p', 'pinned'" => qr/42809: "p" is not a heap table in shared buffers/);
for my $arguments (sort keys %refused)
{
	my ($out, $err) = $session->do("SELECT * FROM gpuhash_measure_pages($arguments)");
	like($err, qr/ERROR:  $refused{$arguments}/, "measure($arguments) is refused");
}
my ($out, $err) = $session->do("CREATE TEMP TABLE mine AS SELECT 1; SELECT * FROM gpuhash_measure_pages('mine', 'pinned')");
like($err, qr/ERROR:  42809: "mine" is not a heap table/, 'a temporary table is refused');
($out, $err) = $session->do("SET ROLE reader; SELECT * FROM gpuhash_measure_pages('visible', 'pinned')");
like($err, qr/ERROR:  42501: permission denied for table visible/, 'a table that the caller may not read is refused');
$session->do('RESET ROLE');

# A pass that is interrupted with pins in its window gives them up: VACUUM, which waits for
# pins where it must freeze, comes through.
for my $way (@ways)
{
	($out, $err) = $session->do("SET statement_timeout = '100ms'; SELECT count(*) FROM gpuhash_measure_pages('visible', '$way', 100, repetitions => 1000)");
	like($err, qr/ERROR:  57014:/, "$way is interrupted");
	$session->do('RESET statement_timeout');
}
$session->do('BEGIN');
look($session, $_, 'pinned', ', 100') for @tables;
($out, $err) = $writer->do("SET statement_timeout = '30s'; VACUUM (FREEZE) visible; RESET statement_timeout");
is($err, '', 'VACUUM FREEZE comes through beside an open transaction that measured');
$session->do('COMMIT');

$_->close for $session, $writer;
$server->stop;
unlike($server->log, qr/leak|TRAP|PANIC|terminated by signal/i, 'no pin is left');
done_testing();
