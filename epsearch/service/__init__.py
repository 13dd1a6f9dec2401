"""The service: studies over HTTP, and web pages.

settings                         what a service is told when it starts
access                           tokens and sessions; how much one of them may take at a time
safety                           who may do what, from where; what every answer says of itself
work                             the queue: processes that train what was submitted; plans; readiness
studies                          what is done with studies, for whoever asks
results_cache                    results of studies as their reports show them, cached
streams                          events as they happen, for many listeners
routes, monitoring, metrics      /api/v1, events, /health, /ready, /metrics
web                              the pages
app                              all of it as one application; serving it
"""
