"""The Django project: settings, sign-in, the mirror into the database, the live channel, and the commands that start it all."""
