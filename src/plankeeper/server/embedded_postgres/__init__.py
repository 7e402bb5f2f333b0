"""The embedded PostgreSQL: a server that Plankeeper starts and stops itself, on Linux.

`pg_ctl` isn't used: a server that it starts outlives a program that is killed, and doesn't run as another user.
"""
