#!/usr/bin/env perl
#
# floors.pl [FOLDER]: whether the rooms of src and cuda stand on their floors (src/README).
#
# A room is a folder of src; the files in src itself are the ground, but for gpuhash.c, the
# roof.  A file includes headers of its own room and of rooms on lower floors.  What a header
# of a room declares is defined in that room.  Prints what breaks this, a line each, but for
# the lines of test/floors_exceptions; those that no longer hold are printed, too, so that the
# list can only become shorter.  Nothing printed: all is well.
use strict;
use warnings;

my $top = shift // '.';
chdir $top or die "$top: $!";

# From the lowest floor to the highest; rooms of one floor do not include each other.
my @floors = (
	['engine'],
	['ground'],
	['heap'],
	['expr'],
	['service'],
	['store'],
	['fragment'],
	['plan'],
	[qw(join aggregate rows scan index table)],
	['roof'],
);
my %floor;
for my $number (0 .. $#floors) { $floor{$_} = $number for @{ $floors[$number] } }

sub room_of {
	my ($file) = @_;
	return 'cuda' if $file =~ m{^cuda/};
	return 'roof' if $file eq 'src/gpuhash.c';
	return $file =~ m{^src/([^/]+)/} ? $1 : 'ground';
}

sub text_of {
	my ($file) = @_;
	open(my $in, '<', $file) or die "$file: $!";
	local $/;
	return scalar <$in>;
}

my @files = sort grep { /\.(?:c|h|cu|cuh)$/ } split /\n/, `find src cuda -type f`;
my (@found, %declared, %defined);
for my $file (@files) {
	my $room = room_of($file);
	my $text = text_of($file);
	push @found, "$file: room $room is on no floor" if $room ne 'cuda' && !exists $floor{$room};
	while ($text =~ /^#include "([^"]+)"/mg) {
		my $header = $1;
		$header = "src/$header" if $header !~ m{^cuda/};
		next if !-f $header;    # PostgreSQL's
		my $other = room_of($header);
		next if $other eq $room;
		push @found, "$file -> $header"
		  if $room eq 'cuda' ? $other ne 'engine' : $other eq 'cuda' || ($floor{$other} // 99) >= ($floor{$room} // -1);
	}
	next if $room eq 'cuda';
	if ($file =~ /\.h$/) {
		while ($text =~ /^(?:GH_NORETURN\s+)?extern\s+(?!PG)[^;=(]*?\b(gh_\w+)\s*\([^;]*;/mg) { $declared{$1} = $file }
	}
	else {
		while ($text =~ /^(gh_\w+)\(/mg) { $defined{$1} = $file }
	}
}
for my $name (sort keys %declared) {
	my $header = $declared{$name};
	my $where = $defined{$name};
	if (!defined $where) { push @found, "$header: $name is defined nowhere" }
	elsif (room_of($where) ne room_of($header)) { push @found, "$header: $name is defined in $where" }
}

my %allowed;
if (open(my $in, '<', 'test/floors_exceptions')) {
	while (<$in>) { chomp; $allowed{$_} = 1 if !/^#/ && /\S/ }
}
my %seen = map { $_ => 1 } @found;
print "$_\n" for grep { !$allowed{$_} } sort keys %seen;
print "test/floors_exceptions: no longer needed: $_\n" for grep { !$seen{$_} } sort keys %allowed;
