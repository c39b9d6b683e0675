# The SQL of README.md and doc/*.md is run, page by page, each in a new database and in one session, and what psql
# prints must be what the page shows.  How blocks are marked, and which numbers may differ: test/perl/GpuHash/Pages.pm.
#
# Where the first SQL of a page is LOAD 'gpuhash', its server has not loaded gpuhash before; other pages' servers have it
# preloaded.  All have the CPU engine: what depends on a GPU is not run.  Settings' defaults, ranges and who may set them
# are compared, too.
#
#	GPUHASH_PAGES	the folder with README.md and doc/ (default: this checkout)
use GpuHash::Test;
use FindBin;
use GpuHash::Pages qw(user_pages contents parse masked);

my $top = $ENV{GPUHASH_PAGES} || "$FindBin::Bin/../..";
my %server = (
	plain => GpuHash::Server->new(conf => ['jit = off', 'autovacuum = off', "gpuhash.engine = 'cpu'"]),
	preloaded => GpuHash::Server->new(conf => ["shared_preload_libraries = 'gpuhash'", 'jit = off', 'autovacuum = off', "gpuhash.engine = 'cpu'"]));
my $databases = 0;

# What psql prints for each of the scripts, in one session of a new database; undef once the session has ended.
sub psql
{
	my ($server, @scripts) = @_;
	my ($in, $out) = map { "$server->{dir}/page.$_" } qw(sql out);
	my $database = 'page' . ++$databases;
	$server->query("CREATE DATABASE $database");
	open my $file, '>:encoding(UTF-8)', $in or die $!;
	print $file "$scripts[$_]\n\\echo end of $_\n" for 0 .. $#scripts;
	close $file;
	system("PGCLIENTENCODING=UTF8 LC_ALL=C '$server->{bin}/psql' -Xq -h '$server->{dir}' -U postgres -d $database <'$in' >'$out' 2>&1");
	my $text = contents($out);
	my @printed;
	push @printed, $text =~ s/\A(.*?)^end of $_\n//ms ? $1 : undef for 0 .. $#scripts;
	return @printed;
}

sub is_run { my ($block) = @_; return $block->{language} eq 'sql' && !defined $block->{not_run} }

# Runs the page's SQL.  Returns how many blocks that were, and what is wrong.
sub run_sql
{
	my (@blocks) = @_;
	my @run = grep { is_run($blocks[$_]) } 0 .. $#blocks;
	return 0 unless @run;
	my $kind = $blocks[$run[0]]{text} =~ /^LOAD 'gpuhash'/ ? 'plain' : 'preloaded';
	my @printed = psql($server{$kind}, map { $blocks[$_]{text} } @run);
	my @wrong;
	for my $i (@run)
	{
		my $printed = shift @printed;
		my $next = $blocks[$i + 1];
		my $shown = $next && $next->{language} eq 'text' && !defined $next->{not_run} ? $next->{text} : '';
		if (!defined $printed)
		{
			push @wrong, "line $blocks[$i]{line}: the session ended";
		}
		elsif (masked($printed) ne masked($shown))
		{
			push @wrong, "line $blocks[$i]{line}: psql prints this, not what is shown:\n$printed";
		}
	}
	return (scalar @run, @wrong);
}

# What is wrong with a block that is not SQL.
sub wrong_with
{
	my ($block, $before, $settings) = @_;
	if ($block->{language} eq 'text')
	{
		return $before && is_run($before) ? () : 'it is no output of SQL that was run';
	}
	if ($block->{language} eq 'ini')
	{
		my @names = $block->{text} =~ /^([\w.]+) *=/mg;
		return @names ? map { "there is no setting $_" } grep { !$settings->{$_} } @names : 'there are no settings in it';
	}
	if ($block->{language} eq 'sh')
	{
		open my $shell, '|-', 'bash -n 2>/dev/null' or die $!;
		print $shell $block->{text};
		return close $shell ? () : 'bash finds an error of syntax';
	}
	return ();
}

# How many blocks of SQL were run, and what is wrong with the page.
sub check_page
{
	my ($text, $settings) = @_;
	my $page = parse($text);
	my @blocks = @{ $page->{blocks} };
	my ($run, @wrong) = run_sql(@blocks);
	push @wrong, map { "line $_->[0]: $_->[1]" } @{ $page->{complaints} };
	for my $i (grep { !defined $blocks[$_]{not_run} } 0 .. $#blocks)
	{
		push @wrong, map { "line $blocks[$i]{line}: $_" } wrong_with($blocks[$i], $i > 0 ? $blocks[$i - 1] : undef, $settings);
	}
	return ($run, join("\n", @wrong));
}

# Of all settings, by their names: [default, context, range].
sub read_settings
{
	my %settings;
	for (split /\n/, $server{preloaded}->query(<<'SQL'))
		SELECT name, CASE WHEN name = 'gpuhash.engine' THEN boot_val ELSE current_setting(name) END, context,
			CASE WHEN vartype = 'bool' THEN 'on, off' WHEN vartype = 'enum' THEN array_to_string(enumvals, ', ')
				WHEN vartype = 'string' THEN 'text' WHEN max_val ~ 'e\+308$' OR max_val = '2147483647' THEN 'from ' || min_val
				ELSE min_val || ' to ' || max_val END || CASE WHEN unit <> '' THEN ', in ' || unit ELSE '' END
		FROM pg_settings
SQL
	{
		my ($name, @what) = split /\|/;
		$settings{$name} = \@what;
	}
	return \%settings;
}

# The tables of settings say the same as pg_settings.
sub check_settings
{
	my ($text, $settings) = @_;
	my %row = map { my ($name, @rest) = split /\s*\|\s*/; ($name => "@rest") } $text =~ /^\| `(gpuhash\.\w+` \| .*?) *\|$/mg;
	my %who = (user => 'session', superuser => 'superuser', sighup => 'reload', postmaster => 'restart');
	for my $name (grep { /^gpuhash\./ } sort keys %$settings)
	{
		my ($default, $context, $range) = @{ $settings->{$name} };
		is($row{"$name`"}, "`$default` $range $who{$context}", "doc/settings.md: $name");
	}
	return;
}

my $settings = read_settings();
my $total = 0;
for my $path (user_pages($top))
{
	my ($run, $wrong) = check_page(contents("$top/$path"), $settings);
	is($wrong, '', "$path: $run blocks of SQL print what is shown");
	$total += $run;
}
cmp_ok($total, '>=', 35, 'there are examples, and they were run');
check_settings(contents("$top/doc/settings.md"), $settings);

# Pages that are wrong are found to be.
my %page = (
	'other output' => ["```sql\nSELECT 1 AS a;\n```\n\n```text\n a\n---\n 2\n(1 row)\n```\n", qr/^line 1: psql prints this, not what is shown:\n a/],
	'an output that is not shown' => ["```sql\nSELECT 1 AS a;\n```\n", qr/^line 1: psql prints this/],
	'an error that is not shown' => ["```sql\nSELECT nothing;\n```\n", qr/^line 1: psql prints this.*column "nothing" does not exist/s],
	'output without SQL' => ["```text\n a\n```\n", qr/^line 1: it is no output/],
	'a block without a mark' => ["```\nSELECT 1;\n```\n", qr/^line 1: a block is marked ""/],
	'SQL that is not run without a reason' => ["```sql not run:\nSELECT 1;\n```\n", qr/^line 1: a block is marked "sql not run:"/],
	'an unknown setting' => ["```ini\ngpuhash.no_such = 1\n```\n", qr/^line 1: there is no setting gpuhash\.no_such/],
	'a shell command that is none' => ["```sh\nif\n```\n", qr/^line 1: bash finds/],
	'a block without an end' => ["```sh\nmake\n", qr/a block has no end/]);
for my $what (sort keys %page)
{
	my ($run, $wrong) = check_page($page{$what}[0], $settings);
	like($wrong, $page{$what}[1], "found: $what");
}
my $plan = " QUERY PLAN\n----\n A (actual time=1.2..3.4 rows=5 loops=1)\n   Memory Usage: 7 kB\n";
my $slower = $plan =~ s/1\.2\.\.3\.4 rows=5/12.25..33.4 rows=5.00/r =~ s/7 kB/712 kB/r =~ s/----/------/r;
is(masked($plan), masked($slower), 'times, sizes, and what PostgreSQL 18 shows of rows may differ');
isnt(masked($plan), masked($plan =~ s/rows=5/rows=6/r), 'numbers of rows may not');

for my $server (values %server)
{
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}
done_testing();
