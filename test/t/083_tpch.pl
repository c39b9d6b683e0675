# TPC-H's script (test/bench/tpch.sh) makes and loads the data once, has its table, and tells answers that differ from
# such that are PostgreSQL's; what is not there is skipped with a word.  The programs that it would take from PyPI are
# stand-ins here: a generator of a few rows, and a Python whose DuckDB answers as it is told.
use GpuHash::Test;
use File::Basename;
use File::Temp ();

my $script = dirname(__FILE__) . '/../bench/tpch.sh';
my $folder = File::Temp::tempdir(CLEANUP => 1);
my $server = GpuHash::Server->new;
my $tree = dirname(GpuHash::Server::bindir());

sub program
{
	my ($name, $text) = @_;
	open my $file, '>', "$folder/$name" or die $!;
	print $file "#!/usr/bin/env bash\n$text";
	close $file;
	chmod 0755, "$folder/$name";
	return "$folder/$name";
}

my $lines = join '', map { my $q = $_ % 50; "$_,1,1,1,$q,1000.1$q,0.06,0.02," . ($_ % 3 ? 'A,F' : 'N,O') . ",1994-02-0" . (1 + $_ % 9) . ",1994-03-01,1994-04-01,NONE,MAIL,text\n" } 1 .. 300;
my $orders = join '', map { "$_,1,O,100.5,1993-08-0" . (1 + $_ % 9) . ',' . ($_ % 5 + 1) . "-X,clerk,0,text\n" } 1 .. 300;
my $generator = program('generator', <<"SH");
echo once >>$folder/made
all=\$*
out=\${all##*--output-dir=}
mkdir -p "\$out"
for table in region nation supplier customer part partsupp; do echo header >"\$out/\$table.csv"; done
{ echo header; printf '%s' '$orders'; } >"\$out/orders.csv"
{ echo header; printf '%s' '$lines'; } >"\$out/lineitem.csv"
SH

# Its answers are PostgreSQL's but for what CHANGE does to them.
my $python = program('python', <<'SH');
case "$*" in
	"-c import duckdb") [ -n "${CHANGE:-}" ]; exit ;;
	*"tpch.py duckdb "*) ;;
	*) exit 1 ;;
esac
all=$*
answers=${all##*--answers }
for query in q1 q4 q6; do
	sed "$CHANGE" "$answers/default.postgresql.1.$query" >"$answers/default.duckdb.1.$query"
	printf '1\t%s\tdefault\t4\tduckdb\t1\t1.5\t1\t0\tdone\n' "$query"
done
SH

# Status, what was printed, and the table's lines as lists.
sub run_script
{
	my (%variables) = @_;
	my %all = (HOST => $server->{dir}, PGUSER => 'postgres', DATA => "$folder/data", TPCHGEN => $generator, PYTHON => $python, TOOLS => "$folder/none",
		PIP => 'no', QUERIES => 'q1 q4 q6', REPS => 2, SYSTEMS => 'postgresql gpuhash_cpu gpuhash_cuda duckdb', %variables);
	local @ENV{keys %all} = values %all;
	my $printed = `bash '$script' '$tree' 5432 '$folder/out' 2>&1`;
	my $status = $? >> 8;
	open my $table, '<', "$folder/out/tpch.tsv" or return ($status, $printed);
	return ($status, $printed, map { chomp; [split /\t/] } <$table>);
}

# -------------------------------------------------------- without DuckDB
my ($status, $printed, $header, @table) = run_script();
is($status, 0, 'answers agree') or diag($printed);
is(join(' ', @$header), 'scale query settings workers system ms cpu_ms equal', 'columns');
my %system = map { $_->[4] => 1 } @table;
ok($system{postgresql} && $system{gpuhash_cpu}, 'with PostgreSQL and the CPU engine');
is(scalar(@table), 3 * keys %system, 'a line for each query and system');
ok($system{gpuhash_cuda} || $printed =~ /finds no GPU here: gpuhash_cuda is skipped/, 'the GPU, or a word why not');
like($printed, qr/DuckDB is skipped.*the plot is skipped.*all answers agree/s, 'what is not there is skipped');
is_deeply([grep { $_->[7] ne 'yes' || $_->[5] !~ /^[\d.]+$/ } @table], [], 'times, and equal answers');
is((stat("$folder/out/tpch_runs.tsv"))[7] > 0, 1, 'there are the runs');

# ------------------------------------------------------------ kinds of settings
($status, $printed, $header, @table) = run_script(KINDS => 'default tuned', REPS => 1, SETTINGS => "SET work_mem = '8MB'; SET max_parallel_workers_per_gather = 1;");
is($status, 0, 'two kinds of settings') or diag($printed);
is_deeply({ map { ("$_->[2] $_->[3]" => 1) } @table }, { 'default 2' => 1, 'tuned 1' => 1 }, 'with their workers');
open my $made, '<', "$folder/made" or die $!;
is(scalar(() = <$made>), 1, 'the data were made once');

# ---------------------------------------------------- answers that differ, and do not
sub equal { my ($query, @lines) = @_; return join ' ', map { $_->[1] eq $query && $_->[4] eq 'duckdb' ? $_->[7] : () } @lines }
($status, $printed, $header, @table) = run_script(REPS => 1, CHANGE => 's/|/  |/;s/0000000000/00003/');
is("$status " . equal('q1', @table), '0 yes', 'blanks and a ten thousandth do not count') or diag($printed);
($status, $printed, $header, @table) = run_script(REPS => 1, CHANGE => 's/^\(1-X *|\)60$/\161/');
is("$status " . join(' ', map { equal($_, @table) } qw(q1 q4 q6)), '1 yes no yes', 'one more does') or diag($printed, `cat $folder/out/answers/*q4`);
like($printed, qr/^q4 .*ANSWERS OF duckdb DIFFER$/m, 'and is named');
($status, $printed, $header, @table) = run_script(REPS => 1, CHANGE => '1d');
is("$status " . join(' ', map { equal($_, @table) } qw(q1 q4 q6)), '1 no no no', 'so does a row that is missing');
($status, $printed, $header, @table) = run_script(REPS => 1, LIMIT => 1, SYSTEMS => 'gpuhash_cpu', QUERIES => 'q1');
is_deeply([$status, map { $_->[7] } @table], [0, $table[0][7] eq 'failed' ? 'failed' : 'unknown'], 'without PostgreSQL nothing is known') or diag($printed);

$server->stop;
done_testing();
