# Joins over the distribution's own package index, compared with PostgreSQL's.
# Runs where the data is (`make demo DATA=archive` fetches it); see archive.sh.
use GpuHash::Test;
use File::Basename 'dirname';

my $script = dirname(__FILE__) . '/../archive.sh';
my $folder = $ENV{GPUHASH_ARCHIVE} || dirname(__FILE__) . '/../../build/archive';
my $rows = $ENV{GPUHASH_ARCHIVE_ROWS} || 500000;
plan skip_all => "no archive data ($folder is empty): make demo DATA=archive fetches it"
	unless glob("'$folder/lists/*Contents*'") && -x '/usr/lib/apt/apt-helper';

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", "work_mem = '256MB'",
	'max_parallel_workers_per_gather = 0', 'jit = off', 'autovacuum = off']);
my $load = $server->{dir} . '/load.sql';
is(system("bash '$script' load '$folder' $rows >'$load'"), 0, 'the index is read');
my $psql = join ' ', map { GpuHash::Server::quote($_) } $server->psql_command('-f', $load);
is(system("$psql >/dev/null"), 0, 'and loaded');
unlink $load;
cmp_ok($server->query('SELECT count(*) FROM archive_files'), '>=', $rows > 100000 ? 100000 : $rows, 'files');
cmp_ok($server->query('SELECT count(*) FROM archive_packages'), '>', 1000, 'packages');

for (split /\n/, `bash '$script' queries`)
{
	my ($title, $query) = split /\|/, $_, 2;
	my $wanted = $server->query("SET gpuhash.enabled = off; $query");
	my $got = $server->query("SET gpuhash.force_offload = on; $query");
	is($got, $wanted, "$title: $wanted");
	like($server->query("SET gpuhash.force_offload = on; EXPLAIN (COSTS OFF) $query"), qr/GpuHashJoin/, "$title: is offloaded");
}

done_testing();
