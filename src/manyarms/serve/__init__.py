"""The service: one experiment, many processes and machines, and a page to watch it.

messages, routes    what may be asked over HTTP, and who may
access, errors      tokens, sessions, tickets, limits; why a request is refused
server, limits      a process that listens, and what a connection may do
app, requests       from HTTP to calls; quick is the short way of plain asks and tells
api                 a function for each route; moves, importing and exporting are the long ones
service, node       one node: who owns an experiment, who asks, what is served
committer           when events are kept
game, owned         an experiment as its log tells it, and one that this node plays on
scribe, replica     the second process: follows the log, makes snapshots, computes views
views               what panels and pages show
dashboard           the pages
"""
