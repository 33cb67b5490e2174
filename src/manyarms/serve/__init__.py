"""The service: one experiment, many processes and machines, and a page to watch it.

messages, routes    what may be asked over HTTP, and who may
access, errors      tokens and roles; why a request is refused
server              a process that listens
app, requests       from HTTP to calls: every request goes this way, and every body is read here
api                 a function for each route; playing, importing and events have the long ones
service             who asks, what is served, what the list shows
leader              the process that plays all experiments: leads, loads, commits, unloads
stores, tables      where events are kept, and the lock that makes a leader; the service's tables
game, experiment    an experiment as its log tells it, and one that goes on; batch: what it commits
snapshots, forked   so that loading is quick; made by a copy of the process
cleaning, upkeep    what is deleted bit by bit; backups, and checks of whole logs
views, look         what panels and pages show, and what they are computed from
dashboard           the pages
"""
