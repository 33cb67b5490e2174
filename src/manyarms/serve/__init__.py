"""The service: one experiment, many processes and machines, and a page to watch it.

messages, routes    what may be asked over HTTP, and who may
access              tokens, sessions, tickets, limits
app, api            from requests to calls
node, committer     who owns an experiment, and when its events are kept
game                what an owned experiment does
scribe, replica     the second process: follows the log, makes snapshots, computes views
views               what panels and pages show
"""
