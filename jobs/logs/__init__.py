"""Logs of jobs and pods: what is asked for, from which containers, interleaved by time, once or followed."""
