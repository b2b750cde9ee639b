"""What would unblock a waiting job, and what a submission, a queue's change or another priority would do: asked of a copy."""
