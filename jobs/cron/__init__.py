"""Cron jobs: a job made again and again, at the times that a schedule names (`batch.volcano.sh CronJob`)."""
