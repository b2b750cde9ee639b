"""The scheduler in simulated time: the real cache, session, actions and plugins, over jobs that arrive, run and end."""
