"""The service: experiments over HTTP for many processes and machines, and a dashboard.

server              starts a process that listens; local_token keeps its token
app                 answers every request: finds its route, checks its token, reads it
routes, openapi     the table of routes of the API, and its description
messages, queries   bodies, answers and queries, as types
requests, errors    a request and its answer; why requests are refused
access              tokens and roles
api, playing, importing
                    handlers: settings and views; asks and tells; names of arms
service             what handlers are given: experiments, views, callers
leader              the process that plays all experiments: it leads, loads and commits
experiment          an experiment that the leader plays
views, look         what the API and the pages show, and what that is computed from
snapshots           snapshots, made by another process
metrics, clock      numbers for Prometheus; the time
dashboard           the pages
"""
