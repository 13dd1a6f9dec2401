"""The service: studies over HTTP, and web pages.

settings                         settings of a service
logs                             log on standard error, as text or JSON
access                           tokens, sessions, limits of requests
sending                          answers without paths of this machine, with ETags
problems                         refusals for programs
schema                           the OpenAPI description
safety                           checks of every request, headers of every answer
work                             the queue: scheduler, training processes, plans, readiness
studies                          submits, lists, cancels, resumes, extends and deletes studies
results_cache                    cache of the results of studies
streams                          streams of new events
routes, monitoring, metrics      /api/v1, events, /health, /ready, /metrics
web                              the pages
app                              the application, and its server
"""
