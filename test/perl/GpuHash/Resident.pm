# GpuHash::Resident: pages of tables that stay on the device, compared with PostgreSQL.
#
#	@GpuHash::Resident::CONF					settings of the server
#	GpuHash::Resident::fresh($session, $rows)	makes the table t anew, with all of it on the device; its pages
#	my $answer = GpuHash::Resident::compare($session)	the queries by the device and by PostgreSQL, in one snapshot:
#									wrong		what differs, and errors, as text; empty if there is nothing
#									compared	how many answers were compared
#									pages		pages that the device read for the first one of them
#									resident	how many of these were on it before
#									used		how many there were for all of them together
#									by			how many for each, by its name
#	compare($session, open => 1)				in the transaction that is open in the session
#	compare($session, queries => {...})			other queries than those of t
#
#
#	use GpuHash::Resident qw(well $compared $used)
#	well($session, $sql)			what a session returns for SQL that must not fail
#	GpuHash::Resident::check($session, $what, ...)	compares; that nothing differs is a test of that name; returns the answer, too,
#									and adds it up: $compared, $used
#	GpuHash::Resident::sessions($service, @old)	once the service answers: a session, and one where PostgreSQL does all; @old are closed
#	GpuHash::Resident::configure($session, $name, $value)	changes a setting of the server, a number of its unit; all follow
#	GpuHash::Resident::shown($session, $table)	pages of a table that are on devices, by the view
#	%GpuHash::Resident::SUMS					queries of t, which take columns on the CPU
#	GpuHash::Resident::column_pages($session, $query)	pages of which a query took columns
#
# Of what is counted, all is gpuhash_stat's: where other sessions have queries by the device it is theirs, too.
package GpuHash::Resident;

use strict;
use warnings;
use Exporter 'import';
use Test::More ();
use Time::HiRes 'sleep';

our @EXPORT_OK = qw(well $compared $used);
our ($compared, $used) = (0, 0);

# VACUUM does not mark pages as all-visible that others have pinned: none that nobody asked for shall write them.
our @CONF = ('shared_buffers = 256MB', 'max_connections = 30', 'bgwriter_lru_maxpages = 0', "checkpoint_timeout = '1h'");

our $COLUMNS = 'id int, g int, n bigint, b numeric(12, 2), x text';

sub well
{
	my ($in, $sql) = @_;
	my ($text, $error) = $in->do($sql);
	Test::More::is($error, '', "no error: $sql") if $error ne '';
	return $text;
}

sub sessions
{
	my ($service, @old) = @_;
	$_->close for grep { defined } @old;
	delete $service->{control};
	Test::More::ok($service->wait_ready, 'the service is ready');
	my @new = map { $service->server->session } 1, 2;
	$new[1]->do('SET gpuhash.enabled = off');
	return @new;
}

sub configure
{
	my ($session, $name, $value) = @_;
	well($session, "ALTER SYSTEM SET $name = $value");
	well($session, 'SELECT pg_reload_conf()');
	for (1 .. 100) { last if well($session, "SELECT setting FROM pg_settings WHERE name = '$name'") eq $value; sleep 0.02 }
	# and the other processes of the server
	sleep 0.5;
	return;
}

sub shown { my ($in, $table) = @_; return well($in, "SELECT coalesce(sum(resident), 0) FROM gpuhash_resident WHERE relation::text = '$table'") }

# Some rows for t, numbered from..to.
sub rows { my ($from, $to) = @_; return "SELECT i, i % 9, i * 7::bigint, i / 7.0, 'x' || i % 40 FROM generate_series($from, $to) i" }

# What is computed from the copies, what they choose, and what a join takes from them, on one side or both.
our %QUERY = (
	a_sums => 'SELECT count(*), sum(n), sum(b), min(id), max(id) FROM t',
	groups => 'SELECT id, g, x, count(*), sum(n), sum(b) FROM t GROUP BY id, g, x',
	joined => 'SELECT t.id, t.n, t.b, t.x, d.k FROM t JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8)) d(k) ON d.k = t.g',
	outer => 'SELECT a.id, a.n, b.b, b.x FROM t a LEFT JOIN t b ON b.id = a.n',
	pairs => 'SELECT count(*), sum(a.n), sum(b.g), sum(b.b) FROM t a JOIN t b ON b.id = a.id',
	scan => 'SELECT ctid, tableoid, t.* FROM t WHERE n > -1000000000',
	z_sums => 'SELECT count(*), sum(n), sum(b), sum(id), sum(g) FROM t');

our %SUMS = (a => $QUERY{a_sums}, d => 'SELECT count(*) FROM t', b => 'SELECT g, x, count(*), sum(n), sum(b), min(id) FROM t GROUP BY g, x', c => $QUERY{pairs},
	e => 'SELECT ctid, * FROM t WHERE g = 3 AND n % 7 <> 2', f => 'SELECT id, x FROM t WHERE n % 5 = 1 ORDER BY n DESC, id LIMIT 30',
	h => "SELECT t.id, u.x FROM t JOIN t u ON u.id = t.n / 8 AND u.x < t.x WHERE t.id % 100 = 3 AND u.g < 7");

sub column_pages
{
	my ($in, $query) = @_;
	my ($sum, $plan) = (0, well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query"));
	$sum += $1 while $plan =~ /Column Pages: (\d+)/g;
	return $sum;
}

# All rows of a query as one, whatever their order.
sub digest_sql { my ($query) = @_; return "SELECT count(*), md5(string_agg(r::text, ';' ORDER BY r::text)) FROM ($query) r" }

sub fresh
{
	my ($session, $rows, %options) = @_;
	my $with = $options{with} // 'fillfactor = 30, autovacuum_enabled = off';
	my (undef, $error) = $session->do("DROP TABLE IF EXISTS t; CREATE TABLE t ($COLUMNS) WITH ($with); INSERT INTO t " . rows(1, $rows) . '; VACUUM ANALYZE t');
	die $error if $error ne '';
	return warm($session);
}

# All pages that may be are on the device then.
sub warm
{
	my ($session, $table) = @_;
	$table //= 't';
	my ($pages, $error) = $session->do("SELECT gpuhash_prewarm('$table')");
	die $error if $error ne '';
	return $pages;
}

sub compare
{
	my ($session, %options) = @_;
	my $query = $options{queries} // \%QUERY;
	my %answer = (wrong => '', compared => 0, used => 0);
	my $statistics = 'SELECT pages, pages_resident FROM gpuhash_stat';
	$session->do('BEGIN ISOLATION LEVEL ' . ($options{level} // 'REPEATABLE READ')) unless $options{open};
	for my $name (sort keys %$query)
	{
		my $sql = digest_sql($query->{$name});
		my ($text, $error) = $session->do("$statistics; $sql; $statistics");
		my ($before, $got, $after) = split /\n/, $text;
		my ($want) = $session->do("SET LOCAL gpuhash.enabled = off; $sql; SET LOCAL gpuhash.enabled = on");
		$answer{compared}++;
		$answer{wrong} .= "$name: " . ($got // '') . "$error instead of $want\n" if $error ne '' || $got ne $want;
		last if $error ne '';
		my @before = split /\|/, $before;
		my @after = split /\|/, $after;
		$answer{by}{$name} = $after[1] - $before[1];
		$answer{used} += $answer{by}{$name};
		next if defined $answer{pages};
		$answer{pages} = $after[0] - $before[0];
		$answer{resident} = $answer{by}{$name};
	}
	$session->do('COMMIT') unless $options{open};
	return \%answer;
}

sub check
{
	my ($session, $what, %options) = @_;
	my $answer = compare($session, %options);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	Test::More::is($answer->{wrong}, '', $what);
	$compared += $answer->{compared};
	$used += $answer->{used};
	return $answer;
}

1;
