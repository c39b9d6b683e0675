# GpuHash::Pages: what the user's pages (README.md, doc/*.md) and the other *.md files are made of.
# test/pages.pl checks links and words with it, test/t/080_documents.pl runs the SQL.
#
#	files($top, $left_out)	all files below the folder $top but those, by their paths from there
#	documents($top)		all *.md files below the folder $top, by their paths from there
#	user_pages($top)	of these, README.md and those in doc/
#	parse($text)		what is in such a file: { blocks, links, anchors, prose, complaints }
#
# Blocks are what stands between fences.  The fence says what may be done with one:
#
#	```sql				it is run, and what psql prints is the next block, if that is ```text; else nothing
#	```text				what the ```sql block before it prints
#	```sql not run: why		it is not run, for the reason that stands there; likewise ```text not run: why
#	```ini				lines of postgresql.conf, whose settings must exist; ```ini not run: why, where older servers
#						that are supported lack one
#	```sh				commands of a shell, which must have no error of syntax; they are not run
#
# Whatever else a fence says is a complaint.  Where numbers differ from run to run, see masked().
package GpuHash::Pages;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(files documents user_pages contents parse masked);

sub contents
{
	my ($path) = @_;
	open my $file, '<:encoding(UTF-8)', $path or die "$path: $!\n";
	local $/;
	return scalar <$file>;
}

# All files below the folder, by their paths from there; left_out($path, $name) says which are not looked at.
sub files
{
	my ($top, $left_out) = @_;
	my @found;
	my @folders = ('.');
	while (defined(my $folder = shift @folders))
	{
		opendir my $dir, "$top/$folder" or die "$top/$folder: $!\n";
		for my $name (sort readdir $dir)
		{
			my $path = $folder eq '.' ? $name : "$folder/$name";
			next if $name =~ /^\.\.?$/ || -l "$top/$path" || $left_out->($path, $name);
			if (-d "$top/$path") { push @folders, $path }
			else { push @found, $path }
		}
		closedir $dir;
	}
	return @found;
}

sub documents
{
	my ($top) = @_;
	my @found = sort grep { /\.md$/ } files($top, sub { my ($path, $name) = @_; return $name =~ /^\./ || $path eq 'build' });
	return @found;
}

sub user_pages { my ($top) = @_; return grep { m{^(?:README|doc/[^/]+)\.md$} } documents($top) }

# The anchor that a heading gets where such pages are shown.
sub anchor
{
	my ($heading) = @_;
	$heading =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
	$heading = lc $heading;
	$heading =~ s/[^\w\- ]//g;
	$heading =~ s/ /-/g;
	return $heading;
}

# What a fence says: (language, why it is not run), or a complaint.
sub fence
{
	my ($info) = @_;
	return ($1, undef) if $info =~ /^(sql|text|ini|sh)$/;
	return ($1, $2) if $info =~ /^(sql|text|ini) not run: (\S.*)$/;
	return (undef, "a block is marked \"$info\", which is none of the marks of test/perl/GpuHash/Pages.pm");
}

# Of text outside of blocks, in the lines where it was: [line, target] of each link.
sub links
{
	my ($text) = @_;
	my @links;
	# what is `code` has none; it may go on in the next line, but not in the next paragraph
	$text =~ s/(`+)((?:(?!\n\s*\n).)+?)\1/"code" . "\n" x ($2 =~ tr{\n}{})/gse;
	while ($text =~ /\]\(<?([^()\s>]*)>?(?: "[^"]*")?\)|^\[[^\]]+\]: +(\S+)/mg)
	{
		my $target = $1 // $2;
		push @links, [1 + (substr($text, 0, $-[0]) =~ tr/\n//), $target];
	}
	return \@links;
}

sub parse
{
	my ($text) = @_;
	my %page = (blocks => [], anchors => {}, complaints => []);
	my ($block, @prose);
	my $number = 0;
	for my $line (split /\n/, $text)
	{
		$number++;
		if ($line =~ /^\s*```(.*?)\s*$/)
		{
			if ($block)
			{
				push @{ $page{blocks} }, $block;
				undef $block;
				next;
			}
			my ($language, $why) = fence($1);
			push @{ $page{complaints} }, [$number, $why] unless defined $language;
			$block = { language => $language // '', not_run => $why, text => '', line => $number };
			next;
		}
		if ($block)
		{
			$block->{text} .= "$line\n";
			next;
		}
		$prose[$number - 1] = $line;
		if ($line =~ /^#+ +(.*?)\s*$/)
		{
			my $anchor = anchor($1);
			my $repeated = $page{anchors}{$anchor}++;
			$page{anchors}{"$anchor-$repeated"}++ if $repeated;
		}
	}
	$page{prose} = join "\n", map { $_ // '' } @prose;
	$page{links} = links($page{prose});
	push @{ $page{complaints} }, [$block->{line}, 'a block has no end'] if $block;
	return \%page;
}

# Output of psql with what differs from run to run taken out, on both sides of a comparison: numbers of
# milliseconds and kB, and what depends on how long they are.  PostgreSQL 18 shows fractions of rows.
sub masked
{
	my ($text) = @_;
	$text =~ s/\b\d[\d.]*(?= ?(?:ms|kB)\b)/#/g;
	$text =~ s/\bactual time=[\d.]+/actual time=#/g;
	$text =~ s/\brows=(\d+)\.00\b/rows=$1/g;
	$text =~ s/^ +QUERY PLAN *$/QUERY PLAN/mg;
	$text =~ s/^-+$/---/mg;
	$text =~ s/[ \t]+$//mg;
	$text =~ s/\n+\z/\n/;
	return $text eq "\n" ? '' : $text;
}

1;
