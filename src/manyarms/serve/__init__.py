"""The service: one experiment, many processes and machines, and a page to watch it.

messages            bodies, queries and answers, as types
routes, openapi     the table of requests, with their roles and handlers; its description
app                 every request of API and pages: finds its route, checks who sends it, reads it
requests            a request and its answer; reads bodies and queries
access, errors      tokens and roles; why a request is refused
api                 handlers; playing, importing, syncing, seasons and events have the long ones
server              a process that listens
service             who asks, what is served, what the list shows
leader              the process that plays all experiments: leads, loads, commits, unloads
stores, tables      where events are kept, and the lock that makes a leader; the service's tables
game, experiment    an experiment as its log tells it, and one that goes on; batch: what it commits
snapshots, forked   so that loading is quick; made by a copy of the process
cleaning, upkeep    what is deleted bit by bit; backups, and checks of whole logs
views, look         what panels and pages show, and what they are computed from
dashboard           the pages: more handlers, and templates
"""
