# pages.pl [FOLDER]: what can be said of the documents without a server, for the part style of check.sh.
# Prints what is wrong, and nothing where nothing is.
#
#	* Each link in a *.md file leads to a file or folder that is there, and its #anchor to a heading.
#	* The blocks of the user's pages are marked as test/perl/GpuHash/Pages.pm says.
#	* README.md has at most 200 lines, a page of doc/ at most 700, and each is linked from doc/README.md.
#	* All settings, functions, views, EXPLAIN's lines and errors that the source has are in the page for them.
#
# Addresses of other hosts are not looked up.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/perl";
use GpuHash::Pages qw(documents user_pages contents parse);

binmode STDOUT, ':encoding(UTF-8)';
my $top = $ARGV[0] // "$FindBin::Bin/..";
my %page = map { $_ => parse(contents("$top/$_")) } documents($top);

sub complain { my ($file, $line, $what) = @_; print "$file:$line: $what\n"; return }

# doc/../README.md is README.md.
sub resolved
{
	my ($from, $target) = @_;
	my @parts = split m{/}, $from;
	pop @parts;
	for my $part (split m{/}, $target)
	{
		if ($part eq '..') { return undef unless @parts; pop @parts }
		elsif ($part ne '.') { push @parts, $part }
	}
	return join('/', @parts) || '.';
}

sub check_link
{
	my ($file, $line, $link) = @_;
	return if $link =~ /^(?:https?|mailto):/;
	my ($target, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
	my $path = $target eq '' ? $file : resolved($file, $target);
	return complain($file, $line, "there is no $link") unless defined $path && -e "$top/$path";
	return unless defined $anchor;
	complain($file, $line, "there is no heading for $link") unless $page{$path} && $page{$path}{anchors}{$anchor};
	return;
}

sub check_links
{
	for my $file (sort keys %page)
	{
		check_link($file, @$_) for @{ $page{$file}{links} };
	}
	return;
}

sub check_form
{
	my $index = $page{'doc/README.md'} or return complain('doc/README.md', 1, 'it is not there');
	my %linked = map { (resolved('doc/README.md', $_->[1] =~ s/#.*//r) // '') => 1 } @{ $index->{links} };
	for my $file (user_pages($top))
	{
		my $lines = () = contents("$top/$file") =~ /\n/g;
		my $most = $file eq 'README.md' ? 200 : 700;
		complain($file, $lines, "it has more than $most lines") if $lines > $most;
		complain($file, @$_) for @{ $page{$file}{complaints} };
		complain($file, 1, 'doc/README.md has no link to it') unless $linked{$file} || $file =~ /README/;
	}
	return;
}

# Matches of a pattern in all files of the source that have such a name.
sub in_source
{
	my ($names, $pattern) = @_;
	my %found;
	my @folders = ("$top/src");
	while (defined(my $folder = shift @folders))
	{
		for my $path (glob "$folder/*")
		{
			push @folders, $path if -d $path;
			next unless $path =~ $names && -f $path;
			my $text = contents($path);
			$found{$1} = 1 while $text =~ /$pattern/g;
		}
	}
	die "nothing in the source is like $pattern\n" unless %found;
	return sort keys %found;
}

# What a pattern finds in the source must stand in a page, in quotes or not.
sub check_words
{
	my ($file, $what, @words) = @_;
	my $page = $page{$file} or return complain($file, 1, 'it is not there');
	my $text = join ' ', $page->{prose}, map { $_->{text} } @{ $page->{blocks} };
	for my $word (@words)
	{
		complain($file, 1, "it does not mention the $what $word") unless $text =~ /(?<![\w.])\Q$word\E(?!\w)/;
	}
	return;
}

sub check_source
{
	my ($version) = contents("$top/gpuhash.control") =~ /^default_version = '([^']+)'/m;
	my $script = contents("$top/gpuhash--$version.sql");
	my %columns;
	$columns{$1} = 1 while $script =~ /^COMMENT ON COLUMN \w+\.(\w+)/mg;
	check_words('doc/settings.md', 'setting', in_source(qr/\.c$/, qr/DefineCustom\w+\("(gpuhash\.\w+)"/));
	check_words('doc/functions.md', 'function', grep { !/_list_|_service_|_handler$/ } $script =~ /^CREATE FUNCTION (\w+)/mg);
	check_words('doc/monitoring.md', 'view', $script =~ /^CREATE VIEW (\w+)/mg);
	check_words('doc/monitoring.md', 'column', sort keys %columns);
	check_words('doc/explain.md', 'line', in_source(qr/\.c$/, qr/(?:ExplainProperty\w+|gh_explain_count|gh_explain_time|show_clauses)\("([A-Z][\w ]+)"/));
	return;
}

check_links();
check_form();
check_source();
