# Scans of tables' pages by the service: PostgreSQL's own answers, through any way that
# pages go, with several requests at a time; faults; and what is left over.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time sleep);
use GpuHash::Service;

if (my $reason = GpuHash::Service::why_not()) { plan skip_all => $reason }

my $CLEAN = $GpuHash::Service::CLEAN;
my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query(<<'SQL');
CREATE TABLE o AS SELECT i % 1000 AS k, i::bigint * 7 - 100000 AS v FROM generate_series(1, 60000) i;
CREATE TABLE i AS SELECT i AS k, i::bigint * 1000 AS p FROM generate_series(-5, 900) i;
VACUUM (FREEZE, ANALYZE) o, i;
SQL
my $session = $server->session;
$session->do('SET gpuhash.enabled = off');
my $groups = ($session->do("SELECT string_agg(format('%s %s %s', k, n, s), ',' ORDER BY k) || ',back 0' FROM (SELECT k, count(*) n, sum(v) s FROM o GROUP BY k) g"))[0];
my $joined = ($session->do("SELECT string_agg(format('%s %s %s %s', k, n, s, p), ',' ORDER BY k) || ',back 0, table of 906' FROM (SELECT o.k, count(*) n, sum(v) s, sum(p) p FROM o JOIN i USING (k) GROUP BY o.k) g"))[0];

sub scan
{
	my ($mode, $pages, $flight, $capacity) = @_;
	my ($out, $err) = $session->do("SELECT gpuhash_trial_scan('o'::regclass, '$mode', $pages, $flight, $capacity)");
	return $out . $err;
}
sub join_tables
{
	my ($mode, $early) = @_;
	my ($out, $err) = $session->do("SELECT gpuhash_trial_join('o'::regclass, 'i'::regclass, '$mode', 16, 2, $early)");
	return $out . $err;
}

# --------------------------------------------------------------------- answers
for my $mode ('copied', 'pinned', 'copied bitmaps', 'pinned bitmaps')
{
	for my $shape ([16, 1, 65536], [16, 2, 65536], [64, 4, 1000], [1, 4, 1])
	{
		is(scan($mode, @$shape), $groups, "$mode, @$shape");
	}
	is(join_tables($mode, 'false'), $joined, "$mode, joined");
	is(join_tables($mode, 'true'), $joined, "$mode, joined with a table that was given up");
}
like($service->settle, $CLEAN, 'nothing is left over');
is($server->query('SELECT page_batches > 100, pages > 5000, page_bytes = pages * 8192 FROM gpuhash_stat'), 't|t|t', 'gpuhash_stat counts them');

done_testing();
