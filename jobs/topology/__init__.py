"""What fits where: network domains, fragments and the places of gangs, read from rows in a constant number of queries."""
