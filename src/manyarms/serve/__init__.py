"""The service: experiments over HTTP for many processes and machines, and a dashboard.

server              starts a process of the service; local_token stores its token
app                 the ASGI application: finds the route of a request, checks its token, reads it
routes, openapi     the table of routes of the API, and its OpenAPI description
messages, queries   types of request bodies, answers and queries
requests, errors    requests and responses; errors as answers
access              tokens and roles
api, asks, importing
                    handlers: settings and views; asks and tells; lists of arms
service             what handlers use: experiments, views, callers
leader, loading     the leader: one process runs all experiments, loads them and commits changes
experiment          an experiment that the leader runs
views, view_data    what the API and the pages show, and the cached statistics behind it
snapshots           snapshots, made in a separate process
metrics, clock      metrics for Prometheus; the time
dashboard           the pages
"""
