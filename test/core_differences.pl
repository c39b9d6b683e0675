# core_differences.pl SUITE DIFFS EXCEPTIONS [RESULTS]: are the differences of other plans
# explained?
#
# DIFFS is the regression.diffs of one of PostgreSQL's suites, run with joins offloaded.
# Of each pair of files that it names, the two are compared again without what may differ
# then:
#
#	- what EXPLAIN prints, functions that show it included, and tests that warn of a plan that
#	  they did not get;
#	- the order of a result's rows, where its statement has no ORDER BY outside of
#	  parentheses;
#	- the order of NOTICEs that follow each other;
#	- results of the statements that EXCEPTIONS names, one a line: suite/test, a regular
#	  expression that the statement matches, and the reason, between tabs.
#
# Where that is not all, the folder RESULTS has what the machine's own PostgreSQL gives, to
# be compared with instead.  Prints "ok TEST: ..." or what else differs and "FAILED TEST".  An exception that nothing
# needs is no failure: another version may.  The status is 1 where something differs.
use strict;
use warnings;
use File::Temp ();

my ($suite, $diffs, $exceptions, $machine) = @ARGV;

sub lines_of
{
	my ($name) = @_;
	open my $file, '<', $name or die "$name: $!\n";
	chomp(my @lines = <$file>);
	return @lines;
}

my %exceptions;
for my $line (grep { /^[^#\s]/ } lines_of($exceptions))
{
	my ($test, $statement, $reason) = split /\t+/, $line;
	die "$exceptions: no reason in: $line\n" if !$reason;
	push @{ $exceptions{$test} }, [qr/$statement/s, $reason];
}

# The last statement of the lines before a result.
sub last_statement
{
	my @lines = @_;
	my @statement;
	my $quotes = 0;
	while (@lines)
	{
		my $line = pop @lines;
		last if @statement && $quotes % 2 == 0 && $line =~ /;\s*(?:--.*)?$/;
		unshift @statement, $line;
		$quotes++ while $line =~ /\$\$/g;
		last if $line =~ /^step \w+: /;
	}
	return join "\n", @statement;
}

sub is_ordered
{
	my ($statement) = @_;
	$statement =~ s/--[^\n]*//g;
	$statement =~ s/'[^']*'//g;
	1 while $statement =~ s/\([^()]*\)//g;
	return $statement =~ /\border\s+by\b/i || $statement =~ /^\s*(?:step \w+: *)?(?:fetch|move)\b/i;
}

# A line of dashes may be a comment's, behind the mark of an error's place as well.  psql has a
# space around names, isolationtester none.
sub is_heading
{
	my ($names, $dashes, $next) = @_;
	return length $names == length $dashes && $names !~ /^--|;$/ if $suite eq 'isolation';
	# a result without columns is just a number of rows
	return $names =~ /^ (?! *\^$)/ || ($names eq '' && $dashes eq '--' && ($next // '') =~ /^\(\d+ row/);
}

# Takes a result in expanded display off the lines: its records, without their numbers, which say nothing but their order.
sub take_records
{
	my ($lines) = @_;
	my @records;
	while (@$lines && $lines->[0] ne '')
	{
		my $line = shift @$lines;
		push @records, '' if $line =~ s/^-\[ RECORD \d+ \]-*/-[ RECORD ]/;
		$records[-1] .= "$line\n";
	}
	return @records;
}

# The file's lines without what may differ; notes the reasons of exceptions.
sub plain_lines
{
	my ($test, $reasons, @lines) = @_;
	my (@out, @before);
	while (@lines)
	{
		# a result: a line of names, one of dashes, rows, their number
		my $end;
		if (@lines > 1 && $lines[1] =~ /^-+(?:\+-+)*$/ && is_heading(@lines[0 .. 2]))
		{
			($end) = grep { $lines[$_] =~ /^\(\d+ rows?\)$/ || ($lines[$_] eq '' && $suite ne 'isolation') } 2 .. $#lines;
			# what psql describes ends with an empty line
			undef $end if defined $end && $lines[$end] eq '';
		}
		if ($lines[0] =~ /^-\[ RECORD 1 \]/)
		{
			my @records = take_records(\@lines);
			push @out, is_ordered(last_statement(@before)) ? @records : sort @records;
			@before = ();
			next;
		}
		# a plan that a function raises
		if ($lines[0] =~ /^(?:INFO|NOTICE):  / && ($lines[1] // '') =~ /^  /)
		{
			my $raised = shift @lines;
			$raised .= "\n" . shift @lines while @lines && $lines[0] =~ /^  /;
			push @out, $raised =~ /^ +->  /m ? '(EXPLAIN)' : $raised;
			next;
		}
		# a plan without a heading, as psql's \gexec shows it here
		if ($lines[0] =~ /^explain \(costs off\) .*[^;]$/ && ($lines[1] // '') =~ /^ (?:Seq|Custom) Scan/)
		{
			push @out, shift @lines, '(EXPLAIN)';
			shift @lines while @lines && $lines[0] ne '';
			next;
		}
		if ($lines[0] =~ /^WARNING:  did not get seqscan plan for /)
		{
			shift @lines;
			next;
		}
		if (!defined $end)
		{
			push @out, $lines[0];
			push @before, shift @lines;
			next;
		}
		my ($names, $dashes, @rows) = splice @lines, 0, $end + 1;
		my $number = pop @rows;
		my $statement = last_statement(@before);
		@before = ();
		my ($exception) = grep { $statement =~ $_->[0] } @{ $exceptions{"$suite/$test"} || [] };
		if ($names =~ /QUERY PLAN|explain/i) { push @out, '(EXPLAIN)' }
		elsif ($exception) { push @out, '(exception)'; $reasons->{ $exception->[1] } = 1 }
		else { push @out, $names, $dashes, is_ordered($statement) ? @rows : sort(@rows), $number }
	}
	# runs of notices
	for (my $i = 0; $i < @out; $i++)
	{
		my $j = $i;
		$j++ while $j < @out && $out[$j] =~ /^(?:s\d+: )?NOTICE:  /;
		next if $j - $i < 2;
		@out[$i .. $j - 1] = sort @out[$i .. $j - 1];
		$i = $j - 1;
	}
	return @out;
}

sub write_file
{
	my ($dir, $name, @lines) = @_;
	open my $file, '>', "$dir/$name" or die "$dir/$name: $!\n";
	print $file "$_\n" for @lines;
	close $file;
	return "$dir/$name";
}

my $dir = File::Temp->newdir;
sub difference
{
	my ($test, $reasons, $expected, $results) = @_;
	my $one = write_file($dir, 'expected', plain_lines($test, $reasons, lines_of($expected)));
	my $two = write_file($dir, 'found', plain_lines($test, $reasons, lines_of($results)));
	return `diff -U3 '$one' '$two'`;
}

my $failed = 0;
for my $line (grep { /^diff / } lines_of($diffs))
{
	my ($expected, $results) = $line =~ m{^diff \S+ (\S+) (\S+)$} or die "not understood: $line\n";
	my ($test) = $results =~ m{([^/]+)\.out$};
	my %reasons;
	my $rest = difference($test, \%reasons, $expected, $results);
	$rest = difference($test, \%reasons, "$machine/$test.out", $results) if $rest ne '' && $machine;
	if ($rest eq '')
	{
		print "ok $test: ", join('; ', 'EXPLAIN and the order of rows', sort keys %reasons), "\n";
		next;
	}
	print "$rest\nFAILED $test\n";
	$failed = 1;
}
exit $failed;
