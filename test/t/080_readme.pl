# README.md's SQL runs as it stands, in its order and in one session of a new server, and plans have the nodes
# that its samples show.
use GpuHash::Test;
use FindBin;

# The blocks between fences: their language, their text, and the line where they begin.
sub blocks
{
	my ($path) = @_;
	my @blocks;
	my $block;
	open my $file, '<', $path or die "$path: $!";
	while (my $line = <$file>)
	{
		if ($line !~ /^```(\w*)\s*$/)
		{
			$block->{text} .= $line if $block;
		}
		elsif ($block)
		{
			push @blocks, $block;
			undef $block;
		}
		else
		{
			$block = { language => $1, text => '', line => $. };
		}
	}
	close $file;
	die "a block of $path has no end" if $block;
	return @blocks;
}

my @blocks = blocks("$FindBin::Bin/../../README.md");

# SQL that is not marked as such would not be run
for my $block (grep { $_->{language} ne 'sql' } @blocks)
{
	unlike($block->{text}, qr/^(?:SELECT|EXPLAIN|SET|RESET|LOAD|CREATE|ALTER|GRANT|INSERT|DROP)\b/m, "line $block->{line}: no SQL outside of a block that is marked so");
}

# also where all other tests are for a GPU
my $server = GpuHash::Server->new(conf => ["gpuhash.engine = 'auto'"]);
my $session = $server->session;
my ($statements, $samples) = (0, 0);
for my $i (0 .. $#blocks)
{
	my $block = $blocks[$i];
	next if $block->{language} ne 'sql';
	my ($out, $err) = $session->do($block->{text}, 200);
	is($err, '', "line $block->{line}: runs");
	$statements += () = $block->{text} =~ /;/g;

	# what follows a plan is a sample of it
	my $sample = $blocks[$i + 1];
	next if $block->{text} !~ /^EXPLAIN/m || !$sample || $sample->{language} ne '';
	my @claimed = $sample->{text} =~ /(Custom Scan \(\w+\)|Seq Scan on \w+)/g;
	my @there = $out =~ /(Custom Scan \(\w+\)|Seq Scan on \w+)/g;
	cmp_ok(scalar(@claimed), '>', 0, "line $sample->{line}: a sample of a plan");
	is("@there", "@claimed", "line $sample->{line}: the plan has these nodes") or diag($out);
	for my $label (map { /^ *([A-Z][A-Za-z ]+): / ? $1 : () } split /\n/, $sample->{text})
	{
		like($out, qr/^ *$label: /m, "line $sample->{line}: and a line $label");
	}
	$samples++;
}
cmp_ok($statements, '>', 15, 'there are statements');
cmp_ok($samples, '>=', 3, 'and plans');
$session->close;
$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

done_testing();
