"""Taking nodes out for maintenance: what that would do, first; then cordoned and emptied, as long as it takes."""
